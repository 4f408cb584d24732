"""Operations of a statement on Delta tables: where they run, and what is done when one fails.

What reads or writes rows runs in a task of Spark's, not on the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from headgate.core.errors import StorageError, shown
from headgate.landing.conversion import NotConvertible, converted
from headgate.landing.mysql_times import NotComputable
from headgate.landing.operations import (
    AddColumns,
    ColumnSource,
    CreateLanded,
    Describe,
    MoveTable,
    Rewrite,
    written,
)
from headgate.landing.shape import LandedColumn, TableShape
from headgate.sinks.delta.lake import Lake, named
from headgate.sinks.delta.merge import ATTEMPTS
from headgate.sinks.delta.operations import Change, change_table, has_newer_rows
from headgate.sinks.delta.table import LandedTable, TableError, Token
from headgate.sinks.delta.task import failure

log = logging.getLogger(__name__)
RESULT = "warnings array<string>, error string, remedy string, stops boolean"
RESULT_SCHEMA = pa.schema(
    [
        ("warnings", pa.list_(pa.string())),
        ("error", pa.string()),
        ("remedy", pa.string()),
        ("stops", pa.bool_()),
    ]
)
ROWS_OF_DROPPED = (
    "it was dropped, and rows came before it was created again: which of its rows are of the "
    "dropped table is not known"
)
REMOVE_ROWS = "remove those from it, then run `headgate tables resume` for it"
REMEDY = "make the table what the source's is, for example by loading it again from a snapshot"


def carry_out(
    spark: SparkSession, lake: Lake, operation: Change, token: Token, versions: Mapping[str, int]
) -> None:
    """Carry out an operation, once: a table that has its token stays as it is.

    `versions` has, by path, the versions of tables before the statement. TableError says why the
    table cannot follow it.
    """
    if not touches_rows(lake, operation):
        change(lake, operation, token, versions)
        return

    def run(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in rows:
            yield pa.RecordBatch.from_pylist(
                [result(lake, operation, token, versions)], RESULT_SCHEMA
            )

    [row] = spark.range(0, 1, 1, 1).mapInArrow(run, RESULT).collect()
    for warning in row.warnings or ():
        log.warning("table %s: %s", shown(named(written(operation))), warning)
    if row.error is not None and row.stops:
        raise StorageError(f"cannot change {shown(named(written(operation)))}: {row.error}")
    if row.error is not None:
        raise TableError(row.error, row.remedy)


def touches_rows(lake: Lake, operation: Change) -> bool:
    """Whether an operation may take as long as its table is large."""
    if isinstance(operation, AddColumns | Describe):
        return False
    return not isinstance(operation, CreateLanded) or lake.opened(operation.table) is not None


def result(
    lake: Lake, operation: Change, token: Token, versions: Mapping[str, int]
) -> dict[str, object]:
    """What became of an operation, as a row: an exception would come with a stack of Spark's."""
    try:
        return {"warnings": change(lake, operation, token, versions), "stops": False}
    except Exception as error:
        return failure(error)


def change(lake: Lake, operation: Change, token: Token, versions: Mapping[str, int]) -> list[str]:
    """Carry out an operation; what could not be done of it, where the job goes on without.

    Where another writer committed in between, it is done again.
    """
    warnings: list[str] = []
    if has_rows_of_dropped(lake, operation):
        if lake.rules.park:
            raise TableError(ROWS_OF_DROPPED, REMOVE_ROWS)
        warnings.append(f"{ROWS_OF_DROPPED}; all of them stay")
    attempts = 0
    while attempts < ATTEMPTS:
        try:
            change_table(lake, without_rewrite(lake, operation), token, versions)
            return warnings
        except CommitFailedError:
            attempts += 1
        except NotConvertible as error:
            if lake.rules.park or not isinstance(operation, Rewrite | MoveTable):
                raise TableError(str(error), REMEDY) from None
            operation = as_landed(lake, operation, error.column)
            warnings.append(f"{error}; the column stays as it is")
    raise StorageError(
        f"{lake.location(written(operation)).uri} is being changed by another writer all the time: "
        f"{ATTEMPTS} commits failed; stop the other one"
    )


def has_rows_of_dropped(lake: Lake, operation: Change) -> bool:
    """Whether a table is created again that has rows of which nobody knows if they are older."""
    if not isinstance(operation, CreateLanded) or operation.with_rows is None:
        return False
    landed = lake.opened(operation.table)
    if landed is None or not landed.shape.reappeared:
        return False
    return has_newer_rows(landed, operation.position)


def as_landed(lake: Lake, operation: Rewrite | MoveTable, name: str) -> Rewrite | MoveTable:
    """The operation without the conversion of a column, which keeps its type."""
    source = operation.select[name]
    landed = lake.opened(operation.table)
    assert landed is not None
    types = {column.name: column for column in landed.shape.columns}

    def kept(column: LandedColumn) -> LandedColumn:
        if column.name != name or source.column is None:
            return column
        before = types[source.column]
        return msgspec.structs.replace(column, type=before.type, mysql=before.mysql)

    columns = tuple(map(kept, operation.shape.columns))
    select = {**operation.select, name: ColumnSource(source.types[:1], source.column)}
    shape = msgspec.structs.replace(operation.shape, columns=columns)
    return msgspec.structs.replace(operation, shape=shape, select=select)


def without_rewrite(lake: Lake, operation: Change) -> Change:
    """The operation, or what remains of it where no value changes: what is noted of the columns.

    A VARCHAR becomes shorter, a DATETIME loses its fraction: mostly there is nothing to cut.
    """
    if not isinstance(operation, Rewrite):
        return operation
    landed = lake.opened(operation.table)
    if landed is None or not has_same_columns(landed.shape, operation):
        return operation
    conversions = {
        name: source for name, source in operation.select.items() if len(source.types) > 1
    }
    if all(is_same(lake, landed, name, source) for name, source in conversions.items()):
        return Describe(operation.table, operation.shape)
    return operation


def has_same_columns(landed: TableShape, operation: Rewrite) -> bool:
    """Whether a table keeps its columns, under their names and in their types."""
    wanted = {column.name: column.type for column in operation.shape.columns}
    return wanted == {column.name: column.type for column in landed.columns} and all(
        source.column == name for name, source in operation.select.items()
    )


def is_same(lake: Lake, landed: LandedTable, name: str, source: ColumnSource) -> bool:
    """Whether a conversion changes no value of a column."""
    lake_type = next(column.type for column in landed.shape.columns if column.name == name)
    batches = pa.RecordBatchReader.from_stream(landed.delta.scan([name]))
    type_ = landed.schema.field(name).type
    try:
        for batch in batches:
            column = batch.column(0).cast(type_)
            if not converted(column, source.types, lake_type, lake.options.types).equals(column):
                return False
    except NotComputable:
        return False
    return True
