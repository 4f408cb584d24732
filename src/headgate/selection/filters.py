"""What a job takes of the rows of a table: operations, columns, and a condition."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.selection.columns import Columns, Projection
from headgate.selection.globs import TableGlob

OPS = ("insert", "update", "delete", "snapshot", "truncate")


@dataclass(frozen=True)
class Filter:
    """What is kept of the rows of some tables; the first filter that matches a table counts."""

    table: str
    ops: tuple[str, ...] | None = None
    where: str | None = None
    columns: Columns = field(default_factory=Columns)

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
