"""Alibaba Canal, from whose flat message the other dialects are derived."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UnsetType

from headgate.core.event import Event
from headgate.core.losses import NUMBERS
from headgate.core.values import base_type
from headgate.formats._canal.values import canal_writer
from headgate.formats.base import Producer, ReadColumn
from headgate.formats.canal_json.ddl import canal_ddl_type
from headgate.formats.canal_json.decode_values import Options, relabelled, text_column_reader
from headgate.formats.canal_json.dialects.base import ROWS, TRAITS, TYPED, Dialect
from headgate.formats.canal_json.encode_parts import ROW_TYPES, images, names, time_of
from headgate.formats.canal_json.partitioning import CANAL as PARTITION_RULES
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.canal_json.wire import MARKER_OPS
from headgate.formats.encoding import changed


class CanalMessage(msgspec.Struct, gc=False):
    """Every member, in alphabetical order; UNSET members are omitted (Tencent has no gtid)."""

    data: Any
    database: str
    es: int
    gtid: str | UnsetType
    id: int
    isDdl: bool
    mysqlType: Any
    old: Any
    pkNames: Any
    sql: str
    sqlType: Any
    table: str
    ts: int
    type: str


def batch_id(event: Event) -> int:
    """Canal's batch id, which is never 0; 1 for events of other formats."""
    text = (event.extra or {}).get("id", "") if event.format == "canal-json" else ""
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 else 1


def canal_row(event: Event, plan: Plan, lost: list[str]) -> CanalMessage:
    """A row; `old` has the changed columns only."""
    row, old = images(event, plan, lost)
    sql_type, mysql_type = plan.type_maps(event.after or event.before or {}, lost)
    if event.key == ():
        lost.append("key")
    return CanalMessage(
        [row],
        event.database or "",
        time_of(event.event_time),
        (event.position or {}).get("gtid", ""),
        batch_id(event),
        False,
        mysql_type,
        [changed(old, row)] if event.op == "update" else None,
        names(event, row) or None,
        (event.extra or {}).get("sql", "") if event.format == "canal-json" else "",
        sql_type,
        event.table or "",
        time_of(event.emit_time),
        ROW_TYPES[event.op or ""],
    )


def canal_other(event: Event, ddl_type: str) -> CanalMessage | None:
    """DDL, statements and XA markers."""
    members = statement_members(event, ddl_type)
    if members is None:
        return None
    is_ddl, type_, sql = members
    return CanalMessage(
        None,
        event.database or "",
        time_of(event.event_time),
        (event.position or {}).get("gtid", ""),
        batch_id(event),
        is_ddl,
        None,
        None,
        None,
        sql,
        None,
        event.table or "",
        time_of(event.emit_time),
        type_,
    )


def statement_members(event: Event, ddl_type: str) -> tuple[bool, str, str] | None:
    """isDdl, type and sql of an event that is not a row; None if Canal has no message for it."""
    extra = event.extra or {} if event.format == "canal-json" else {}
    if event.kind == "ddl":
        return True, extra.get("type", ddl_type), event.ddl or ""
    if event.kind == "statement" and event.ddl:
        return False, ROW_TYPES.get(event.op or "", "QUERY"), event.ddl or ""
    if event.kind == "marker" and extra.get("type") in MARKER_OPS:
        return False, extra["type"], extra.get("sql", "")
    return None


def column_reader(producer: Producer, options: Options) -> ReadColumn:
    """As text; labels of ENUM and SET are replaced by those of the schema."""
    read_text = text_column_reader(producer, options)

    def read(sent_type: str | None, schema_type: str) -> Any:
        if sent_type is not None and base_type(schema_type) in ("enum", "set"):
            return relabelled(sent_type, schema_type)
        return read_text(sent_type, schema_type)

    return read


CARRIED = ROWS | TYPED | {"type-details", "ddl", "statement", "position.gtid", NUMBERS}

CANAL = Dialect(
    name="canal",
    summary="Alibaba Canal, all versions",
    traits=replace(TRAITS, enum_as_number=True),
    id="batch",
    unchanged_without_old=True,  # up to 1.1.6
    column_reader=column_reader,
    carries=lambda options: CARRIED,
    row_encoder=lambda options: canal_row,
    other_encoder=lambda options: canal_other,
    ddl_type=canal_ddl_type,
    value_writer=canal_writer,
    null_codes={"set": 2004, "json": 1111},
    partition_rules=PARTITION_RULES,
)
