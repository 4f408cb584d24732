"""Sinks of tables: the changes of a batch are merged step by step, and DDL is applied between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.codec.schemas import Schemas
from headgate.config.job import Job
from headgate.core.errors import HeadgateError
from headgate.core.event import Event, qualified
from headgate.landing.changes import event_shape
from headgate.landing.resolution import Resolved, watermark_at
from headgate.landing.shape import TableShape, union
from headgate.pipeline.batch_pass import PassResult
from headgate.pipeline.catalog import known_tables, read_catalog
from headgate.pipeline.counts import add_table, full_name
from headgate.pipeline.plan import Emit, KnownTopics, PartitionReport, PlannedDdl
from headgate.pipeline.state import State
from headgate.pipeline.targets import Merged
from headgate.schema.changes import RenameTable, SchemaChange, TableId, Unknown
from headgate.schema.ddl import event_changes
from headgate.selection.selection import Selection, SelectionError
from headgate.sinks.base import Batch, MergeReport, Statement, TableWriter, Target
from headgate.spark.storage import Storage

EPOCH = datetime.fromtimestamp(0, UTC)
MOST_STEPS = 50_000
"""So many steps of a batch can be distinguished from those of the next."""


class TooManyStatements(HeadgateError):
    """A batch has more DDL than sinks of tables can count."""


@dataclass(frozen=True)
class Merge:
    """The changes of a step."""

    rows: DataFrame
    shapes: list[list[TableShape]]
    """By sink, the shapes of the tables that have changes."""


@dataclass(frozen=True)
class Apply:
    """A statement, and the tables that it names as they are after it."""

    ddl: PlannedDdl
    tables: list[Event]
    """A row for each, with all columns that the job takes of it."""
    left_out: frozenset[TableId] = frozenset()
    """Tables that it names and the job does not take."""


class TableTargets:
    """The sinks of a job that lands tables."""

    emit: Emit = "tables"

    def __init__(self, spark: SparkSession, job: Job, job_id: str, storage: Storage) -> None:
        self.job, self.storage, self.selection = job, storage, Selection(job)
        self.writers = [
            s.connector.open(spark, Target(job_id, s.name, {}, job.settings))
            for s in job.table_sinks
        ]

    def new_batch(self) -> TableSteps:
        """What collects a batch."""
        return TableSteps(self)

    def known_topics(self) -> tuple[KnownTopics, ...]:
        """Tables have none."""
        return ()

    def met_topics(self, reports: Sequence[PartitionReport], known: Sequence[KnownTopics]) -> bool:
        """Tables have none."""
        return False

    def heartbeat(self, event: Event, batch: Batch, topics: list[list[str]]) -> None:
        """Readers of tables have no use for it."""

    def idle(self, batch: Batch) -> None:
        """Let sinks do what is due while no batch is under way."""
        for writer in self.writers:
            writer.idle(batch)

    def selected_tables(self, ddl: PlannedDdl, tables: Schemas) -> Iterator[Event]:
        """The tables that a statement names, each as a row under its new name."""
        names = dict.fromkeys(n for change in event_changes(ddl.source) for n in named(change))
        for name in names:
            row = table_row(tables, name)
            try:
                if row is not None and self.selection.wants(row):
                    yield self.selection.shape(row)
            except SelectionError:  # which its rows meet too, and become dead letters
                continue

    def left_out(self, ddl: PlannedDdl) -> Iterator[TableId]:
        """The tables that a statement names and the job does not take, as the statement is applied.

        The statement under the job's names has its tables in the same order.
        """
        names, new_names = (
            [name for change in event_changes(event) for name in named(change)]
            for event in (ddl.source, ddl.event)
        )
        for name, new_name in zip(names, new_names):
            try:
                if not self.selection.wants(Event("row", "insert", *name, after={})):
                    yield new_name
            except SelectionError:
                yield new_name


class TableSteps:
    """What one batch brings to all sinks of tables."""

    def __init__(self, targets: TableTargets) -> None:
        self.targets = targets
        self.steps: list[Merge | Apply | None] = []
        """Changes at even places, statements at odd ones; None where there is nothing."""
        self.resolved: Resolved | None = None

    def add(self, result: PassResult, ddl: Sequence[PlannedDdl], catalog: str | None) -> None:
        """Add the changes of a pass, and its statements between them."""
        if len(self.steps) // 2 + len(ddl) >= MOST_STEPS:
            raise TooManyStatements(
                f"the batch has more than {MOST_STEPS} DDL statements, more than sinks of tables "
                "can tell apart; set max_messages, so that batches are smaller"
            )
        if self.steps:
            self.steps.append(None)  # no statement between two passes
        self.steps.append(self.merge(result, 0, bool(ddl)))
        for step, statement in enumerate(self.statements(ddl, catalog), 1):
            self.steps.append(statement if statement.ddl.wanted else None)
            self.steps.append(self.merge(result, step, True))

    def statements(self, ddl: Sequence[PlannedDdl], catalog: str | None) -> Iterator[Apply]:
        """Statements with the tables that each of them leaves."""
        if not ddl:
            return
        targets = self.targets
        learnt = read_catalog(targets.storage, catalog).met
        tables = known_tables(targets.storage, catalog, targets.job.source).copy()
        for each in ddl:
            if each.id not in learnt:
                tables.learn(each.source)
            selected = list(targets.selected_tables(each, tables))
            yield Apply(each, selected, frozenset(targets.left_out(each)))

    def merge(self, result: PassResult, step: int, has_ddl: bool) -> Merge | None:
        """The changes of a step of a pass; None where there are none."""
        sinks = range(len(self.targets.writers))
        shapes = [
            union(s for r in result.reports for s in r.shapes[sink].get(step, ())) for sink in sinks
        ]
        if not any(shapes):
            return None
        rows = result.rows.where("dead_letter IS NULL")
        return Merge(rows.where(F.col("step") == step) if has_ddl else rows, shapes)

    def add_watermark(self, watermark: int, state: State) -> None:
        """Note the watermark that every partition has passed."""
        self.resolved = watermark_at(watermark)

    def add_transaction_end(self, end: Resolved) -> None:
        """Note where the last whole transaction ends."""
        self.resolved = end

    def verify(self, batch: Batch) -> None:
        """Refuse a batch that does not follow what was landed before."""
        for writer in self.targets.writers:
            writer.verify(batch)

    def write(self, batch: Batch) -> Merged:
        """Land the batch in every sink."""
        merged: Merged = {}
        for sink, writer in enumerate(self.targets.writers):
            for number, step in enumerate(self.steps):
                batch.still_ours()
                if isinstance(step, Merge):
                    rows = step.rows.where(F.col("sink") == sink)
                    changes = rows.select("table", "count", "changes")
                    report = writer.merge(batch, number // 2, changes, step.shapes[sink])
                    count(merged, report)
                elif isinstance(step, Apply):
                    self.apply(sink, writer, batch, number // 2, step)
            batch.still_ours()
            if (late := writer.finish(batch, self.resolved)) is not None:
                count(merged, late)
        return merged

    def apply(self, sink: int, writer: TableWriter, batch: Batch, number: int, step: Apply) -> None:
        """Apply a statement."""
        event, prefer = step.ddl.event, self.targets.job.table_sinks[sink].connector.types
        shapes = [event_shape(row, prefer) for row in step.tables]
        table = qualified(event.schema, event.table)
        statement = Statement(
            event_changes(event),
            event.ddl or "",
            step.ddl.position,
            {shape.table: shape for shape in shapes if shape is not None},
            None if event.event_time is None else EPOCH + timedelta(microseconds=event.event_time),
            None if table is None else TableId(event.database, table),
            event.database,
            bool((event.extra or {}).get("snapshot")),
            step.left_out,
            Resolved(step.ddl.order, event.commit_ts or event.event_time or 0),
        )
        writer.apply(batch, number, statement)


def count(merged: Merged, report: MergeReport) -> None:
    """Add what a merge did."""
    for table, (upserted, deleted, ignored) in report.tables.items():
        counts = {"upserted": upserted, "deleted": deleted, "ignored": ignored}
        add_table(merged, full_name(*table), counts)


def table_row(tables: Schemas, name: TableId) -> Event | None:
    """A table that is known, as a row with all of its columns."""
    table = tables.table(*name)
    if table is None:
        return None
    row = Event("row", "insert", *name, table.key, types=table.types)
    row.after = dict.fromkeys(table.columns)
    return row


def named(change: SchemaChange) -> Iterable[TableId]:
    """The tables that a change names.

    >>> named(RenameTable(TableId("d", "a"), TableId("d", "b")))
    (TableId(database='d', table='a'), TableId(database='d', table='b'))
    """
    if isinstance(change, Unknown):
        return change.tables
    if isinstance(change, RenameTable):
        return (change.table, change.to)
    table = getattr(change, "table", None)
    return () if table is None else (table,)
