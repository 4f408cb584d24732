"""The rows of a table after changes that wait: what a merge would make of it, without the merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headgate.landing.changes import unpack
from headgate.landing.latest import CombinedChanges, combined, filtered
from headgate.landing.operations import ColumnSource
from headgate.landing.shape import TableShape
from headgate.landing.table_rows import DELETE, TRUNCATE, UPSERT
from headgate.sinks.delta import keyed, keyless, sql
from headgate.sinks.delta.fitting import fitted_rows
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.merge import log_rows
from headgate.sinks.delta.operations import converted_rows
from headgate.sinks.delta.table import DELETED, OP, POSITION, LandedTable, Location, Token

NEWER, UNSET = keyed.NEWER, "_unset"
EXTRA = pa.schema([(OP, pa.int32()), (NEWER, pa.bool_()), (UNSET, pa.list_(pa.string()))])
"""What is known of a change beside the row: `_unset` has columns that it leaves as they are."""


@dataclass(frozen=True)
class Reading:
    """A table that is read, and what it will be."""

    lake: Lake
    location: Location
    version: int
    shape: TableShape
    """As it will be."""
    token: Token
    """Of the merge to come."""

    def table(self) -> GrownTable:
        """The table, for the code that merges."""
        options = self.location.options or None
        delta = DeltaTable(self.location.uri, self.version, storage_options=options)
        return GrownTable(self.location, delta, self)


class GrownTable(LandedTable):
    """A landed table with the columns, and the types, that the next merge gives it."""

    def __init__(self, location: Location, delta: DeltaTable, reading: Reading) -> None:
        super().__init__(location, delta)
        self.reading, self.landed = reading, LandedTable(location, delta)

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns."""
        if self.shape.columns == self.landed.shape.columns:
            return self.landed.schema
        return self.reading.lake.schema(self.shape)

    @cached_property
    def shape(self) -> TableShape:
        """As it will be."""
        return self.reading.shape

    def rows(self, columns: Sequence[str] | None = None, predicate: str | None = None) -> pa.Table:
        """Rows; new columns are null."""
        names = self.schema.names if columns is None else list(columns)
        known = [name for name in names if name in self.landed.schema.names]
        rows = self.landed.rows(known, predicate)
        chosen = [column for column in self.shape.columns if column.name in names]
        shape = msgspec.structs.replace(self.shape, columns=tuple(chosen))
        batches = [self.grown(batch, shape) for batch in rows.to_batches()]
        schema = self.reading.lake.schema(shape)
        return pa.Table.from_batches(batches, schema).select(names)

    def grown(self, rows: pa.RecordBatch, shape: TableShape) -> pa.RecordBatch:
        """Landed rows in a shape that the table will have."""
        landed = {column.name: column for column in self.landed.shape.columns}
        select = {}
        for column in shape.columns:
            known = landed.get(column.name)
            if known is None:
                select[column.name] = ColumnSource((column.mysql or "",))
            else:
                select[column.name] = ColumnSource((known.mysql or "",), known.name)
        return converted_rows(self.reading.lake, rows, shape, select)


def grown_rows(
    reading: Reading,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task makes of landed rows, so that they have the columns that the table will have."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = reading.table()
        yield from (table.grown(batch, table.shape) for batch in batches)

    return run


def rows_after(rows: DataFrame, changes: DataFrame, reading: Reading) -> DataFrame:
    """The rows of a table after packed changes."""
    is_log = reading.lake.options.mode == "log"
    extra = [] if is_log else from_arrow_schema(EXTRA).fields
    schema = StructType([*rows.schema.fields, *extra])
    # Checkpointed, because the files of the changes go when they are merged.
    last = changes.coalesce(1).mapInArrow(last_rows(reading), schema).localCheckpoint(eager=True)
    if is_log:
        return rows.unionByName(last)
    truncated = [row[0] for row in last.where(f"_op = {TRUNCATE}").select(POSITION).collect()]
    gone = keyed.before(truncated[0], "t").replace('"', "`") if truncated else "false"
    merge = merged_by_key if reading.shape.key else merged_without_key
    soft = reading.lake.options.deletes == "soft"
    return merge(rows, last.where(f"_op <> {TRUNCATE}"), reading, gone, truncated, soft=soft)


# In a task


def last_rows(
    reading: Reading,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task makes of all packed changes of the table."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packed = [blob for batch in batches for blob in batch.column(0).to_pylist()]
        table, options = reading.table(), reading.lake.options
        unpacked = [unpack(blob) for blob in packed]
        changes = combined([fitted_rows(r, of, table.shape, options) for of, r in unpacked])
        if options.mode == "log":
            yield from as_rows(log_rows(changes), table.schema)
            return
        if options.deletes == "ignore":
            upserts = pc.equal(changes.rows.column(OP), UPSERT)
            changes = filtered(changes, upserts.to_numpy())
        schema = pa.schema([*table.schema, *EXTRA])
        last = last_by_key if table.shape.key else last_without_key
        for rows in last(table, changes, reading):
            yield from as_rows(rows, schema)

    return run


def last_by_key(
    table: LandedTable, changes: CombinedChanges, reading: Reading
) -> Iterator[pa.Table]:
    """The last state of each key."""
    deleted = reading.lake.deleted_keys(table.shape.table)
    rows, last, _ = keyed.final_rows(table, changes, deleted, reading.lake.options)
    newer = np.zeros(rows.num_rows, np.bool_) if last.newer is None else last.newer
    unset = [name for name in table.schema.names if name not in rows.column_names]
    rows = rows.append_column(NEWER, pa.array(newer))
    yield rows.append_column(UNSET, pa.array([unset] * rows.num_rows, EXTRA.field(UNSET).type))
    yield from truncation(last.truncated)


def last_without_key(
    table: LandedTable, changes: CombinedChanges, reading: Reading
) -> Iterator[pa.Table]:
    """The rows that are added, and those that are taken away."""
    deleted = reading.lake.deleted_keys(table.shape.table)
    added, removed, truncated, _ = keyless.final_rows(table, reading.token, changes, deleted)
    for op, rows in ((UPSERT, added), (DELETE, removed)):
        yield rows.append_column(OP, pa.array([op] * rows.num_rows, pa.int32()))
    yield from truncation(truncated)


def truncation(position: str | None) -> Iterator[pa.Table]:
    """The row that stands for TRUNCATE."""
    if position is not None:
        yield pa.table({OP: pa.array([TRUNCATE], pa.int32()), POSITION: [position]})


def as_rows(rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows with all columns; those that are not there are null."""
    columns = [
        rows.column(each.name).cast(each.type) if each.name in rows.column_names
        else pa.nulls(rows.num_rows, each.type)
        for each in schema
    ]  # fmt: skip
    yield from pa.table(columns, schema=schema).to_batches()


# In Spark


def column(table: str, name: str) -> Column:
    """A column of one side of a join."""
    return F.col(f"{table}.`{name.replace('`', '``')}`")


def merged_by_key(
    rows: DataFrame,
    last: DataFrame,
    reading: Reading,
    gone: str,
    truncated: Sequence[str],
    *,
    soft: bool,
) -> DataFrame:
    """What MERGE does (keyed.write): upserts and deletes that are newer, and new rows."""
    here, there = F.col("t._there").isNotNull(), F.col("s._there").isNotNull()
    is_newer = sql.supersedes("s._position", "t._position", snapshots=True)
    is_newer = f"({is_newer} AND NOT {keyed.of_same_commit(soft=soft)})"
    newer = F.coalesce(F.expr(f"(s.{NEWER} = true OR {is_newer})"), F.lit(False))
    upsert = F.col(f"s.{OP}") == UPSERT
    taken = there & upsert & (~here | newer)
    removed = (here & there & ~upsert & newer) | (there & ~here & ~upsert)
    swept = here & ~there & F.coalesce(F.expr(gone), F.lit(False))
    if not soft:
        removed |= swept
    on = [column("t", name) == column("s", name) for name in reading.shape.key]
    pairs = (
        rows.withColumn("_there", F.lit(True)).alias("t")
        .join(last.withColumn("_there", F.lit(True)).alias("s"), on, "full_outer")
        .where(~F.coalesce(removed, F.lit(False)))
    )  # fmt: skip
    chosen = []
    for name in rows.columns:
        is_set = ~F.array_contains(F.col(f"s.{UNSET}"), name)
        key = name in reading.shape.key
        use = there & ~here if key else taken & is_set
        value = F.when(F.coalesce(use, F.lit(False)), column("s", name))
        value = value.when(there & ~here, F.lit(None)) if not key else value
        if soft and truncated and name in (DELETED, POSITION):
            value = value.when(swept, F.lit(True if name == DELETED else truncated[0]))
        chosen.append(value.otherwise(column("t", name)).alias(name))
    return pairs.select(*chosen)


def merged_without_key(
    rows: DataFrame,
    last: DataFrame,
    reading: Reading,
    gone: str,
    truncated: Sequence[str],
    *,
    soft: bool,
) -> DataFrame:
    """What keyless.write does: rows are added, and taken away by all of their columns."""
    added = last.where(f"_op = {UPSERT}").select(*(F.col(n) for n in map(_quoted, rows.columns)))
    removed = last.where(f"_op = {DELETE}").alias("s")
    names = [name for name in rows.columns if name != DELETED]
    on = [column("t", name).eqNullSafe(column("s", name)) for name in names]
    swept = F.coalesce(F.expr(gone), F.lit(False))
    table = rows.alias("t")
    if not soft:
        stay = table.where(~swept).join(removed, on, "left_anti")
        return stay.unionByName(added)
    marks = removed.withColumn("_there", F.lit(True)).alias("s")
    is_gone = F.col("s._there").isNotNull() | swept
    chosen = [
        F.when(is_gone, F.lit(True)).otherwise(column("t", name)).alias(name)
        if name == DELETED else column("t", name).alias(name)
        for name in rows.columns
    ]  # fmt: skip
    return table.join(marks, on, "left").select(*chosen).unionByName(added)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
