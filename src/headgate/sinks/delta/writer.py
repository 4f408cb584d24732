"""The writer of a job, on the driver: batches in their order, and what waits between them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.core.errors import HeadgateError, UsageError, shown
from headgate.landing.evolution import operations
from headgate.landing.operations import Discard, MoveTable, Operation, Park, Warn, written
from headgate.landing.resolution import Resolved
from headgate.landing.rules import Statement, Tables
from headgate.landing.shape import TableShape
from headgate.schema.changes import TableId
from headgate.sinks import base
from headgate.sinks.base import Batch, MergeReport, TableMerge, TableWriter
from headgate.sinks.delta.ddl import carry_out
from headgate.sinks.delta.kept import WAITING, KeptChanges
from headgate.sinks.delta.lake import STEPS, Lake, named
from headgate.sinks.delta.paths import RESERVED
from headgate.sinks.delta.state import LakeState, PendingStatement
from headgate.sinks.delta.table import LandedTable, TableError, Token
from headgate.sinks.delta.task import TableResult, merge_tables
from headgate.spark.storage import Storage

log = logging.getLogger(__name__)
LAST_STEP = STEPS // 2 - 1
"""The step of what is merged at the end of a batch."""


MOST_WAITING = 256 * 1024 * 1024
"""How many bytes of changes wait at most: a task has those of its table in memory."""


class LandingError(HeadgateError):
    """A batch was not landed as a whole; started again, the job goes on with it."""


class DeltaWriter(TableWriter):
    """Lands batches in Delta tables, exactly once."""

    def __init__(
        self, spark: SparkSession, lake: Lake, path: str, settings: Mapping[str, str]
    ) -> None:
        # Tables that this process opened for a job before may have been removed since.
        self.spark, self.lake = spark, replace(lake, generation=time.time_ns())
        self.root = Storage(path, settings, private=False)
        self.storage = Storage(f"{path.rstrip('/')}/{RESERVED}", settings, private=False)
        self.state = LakeState(self.storage, lake.job, lake.options.adopt)
        self.state.job.options = asdict(lake.options)
        self.waiting = KeptChanges(spark, self.storage, f"{WAITING}/{lake.job}")
        self.has_waiting = bool(self.waiting.steps())
        self.unreported: list[TableResult] = []

    def verify(self, batch: Batch) -> None:
        """Refuse a batch that does not follow those that are landed."""
        job = self.state.job
        other = batch.number == job.batch and batch.source != job.source
        if batch.number < job.batch or other:
            raise UsageError(
                f"{self.root.uri} has batch {job.batch}, and the checkpoint knows the batches "
                f"before {batch.number} only: it is older than the target, as from a backup, and "
                "changes would be lost or doubled; restore both together, or start with a new "
                "checkpoint and adopt: true"
            )
        if batch.number > job.batch + 1:
            landed = "no batch" if job.batch < 0 else f"the batches up to {job.batch}"
            raise UsageError(
                f"{self.root.uri} has {landed} of this job, and the checkpoint goes on with batch "
                f"{batch.number}: the target is another one, was emptied, or is older than the "
                "checkpoint, and the changes in between would be missing; restore both together, "
                "or start with a new checkpoint and adopt: true"
            )

    def begin(self, batch: Batch) -> None:
        """Note which batch is being landed, before anything of it is."""
        batch.still_ours()
        if self.state.job.batch != batch.number:
            self.finish_idle_merge()
            self.state.job.batch, self.state.job.source = batch.number, batch.source
            self.state.write_job()

    def merge(
        self, batch: Batch, step: int, changes: DataFrame, shapes: Sequence[TableShape]
    ) -> MergeReport:
        """Merge the changes of a step into all of their tables, or keep them for a later merge."""
        self.begin(batch)
        token = self.lake.merge_token(batch.number, step)
        if self.is_done(token) or token.version <= self.state.job.merged:
            return MergeReport({})
        waits = self.lake.options.merge_seconds is not None
        if waits or self.has_waiting:  # what waits from before comes first
            self.waiting.keep(changes, batch.number, step)
            self.has_waiting = True
            if not waits:
                self.merge_waiting(token)
            return MergeReport({})
        return self.merge_now(token, changes, [shape.table for shape in shapes])

    def merge_now(
        self, token: Token, changes: DataFrame, tables: Sequence[TableId], late: bool = False
    ) -> MergeReport:
        """Merge changes; those of parked tables are kept. What is late is reported in the end."""
        waiting = self.state.waiting()
        parked = [table for table in tables if table in waiting]
        for table in parked:
            self.keep(table, changes, token)
        going = [table for table in tables if table not in parked]
        if not going:
            return MergeReport({})
        if parked:
            changes = changes.where(~F.col("table").isin(list(map(encoded, parked))))
        results = merge_tables(changes, self.lake, token, len(going))
        self.state.met(result.table for result in results if result.error is None)
        for result in results:
            if result.error is not None and not result.stops:
                self.keep(result.table, changes, token)
                self.park(result.table, result.error, result.remedy)
        stop_for([result for result in results if result.stops])
        if late:
            self.unreported += results
        return report_of(results)

    def keep(self, table: TableId, changes: DataFrame, token: Token) -> None:
        """Keep the changes of a parked table."""
        chosen = changes.where(F.col("table") == encoded(table))
        self.kept(table).keep(chosen, token.batch, token.version % STEPS // 2)

    def kept(self, table: TableId) -> KeptChanges:
        """The changes of a parked table."""
        folder = f"parked/{self.lake.path(table)}"
        return KeptChanges(self.spark, self.storage, folder, self.lake.job)

    def park(self, table: TableId, reason: str, remedy: str, statement: str = "") -> None:
        """Let a table wait."""
        self.state.park(table, reason, remedy, statement)
        log.error(
            "table %s is parked, and its changes are kept: %s; %s",
            shown(named(table)), reason, remedy,
        )  # fmt: skip

    def apply(self, batch: Batch, step: int, statement: base.Statement) -> None:
        """Apply a statement, after all changes before it."""
        self.begin(batch)
        token = self.lake.ddl_token(batch.number, step)
        if self.is_done(token):
            return
        self.merge_waiting(self.lake.merge_token(batch.number, step))
        pending = self.state.job.statement
        if pending is None or pending.version != token.version:
            pending = self.state.job.statement = self.planned(statement, token)
            self.state.write_job()
        not_moved: dict[TableId, TableId] = {}
        for operation in pending.operations:
            batch.still_ours()
            if isinstance(operation, Discard) and operation.table in not_moved:
                to = shown(named(not_moved[operation.table]))
                reason = f"its rows belong to {to}, which is parked"
                operation = Park(operation.table, statement.text, reason, "see to that one first")
            self.carry_out(operation, token, pending.versions, statement.text)
            if isinstance(operation, MoveTable) and operation.to in self.state.waiting():
                not_moved[operation.table] = operation.to

    def is_done(self, token: Token) -> bool:
        """Whether a later statement of the batch was begun: all before it was landed.

        Its tables may have other names by now, or be gone.
        """
        pending = self.state.job.statement
        return pending is not None and pending.version > token.version

    def planned(self, statement: base.Statement, token: Token) -> PendingStatement:
        """What a statement does to landed tables, and their versions before it."""
        landed = LandedShapes(self.lake, self.state.tables)
        known = Tables(
            landed, statement.shapes, landed.is_empty, lambda table: table not in statement.left_out
        )
        event = Statement(
            statement.text,
            statement.position,
            statement.time,
            statement.table,
            statement.database,
            statement.is_snapshot,
        )
        plan = operations(statement.changes, event, known, self.lake.rules)
        versions = {
            self.lake.path(table): each.delta.version()
            for table, each in landed.opened.items()
            if each is not None
        }
        return PendingStatement(token.version, plan, versions)

    def carry_out(
        self, operation: Operation, token: Token, versions: Mapping[str, int], statement: str
    ) -> None:
        """Carry out one operation of a statement."""
        table = written(operation)
        if isinstance(operation, Warn):
            log.warning("table %s: %s", shown(named(table)), operation.reason)
        elif isinstance(operation, Park):
            self.park(table, operation.reason, operation.remedy, operation.statement)
        elif table in self.state.waiting():
            self.park(table, "", "", statement)  # one more that was not applied
        elif isinstance(operation, MoveTable) and operation.table in self.state.waiting():
            reason = f"its rows are those of {shown(named(operation.table))}, which is parked"
            self.park(table, reason, "see to that one first", statement)
        elif isinstance(operation, Discard):
            self.root.delete(self.lake.path(table))
            self.storage.delete(f"deleted/{self.lake.path(table)}")
            self.lake = replace(self.lake, generation=self.lake.generation + 1)
            self.state.gone(table)
        else:
            try:
                carry_out(self.spark, self.lake, operation, token, versions)
            except TableError as error:
                self.park(table, error.reason, error.remedy, statement)
            else:
                self.state.met([table])

    def finish(self, batch: Batch, resolved: Resolved | None) -> MergeReport:
        """Merge what is due, and let tables go on that somebody has seen to."""
        self.begin(batch)
        token = self.lake.merge_token(batch.number, LAST_STEP)
        is_full = self.has_waiting and self.waiting.size() >= MOST_WAITING
        if self.is_time or is_full or self.state.job.merging == token.version:
            self.merge_waiting(token)
        self.resume_tables(batch)
        return self.late_report()

    @property
    def is_time(self) -> bool:
        """Whether changes have waited as long as they are to wait."""
        seconds = self.lake.options.merge_seconds
        return seconds is None or time.time() - self.state.job.merged_at >= seconds

    def late_report(self) -> MergeReport:
        """What was merged and is not reported yet: changes that waited or were kept."""
        results, self.unreported = self.unreported, []
        return report_of(results)

    def idle(self, batch: Batch) -> None:
        """Merge changes that have waited long enough, though no batch comes."""
        # A batch that was cut off comes again at once, and goes first.
        if self.has_waiting and self.is_time and batch.number == self.state.job.batch:
            batch.still_ours()
            self.merge_waiting(self.idle_token(batch.number))

    def idle_token(self, batch: int) -> Token:
        """The token of a merge between a batch and the next; no statement has it."""
        return self.lake.ddl_token(batch, LAST_STEP)

    def finish_idle_merge(self) -> None:
        """Do again, in the same way, a merge between two batches that was cut off."""
        batch, number = divmod(self.state.job.merging or 0, STEPS)
        if number == STEPS - 1:
            self.merge_waiting(self.idle_token(batch))

    def resume_tables(self, batch: Batch) -> None:
        """Let tables go on that somebody has seen to."""
        token = self.lake.merge_token(batch.number, LAST_STEP)
        for file, table in self.state.to_resume().items():
            self.go_on(table, token)
            self.storage.delete(file)

    def merge_waiting(self, token: Token) -> None:
        """Merge the changes that wait; begun and cut off, it is done again in the same way."""
        job = self.state.job
        if not self.has_waiting or token.version <= job.merged:
            return
        steps = self.waiting.steps()
        done = [step for step in steps if self.version_of(step) <= job.merged]
        self.waiting.remove(done)  # which was cut off
        # A batch that is repeated may have kept changes that come after a statement.
        later = [step for step in steps if self.version_of(step) > token.version]
        steps = steps[len(done) : len(steps) - len(later)]
        self.has_waiting = bool(steps or later)
        if not steps:
            return
        job.merging = token.version
        self.state.write_job()
        changes = self.waiting.read(steps)
        tables = [decoded(row.table) for row in changes.select("table").distinct().collect()]
        self.merge_now(token, changes, tables, late=True)
        job.merging, job.merged, job.merged_at = None, token.version, time.time()
        self.state.write_job()
        self.waiting.remove(steps)
        self.has_waiting = bool(later)

    def version_of(self, step: str) -> int:
        """The token of a step whose changes wait."""
        batch, number = map(int, step.split("-"))
        return self.lake.merge_token(batch, number).version

    def go_on(self, table: TableId, token: Token) -> None:
        """Merge the changes that were kept of a parked table, and take it back.

        Interrupted, it is done again with the same token, however much is still kept.
        """
        kept = self.kept(table)
        if steps := kept.steps():
            [result] = merge_tables(kept.read(steps), self.lake, token, 1)
            stop_for([result] if result.stops else [])
            if result.error is not None:
                self.park(table, result.error, result.remedy)
                return
            self.unreported.append(result)
        kept.remove(steps)
        self.state.resumed(table)
        log.info("table %s goes on", shown(named(table)))


class LandedShapes(Mapping[TableId, TableShape]):
    """The shapes of landed tables, each looked at when it is asked for."""

    def __init__(self, lake: Lake, tables: Iterable[TableId]) -> None:
        self.lake, self.tables = lake, list(tables)
        self.opened: dict[TableId, LandedTable | None] = {}

    def table(self, table: TableId) -> LandedTable | None:
        """A table as it is now."""
        if table not in self.opened:
            self.opened[table] = self.lake.opened(table)
        return self.opened[table]

    def is_empty(self, table: TableId) -> bool:
        """Whether a table has no rows."""
        landed = self.table(table)
        return landed is None or not landed.has_rows

    def __getitem__(self, table: TableId) -> TableShape:
        landed = self.table(table)
        if landed is None:
            raise KeyError(table)
        return landed.shape

    def __iter__(self) -> Iterator[TableId]:
        return (table for table in self.tables if self.table(table) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def encoded(table: TableId) -> str:
    """A table as rows of changes name it."""
    return msgspec.json.encode(table).decode()


def decoded(text: str) -> TableId:
    """A table from its name in rows of changes."""
    return msgspec.json.decode(text, type=TableId)


def stop_for(results: Sequence[TableResult]) -> None:
    """Stop the job for errors that are not of one table only."""
    if results:
        names = ", ".join(shown(named(each.table)) for each in results[:3])
        more = f" and {len(results) - 3} more" if len(results) > 3 else ""
        raise LandingError(f"cannot land {names}{more}: {results[0].error}")


def report_of(results: Iterable[TableResult]) -> MergeReport:
    """The report of merges."""
    tables: dict[TableId, TableMerge] = {}
    for each in results:
        if each.error is None:
            done = each.merged
            counts = (done.inserted + done.updated, done.deleted, done.ignored_old)
            before = tables.get(each.table, TableMerge())
            tables[each.table] = TableMerge(*map(sum, zip(before, counts)))
    return MergeReport(tables)
