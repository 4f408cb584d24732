"""Between Arrow and encoders: event columns to events, messages to Kafka's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.events import HEADERS
from headgate.codec.encoder import Encoded, Encoder
from headgate.codec.packing import packed
from headgate.core.cache import BoundedCache
from headgate.core.event import ColumnType, Event, Types
from headgate.core.losses import SENTENCES

RECORD_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("topic", pa.string()),
        ("headers", HEADERS),
        ("losses", pa.list_(pa.string())),
    ]
)
"""Kafka's columns, as Spark's Kafka sink expects them, and the codes of each message's losses."""


def encode_events(encoder: Encoder, events: Iterable[Event]) -> pa.RecordBatch:
    """The messages of a batch of events; an event without one, or that is rejected, is skipped."""
    return record_batch(encoder, events, map(encoder, events))


def record_batch(
    encoder: Encoder, events: Iterable[Event], outcomes: Iterable[Encoded]
) -> pa.RecordBatch:
    """The messages of encoded events as a batch of the record schema."""
    records, losses = packed(encoder, events, outcomes)
    columns = [
        pa.array([r.key for r in records], pa.binary()),
        pa.array([r.value for r in records], pa.binary()),
        pa.array([r.partition for r in records], pa.int32()),
        pa.array([r.topic for r in records], pa.string()),
        headers([r.headers for r in records]),
        pa.array(losses, pa.list_(pa.string())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


def headers(per_message: Sequence[Any]) -> pa.Array:
    """A column of headers, which few messages have."""
    if not any(per_message):
        return pa.nulls(len(per_message), HEADERS)
    return pa.array(
        [h and [{"key": name, "value": value} for name, value in h] for h in per_message], HEADERS
    )


def without_message(
    encoder: Encoder, events: Iterable[Event]
) -> Iterator[tuple[int, tuple[str, str]]]:
    """The number of each event that gets no message, and why."""
    for i, event in enumerate(events):
        outcome = encoder(event)
        if outcome.error is not None:
            yield i, outcome.error
        elif not outcome.records and outcome.lost:
            yield i, ("no-message", "; ".join(SENTENCES[code] for code in outcome.lost))


def events_of(batch: pa.RecordBatch) -> list[Event]:
    """The events of a batch of the event schema.

    >>> from headgate.arrow.events import to_batch
    >>> event = Event("row", "insert", "d", "t", ("id",), after={"id": "1"})
    >>> [event] == events_of(to_batch([event]))
    True
    """
    origin = batch.column("origin")
    error = batch.column("error")
    codes = pc.struct_field(error, "code").to_pylist()
    sentences = pc.struct_field(error, "message").to_pylist()
    return list(
        map(
            Event,
            values_of(batch, "kind"),
            values_of(batch, "op"),
            values_of(batch, "database"),
            values_of(batch, "table"),
            [None if k is None else tuple(k) for k in values_of(batch, "key")],
            text_dicts(batch.column("before")),
            text_dicts(batch.column("after")),
            type_dicts(batch.column("types")),
            values_of(batch, "ddl"),
            values_of(batch, "commit_ts"),
            pc.cast(batch.column("event_time"), pa.int64()).to_pylist(),
            pc.cast(batch.column("emit_time"), pa.int64()).to_pylist(),
            text_dicts(batch.column("position")),
            pc.struct_field(origin, "format").to_pylist(),
            pc.struct_field(origin, "dialect").to_pylist(),
            text_dicts(batch.column("extra")),
            [None if c is None else (c, m) for c, m in zip(codes, sentences)],
            values_of(batch, "raw"),
            values_of(batch, "raw_key"),
            values_of(batch, "schema"),
        )
    )


def values_of(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column as Python values."""
    values: list[Any] = batch.column(name).to_pylist()
    return values


def entries_of(column: pa.MapArray) -> tuple[list[int], pa.Array, pa.Array]:
    """Where each map begins and ends, and the keys and values of all: of a slice, only its own.

    >>> maps = pa.array([[("a", "1")], [("b", "2")]], pa.map_(pa.string(), pa.string()))
    >>> offsets, keys, _ = entries_of(maps[1:])
    >>> offsets, keys.to_pylist()
    ([0, 1], ['b'])
    """
    ends = column.offsets
    first, last = ends[0].as_py(), ends[-1].as_py()
    count = last - first
    offsets = pc.subtract(ends, first).to_pylist()
    return offsets, column.keys.slice(first, count), column.items.slice(first, count)


def text_dicts(column: pa.Array) -> list[dict[str, str | None] | None]:
    """Maps as dictionaries, cut from flat lists."""
    if column.null_count == len(column):
        return [None] * len(column)
    offsets, keys, items = entries_of(column)
    names, values = keys.to_pylist(), items.to_pylist()
    valid = column.is_valid().to_pylist()
    return [
        dict(zip(names[start:end], values[start:end])) if there else None
        for there, start, end in zip(valid, offsets, offsets[1:])
    ]


def type_dicts(column: pa.Array) -> list[Types | None]:
    """Type maps as dictionaries; equal ones are one object, as encoders expect of a table."""
    if column.null_count == len(column):
        return [None] * len(column)
    offsets, keys, items = entries_of(column)
    parts = [pc.struct_field(items, name).to_pylist() for name in ColumnType._fields]
    names, types = keys.to_pylist(), list(zip(*parts))
    valid = column.is_valid().to_pylist()
    return [
        _types[tuple(names[start:end]), tuple(types[start:end])] if there else None
        for there, start, end in zip(valid, offsets, offsets[1:])
    ]


def _make_types(names_and_types: tuple[tuple[str, ...], tuple[Any, ...]]) -> Types:
    return {name: ColumnType(*parts) for name, parts in zip(*names_and_types)}


_types: BoundedCache[tuple[tuple[str, ...], tuple[Any, ...]], Types] = BoundedCache(_make_types)
