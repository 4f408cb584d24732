"""Encode Canal's flat message as Canal, TiCDC, OMS and Tencent write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headgate.core.cache import BoundedCache
from headgate.core.errors import UsageError
from headgate.core.event import Event, Record
from headgate.core.losses import NUMBERS, SIGN
from headgate.formats._ticdc.keys import changes_key, split_update
from headgate.formats._ticdc.partitioning import CLASSIC
from headgate.formats.base import Encode, Encoding
from headgate.formats.canal_json.ddl import DDL_TYPES, ddl_type
from headgate.formats.canal_json.encode_parts import (
    MARKER_TYPES,
    ROW_TYPES,
    Options,
    images,
    names,
    time_of,
)
from headgate.formats.canal_json.encode_ticdc import ticdc_bytes, ticdc_others, ticdc_rows
from headgate.formats.canal_json.partitioning import CANAL
from headgate.formats.canal_json.type_maps import Plan, planner, source_of
from headgate.formats.encoding import PerTypeMap, changed, to_json

TICDC_ONLY = (
    "enable_tidb_extension",
    "content_compatible",
    "only_output_updated_columns",
    "delete_only_output_handle_key_columns",
    "old_value_in_delete",
    "output_raw_change_event",
)


# One class per order of members; UNSET members are omitted.


class CanalMessage(msgspec.Struct, gc=False):
    """Canal: every member, in alphabetical order; Tencent has no gtid."""

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


class OmsMessage(msgspec.Struct, gc=False):
    """OMS: its own order, no id."""

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


def make_encoder(dialect: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    if dialect != "ticdc":
        for name in TICDC_ONLY:
            if getattr(options, name):
                raise UsageError(
                    f"option {name.replace('_', '-')} is TiCDC's; write canal-json:ticdc"
                )
    rows = {
        "canal": canal_row,
        "ticdc": ticdc_rows(options),
        "oms": oms_row,
        "tencent": tencent_row,
    }[dialect]
    others = {
        "canal": canal_other,
        "ticdc": ticdc_others(options),
        "oms": oms_other,
        "tencent": tencent_other,
    }[dialect]
    zone, described = options.timezone, options.content_compatible
    plans: BoundedCache[tuple[str | None, str | None, bool], PerTypeMap[Plan]] = BoundedCache(
        lambda origin: planner(dialect, source_of(dialect, origin), zone, described)
    )
    splits = dialect == "ticdc" and not options.output_raw_change_event

    def encode(event: Event, lost: list[str]) -> list[Record]:
        if event.kind == "tombstone":
            return [Record(None)]
        if event.kind != "row":
            message = others(event)
            return [] if message is None else [Record(finish(message))]
        split = splits and changes_key(event)
        several = split or (event.position is not None and "row" in event.position)
        plan = plans[event.format, event.dialect, several](event.types)
        if split:
            lost.append("key-change")
            return [Record(finish(rows(part, plan, lost))) for part in split_update(event)]
        return [Record(finish(rows(event, plan, lost)))]

    finish: Callable[[Any], bytes] = to_json
    if dialect == "ticdc":
        finish = ticdc_bytes
    return encode


def batch_id(event: Event) -> int:
    """Canal's batch id, which is never 0; 1 for events of other formats."""
    text = (event.extra or {}).get("id", "") if event.format == "canal-json" else ""
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 else 1


def canal_row(event: Event, plan: Plan, lost: list[str]) -> CanalMessage:
    """Canal: `old` has the changed columns only."""
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


def tencent_row(event: Event, plan: Plan, lost: list[str]) -> CanalMessage:
    """Tencent: `old` has all columns, and a deleted row is in `old` only."""
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


def oms_row(event: Event, plan: Plan, lost: list[str]) -> OmsMessage:
    """OMS: `old` has the changed columns only."""
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


def statement_members(event: Event) -> tuple[bool, str, str] | None:
    """isDdl, type and sql of an event that is not a row; None if Canal has no message for it."""
    extra = event.extra or {} if event.format == "canal-json" else {}
    if event.kind == "ddl":
        return True, extra.get("type", ddl_type(event, "canal")), event.ddl or ""
    if event.kind == "statement" and event.ddl:
        return False, ROW_TYPES.get(event.op or "", "QUERY"), event.ddl or ""
    if event.kind == "marker" and extra.get("type") in MARKER_TYPES:
        return False, extra["type"], extra.get("sql", "")
    return None


def canal_other(event: Event) -> CanalMessage | None:
    """Canal: DDL, statements and XA markers."""
    members = statement_members(event)
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


def tencent_other(event: Event) -> CanalMessage | None:
    """Tencent: DDL only, with times in seconds if they are whole seconds."""
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
        ddl_type(event, "tencent"),
    )


def seconds(micros: int | None) -> int:
    """Seconds, or milliseconds if the time is not a whole number of seconds."""
    time = time_of(micros)
    return time if time % 1_000 else time // 1_000


def oms_other(event: Event) -> OmsMessage | OmsHeartbeat | None:
    """OMS: DDL and heartbeats."""
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
        DDL_TYPES.get(event.op or "", "QUERY"),
        event.table,
        es,
        True,
        ts,
        event.ddl or "",
    )


ROWS = frozenset({"insert", "before", "database", "table", "event-time", "event-time-millis"})
ROWS |= {"emit-time", "emit-time-millis"}
TYPED = frozenset({"key", "types"})


def carries(dialect: str, options: Options) -> frozenset[str]:
    """The properties of events that a dialect can represent."""
    if dialect == "canal":
        return ROWS | TYPED | {"type-details", "ddl", "statement", "position.gtid", NUMBERS}
    if dialect == "oms":
        return ROWS | TYPED | {"ddl", "heartbeat", "bare-values"}
    if dialect == "tencent":
        return ROWS | {"ddl", "bare-values"}
    carried = ROWS | TYPED | {"ddl", NUMBERS, SIGN}
    if options.content_compatible:
        carried |= {"type-details"}
    if options.enable_tidb_extension:
        carried |= {"commit-ts", "watermark", "incomplete"}
    return carried


ENCODING = Encoding(
    Options,
    make_encoder,
    carries,
    partition_rules={"canal": CANAL, "ticdc": CLASSIC, "oms": CANAL, "tencent": CANAL},
    fullest={
        "ticdc": {
            "enable_tidb_extension": True,
            "content_compatible": True,
            "output_raw_change_event": True,
        }
    },
)
