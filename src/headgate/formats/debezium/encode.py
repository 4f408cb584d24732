"""Debezium's change event envelope as Debezium's MySQL connector and OceanBase OMS write it."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from headgate.core.errors import UsageError
from headgate.core.event import Event, Record
from headgate.core.losses import HINTS, Lossy
from headgate.core.options import EncodeOptions, names, option, spelled
from headgate.formats._connect import schema as connect_schema
from headgate.formats._connect.encode_rows import (
    CONNECT_FORMATS,
    NOTHING,
    Layout,
    columns_of,
    declared,
    declared_key,
    images_of,
    oms_planner,
    planner,
    written_images,
)
from headgate.formats._connect.encode_values import INT64, ValueOptions, nested
from headgate.formats._connect.fit import Pair
from headgate.formats.base import Encode, Encoding
from headgate.formats.debezium.source import MYSQL_LIKE, TICDC
from headgate.formats.encoding import BACKSLASH, jackson_style, to_json

VERSION, CONNECTOR, PREFIX = "3.6.1.Final", "mysql", "headgate"
"""What the source is called in events that no Debezium wrote."""
OMS_CONNECTOR, OMS = "OB_MYSQL", "OMS"
OPS = {"insert": "c", "update": "u", "delete": "d", "snapshot": "r", "truncate": "t"}
OMS_OPS = {"insert": "c", "update": "u", "delete": "d", "snapshot": "c"}
BOUNDARIES = {"begin": "BEGIN", "commit": "END"}
PLACES = ("file", "pos", "row", "gtid", "server_id", "thread", "sequence")
ORDERS = ("total_order", "data_collection_order")
MIN_MICROS, MAX_MICROS = -(2**63) // 1_000 + 1, (2**63 - 1) // 1_000
"""The microseconds whose nanoseconds fit 64 bits."""
OF_MYSQL = (
    *("server_id", "gtid", "file", "pos", "row", "thread", "query"),
    *("commit_ts", "cluster_id"),
)
"""Members that connectors of other databases do not have."""
TEXTS = {"scn", "commit_scn", "start_scn", "rs_id", "row_id", "user_name", "keyspace", "shard"}
"""Members of other connectors that are text, though they may look like numbers."""
NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


@dataclass(frozen=True)
class Options(ValueOptions):
    """Options of debezium when it is written."""

    tombstones_on_delete: bool = option(True, "let a null value follow each delete")


# The members in their order; what is UNSET is not written.


class Source(msgspec.Struct, gc=False):
    """Where a change comes from, as since 2.6."""

    version: str
    connector: str
    name: str
    ts_ms: int
    snapshot: str
    db: str
    sequence: str | None
    ts_us: int
    ts_ns: int | None
    schema: str | UnsetType
    table: str | None
    server_id: int | None = None
    gtid: str | None = None
    file: str | None = None
    pos: int | None = None
    row: int | None = None
    thread: int | None = None
    query: str | None = None
    commit_ts: int | UnsetType | None = UNSET
    cluster_id: str | UnsetType | None = UNSET


class Envelope(msgspec.Struct, gc=False):
    """A change, as since 2.7."""

    before: Any
    after: Any
    source: Any
    transaction: Any
    op: str
    ts_ms: int | None
    ts_us: int | None
    ts_ns: int | None


class Watermark(msgspec.Struct, gc=False):
    """TiCDC: what says that every change up to a commit number was sent."""

    source: Source
    ts_ms: int | None
    transaction: None
    op: str


class SchemaChange(msgspec.Struct, gc=False):
    """A message of the schema change topic, as since 2.0."""

    source: Any
    ts_ms: int
    databaseName: str
    schemaName: str | None
    ddl: str
    tableChanges: Any


class Boundary(msgspec.Struct, gc=False):
    """The begin or the end of a transaction."""

    status: str
    id: str
    event_count: int | None
    data_collections: Any
    ts_ms: int


class Notification(msgspec.Struct, gc=False):
    """A message of the notification channel."""

    id: str | None
    type: str | None
    aggregate_type: str | None
    additional_data: Any
    timestamp: int | None


class OmsSource(msgspec.Struct, gc=False):
    """OMS: where a change comes from."""

    connector: Any
    pos: Any
    name: Any
    version: Any
    ts_ms: int
    db: Any
    table: Any


class OmsRow(msgspec.Struct, gc=False):
    """OMS: a change; an image that there is not is left out."""

    op: str
    before: Any
    source: OmsSource
    after: Any
    ts_ms: Any


class OmsHeartbeatSource(msgspec.Struct, gc=False):
    """OMS: the source of a heartbeat."""

    version: Any
    connector: Any
    name: Any
    ts_ms: int
    db: Any
    table: Any
    pos: Any


class OmsHeartbeat(msgspec.Struct, gc=False):
    """OMS: a heartbeat."""

    source: OmsHeartbeatSource
    op: str
    ts_ms: Any
    before: dict[str, str]
    after: dict[str, str]


# Parts of a message


def small(text: str | None) -> int | None:
    """A whole number of a position; None where it is none.

    >>> small("154"), small("553132@1668496109")
    (154, None)
    """
    if text is None or not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    found = int(text)
    return found if found in INT64 else None


def bare(text: str) -> Any:
    """A whole number as one, anything else as text.

    >>> bare("556"), bare("007")
    (556, '007')
    """
    found = small(text)
    return text if found is None or str(found) != text else found


def nanos(micros: int | None) -> int | None:
    """Nanoseconds, where 64 bits hold them.

    >>> nanos(7), nanos(2**62)
    (7000, None)
    """
    if micros is None or not MIN_MICROS <= micros <= MAX_MICROS:
        return None
    return micros * 1_000


def millis(micros: int | None) -> int:
    """Milliseconds of a time that has to be there; 0 where it is not known."""
    return (micros or 0) // 1_000


def thousandth(micros: int | None) -> int | None:
    """Milliseconds of a time that may be unknown."""
    return None if micros is None else micros // 1_000


def whose(event: Event) -> Mapping[str, str] | None:
    """What Debezium's own decoder kept of this event; None where no Debezium wrote it."""
    if event.format == "debezium" and event.dialect == "debezium":
        return event.extra or NOTHING
    return None


def make_source(prefix: str | None) -> Callable[[Event, Mapping[str, str] | None], Source]:
    """A function from an event and what was kept of it to its source."""
    usual_name = prefix or PREFIX

    def source(event: Event, kept: Mapping[str, str] | None) -> Source:
        time = event.event_time or 0
        found = Source(
            VERSION,
            CONNECTOR,
            usual_name,
            time // 1_000,
            "true" if event.op == "snapshot" else "false",
            event.database or "",
            None,
            time,
            nanos(time),
            event.schema or UNSET,
            event.table,
        )
        if event.position is not None:
            place = event.position.get
            found.sequence, found.gtid, found.file = place("sequence"), place("gtid"), place("file")
            found.server_id, found.pos = small(place("server_id")), small(place("pos"))
            found.row, found.thread = small(place("row")), small(place("thread"))
        if kept is not None:
            found.version = kept.get("version", VERSION)
            found.connector = kept.get("connector", CONNECTOR)
            found.name = prefix or kept.get("name", PREFIX)
            found.snapshot = kept.get("snapshot", "false")
            found.query = kept.get("query")
            if found.connector == TICDC:
                of_ticdc(found, event, kept)
        return found

    return source


def of_ticdc(source: Source, event: Event, kept: Mapping[str, str]) -> None:
    """Give a source TiCDC's members: the commit number, and no place in a binlog."""
    source.commit_ts, source.cluster_id = event.commit_ts, kept.get("cluster_id")
    source.file, source.server_id, source.pos, source.row, source.thread = "", 0, 0, 0, 0


def make_written_source(
    prefix: str | None,
) -> Callable[[Event, Mapping[str, str] | None], tuple[Source, Any]]:
    """The same, and what is written for it.

    The rows of a transaction have one and the same where nobody tells their places in the log.
    """
    source_of = make_source(prefix)
    latest: tuple[Any, Source, Raw] | None = None

    def source(event: Event, kept: Mapping[str, str] | None) -> tuple[Source, Any]:
        nonlocal latest
        if event.position is not None or kept is not None:
            own = source_of(event, kept)
            return own, own
        told = (event.event_time, event.op == "snapshot", *names_of(event))
        if latest is None or latest[0] != told:
            shared = source_of(event, None)
            latest = told, shared, Raw(to_json(shared))
        return latest[1:]

    return source


def is_placed(source: Source) -> bool:
    """Whether all of the place in the binlog is known that the connector's schema requires."""
    required = (source.server_id, source.file, source.pos, source.row)
    return None not in required


def with_own_members(source: Source, event: Event, kept: Mapping[str, str]) -> Any:
    """The source of another database's connector: its members in place of MySQL's."""
    found = msgspec.structs.asdict(source)
    for name in OF_MYSQL:
        del found[name]
    if source.schema is UNSET:
        del found["schema"]
    place = {n: t for n, t in (event.position or NOTHING).items() if n not in PLACES}
    own = {n.removeprefix("source."): t for n, t in kept.items() if n.startswith("source.")}
    others = {n: t if n in TEXTS else bare(t) for n, t in (place | own).items()}
    return found | others


def restore(message: Envelope, source: Source, event: Event, kept: Mapping[str, str]) -> None:
    """Give a message of Debezium's the members that few have."""
    if "transaction.id" in kept:
        orders = {name: small(kept.get(f"transaction.{name}")) for name in ORDERS}
        message.transaction = {"id": kept["transaction.id"], **orders}
    if "ts_ns" in kept:
        message.ts_ns = small(kept["ts_ns"])
    if source.connector not in MYSQL_LIKE:
        message.source = with_own_members(source, event, kept)


def changes_key(event: Event) -> bool:
    """Whether an update changes the row's key."""
    before, after = event.before, event.after
    if not event.key or before is None or after is None:
        return False
    same = True
    for name in event.key:
        same = same and before.get(name) == after.get(name)
    return not same


def key_values(event: Event, row: Mapping[str, Any] | None, lost: list[str]) -> Any:
    """The key's columns; None where there is no key, or the row does not have all of it."""
    if not event.key:
        if event.key is not None:
            lost.append("key")  # that a table has none is said like not knowing it
        return None
    if row is None:
        return None
    values = {}
    for name in event.key:
        if name not in row:
            lost.append("key")
            return None
        values[name] = row[name]
    return values


def discard(lost: list[str], codes: Container[str]) -> None:
    """Take back what was counted as lost of an event by those who did not know its message."""
    if lost:
        lost[:] = [code for code in lost if code not in codes]


def note(event: Event, lost: list[str], *codes: str) -> None:
    """Count what a message that is no row has no place for."""
    has = {
        "database": event.database,
        "table": event.table,
        "event-time": event.event_time,
        "emit-time": event.emit_time,
        "event-time-micros": (event.event_time or 0) % 1_000,
        "emit-time-micros": (event.emit_time or 0) % 1_000,
    }
    lost += [code for code in codes if has[code]]


# Messages


SCHEMA_CHANGE_CODES = ("database", "table", "event-time", "event-time-micros", "emit-time")
WITHOUT_DATABASE = ("postgresql", "oracle", "db2")
"""Connectors whose topics and schemas are called `prefix.schema.table`, without the database."""


def names_of(event: Event) -> tuple[str | None, str | None, str | None]:
    """An event's database, schema and table."""
    return event.database, event.schema, event.table


def block_names(event: Event, source: Source) -> tuple[str | None, ...]:
    """What the names of a table's schema blocks begin with.

    >>> source = make_source("pg")(Event("row", "insert", "d", "t", schema="s"), None)
    >>> block_names(Event("row", "insert", "d", "t", schema="s"), source)
    ('pg', 'd', 's', 't')
    """
    if event.schema and source.connector in WITHOUT_DATABASE:
        return source.name, event.schema, event.table
    return source.name, *names_of(event)


Starts = tuple[bytes, bytes, bytes]
"""How value and key start, and how both end."""
NO_SCHEMA: Starts = (b"", b"", b"")


def make_starts(
    event: Event, layout: Layout, source: Source, rows: tuple[Pair, ...], lost: list[str]
) -> Starts:
    """The schema blocks of an event."""
    agreed = declared(event, layout, rows, lost)
    table = block_names(event, source)
    placed, in_schema = is_placed(source), event.schema is not None
    told: tuple[Any, ...] = (table, event.key, source.connector, placed, in_schema)
    if agreed[0] is not layout.columns or agreed[1] is not layout.nullable:
        told += declared_key(agreed)

    def make() -> Starts:
        found = connect_schema.columns(agreed[0], event.key or (), agreed[1])
        by_name = {field["field"]: field for field in found}
        key = [by_name[name] for name in event.key or () if name in by_name]
        value = connect_schema.envelope(found, table, source.connector, placed, in_schema)
        return value, connect_schema.key(key, table), b"}"

    starts: Starts = layout.block(told, make)
    return starts


def finish(start: bytes, message: Any, end: bytes) -> bytes:
    """A message as Kafka's JSON converter writes it."""
    sent = to_json(message)
    return start + (jackson_style(sent) if BACKSLASH in sent else sent) + end


def finish_key(starts: Starts, values: Any) -> bytes | None:
    """A key; None where there is none."""
    return None if values is None else finish(starts[1], values, starts[2])


def headed(records: list[Record], name: str, values: Any) -> list[Record]:
    """The messages of half a key change, with the header that tells the other half's key."""
    if values is not None:
        for record in records:
            record.headers = ((name, finish(b"", values, b"")),)
    return records


def make_encoder(dialect: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    if dialect != "debezium":
        refuse_others(dialect, options)
        return oms_encoder(dialect == "oms", bool(options.schemas_enable))
    schemas = options.schemas_enable is not False
    plans = {own: planner(options, schemas, own) for own in (False, True)}
    source_of = make_written_source(options.topic_prefix)
    others = auxiliary(options.topic_prefix, schemas)
    tombstones = options.tombstones_on_delete

    def encode(event: Event, lost: list[str]) -> list[Record]:
        if event.kind != "row":
            return others(event, lost)
        op, emitted = event.op or "", event.emit_time
        own = whose(event)
        layout = plans[event.format in CONNECT_FORMATS](event.types).of(event)
        before, after = images_of(event, layout, lost)
        source, source_json = source_of(event, own)
        rows = ((before, event.before), (after, event.after))
        value_start, key_start, end = (
            make_starts(event, layout, source, rows, lost) if schemas else NO_SCHEMA
        )
        message = Envelope(
            before, after, source_json, None, OPS[op], thousandth(emitted), emitted, nanos(emitted)
        )
        if own:
            restore(message, source, event, own)
            if source.connector not in MYSQL_LIKE:
                discard(lost, ("position",))  # what other databases call it is written too
            if source.commit_ts is not UNSET:
                discard(lost, ("commit-ts",))
        elif source.pos is None and event.position and "pos" in event.position:
            lost.append("position")  # OMS's place in the log is no offset
        if op == "update" and changes_key(event):
            lost.append("key-change")
            return key_change(event, message, (value_start, key_start, end), tombstones, lost)
        if op == "truncate":
            return [Record(finish(value_start, message, end))]
        values: Any = None
        if own and "key" in own:
            key: bytes | None = own["key"].encode()
        else:
            values = key_values(event, before if after is None else after, lost)
            key = None if values is None else finish(key_start, values, end)
        record = Record(finish(value_start, message, end), key)
        # A delete that Debezium wrote has its tombstone behind it in the stream.
        if op == "delete" and own is None and key is not None and tombstones:
            return [record, Record(None, key)]
        return [record]

    return encode


def key_change(
    event: Event, message: Envelope, starts: Starts, tombstones: bool, lost: list[str]
) -> list[Record]:
    """An update of the key as the connector writes it: a delete, its tombstone, and a create."""
    before, after = message.before, message.after
    old, new = key_values(event, before, lost), key_values(event, after, lost)
    old_key, new_key = finish_key(starts, old), finish_key(starts, new)
    message.op, message.after = "d", None
    gone = [Record(finish(starts[0], message, starts[2]), old_key)]
    if tombstones and old_key is not None:
        gone.append(Record(None, old_key))
    message.op, message.before, message.after = "c", None, after
    come = [Record(finish(starts[0], message, starts[2]), new_key)]
    return [*headed(gone, NEW_KEY, new), *headed(come, OLD_KEY, old)]


def auxiliary(prefix: str | None, schemas: bool) -> Encode:
    """An encoder of what is no row."""
    source_of = make_source(prefix)

    def start(block: bytes) -> tuple[bytes, bytes]:
        return (block, b"}") if schemas else (b"", b"")

    def write(value: tuple[bytes, Any], key: tuple[bytes, Any] | None) -> list[Record]:
        opened, end = start(value[0])
        record = Record(finish(opened, value[1], end))
        if key is not None:
            opened, end = start(key[0])
            record.key = finish(opened, key[1], end)
        return [record]

    def schema_change(event: Event, lost: list[str]) -> list[Record]:
        own = whose(event)
        kept = own or NOTHING
        source = source_of(event, own)
        discard(lost, SCHEMA_CHANGE_CODES)
        if source.commit_ts is not UNSET:
            discard(lost, ("commit-ts",))
        note(event, lost, "emit-time-micros")
        changes = kept.get("tableChanges")
        database = event.database or ""
        message = SchemaChange(
            source,
            millis(event.emit_time),
            database,
            event.schema,
            event.ddl or "",
            [] if changes is None else json_or(changes, []),
        )
        value, key = connect_schema.schema_change(
            source.connector, is_placed(source), event.schema is not None
        )
        return write((value, message), (key, {"databaseName": database}))

    def heartbeat(event: Event, lost: list[str]) -> list[Record]:
        own = whose(event)
        discard(lost, ("database", "table", "event-time", "emit-time"))
        note(event, lost, "database", "table", "event-time", "emit-time-micros")
        name: str | None = prefix or PREFIX
        if own is not None:
            name = own.get("serverName")
        key = None if name is None else (connect_schema.HEARTBEAT_KEY, {"serverName": name})
        return write((connect_schema.HEARTBEAT, {"ts_ms": millis(event.emit_time)}), key)

    def watermark(event: Event, lost: list[str]) -> list[Record]:
        source = source_of(event, whose(event))
        if source.connector != TICDC:
            return []
        discard(lost, ("commit-ts",))
        message = Watermark(source, thousandth(event.emit_time), None, "m")
        name = connect_schema.dotted(source.name, "watermark")
        return write(
            (connect_schema.watermark(name), message), (connect_schema.key([], (name,)), {})
        )

    def boundary(event: Event, lost: list[str]) -> list[Record]:
        kept = whose(event) or NOTHING
        discard(lost, ("database", "table", "event-time", "emit-time"))
        note(event, lost, "database", "table", "emit-time", "event-time-micros")
        id = transaction_id(event)
        message = Boundary(
            BOUNDARIES[event.op or ""],
            id,
            small(kept.get("event_count")),
            json_or(kept.get("data_collections"), None),
            millis(event.event_time),
        )
        return write((connect_schema.BOUNDARY, message), (connect_schema.BOUNDARY_KEY, {"id": id}))

    def notification(event: Event) -> list[Record]:
        kept = whose(event) or NOTHING
        message = Notification(
            kept.get("id"),
            kept.get("type"),
            kept.get("aggregate_type"),
            json_or(kept.get("additional_data"), None),
            thousandth(event.emit_time),
        )
        return write((connect_schema.NOTIFICATION, message), None)

    def encode(event: Event, lost: list[str]) -> list[Record]:
        if whose(event) is not None:
            discard(lost, ("extra",))
        if event.kind == "ddl":
            return schema_change(event, lost)
        if event.kind == "heartbeat":
            return heartbeat(event, lost)
        if event.kind == "watermark":
            return watermark(event, lost)
        if event.kind == "tombstone":
            return tombstone(event, lost)
        if event.kind == "marker" and event.op in BOUNDARIES:
            return boundary(event, lost)
        if event.kind == "marker" and "aggregate_type" in (whose(event) or NOTHING):
            return notification(event)
        return []

    return encode


def tombstone(event: Event, lost: list[str]) -> list[Record]:
    """A null value, with the key as it came; keys of other formats are not Debezium's."""
    if event.format not in CONNECT_FORMATS:
        return []
    discard(lost, ("extra",))
    key = (event.extra or NOTHING).get("key")
    return [Record(None, None if key is None else key.encode())]


def transaction_id(event: Event) -> str:
    """The name of a transaction: its GTID, or where it starts in the binlog.

    >>> transaction_id(Event("marker", "begin", position={"file": "bin.1", "pos": "4"}))
    'file=bin.1,pos=4'
    """
    place = event.position or NOTHING
    if "file" in place and "pos" in place and not place.keys() & {"id", "gtid"}:
        return f"file={place['file']},pos={place['pos']}"
    return place.get("id") or place.get("gtid") or place.get("xid") or ""


def json_or(text: str | None, otherwise: Any) -> Any:
    """A kept object or array, as it was sent."""
    try:
        return otherwise if text is None else nested(text)
    except Lossy:
        return otherwise


# OMS


def refuse_others(dialect: str, options: ValueOptions) -> None:
    """Refuse options that OMS does not have."""
    common = names(EncodeOptions) | {"schemas_enable"}
    for told in fields(options):
        if told.name not in common and getattr(options, told.name) != told.default:
            raise UsageError(f"option {spelled(told.name)} is Debezium's; OMS does not have it")
    if options.schemas_enable and dialect != "oms":
        raise UsageError(f"dialect {dialect} has no schema; leave schemas-enable out")


def of_oms(event: Event) -> bool:
    """Whether OMS wrote the message."""
    return event.format in CONNECT_FORMATS and event.dialect not in ("debezium", None)


def oms_words(event: Event) -> tuple[Any, Any, Any, Any]:
    """Who wrote the message, and its place in the log, which is OMS's own: connector, name,
    version, pos."""
    if not of_oms(event):
        return OMS_CONNECTOR, OMS, "", UNSET
    told = (event.extra or NOTHING).get
    place = (event.position or NOTHING).get("pos", UNSET)
    return told("connector", UNSET), told("name", UNSET), told("version", UNSET), place


def note_oms(event: Event, lost: list[str]) -> None:
    """Take back the loss of what OMS says of itself in all its methods."""
    if lost and of_oms(event):
        if (event.position or NOTHING).keys() <= {"pos"}:
            discard(lost, ("position",))
        if (event.extra or NOTHING).keys() <= {"connector", "name", "version", *HINTS}:
            discard(lost, ("extra",))


def oms_encoder(wrapped: bool, schemas: bool) -> Encode:
    """OMS's methods Debezium (`wrapped`) and DebeziumFlatten."""
    plans = {own: oms_planner(own) for own in (False, True)}
    plain_start, end = (b'{"payload":', b"}") if wrapped else (b"", b"")

    def encode(event: Event, lost: list[str]) -> list[Record]:
        note_oms(event, lost)
        if event.kind == "heartbeat":
            return [Record(finish(plain_start, oms_heartbeat(event), end))]
        if event.kind != "row" or event.op not in OMS_OPS:
            return []
        layout = plans[event.format in CONNECT_FORMATS](event.types).of(event)
        before, after = written_images(event, layout, lost)
        start = oms_start(event, layout, lost) if schemas else plain_start
        connector, name, version, pos = oms_words(event)
        source = OmsSource(
            connector,
            pos,
            name,
            version,
            millis(event.event_time),
            event.database or UNSET,
            event.table or UNSET,
        )
        message = OmsRow(
            OMS_OPS[event.op],
            UNSET if before is None else before,
            source,
            UNSET if after is None else after,
            UNSET if event.emit_time is None else event.emit_time // 1_000,
        )
        return [Record(finish(start, message, end))]

    return encode


def oms_start(event: Event, layout: Layout, lost: list[str]) -> bytes:
    """OMS's schema block."""
    columns = columns_of(event, layout, lost)
    types = {name: column.head["type"] for name, column in columns.items()}
    told = None if columns is layout.columns else tuple(types.items())
    start: bytes = layout.block(told, lambda: connect_schema.oms_envelope(types))
    return start


def oms_heartbeat(event: Event) -> OmsHeartbeat:
    """OMS: its heartbeat, whose place is a number."""
    connector, name, version, pos = oms_words(event)
    source = OmsHeartbeatSource(
        version,
        connector,
        name,
        millis(event.event_time),
        event.database or UNSET,
        event.table or UNSET,
        pos if pos is UNSET else bare(pos),
    )
    emitted = UNSET if event.emit_time is None else event.emit_time // 1_000
    return OmsHeartbeat(source, "HEARTBEAT", emitted, {}, {})


# What is carried


ROWS = frozenset({"insert", "before", "database", "table", "bare-values", "emit-time"})
ROWS |= {"event-time", "event-time-millis", "emit-time-millis"}
OTHERS = frozenset({"ddl", "heartbeat", "transaction", "tombstone"})
NATIVE = (
    ROWS
    | OTHERS
    | {"schema-name", "truncate", "snapshot", "key", "event-time-micros", "emit-time-micros"}
)
NATIVE |= {"incomplete", "position.id", *(f"position.{name}" for name in PLACES)}


def type_codes(options: ValueOptions) -> frozenset[str]:
    """What the schema block says of types."""
    if options.schemas_enable is False:
        return frozenset()
    propagated = {"type-details"} if options.column_propagate_source_type else set()
    return frozenset({"types", *propagated})


def carries(dialect: str, options: Options) -> frozenset[str]:
    """What a dialect has a place for."""
    if dialect == "debezium":
        return NATIVE | type_codes(options)
    return ROWS | {"heartbeat"}  # its schema has no semantic names: a date is an int32


ENCODING = Encoding(
    Options,
    make_encoder,
    carries,
    has_placeholder=True,
    fullest={"debezium": {"column_propagate_source_type": True}},
)
