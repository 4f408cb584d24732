"""The walk: messages of a batch, a pass over its partitions, dead letters, sinks, then the state.

Spark calls `process` for each micro-batch. After a crash it repeats a batch with the same messages;
everything here gives the same result then, and a state is written when all sinks have theirs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.arrow.headers import ID_HEADER, TYPE
from headgate.codec.encoder import Encoder
from headgate.config.job import Job, Source
from headgate.core.batches import SourceRange
from headgate.core.errors import HeadgateError, SpliceError
from headgate.core.event import Event, Record
from headgate.pipeline.balance import check_balance
from headgate.pipeline.batch_pass import PassResult, PassRunner, released_on_error
from headgate.pipeline.catalog import catalog_after
from headgate.pipeline.ddl_schedule import lacks_ddl, merged_ddl
from headgate.pipeline.inbox import INBOX, inbox_messages, with_inbox
from headgate.pipeline.ordering import commit_time
from headgate.pipeline.output import outgoing
from headgate.pipeline.plan import BatchPlan, KnownTopics, PartitionReport, PlannedDdl
from headgate.pipeline.row_filter.values import with_condition_values
from headgate.pipeline.row_filter.verdicts import with_verdicts
from headgate.pipeline.state import State, States
from headgate.sinks.base import Batch, Target
from headgate.sinks.files.writer import FileWriter, Owner
from headgate.sources.base import Origin, source_range
from headgate.spark.checkpoint import check_progress, query_id
from headgate.spark.row_packing import PACKED_COLUMNS, packed_rows_of, unpacked
from headgate.spark.storage import Storage

RECORD_DDL = f"key binary, value binary, partition int, topic string, headers {TYPE}"
JUDGED_MESSAGES = 100
"""The share of dead letters is that of at least so many messages."""


class TooManyInvalid(HeadgateError):
    """More messages than `max_invalid` allows cannot be processed: the batch is not written."""


@dataclass
class Parts:
    """What a sink gets of a batch, one part after the other, and the topics it goes to."""

    packed: bool = False
    """Whether the sink takes packed rows."""
    frames: list[DataFrame] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)


class Engine:
    """A job at work."""

    def __init__(self, spark: SparkSession, job: Job) -> None:
        self.spark = spark
        self.storage = Storage(f"{job.checkpoint}/headgate", job.settings)
        self.spark_checkpoint = Storage(f"{job.checkpoint}/query", job.settings)
        self.storage.make_folder(INBOX)
        self.spark_checkpoint.make_folder("")
        self.states = States(self.storage)
        check_progress(self.spark_checkpoint)
        source = job.source
        origin = Origin(
            source.name, source.options, job.settings, self.storage, self.spark_checkpoint
        )
        self.reader = source.connector.open(spark, origin)
        job_id = self.states.job_id()
        self.job = replace(
            job,
            source=with_schema(job.source, job.schema),
            sinks=tuple(replace(s, options=s.encoder_options()) for s in job.sinks),
        )
        self.writers = [
            s.connector.open(spark, Target(job_id, s.name, s.options, job.settings))
            for s in job.sinks
        ]
        self.topics = [writer.topics for writer in self.writers]
        parked = Storage(job.dead_letters, job.settings)
        self.dead_letters = FileWriter(parked, Owner(job_id, job.checkpoint), lines=False)
        self.signatures: dict[int, set[str]] = {}
        self.judging = any(each.where for each in job.filters)
        self.passes = PassRunner(spark, self.job)
        self.busy = threading.Lock()
        self.state = self.states.latest()
        self.still_ours: Callable[[], None] = lambda: None
        """Refuses to go on where another instance of the job has taken over."""
        self.on_batch: Callable[[State, list[PartitionReport], float], None] = lambda *_: None

    def close(self) -> None:
        """Let go of what the engine holds open."""
        self.reader.close()

    def stream(self) -> DataFrame:
        """What the query reads."""
        stream = self.reader.stream(self.job.max_messages)
        return with_inbox(stream, self.storage.for_spark(INBOX))

    def process(self, batch: DataFrame, number: int) -> None:
        """One micro-batch; dead letters that come back go last."""
        with self.busy:
            started = time.monotonic()
            self.states.belongs_to(query_id(self.spark_checkpoint))
            state = self.states.before(number)
            before = state.totals
            parts = [Parts(sink.connector.takes_packed_rows) for sink in self.job.sinks]
            dead_letters: list[DataFrame] = []
            passes: list[PassResult] = []
            reports: list[PartitionReport] = []
            files: list[tuple[str, str]] = []
            try:
                # Spark deletes what came back once its batch is committed, so that mostly there is
                # nothing to look for.
                for inbox in (False, True) if self.storage.names(INBOX) else (False,):
                    messages, paths = (
                        inbox_messages(batch, self.job.settings)
                        if inbox
                        else self.reader.messages(batch)
                    )
                    files += paths
                    if messages is None:
                        continue
                    again = inbox or self.job.source.connector.redelivers
                    result, ddl = self.run_pass(messages, state, again, inbox)
                    passes.append(result)
                    passed = result.reports
                    if any(report.counts.rejected for report in passed):
                        dead_letters.append(result.dead_letters())
                    for sink in range(len(self.job.sinks)):
                        self.add_parts(parts[sink], sink, result.rows, passed, ddl)
                    state = state.after(number, passed, ddl, replayed=inbox)
                    state.catalog = catalog_after(self.storage, state.catalog, self.job.source, ddl)
                    reports += passed
                    if not inbox:
                        state.judged = self.judge(state.judged, passed)
                check_balance(number, before, state.totals)
                self.add_watermark(state, number, parts)
                source = source_range(self.reader, number, files)
                self.write(Batch(number, source, self.still_ours), dead_letters, parts)
            finally:
                for result in passes:
                    result.release()
            state.batch = number
            self.still_ours()
            self.states.write(state)
            self.state = state
            self.on_batch(state, reports, time.monotonic() - started)

    def write(self, batch: Batch, dead_letters: list[DataFrame], parts: list[Parts]) -> None:
        """Write dead letters and messages; none of them where one target refuses the batch."""
        for writer in (self.dead_letters, *self.writers):
            writer.verify(batch)
        self.reader.verify(batch.source)
        batch.still_ours()
        self.dead_letters.write(batch, dead_letters, ())
        for writer, part in zip(self.writers, parts):
            writer.write(batch, part.frames, part.topics)

    def run_pass(
        self, messages: DataFrame, state: State, again: bool, replayed: bool = False
    ) -> tuple[PassResult, list[PlannedDdl]]:
        """A pass whose plan lacked nothing, and the DDL that is new."""
        plan = state.plan(self.storage.uri)
        plan = replace(plan, by_place=again, topics=self.known_topics())
        if replayed:  # its tombstones belong to no delete
            known = {
                p: msgspec.structs.replace(s, last_delete=None) for p, s in plan.partitions.items()
            }
            plan = replace(plan, partitions=known)
        while True:
            result = self.passes.run(self.with_verdicts(messages), plan)
            with released_on_error(result.rows):
                if any(report.fastpath_wrong for report in result.reports):
                    raise SpliceError
                more = self.next_plan(plan, result.reports)
            if more is None:
                return result, list(merged_ddl(plan.ddl, result.reports))
            result.release()
            plan = more

    def with_verdicts(self, messages: DataFrame) -> DataFrame:
        """Messages with the verdicts of the job's row conditions."""
        if not self.judging:
            return messages
        looked = with_condition_values(messages, self.job)
        return with_verdicts(looked, self.job, self.signatures)

    def next_plan(self, plan: BatchPlan, reports: list[PartitionReport]) -> BatchPlan | None:
        """What a pass should have known; None if it knew everything."""
        unknown = [each for report in reports for each in report.signatures]
        for rule, signature in unknown:
            self.signatures.setdefault(rule, set()).add(signature)
        ddl = merged_ddl(plan.ddl, reports)
        lacking = any(lacks_ddl(report, plan.ddl, ddl) for report in reports)
        disordered = {r.state.partition for r in reports if r.disordered} - plan.disordered
        topics = self.met_topics(reports, plan.topics)
        if not (unknown or lacking or disordered or topics):
            return None
        return replace(
            plan,
            ddl=ddl,
            disordered=plan.disordered | disordered,
            topics=self.known_topics(),
        )

    def known_topics(self) -> tuple[KnownTopics, ...]:
        """What is known of each sink's topics."""
        return tuple(
            KnownTopics() if each is None else KnownTopics(dict(each.known), dict(each.refused))
            for each in self.topics
        )

    def met_topics(self, reports: list[PartitionReport], known: tuple[KnownTopics, ...]) -> bool:
        """Look at topics that a pass met first; whether that makes another pass of it."""
        changed = False
        for sink, topics in enumerate(self.topics):
            if topics is None:
                continue
            met = {topic for report in reports for topic in report.topics[sink]}
            topics.ensure(met)
            usual = self.job.sinks[sink].options["partition_num"]
            changed |= any(
                topic in topics.refused
                or topics.known[topic] != known[sink].partitions.get(topic, usual)
                for topic in met
            )
        return changed

    def add_parts(
        self,
        parts: Parts,
        sink: int,
        work: DataFrame,
        reports: list[PartitionReport],
        ddl: list[PlannedDdl],
    ) -> None:
        """A sink's messages in parts that are written one after the other: DDL is a barrier."""
        rows = work.where(F.col("sink") == sink)
        with_headers = any(report.with_headers for report in reports)
        steps = {step for report in reports for step in report.steps}
        parts.topics.update(t for report in reports for t in report.topics[sink])
        encoder = self.encoder(sink)
        waiting: list[Record] = []
        for step in range(len(ddl) + 1):
            if step in steps:
                self.add_records(parts, waiting)
                waiting = []
                chosen = rows.where(F.col("step") == step) if ddl else rows
                packed = chosen.select(*PACKED_COLUMNS)
                parts.frames.append(packed if parts.packed else unpacked(packed, with_headers))
            if step < len(ddl):
                waiting += self.encoded(encoder, ddl[step])
        self.add_records(parts, waiting)

    def encoder(self, sink: int) -> Encoder:
        """An encoder for what the driver writes itself: DDL and watermarks."""
        chosen = self.job.sinks[sink]
        encoder = Encoder(chosen.format, **chosen.options)
        topics = self.topics[sink]
        encoder.partitions = {} if topics is None else topics.known
        return encoder

    def encoded(self, encoder: Encoder, ddl: PlannedDdl) -> list[Record]:
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

    def add_watermark(self, state: State, number: int, parts: list[Parts]) -> None:
        """A watermark at the end of a batch, when every partition has passed it."""
        expected = tuple(self.reader.ends(number))
        watermark = state.watermark(expected)
        if watermark is None or watermark <= (state.announced or 0):
            return
        event = Event("watermark", commit_ts=watermark, event_time=commit_time(watermark))
        for sink, part in enumerate(parts):
            records = self.broadcast(sink, event, state.topics)
            self.add_records(part, with_ids(records, f"watermark-{watermark}"))
        state.announced = watermark

    def broadcast(self, sink: int, event: Event, topics: list[list[str]]) -> list[Record]:
        """Messages of an event that is of no table: for a sink of several topics, to each."""
        encoder, known = self.encoder(sink), self.topics[sink]
        records = encoder(event).records
        if known is None or all(record.topic is not None for record in records):
            return records
        found: list[Record] = []
        names = topics[sink] if topics else []
        known.ensure(names)
        for encoder.topic in names:
            found += encoder(event).records
        return found

    def heartbeat(self) -> None:
        """Tell readers of Kafka that the job lives, and how far it is: to its newest change."""
        if self.state.newest is None or not self.busy.acquire(blocking=False):
            return
        try:
            now = int(time.time() * 1_000_000)
            event = Event("heartbeat", event_time=self.state.newest, emit_time=now)
            batch = Batch(self.state.batch, SourceRange(), self.still_ours)
            for sink, each in enumerate(self.writers):
                connector = self.job.sinks[sink].connector
                if connector.takes_heartbeats:
                    parts = Parts(connector.takes_packed_rows)
                    self.add_records(parts, self.broadcast(sink, event, self.state.topics))
                    each.write(batch, parts.frames, parts.topics)
        finally:
            self.busy.release()

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

    def judge(
        self, before: list[tuple[int, int]], reports: list[PartitionReport]
    ) -> list[tuple[int, int]]:
        """Stop where more messages are dead than the job allows; else what the next is judged by.

        Over a number of messages, so that one bad message among few does not stop a job.
        """
        messages = sum(report.counts.messages for report in reports)
        dead = sum(
            n for r in reports for counts in r.counts.rejected.values() for n in counts.values()
        )
        window = [*before, (messages, dead)]
        while len(window) > 1 and sum(n for n, _ in window[1:]) >= JUDGED_MESSAGES:
            window.pop(0)
        seen, bad = (sum(column) for column in zip(*window))
        most = self.job.max_invalid
        if most is not None and bad > most * max(seen, JUDGED_MESSAGES):
            example = next(
                (r.rejection for r in reports if r.rejection), ("", "nothing more is known")
            )
            raise TooManyInvalid(
                f"{bad} of the last {seen} messages cannot be processed, and max_invalid is "
                f"{most:.2%}; the first: {example[0]}: {example[1]}. Nothing of this batch was "
                "written: start the job again after a fix, or with a higher max_invalid"
            )
        return window


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


def with_schema(source: Source, schema: str | None) -> Source:
    """A source whose decoder knows the job's schema; encoders get its types with the events."""
    if schema is None:
        return source
    return replace(source, options={**source.options, "schema": schema})
