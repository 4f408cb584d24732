"""Alibaba Canal 1.1.8 (flatMessage), and Tencent's Canal-compatible format."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from examples.producers import Message, base, plain
from examples.shop import (
    ALTER,
    DATABASE,
    KEY,
    Row,
    Shop,
    Step,
    canonical,
    digits_of,
    moment_text,
    type_of,
)

JDBC = {"bigint": -5, "bigint unsigned": -5, "varchar": 12, "decimal": 3}
JDBC |= {"datetime": 93, "timestamp": 93, "varbinary": 2004}


def text_values(table: str, row: Row) -> dict[str, str | None]:
    """Every value a string; bytes as the characters U+0000 to U+00FF."""
    texts = canonical(table, row)
    return {n: v.decode("latin-1") if isinstance(v, bytes) else texts[n] for n, v in row.items()}


def sql_types(table: str, row: Row) -> dict[str, int]:
    """JDBC codes; an unsigned value beyond a long is a DECIMAL."""
    codes = {n: JDBC[base(type_of(table, n))] for n in row}
    return codes | {n: 3 for n, v in row.items() if isinstance(v, int) and v >= 2**63}


def old_values(step: Step) -> list[dict[str, str | None]]:
    """The changed columns; Canal's set of them is one per message and only grows, row by row."""
    changed: set[str] = set()
    values = []
    for before, after in step.rows:
        old, new = (text_values(step.table, row or {}) for row in (before, after))
        changed |= {n for n in old if old[n] != new[n]}
        values.append({n: v for n, v in old.items() if n in changed})
    return values


def canal(shop: Shop) -> Iterator[Message]:
    """Members in alphabetical order, all of them always there; no heartbeats."""
    for step in shop.steps:
        if step.kind == "beat":
            continue
        message: dict[str, Any] = {
            "data": None, "database": DATABASE, "es": step.seconds * 1000, "gtid": "",
            "id": 1 + step.number // 3, "isDdl": step.kind == "ddl", "mysqlType": None,
            "old": None, "pkNames": None, "sql": "", "sqlType": None, "table": step.table,
            "ts": step.millis + 450, "type": step.op.upper(),
        }  # fmt: skip
        if step.kind == "ddl":
            message["sql"] = ALTER
        else:
            rows = [after or before for before, after in step.rows]
            message["data"] = [text_values(step.table, row) for row in rows]
            message["mysqlType"] = {n: type_of(step.table, n) for n in rows[-1]}
            message["sqlType"] = sql_types(step.table, rows[-1])
            message["pkNames"] = [KEY]
            message["old"] = old_values(step) if step.op == "update" else None
        yield plain(message)


def tencent_values(table: str, row: Row) -> dict[str, Any]:
    """Numbers bare. The document shows no binary and no times: base64 and text, as Debezium's."""

    def value(name: str, sent: Any) -> Any:
        if isinstance(sent, bytes):
            return b64encode(sent).decode()
        if isinstance(sent, datetime):
            return moment_text(sent, digits_of(type_of(table, name)))
        return sent

    return {name: value(name, sent) for name, sent in row.items()}


def tencent(shop: Shop) -> Iterator[Message]:
    """No types, no key names, `old` complete, a delete's row in `old`; a DDL's times in seconds."""
    for step in shop.steps:
        if step.kind == "beat":
            continue
        ddl = step.kind == "ddl"
        for before, after in step.rows or [(None, None)]:
            yield plain({
                "data": [tencent_values(step.table, after)] if after else None,
                "database": DATABASE,
                "es": step.seconds if ddl else step.millis,
                "id": 0, "isDdl": ddl, "mysqlType": None,
                "old": [tencent_values(step.table, before)] if before else None,
                "pkNames": None, "sql": ALTER if ddl else "", "sqlType": None,
                "table": step.table,
                "ts": step.seconds if ddl else step.millis + 423,
                "type": step.op.upper(),
            })  # fmt: skip
