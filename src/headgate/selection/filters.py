"""What a job takes of the rows of a table: operations, columns, and a condition."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.codec.schemas import Schemas
from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.keys import key, not_empty, one_of
from headgate.selection.columns import Columns, Projection
from headgate.selection.flink import flink_glob, projection
from headgate.selection.globs import TableGlob, split_glob, table_pattern

OPS = ("insert", "update", "delete", "snapshot", "truncate")


@dataclass(frozen=True)
class Filter:
    """What is kept of the rows of some tables; the first filter that matches a table counts."""

    table: str = key(
        "the tables whose rows are filtered: a pattern, as under `tables`",
        read=table_pattern,
        missing="the filter has no table; add table: database.table",
    )
    ops: tuple[str, ...] | None = key(
        f"operations that are kept: `{' '.join(OPS)}`; `snapshot` is a row of an initial load",
        None,
        read=one_of("operation", OPS),
        default_text="all",
        empty="exclude the table under tables:",
    )
    where: str | None = key(
        "rows that are kept: a condition in Spark SQL", None, read=not_empty, default_text="all"
    )
    columns: Columns = key("columns that are kept", Columns, default_text="all")

    @property
    def keeps_all(self) -> bool:
        """Whether rows pass whole, all of them."""
        return self.ops is None and not self.where and self.columns.keeps_all


class TableFilter:
    """A compiled filter. Its condition is evaluated elsewhere."""

    def __init__(self, filter: Filter) -> None:
        self.table = TableGlob(filter.table)
        self.ops = None if filter.ops is None else frozenset(filter.ops)
        self.projection = None
        if not filter.columns.keeps_all:
            self.projection = Projection(filter.columns, filter.table)


def _projection(text: str) -> str:
    projection(text)
    return text


@dataclass(frozen=True)
class Transform:
    """Flink CDC's `transform`, as far as it is a filter."""

    source_table: str = key(
        "`database.table`, with `\\.*` for any text",
        name="source-table",
        read=flink_glob,
        missing="the transform has no source-table",
    )
    filter: str | None = key("rows that are kept: our `where`", None, read=not_empty)
    projection: str | None = key(
        "columns that are kept: their names, or `\\*`", None, read=_projection
    )
    description: None = key("a comment", None)

    def as_rule(self) -> Filter:
        """The filter that it stands for."""
        columns = None if self.projection is None else projection(self.projection)
        return Filter(self.source_table, None, self.filter, Columns(columns))


def check_columns(filter: Filter, schema: str | None) -> None:
    """Where the table is known, refuse a column it does not have, and the loss of its key."""
    if schema is None or "*" in filter.table or "?" in filter.table:
        return
    table = Schemas(schema).table(*split_glob(filter.table))
    if table is None:
        return
    columns = {name.lower() for name in table.columns}
    for name in (*(filter.columns.include or ()), *filter.columns.exclude):
        if name.lower() not in columns and "*" not in name and "?" not in name:
            raise unknown_name(f"column of {filter.table}", name, table.columns)
    removed = Projection(filter.columns, filter.table).first_removed(table.key)
    if removed is not None:
        raise UsageError(
            f"the filter removes {shown(removed)}, a primary key column of {filter.table}; "
            "keep it: rows cannot be identified without it"
        )
