"""Decode Canal's flat JSON message and its variants by TiCDC, OceanBase OMS and Tencent.

Vendor documentation: TiCDC Canal-JSON Protocol; OMS "JSON format of Canal messages"; Tencent's
Canal-compatible format. Where the actual messages differ: docs/formats/canal-json.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
from msgspec import UNSET

from headgate.core import values
from headgate.core.cache import BoundedCache
from headgate.core.compression import decompressor, is_json
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event, Types
from headgate.core.json import Raw, parse
from headgate.core.limits import MAX_EVENTS_PER_MESSAGE, MAX_REPEATED_BYTES
from headgate.core.values import Convert, Converters, micros
from headgate.formats._oms import decode_values as oms_values
from headgate.formats._oms.decode_values import TypedConverters
from headgate.formats.base import Decode, Sniffed
from headgate.formats.canal_json.decode_values import (
    Options,
    as_text,
    mark_functions,
    text_converter,
)
from headgate.formats.canal_json.wire import (
    DDL_OPS,
    MARKER_OPS,
    NULL,
    ROW_OPS,
    TYPES,
    Envelope,
    TypedRows,
    mysql_types,
    names_reader,
    read,
    sql_types_reader,
)

MOST_LATEST, MAX_NAME = 1_000, 256


class Plan(msgspec.Struct):
    """How to read the rows of a message; made once per distinct pair of type maps."""

    mysql_type: Raw
    sql_type: Raw
    pk_names: Raw
    mysql: dict[str, str | None] | None
    """The map `mysqlType`, if its order is meaningless."""
    key: tuple[str, ...] | None
    types: Types | None
    text: Converters
    oms: TypedConverters
    documents: list[str]


def planner(to_utc: Convert | None) -> Callable[[Envelope], Plan]:
    """A function from a message to its plan, which is usually that of the table's last message."""
    plans: BoundedCache[TypeMaps, Plan] = BoundedCache(lambda maps: make_plan(*maps, to_utc))
    latest: dict[str | None, Plan] = {}

    def plan_of(message: Envelope) -> Plan:
        plan = latest.get(message.table)
        if (
            plan is not None
            and plan.sql_type == message.sqlType
            and plan.pk_names == message.pkNames
            and (plan.mysql_type == message.mysqlType or plan.mysql == mysql_types(message))
        ):
            return plan
        type_maps = type_maps_of(message)
        plan = plans[type_maps]
        plan.mysql_type = message.mysqlType.copy()
        if type_maps in plans and len(message.table or "") <= MAX_NAME:
            if len(latest) >= MOST_LATEST:
                latest.clear()
            latest[message.table] = plan
        return plan

    return plan_of


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of all of them if `dialect` is None."""
    plan_of = planner(values.utc(options.timezone))
    decompress = decompressor(options.compression, options.max_message_bytes)
    typed = dialect in ("oms", "tencent")
    lean = options.lean

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [Event("tombstone", format="canal-json", dialect=dialect)]
        if value[:2] != b'{"' and not is_json(value):
            if value == b"" and dialect == "ticdc":  # TiCDC 4.0, when there were no changes
                return [Event("marker", "empty", format="canal-json", dialect=dialect)]
            value = decompress(value)
        message = read(value, typed)
        name = dialect or dialect_of(message, value, options.strict)
        op = ROW_OPS.get(message.type)
        if op is None or message.isDdl or (message.data is None and message.old is None):
            return [other(message, name, op)]
        plan = plan_of(message)
        event = Event(
            "row",
            op,
            message.database or None,
            message.table or None,
            key=plan.key,
            types=plan.types,
            event_time=micros(message.es or None),  # 0 means unknown
            emit_time=micros(message.ts or None),
            format="canal-json",
            dialect=name,
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


def dialect_of(message: Envelope, value: bytes, strict: bool) -> str:
    """The dialect of a message; `strict` rejects ambiguous messages instead of guessing."""
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


TypeMaps = tuple[Collection[tuple[str, str | None]], bytes, bytes]
"""The items of `mysqlType`, and the unparsed members `sqlType` and `pkNames`."""


def type_maps_of(message: Envelope) -> TypeMaps:
    """The type maps of a message, equal for any order of `mysqlType`.

    TiCDC writes `mysqlType` in random order; `sqlType` has the order of the columns.
    """
    sql_type = bytes(message.sqlType)
    mysql = mysql_types(message).items()
    items = tuple(mysql) if sql_type in (b"null", b"{}") else frozenset(mysql)
    return items, sql_type, bytes(message.pkNames)


def make_plan(
    items: Collection[tuple[str, str | None]],
    sql_type: bytes,
    pk_names: bytes,
    to_utc: Convert | None,
) -> Plan:
    """Merge the two type maps, and choose a converter for each column that needs one."""
    unordered = isinstance(items, frozenset)
    mysql = dict(sorted(items) if unordered else items)
    members = NULL, Raw(sql_type), Raw(pk_names), mysql if unordered else None
    names = parse(names_reader, pk_names)
    key = None if names is None else tuple(names)
    jdbc = parse(sql_types_reader, sql_type) or {}
    if not mysql and not jdbc:
        return Plan(*members, key, None, [], [], [])
    types = {n: ColumnType(mysql.get(n), small(jdbc.get(n))) for n in jdbc | mysql}
    named = [(n, t.mysql) for n, t in types.items() if t.mysql]
    return Plan(
        *members,
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
    """Set the position in the source, and the members that only re-encoding needs."""
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
        old = [{}] * len(data)  # Canal up to 1.1.6: an update that changed nothing
    elif old is None or len(old) != len(data):
        old = ()  # Canal up to 1.1.6 omits unchanged rows from `old`
    if len(data) == 1:
        place(first, data[0], old[0] if old else None, converters)
        return [first]
    return [
        place(numbered(first, i), row, old[i] if old else None, converters)
        for i, row in enumerate(data)
    ]


def check_size(message: Envelope, count: int) -> None:
    """Reject a message whose rows would take too much memory: each event repeats its types."""
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
    """Set the images of one row in its event."""
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
    """A copy of an event for one row of a message that has several."""
    copy = msgspec.structs.replace(event)
    copy.position = {**(event.position or {}), "row": str(index)}
    return copy


def other(message: Any, dialect: str, row_op: str | None) -> Event:
    """The event of a message without rows: DDL, statement, watermark, heartbeat or marker."""
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
        # TiCDC omits 0, which is not a valid TSO.
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
    """The name of a database; Canal keeps the backquotes of CREATE DATABASE.

    >>> unquoted("`a``b`"), unquoted("shop")
    ('a`b', 'shop')
    """
    if name and len(name) > 2 and name[0] == name[-1] == "`":
        return name[1:-1].replace("``", "`")
    return name


def recognises(message: Sniffed) -> bool:
    """Whether a message has Canal's members; Maxwell shares some, but its `data` is an object."""
    members = message.members
    if "type" not in members or "isDdl" in members:
        return "type" in members
    own = "mysqlType" in members or "pkNames" in members or "es" in members
    return own and bytes(members.get("data", b""))[:1] in (b"[", b"n")
