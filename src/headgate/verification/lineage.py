"""What later DDL did to a row: its table's and its columns' last names, the defaults of new ones.

A log has rows as they were when they were written. `Lineage` follows each table from the end of the
log backwards, statement by statement, so that every row can be read as the table is now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from headgate.core.mysql_types import parse_type
from headgate.landing.defaults import existing_value
from headgate.landing.mysql_conversion import text_rule
from headgate.landing.mysql_times import NotComputable
from headgate.pipeline.counts import full_name
from headgate.schema.changes import (
    AddColumn,
    DropColumn,
    DropDatabase,
    DropTable,
    ModifyColumn,
    RenameColumn,
    RenameTable,
    SchemaChange,
    SetPrimaryKey,
    TableId,
    TruncateTable,
)


class Statement(NamedTuple):
    """What a statement changed, and when."""

    changes: Sequence[SchemaChange]
    time: datetime | None = None


@dataclass(frozen=True)
class Fate:
    """What becomes of the rows of a table that were written up to some statement."""

    table: str | None
    """The table they are in at the end; None if they are gone."""
    columns: dict[str, str | None] = field(default_factory=dict)
    """Last names of columns whose names changed; None for those that were dropped."""
    added: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """By their last names, columns that came later: type, and value."""
    modified: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By their last names, the types that columns got later, one after the other."""
    key: tuple[str, ...] | None = None
    """The key that the table got later, by last names; None if it keeps its own."""
    truncated: bool = False
    """Whether the rows are gone, and the table is not."""

    def name(self, column: str) -> str | None:
        """The last name of a column; None if it is gone."""
        return self.columns.get(column, column)


class Lineage:
    """The fates of all rows of a log, from its statements.

    >>> from headgate.schema.ddl import changes
    >>> lineage = Lineage([Statement(changes("ALTER TABLE d.t RENAME COLUMN a TO b")),
    ...                    Statement(changes("RENAME TABLE d.t TO d.u"))])
    >>> lineage.fate("d.t", 0).table, lineage.fate("d.t", 0).columns
    ('d.u', {'b': None, 'a': 'b'})
    >>> lineage.fate("d.t", 1).columns, lineage.fate("d.u", 2).table
    ({}, 'd.u')
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._fates: dict[str, list[tuple[int, Fate]]] = {}
        """By name: the fates of rows before statements, the last statement first."""
        self._dropped: list[tuple[int, str]] = []
        """Databases that a statement dropped."""
        for number in range(len(statements) - 1, -1, -1):
            for change in reversed(statements[number].changes):
                undo = _UNDO.get(type(change))
                if undo is not None:
                    undo(self, number, change, statements[number].time)

    def fate(self, table: str, step: int) -> Fate:
        """What becomes of rows of a table that were written after so many statements."""
        fates = self._fates.get(table, [])
        chosen = next((each for each in reversed(fates) if each[0] >= step), None)
        dropped = [n for n, database in self._dropped if n >= step and table.startswith(database)]
        if dropped and (chosen is None or min(dropped) < chosen[0]):
            return Fate(None)
        return Fate(table) if chosen is None else chosen[1]

    def _put(self, number: int, table: str, fate: Fate) -> None:
        fates = self._fates.setdefault(table, [])
        if fates and fates[-1][0] == number:
            fates.pop()
        fates.append((number, fate))

    def _drop(self, number: int, change: DropTable, _: datetime | None) -> None:
        self._put(number, table_name(change.table), Fate(None))

    def _truncate(self, number: int, change: TruncateTable, _: datetime | None) -> None:
        name = table_name(change.table)
        self._put(number, name, replace(self.fate(name, number), truncated=True))

    def _drop_database(self, number: int, change: DropDatabase, _: datetime | None) -> None:
        self._dropped.append((number, f"{change.database}."))

    def _rename(self, number: int, change: RenameTable, _: datetime | None) -> None:
        old, new = table_name(change.table), table_name(change.to)
        self._put(number, old, self.fate(new, number))
        self._put(number, new, Fate(None))

    def _rename_column(self, number: int, change: RenameColumn, _: datetime | None) -> None:
        name = table_name(change.table)
        fate = self.fate(name, number)
        columns = {**fate.columns, change.to: None, change.name: fate.name(change.to)}
        self._put(number, name, replace(fate, columns=columns))

    def _modify_column(self, number: int, change: ModifyColumn, _: datetime | None) -> None:
        name, column = table_name(change.table), change.column
        fate = self.fate(name, number)
        last = fate.name(column.name)
        if last is not None:
            types = (column.mysql, *fate.modified.get(last, ()))
            self._put(number, name, replace(fate, modified={**fate.modified, last: types}))

    def _add_column(self, number: int, change: AddColumn, time: datetime | None) -> None:
        name, column = table_name(change.table), change.column
        fate = self.fate(name, number)
        last = fate.name(column.name)
        if last is None:
            return
        try:
            value = existing_value(column, column.mysql, time)
        except NotComputable:
            value = None
        later = fate.modified.get(last, ())
        value = as_modified(value, column.mysql, later)
        added = {**fate.added, last: ((column.mysql, *later)[-1], value)}
        self._put(number, name, replace(fate, added=added))

    def _set_key(self, number: int, change: SetPrimaryKey, _: datetime | None) -> None:
        name = table_name(change.table)
        fate = self.fate(name, number)
        if fate.key is None:
            self._put(number, name, replace(fate, key=last_names(change.columns, fate)))

    def _drop_column(self, number: int, change: DropColumn, _: datetime | None) -> None:
        name = table_name(change.table)
        fate = self.fate(name, number)
        self._put(number, name, replace(fate, columns={**fate.columns, change.name: None}))


_UNDO: dict[type, Callable[[Lineage, int, Any, datetime | None], None]] = {
    DropTable: Lineage._drop,
    TruncateTable: Lineage._truncate,
    DropDatabase: Lineage._drop_database,
    RenameTable: Lineage._rename,
    RenameColumn: Lineage._rename_column,
    ModifyColumn: Lineage._modify_column,
    AddColumn: Lineage._add_column,
    DropColumn: Lineage._drop_column,
    SetPrimaryKey: Lineage._set_key,
}
"""What changes rows that were written before; other changes leave their values as they are."""


def table_name(table: TableId) -> str:
    """A table's name as reports have it."""
    return full_name(table.database, table.table)


def last_names(columns: Sequence[str], fate: Fate) -> tuple[str, ...]:
    """The last names of a key's columns; none if one of the columns is gone."""
    names = [fate.name(column) for column in columns]
    return () if None in names else tuple(name for name in names if name is not None)


def as_modified(value: str | None, mysql: str | None, later: Sequence[str]) -> str | None:
    """A value of a column whose type changed later; as it is, where nobody knows what it became.

    >>> as_modified("2.250", "decimal(10,3)", ["decimal(10,1)", "varchar(9)"])
    '2.3'
    """
    for type_ in later:
        if value is None or mysql is None:
            return value
        try:
            rule = text_rule(parse_type(mysql), parse_type(type_))
            value = value if rule is None else rule(value)
        except NotComputable:
            return value
        mysql = type_
    return value
