"""The command line's work on one split of input, here or on one of Spark's workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.events import SOURCE_COLUMNS, cuts, decode_batches, decode_parts, most_bytes_of
from headgate.arrow.records import RECORD_SCHEMA
from headgate.cli.event_lines import line
from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoded
from headgate.core.event import Event, Message
from headgate.fastpath.convert import Converter
from headgate.sources.message_files import Split, read

DEAD_SCHEMA = pa.schema([*SOURCE_COLUMNS.items(), ("code", pa.string()), ("message", pa.string())])
"""A dead letter is the message as it was, in Kafka's columns, and why: it can be read again."""

PRINTED_SCHEMA = pa.schema([("line", pa.binary()), *DEAD_SCHEMA])
COUNT_SCHEMA = pa.schema(
    [
        ("format", pa.string()),
        ("dialect", pa.string()),
        ("kind", pa.string()),
        ("code", pa.string()),
        ("messages", pa.int64()),
    ]
)
REFUSED = pa.struct([("code", pa.string()), ("message", pa.string()), ("messages", pa.int64())])
CONVERTED_SCHEMA = pa.schema(
    [
        *(field for field in RECORD_SCHEMA if field.name != "losses"),
        ("dead", pa.struct(list(DEAD_SCHEMA))),
        ("losses", pa.map_(pa.string(), pa.int64())),
        ("refused", pa.list_(REFUSED)),
    ]
)
"""A row is a message, a dead letter, or, at the end of a split, what its messages lost and how many
were refused for which reason."""
MESSAGE_SCHEMA = pa.schema(list(CONVERTED_SCHEMA)[:-3])
NOT_IN_LINES = {
    "message-keys": "lines hold values only, and no message keys; name OUT as .parquet",
    "null-values": "a tombstone has no line; name OUT as .parquet",
}
"""What only Parquet holds of messages, by code."""
ROW_BYTES = 4 * 1024 * 1024
"""About how much text is put into a row."""
Options = Mapping[str, Any]
Tally = Counter[tuple[str, str]]
"""How many dead letters have which code, each with its first sentence."""


def decoded(split: Split, format: str, options: Options) -> Iterator[pa.RecordBatch]:
    """The events of a split, in the event schema."""
    limit = most_bytes_of(options)
    return decode_batches(read(split, limit), decoder(format, **options), limit)


def printed(split: Split, format: str, options: Options) -> Iterator[pa.RecordBatch]:
    """The events of a split as JSON lines, each invalid one with its dead letter beside it."""
    decode = decoder(format, **options)
    limit = most_bytes_of(options)
    decoded_parts = (part for b in read(split, limit) for part in decode_parts(b, decode, limit))
    for batch, events, counts in decoded_parts:
        rows = [row for row, count in enumerate(counts) for _ in range(count)]
        sources = list(messages(batch))
        for start, end in cuts(batch, rows):
            found = [
                printed_row(e, sources[row]) for e, row in zip(events[start:end], rows[start:end])
            ]
            columns = [pa.array(c, f.type) for c, f in zip(zip(*found), PRINTED_SCHEMA)]
            yield pa.RecordBatch.from_arrays(columns, schema=PRINTED_SCHEMA)


def printed_row(event: Event, message: Message) -> tuple[Any, ...]:
    """An event's line, and the dead letter that an invalid one leaves."""
    text = line(event, message)
    if not event.error:
        return (text, *[None] * 8)
    return (text, event.raw_key, event.raw, *message[2:], *event.error)


def converted(
    split: Split,
    format: str,
    options: Options,
    target: str,
    target_options: Options,
    lines: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The messages of a split in another format; at the end, the losses of all of them, counted.

    With `lines`, a row holds the lines of many messages: Spark's cost is per row.
    """
    converter = Converter(format, options, target, target_options)
    lost: Counter[str] = Counter()
    tally: Tally = Counter()
    batches = read(split, most_bytes_of(options))
    for halves in chain.from_iterable(map(converter.take, batches)):
        outcomes = converter.outcomes(halves)
        lost += halves.lost
        dead = refused_messages(halves.counts, outcomes)
        if dead:
            note(tally, dead.values())
            yield from _rows(dead=list(dead_structs(halves.rest, dead)))
            first = [0, *accumulate(halves.counts)]
            for row in dead:  # a message is written as a whole or not at all
                span = slice(first[row], first[row + 1])
                outcomes[span] = [Encoded([], lossy(e), e.error) for e in outcomes[span]]
        for outcome in outcomes:
            lost.update(outcome.lost)
        found = converter.records(halves, outcomes)
        if lines:
            found = in_lines(found, lost)
        if found.num_rows:
            yield _padded(found)
    lost = +lost
    if lost or tally:
        refused = [(code, message, count) for (code, message), count in tally.items()]
        told = [dict(zip(REFUSED.names, each)) for each in refused]
        yield from _rows(losses=[list(lost.items())], refused=[told])


def note(tally: Tally, errors: Iterable[tuple[str, str]], count: int = 1) -> None:
    """Count errors by code, with a first sentence for each.

    >>> tally = Counter()
    >>> note(tally, [("lossy", "a"), ("lossy", "b")])
    >>> tally
    Counter({('lossy', 'a'): 2})
    """
    for code, message in errors:
        tally[code, next((m for c, m in tally if c == code), message)] += count


def in_lines(records: pa.RecordBatch, lost: Counter[str]) -> pa.RecordBatch:
    """Messages as lines, many to a row; keys and tombstones are lost, and counted."""
    values = records.column("value")
    lost["null-values"] += values.null_count
    lost["message-keys"] += len(values) - records.column("key").null_count
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
    texts = pc.binary_join(grouped, b"\n")
    return pa.RecordBatch.from_arrays(
        [texts if f.name == "value" else pa.nulls(len(texts), f.type) for f in RECORD_SCHEMA],
        schema=RECORD_SCHEMA,
    )


def refused_messages(counts: list[int], outcomes: list[Encoded]) -> dict[int, tuple[str, str]]:
    """The messages of which an event was refused, by number, and why."""
    if not any(outcome.error for outcome in outcomes):
        return {}
    found: dict[int, tuple[str, str]] = {}
    at = 0
    for row, events in enumerate(counts):
        for outcome in outcomes[at : at + events]:
            if outcome.error is not None:
                found.setdefault(row, outcome.error)
        at += events
    return found


def lossy(outcome: Encoded) -> list[str]:
    """What an event would have lost, where it was refused for that."""
    return outcome.lost if outcome.error and outcome.error[0] == "lossy" else []


def dead_structs(
    batch: pa.RecordBatch, dead: Mapping[int, tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Dead letters: the message as it was, and why."""
    for row, message in enumerate(messages(batch.take(pa.array(list(dead), pa.int32())))):
        told = (message.key, message.value, *message[2:], *list(dead.values())[row])
        yield dict(zip(DEAD_SCHEMA.names, told))


def _rows(**columns: list[Any]) -> Iterator[pa.RecordBatch]:
    rows = max(map(len, columns.values()))
    arrays = [
        pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(rows, f.type)
        for f in CONVERTED_SCHEMA
    ]
    yield pa.RecordBatch.from_arrays(arrays, schema=CONVERTED_SCHEMA)


def _padded(records: pa.RecordBatch) -> pa.RecordBatch:
    kept = records.select(MESSAGE_SCHEMA.names)
    rest = CONVERTED_SCHEMA.types[len(MESSAGE_SCHEMA) :]
    arrays = [*kept.columns, *(pa.nulls(kept.num_rows, type_) for type_ in rest)]
    return pa.RecordBatch.from_arrays(arrays, schema=CONVERTED_SCHEMA)


def counted(split: Split, options: Options) -> Iterator[pa.RecordBatch]:
    """How many messages of a split are of which format, dialect and kind."""
    decode = decoder("auto", **options)
    limit = most_bytes_of(options)
    counts: Counter[tuple[str | None, ...]] = Counter()
    for batch in read(split, limit):
        for _, events, per_message in decode_parts(batch, decode, limit):
            at = 0
            for n in per_message:
                e = events[at]
                counts[e.format, e.dialect, e.kind, e.error[0] if e.error else None] += 1
                at += n
    if counts:
        columns = [*zip(*counts), list(counts.values())]
        yield pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, COUNT_SCHEMA)], schema=COUNT_SCHEMA
        )


def messages(batch: pa.RecordBatch) -> Iterator[Message]:
    """The rows of a Kafka-shaped batch, absent columns as None."""
    absent = [None] * batch.num_rows
    found = {n: batch.column(n) for n in SOURCE_COLUMNS if n in batch.schema.names}
    if "timestamp" in found:
        found["timestamp"] = pc.cast(found["timestamp"], pa.int64())
    columns = [found[n].to_pylist() if n in found else absent for n in Message._fields]
    return map(Message._make, zip(*columns))


def dead_letters(events: pa.RecordBatch) -> pa.RecordBatch:
    """The dead letters among a batch of events."""
    invalid = events.filter(pc.equal(events.column("kind"), "invalid"))
    origin, error = invalid.column("origin"), invalid.column("error")
    columns = [
        invalid.column("raw_key"),
        invalid.column("raw"),
        *(pc.struct_field(origin, n) for n in ("topic", "partition", "offset", "timestamp")),
        *(pc.struct_field(error, n) for n in ("code", "message")),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DEAD_SCHEMA)
