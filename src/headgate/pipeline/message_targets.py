"""Sinks of messages: the messages of a batch in parts that are written one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.arrow.headers import ID_HEADER, TYPE
from headgate.codec.encoder import Encoder
from headgate.config.job import Job
from headgate.core.event import Event, Record
from headgate.landing.resolution import Resolved
from headgate.pipeline.batch_pass import PassResult
from headgate.pipeline.ordering import commit_time
from headgate.pipeline.output import outgoing
from headgate.pipeline.plan import Emit, KnownTopics, PartitionReport, PlannedDdl
from headgate.pipeline.state import State
from headgate.pipeline.targets import Merged
from headgate.sinks.base import Batch, Target
from headgate.spark.row_packing import Unpacking, packed_rows_of

RECORD_DDL = f"key binary, value binary, partition int, topic string, headers {TYPE}"


@dataclass
class Parts:
    """What a sink gets of a batch, one part after the other, and the topics it goes to."""

    packed: bool = False
    """Whether the sink takes packed rows."""
    frames: list[DataFrame] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)


class MessageTargets:
    """The sinks of a job that writes messages."""

    emit: Emit = "messages"

    def __init__(self, spark: SparkSession, job: Job, job_id: str) -> None:
        self.spark, self.job = spark, job
        self.writers = [
            s.connector.open(spark, Target(job_id, s.name, s.options, job.settings))
            for s in job.sinks
        ]
        self.topics = [writer.topics for writer in self.writers]
        self.unpacking = Unpacking()

    def new_batch(self) -> MessageSteps:
        """What collects a batch."""
        return MessageSteps(self)

    def known_topics(self) -> tuple[KnownTopics, ...]:
        """What is known of each sink's topics."""
        return tuple(
            KnownTopics() if each is None else KnownTopics(dict(each.known), dict(each.refused))
            for each in self.topics
        )

    def met_topics(self, reports: Sequence[PartitionReport], known: Sequence[KnownTopics]) -> bool:
        """Look at topics that a pass met first; whether that makes another pass of it."""
        changed = False
        for sink, topics in enumerate(self.topics):
            if topics is None:
                continue
            met = {topic for report in reports for topic in report.topics[sink]}
            topics.ensure(met)
            usual = self.job.sinks[sink].encoder_options()["partition_num"]
            changed |= any(
                topic in topics.refused
                or topics.known[topic] != known[sink].partitions.get(topic, usual)
                for topic in met
            )
        return changed

    def heartbeat(self, event: Event, batch: Batch, topics: list[list[str]]) -> None:
        """Tell readers that the job lives."""
        for sink, writer in enumerate(self.writers):
            connector = self.job.sinks[sink].connector
            if connector.takes_heartbeats:
                parts = Parts(connector.takes_packed_rows)
                self.add_records(parts, self.broadcast(sink, event, topics))
                writer.write(batch, parts.frames, parts.topics)

    def idle(self, batch: Batch) -> None:
        """Messages do not wait."""

    def encoder(self, sink: int) -> Encoder:
        """An encoder for what the driver writes itself: DDL and watermarks."""
        chosen = self.job.sinks[sink]
        encoder = Encoder(chosen.format, **chosen.encoder_options())
        topics = self.topics[sink]
        encoder.partitions = {} if topics is None else topics.known
        return encoder

    def broadcast(self, sink: int, event: Event, topics: list[list[str]]) -> list[Record]:
        """Messages of an event that belongs to no table: for a sink of several topics, to each."""
        encoder, known = self.encoder(sink), self.topics[sink]
        records = encoder(event).records
        if known is None or all(record.topic is not None for record in records):
            return records
        copies: list[Record] = []
        names = topics[sink] if topics else []
        known.ensure(names)
        for encoder.topic in names:
            copies += encoder(event).records
        return copies

    def add_records(self, parts: Parts, records: list[Record]) -> None:
        """Messages that the driver has, as a part of their own."""
        if not records:
            return
        if parts.packed:
            table = pa.Table.from_batches([packed_rows_of(outgoing(records).flat())])
            parts.frames.append(self.spark.createDataFrame(table).coalesce(1))
        else:
            rows = [(r.key, r.value, r.partition, r.topic, r.headers) for r in records]
            parts.frames.append(self.spark.createDataFrame(rows, RECORD_DDL).coalesce(1))
        parts.topics.update(r.topic for r in records if r.topic is not None)


class MessageSteps:
    """The messages of one batch for all sinks."""

    def __init__(self, targets: MessageTargets) -> None:
        self.targets = targets
        sinks = targets.job.sinks
        self.parts = [Parts(sink.connector.takes_packed_rows) for sink in sinks]

    def add(self, result: PassResult, ddl: Sequence[PlannedDdl], catalog: str | None) -> None:
        """A pass's messages in parts that are written one after the other: DDL is a barrier."""
        for sink, parts in enumerate(self.parts):
            self.add_parts(sink, parts, result, ddl)

    def add_parts(
        self, sink: int, parts: Parts, result: PassResult, ddl: Sequence[PlannedDdl]
    ) -> None:
        """The parts of one sink."""
        targets, reports = self.targets, result.reports
        with_headers = any(report.with_headers for report in reports)
        steps = {step for report in reports for step in report.steps}
        parts.topics.update(t for report in reports for t in report.topics[sink])
        encoder = targets.encoder(sink)
        waiting: list[Record] = []
        for step in range(len(ddl) + 1):
            if step in steps:
                targets.add_records(parts, waiting)
                waiting = []
                unpacking = targets.unpacking
                parts.frames.append(
                    unpacking.rows(result.rows, sink, step)
                    if parts.packed
                    else unpacking.messages(result.rows, sink, step, with_headers)
                )
            if step < len(ddl):
                waiting += encoded(encoder, ddl[step])
        targets.add_records(parts, waiting)

    def add_transaction_end(self, end: Resolved) -> None:
        """Messages do not wait for it."""

    def add_watermark(self, watermark: int, state: State) -> None:
        """The messages of a watermark, unless it was announced before."""
        if watermark <= (state.announced or 0):
            return
        event = Event("watermark", commit_ts=watermark, event_time=commit_time(watermark))
        for sink, parts in enumerate(self.parts):
            records = self.targets.broadcast(sink, event, state.topics)
            self.targets.add_records(parts, with_ids(records, f"watermark-{watermark}"))

    def verify(self, batch: Batch) -> None:
        """Refuse a batch that does not follow what was written before."""
        for writer in self.targets.writers:
            writer.verify(batch)

    def write(self, batch: Batch) -> Merged:
        """Write the messages, sink by sink."""
        for writer, parts in zip(self.targets.writers, self.parts):
            writer.write(batch, parts.frames, parts.topics)
        return {}


def encoded(encoder: Encoder, ddl: PlannedDdl) -> list[Record]:
    """The messages of a DDL event."""
    if not ddl.wanted:
        encoder.learn(ddl.event)
        return []
    encoder.topic = ddl.topic
    records = with_ids(encoder(ddl.event).records, ddl.id)
    for record in records:
        record.table = ddl.event.table
        if ddl.topic is not None:
            record.topic = ddl.topic
    return records


def with_ids(records: list[Record], name: str) -> list[Record]:
    """Records with what each is known by: a copy on another partition is a message of its own.

    >>> records = with_ids([Record(b"", partition=0), Record(b"", partition=1)], "w")
    >>> [record.headers for record in records]
    [(('headgate-id', b'w'),), (('headgate-id', b'w.1'),)]
    """
    for n, record in enumerate(records):
        place = n if record.partition is None else record.partition
        message_id = f"{name}.{place}" if place else name
        record.headers = (*(record.headers or ()), (ID_HEADER, message_id.encode()))
    return records
