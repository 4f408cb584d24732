"""Maxwell's messages that are not rows: DDL, bootstrap markers, heartbeats."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UnsetType

from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event, Types
from headgate.core.json import Raw, parse
from headgate.formats._ticdc.ddl_codes import DDL_OPS as TIDB_OPS
from headgate.formats._ticdc.ddl_codes import ddl_code
from headgate.formats.maxwell.wire import NULL, Wire, ddl_old_reader, definition_reader
from headgate.formats.maxwell.words import (
    MARKER_OPS,
    ROW_OPS,
)

DDL_OPS = {
    "table-create": "create",
    "table-alter": "alter",
    "table-drop": "drop",
    "database-create": "create",
    "database-alter": "alter",
    "database-drop": "drop",
}
TYPES = [*ROW_OPS, *MARKER_OPS, *DDL_OPS, "heartbeat"]


def one_line(raw: Raw) -> str:
    """JSON as it was sent; compacted if it spans several lines.

    >>> one_line(Raw(b'{"a": 1.10}')), one_line(Raw(b'{\\n"a": 1.10}'))
    ('{"a": 1.10}', '{"a":1.10}')
    """
    text = bytes(raw).decode()
    return msgspec.json.format(text, indent=-1) if "\n" in text or "\r" in text else text


def describe_other(event: Event, message: Wire, value: bytes, extra: dict[str, str]) -> None:
    """Describe what is not a row: DDL, a heartbeat, the start or end of a bootstrap."""
    type_ = message.type
    if type_ in MARKER_OPS:
        event.kind, event.op = "marker", MARKER_OPS[type_]
    elif type_ == "heartbeat":
        event.kind = "heartbeat"
    elif type_ in DDL_OPS or (event.dialect == "ticdc" and message.sql.__class__ is str):
        event.kind, event.op, event.ddl = "ddl", DDL_OPS.get(type_), message.sql or ""
        if event.dialect == "ticdc":
            event.op = ticdc_op(type_, event.ddl)
            if type_ not in DDL_OPS:
                extra["type"] = type_
        if message.charset is not None:
            extra["charset"] = message.charset
        before = parse(ddl_old_reader, value).old
        if bytes(before) != b"null":
            extra["old"] = one_line(before)
        describe_definition(event, message, extra)
    else:
        raise DecodeError(
            "unknown-type",
            "type has an unknown value",
            f"known: {', '.join(TYPES)}",
        )


def ticdc_op(type_: str, statement: str) -> str:
    """A statement's operation: TiCDC calls many `table-alter`, and uses TiDB's words for others.

    >>> ticdc_op("table-alter", "TRUNCATE TABLE t"), ticdc_op("create view", "CREATE VIEW v AS …")
    ('truncate', 'query')
    """
    if type_.startswith("database-"):
        return DDL_OPS.get(type_, "query")
    return TIDB_OPS.get(ddl_code(statement, DDL_OPS.get(type_)), "query")


def describe_definition(event: Event, message: Wire, extra: dict[str, str]) -> None:
    """Take the table's name, key and column types after the statement from `def`."""
    sent = NULL if isinstance(message.def_, UnsetType) else message.def_
    definition = parse(definition_reader, bytes(sent))
    if definition is None:
        return
    extra["def"] = one_line(sent)
    if event.dialect == "ticdc":
        return  # its types are too coarse to rely on: TINYINT is `int`, BLOB is `string`
    if message.type == "table-alter" and (
        (definition.table or message.table) != message.table
        or (definition.database or message.database) != message.database
    ):
        event.op = "rename"
    if definition.columns:  # OMS fills neither the columns nor the key
        event.types = definition_types(definition.columns)
        if definition.primary_key is not None:
            event.key = tuple(definition.primary_key)


def definition_types(columns: list[Any]) -> Types:
    """MySQL type texts from the columns of a table definition.

    >>> definition_types([{"name": "id", "type": "int", "signed": False}])["id"].mysql
    'int unsigned'
    """
    types: Types = {}
    for column in columns:
        if not isinstance(column, dict) or not isinstance(column.get("name"), str):
            raise DecodeError("wrong-type", "a column of def has no name", "check the producer")
        types[column["name"]] = ColumnType(definition_type(column))
    return types


def definition_type(column: dict[str, Any]) -> str | None:
    """One column's MySQL type, as precisely as a definition gives it."""
    name, labels = column.get("type"), column.get("enum-values")
    if not isinstance(name, str):
        return None
    if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
        quoted = ("'" + s.replace("\\", "\\\\").replace("'", "''") + "'" for s in labels)
        return f"{name}({','.join(quoted)})"
    digits = column.get("column-length")
    if isinstance(digits, int) and digits:
        return f"{name}({digits})"
    return f"{name} unsigned" if column.get("signed") is False else name
