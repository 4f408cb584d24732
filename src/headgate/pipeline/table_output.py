"""What a pass makes of selected changes for sinks of tables: packed changes of each table."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from headgate.codec.sequence import arrival_sequence, arrival_text, sequence
from headgate.config.job import Job
from headgate.core.errors import SpliceError, internal_error
from headgate.core.event import Event
from headgate.formats import traits_of
from headgate.landing.changes import Changes, PlacedEvents, RowColumns, Typing, changes_of
from headgate.landing.row_texts import row_columns
from headgate.landing.shape import TableShape, union
from headgate.pipeline.change import Change, MessageBatch
from headgate.pipeline.counts import table_name
from headgate.pipeline.plan import Shapes
from headgate.pipeline.rejections import Rejection, Rejections
from headgate.pipeline.spliced_batch import FastPathResult
from headgate.pipeline.work_rows import slices, work_rows
from headgate.schema.changes import TableId
from headgate.sinks.base import TableSink

log = logging.getLogger(__name__)
NEVER_RESOLVED = (
    "no-commit",
    "the change has no commit number, which watermarks are compared with; let the producer send "
    "it, or use consistency=batch",
)
NULLED = "misfit-null"
"""The loss of a value that does not fit its column, and is NULL there."""


class TableOutput:
    """Changes of tables, typed as each sink wants it."""

    def __init__(self, job: Job, job_id: str) -> None:
        self.job_id = job_id
        self.typings = [typing_of(sink.connector) for sink in job.table_sinks]
        self.waits_for_watermarks = any(
            sink.connector.waits_for_watermarks for sink in job.table_sinks
        )
        self.topics: list[set[str]] = []
        self.losses: Counter[tuple[str, ...]] = Counter()
        self.with_headers = False
        self._shapes: list[dict[int, dict[TableId, TableShape]]] = [{} for _ in self.typings]
        self._changes: list[Change] = []
        """What was prepared last, without what is rejected."""
        self._prepared: list[Changes] = []
        """By sink."""
        self._spliced: RowColumns | None = None
        """What the fast path took."""
        self._alone: list[Changes] = []
        """The same, typed by itself."""

    @property
    def shapes(self) -> list[Shapes]:
        """By sink, the shapes of the tables that have changes."""
        return [
            {step: list(tables.values()) for step, tables in steps.items()}
            for steps in self._shapes
        ]

    def prepare(self, changes: Sequence[Change]) -> Rejections:
        """Type changes for every sink; a message that one sink cannot take goes to none."""
        rejections: Rejections = {}
        for change in changes:
            if change.event.error is not None:
                reject(rejections, change, change.event.error)
            elif self.waits_for_watermarks and never_resolved(change.event):
                reject(rejections, change, NEVER_RESOLVED)
        self._changes = list(changes)
        while True:  # the columns of what is rejected are not in the shapes of the others
            if rejections:
                self._changes = [c for c in self._changes if c.message not in rejections]
            before = len(rejections)
            self._prepared = self.typed_with_spliced(self._changes, rejections)
            if len(rejections) == before:
                return rejections

    def typed(
        self, changes: Sequence[Change], rejections: Rejections, spliced: RowColumns | None = None
    ) -> list[Changes]:
        """The changes by sink, those that were spliced among them; why messages are rejected is
        added."""
        given, before = placed(changes, self.job_id), len(rejections)
        try:
            results = [changes_of(given, typing, spliced) for typing in self.typings]
        except Exception as error:
            if len(changes) == 1:
                reject(rejections, changes[0], internal_error(error))
                return []
            for change in changes:  # to find the ones that it is about
                self.typed([change], rejections)
            if len(rejections) == before:
                raise
            return []
        for result in results:
            for number, reason in result.rejected.items():
                if number >= len(changes):
                    raise SpliceError  # by itself it was not
                reject(rejections, changes[number], reason)
        return results

    def typed_with_spliced(
        self, changes: Sequence[Change], rejections: Rejections
    ) -> list[Changes]:
        """Changes and spliced rows: those of one table have one shape, and tell its key."""
        if self._spliced is None:
            return self.typed(changes, rejections)
        if not any(change.event.kind == "row" for change in changes):
            return self._alone
        return self.typed(changes, rejections, self._spliced)

    def accepts(self, spliced: FastPathResult, messages: MessageBatch) -> bool:
        """Take the rows that were spliced; False where one of them has to be decoded."""
        self._spliced = None
        try:
            columns = row_columns(spliced.row_texts(messages, self.job_id))
            if columns is None:
                return False
            alone = self.typed_alone(columns)
        except Exception:  # the codecs find the message that it is about
            log.warning("rows could not be spliced, and are decoded", exc_info=True)
            return False
        if any(result.rejected for result in alone):
            return False
        self._spliced, self._alone = columns, alone
        return True

    def typed_alone(self, columns: RowColumns) -> list[Changes]:
        """Rows that were spliced, without the others of their batch."""
        none = PlacedEvents([], [], [], [])
        return [changes_of(none, typing, columns) for typing in self.typings]

    def rows(
        self, step: int, changes: Sequence[Change], spliced: FastPathResult | None
    ) -> Iterator[pa.RecordBatch]:
        """The packed changes of every table, for every sink."""
        if len(changes) < len(self._changes):  # repeats may have columns that are gone
            self._changes = list(changes)
            self._prepared = self.typed_with_spliced(self._changes, {})
        work: dict[str, list[Any]] = {n: [] for n in ("sink", "step", "table", "count", "changes")}
        prepared = [*enumerate(self._prepared)]
        for _, result in prepared:
            if result.nulled:
                self.losses[(NULLED,)] += len(result.nulled)
        changes_by_sink = [(sink, table) for sink, result in prepared for table in result.tables]
        # Whole rows tell the order of columns.
        for sink, table in sorted(changes_by_sink, key=lambda each: -len(each[1].shape.columns)):
            if table.rows.num_rows:
                self.learn(self._shapes[sink].setdefault(step, {}), table.shape)
                name = msgspec.json.encode(table.shape.table).decode()
                row = (sink, step, name, table.rows.num_rows, table.pack())
                for column, value in zip(work.values(), row):
                    column.append(value)
        # A job of many partitions would hold them.
        self._changes, self._prepared, self._spliced, self._alone = [], [], None, []
        for part in slices([len(packed) for packed in work["changes"]]):
            yield work_rows("tables", **{name: column[part] for name, column in work.items()})

    def learn(self, tables: dict[TableId, TableShape], shape: TableShape) -> None:
        """Add what changes tell of their table's shape."""
        known = tables.get(shape.table, shape)
        (tables[shape.table],) = union([known, shape])


def typing_of(sink: TableSink) -> Typing:
    """How a sink wants its values."""
    return Typing(sink.types, sink.on_misfit == "null", sink.takes_times)


def never_resolved(event: Event) -> bool:
    """Whether no watermark and no transaction's end would take in a change."""
    if event.kind not in ("row", "ddl") or event.commit_ts is not None:
        return False
    return traits_of(event.format, event.dialect).ends_transaction is None


def reject(rejections: Rejections, change: Change, error: tuple[str, str]) -> None:
    """Note why a change's message is rejected, if that is not known yet."""
    rejection = Rejection(*error, table_name(change.event))
    rejections.setdefault(change.message, rejection)


def placed(changes: Sequence[Change], job_id: str) -> PlacedEvents:
    """The events of changes with their places.

    Where a format has no position, that is the place in the partition, as the job has read it:
    offsets begin anew where a topic is made anew, and so must the job.
    """
    positions: list[str] = []
    arrivals: list[str] = []
    for change in changes:
        event, messages = change.event, change.messages
        arrival = arrival_text(messages.numbers[change.row], change.number)
        arrivals.append(arrival)
        position = sequence(event)
        if position is None:
            is_snapshot = event.op == "snapshot"
            origin = f"{job_id} {messages.partition_name}"
            position = arrival_sequence(origin, arrival, is_snapshot)
        positions.append(position)
    return PlacedEvents(
        [change.event for change in changes],
        positions,
        arrivals,
        [change.untyped for change in changes],
    )
