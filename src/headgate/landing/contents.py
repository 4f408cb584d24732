"""A landed table while a statement is gone through: its columns, and where their values come from.

Nothing is written here. Changes are applied one after the other to what the table will be, so that
however many parts a statement has, one operation remains to be done.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from headgate.landing.operations import ColumnSource
from headgate.landing.shape import LandedColumn, TableShape, landed_name
from headgate.schema.changes import Position, TableId


@dataclass(frozen=True)
class Column:
    """A column as it will be."""

    landed: LandedColumn
    source: ColumnSource
    is_renamed: bool = False
    """Whether the statement gave it its name."""

    @property
    def is_kept(self) -> bool:
        """Whether its values stay in their column as they are."""
        return self.source.column == self.landed.name and len(self.source.types) == 1

    @property
    def is_null(self) -> bool:
        """Whether it is NULL in all rows."""
        return self.source.column is None and self.source.text is None


@dataclass
class Contents:
    """What a table will be."""

    origin: TableId | None
    """The landed table whose rows it will have; None where it will be empty."""
    columns: list[Column]
    key: tuple[str, ...] = ()
    """Landed names."""
    problem: str | None = None
    """Why what it will be is not known."""
    warnings: list[str] = field(default_factory=list)
    applied: bool = True
    """Whether the last column was added or modified; the column's own keys depend on it."""

    @classmethod
    def of(cls, shape: TableShape) -> Contents:
        """What a landed table is."""
        columns = [
            Column(column, ColumnSource((column.mysql or "",), column.name))
            for column in shape.columns
        ]
        return cls(shape.table, columns, shape.key)

    @classmethod
    def empty(cls, shape: TableShape) -> Contents:
        """A new table."""
        return cls(None, [constant_column(column, None) for column in shape.columns], shape.key)

    def shape(self, table: TableId) -> TableShape:
        """The shape of a table that has it."""
        return TableShape(table, tuple(column.landed for column in self.columns), self.key)

    def select(self) -> dict[str, ColumnSource]:
        """Where its columns come from, by name."""
        return {column.landed.name: column.source for column in self.columns}

    def fail(self, reason: str, park: bool) -> None:
        """Note that a change cannot be applied."""
        if park:
            self.problem = self.problem or reason
        else:
            self.warnings.append(reason)

    def clear(self) -> None:
        """Remove all rows, and with them what is wrong with them."""
        self.origin = self.problem = None

    # Columns

    def find(self, name: str, renamed: bool = True) -> int | None:
        """The place of the source's column of that name; MySQL's column names ignore case.

        While columns swap names two have the same: `renamed` says which one is meant, that which
        has it now, or that which had it before the statement.
        """
        places = [
            place
            for place, column in enumerate(self.columns)
            if not column.landed.dropped and column.landed.source_name.lower() == name.lower()
        ]
        places.sort(key=lambda place: self.columns[place].is_renamed != renamed)
        return places[0] if places else None

    def put(self, column: Column, position: Position | None = None) -> None:
        """Add a column."""
        self.columns.append(column)
        self._make_room(len(self.columns) - 1)
        if position is not None:
            self.move(len(self.columns) - 1, position)

    def take_new(self, shape: TableShape | None) -> None:
        """Add the columns of a shape that are not there; they are NULL in all rows."""
        for column in () if shape is None else shape.columns:
            if self.find(column.source_name) is None:
                self.put(constant_column(column, None))

    def name_of_two(self) -> str | None:
        """The name that two columns have, of which one was there and the other was renamed."""
        names: set[str] = set()
        for name in (column.landed.name for column in self.columns):
            if name.lower() in names:
                return name
            names.add(name.lower())
        return None

    def move(self, place: int, position: Position) -> None:
        """Move a column behind another, or to the front."""
        column = self.columns.pop(place)
        if position.after is None:
            self.columns.insert(0, column)
        else:
            after = self.find(position.after)
            self.columns.insert(place if after is None else after + 1, column)

    def drop(self, place: int, keep: bool) -> None:
        """Drop a column; what is kept of it is no longer the source's."""
        column = self.columns[place]
        self.key = tuple(name for name in self.key if name != column.landed.name)
        if keep:
            self.columns[place] = replace(
                column, landed=msgspec.structs.replace(column.landed, dropped=True)
            )
        else:
            del self.columns[place]

    def rename(self, place: int, to: str) -> None:
        """Give a column another name."""
        column = self.columns[place]
        name = landed_name(to)
        landed = msgspec.structs.replace(
            column.landed, name=name, source=None if name == to else to
        )
        self.key = tuple(name if each == column.landed.name else each for each in self.key)
        self.columns[place] = replace(column, landed=landed, is_renamed=True)
        self._make_room(place)

    def _make_room(self, place: int) -> None:
        """Remove a column that the source dropped, where another one has its name now."""
        name = self.columns[place].landed.name.lower()
        self.columns = [
            column
            for at, column in enumerate(self.columns)
            if at == place or not column.landed.dropped or column.landed.name.lower() != name
        ]

    def set_key(self, names: tuple[str, ...]) -> None:
        """Make columns of the source the key."""
        places = [self.find(name) for name in names]
        self.key = tuple(self.columns[place].landed.name for place in places if place is not None)


def constant_column(column: LandedColumn, text: str | None) -> Column:
    """A column in which all rows have the same value."""
    return Column(column, ColumnSource((column.mysql or "",), text=text))
