"""Events on a worker: from a DataFrame of events, or from the messages that it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.events import EVENT_SCHEMA, bounded, decode_parts, most_bytes_of
from headgate.arrow.records import events_of
from headgate.arrow.typed_rows import Source, source_of
from headgate.codec.decoder import decoder, with_schema
from headgate.codec.schemas import Schemas
from headgate.core.event import Event
from headgate.schema.known_tables import LearntTable
from headgate.spark.api import messages_of

UNUSED = frozenset({"emit_time", "error", "raw", "raw_key"})
"""Columns of events that neither rows nor their types are made of."""
Events = Iterator[tuple[list[Event], Source]]


class Reading(NamedTuple):
    """A DataFrame, and how its batches become events."""

    df: DataFrame
    events: Callable[[Iterable[pa.RecordBatch]], Events]
    options: Mapping[str, Any]
    """Those with which its messages are decoded."""


def reading(
    events: DataFrame, wanted: Column, learnt: Sequence[LearntTable] = (), lean: bool = True
) -> Reading:
    """How to read events; straight from their messages, if nothing came in between.

    Building and shipping event columns would double the cost. `wanted` is what is needed of a
    DataFrame of events, `learnt` are tables whose rows get their types. `lean`: without what only
    encoding needs.
    """
    fresh = messages_of(events)
    if fresh is None:
        return Reading(
            event_frame(events, wanted), lambda batches: from_events(batches, learnt), {}
        )
    messages, format, options = fresh
    given = {**options, "lean": lean and not learnt}
    return Reading(messages, lambda batches: from_messages(batches, format, given, learnt), options)


def from_messages(
    batches: Iterable[pa.RecordBatch],
    format: str,
    options: Mapping[str, Any],
    learnt: Sequence[LearntTable],
) -> Events:
    """The events of messages, in parts of a bounded size."""
    if learnt:
        known = Schemas(options.get("schema"), options).with_learnt(learnt)
        decode = with_schema(decoder(format, **{**options, "schema": None}), known)
    else:
        decode = decoder(format, **options)
    limit = most_bytes_of(options)
    for part in chain.from_iterable(map(bounded, batches)):
        for messages, events, counts in decode_parts(part, decode, limit):
            yield events, source_of(messages, counts)


def from_events(batches: Iterable[pa.RecordBatch], learnt: Sequence[LearntTable]) -> Events:
    """The events of event columns."""
    known = Schemas().with_learnt(learnt)
    for batch in batches:
        events = events_of(batch)
        if learnt:
            for event in events:
                known.complete(event)
        origin = batch.column("origin")
        messages = pa.record_batch(
            {n: pc.struct_field(origin, n) for n in ("topic", "partition", "offset")}
        )
        yield events, Source(messages, None, list(map(number_of, events)))


def number_of(event: Event) -> int:
    """The place of an event in its message.

    >>> number_of(Event("row", position={"row": "2"})), number_of(Event("row"))
    (2, 0)
    """
    row = (event.position or {}).get("row", "")
    return int(row) if row.isascii() and row.isdigit() and len(row) < 10 else 0


def event_frame(events: DataFrame, wanted: Column) -> DataFrame:
    """Some events, with all columns; those that are missing or not used are null."""
    schema = from_arrow_schema(EVENT_SCHEMA)
    return events.where(wanted).select(
        *(
            F.col(field.name)
            if field.name in events.columns and field.name not in UNUSED
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in schema
        )
    )
