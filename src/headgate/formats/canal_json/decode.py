"""Canal's flat JSON message, and what TiCDC, OceanBase OMS and Tencent made of it.

Vendors' documents: TiCDC Canal-JSON Protocol; OMS "JSON format of Canal messages"; Tencent's
Canal-compatible format. Where they differ from the wire: docs/formats/canal-json.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.json import encode as encode_json

from headgate.core import values
from headgate.core.cache import Memo
from headgate.core.compression import COMPRESSIONS, decompressor, is_json
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event, Types
from headgate.core.json import Int64, Raw, escape_control_characters, parse, reader
from headgate.core.limits import MAX_EVENTS_PER_MESSAGE, MAX_REPEATED_BYTES
from headgate.core.mysql_types import parse_type
from headgate.core.options import CommonOptions, option
from headgate.core.values import Convert, Converters, micros
from headgate.formats._oms import decode_values as oms_values
from headgate.formats._oms.decode_values import TypedConverters
from headgate.formats.base import Decode, Producer, ReadColumn, Sniffed

ROW_OPS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "INIT": "snapshot"}
DDL_OPS = {
    "CREATE": "create",
    "ALTER": "alter",
    "ERASE": "drop",
    "RENAME": "rename",
    "TRUNCATE": "truncate",
    "CINDEX": "create_index",
    "DINDEX": "drop_index",
    "QUERY": "query",
}
MARKER_OPS = {"XACOMMIT": "commit", "XAROLLBACK": "rollback", "GTID": "begin"}
TYPES = [*ROW_OPS, *DDL_OPS, *MARKER_OPS, "MHEARTBEAT", "TIDB_WATERMARK"]

SPATIAL = re.compile("geometry|(multi)?(point|linestring|polygon)|geom(etry)?collection")
MOST_LATEST, MAX_NAME = 1_000, 256

NULL = Raw(b"null")
_JSON_FUNCTION = re.compile(r"JSON_[A-Z_]+\(")


@dataclass(frozen=True)
class Options(CommonOptions):
    """Options of canal-json."""

    compression: str = option("auto", "of the whole value, as TiCDC compresses", COMPRESSIONS)


class Tidb(msgspec.Struct, gc=False):
    """TiCDC's extension member `_tidb`."""

    commitTs: Int64 | None = None
    watermarkTs: Int64 | None = None
    onlyHandleKey: bool = False
    claimCheckLocation: str | None = None
    rowkey: str | None = None


class Envelope(msgspec.Struct, gc=False):
    """All members but the rows; type maps stay raw, because they repeat and are cached."""

    type: str
    database: str | None = None
    table: str | None = None
    isDdl: bool = False
    es: Int64 | None = None
    ts: Int64 | None = None
    id: Int64 | UnsetType | None = UNSET
    gtid: str | None = None
    sql: str | None = None
    pkNames: Raw = NULL
    mysqlType: Raw = NULL
    sqlType: Raw = NULL
    tidb: Tidb | None = msgspec.field(name="_tidb", default=None)


class TextRows(Envelope, gc=False):
    """Canal and TiCDC: every value is a string or null."""

    data: list[dict[str, str | None]] | None = None
    old: list[dict[str, str | None] | None] | None = None


class TypedRows(Envelope, gc=False):
    """OMS and Tencent: numbers are bare."""

    data: list[dict[str, Any]] | None = None
    old: list[dict[str, Any] | None] | None = None


class RawRows(msgspec.Struct, gc=False):
    """The rows alone, each value as its own bytes."""

    data: list[dict[str, Raw] | None] | None = None
    old: list[dict[str, Raw] | None] | None = None


_text_rows = reader(TextRows)
_typed_rows = reader(TypedRows)
_raw_rows = reader(RawRows)
_names = reader(list[str] | None)
_mysql_types = reader(dict[str, str | None] | None)
_sql_types = reader(dict[str, Int64 | None] | None)


def text_converter(mysql_type: str, to_utc: Convert | None) -> Convert | None:
    """Canal and TiCDC: binary as ISO-8859-1, ENUM and SET as numbers, TIMESTAMP in local time.

    TiCDC writes the YEAR 0000 as a number.
    """
    base = values.base_type(mysql_type)
    if base.endswith("blob") or base.endswith("binary") or SPATIAL.fullmatch(base):
        return values.latin1_bytes
    if base == "enum":
        return values.enum_label(mysql_type)
    if base == "set":
        return values.set_labels(mysql_type)
    if base == "timestamp":
        return to_utc
    scale = parse_type(mysql_type).scale if base in ("decimal", "numeric") else None
    if scale:
        return values.with_scale(scale)  # Canal writes 5.0 for 5.00
    return values.year if base == "year" else None


def column_reader(producer: Producer, options: Options) -> ReadColumn:
    """How values are read whose type is the schema's or the DDL's to tell."""
    if producer.dialect == "oms":
        return oms_values.column_reader(producer, options)
    to_utc = values.utc(options.timezone)

    def read(own: str | None, mysql: str) -> Callable[[Any], Any] | None:
        # Labels for numbers are given to what has types and to what has none (schemas.py).
        labelled = values.base_type(mysql) in ("enum", "set")
        if labelled and own is not None and producer.dialect == "canal":
            return relabelled(own, mysql)
        if own is not None or labelled or producer.dialect == "tencent":
            return None
        convert = text_converter(mysql, to_utc)
        return convert and (lambda sent: convert(sent) if sent.__class__ is str else sent)

    return read


def relabelled(own: str, mysql: str) -> Callable[[Any], Any] | None:
    """A function from labels of Canal's types to those of the schema, by their numbers.

    Canal spells the labels as its own connection to the source does: an emoji may be `?`.

    >>> relabelled("enum('a','?')", "enum('a','😀')")("?")
    '😀'
    """
    known, labels = values.labels(own), values.labels(mysql)
    if known == labels or len(known) > len(labels):
        return None
    new = {mine: its for mine, its in zip(known, labels) if known.count(mine) == 1}
    if values.base_type(mysql) == "enum":
        by_index = values.enum_label(mysql)
        return lambda sent: new[sent] if sent in new else by_index and by_index(sent)
    by_mask = values.set_labels(mysql)

    def joined(sent: Any) -> Any:
        found = [new.get(label) for label in sent.split(",")]
        if None in found:
            return by_mask(sent) if by_mask else sent
        return ",".join(map(str, found))

    return joined


class Plan(msgspec.Struct):
    """What the type maps of a message mean for its rows; made once per distinct pair of maps."""

    mysql_type: Raw
    sql_type: Raw
    pk_names: Raw
    mysql: dict[str, str | None] | None
    """The map `mysqlType`, where its order means nothing."""
    key: tuple[str, ...] | None
    types: Types | None
    text: Converters
    oms: TypedConverters
    documents: list[str]


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of any where `dialect` is None."""
    plans: Memo[Told, Plan] = Memo(lambda told: make_plan(*told, to_utc))
    latest: dict[str | None, Plan] = {}
    to_utc = values.utc(options.timezone)
    decompress = decompressor(options.compression, options.max_message_bytes)
    typed = dialect in ("oms", "tencent")
    lean = options.lean

    def plan_of(message: Envelope) -> Plan:
        told = told_by(message)
        plan = plans[told]
        plan.mysql_type = message.mysqlType.copy()
        if told in plans and len(message.table or "") <= MAX_NAME:
            if len(latest) >= MOST_LATEST:
                latest.clear()
            latest[message.table] = plan
        return plan

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [Event("tombstone", format="canal-json", dialect=dialect)]
        if value[:2] != b'{"' and not is_json(value):
            if value == b"" and dialect == "ticdc":  # 4.0, where nothing had happened
                return [Event("marker", "empty", format="canal-json", dialect=dialect)]
            value = decompress(value)
        message = read(value, typed)
        name = dialect or dialect_of(message, value, options.strict)
        op = ROW_OPS.get(message.type)
        if op is None or message.isDdl or (message.data is None and message.old is None):
            return [other(message, name, op)]
        plan = latest.get(message.table)
        if (
            plan is None
            or plan.sql_type != message.sqlType
            or plan.pk_names != message.pkNames
            or (plan.mysql_type != message.mysqlType and plan.mysql != mysql_types(message))
        ):
            plan = plan_of(message)
        event = Event(
            "row",
            op,
            message.database or None,
            message.table or None,
            plan.key,
            None,
            None,
            plan.types,
            None,
            None,
            micros(message.es or None),  # 0 is no time
            micros(message.ts or None),
            None,
            "canal-json",
            name,
        )
        if message.tidb or (not lean and (message.id or message.gtid)):
            describe_origin(event, message)
        if message.sql and not lean:
            event.extra = {**(event.extra or {}), "sql": message.sql}
        if name == "oms":
            as_text(event, message, value, plan.oms)
            return rows(event, message, [])
        if message.__class__ is TypedRows:
            as_text(event, message, value, [])
        events = rows(event, message, plan.text)
        if plan.documents:
            mark_functions(events, plan.documents)
        return events

    return decode


def as_text(event: Event, message: Any, value: bytes, converters: TypedConverters) -> None:
    """Turn bare values into text, in place; note which were bare where no types say it."""
    numbers: list[str] = []
    booleans: list[str] = []
    nested = False
    for image in (message.data or []) + (message.old or []):
        if image is not None:
            values.convert(image, converters)
            nested |= values.to_text(image, numbers, booleans)
    if nested:
        keep_exact(message, value)
    if event.types is None:
        for label, names in (("numbers", numbers), ("booleans", booleans)):
            if names:
                event.extra = {**(event.extra or {}), label: values.names_json(tuple(names))}


def mark_functions(events: list[Event], documents: list[str]) -> None:
    """Name the JSON columns that hold a function's text: MySQL logged the change, not the value."""
    for event in events:
        row = event.after or {}
        found = [n for n in documents if (v := row.get(n)) and _JSON_FUNCTION.match(v)]
        if found:
            event.extra = {**(event.extra or {}), "partial_json": encode_json(found).decode()}


def read(value: bytes, typed: bool) -> Any:
    """Parse a message: as text rows where that fits, else as rows with bare values."""
    if not typed:
        try:
            if not value.isascii():
                str(value, "utf-8")
            return _text_rows.decode(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
    try:
        return parse(_typed_rows, value)
    except DecodeError as error:
        escaped = escape_control_characters(value)
        if error.code != "malformed-json" or escaped == value:
            raise
        return parse(_typed_rows, escaped)


def dialect_of(message: Envelope, value: bytes, strict: bool) -> str:
    """Whose message this is; `strict` refuses to guess."""
    if message.tidb is not None or message.type == "TIDB_WATERMARK":
        return "ticdc"
    if message.id is UNSET:
        return "oms"
    if message.id != 0:
        return "canal"
    if bytes(message.mysqlType) not in (b"null", b"{}"):
        return "ticdc"
    if not message.isDdl:
        return "tencent"
    if strict:
        raise DecodeError(
            "ambiguous-dialect",
            "a DDL message with id 0 and no _tidb can be of dialect tencent or ticdc",
            "name the dialect, as in canal-json:ticdc",
        )
    return "ticdc" if value.lstrip().startswith(b'{"id"') else "tencent"


Told = tuple[Collection[tuple[str, str | None]], bytes, bytes]
"""What a message tells of its columns: the items of `mysqlType`, and two members as they are."""


def told_by(message: Envelope) -> Told:
    """What a message tells of its columns, the same whatever order `mysqlType` is in.

    TiCDC writes it in another order each time; the columns' own order is that of `sqlType`.
    """
    sql_type = bytes(message.sqlType)
    mysql = mysql_types(message).items()
    items = tuple(mysql) if sql_type in (b"null", b"{}") else frozenset(mysql)
    return items, sql_type, bytes(message.pkNames)


def mysql_types(message: Envelope) -> dict[str, str | None]:
    """The map `mysqlType`."""
    return parse(_mysql_types, bytes(message.mysqlType)) or {}


def make_plan(
    items: Collection[tuple[str, str | None]],
    sql_type: bytes,
    pk_names: bytes,
    to_utc: Convert | None,
) -> Plan:
    """Join the two type maps, and choose a converter for each column that needs one."""
    unordered = isinstance(items, frozenset)
    mysql = dict(sorted(items) if unordered else items)
    told = NULL, Raw(sql_type), Raw(pk_names), mysql if unordered else None
    names = parse(_names, pk_names)
    key = None if names is None else tuple(names)
    jdbc = parse(_sql_types, sql_type) or {}
    if not mysql and not jdbc:
        return Plan(*told, key, None, [], [], [])
    types = {n: ColumnType(mysql.get(n), small(jdbc.get(n))) for n in jdbc | mysql}
    named = [(n, t.mysql) for n, t in types.items() if t.mysql]
    return Plan(
        *told,
        key,
        types,
        [(n, c) for n, t in named if (c := text_converter(t, to_utc))],
        [(n, c) for n, t in named if (c := oms_values.converter(t))],
        [n for n, t in named if values.base_type(t) == "json"],
    )


def small(code: int | None) -> int | None:
    """A JDBC code, which must fit the event's 32-bit column."""
    if code is not None and not -(2**31) <= code < 2**31:
        raise DecodeError("wrong-type", "a code of sqlType is no JDBC code", "check the producer")
    return code


def describe_origin(event: Event, message: Envelope) -> None:
    """What the message says of its place in the source, and what only a re-encode needs."""
    if message.id is not UNSET and message.id:
        event.extra = {"id": str(message.id)}
    if message.gtid:
        event.position = {"gtid": message.gtid}
    tidb = message.tidb
    if tidb is not None:
        event.commit_ts = tidb.commitTs
        if tidb.onlyHandleKey or tidb.claimCheckLocation or tidb.rowkey:
            extra = event.extra = event.extra or {}
            if tidb.onlyHandleKey:
                extra["onlyHandleKey"] = "true"
            if tidb.claimCheckLocation:
                extra["claimCheckLocation"] = tidb.claimCheckLocation
            if tidb.rowkey:
                extra["rowkey"] = tidb.rowkey


def rows(first: Event, message: Any, converters: Converters) -> list[Event]:
    """One event per row; each row's before image is completed from its own `data`."""
    data, old = message.data, message.old
    if first.op == "delete" and data is None:
        data = old
    elif data is None:
        raise DecodeError("missing-member", "data is null", "check the format and dialect")
    if not data:
        first.kind, first.op = "marker", "empty"
        return [first]
    if len(data) > 1:
        check_size(message, len(data))
    if first.op != "update":
        old = ()
    elif old is None and first.dialect == "canal":
        old = [{}] * len(data)  # up to 1.1.6, an update that changed nothing
    elif old is None or len(old) != len(data):
        old = ()  # up to 1.1.6, rows that changed nothing were left out of `old`
    if len(data) == 1:
        place(first, data[0], old[0] if old else None, converters)
        return [first]
    return [
        place(numbered(first, i), row, old[i] if old else None, converters)
        for i, row in enumerate(data)
    ]


def check_size(message: Envelope, count: int) -> None:
    """Refuse a message of many rows that would grow without bound: each event repeats its types."""
    if count > MAX_EVENTS_PER_MESSAGE:
        raise DecodeError(
            "too-large",
            f"the message has more than {MAX_EVENTS_PER_MESSAGE} rows",
            "no CDC producer writes this; check the topic",
        )
    texts = (message.database, message.table, message.sql, message.gtid)
    raws = (message.mysqlType, message.sqlType, message.pkNames)
    shared = sum(len(t) for t in texts if t) + sum(len(bytes(raw)) for raw in raws)
    if count * shared > MAX_REPEATED_BYTES:
        raise DecodeError(
            "too-large",
            f"{count} rows share {shared} bytes of types, names and statement",
            "no CDC producer writes this; check the topic",
        )


def place(event: Event, row: Any, changed: Any, converters: Converters) -> Event:
    """Put one row's images into its event."""
    if row is None:
        raise DecodeError("wrong-type", "a row of data is null", "check the producer")
    if converters:
        values.convert(row, converters)
        if changed:
            values.convert(changed, converters)
    if event.op == "delete":
        event.before = row
    else:
        event.after = row
        if changed is not None:
            event.before = {**row, **changed}
    return event


def numbered(event: Event, index: int) -> Event:
    """A copy of an event for one row of a message with several."""
    copy = msgspec.structs.replace(event)
    copy.position = {**(event.position or {}), "row": str(index)}
    return copy


def keep_exact(message: Any, value: bytes) -> None:
    """Read the rows again, for the exact text of values that are objects or arrays."""
    exact = parse(_raw_rows, escape_control_characters(value))
    for images, raws in ((message.data, exact.data), (message.old, exact.old)):
        for image, raw in zip(images or (), raws or ()):
            if image is not None:
                values.exact_nested(image, raw)


def other(message: Any, dialect: str, row_op: str | None) -> Event:
    """Everything that is not a row: DDL, statement text, watermark, heartbeat, marker."""
    event = Event(
        "ddl",
        database=unquoted(message.database) or None,
        table=message.table or None,
        event_time=micros(message.es or None),
        emit_time=micros(message.ts or None),
        format="canal-json",
        dialect=dialect,
    )
    describe_origin(event, message)
    type_, sql = message.type, message.sql
    if message.isDdl:
        event.op, event.ddl = DDL_OPS.get(type_, "query"), sql or ""
        if type_ not in DDL_OPS:
            event.extra = {**(event.extra or {}), "type": type_}
    elif type_ == "TIDB_WATERMARK":
        if message.tidb is None:
            raise DecodeError("missing-member", "the watermark has no _tidb", "check the producer")
        # TiCDC leaves out 0, which is no TSO.
        event.kind, event.commit_ts = "watermark", message.tidb.watermarkTs or None
    elif type_ == "MHEARTBEAT":
        event.kind = "heartbeat"
    elif type_ in MARKER_OPS:
        event.kind, event.op = "marker", MARKER_OPS[type_]
        event.extra = {**(event.extra or {}), "type": type_, "sql": sql or ""}
    elif type_ in DDL_OPS or (row_op and sql):
        event.kind, event.op, event.ddl = "statement", row_op, sql or ""
    elif row_op:
        raise DecodeError(
            "missing-member", f"{type_} has neither rows nor a statement", "check the producer"
        )
    else:
        raise DecodeError(
            "unknown-type",
            "type is none that a Canal dialect has",
            f"known: {', '.join(TYPES)}",
        )
    return event


def unquoted(name: str | None) -> str | None:
    """A database's name; Canal leaves the quotes of CREATE DATABASE around it.

    >>> unquoted("`a``b`"), unquoted("shop")
    ('a`b', 'shop')
    """
    if name and len(name) > 2 and name[0] == name[-1] == "`":
        return name[1:-1].replace("``", "`")
    return name


def recognises(message: Sniffed) -> bool:
    """Canal's own members; Maxwell shares the others, but its `data` is an object."""
    members = message.members
    if "type" not in members or "isDdl" in members:
        return "type" in members
    own = "mysqlType" in members or "pkNames" in members or "es" in members
    return own and bytes(members.get("data", b""))[:1] in (b"[", b"n")
