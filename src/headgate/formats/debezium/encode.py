"""Debezium's change event envelope as Debezium's MySQL connector and OceanBase OMS write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from headgate.core.event import Event, Record
from headgate.core.options import option
from headgate.formats._connect import schema as connect_schema
from headgate.formats._connect.connectors import MYSQL_LIKE
from headgate.formats._connect.encode_rows import (
    CONNECT_FORMATS,
    Layout,
    declared,
    declared_key,
    images_of,
    planner,
)
from headgate.formats._connect.fit import Pair
from headgate.formats._connect.options import EncodedValueOptions
from headgate.formats.base import Encode, Encoding
from headgate.formats.debezium.encode_auxiliary import auxiliary
from headgate.formats.debezium.encode_oms import oms_encoder, reject_debezium_options
from headgate.formats.debezium.encode_parts import (
    finish,
    int64_or_none,
    millis_or_none,
    nanos,
    own_extra,
    retract,
)
from headgate.formats.debezium.encode_source import (
    POSITION_MEMBERS,
    block_names,
    has_binlog_position,
    make_written_source,
    topic_names,
    with_own_members,
)
from headgate.formats.debezium.messages import Envelope, Source

OPS = {"insert": "c", "update": "u", "delete": "d", "snapshot": "r", "truncate": "t"}
ORDERS = ("total_order", "data_collection_order")
NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


@dataclass(frozen=True)
class Options(EncodedValueOptions):
    """Options for encoding debezium."""

    tombstones_on_delete: bool = option(True, "write a tombstone (null value) after each delete")


def restore(message: Envelope, source: Source, event: Event, extra: Mapping[str, str]) -> None:
    """Restore the rarely used members of a message from Debezium."""
    if "transaction.id" in extra:
        orders = {name: int64_or_none(extra.get(f"transaction.{name}")) for name in ORDERS}
        message.transaction = {"id": extra["transaction.id"], **orders}
    if "ts_ns" in extra:
        message.ts_ns = int64_or_none(extra["ts_ns"])
    if source.connector not in MYSQL_LIKE:
        message.source = with_own_members(source, event, extra)


def changes_key(event: Event) -> bool:
    """Whether an update changes the row's key."""
    before, after = event.before, event.after
    if not event.key or before is None or after is None:
        return False
    unchanged = True
    for name in event.key:
        unchanged = unchanged and before.get(name) == after.get(name)
    return not unchanged


def key_values(event: Event, row: Mapping[str, Any] | None, lost: list[str]) -> Any:
    """The values of the key's columns; None without a key or if the row lacks one of them."""
    if not event.key:
        if event.key is not None:
            lost.append("key")  # a table without a key looks like one whose key is unknown
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


Starts = tuple[bytes, bytes, bytes]
"""The start of the value, the start of the key, and the end of both."""
NO_SCHEMA: Starts = (b"", b"", b"")


def make_starts(
    event: Event, layout: Layout, source: Source, rows: tuple[Pair, ...], lost: list[str]
) -> Starts:
    """The schema blocks of an event."""
    agreed = declared(event, layout, rows, lost)
    table = block_names(event, source)
    has_position, in_schema = has_binlog_position(source), event.schema is not None
    cache_key: tuple[Any, ...] = (table, event.key, source.connector, has_position, in_schema)
    if agreed[0] is not layout.columns or agreed[1] is not layout.nullable:
        cache_key += declared_key(agreed)

    def make() -> Starts:
        fields = connect_schema.columns(agreed[0], event.key or (), agreed[1])
        by_name = {field["field"]: field for field in fields}
        key = [by_name[name] for name in event.key or () if name in by_name]
        names = topic_names(table)
        value = connect_schema.envelope(fields, names, source.connector, has_position, in_schema)
        return value, connect_schema.key(key, names), b"}"

    starts: Starts = layout.block(cache_key, make)
    return starts


def finish_key(starts: Starts, values: Any) -> bytes | None:
    """An encoded key; None without a key."""
    return None if values is None else finish(starts[1], values, starts[2])


def with_header(records: list[Record], name: str, values: Any) -> list[Record]:
    """The messages of one half of a key change, with the other half's key as a header."""
    if values is not None:
        for record in records:
            record.headers = ((name, finish(b"", values, b"")),)
    return records


def make_encoder(dialect: str, options: Options) -> Encode:
    """An encoder of one dialect."""
    if dialect != "debezium":
        reject_debezium_options(dialect, options)
        return oms_encoder(dialect == "oms", bool(options.schemas_enable))
    schemas = options.schemas_enable is not False
    plans = {
        from_connect: planner(options, schemas, from_connect) for from_connect in (False, True)
    }
    source_of = make_written_source(options.topic_prefix)
    others = auxiliary(options.topic_prefix, schemas)
    tombstones = options.tombstones_on_delete

    def encode(event: Event, lost: list[str]) -> list[Record]:
        if event.kind != "row":
            return others(event, lost)
        op, emitted = event.op or "", event.emit_time
        extra = own_extra(event)
        layout = plans[event.format in CONNECT_FORMATS](event.types).of(event)
        if event.key == () and extra is None and layout.handle:
            lost.append("key")
            event = replace(event, key=layout.handle)
        before, after = images_of(event, layout, lost)
        source, source_json = source_of(event, extra)
        rows = ((before, event.before), (after, event.after))
        value_start, key_start, end = (
            make_starts(event, layout, source, rows, lost) if schemas else NO_SCHEMA
        )
        message = Envelope(
            before,
            after,
            source_json,
            None,
            OPS[op],
            millis_or_none(emitted),
            emitted,
            nanos(emitted),
        )
        if extra:
            restore(message, source, event, extra)
            if source.connector not in MYSQL_LIKE:
                retract(lost, ("position",))  # other databases' members are written too
            if source.commit_ts is not UNSET:
                retract(lost, ("commit-ts",))
        elif source.pos is None and event.position and "pos" in event.position:
            lost.append("position")  # OMS's log position is not an offset
        if op == "update" and changes_key(event):
            lost.append("key-change")
            return key_change(event, message, (value_start, key_start, end), tombstones, lost)
        if op == "truncate":
            return [Record(finish(value_start, message, end))]
        values: Any = None
        if extra and "key" in extra:
            key: bytes | None = extra["key"].encode()
        else:
            values = key_values(event, before if after is None else after, lost)
            key = None if values is None else finish(key_start, values, end)
        record = Record(finish(value_start, message, end), key)
        # A delete from Debezium is followed by its own tombstone in the stream.
        if op == "delete" and extra is None and key is not None and tombstones:
            return [record, Record(None, key)]
        return [record]

    return encode


def key_change(
    event: Event, message: Envelope, starts: Starts, tombstones: bool, lost: list[str]
) -> list[Record]:
    """An update of the key as the connector writes it: a delete, its tombstone and an insert."""
    before, after = message.before, message.after
    old, new = key_values(event, before, lost), key_values(event, after, lost)
    old_key, new_key = finish_key(starts, old), finish_key(starts, new)
    message.op, message.after = "d", None
    deletes = [Record(finish(starts[0], message, starts[2]), old_key)]
    if tombstones and old_key is not None:
        deletes.append(Record(None, old_key))
    message.op, message.before, message.after = "c", None, after
    inserts = [Record(finish(starts[0], message, starts[2]), new_key)]
    return [*with_header(deletes, NEW_KEY, new), *with_header(inserts, OLD_KEY, old)]


# What the format can represent


ROWS = frozenset({"insert", "before", "database", "table", "bare-values", "emit-time"})
ROWS |= {"event-time", "event-time-millis", "emit-time-millis"}
OTHERS = frozenset({"ddl", "heartbeat", "transaction", "tombstone"})
NATIVE = (
    ROWS
    | OTHERS
    | {"schema-name", "truncate", "snapshot", "key", "event-time-micros", "emit-time-micros"}
)
NATIVE |= {"incomplete", "position.id", *(f"position.{name}" for name in POSITION_MEMBERS)}


def type_codes(options: EncodedValueOptions) -> frozenset[str]:
    """The codes of type information that the schema block can represent."""
    if options.schemas_enable is False:
        return frozenset()
    propagated = {"type-details"} if options.column_propagate_source_type else set()
    return frozenset({"types", *propagated})


def carries(dialect: str, options: Options) -> frozenset[str]:
    """The codes of what a dialect can represent."""
    if dialect == "debezium":
        return NATIVE | type_codes(options)
    return ROWS | {"heartbeat"}  # without semantic names in its schema, a date is just an int32


ENCODING = Encoding(
    Options,
    make_encoder,
    carries,
    has_placeholder=True,
    fullest={"debezium": {"column_propagate_source_type": True}},
)
