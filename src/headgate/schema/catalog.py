"""Which tables are known, by name and database."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum
from functools import cached_property
from math import inf
from typing import Any

from headgate.core.cache import weight
from headgate.core.errors import shown
from headgate.schema.apply import altered
from headgate.schema.changes import (
    AlterTable,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    RenameTable,
    ReplaceRows,
    SchemaChange,
    TruncateTable,
    Unknown,
)
from headgate.schema.ddl import Reading
from headgate.schema.definition import MAX_STEPS, TableDefinition
from headgate.schema.tables import Table
from headgate.schema.tokenizer import Unreadable

Name = tuple[str | None, str]
"""A table's database and name; of a table in a schema, the name is `schema.table`."""


class Absent(Enum):
    """Why a table is not known, although a file or an earlier statement defines it."""

    DROPPED = 1
    FORGOTTEN = 2


class Known:
    """A table that is known."""

    def __init__(self, definition: TableDefinition) -> None:
        self.definition = definition
        columns = definition.columns.items()
        self.bytes = sum(192 + len(name) + len(column.mysql) for name, column in columns)

    @cached_property
    def table(self) -> Table:
        """The finished table; made on first use, as many statements may come before it."""
        return self.definition.table()


class Catalog:
    """The tables that a file and the statements so far define."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str | None, Known | Absent]] = {}
        self.from_file = True
        self.steps = 0
        self._bytes, self._most = 0, inf
        self.pushed_out = 0
        """How many tables had to make room."""

    def end_file(self, most: int) -> None:
        """From now on events define tables, in at most so many bytes."""
        self.from_file, self._most = False, self._bytes + most

    def spend(self, steps: int) -> None:
        """Count the work of one event's statements."""
        self.steps += steps
        if self.steps > MAX_STEPS and not self.from_file:
            raise Unreadable("the statements are too much work")

    def copy(self) -> Catalog:
        """The same, to be changed apart; what is known of a table is not changed, but replaced."""
        other = Catalog()
        other.tables = {table: homes.copy() for table, homes in self.tables.items()}
        other.from_file, other.pushed_out = self.from_file, self.pushed_out
        other._bytes, other._most = self._bytes, self._most
        return other

    # Lookups

    def find(
        self, database: str | None, table: str | None, schema: str | None = None
    ) -> Known | None:
        """A table, if it is known. Without a database, the one table of that name.

        One in a schema is known by all its names, as `schema.table`, or by its bare name.
        """
        if schema is not None and table is not None:
            entry = self.tables.get(f"{schema}.{table}", {}).get(database)
            entry = entry or self.entry((schema, table))
            return entry if isinstance(entry, Known) else None
        homes = self.tables.get(table)  # type: ignore[arg-type]  # None is no table's name
        if homes is None:
            return None
        entry = homes.get(database)
        if entry.__class__ is Known:
            return entry
        entry = entry or homes.get(None)
        if entry is None and database is None:
            there = [known for known in homes.values() if known.__class__ is Known]
            entry = there[0] if len(there) == 1 else None
        return entry if isinstance(entry, Known) else None

    def must_find(self, name: Name) -> Known:
        """A table that a statement needs."""
        known = self.find(*name)
        if known is None:
            dotted = ".".join(part for part in name if part is not None)
            raise Unreadable(f"table {shown(dotted)} is not known")
        return known

    def entry(self, name: Name) -> Known | Absent | None:
        """What is known of a table, or why nothing is."""
        homes = self.tables.get(name[1], {})
        return homes.get(name[0]) or homes.get(None)

    # Statements

    def run(self, reading: Reading) -> None:
        """Apply a statement; raises Unreadable where it is not understood or does not fit."""
        self.spend(1000)
        statement = reading.statement
        if (statement.verb, statement.object) == ("ALTER", "TABLE") and reading.tables:
            table = reading.tables[0]
            if reading.if_exists and self.entry(table) is None:
                return
            if not any(isinstance(change, Unknown) for change in reading.changes):
                self.must_find(table)
        self.apply(reading.changes)

    def apply(self, changes: Iterable[SchemaChange]) -> None:
        """Apply changes, in order."""
        pending: list[AlterTable] = []
        for change in changes:
            if not isinstance(change, AlterTable):
                self._alter(pending)
                _APPLY[type(change)](self, change)
                pending = []
            elif pending and change.table != pending[0].table:
                self._alter(pending)
                pending = [change]
            else:
                pending.append(change)
        self._alter(pending)

    def _alter(self, changes: list[AlterTable]) -> None:
        """Apply changes of one table at once: a table is copied for it."""
        if not changes:
            return
        name = changes[0].table
        before = self.must_find(name).definition
        self.spend(4 * len(before.columns))
        self.set(name, altered(before, changes, self.steps))

    def _create_table(self, change: CreateTable) -> None:
        if change.if_not_exists and self.entry(change.table) not in (None, Absent.DROPPED):
            return
        if change.unknown is not None:
            raise Unreadable(change.unknown.reason, change.unknown.at)
        definition = change.definition
        if change.like is not None:
            definition = self.must_find(change.like).definition
            self.spend(4 * len(definition.columns))
        assert definition is not None
        if definition.ahead != self.from_file:
            definition = replace(definition, ahead=self.from_file)
        self.set(change.table, definition)

    def _drop_table(self, change: DropTable) -> None:
        self._remove(change.table, Absent.DROPPED)

    def _rename_table(self, change: RenameTable) -> None:
        known = self.must_find(change.table) if self.from_file else self.find(*change.table)
        if known is None:
            # Nothing is known of the new table either: the old one may come back under it.
            self._remove(change.to, Absent.FORGOTTEN)
        else:
            self._remove(change.table, Absent.DROPPED)
            self.set(change.to, known.definition)

    def _drop_database(self, change: DropDatabase) -> None:
        self.spend(4 * len(self.tables))
        self.remove_database(change.database, Absent.DROPPED)

    def _unknown(self, change: Unknown) -> None:
        raise Unreadable(change.reason, change.at)

    def _leave(self, change: SchemaChange) -> None:
        """Nothing: it is of no consequence for what is known of tables."""

    def _remove(self, name: Name, why: Absent) -> None:
        if name[0] is None:
            self.spend(4 * len(self.tables.get(name[1], ())))
        self.remove(name, why)

    # Entries

    def put(self, name: Name, entry: Known | Absent) -> None:
        """Note what is known of a table; the tables noted longest ago make room."""
        database, table = name
        homes = self.tables.pop(table, {})
        self._bytes += _weight(name, entry) - _weight(name, homes.get(database))
        homes[database] = entry
        self.tables[table] = homes
        while self._bytes > self._most and len(self.tables) > 1:
            # All of one name go at once, so that nothing shows up that the newest had hidden.
            oldest = next(iter(self.tables))
            self.pushed_out += len(self.tables[oldest])
            for home, gone in self.tables.pop(oldest).items():
                self._bytes -= _weight((home, oldest), gone)

    def set(self, name: Name, definition: TableDefinition) -> None:
        """Note a table; one without a database is the one table of its name."""
        database, table = name
        homes = self.tables.get(table, {})
        if database is None and homes and not self.from_file:
            if len(homes) > 1:
                raise Unreadable(f"several databases have a table {shown(table)}")
            database = next(iter(homes))
        self.steps = max(self.steps, definition.steps)
        self.put((database, table), Known(definition))

    def remove(self, name: Name, why: Absent) -> None:
        """Hide a table; without a database, all of its name."""
        database, table = name
        homes = self.tables.get(table)
        if homes is None:
            return
        if database is None and not self.from_file:
            for home in list(homes):
                self.put((home, table), why)
        elif database in homes or None in homes:
            self.put(name, why)

    def remove_database(self, database: str | None, why: Absent) -> None:
        """Hide all tables of a database."""
        for table in list(self.tables):
            self.remove((database, table), why)


_APPLY: dict[type, Callable[[Catalog, Any], None]] = {
    CreateDatabase: Catalog._leave,
    TruncateTable: Catalog._leave,
    ReplaceRows: Catalog._leave,
    DropDatabase: Catalog._drop_database,
    CreateTable: Catalog._create_table,
    DropTable: Catalog._drop_table,
    RenameTable: Catalog._rename_table,
    Unknown: Catalog._unknown,
}
"""How a change is applied that is not one to the columns or keys of a table."""


def _weight(name: Name, entry: Known | Absent | None) -> int:
    """About how many bytes a table takes."""
    if entry is None:
        return 0
    return weight(name) + (entry.bytes if isinstance(entry, Known) else 0)
