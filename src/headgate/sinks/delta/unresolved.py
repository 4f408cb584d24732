"""What waits for a watermark: changes as Parquet files, statements as JSON, below `_headgate/`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import reduce

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.landing.resolution import Resolved, between, span
from headgate.landing.shape import TableShape
from headgate.schema.changes import SchemaChange, TableId
from headgate.sinks.base import Statement
from headgate.sinks.delta.kept import KeptChanges
from headgate.sinks.delta.state import Published
from headgate.spark.state_files import read_state, write_state
from headgate.spark.storage import Storage

UNRESOLVED = "unresolved"
"""The folder of changes that wait for a watermark, with one of each job."""
STATEMENTS = "statements"
CHANGES_SCHEMA = "table string, count long, changes binary"
SPANNED_SCHEMA = f"{CHANGES_SCHEMA}, first string, last string"

Batches = Iterable[pa.RecordBatch]


class UnresolvedChanges(KeptChanges):
    """The changes of a job that wait for a watermark, each file with the span of its changes."""

    def __init__(self, spark: SparkSession, storage: Storage, job: str) -> None:
        super().__init__(spark, storage, f"{UNRESOLVED}/{job}")

    def keep(self, changes: DataFrame, batch: int, step: int) -> None:
        """Keep the changes of a step; kept twice they are kept once."""
        path = self.storage.for_spark(f"{self.folder}/{batch:010d}-{step:05d}")
        spanned = changes.select("table", "count", "changes").mapInArrow(with_spans, SPANNED_SCHEMA)
        named = spanned.withColumn("step", F.lit(path.rpartition("/")[2]))
        named.coalesce(1).write.mode("overwrite").parquet(path)

    def between(self, steps: list[str], after: str, until: str) -> DataFrame | None:
        """The changes of steps after a point and up to another; None where there are no steps."""
        if not steps:
            return None
        rows = self.read(steps).where((F.col("last") > after) & (F.col("first") <= until))
        return rows.mapInArrow(chooser(after, until), CHANGES_SCHEMA)

    def due(self, published: Published | None, after: str, until: str) -> DataFrame | None:
        """The changes up to a point that are not published; `after` is where a statement was."""
        steps = self.steps()
        old = [s for s in steps if published is not None and batch_of(s) <= published.batch]
        parts = [self.between(steps[len(old) :], after, until)]
        if published is not None:
            parts.append(self.between(old, max(after, published.order), until))
        return self.joined([part for part in parts if part is not None])

    def joined(self, parts: list[DataFrame]) -> DataFrame | None:
        """Changes of several steps together."""
        return reduce(DataFrame.unionAll, parts) if parts else None

    def tables(self, changes: DataFrame) -> list[TableId]:
        """The tables that changes are of."""
        names = [row.table for row in changes.select("table").distinct().collect()]
        return [msgspec.json.decode(name, type=TableId) for name in names]

    def settle(self, published: Published) -> None:
        """Remove the steps of which everything is published."""
        steps = [step for step in self.steps() if batch_of(step) <= published.batch]
        if not steps:
            return
        left = self.read(steps).where(F.col("last") > published.order).select("step").distinct()
        waiting = {row.step for row in left.collect()}
        self.remove([step for step in steps if step not in waiting])


def with_spans(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Packed changes, each with the first and the last of them."""
    for batch in batches:
        spans = [span(packed) for packed in batch.column("changes").to_pylist()]
        for name, place in (("first", 0), ("last", 1)):
            batch = batch.append_column(
                name, pa.array([each[place] for each in spans], pa.string())
            )
        yield batch


def chooser(after: str, until: str) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What takes the changes between two points out of packed ones."""

    def choose(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chosen = [between(each, after, until) for each in batch.column("changes").to_pylist()]
            packed = pa.array(chosen, pa.binary())
            columns = [batch.column("table"), batch.column("count"), packed]
            rows = pa.RecordBatch.from_arrays(columns, ["table", "count", "changes"])
            yield rows.filter(packed.is_valid())

    return choose


def batch_of(step: str) -> int:
    """The batch of a step.

    >>> batch_of("0000000012-00003")
    12
    """
    return int(step.partition("-")[0])


class _Kept(msgspec.Struct):
    """A statement as a file has it."""

    resolved: Resolved
    changes: list[SchemaChange]
    text: str
    position: str
    shapes: list[TableShape]
    time: datetime | None
    table: TableId | None
    database: str | None
    is_snapshot: bool
    left_out: list[TableId]


class UnresolvedStatements:
    """The statements of a job that wait for a watermark."""

    def __init__(self, storage: Storage, job: str) -> None:
        self.storage, self.folder = storage, f"{STATEMENTS}/{job}"

    def keep(self, statement: Statement, batch: int, step: int) -> None:
        """Keep a statement; kept twice it is kept once."""
        assert statement.resolved is not None
        fields = statement._asdict()
        fields["shapes"] = list(statement.shapes.values())
        fields["left_out"] = sorted(statement.left_out)
        name = f"{self.folder}/{batch:010d}-{step:05d}.json"
        write_state(self.storage, name, _Kept(**fields))

    def names(self) -> list[str]:
        """The files of statements, in the order in which they came."""
        return [name for name in self.storage.names(self.folder) if name.endswith(".json")]

    def due(self, published: Published | None, until: str) -> list[Statement]:
        """The statements up to a point that are not applied, in the source's order."""
        statements = [
            statement
            for name in self.names()
            if (statement := self.read(name)).resolved is not None
            and statement.resolved.order <= until
            and not is_settled(name, statement, published)
        ]
        return sorted(statements, key=lambda each: each.resolved or ("", 0))

    def settle(self, published: Published) -> None:
        """Remove the statements that are applied."""
        for name in self.names():
            if is_settled(name, self.read(name), published):
                self.storage.delete(f"{self.folder}/{name}")

    def read(self, name: str) -> Statement:
        """A statement."""
        kept = read_state(self.storage, f"{self.folder}/{name}", _Kept)
        assert kept is not None
        fields = {each: getattr(kept, each) for each in Statement._fields}
        fields["shapes"] = {shape.table: shape for shape in kept.shapes}
        fields["left_out"] = frozenset(kept.left_out)
        return Statement(**fields)


def is_settled(name: str, statement: Statement, published: Published | None) -> bool:
    """Whether what was published last has a statement."""
    return (
        published is not None
        and statement.resolved is not None
        and batch_of(name) <= published.batch
        and statement.resolved.order <= published.order
    )
