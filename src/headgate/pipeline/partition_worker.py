"""A pass over the messages of partitions: decode, deduplicate, select, write.

A pass has no side effects but new files that nobody knows yet, so it can run twice; where it lacked
something that only the whole batch tells (the DDL of another partition, a disorder), it is run
again with that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.events import bounded, decode_columns, decode_parts, most_bytes_of
from headgate.arrow.messages import Partition
from headgate.arrow.records import events_of
from headgate.codec.encoder import Encoder
from headgate.codec.sequence import sequence
from headgate.config.job import Job
from headgate.core.event import Event, qualified
from headgate.core.limits import BATCH_ROWS, SPLICED_ROWS
from headgate.landing.resolution import order_text
from headgate.pipeline.catalog import file_tables, known_tables, read_catalog
from headgate.pipeline.change import KEEP, Change, EventBatch, MessageBatch
from headgate.pipeline.codecs import job_decoder, job_encoders
from headgate.pipeline.counts import add_counts, add_table, full_name
from headgate.pipeline.ddl_schedule import DdlSchedule
from headgate.pipeline.dedup import identity, settle
from headgate.pipeline.fast_path import FastPath
from headgate.pipeline.intake import Intake
from headgate.pipeline.ordering import by_commit
from headgate.pipeline.output import MessageOutput, Output
from headgate.pipeline.plan import BatchPlan, PartitionReport, PartitionState, PlannedDdl
from headgate.pipeline.rejections import DeadLetters, invalid_event
from headgate.pipeline.spliced_batch import FastPathResult
from headgate.pipeline.table_output import TableOutput, placed
from headgate.selection.selection import Selection
from headgate.spark.api import fast_worker
from headgate.spark.storage import Storage

_json = msgspec.json.Encoder(enc_hook=str).encode
"""The last delete may hold numbers as they were sent, which are texts of a class of their own."""


def worker_function(
    job: Job, plan: BatchPlan, report: Callable[[list[bytes]], None]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs over each of its partitions of a batch's messages.

    It calls `report` once, at its end, with a `PartitionReport` as JSON for each topic partition.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            worker = Worker(job, plan)
            for batch in batches:
                for part in bounded(batch, SPLICED_ROWS):
                    for partition, messages in by_partition(part):
                        if partition[1] is not None or plan.by_place:  # else they are paths
                            yield from worker.take(partition, messages)
            yield from worker.finish()
            report(worker.reports)

    return run


def by_partition(batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
    """A batch cut where its partition changes."""
    topics, numbers = batch.column("topic"), batch.column("partition")
    start = 0
    while start < batch.num_rows:
        topic, number = topics[start], numbers[start]
        same = pc.and_(is_equal(topics, topic), is_equal(numbers, number))
        end = pc.index(same.slice(start), False).as_py()
        end = batch.num_rows if end < 0 else start + end
        yield (topic.as_py(), number.as_py()), batch.slice(start, end - start)
        start = end


def is_equal(column: pa.Array, value: pa.Scalar) -> pa.Array:
    """Which rows of a column have a value; null equals null."""
    return pc.fill_null(pc.equal(column, value), False) if value.is_valid else pc.is_null(column)


class Worker:
    """A pass over some partitions, and what their passes share."""

    def __init__(self, job: Job, plan: BatchPlan) -> None:
        self.job, self.plan = job, plan
        self.decode = job_decoder(job.source)
        self.gives_events = job.source.connector.gives == "events"
        self.file_tables = file_tables(job.source)
        self.limit = most_bytes_of(job.source.options)
        self.selection = Selection(job)
        self.storage = Storage(plan.state_uri, job.settings)
        self.catalog = read_catalog(self.storage, plan.catalog)
        self.tables = known_tables(self.storage, plan.catalog, job.source)
        self.encoders: list[Encoder] = []
        self.fast_path: FastPath | None = None
        self.rows_at_once = BATCH_ROWS
        if plan.emit == "tables":
            self.ddl_output: Output = TableOutput(job, plan.job_id)
            self.rows_at_once = SPLICED_ROWS  # as the changes of many tables are few of each
        else:
            self.encoders = job_encoders(job, plan.topics)
            # DDL has encoders of its own, which learn from it: rows are completed elsewhere.
            self.ddl_output = MessageOutput(job, job_encoders(job, plan.topics), plan.topics)
        if not plan.by_place and not self.gives_events:
            self.fast_path = FastPath(job, self.tables, plan.catalog, plan.topics, self.encoders)
        self.partitions: dict[Partition, PartitionPass] = {}
        self.reports: list[bytes] = []

    def output(self) -> Output:
        """What makes rows of the changes of a partition."""
        if self.plan.emit == "tables":
            return TableOutput(self.job, self.plan.job_id)
        return MessageOutput(self.job, self.encoders, self.plan.topics)

    def take(self, partition: Partition, messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Process messages of a partition."""
        if partition not in self.partitions:
            self.partitions[partition] = PartitionPass(self, partition)
        return self.partitions[partition].take(messages)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is pending; then there are the reports."""
        for each in self.partitions.values():
            yield from each.finish()


class PartitionPass:
    """A pass over one partition."""

    def __init__(self, worker: Worker, partition: Partition) -> None:
        self.worker, self.partition = worker, partition
        plan = worker.plan
        state = plan.partitions.get(partition, PartitionState(partition))
        self.report = PartitionReport(state)
        self.counts = self.report.counts
        self.written: Counter[tuple[str | None, str | None, str]] = Counter()
        """Changes by database, table and operation."""
        self.sorts = partition in plan.disordered
        self.pending: list[Change] = []
        """Changes that are sorted when all are there."""
        self.intake = Intake(
            state, self.counts, worker.storage, plan.by_place, worker.selection.condition_of
        )
        self.intake.follows_transactions = any(
            sink.connector.waits_for_watermarks for sink in worker.job.table_sinks
        )
        learnt = worker.catalog.met
        self.ddl = DdlSchedule(plan.ddl, partition, worker.tables, learnt, self.sorts)
        self.output = worker.output()
        self.dead_letters = DeadLetters(worker.job.redact, plan.emit)
        self.steps: set[int] = set()

    def take(self, messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Process messages that follow those before."""
        worker = self.worker
        first = worker.plan.first + self.counts.messages
        self.counts.messages += messages.num_rows
        # The fast path knows the tables as they were before the batch.
        if worker.fast_path and not self.sorts and not self.ddl.planned:
            spliced = worker.fast_path.take(self.partition, messages)
            if (
                spliced is not None
                and self.intake.all_new(spliced.ids)
                and self.output.accepts(spliced, MessageBatch(self.partition, messages, first))
            ):
                yield from self.take_spliced(messages, spliced)
                return
        for several in bounded(messages, worker.rows_at_once):
            read = self.given if worker.gives_events else self.decoded
            for batch, events, counts in read(several, first):
                first += batch.rows.num_rows
                changes = self.intake.new_changes(batch, events, counts)
                if self.sorts:
                    self.pending += changes
                else:
                    yield from self.emit(changes)

    def decoded(
        self, messages: pa.RecordBatch, first: int
    ) -> Iterator[tuple[MessageBatch, list[Event], list[int]]]:
        """Messages in parts, with their events, and how many each gave."""
        for part, events, counts in decode_parts(messages, self.worker.decode, self.worker.limit):
            yield MessageBatch(self.partition, part, first), events, counts
            first += part.num_rows

    def given(
        self, rows: pa.RecordBatch, first: int
    ) -> Iterator[tuple[MessageBatch, list[Event], list[int]]]:
        """The events of a source that gives events."""
        events = events_of(pa.RecordBatch.from_struct_array(rows.column("event")))
        batch = EventBatch(self.partition, rows.drop_columns(["event"]), events, first)
        for event in events:
            self.worker.file_tables.give_key(event)
        if not batch.has_offsets and not self.report.unplaced:
            changes = (event for event in events if event.kind in ("row", "ddl"))
            self.report.unplaced = any(sequence(event) is None for event in changes)
        yield batch, events, [1] * len(events)

    def take_spliced(
        self, messages: pa.RecordBatch, spliced: FastPathResult
    ) -> Iterator[pa.RecordBatch]:
        """Process messages of which some are spliced already."""
        self.counts.events += messages.num_rows - spliced.rest.num_rows
        rest = MessageBatch(self.partition, spliced.rest)
        changes = self.intake.new_beside_spliced(rest, spliced)
        yield from self.emit(changes, spliced)
        row = spliced.last_change()
        if row is not None:  # it may be a delete whose tombstone follows
            last, worker = messages.slice(row, 1), self.worker
            events, _ = decode_columns(last, worker.decode, worker.limit)
            ids = [identity(event) for event in events]
            self.intake.pairs.take(events, [0], last.column("key"), ids, [KEEP])

    def emit(
        self, changes: list[Change], spliced: FastPathResult | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Select and write changes in order; what comes before DDL is written before it is met.

        Where there is a result of the fast path, there is no DDL.
        """
        selected: list[Change] = []
        for change in changes:
            event = change.event
            if change.id is None:
                self.intake.clock.see(event)
            if event.kind == "ddl":
                yield from self.write(selected)
                selected = []
                yield from self.meet_ddl(change)
                continue
            if self.ddl.is_due(event):
                yield from self.write(selected)
                selected = []
                self.ddl.pass_until(event)
            if self.select(change):
                selected.append(change)
        yield from self.write(selected, spliced)

    def select(self, change: Change) -> bool:
        """Give a change its new names, its columns and its topic, if the job takes it at all.

        A tombstone is selected as its delete is.
        """
        event, selection = change.event, self.worker.selection
        selects_by = event if change.delete is None else change.delete
        try:
            if not selection.wants(selects_by):
                self.counts.repeated += change.repeated
                self.counts.filtered += not change.repeated
                return False
            change.topic = selection.topic_of(selects_by)
            if change.delete is None:
                change.untyped = self.ddl.tables.complete(event)
                change.event = selection.shape(event)
            else:
                delete = msgspec.structs.replace(change.delete)
                self.ddl.tables.complete(delete)
                change.delete = selection.shape(delete)
        except Exception as error:
            change.event = invalid_event(event, error)
        return True

    def meet_ddl(self, change: Change) -> Iterator[pa.RecordBatch]:
        """Report DDL, and pass it; the driver writes it, and here it shows whether it can."""
        if self.worker.catalog.is_repeat(change.name):
            self.counts.repeated += 1
            return
        event, selection = change.event, self.worker.selection
        place = placed([change], self.worker.plan.job_id)
        [position], [arrival] = place.positions, place.arrivals
        ddl = PlannedDdl(
            event, event, change.name, False, partition=self.partition, position=position,
            order=order_text(position, arrival),
        )  # fmt: skip
        try:
            ddl.wanted, ddl.topic = selection.wants(event), selection.topic_of(event)
            ddl.event = selection.shape(event)
        except Exception as error:
            ddl.event, ddl.wanted, ddl.topic = invalid_event(event, error), False, None
        self.report.ddl.append(ddl)
        if ddl.wanted or ddl.event.error:
            change.event, change.topic = ddl.event, ddl.topic
            rejections = self.worker.ddl_output.prepare([change])
            if rejections:
                ddl.wanted, ddl.rejected = False, True
                self.counts.rejected_events += 1
                yield from self.dead_letters.rows(rejections)
            else:
                for topics, outcome in zip(self.output.topics, change.encoded):
                    topics.update(r.topic for r in outcome.records if r.topic)
        self.ddl.meet(ddl)

    def write(
        self, changes: list[Change], spliced: FastPathResult | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of selected changes; of a message of which one is rejected, a dead letter."""
        if not changes and spliced is None:
            return
        rejections = self.output.prepare(changes)
        if rejections or any(change.repeated for change in changes):
            prepared = len(changes)
            fresh, changes = settle(changes, rejections, self.intake.applied.new)
            self.counts.repeated += prepared - len(fresh)
            self.counts.rejected_events += len(fresh) - len(changes)
            yield from self.dead_letters.rows(rejections)
        if not changes and spliced is None:
            return
        counted = Counter(
            (event.database, event.schema, event.table, event.op or event.kind)
            for event in (change.event for change in changes)
        )
        for (database, schema, table, op), n in counted.items():
            self.written[database, qualified(schema, table), op] += n
        if spliced is not None:
            written, losses = spliced.counted()
            self.written.update(written)
            self.output.losses.update(losses)
            clock = self.intake.clock
            clock.newest = max(clock.newest, spliced.newest(clock.limit))
        self.steps.add(self.ddl.step)
        yield from self.output.rows(self.ddl.step, changes, spliced)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Process what is pending, and report."""
        if self.pending:
            yield from self.emit(by_commit(self.pending))
        report, worker = self.report, self.worker
        for (database, table, op), n in self.written.items():
            add_table(self.counts.rows, full_name(database, table), {op: n})
        for (table, code), n in self.dead_letters.counts.items():
            add_table(self.counts.rejected, table, {code: n})
        for codes, n in self.output.losses.items():
            for code in codes:
                add_counts(self.counts.losses, {code: n})
        report.topics, report.steps = list(map(sorted, self.output.topics)), sorted(self.steps)
        report.shapes = self.output.shapes
        report.with_headers, report.rejection = self.output.with_headers, self.dead_letters.first
        report.disordered, report.signatures = self.intake.order.disordered, self.intake.signatures
        report.fastpath_wrong = worker.fast_path is not None and worker.fast_path.wrong
        report.state = self.intake.state_after(worker.job.remember)
        worker.reports.append(_json(report))
