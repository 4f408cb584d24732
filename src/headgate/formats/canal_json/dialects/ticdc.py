"""TiCDC's Canal-JSON, with and without the TiDB extension.

Vendor documentation: "TiCDC Canal-JSON Protocol".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET

from headgate.core.event import ColumnType, Event
from headgate.core.losses import NUMBERS, SIGN
from headgate.core.mysql_types import MySqlType
from headgate.formats._ticdc.ddl_codes import DDL_OPS, ddl_code
from headgate.formats._ticdc.keys import handle_key
from headgate.formats._ticdc.partitioning import CLASSIC
from headgate.formats._ticdc.values import ticdc_writer
from headgate.formats.canal_json.ddl import type_of_op
from headgate.formats.canal_json.decode_values import text_column_reader
from headgate.formats.canal_json.dialects.base import (
    ROWS,
    TRAITS,
    TYPED,
    Dialect,
    EncodeOther,
    EncodeRow,
    NameType,
)
from headgate.formats.canal_json.encode_parts import ROW_TYPES, Options, images, names, time_of
from headgate.formats.canal_json.type_maps import Plan
from headgate.formats.canal_json.wire import Envelope
from headgate.formats.encoding import changed, go_style, to_json
from headgate.formats.places import commit_place


def has_mark(message: Envelope) -> bool:
    """Whether a message has the TiDB extension."""
    return message.tidb is not None or message.type == "TIDB_WATERMARK"


class TicdcMessage(msgspec.Struct, gc=False):
    """The members that TiCDC's messages begin with."""

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


class TicdcRow(TicdcMessage, gc=False):
    """TiCDC's row change: `old` comes before `data`."""

    old: Any
    data: Any
    tidb: Any = msgspec.field(name="_tidb", default=UNSET)


class TicdcOther(TicdcMessage, gc=False):
    """TiCDC's DDL and watermark: `data` comes before `old`."""

    data: Any
    old: Any
    tidb: Any = msgspec.field(name="_tidb", default=UNSET)


def ticdc_bytes(message: Any) -> bytes:
    """A message as JSON with TiCDC's escapes."""
    return go_style(to_json(message))


def ticdc_rows(options: Options) -> EncodeRow:
    """Rows; options decide which columns `old` and a deleted row have."""
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
        same_format = event.format == "canal-json"
        if extra.get("onlyHandleKey") == "true" or (
            not same_format and "claimCheckLocation" in extra
        ):
            members["onlyHandleKey"] = True
        for name in ("claimCheckLocation", "rowkey"):
            if same_format and name in extra:
                members[name] = extra[name]
    return members


def ticdc_others(options: Options) -> EncodeOther:
    """DDL, and watermarks if the extension is enabled."""
    extension = options.enable_tidb_extension

    def ticdc_other(event: Event, ddl_type: str) -> TicdcOther | None:
        is_ddl, type_, sql = True, "", event.ddl or ""
        extra: Any = UNSET
        if event.kind == "watermark" and extension:
            is_ddl, type_, sql = False, "TIDB_WATERMARK", ""
            extra = {"watermarkTs": event.commit_ts} if event.commit_ts else {}
        elif event.kind == "ddl":
            type_ = ddl_type
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


def ticdc_ddl_type(event: Event, same_dialect: bool) -> str:
    """The type by TiDB's action number.

    >>> event = Event("ddl", "alter", "d", "t", ddl="ALTER TABLE t DROP INDEX i, ADD c INT")
    >>> ticdc_ddl_type(event, same_dialect=False)
    'ALTER'
    """
    if not event.table:
        return "QUERY"
    if same_dialect or event.format == "open-protocol":
        return type_of_op(event.op)
    return type_of_op(DDL_OPS.get(ddl_code(event.ddl or "", event.op)))


WIDTHS = {
    "tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10), "bigint": (20, 20)
}  # fmt: skip


def plain_type(type_: MySqlType) -> str:
    """TiCDC's default: the type's name, with `unsigned` and `zerofill`.

    >>> from headgate.core.mysql_types import parse_type
    >>> plain_type(parse_type("int(10) unsigned")), plain_type(parse_type("year(4)"))
    ('int unsigned', 'year')
    """
    signed = type_.family in ("integer", "decimal", "float", "double")
    sign = " unsigned" if signed and type_.unsigned else ""
    return type_.base + sign + (" zerofill" if signed and type_.zerofill else "")


def described_type(type_: MySqlType) -> str:
    """TiCDC with content-compatible: TiDB's description of a type.

    >>> from headgate.core.mysql_types import parse_type
    >>> described_type(parse_type("int unsigned")), described_type(parse_type("decimal(10, 4)"))
    ('int(10) unsigned', 'decimal(10,4)')
    """
    base, length = type_.base, type_.length
    if type_.labels:
        escaped = (label.replace("\\", "\\\\").replace("'", "''") for label in type_.labels)
        quoted = ",".join(f"'{label}'" for label in escaped)
        return f"{base}({quoted})"
    if base in WIDTHS:
        length = WIDTHS[base][type_.unsigned] if length is None else length
    elif base == "decimal" and length is not None:
        return plain_type(type_).replace(base, f"{base}({length},{type_.scale or 0})", 1)
    elif base in ("float", "double") and type_.scale is not None:
        return plain_type(type_).replace(base, f"{base}({length},{type_.scale})", 1)
    elif base in ("float", "double", "text", "blob") or base.endswith(("text", "blob")):
        length = None
    elif base == "year":
        length = 4
    return plain_type(type_).replace(base, f"{base}({length})", 1) if length else plain_type(type_)


def ticdc_type(options: Options) -> NameType:
    """The names of types, with their parameters if the option content-compatible is set."""
    name_of = described_type if options.content_compatible else plain_type

    def name(column: ColumnType, type_: MySqlType, same_dialect: bool) -> str:
        return name_of(type_)

    return name


def carries(options: Options) -> frozenset[str]:
    """The properties of events that TiCDC can represent."""
    carried = ROWS | TYPED | {"ddl", NUMBERS, SIGN}
    if options.content_compatible:
        carried |= {"type-details"}
    if options.enable_tidb_extension:
        carried |= {"commit-ts", "watermark", "incomplete"}
    return carried


def implied_by(options: Mapping[str, str]) -> bool:
    """Whether there are options that only TiCDC has.

    >>> implied_by({"enable-tidb-extension": "true"})
    True
    """
    extended = options.get("enable-tidb-extension", "").lower() == "true"
    return extended or "content-compatible" in options


TICDC = Dialect(
    name="ticdc",
    summary="TiCDC Canal-JSON, with and without the TiDB extension",
    traits=replace(
        TRAITS,
        enum_as_number=True,
        place=commit_place,
        watermarks=True,
        sample_extra={"onlyHandleKey": "true"},
    ),
    has_mark=has_mark,
    id="zero",
    ddl_start=b'{"id"',
    empty_messages=True,  # 4.0
    column_reader=text_column_reader,
    options=(
        "enable_tidb_extension",
        "content_compatible",
        "only_output_updated_columns",
        "delete_only_output_handle_key_columns",
        "old_value_in_delete",
        "output_raw_change_event",
    ),
    implied_by=implied_by,
    fullest={
        "enable_tidb_extension": True,
        "content_compatible": True,
        "output_raw_change_event": True,
    },
    carries=carries,
    row_encoder=ticdc_rows,
    other_encoder=ticdc_others,
    to_bytes=ticdc_bytes,
    ddl_type=ticdc_ddl_type,
    splits_key_updates=lambda options: not options.output_raw_change_event,
    value_writer=ticdc_writer,
    type_namer=ticdc_type,
    guesses_types=True,
    partition_rules=CLASSIC,
)
