"""Operations on landed tables (landing/operations.py), each in one commit with its token.

The order of columns, and what is noted of a table's shape, are committed after it. Where that was
cut off, it is made up for when the operation comes again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.landing.conversion import NotConvertible, selected
from headgate.landing.operations import (
    AddColumns,
    ColumnSource,
    CreateLanded,
    Describe,
    Empty,
    Grown,
    MoveTable,
    Rewrite,
)
from headgate.landing.shape import TableShape
from headgate.landing.types import arrow_type
from headgate.schema.changes import TableId
from headgate.sinks.delta import sql
from headgate.sinks.delta.keyed import before, older
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.statistics import whole_numbers
from headgate.sinks.delta.table import (
    DELETED,
    POSITION,
    LandedTable,
    Token,
    create,
)

Change = CreateLanded | AddColumns | Rewrite | MoveTable | Empty | Describe
"""Operations that change one table."""


def change_table(
    lake: Lake, operation: Change, token: Token | None, versions: Mapping[str, int]
) -> None:
    """Carry out an operation, unless the table has its token.

    `versions` has, by path, the versions of tables before the statement. NotConvertible names a
    column whose values cannot be converted: the table is as it was then.
    """
    table = operation.to if isinstance(operation, MoveTable) else operation.table
    landed = lake.opened(table)
    shape = shape_after(operation, landed)
    if landed is None:
        if isinstance(operation, CreateLanded):
            remember_truncate(lake, table, operation.position)
            create(lake.location(table), shape, lake.schema(shape), lake.job, token)
            return
        landed = create(lake.location(table), shape, lake.schema(shape), lake.job)
    if token is None or not landed.has(token):
        if isinstance(operation, Describe):
            landed.describe(shape, lake.job, token)
        else:
            change_rows(lake, operation, landed, token, versions)
    elif not landed.has_just(token):
        return  # what came later has been done as well
    landed = landed.again().reordered(shape.names)
    if not landed.is_described(shape):
        landed.describe(shape, lake.job)


def change_rows(
    lake: Lake,
    operation: CreateLanded | AddColumns | Rewrite | MoveTable | Empty,
    landed: LandedTable,
    token: Token | None,
    versions: Mapping[str, int],
) -> None:
    """Carry out an operation that changes rows or columns: one commit."""
    shape = operation.shape
    if isinstance(operation, MoveTable):
        move(lake, operation, landed, token, versions)
    elif isinstance(operation, Rewrite):
        rewrite(lake, landed, landed, shape, operation.select, token)
    elif isinstance(operation, CreateLanded) and (grown := operation.with_rows) is not None:
        if has_newer_rows(landed, operation.position):
            create_again(lake, landed, grown, operation.position, token)
        else:
            empty(lake, landed, shape, operation.position, token)
    elif isinstance(operation, AddColumns):
        new = [c for c in operation.columns if c.name not in landed.schema.names]
        if new:
            columns = pa.schema([(column.name, arrow_type(column.type)) for column in new])
            landed.add_columns(columns, token)
    else:
        empty(lake, landed, shape, operation.position, token)


def shape_after(operation: Change, landed: LandedTable | None) -> TableShape:
    """The shape of a table when an operation is done, and so also when it comes again."""
    if isinstance(operation, CreateLanded) and landed is not None:
        grown = operation.with_rows
        if grown is not None and has_newer_rows(landed, operation.position):
            return grown.shape
    return operation.shape


def has_newer_rows(landed: LandedTable, position: str) -> bool:
    """Whether a table has rows that are not known to be older than a position."""
    return landed.has_rows and landed.rows([POSITION], f"NOT {older(position)}").num_rows > 0


def rewrite(
    lake: Lake,
    target: LandedTable,
    source: LandedTable,
    shape: TableShape,
    select: Mapping[str, ColumnSource],
    token: Token | None,
) -> None:
    """Fill a table with converted rows of another, or with its own."""
    schema = lake.schema(shape)
    problems: list[NotConvertible] = []

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return converted_rows(lake, batch, shape, select)
        except NotConvertible as error:
            problems.append(error)
            raise

    small = {name for name in whole_numbers(source.schema) if name not in source.large}
    stay = {name for name, each in select.items() if each.column in small}
    target = target.note_large(name for name in whole_numbers(schema) if name not in stay)
    batches = map(convert, source.batches())
    try:
        target.overwrite(schema, batches, token)
    except DeltaError:  # into which it makes what its source of rows raises
        if not problems:
            raise
        raise problems[0] from None


def converted_rows(
    lake: Lake, rows: pa.RecordBatch, shape: TableShape, select: Mapping[str, ColumnSource]
) -> pa.RecordBatch:
    """Rows of a table in another shape, with Headgate's own columns as they are."""
    schema = lake.schema(shape)
    columns = selected(rows, shape, select, lake.options)
    arrays = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    for each in schema.names[len(arrays) :]:
        type_ = schema.field(each).type
        known = each in rows.schema.names
        arrays.append(rows.column(each) if known else pa.nulls(rows.num_rows, type_))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def move(
    lake: Lake,
    operation: MoveTable,
    target: LandedTable,
    token: Token | None,
    versions: Mapping[str, int],
) -> None:
    """Fill a table with the rows that another had before the statement."""
    location = lake.location(operation.table)
    version = versions.get(lake.path(operation.table))
    options = location.options or None
    source = LandedTable(location, DeltaTable(location.uri, version, storage_options=options))
    known = lake.deleted_keys(operation.table).everything()
    if known is not None:
        lake.deleted_keys(operation.to).append(known)
    rewrite(lake, target, source, operation.shape, operation.select, token)


def create_again(
    lake: Lake,
    landed: LandedTable,
    grown: Grown,
    position: str,
    token: Token | None,
) -> None:
    """Remove the rows that are known to be older than a position; the others get more columns."""
    gone, shape = older(position), grown.shape
    remember_truncate(lake, shape.table, position)
    if lake.options.deletes == "soft" and DELETED in landed.schema.names:
        marks = {DELETED: "true", POSITION: sql.text(position)}
        landed.update(marks, f"{gone} AND {DELETED} IS NOT TRUE", None)
        landed = landed.again()
        rewrite(lake, landed, landed, shape, grown.select, token)
        return
    kept = landed.rows(None, f"NOT {gone}").to_batches()
    batches = [converted_rows(lake, batch, shape, grown.select) for batch in kept]
    landed.overwrite(lake.schema(shape), iter(batches), token)


def empty(
    lake: Lake, landed: LandedTable, shape: TableShape, position: str, token: Token | None
) -> None:
    """Remove the rows before a position."""
    remember_truncate(lake, shape.table, position)
    if lake.options.deletes == "soft" and DELETED in landed.schema.names:
        missing = [c for c in shape.columns if c.name not in landed.schema.names]
        if missing:
            landed.add_columns(pa.schema([(c.name, arrow_type(c.type)) for c in missing]))
            landed = landed.again()
        marks = {DELETED: "true", POSITION: sql.text(position)}
        landed.update(marks, f"{before(position)} AND {DELETED} IS NOT TRUE", token)
        return
    schema = lake.schema(shape)
    kept = landed.rows(None, f"NOT {before(position)}") if landed.has_rows else None
    landed.overwrite(schema, aligned(kept, schema), token)


def remember_truncate(lake: Lake, table: TableId, position: str) -> None:
    """Note a position, so that older rows that arrive later do not come back."""
    if lake.options.mode == "current":
        lake.deleted_keys(table).remember(pa.nulls(1, pa.string()), pa.array([position]))


def aligned(rows: pa.Table | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows with the columns of a schema, where they have them in its types."""
    if rows is None:
        return
    columns = [
        rows.column(each.name) if each in rows.schema else pa.nulls(rows.num_rows, each.type)
        for each in schema
    ]
    yield from pa.table(columns, schema=schema).to_batches()
