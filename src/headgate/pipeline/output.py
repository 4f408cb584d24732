"""What a pass makes of selected changes, and how it makes messages of them.

For sinks of tables: table_output.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.headers import ID_HEADER, from_text, to_text
from headgate.codec.encoder import Encoded, Encoder
from headgate.codec.packing import packed
from headgate.config.job import Job
from headgate.core.event import Record
from headgate.fastpath.convert import in_rows
from headgate.pipeline.change import Change, MessageBatch
from headgate.pipeline.counts import table_name
from headgate.pipeline.delivery import DeliveryCheck, Fitting
from headgate.pipeline.plan import KnownTopics, Shapes
from headgate.pipeline.rejections import Rejection, Rejections
from headgate.pipeline.spliced_batch import FastPathResult
from headgate.pipeline.work_rows import slices, work_rows
from headgate.spark.row_packing import flat_rows, pack_messages


class Output(Protocol):
    """Makes rows of selected changes."""

    topics: list[set[str]]
    """By sink, where messages go."""
    losses: Counter[tuple[str, ...]]
    """What messages lost, by the codes of each."""
    with_headers: bool
    """Whether any message has more headers than its id."""

    @property
    def shapes(self) -> list[Shapes]:
        """By sink, the shapes of the tables that have changes; messages have none."""

    def prepare(self, changes: Sequence[Change]) -> Rejections:
        """Make what is written of changes; the result is what cannot be written, and why."""

    def accepts(self, spliced: FastPathResult, messages: MessageBatch) -> bool:
        """Whether what was spliced of messages can be written as it is."""

    def rows(
        self, step: int, changes: Sequence[Change], spliced: FastPathResult | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of changes that were prepared, and of those that the fast path took."""


class Outgoing(NamedTuple):
    """Messages, what each is known by, and its headers as text."""

    records: list[Record]
    names: list[str | None]
    headers: list[str | None]

    def flat(self, part: slice = slice(None)) -> pa.RecordBatch:
        """Messages as rows."""
        records = self.records[part]
        return flat_rows(
            len(records),
            key=pa.array([r.key for r in records], pa.binary()),
            value=pa.array([r.value for r in records], pa.binary()),
            id=pa.array(self.names[part], pa.string()),
            partition=pa.array([r.partition for r in records], pa.int32()),
            topic=pa.array([r.topic for r in records], pa.string()),
            headers=pa.array(self.headers[part], pa.string()),
            table=pa.array([r.table for r in records], pa.string()),
        )


def outgoing(records: list[Record]) -> Outgoing:
    """Messages whose ids are among their headers."""
    messages = Outgoing(records, [], [])
    for record in records:
        headers = dict(record.headers or ())
        messages.names.append(headers.pop(ID_HEADER, b"").decode() or None)
        messages.headers.append(to_text(headers.items()))
    return messages


class MessageOutput:
    """Messages in the format of each sink."""

    def __init__(
        self, job: Job, encoders: Sequence[Encoder], topics: Sequence[KnownTopics]
    ) -> None:
        self.encoders = encoders
        self.fittings = [Fitting(sink, each) for sink, each in zip(job.sinks, encoders)]
        self.checks = [
            DeliveryCheck(sink, known.refused, len(job.sinks) > 1)
            for sink, known in zip(job.sinks, topics or [KnownTopics()] * len(job.sinks))
        ]
        self.topics: list[set[str]] = [set() for _ in encoders]
        self.losses: Counter[tuple[str, ...]] = Counter()
        self.with_headers = False
        self.shapes: list[Shapes] = []

    def prepare(self, changes: Sequence[Change]) -> Rejections:
        """Encode changes for every sink; a message that one sink cannot take goes to none."""
        rejections: Rejections = {}
        for change in changes:
            change.encoded = [encoded(encoder, change) for encoder in self.encoders]
            for fit, outcome in zip(self.fittings, change.encoded):
                fit(change.event, outcome)
        for sink, check in enumerate(self.checks):
            for change in changes:
                error = check(change, change.encoded[sink])
                if error is not None:
                    rejection = Rejection(*error, table_name(change.event))
                    rejections.setdefault(change.message, rejection)
        return rejections

    def accepts(self, spliced: FastPathResult, messages: MessageBatch) -> bool:
        """Whether what was spliced can be written: the fast path has looked at its sizes."""
        return True

    def rows(
        self, step: int, changes: Sequence[Change], spliced: FastPathResult | None
    ) -> Iterator[pa.RecordBatch]:
        """The messages for every sink, in the order of what they came of."""
        for sink, encoder in enumerate(self.encoders):
            outcomes = [change.encoded[sink] for change in changes]
            self.losses.update(tuple(outcome.lost) for outcome in outcomes if outcome.lost)
            outgoing = packed_rows(encoder, changes, outcomes) if encoder.packer else (
                named(changes, outcomes)
            )  # fmt: skip
            topics = self.topics[sink]
            topics.update({r.topic for r in outgoing.records if r.topic is not None})
            self.with_headers |= any(outgoing.headers)
            if spliced is not None:
                rows, columns = spliced.written_messages(sink)
                topics.update(pc.unique(columns["topic"].drop_null()).to_pylist())
                self.with_headers |= any_headers(columns)
                if len(rows):
                    encoded = [c.row for c, o in zip(changes, outcomes) for _ in o.records]
                    first = flat_rows(len(rows), **columns)
                    flat = in_rows(first, rows, outgoing.flat(), spliced.rows[encoded])
                    yield work_rows("messages", **pack_messages(sink, step, flat))
                    continue
            for part in slices([len(r.key or b"") + len(r.value or b"") for r in outgoing.records]):
                yield work_rows("messages", **pack_messages(sink, step, outgoing.flat(part)))


def any_headers(columns: Mapping[str, pa.Array]) -> bool:
    """Whether any of some messages has headers."""
    return "headers" in columns and columns["headers"].null_count < len(columns["headers"])


def encoded(encoder: Encoder, change: Change) -> Encoded:
    """What an encoder makes of an event, or of a tombstone and the delete before it."""
    encoder.topic = change.topic
    if change.event.kind == "tombstone":
        return encoder.tombstone(change.event, change.delete)
    return encoder(change.event, change.untyped)


def named(changes: Sequence[Change], outcomes: Sequence[Encoded]) -> Outgoing:
    """Messages with what they are known by, and the headers that were sent or are the format's."""
    outgoing = Outgoing([], [], [])
    records, names, headers = outgoing
    for change, outcome in zip(changes, outcomes):
        sent = change.headers
        for n, record in enumerate(outcome.records):
            if change.topic is not None:
                record.topic = change.topic
            records.append(record)
            names.append(f"{change.name}.{n}" if n else change.name)
            if sent or record.headers:
                headers.append(to_text((*from_text(sent), *(record.headers or ()))))
            else:
                headers.append(None)
    return outgoing


def packed_rows(
    encoder: Encoder, changes: Sequence[Change], outcomes: Sequence[Encoded]
) -> Outgoing:
    """Rows joined into messages; a message has the name of its first row."""
    for change, outcome in zip(changes, outcomes):
        for n, record in enumerate(outcome.records):
            if change.topic is not None:
                record.topic = change.topic
            name = f"{change.name}.{n}" if n else change.name
            record.headers = ((ID_HEADER, name.encode()),)
    records, _ = packed(encoder, [change.event for change in changes], outcomes)
    return outgoing(records)
