"""Tencent's Canal-compatible format: no types and no keys, numbers without quotes."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from headgate.core.event import Event
from headgate.core.mysql_types import MySqlType
from headgate.formats._canal.values import ValueSource
from headgate.formats._ticdc.values import year_number
from headgate.formats.canal_json.ddl import canal_ddl_type
from headgate.formats.canal_json.dialects.base import ROWS, Dialect
from headgate.formats.canal_json.dialects.canal import CanalMessage
from headgate.formats.canal_json.encode_parts import ROW_TYPES, images, time_of
from headgate.formats.canal_json.partitioning import CANAL as PARTITION_RULES
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.encoding import Write, number, whole


def tencent_row(event: Event, plan: Plan, lost: list[str]) -> CanalMessage:
    """A row; `old` has all columns, and a deleted row is in `old` only."""
    row, old = images(event, plan, lost)
    data: Any = [row]
    before: Any = [old] if event.op == "update" else None
    if event.op == "delete":
        data, before = None, [row]
    return CanalMessage(
        data,
        event.database or "",
        time_of(event.event_time),
        UNSET,
        0,
        False,
        None,
        before,
        None,
        "",
        None,
        event.table or "",
        time_of(event.emit_time),
        ROW_TYPES[event.op or ""],
    )


def tencent_other(event: Event, ddl_type: str) -> CanalMessage | None:
    """DDL only, with times in seconds if they are whole seconds."""
    if event.kind != "ddl":
        return None
    return CanalMessage(
        None,
        event.database or "",
        seconds(event.event_time),
        UNSET,
        0,
        True,
        None,
        None,
        None,
        event.ddl or "",
        None,
        event.table or "",
        seconds(event.emit_time),
        ddl_type,
    )


def seconds(micros: int | None) -> int:
    """Seconds, or milliseconds if the time is not a whole number of seconds.

    >>> seconds(5_000_000), seconds(5_001_000)
    (5, 5001)
    """
    time = time_of(micros)
    return time if time % 1_000 else time // 1_000


def bare_writer(type_: MySqlType, source: ValueSource, to_local: Write | None) -> Write | None:
    """The function that writes numbers without quotes; None if values stay unchanged."""
    if type_.family in ("integer", "bit"):
        return whole
    if type_.family == "year":
        return lambda text: whole(year_number(text))
    return number if type_.family in ("decimal", "float", "double") else None


CARRIED = ROWS | {"ddl", "bare-values"}

TENCENT = Dialect(
    name="tencent",
    summary="Tencent's Canal-compatible format",
    id="zero",
    has_types=False,
    bare_values=True,
    column_reader=lambda producer, options: lambda sent_type, schema_type: None,
    carries=lambda options: CARRIED,
    row_encoder=lambda options: tencent_row,
    other_encoder=lambda options: tencent_other,
    ddl_type=canal_ddl_type,
    value_writer=bare_writer,
    partition_rules=PARTITION_RULES,
)
