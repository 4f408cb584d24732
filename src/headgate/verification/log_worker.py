"""Changes of a log as rows: what Spark's workers make of its messages.

The messages go through a job's own pass (decode, deduplicate, select, route), and then this is kept
of each change: where it is from, its place in the source's order, and its images as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from headgate.arrow.events import bounded
from headgate.codec.sequence import KIND, SNAPSHOT, kind_of, sequence
from headgate.config.job import Job
from headgate.core.event import Event, Types
from headgate.core.limits import SPLICED_ROWS
from headgate.pipeline.change import Change, MessageBatch
from headgate.pipeline.counts import table_name
from headgate.pipeline.intake import resolved_at
from headgate.pipeline.partition_worker import Worker, by_partition
from headgate.pipeline.plan import BatchPlan, PartitionReport
from headgate.pipeline.rejections import Rejection, Rejections
from headgate.spark.api import fast_worker

CHANGE_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("step", pa.int32()),
        ("order", pa.string()),
        ("sequence", pa.string()),
        ("time", pa.int64()),
        ("arrival", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("place", pa.string()),
        ("change", pa.binary()),
        ("report", pa.binary()),
    ]
)
"""A change: its table under the job's names; how many statements came before it; the kind of its
order, and its place in it; the time of its message; its number in its partition; where its message
is; operation and images as JSON. Or the report of a worker."""
_encode = msgspec.json.Encoder(enc_hook=str).encode  # numbers of messages are texts of their own
NO_ORDER = ""
"""The kind of order of a snapshot's rows, which do not say of which server they are."""


class LoggedChange(msgspec.Struct, array_like=True):
    """A change of a row."""

    op: str
    before: dict[str, str | None] | None
    after: dict[str, str | None] | None


class SeenTable(msgspec.Struct):
    """A table as its changes show it, between two statements."""

    table: str
    step: int
    columns: dict[str, str | None]
    """By name, MySQL's type as far as it is known."""
    key: tuple[str, ...] | None


class WorkerReport(msgspec.Struct):
    """What a worker reports of a partition of messages."""

    partitions: list[PartitionReport]
    tables: list[SeenTable]


class ChangeOutput:
    """Makes rows of changes, and notes the tables that they are of."""

    def __init__(self, tables: dict[tuple[str, int], SeenTable], until: str | None = None) -> None:
        """Changes after the point `until` are left out."""
        self.until = until
        self.topics: list[set[str]] = []
        self.losses: Counter[tuple[str, ...]] = Counter()
        self.with_headers = False
        self.shapes: list[Any] = []
        self.tables, self.arrival = tables, 0
        self.seen: dict[tuple[str, int], tuple[Types | None, tuple[str, ...]]] = {}
        """By table and step: the types and the columns that were noted last."""
        self.messages: MessageBatch | None = None
        self.places: list[list[Any] | None] = []
        """Offsets and places of these messages."""

    def prepare(self, changes: Sequence[Change]) -> Rejections:
        """The messages of invalid events."""
        return {
            change.message: Rejection(*change.event.error, table_name(change.event))
            for change in changes
            if change.event.error is not None
        }

    def accepts(self, spliced: object, messages: object) -> bool:
        """Nothing is spliced."""
        return False

    def rows(
        self, step: int, changes: Sequence[Change], spliced: object = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of changes; other events have none."""
        columns: dict[str, list[Any]] = {field.name: [] for field in CHANGE_SCHEMA}
        for change in changes:
            if change.event.kind == "row" and self.is_before_end(change):
                for column, value in zip(columns.values(), self.row(step, change)):
                    column.append(value)
        if columns["table"]:
            arrays = [pa.array(columns[field.name], field.type) for field in CHANGE_SCHEMA]
            yield pa.RecordBatch.from_arrays(arrays, schema=CHANGE_SCHEMA)

    def is_before_end(self, change: Change) -> bool:
        """Whether a change is one of those that are asked for."""
        return self.until is None or resolved_at(change).order <= self.until

    def row(self, step: int, change: Change) -> tuple[Any, ...]:
        """The row of a change, in the order of the columns."""
        event, messages = change.event, change.messages
        if self.messages is not messages:
            self.messages = messages
            self.places = [
                messages.rows.column(name).to_pylist()
                if name in messages.rows.schema.names
                else None
                for name in ("offset", "place")
            ]
        table = table_name(event)
        self.note(table, step, event)
        self.arrival += 1
        topic, partition = messages.partition
        order, place = order_of(event, f"{topic}-{partition}")
        logged = LoggedChange(event.op or "", event.before, event.after)
        return (
            table, step, order, place, event.event_time or 0, self.arrival, topic, partition,
            *(None if values is None else values[change.row] for values in self.places),
            _encode(logged), None,
        )  # fmt: skip

    def note(self, table: str, step: int, event: Event) -> None:
        """Note what a change says of its table."""
        image = event.before if event.after is None else event.after
        at, names, types = (table, step), tuple(image or ()), event.types
        known = self.seen.get(at)
        if known is not None and known[0] is types and known[1] == names:
            return
        self.seen[at] = (types, names)
        seen = self.tables.setdefault(at, SeenTable(table, step, {}, None))
        for name in names:
            mysql = types[name].mysql if types and name in types else None
            if mysql is not None or name not in seen.columns:
                seen.columns[name] = mysql
        seen.key = seen.key if event.key is None else event.key


def order_of(event: Event, partition: str) -> tuple[str, str]:
    """The kind of a change's order, and its place in it; without one it is that of its arrival.

    >>> order_of(Event("row", "insert", commit_ts=7), "orders-0")[1]
    '00000000000000000007'
    """
    place = sequence(event)
    if place is None:
        return (NO_ORDER if event.op == "snapshot" else kind_of(f"arrival {partition}")), ""
    return place[:KIND].replace(SNAPSHOT, NO_ORDER), place[KIND:]


class LogWorker(Worker):
    """A pass over some partitions that gives changes as rows."""

    def __init__(self, job: Job, plan: BatchPlan, until: str | None) -> None:
        super().__init__(job, plan)
        self.fast_path = None  # it has rows, and not whole events
        self.until = until
        self.seen_tables: dict[tuple[str, int], SeenTable] = {}

    def output(self) -> ChangeOutput:
        """What makes rows of the changes of a partition."""
        return ChangeOutput(self.seen_tables, self.until)


def log_function(
    job: Job, plan: BatchPlan, until: str | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs over messages: changes, and at the end a report."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            worker = LogWorker(job, plan, until)
            for batch in batches:
                for part in bounded(batch, SPLICED_ROWS):
                    for partition, messages in by_partition(part):
                        yield from changes_in(worker.take(partition, messages))
            yield from changes_in(worker.finish())
            reports = [msgspec.json.decode(r, type=PartitionReport) for r in worker.reports]
            report = WorkerReport(reports, list(worker.seen_tables.values()))
            yield pa.RecordBatch.from_pylist(
                [{"report": msgspec.json.encode(report)}], CHANGE_SCHEMA
            )

    return run


def changes_in(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a pass that are changes, and not dead letters, which the job itself has."""
    return (batch for batch in rows if batch.schema == CHANGE_SCHEMA)
