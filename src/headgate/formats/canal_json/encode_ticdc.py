"""Encode TiCDC's Canal-JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from headgate.core.event import Event
from headgate.formats._ticdc.keys import handle_key
from headgate.formats.canal_json.ddl import ddl_type
from headgate.formats.canal_json.encode_parts import ROW_TYPES, Options, images, names, time_of
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.encoding import changed, go_style, to_json


class TicdcRow(msgspec.Struct, gc=False):
    """TiCDC's row change: `old` comes before `data`."""

    id: int
    database: str
    table: str
    pkNames: Any
    isDdl: bool
    type: str
    es: int
    ts: int
    sql: str
    sqlType: Any
    mysqlType: Any
    old: Any
    data: Any
    tidb: Any = msgspec.field(name="_tidb", default=UNSET)


class TicdcOther(msgspec.Struct, gc=False):
    """TiCDC's DDL and watermark: `data` comes before `old`."""

    id: int
    database: str
    table: str
    pkNames: Any
    isDdl: bool
    type: str
    es: int
    ts: int
    sql: str
    sqlType: Any
    mysqlType: Any
    data: Any
    old: Any
    tidb: Any = msgspec.field(name="_tidb", default=UNSET)


def ticdc_bytes(message: Any) -> bytes:
    """A message as JSON with TiCDC's escapes."""
    return go_style(to_json(message))


def ticdc_rows(options: Options) -> Callable[[Event, Plan, list[str]], TicdcRow]:
    """TiCDC: options decide which columns `old` and a deleted row have."""
    only_changed = options.only_output_updated_columns or options.content_compatible
    only_key = options.delete_only_output_handle_key_columns
    extension = options.enable_tidb_extension

    def ticdc_row(event: Event, plan: Plan, lost: list[str]) -> TicdcRow:
        row, old = images(event, plan, lost)
        image = event.after or event.before or {}
        before: Any = None
        if event.op == "update":
            before = [changed(old, row) if only_changed else old]
        elif event.op == "delete":
            kept = handle_key(event) if only_key else ()
            if kept and len(kept) < len(row):
                lost.append("deleted-row")
                row = {n: v for n, v in row.items() if n in kept}
                image = {n: v for n, v in image.items() if n in kept}
            if options.old_value_in_delete:
                before = [row]
        sql_type, mysql_type = plan.type_maps(image, lost)
        if event.key is None:
            lost.append("key-unknown")
        return TicdcRow(
            0,
            event.database or "",
            event.table or "",
            names(event, row) or [],
            False,
            ROW_TYPES[event.op or ""],
            ticdc_time(event),
            time_of(event.emit_time),
            "",
            sql_type,
            mysql_type,
            before,
            [row],
            tidb(event) if extension else UNSET,
        )

    return ticdc_row


def ticdc_time(event: Event) -> int:
    """The time of the change in milliseconds; the commit TSO contains it too."""
    if event.event_time is None and event.commit_ts is not None:
        return event.commit_ts >> 18
    return time_of(event.event_time)


def tidb(event: Event) -> dict[str, Any]:
    """TiCDC's extension member `_tidb`."""
    members: dict[str, Any] = {}
    # DDL omits 0, because of Go's omitempty.
    if event.commit_ts or (event.commit_ts == 0 and event.kind == "row"):
        members["commitTs"] = event.commit_ts
    extra = event.extra
    if extra:
        own = event.format == "canal-json"
        if extra.get("onlyHandleKey") == "true" or (not own and "claimCheckLocation" in extra):
            members["onlyHandleKey"] = True
        for name in ("claimCheckLocation", "rowkey"):
            if own and name in extra:
                members[name] = extra[name]
    return members


def ticdc_others(options: Options) -> Callable[[Event], TicdcOther | None]:
    """TiCDC: DDL, and watermarks if the extension is enabled."""
    extension = options.enable_tidb_extension

    def ticdc_other(event: Event) -> TicdcOther | None:
        is_ddl, type_, sql = True, "", event.ddl or ""
        extra: Any = UNSET
        if event.kind == "watermark" and extension:
            is_ddl, type_, sql = False, "TIDB_WATERMARK", ""
            extra = {"watermarkTs": event.commit_ts} if event.commit_ts else {}
        elif event.kind == "ddl":
            type_ = ddl_type(event, "ticdc")
            extra = tidb(event) if extension else UNSET
        else:
            return None
        return TicdcOther(
            0,
            event.database or "",
            event.table or "",
            None,
            is_ddl,
            type_,
            ticdc_time(event),
            time_of(event.emit_time),
            sql,
            None,
            None,
            None,
            None,
            extra,
        )

    return ticdc_other
