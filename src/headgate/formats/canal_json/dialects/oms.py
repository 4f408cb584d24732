"""OceanBase Migration Service, serialization method Canal.

Vendor documentation: OMS "JSON format of Canal messages".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from headgate.core.event import ColumnType, Event
from headgate.core.mysql_types import MySqlType
from headgate.formats._oms import decode_values
from headgate.formats._oms.encode_values import canal_writer, type_name
from headgate.formats._oms.type_names import TYPE_NAMES
from headgate.formats.canal_json.ddl import type_of_op
from headgate.formats.canal_json.dialects.base import ROWS, TRAITS, TYPED, Dialect
from headgate.formats.canal_json.encode_parts import ROW_TYPES, images, names, time_of
from headgate.formats.canal_json.partitioning import CANAL as PARTITION_RULES
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.encoding import changed


class OmsMessage(msgspec.Struct, gc=False):
    """OMS's order of members, without id."""

    database: str | None
    sqlType: Any
    data: Any
    pkNames: Any
    old: Any
    mysqlType: Any
    type: str
    table: str | None
    es: int
    isDdl: bool
    ts: int
    sql: str


class OmsHeartbeat(msgspec.Struct, gc=False):
    """OMS's heartbeat, whose members have a different order."""

    table: None
    database: None
    type: str
    ts: int
    es: int
    isDdl: bool
    sql: str
    data: None = None
    old: None = None
    pkNames: None = None
    mysqlType: None = None
    sqlType: None = None


def oms_row(event: Event, plan: Plan, lost: list[str]) -> OmsMessage:
    """A row; `old` has the changed columns only."""
    row, old = images(event, plan, lost)
    sql_type, mysql_type = plan.type_maps(event.after or event.before or {}, lost)
    return OmsMessage(
        event.database,
        sql_type,
        [row],
        names(event, row),
        [changed(old, row)] if event.op == "update" else None,
        mysql_type,
        ROW_TYPES[event.op or ""],
        event.table,
        time_of(event.event_time),
        False,
        time_of(event.emit_time),
        "",
    )


def oms_other(event: Event, ddl_type: str) -> OmsMessage | OmsHeartbeat | None:
    """DDL and heartbeats."""
    es, ts = time_of(event.event_time), time_of(event.emit_time)
    if event.kind == "heartbeat":
        return OmsHeartbeat(None, None, "MHEARTBEAT", ts, es, False, "")
    if event.kind != "ddl":
        return None
    return OmsMessage(
        event.database,
        None,
        None,
        None,
        None,
        None,
        ddl_type,
        event.table,
        es,
        True,
        ts,
        event.ddl or "",
    )


def oms_type(column: ColumnType, type_: MySqlType, same_dialect: bool) -> str | None:
    """OMS's own name of a type, in lower case.

    >>> from headgate.core.mysql_types import parse_type
    >>> oms_type(ColumnType("bigint(20)"), parse_type("bigint(20)"), same_dialect=False)
    'int64'
    """
    return column.mysql if same_dialect else (type_name(column) or "").lower()


CARRIED = ROWS | TYPED | {"ddl", "heartbeat", "bare-values"}

OMS = Dialect(
    name="oms",
    summary="OceanBase Migration Service, method Canal",
    traits=replace(TRAITS, type_names=TYPE_NAMES),
    id="absent",
    bare_values=True,
    json_functions=False,
    json_converter=decode_values.converter,
    text_converter=lambda mysql_type, to_utc: None,
    column_reader=decode_values.column_reader,
    carries=lambda options: CARRIED,
    row_encoder=lambda options: oms_row,
    other_encoder=lambda options: oms_other,
    ddl_type=lambda event, same_dialect: type_of_op(event.op),
    value_writer=lambda type_, source, to_local: canal_writer(type_),
    type_namer=lambda options: oms_type,
    jdbc_codes={"float": 6, "year": 4, "enum": 1, "set": 1, "binary": -2, "varbinary": -3},
    large_unsigned={},
    partition_rules=PARTITION_RULES,
)
