"""TiCDC: Canal-JSON with the TiDB extension, and Open Protocol of both architectures."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from examples.producers import Message, base, dump, html_safe
from examples.producers.canal import sql_types, text_values
from examples.shop import (
    DATABASE,
    KEY,
    Row,
    Shop,
    Step,
    digits_of,
    moment_text,
    type_of,
)

ALTER = "ALTER TABLE `customers` ADD COLUMN `tier` VARCHAR(16)"
ADD_COLUMN, ROW, DDL, RESOLVED = 5, 1, 2, 3
VERSION = (1).to_bytes(8, "big")

CODES = {"bigint": 8, "bigint unsigned": 8, "varchar": 15, "varbinary": 15, "decimal": 246}
CODES |= {"datetime": 12, "timestamp": 7}
FLAGS = {"bigint": 65, "bigint unsigned": 193, "varchar": 64, "varbinary": 65, "decimal": 65}
FLAGS |= {"datetime": 65, "timestamp": 65}
BINARY_HANDLE_PRIMARY = 1 + 2 + 8
GO_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
GO_ESCAPES |= {ord("\\"): "\\\\", ord('"'): '\\"'}


def canal_json(shop: Shop) -> Iterator[Message]:
    """One row per message, `old` complete and before `data`, `mysqlType` in Go's random order."""
    order = random.Random(7)
    for step in shop.steps:
        head = {"id": 0, "database": DATABASE, "table": step.table}
        if step.kind != "row":
            yield canal_other(step, head)
            continue
        for before, after in step.rows:
            row = after or before or {}
            types = [(n, base(type_of(step.table, n))) for n in row]
            order.shuffle(types)
            message = head | {
                "pkNames": [KEY], "isDdl": False, "type": step.op.upper(), "es": step.millis,
                "ts": step.millis + 812, "sql": "", "sqlType": sql_types(step.table, row),
                "mysqlType": dict(types),
                "old": [text_values(step.table, before)] if before and after else None,
                "data": [text_values(step.table, row)],
                "_tidb": {"commitTs": step.tso},
            }  # fmt: skip
            yield Message(None, html_safe(dump(message)).encode())


def canal_other(step: Step, head: dict[str, Any]) -> Message:
    """A DDL or a watermark; here `data` comes before `old`."""
    ddl = step.kind == "ddl"
    message = (head if ddl else head | {"database": "", "table": ""}) | {
        "pkNames": None, "isDdl": ddl, "type": "ALTER" if ddl else "TIDB_WATERMARK",
        "es": step.millis, "ts": step.millis + 812, "sql": ALTER if ddl else "",
        "sqlType": None, "mysqlType": None, "data": None, "old": None,
        "_tidb": {"commitTs" if ddl else "watermarkTs": step.tso},
    }  # fmt: skip
    return Message(None, html_safe(dump(message)).encode())


def classic(shop: Shop) -> Iterator[Message]:
    """The architecture up to v8.5: columns by name, the row's handle in the key, HTML escaped."""

    def key(step: Step, row: Row) -> dict[str, Any]:
        return {"ts": step.tso, "scm": DATABASE, "tbl": step.table, "rid": row[KEY], "t": ROW}

    def columns(table: str, row: Row) -> dict[str, Any]:
        return {n: column(table, n, row[n]) for n in sorted(row)}

    return open_protocol(shop, key, columns, lambda value: html_safe(dump(value)))


def new(shop: Shop) -> Iterator[Message]:
    """The architecture from v8.5.4 on: columns in the table's order, no handle, no escapes."""

    def key(step: Step, row: Row) -> dict[str, Any]:
        return {"ts": step.tso, "scm": DATABASE, "tbl": step.table, "t": ROW}

    def columns(table: str, row: Row) -> dict[str, Any]:
        return {n: column(table, n, value) for n, value in row.items()}

    return open_protocol(shop, key, columns, dump)


def open_protocol(
    shop: Shop,
    key_of: Callable[[Step, Row], dict[str, Any]],
    columns: Callable[[str, Row], dict[str, Any]],
    write: Callable[[Any], str],
) -> Iterator[Message]:
    """The rows of a statement are one batch; DDL and resolved points come alone."""
    for step in shop.steps:
        if step.kind == "beat":
            yield framed([write({"ts": step.tso, "t": RESOLVED})], [""])
        elif step.kind == "ddl":
            key = {"ts": step.tso, "scm": DATABASE, "tbl": step.table, "t": DDL}
            yield framed([write(key)], [write({"q": ALTER, "t": ADD_COLUMN})])
        else:
            keys, values = [], []
            for before, after in step.rows:
                keys.append(write(key_of(step, after or before or {})))
                images = {"u": after, "p": before} if after else {"d": before}
                body = {n: columns(step.table, row) for n, row in images.items() if row}
                values.append(write(body))
            yield framed(keys, values)


def framed(keys: list[str], values: list[str]) -> Message:
    """A version, then each body behind its length."""

    def frames(bodies: list[str]) -> bytes:
        sent = [body.encode() for body in bodies]
        return b"".join(len(body).to_bytes(8, "big") + body for body in sent)

    return Message(VERSION + frames(keys), frames(values))


def column(table: str, name: str, value: Any) -> dict[str, Any]:
    """Type code, handle, flags and value."""
    kind = base(type_of(table, name))
    if name == KEY:
        return {"t": CODES[kind], "h": True, "f": BINARY_HANDLE_PRIMARY, "v": value}
    if isinstance(value, bytes):
        value = go_quoted(value)
    elif isinstance(value, Decimal):
        value = f"{value:f}"
    elif isinstance(value, datetime):
        value = moment_text(value, digits_of(type_of(table, name)))
    return {"t": CODES[kind], "f": FLAGS[kind], "v": value}


def go_quoted(data: bytes) -> str:
    """Bytes as Go's strconv.Quote writes them, without the quotes."""
    text, at = "", 0
    while at < len(data):
        rune = first_rune(data[at : at + 4])
        if rune is None:
            text += f"\\x{data[at]:02x}"
            at += 1
            continue
        text += go_rune(rune)
        at += len(rune.encode())
    return text


def go_rune(rune: str) -> str:
    """One character, escaped unless it can be printed."""
    code = ord(rune)
    if code in GO_ESCAPES:
        return GO_ESCAPES[code]
    if rune.isprintable():
        return rune
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def first_rune(data: bytes) -> str | None:
    """The character that the bytes start with, or None where they are not UTF-8."""
    for length in range(1, len(data) + 1):
        try:
            return data[:length].decode()
        except UnicodeDecodeError:
            continue
    return None
