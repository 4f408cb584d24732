"""The walk: messages of a batch, a pass over its partitions, dead letters, sinks, then the state.

Spark calls `process` for each micro-batch. After a crash it repeats a batch with the same messages;
everything here gives the same result then, and a state is written when all sinks have theirs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
from pyspark.sql import DataFrame, SparkSession

from headgate.arrow.messages import Partition
from headgate.config.job import Job, Source
from headgate.core.batches import SourceRange
from headgate.core.errors import HeadgateError, SpliceError, UsageError
from headgate.core.event import Event
from headgate.pipeline.balance import check_balance
from headgate.pipeline.batch_pass import PassResult, PassRunner, released_on_error
from headgate.pipeline.catalog import catalog_after
from headgate.pipeline.counts import add_table
from headgate.pipeline.ddl_schedule import lacks_ddl, merged_ddl
from headgate.pipeline.inbox import INBOX, inbox_messages, with_inbox
from headgate.pipeline.message_targets import MessageTargets
from headgate.pipeline.plan import BatchPlan, PartitionReport, PlannedDdl
from headgate.pipeline.row_filter.values import with_condition_values
from headgate.pipeline.row_filter.verdicts import with_verdicts
from headgate.pipeline.state import State, States
from headgate.pipeline.table_targets import TableTargets
from headgate.pipeline.targets import BatchSteps, Targets
from headgate.sinks.base import Batch
from headgate.sinks.files.writer import FileWriter, Owner
from headgate.sources.base import Deferred, Files, Origin, source_range
from headgate.spark.checkpoint import check_progress, query_id
from headgate.spark.storage import Storage

MOST_MESSAGES = 10**10
"""No pass has more messages of one partition."""
JUDGED_MESSAGES = 100
"""The share of dead letters is that of at least so many messages."""


class TooManyInvalid(HeadgateError):
    """More messages than `max_invalid` allows cannot be processed: the batch is not written."""


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
        self.job_id = job_id = self.states.job_id()
        self.job = replace(
            job,
            source=with_schema(job.source, job.schema),
            sinks=tuple(replace(s, options=s.encoder_options()) for s in job.sinks),
        )
        self.targets: Targets = (
            TableTargets(spark, self.job, job_id, self.storage)
            if job.table_sinks
            else MessageTargets(spark, job, job_id)
        )
        parked = Storage(job.dead_letters, job.settings)
        self.gives_events = job.source.connector.gives == "events"
        inbox = None if self.gives_events else job.checkpoint
        self.dead_letters = FileWriter(parked, Owner(job_id, inbox), lines=False)
        self.signatures: dict[int, set[str]] = {}
        self.judging = any(each.where for each in job.filters)
        self.passes = PassRunner(spark, self.job)
        self.busy = threading.Lock()
        self.begun = -1
        """The last batch of which anything may have been written."""
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
            if self.is_done(number):
                return
            state = self.states.before(number)
            before = state.totals
            steps = self.targets.new_batch()
            dead_letters: list[DataFrame] = []
            passes: list[PassResult] = []
            reports: list[PartitionReport] = []
            files: list[tuple[str, str]] = []
            try:
                # Spark deletes what came back once its batch is committed, so that mostly there is
                # nothing to look for.
                for inbox in (False, True) if self.has_inbox() else (False,):
                    messages, paths = (
                        inbox_messages(batch, self.job.settings) if inbox else self.messages(batch)
                    )
                    files += paths
                    if messages is None:
                        continue
                    again = inbox or self.job.source.connector.redelivers
                    result, ddl = self.run_pass(messages, number, state, again, inbox)
                    passes.append(result)
                    passed = result.reports
                    if any(report.counts.rejected for report in passed):
                        dead_letters.append(result.dead_letters())
                    steps.add(result, ddl, state.catalog)
                    state = state.after(number, passed, ddl, replayed=inbox)
                    state.catalog = catalog_after(self.storage, state.catalog, self.job.source, ddl)
                    reports += passed
                    if not inbox:
                        state.judged = self.judge(state.judged, passed)
                check_balance(number, before, state.totals)
                resolve(steps, state, tuple(self.reader.ends(number)))
                source = source_range(self.reader, number, files)
                self.write(Batch(number, source, self.still_ours), dead_letters, steps, state)
            finally:
                for result in passes:
                    result.release()
            state.batch, state.source = number, source
            self.still_ours()
            self.states.write(state)
            self.state = state
            self.on_batch(state, reports, time.monotonic() - started)

    def is_done(self, number: int) -> bool:
        """Whether a batch was completed, but Spark was stopped before it had noted that.

        One that holds something else by now, as after a partial restore, is not; files are not
        known before they are read.
        """
        if number != self.state.batch:
            return False
        source = source_range(self.reader, number, [])
        return bool(source.offsets) and source == self.state.source

    def has_inbox(self) -> bool:
        """Whether dead letters may have come back; events do not."""
        return not self.gives_events and bool(self.storage.names(INBOX))

    def messages(self, batch: DataFrame) -> tuple[DataFrame | Deferred | None, Files]:
        """The messages of a batch; where there are row conditions, Spark has to have them."""
        deferred = None if self.judging else self.reader.deferred(batch)
        return self.reader.messages(batch) if deferred is None else (deferred, [])

    def write(
        self, batch: Batch, dead_letters: list[DataFrame], steps: BatchSteps, state: State
    ) -> None:
        """Write dead letters and changes; none of them where one target refuses the batch."""
        self.dead_letters.verify(batch)
        steps.verify(batch)
        self.reader.verify(batch.source)
        batch.still_ours()
        self.begun = batch.number
        self.dead_letters.write(batch, dead_letters, ())
        for table, counts in steps.write(batch).items():
            add_table(state.totals.merged, table, counts)

    def run_pass(
        self, messages: DataFrame | Deferred, number: int, state: State, again: bool, replayed: bool
    ) -> tuple[PassResult, list[PlannedDdl]]:
        """A pass whose plan lacked nothing, and the DDL that is new."""
        plan = replace(
            state.plan(self.storage.uri),
            by_place=again,
            topics=self.targets.known_topics(),
            emit=self.targets.emit,
            job_id=self.job_id,
            first=(2 * number + replayed) * MOST_MESSAGES,
        )
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
                check_order(result.reports)
                more = self.next_plan(plan, result.reports)
            if more is None:
                return result, list(merged_ddl(plan.ddl, result.reports))
            result.release()
            plan = more

    def with_verdicts(self, messages: DataFrame | Deferred) -> DataFrame | Deferred:
        """Messages with the verdicts of the job's row conditions."""
        if not self.judging or isinstance(messages, Deferred):
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
        topics = self.targets.met_topics(reports, plan.topics)
        if not (unknown or lacking or disordered or topics):
            return None
        return replace(
            plan,
            ddl=ddl,
            disordered=plan.disordered | disordered,
            topics=self.targets.known_topics(),
        )

    def heartbeat(self) -> None:
        """Tell readers of Kafka that the job lives, and how far it is: to its newest change."""
        if self.state.newest is None or not self.busy.acquire(blocking=False):
            return
        try:
            now = int(time.time() * 1_000_000)
            event = Event("heartbeat", event_time=self.state.newest, emit_time=now)
            batch = Batch(self.state.batch, SourceRange(), self.still_ours)
            self.targets.heartbeat(event, batch, self.state.topics)
        finally:
            self.busy.release()

    def idle(self) -> None:
        """Let sinks do what is due while no batch is under way."""
        if not self.busy.acquire(blocking=False):
            return
        try:
            self.targets.idle(Batch(self.state.batch, SourceRange(), self.still_ours))
        finally:
            self.busy.release()

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


def check_order(reports: list[PartitionReport]) -> None:
    """Refuse events whose order is not known.

    >>> from headgate.pipeline.plan import PartitionState
    >>> check_order([PartitionReport(PartitionState((None, n)), unplaced=True) for n in range(2)])
    Traceback (most recent call last):
    headgate.core.errors.UsageError: events in 2 partitions of the DataFrame have neither a ...
    """
    unplaced = sum(report.unplaced for report in reports)
    if unplaced > 1:
        raise UsageError(
            f"events in {unplaced} partitions of the DataFrame have neither a position in the "
            "source's log nor an offset, so that nobody knows which is the newer; give "
            "headgate.decode the messages' columns topic, partition and offset, or, where the rows "
            "of the DataFrame are in order, land events.coalesce(1). Nothing was landed"
        )


def resolve(steps: BatchSteps, state: State, partitions: Sequence[Partition]) -> None:
    """Tell the sinks up to where all partitions are complete, if that is known."""
    watermark, end = state.watermark(partitions), state.transaction_end(partitions)
    if watermark is not None:
        steps.add_watermark(watermark, state)
        state.announced = max(watermark, state.announced or 0)
    elif end is not None:
        steps.add_transaction_end(end)


def with_schema(source: Source, schema: str | None) -> Source:
    """A source whose decoder knows the job's schema; encoders get its types with the events."""
    if schema is None:
        return source
    return replace(source, options={**source.options, "schema": schema})
