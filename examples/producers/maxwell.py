"""Zendesk Maxwell 1.45, and OMS's method Maxwell."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from examples.producers import Message, base, plain
from examples.shop import (
    ADDED,
    ALTER,
    DATABASE,
    KEY,
    TABLES,
    Row,
    Shop,
    Step,
    digits_of,
    moment_text,
    type_of,
)


def values(table: str, row: Row, digits: int | None = None) -> dict[str, Any]:
    """Numbers bare, bytes as base64, times as text with the column's digits (OMS: six)."""

    def value(name: str, sent: Any) -> Any:
        if isinstance(sent, bytes):
            return b64encode(sent).decode()
        if isinstance(sent, datetime):
            own = digits_of(type_of(table, name))
            return moment_text(sent, own if digits is None else digits)
        return sent

    return {name: value(name, sent) for name, sent in row.items()}


def maxwell(shop: Shop) -> Iterator[Message]:
    """With output_xoffset, output_primary_keys, output_primary_key_columns and output_ddl."""
    for step in shop.steps:
        if step.kind == "ddl":
            yield table_alter(step)
        for offset, (before, after) in enumerate(step.rows):
            row = after or before or {}
            last = offset == len(step.rows) - 1
            message = {
                "database": DATABASE, "table": step.table, "type": step.op, "ts": step.seconds,
                "xid": 8_000_000 + step.number,
            }  # fmt: skip
            message |= {"commit": True} if last else {"xoffset": offset}
            message |= {"primary_key": [row[KEY]], "primary_key_columns": [KEY]}
            message["data"] = values(step.table, row)
            if before and after:
                old = values(step.table, before)
                message["old"] = {n: v for n, v in old.items() if v != message["data"][n]}
            yield plain(message)


def table_alter(step: Step) -> Message:
    """A DDL message: definitions before and after, `ts` in milliseconds."""
    return plain({
        "type": "table-alter",
        "database": DATABASE,
        "table": step.table,
        "old": definition(step.table, TABLES[step.table]),
        "def": definition(step.table, {**TABLES[step.table], ADDED[0]: ADDED[1]}),
        "ts": step.millis,
        "sql": ALTER,
    })  # fmt: skip


def definition(table: str, columns: dict[str, str]) -> dict[str, Any]:
    """A table as Maxwell's schema store has it."""
    return {
        "database": DATABASE,
        "charset": "utf8mb4",
        "table": table,
        "columns": [described(name, mysql_type) for name, mysql_type in columns.items()],
        "primary-key": [KEY],
    }


def described(name: str, mysql_type: str) -> dict[str, Any]:
    """One column of a definition."""
    kind = base(mysql_type).partition(" ")[0]
    if kind == "bigint":
        return {"type": kind, "name": name, "signed": "unsigned" not in mysql_type}
    if kind in ("datetime", "timestamp"):
        return {"type": kind, "name": name, "column-length": digits_of(mysql_type)}
    if kind == "varchar":
        return {"type": kind, "name": name, "charset": "utf8mb4"}
    return {"type": kind, "name": name}


def oms(shop: Shop) -> Iterator[Message]:
    """Members always there, `old` complete, `xid` text, heartbeats in milliseconds."""
    for step in shop.steps:
        for before, after in step.rows or [(None, None)]:
            row = after or before
            message = {
                "database": DATABASE,
                "table": step.table,
                "type": "table-alter" if step.kind == "ddl" else step.op,
                "ts": step.seconds,
                "xid": f"1002_{336000 + step.number}",
                "commit": True,
                "position": str(step.seconds),
                "primary_key": [str(row[KEY])] if row else None,
                "primary_key_columns": [KEY] if row else None,
                "data": values(step.table, row, 6) if row else None,
                "old": values(step.table, before, 6) if before and after else None,
                "sql": ALTER if step.kind == "ddl" else None,
                "def": empty_definition(step) if step.kind == "ddl" else None,
            }
            if step.kind == "beat":
                message |= {"database": None, "table": None, "type": "heartbeat", "xid": None}
                message |= {"ts": step.seconds * 1000, "uuid": f"451a77fa-ed42-{step.number:04d}"}
            yield plain(message)


def empty_definition(step: Step) -> dict[str, Any]:
    """OMS names the table and leaves the rest empty."""
    return {"database": DATABASE, "table": step.table, "primary-key": [], "columns": []}
