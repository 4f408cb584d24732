"""The command line's work on one split of input: decode, print, convert or count its messages.

All of it is plain Python, in this process or on one of Spark's workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.conversion import Converted, Converter
from headgate.arrow.events import (
    SOURCE_COLUMNS,
    decode_batches,
    decode_parts,
    most_bytes_of,
)
from headgate.arrow.records import RECORD_SCHEMA
from headgate.codec.decoder import decoder
from headgate.codec.event_lines import line
from headgate.core.event import Event, Message
from headgate.sources.message_files import Split, read

MESSAGE_SCHEMA = pa.schema([field for field in RECORD_SCHEMA if field.name != "losses"])
NOT_IN_LINES = {
    "message-keys": "lines have no message keys; write .parquet to keep them",
    "null-values": "a tombstone has no line; write .parquet to keep it",
}
"""What only Parquet can represent, by code."""
ROW_BYTES = 4 * 1024 * 1024
"""About how much text is put into a row."""
FormatCounts = Counter[tuple[str | None, ...]]
"""How many messages have which format, dialect, kind and error code."""


class DeadLetter(NamedTuple):
    """A message as it was, in Kafka's columns, and why it was rejected: it can be read again."""

    key: bytes | None
    value: bytes | None
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int | None
    code: str
    message: str


class Decoding:
    """A source format with its options; a worker makes its own decoder from them."""

    def __init__(self, format: str, options: Mapping[str, Any]) -> None:
        self.format, self.options = format, options
        self.decode = decoder(format, **options)
        self.most_bytes = most_bytes_of(options)

    def __reduce__(self) -> tuple[Any, ...]:
        return Decoding, (self.format, self.options)


def decoded(split: Split, source: Decoding) -> Iterator[pa.RecordBatch]:
    """The events of a split, in the event schema."""
    return decode_batches(read(split, source.most_bytes), source.decode, source.most_bytes)


def printed(split: Split, source: Decoding) -> Iterator[tuple[bytes, DeadLetter | None]]:
    """The events of a split as JSON lines, an invalid one with its dead letter."""
    for batch in read(split, source.most_bytes):
        for part, events, counts in decode_parts(batch, source.decode, source.most_bytes):
            at = 0
            for message, count in zip(messages(part), counts):
                for event in events[at : at + count]:
                    yield line(event, message), dead_letter(event, message)
                at += count


def dead_letter(event: Event, message: Message) -> DeadLetter | None:
    """What an invalid event leaves of its message."""
    if event.error is None:
        return None
    return DeadLetter(event.raw_key, event.raw, *message[2:], *event.error)


def dead_letters_of(events: pa.RecordBatch) -> Iterator[DeadLetter]:
    """The dead letters among a batch of events."""
    invalid = events.filter(pc.equal(events.column("kind"), "invalid"))
    origin, error = invalid.column("origin"), invalid.column("error")
    columns = [
        invalid.column("raw_key"),
        invalid.column("raw"),
        *(pc.struct_field(origin, n) for n in ("topic", "partition", "offset")),
        pc.struct_field(origin, "timestamp").cast(pa.int64()),
        *(pc.struct_field(error, n) for n in ("code", "message")),
    ]
    return map(DeadLetter._make, zip(*(column.to_pylist() for column in columns)))


def rejected_messages(converted: Converted) -> Iterator[DeadLetter]:
    """The dead letters of a conversion."""
    for message, reason in zip(messages(converted.rejected), converted.reasons):
        yield DeadLetter(message.key, message.value, *message[2:], *reason)


def converted(split: Split, converter: Converter, lines: bool) -> Iterator[Converted]:
    """The messages of a split in another format; as `lines`, many to a row."""
    for batch in read(split, converter.most_bytes):
        for part in converter.convert(batch):
            if lines:
                part.records, lost = in_lines(part.records)
                part.losses += lost
            else:
                part.records = part.records.select(MESSAGE_SCHEMA.names)
            yield part


def in_lines(records: pa.RecordBatch) -> tuple[pa.RecordBatch, Counter[str]]:
    """Messages as lines, many to a row, and how many keys and tombstones lines do not have."""
    values = records.column("value")
    lost = Counter(
        {
            "null-values": values.null_count,
            "message-keys": len(values) - records.column("key").null_count,
        }
    )
    values = values.drop_null()
    starts = [0]
    if values.nbytes > ROW_BYTES:
        sizes = list(accumulate(pc.binary_length(values).to_pylist(), initial=0))
        for row, size in enumerate(sizes[:-1]):
            if size - sizes[starts[-1]] > ROW_BYTES:
                starts.append(row)
    if len(values):
        starts.append(len(values))
    grouped = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)
    return pa.record_batch({"value": pc.binary_join(grouped, b"\n")}), lost


def counted(split: Split, source: Decoding) -> FormatCounts:
    """How many messages of a split have which format, dialect, kind and error code."""
    counts: FormatCounts = Counter()
    for batch in read(split, source.most_bytes):
        for _, events, per_message in decode_parts(batch, source.decode, source.most_bytes):
            at = 0
            for n in per_message:
                e = events[at]
                counts[e.format, e.dialect, e.kind, e.error[0] if e.error else None] += 1
                at += n
    return counts


def messages(batch: pa.RecordBatch) -> Iterator[Message]:
    """The rows of a Kafka-shaped batch, absent columns as None."""
    absent = [None] * batch.num_rows
    columns = {n: batch.column(n) for n in SOURCE_COLUMNS if n in batch.schema.names}
    if "timestamp" in columns:
        columns["timestamp"] = pc.cast(columns["timestamp"], pa.int64())
    values = [columns[n].to_pylist() if n in columns else absent for n in Message._fields]
    return map(Message._make, zip(*values))
