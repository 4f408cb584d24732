"""What has to be done to landed tables so that they follow a DDL statement, as plain values.

`landing/evolution.py` makes them; a sink of tables carries them out. A statement gives each table
at most one operation that writes, so that a sink can do it in one commit, with its token. All of
them read the tables as they were before the statement: two tables that are swapped are each filled
from the other's rows of before.
"""

from __future__ import annotations

import msgspec

from headgate.landing.shape import LandedColumn, TableShape
from headgate.schema.changes import TableId


class _Operation(msgspec.Struct, frozen=True, tag=True):
    """One operation."""

    table: TableId


class ColumnSource(msgspec.Struct, frozen=True):
    """Where a column's values come from, for the rows that are landed."""

    types: tuple[str, ...]
    """The MySQL types that the values go through: as they are landed, then each type that the
    statement gives the column. Of one type: they stay as they are."""
    column: str | None = None
    """The landed column; None where all rows have the same value."""
    text: str | None = None
    """That value as canonical text; None is NULL."""


class Grown(msgspec.Struct, frozen=True):
    """A table with further columns, and where its columns come from, by name."""

    shape: TableShape
    select: dict[str, ColumnSource]


class CreateLanded(_Operation, frozen=True):
    """Create a table. Where it exists, rows before the position go, and it gets these columns."""

    shape: TableShape
    position: str
    with_rows: Grown | None = None
    """Of a table that is there and was not dropped, where it has rows whose places do not compare
    with the position: a table is not created while it is there, so they came later, in another
    partition, and stay."""


class AddColumns(_Operation, frozen=True):
    """Add columns that are NULL in all rows."""

    columns: tuple[LandedColumn, ...]
    shape: TableShape
    """The table with them."""


class Rewrite(_Operation, frozen=True):
    """Give a table other columns, and its rows their values."""

    shape: TableShape
    select: dict[str, ColumnSource]
    """By new column."""


class MoveTable(_Operation, frozen=True):
    """Fill the table `to` with the rows of `table`; what `to` had is gone.

    Where nothing takes its place, a `Discard` of `table` follows.
    """

    to: TableId
    shape: TableShape
    """Of the table `to`."""
    select: dict[str, ColumnSource]


class Empty(_Operation, frozen=True):
    """Remove the rows before a position, as TRUNCATE does; the table gets these columns."""

    shape: TableShape
    position: str


class Describe(_Operation, frozen=True):
    """Note what is known of the columns: order, MySQL's types, the key. Rows stay as they are."""

    shape: TableShape


class Discard(_Operation, frozen=True):
    """Remove a table."""


class Park(_Operation, frozen=True):
    """Leave a table as it is, and keep its changes, until somebody has seen to it."""

    statement: str
    reason: str
    remedy: str


class Warn(_Operation, frozen=True):
    """Tell the operator that a table no longer follows the source in all respects."""

    statement: str
    reason: str


Operation = (
    CreateLanded | AddColumns | Rewrite | MoveTable | Empty | Describe | Discard | Park | Warn
)


def written(operation: Operation) -> TableId:
    """The table that an operation changes."""
    return operation.to if isinstance(operation, MoveTable) else operation.table
