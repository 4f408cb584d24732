"""Canal's flat message as Canal, TiCDC, OMS and Tencent write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from headgate.errors import UsageError
from headgate.event import ColumnType, Event, Image, Record, Types
from headgate.formats import Encode, Encoding
from headgate.formats.encoders import oms_values
from headgate.formats.encoders.common import (
    Plans,
    Write,
    Writers,
    changed,
    enum_index,
    go_style,
    hinted,
    is_numbered,
    latin1,
    number,
    set_mask,
    to_json,
    whole,
    written,
)
from headgate.loss import NUMBERS, Lossy
from headgate.mysql_types import MySqlType, parse_type
from headgate.options import EncodeOptions, option
from headgate.values import local, plain

ROW_TYPES = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE", "snapshot": "INSERT"}
DDL_TYPES = {
    "create": "CREATE",
    "alter": "ALTER",
    "drop": "ERASE",
    "rename": "RENAME",
    "truncate": "TRUNCATE",
    "create_index": "CINDEX",
    "drop_index": "DINDEX",
}
MARKER_TYPES = ("XACOMMIT", "XAROLLBACK", "GTID")
"""Which only Canal has."""
NULL = Raw(b"null")
TICDC_ONLY = (
    "enable_tidb_extension",
    "content_compatible",
    "only_output_updated_columns",
    "delete_only_output_handle_key_columns",
    "old_value_in_delete",
)


@dataclass(frozen=True)
class Options(EncodeOptions):
    """Options of canal-json when it is written; all but the common ones are TiCDC's."""

    enable_tidb_extension: bool = option(False, "write _tidb, and watermarks")
    content_compatible: bool = option(
        False, "write mysqlType with its parameters, and only changed columns in old"
    )
    only_output_updated_columns: bool = option(False, "write only changed columns in old")
    delete_only_output_handle_key_columns: bool = option(
        False, "write only the key's columns of a deleted row"
    )
    old_value_in_delete: bool = option(False, "write a deleted row in old as well, as before 5.4")


# One class per order of members; what is UNSET is not written.


class CanalMessage(msgspec.Struct, gc=False):
    """Canal: every member, in the order of the alphabet; Tencent has no gtid."""

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


class TicdcRow(msgspec.Struct, gc=False):
    """TiCDC's row change: old before data."""

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
    """TiCDC's DDL and watermark: data before old."""

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
    """OMS's heartbeat: another order."""

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


JDBC = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 7, "double": 8,
    "decimal": 3, "char": 1, "varchar": 12, "date": 91, "time": 92, "datetime": 93,
    "timestamp": 93, "year": 12, "enum": 4, "set": -7, "bit": -7, "json": 12, "vector": 12,
}  # fmt: skip
OMS_JDBC = {"float": 6, "year": 4, "enum": 1, "set": 1, "binary": -2, "varbinary": -3}
"""OMS only: codes that are other than Canal's."""
PROMOTED = {
    "tinyint": ("127", 5),
    "smallint": ("32767", 4),
    "int": ("2147483647", -5),
    "bigint": ("9223372036854775807", 3),
}
"""Unsigned integers: the largest value of their own JDBC code, and the code of a larger one."""
OF_NULL = {"set": 2004, "json": 1111}
"""Canal only: the JDBC code of NULL, where it is another."""


def jdbc_code(type_: MySqlType, dialect: str) -> int:
    """The java.sql.Types code of a column, before its value is looked at.

    >>> jdbc_code(parse_type("text"), "canal"), jdbc_code(parse_type("float"), "oms")
    (2005, 6)
    """
    if dialect == "oms" and type_.base in OMS_JDBC:
        return OMS_JDBC[type_.base]
    if type_.family in ("binary", "spatial"):
        return 2004
    if type_.base.endswith("text"):
        return 2005
    return JDBC.get(type_.base, 12)


WIDTHS = {
    "tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10), "bigint": (20, 20)
}  # fmt: skip


def plain_type(type_: MySqlType) -> str:
    """TiCDC's default: the name, and whether it is unsigned.

    >>> plain_type(parse_type("int(10) unsigned")), plain_type(parse_type("year(4)"))
    ('int unsigned', 'year')
    """
    signed = type_.family in ("integer", "decimal", "float", "double")
    sign = " unsigned" if signed and type_.unsigned else ""
    return type_.base + sign + (" zerofill" if signed and type_.zerofill else "")


def described_type(type_: MySqlType) -> str:
    """TiCDC with content-compatible: TiDB's description of a type.

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


class Plan(msgspec.Struct):
    """What a table's types mean for its rows; the maps are ready as JSON."""

    names: list[str]
    mysql: dict[str, str | None]
    jdbc: dict[str, int | None]
    writers: Writers
    promoted: list[tuple[str, str, int]]
    """Columns whose code depends on the value: name, the largest of its own code, the next code."""
    of_null: list[tuple[str, int]]
    mysql_json: Raw = NULL
    jdbc_json: Raw = NULL
    bare: bool = False
    """Whether there are no types, and values that came bare are written so."""

    def type_maps(self, row: Image) -> tuple[Any, Any]:
        """sqlType and mysqlType of one row."""
        if not self.names:
            return NULL, NULL
        whole_row = len(row) == len(self.names) and list(row) == self.names
        changes = [
            (name, code)
            for name, most, code in self.promoted
            if (v := row.get(name)) and (len(v), v) > (len(most), most) and v[0] != "-"
        ]
        changes += [(name, code) for name, code in self.of_null if row.get(name, "") is None]
        if whole_row and not changes:
            return self.jdbc_json, self.mysql_json
        jdbc = {n: self.jdbc.get(n) for n in row if n in self.jdbc}
        for name, code in changes:
            jdbc[name] = code
        return jdbc, {n: self.mysql.get(n) for n in row if n in self.mysql}


NO_TYPES = Plan([], {}, {}, (), [], [])
NO_TYPES_BARE = msgspec.structs.replace(NO_TYPES, bare=True)


def planner(
    dialect: str, options: Options, own: bool, numbered: bool
) -> Callable[[Types | None], Plan]:
    """What makes the plan of a type map; `own` says that the types are this dialect's already."""
    to_local = local(options.timezone)
    name_of: Callable[[MySqlType], str] = plain_type
    if options.content_compatible:
        name_of = described_type

    def mysql_name(told: ColumnType, type_: MySqlType) -> str | None:
        if type_.family == "unknown" or (own and dialect != "ticdc"):
            return told.mysql
        if dialect == "ticdc":
            return name_of(type_)
        if dialect == "oms":
            return (oms_values.type_name(told) or "").lower()
        return told.mysql

    def make(types: Types | None) -> Plan:
        if types is None:
            return NO_TYPES_BARE if dialect in ("oms", "tencent") else NO_TYPES
        parsed = {n: parse_type(t.mysql) for n, t in types.items()}
        mysql = {n: mysql_name(t, parsed[n]) for n, t in types.items()}
        told_jdbc = own and all(t.jdbc is not None for t in types.values())
        jdbc = {n: t.jdbc if told_jdbc else jdbc_code(parsed[n], dialect) for n, t in types.items()}
        # Types of this dialect that come with codes are from a message: they fit its values.
        promoted = [] if told_jdbc or dialect == "oms" else [
            (n, *PROMOTED[t.base]) for n, t in parsed.items() if t.unsigned and t.base in PROMOTED
        ]  # fmt: skip
        of_null = (
            [(n, OF_NULL[t.base]) for n, t in parsed.items() if t.base in OF_NULL]
            if dialect == "canal" and not told_jdbc
            else []
        )
        writers = [
            (n, w)
            for n, t in parsed.items()
            if (w := writer(t, types[n], dialect, numbered, to_local))
        ]
        return Plan(
            list(types),
            mysql,
            jdbc,
            writers,
            promoted,
            of_null,
            Raw(to_json(mysql)),
            Raw(to_json(jdbc)),
        )

    return Plans(make)


def writer(
    type_: MySqlType, told: ColumnType, dialect: str, numbered: bool, to_local: Write | None
) -> Write | None:
    """How a column's canonical text is written, or None where it is written as it is."""
    if dialect == "oms":
        return oms_values.canal_writer(type_)
    if dialect == "tencent":
        return bare_writer(type_)
    if type_.family in ("binary", "spatial"):
        return latin1
    if type_.base == "enum":
        return enum_index(type_.labels, numbered)
    if type_.base == "set":
        return set_mask(type_.labels, numbered)
    if dialect == "ticdc" and type_.family in ("float", "double"):
        return without_exponent
    return to_local if type_.base == "timestamp" else None


def without_exponent(text: str) -> str:
    """A float as TiCDC writes it.

    >>> without_exponent("1.5")
    '1.5'
    """
    if "e" in text or "E" in text:
        raise Lossy("float-digits", plain(text))
    return text


def bare_writer(type_: MySqlType) -> Write | None:
    """Tencent: numbers without quotes."""
    if type_.family in ("integer", "year", "bit"):
        return whole
    return number if type_.family in ("decimal", "float", "double") else None


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
    plans = {
        (own, numbered): planner(dialect, options, own, numbered)
        for own in (False, True)
        for numbered in (False, True)
    }

    def encode(event: Event, lost: list[str]) -> list[Record]:
        if event.kind == "tombstone":
            return [Record(None)]
        if event.kind != "row":
            message = others(event)
            return [] if message is None else [Record(finish(message))]
        own = event.dialect == dialect and event.format == "canal-json"
        plan = plans[own, is_numbered(event)](event.types)
        return [Record(finish(rows(event, plan, lost)))]

    finish: Callable[[Any], bytes] = to_json
    if dialect == "ticdc":
        finish = ticdc_bytes
    return encode


def ticdc_bytes(message: Any) -> bytes:
    """TiCDC's escapes."""
    return go_style(to_json(message))


def images(event: Event, plan: Plan, lost: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row as it is now (or was, if deleted) and as it was before an update, as JSON values."""
    writers = plan.writers
    if plan.bare:
        writers = hinted(event.extra)
    if event.op == "delete":
        row = written(event.before or {}, writers, lost)
        return row, row
    row = written(event.after or {}, writers, lost)
    if event.op != "update":
        return row, row
    if event.before is None:
        lost.append("before-unknown")
        return row, row
    return row, written(event.before, writers, lost)


def names(event: Event, row: dict[str, Any]) -> list[str] | None:
    """The primary key in the order of the columns."""
    if event.key is None:
        return None
    if len(event.key) < 2:
        return list(event.key)
    order = {name: i for i, name in enumerate(row)}
    return sorted(event.key, key=lambda name: order.get(name, len(order)))


def time_of(micros: int | None) -> int:
    """Milliseconds; 0 where the time is not known."""
    return (micros or 0) // 1_000


def batch_id(event: Event) -> int:
    """Canal's batch number, which is never 0; the first one for events of other formats."""
    told = (event.extra or {}).get("id", "") if event.format == "canal-json" else ""
    return int(told) if told.isascii() and told.isdigit() and 0 < len(told) < 19 else 1


def canal_row(event: Event, plan: Plan, lost: list[str]) -> CanalMessage:
    """Canal: only changed columns in `old`."""
    row, old = images(event, plan, lost)
    sql_type, mysql_type = plan.type_maps(event.after or event.before or {})
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
    """Tencent: all columns in `old`, and a deleted row only there."""
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
    """OMS: only changed columns in `old`."""
    row, old = images(event, plan, lost)
    sql_type, mysql_type = plan.type_maps(event.after or event.before or {})
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


def ticdc_rows(options: Options) -> Callable[[Event, Plan, list[str]], TicdcRow]:
    """TiCDC: what `old` and a deleted row hold is a matter of options."""
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
            if only_key and event.key and len(event.key) < len(row):
                lost.append("deleted-row")
                row = {n: v for n, v in row.items() if n in event.key}
                image = {n: v for n, v in image.items() if n in event.key}
            if options.old_value_in_delete:
                before = [row]
        sql_type, mysql_type = plan.type_maps(image)
        return TicdcRow(
            0,
            event.database or "",
            event.table or "",
            names(event, row),
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
    """When it happened, in milliseconds; a commit number holds it too."""
    if event.event_time is None and event.commit_ts is not None:
        return event.commit_ts >> 18
    return time_of(event.event_time)


def tidb(event: Event) -> dict[str, Any]:
    """TiCDC's extension member."""
    found: dict[str, Any] = {}
    if event.commit_ts is not None:
        found["commitTs"] = event.commit_ts
    extra = event.extra
    if extra:
        own = event.format == "canal-json"
        if extra.get("onlyHandleKey") == "true" or (not own and "claimCheckLocation" in extra):
            found["onlyHandleKey"] = True
        for name in ("claimCheckLocation", "rowkey"):
            if own and name in extra:
                found[name] = extra[name]
    return found


def words(event: Event) -> tuple[bool, str, str] | None:
    """isDdl, type and sql of an event that is no row; None where it has no message."""
    extra = event.extra or {} if event.format == "canal-json" else {}
    if event.kind == "ddl":
        word = DDL_TYPES.get(event.op or "", "QUERY") if event.table else "QUERY"
        return True, extra.get("type", word), event.ddl or ""
    if event.kind == "statement" and event.ddl:
        word = ROW_TYPES.get(event.op or "", "QUERY")
        return False, word, event.ddl or ""
    if event.kind == "marker" and extra.get("type") in MARKER_TYPES:
        return False, extra["type"], extra.get("sql", "")
    return None


def canal_other(event: Event) -> CanalMessage | None:
    """Canal: DDL, statements, XA."""
    told = words(event)
    if told is None:
        return None
    is_ddl, word, sql = told
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
        word,
    )


def tencent_other(event: Event) -> CanalMessage | None:
    """Tencent: DDL only, its times in seconds where they are whole."""
    if event.kind != "ddl":
        return None
    word = DDL_TYPES.get(event.op or "", "QUERY") if event.table else "QUERY"
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
        word,
    )


def seconds(micros: int | None) -> int:
    """Seconds, or milliseconds where a second is not enough."""
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


def ticdc_others(options: Options) -> Callable[[Event], TicdcOther | None]:
    """TiCDC: DDL, and watermarks where the extension is on."""
    extension = options.enable_tidb_extension

    def ticdc_other(event: Event) -> TicdcOther | None:
        is_ddl, word, sql = True, "", event.ddl or ""
        extra: Any = UNSET
        if event.kind == "watermark" and extension:
            is_ddl, word, sql = False, "TIDB_WATERMARK", ""
            extra = {"watermarkTs": event.commit_ts or 0}
        elif event.kind == "ddl":
            word = DDL_TYPES.get(event.op or "", "QUERY") if event.table else "QUERY"
            extra = tidb(event) if extension else UNSET
        else:
            return None
        return TicdcOther(
            0,
            event.database or "",
            event.table or "",
            None,
            is_ddl,
            word,
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


ROWS = frozenset({"insert", "before", "database", "table", "event-time", "event-time-millis"})
ROWS |= {"emit-time", "emit-time-millis"}
TYPED = frozenset({"key", "types"})


def carries(dialect: str, options: Options) -> frozenset[str]:
    """What a dialect has a place for."""
    if dialect == "canal":
        return ROWS | TYPED | {"type-details", "ddl", "statement", "position.gtid", NUMBERS}
    if dialect == "oms":
        return ROWS | TYPED | {"ddl", "heartbeat", "bare-values"}
    if dialect == "tencent":
        return ROWS | {"ddl", "bare-values"}
    found = ROWS | TYPED | {"ddl", NUMBERS}
    if options.content_compatible:
        found |= {"type-details"}
    if options.enable_tidb_extension:
        found |= {"commit-ts", "watermark", "incomplete"}
    return found


ENCODING = Encoding(
    Options,
    make_encoder,
    carries,
    producer="canal",
    fullest={"ticdc": {"enable_tidb_extension": True, "content_compatible": True}},
)
