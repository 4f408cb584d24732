"""A table's definition, as statements change it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from headgate.core.errors import shown
from headgate.schema.columns import Column
from headgate.schema.tables import Table
from headgate.schema.tokenizer import MAX_COLUMNS, MAX_INDEXES, Unreadable

MAX_STEPS = 3_000_000
"""Columns that the statements of one event go over, again and again."""


class Index(NamedTuple):
    """An index; `columns` is empty where it is on an expression."""

    columns: tuple[str, ...]
    unique: bool


@dataclass
class TableDefinition:
    """Columns, primary key and indexes of a table. Index names are in lower case."""

    columns: dict[str, Column] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    indexes: dict[str, Index] = field(default_factory=dict)
    binary: bool = False
    """Whether text columns are binary unless they say otherwise."""
    charset: str | None = None
    """The character set of text columns that do not say otherwise, where statements name it."""
    ahead: bool = False
    """From a file, which may be ahead of the events: a change may have been made in it already."""
    steps: int = 0
    """How many columns were gone over to make it."""

    def __post_init__(self) -> None:
        self._names = {name.lower(): name for name in self.columns}

    def copy(self, steps: int) -> TableDefinition:
        """The same, to be changed apart, after so many steps."""
        columns, indexes = dict(self.columns), dict(self.indexes)
        return replace(self, columns=columns, indexes=indexes, steps=steps)

    def _go_over(self, columns: int) -> None:
        """Count a walk over so many columns: hostile text would have no end of them."""
        self.steps += columns
        if self.steps > MAX_STEPS:
            raise Unreadable("there are too many changes")

    def table(self) -> Table:
        """The finished table."""
        ready = [index for index in self.indexes.values() if index.columns]
        return Table(
            self.columns,
            self.key,
            tuple(index.columns for index in ready if index.unique),
            tuple(index.columns for index in ready if not index.unique),
        )

    def find(self, name: str) -> str | None:
        """A column's name as the table writes it: MySQL's column names ignore case."""
        return name if name in self.columns else self._names.get(name.lower())

    def get(self, name: str, at: int | None = None) -> str:
        """The same, of a column that must be there."""
        column = self.find(name)
        if column is None:
            raise Unreadable(f"there is no column {shown(name)}", at)
        return column

    def set_key(self, names: tuple[str, ...]) -> None:
        """Make these columns the primary key, which takes NULL from them."""
        self.key = names
        for name in names:
            self.columns[name] = self.columns[name]._replace(nullable=False)

    def add_index(self, name: str, index: Index) -> None:
        """Add an index; one without a name gets the name that MySQL gives it."""
        name = stem = index_name(name, index)
        if name in self.indexes and self.ahead:
            del self.indexes[name]
        if len(self.indexes) >= MAX_INDEXES:
            raise Unreadable(f"more than {MAX_INDEXES} indexes")
        count = 2
        while name in self.indexes:
            name, count = f"{stem}_{count}", count + 1
        self.indexes[name] = index

    def drop_index(self, name: str) -> None:
        """Drop an index by its name."""
        if self.indexes.pop(name.lower(), None) is None and not self.ahead:
            raise Unreadable(f"there is no index {shown(name)}")

    def put(self, name: str, column: Column, old: str | None = None, at: int | None = None) -> None:
        """Add a column at the end, or in place of the column `old`."""
        if self.find(name) not in (None, old):
            raise Unreadable(f"column {shown(name)} is defined twice", at)
        if old is not None and name != old:
            self._go_over(len(self.columns))
            self.columns = {name if n == old else n: c for n, c in self.columns.items()}
            del self._names[old.lower()]
            self._in_keys(old, (name,))
        self.columns[name] = column
        self._names[name.lower()] = name
        if len(self.columns) > MAX_COLUMNS:
            raise Unreadable(f"more than {MAX_COLUMNS} columns", at)
        if name in self.key:
            self.set_key(self.key)

    def drop(self, name: str) -> None:
        """Drop a column, and take it out of all keys."""
        del self.columns[name], self._names[name.lower()]
        self._in_keys(name, ())

    def _in_keys(self, old: str, new: tuple[str, ...]) -> None:
        """Write other columns for one in all keys; an index without columns is gone."""
        self._go_over(sum(len(index.columns) for index in self.indexes.values()))

        def swapped(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(n for name in names for n in (new if name == old else (name,)))

        self.key = swapped(self.key)
        for name, index in list(self.indexes.items()):
            if old in index.columns:
                self.indexes[name] = index._replace(columns=swapped(index.columns))
                if not self.indexes[name].columns:
                    del self.indexes[name]

    def move(self, name: str, after: str | None) -> None:
        """Move a column behind another, or to the front."""
        self._go_over(len(self.columns))
        names = [known for known in self.columns if known != name]
        names.insert(0 if after is None else names.index(after) + 1, name)
        self.columns = {known: self.columns[known] for known in names}


def index_name(name: str, index: Index) -> str:
    """An index's name in lower case, or the one that MySQL starts from where it has none."""
    return name.lower() or (index.columns[0].lower() if index.columns else "expression")
