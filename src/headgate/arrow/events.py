"""Messages to events, and events to Arrow columns.

Columns are built from flat lists; type maps, which many events share, are built once each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.codec.decoder import decode_message, too_large
from headgate.core.event import Event, Types
from headgate.core.limits import (
    BATCH_BYTES,
    BATCH_ROWS,
    EVENTS_AT_ONCE,
    EXPANDED_BYTES,
    MAX_MESSAGE_BYTES,
)
from headgate.formats.base import Decode

TEXT_MAP = pa.map_(pa.string(), pa.string())
TYPE = pa.struct([("mysql", pa.string()), ("jdbc", pa.int32()), ("flags", pa.int32())])
TYPE_MAP = pa.map_(pa.string(), TYPE)
TIME = pa.timestamp("us", tz="UTC")
ORIGIN = pa.struct(
    [
        ("format", pa.string()),
        ("dialect", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIME),
    ]
)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ERROR = pa.struct([("code", pa.string()), ("message", pa.string())])

EVENT_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("op", pa.string()),
        ("database", pa.string()),
        ("table", pa.string()),
        ("schema", pa.string()),
        ("key", pa.list_(pa.string())),
        ("before", TEXT_MAP),
        ("after", TEXT_MAP),
        ("types", TYPE_MAP),
        ("ddl", pa.string()),
        ("commit_ts", pa.int64()),
        ("event_time", TIME),
        ("emit_time", TIME),
        ("position", TEXT_MAP),
        ("origin", ORIGIN),
        ("extra", TEXT_MAP),
        ("error", ERROR),
        ("raw", pa.binary()),
        ("raw_key", pa.binary()),
    ]
)

SOURCE_COLUMNS = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIME,
}
"""Kafka's columns that decoding uses; only `value` is required."""
OVERSIZE = "oversize"
"""A further column, for messages over the limit: their size and hash. Their value is only the
beginning of the message."""
ORIGIN_COLUMNS = [field.name for field in ORIGIN][2:]


def decode_batches(
    batches: Iterable[pa.RecordBatch], decode: Decode, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Kafka-shaped batches to batches of events, each bounded in bytes."""
    for batch in batches:
        for part in bounded(batch):
            yield from decode_batch(part, decode, most_bytes)


def most_bytes_of(options: Mapping[str, Any]) -> int:
    """The message limit among a decoder's options, in either spelling."""
    for name in ("max_message_bytes", "max-message-bytes"):
        if options.get(name) is not None:
            return int(options[name])
    return MAX_MESSAGE_BYTES


def bounded(batch: pa.RecordBatch, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Slice a batch so that no part holds more rows, or much more than BATCH_BYTES of messages."""
    for start in range(0, batch.num_rows, rows):
        part = batch.slice(start, rows)
        if part.nbytes <= BATCH_BYTES:
            yield part
        else:
            yield from by_bytes(part)


def by_bytes(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slice a batch of large messages."""
    sizes = pc.fill_null(pc.binary_length(batch.column("value")), 0).to_pylist()
    start = total = 0
    for i, size in enumerate(sizes):
        total += size
        if total > BATCH_BYTES and i > start:
            yield batch.slice(start, i - start)
            start, total = i, size
    yield batch.slice(start)


def decode_batch(
    batch: pa.RecordBatch, decode: Decode, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    """One Kafka-shaped batch to events: one batch, or several where messages hold many rows."""
    for part, events, counts in decode_parts(batch, decode, most_bytes):
        if len(events) == part.num_rows:
            yield to_batch(events, part)
            continue
        rows = [row for row, count in enumerate(counts) for _ in range(count)]
        # Without the messages: one with a thousand rows would be copied a thousand times.
        origin = part.select([n for n in ORIGIN_COLUMNS if n in part.schema.names])
        for start, end in cuts(part, rows):
            at = pa.array(rows[start:end], pa.int32())
            yield to_batch(events[start:end], origin.take(at) if origin.num_columns else None)


def cuts(batch: pa.RecordBatch, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where to split a batch's events, by the row of each, so that no column exceeds Arrow's limit.

    An event repeats what the rows of its message share: types, statement, names.
    """
    sizes = pc.fill_null(pc.binary_length(batch.column("value")), 0).to_pylist()
    start = size = 0
    for at, row in enumerate(rows):
        size += sizes[row]
        if size > EXPANDED_BYTES and at > start:
            yield start, at
            start, size = at, sizes[row]
    yield start, len(rows)


def decode_parts(
    batch: pa.RecordBatch, decode: Decode, most_bytes: int
) -> Iterator[tuple[pa.RecordBatch, list[Event], list[int]]]:
    """A batch in parts of a bounded number of events: messages, events, how many each gave."""
    while batch.num_rows:
        events, counts = decode_columns(batch, decode, most_bytes)
        yield batch.slice(0, len(counts)), events, counts
        batch = batch.slice(len(counts))


def decode_columns(
    batch: pa.RecordBatch, decode: Decode, most_bytes: int
) -> tuple[list[Event], list[int]]:
    """The events of a batch's messages, and how many each gave (at least one).

    Only of its first messages, where these have more rows than EVENTS_AT_ONCE.
    """
    absent = [None] * batch.num_rows
    values = as_bytes(batch.column("value"))
    names = batch.schema.names
    keys = as_bytes(batch.column("key")) if "key" in names else absent
    topics = batch.column("topic").to_pylist() if "topic" in names else absent
    per_message: list[list[Event]] = []
    left = EVENTS_AT_ONCE
    for key, value, topic in zip(keys, values, topics):
        events = decode_message(decode, key, value, topic, most_bytes)
        per_message.append(events)
        left -= len(events)
        if left <= 0:
            break
    if OVERSIZE in names and batch.column(OVERSIZE).null_count < batch.num_rows:
        for row, what in enumerate(batch.column(OVERSIZE).slice(0, len(per_message)).to_pylist()):
            if what is not None:
                per_message[row] = [too_large(keys[row], values[row], what, most_bytes)]
    return list(chain.from_iterable(per_message)), list(map(len, per_message))


def as_bytes(column: pa.Array) -> list[bytes | None]:
    """The values of a column of bytes or text as bytes; the text need not be valid.

    >>> as_bytes(pa.array(["a", None]))
    [b'a', None]
    """
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def to_batch(events: Sequence[Event], source: pa.RecordBatch | None = None) -> pa.RecordBatch:
    """Events as a batch of the event schema; `source` has the Kafka coordinates, row by row."""
    text = pa.string()
    columns = [
        pa.array([e.kind for e in events], text),
        pa.array([e.op for e in events], text),
        pa.array([e.database for e in events], text),
        pa.array([e.table for e in events], text),
        pa.array([e.schema for e in events], text),
        distinct_column([e.key for e in events], key_lists, pa.list_(text)),
        text_maps([e.before for e in events]),
        text_maps([e.after for e in events]),
        distinct_column([e.types for e in events], type_maps, TYPE_MAP),
        pa.array([e.ddl for e in events], text),
        pa.array([e.commit_ts for e in events], pa.int64()),
        pa.array([e.event_time for e in events], TIME),
        pa.array([e.emit_time for e in events], TIME),
        text_maps([e.position for e in events]),
        origins(events, source),
        text_maps([e.extra for e in events]),
        errors([e.error for e in events]),
        pa.array([e.raw for e in events], pa.binary()),
        pa.array([e.raw_key for e in events], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EVENT_SCHEMA)


def text_maps(images: Sequence[Mapping[str, str | None] | None]) -> pa.Array:
    """Maps from flat lists of names and values; far cheaper than a list of pairs per row."""
    if images.count(None) == len(images):
        return pa.nulls(len(images), TEXT_MAP)
    offsets: list[int | None] = []
    names: list[str] = []
    values: list[str | None] = []
    for image in images:
        if image is None:
            offsets.append(None)
        else:
            offsets.append(len(names))
            names += image
            values += image.values()
    offsets.append(len(names))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(names, pa.string()), pa.array(values, pa.string())
    )


def distinct_column(
    values: list[Any], make: Callable[[list[Any]], pa.Array], type_: pa.DataType
) -> pa.Array:
    """A column of few distinct objects: `make` builds each of them once."""
    distinct = {id(value): value for value in values}
    distinct.pop(id(None), None)
    if not distinct:
        return pa.nulls(len(values), type_)
    index = {identity: at for at, identity in enumerate(distinct)}
    at = pa.array(map(index.get, map(id, values)), pa.int32(), size=len(values))
    return make(list(distinct.values())).take(at)


def type_maps(maps: list[Types]) -> pa.Array:
    """The distinct type maps of a batch."""
    offsets = [0]
    names: list[str] = []
    types: list[Any] = []
    for each in maps:
        names += each
        types += each.values()
        offsets.append(len(names))
    mysql, jdbc, flags = zip(*types) if types else ((), (), ())
    items = pa.StructArray.from_arrays(
        [pa.array(mysql, pa.string()), pa.array(jdbc, pa.int32()), pa.array(flags, pa.int32())],
        fields=list(TYPE),
    )
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(names, pa.string()), items
    )


def key_lists(keys: list[tuple[str, ...]]) -> pa.Array:
    """The distinct keys of a batch."""
    return pa.array(keys, pa.list_(pa.string()))


def errors(reasons: list[tuple[str, str] | None]) -> pa.Array:
    """Code and sentence of each invalid event."""
    if reasons.count(None) == len(reasons):
        return pa.nulls(len(reasons), ERROR)
    return pa.array([e and {"code": e[0], "message": e[1]} for e in reasons], ERROR)


def origins(events: Sequence[Event], source: pa.RecordBatch | None) -> pa.Array:
    """Format and dialect from the events, coordinates from the transport."""
    columns = [
        pa.array([e.format for e in events], pa.string()),
        pa.array([e.dialect for e in events], pa.string()),
    ]
    for field in list(ORIGIN)[2:]:
        if source is not None and field.name in source.schema.names:
            columns.append(source.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(len(events), field.type))
    return pa.StructArray.from_arrays(columns, fields=list(ORIGIN))
