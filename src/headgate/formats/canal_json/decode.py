"""Decode canal-json in any of its dialects; what distinguishes them is in `dialects/`.

Where messages differ from the vendors' documentation: docs/formats/canal-json.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
from headgate.formats._oms.decode_values import TypedConverters
from headgate.formats.base import Decode, Producer, ReadColumn, Sniffed
from headgate.formats.canal_json.decode_values import (
    Options,
    as_text,
    mark_functions,
    text_column_reader,
)
from headgate.formats.canal_json.dialects import DIALECTS
from headgate.formats.canal_json.dialects.base import Dialect
from headgate.formats.canal_json.wire import (
    DDL_OPS,
    MARKER_OPS,
    NO_TYPES,
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


Reader = tuple[str, Callable[[Envelope], "Plan"]]
"""A dialect's name, and its function from a message to its plan."""


class Plan(msgspec.Struct):
    """How to read the rows of a message; made once per distinct pair of type maps."""

    mysql_type: Raw
    sql_type: Raw
    pk_names: Raw
    mysql: dict[str, str | None] | None
    """The map `mysqlType`, if its order is meaningless."""
    key: tuple[str, ...] | None
    types: Types | None
    json_converters: TypedConverters
    text_converters: Converters
    json_columns: list[str]
    """JSON columns that may have a function call."""
    unchanged_without_old: bool


def planner(dialect: Dialect, to_utc: Convert | None) -> Callable[[Envelope], Plan]:
    """A function from a message to its plan, which is usually that of the table's last message."""
    plans: BoundedCache[TypeMaps, Plan] = BoundedCache(
        lambda type_maps: make_plan(dialect, *type_maps, to_utc)
    )
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


def make_decoder(name: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of all of them if `name` is None."""
    to_utc = values.utc(options.timezone)
    readers = {d.name: (d.name, planner(d, to_utc)) for d in DIALECTS.values()}
    reader = None if name is None else readers[name]
    reader_of = recogniser(readers, options.strict)
    bare_values = name is not None and DIALECTS[name].bare_values
    empty_messages = name is not None and DIALECTS[name].empty_messages
    decompress = decompressor(options.compression, options.max_message_bytes)
    lean = options.lean

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [Event("tombstone", format="canal-json", dialect=name)]
        if value[:2] != b'{"' and not is_json(value):
            if value == b"" and empty_messages:
                return [Event("marker", "empty", format="canal-json", dialect=name)]
            value = decompress(value)
        message = read(value, bare_values)
        dialect, plan_of = reader or reader_of(message, value)
        op = ROW_OPS.get(message.type)
        if op is None or message.isDdl or (message.data is None and message.old is None):
            return [event_without_rows(message, dialect, op)]
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
            dialect=dialect,
        )
        if message.tidb or (not lean and (message.id or message.gtid)):
            describe_origin(event, message)
        if message.sql and not lean:
            event.extra = {**(event.extra or {}), "sql": message.sql}
        if message.__class__ is TypedRows or plan.json_converters:
            as_text(event, message, value, plan.json_converters)
        events = rows(event, message, plan)
        if plan.json_columns:
            mark_functions(events, plan.json_columns)
        return events

    return decode


def recogniser(readers: Mapping[str, Reader], strict: bool) -> Callable[[Envelope, bytes], Reader]:
    """A function that finds the reader of a message by its dialect; `strict`: without guessing.

    Where several dialects have the same members, the first in the table is assumed.
    """
    dialects = list(DIALECTS.values())
    marks = [(d.has_mark, readers[d.name]) for d in dialects if d.has_mark is not None]
    without_id = next(readers[d.name] for d in dialects if d.id == "absent")
    with_batch_id = next(readers[d.name] for d in dialects if d.id == "batch")
    zeros = [d for d in dialects if d.id == "zero"]
    with_types = next(readers[d.name] for d in zeros if d.has_types)
    without_types = next(readers[d.name] for d in zeros if not d.has_types)

    def reader_of(message: Envelope, value: bytes) -> Reader:
        for has_mark, reader in marks:
            if has_mark(message):
                return reader
        if message.id is UNSET:
            return without_id
        if message.id != 0:
            return with_batch_id
        if message.mysqlType not in NO_TYPES:
            return with_types
        if not message.isDdl:
            return without_types
        if strict:
            names = " or ".join(sorted(d.name for d in zeros))
            raise DecodeError(
                "ambiguous-dialect",
                f"a DDL message with id 0 and no _tidb can be of dialect {names}",
                "name the dialect, as in canal-json:ticdc",
            )
        start = value.lstrip()
        return next(readers[d.name] for d in zeros if start.startswith(d.ddl_start))

    return reader_of


def column_reader(producer: Producer, options: Options) -> ReadColumn:
    """How values are read whose type comes from a schema or from DDL."""
    dialect = DIALECTS.get(producer.dialect or "")
    return (dialect.column_reader if dialect else text_column_reader)(producer, options)


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
    dialect: Dialect,
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
        return Plan(*members, key, None, [], [], [], dialect.unchanged_without_old)
    types = {n: ColumnType(mysql.get(n), checked_code(jdbc.get(n))) for n in jdbc | mysql}
    named = [(n, t.mysql) for n, t in types.items() if t.mysql]
    return Plan(
        *members,
        key,
        types,
        [(n, c) for n, t in named if (c := dialect.json_converter(t))],
        [(n, c) for n, t in named if (c := dialect.text_converter(t, to_utc))],
        [n for n, t in named if dialect.json_functions and values.base_type(t) == "json"],
        dialect.unchanged_without_old,
    )


def checked_code(code: int | None) -> int | None:
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


def rows(first: Event, message: Any, plan: Plan) -> list[Event]:
    """One event per row; each row's before image is completed from its own `data`."""
    data, old = message.data, message.old
    if data is None:
        if first.op != "delete":
            raise DecodeError("missing-member", "data is null", "check the format and dialect")
        data = old
    if not data:
        first.kind, first.op = "marker", "empty"
        return [first]
    count = len(data)
    if count > 1:
        check_size(message, count)
    if first.op != "update":
        old = ()
    elif old is None and plan.unchanged_without_old:
        old = [{}] * count
    elif old is None or len(old) != count:
        old = ()  # Canal up to 1.1.6 omits unchanged rows from `old`
    converters = plan.text_converters
    if count == 1:
        set_images(first, data[0], old[0] if old else None, converters)
        return [first]
    return [
        set_images(with_row_number(first, i), row, old[i] if old else None, converters)
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


def set_images(event: Event, row: Any, changed: Any, converters: Converters) -> Event:
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


def with_row_number(event: Event, index: int) -> Event:
    """A copy of an event for one row of a message that has several."""
    copy = msgspec.structs.replace(event)
    copy.position = {**(event.position or {}), "row": str(index)}
    return copy


def event_without_rows(message: Any, dialect: str, row_op: str | None) -> Event:
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
            "type has an unknown value",
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
    canal_member = "mysqlType" in members or "pkNames" in members or "es" in members
    return canal_member and bytes(members.get("data", b""))[:1] in (b"[", b"n")
