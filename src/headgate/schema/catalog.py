"""Which tables are known, by name and database."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from math import inf

from headgate.core.cache import weight
from headgate.core.errors import shown
from headgate.schema.table_builder import MAX_STEPS, Draft
from headgate.schema.tables import Table
from headgate.schema.tokenizer import Unreadable

Name = tuple[str | None, str]
"""A table's database and name; of a table in a schema, the name is `schema.table`."""


class Absent(Enum):
    """Why a table is not known although something else would tell of it."""

    DROPPED = 1
    FORGOTTEN = 2


class Known:
    """A table that is known."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        columns = draft.columns.items()
        self.bytes = sum(192 + len(name) + len(column.mysql) for name, column in columns)

    @cached_property
    def table(self) -> Table:
        """The finished table; many statements may come before it is asked for."""
        return self.draft.table()


class Catalog:
    """The tables that a file and the statements so far tell."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str | None, Known | Absent]] = {}
        self.from_file = True
        self.steps = 0
        self._bytes, self._most = 0, inf
        self.pushed_out = 0
        """How many tables had to make room."""

    def end_file(self, most: int) -> None:
        """From now on events tell the tables, in at most so many bytes."""
        self.from_file, self._most = False, self._bytes + most

    def spend(self, steps: int) -> None:
        """Count the work of one event's statements."""
        self.steps += steps
        if self.steps > MAX_STEPS and not self.from_file:
            raise Unreadable("the statements are too much work", 0)

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
            found = self.tables.get(f"{schema}.{table}", {}).get(database)
            found = found or self.entry((schema, table))
            return found if isinstance(found, Known) else None
        homes = self.tables.get(table)  # type: ignore[arg-type]  # None is no table's name
        if homes is None:
            return None
        found = homes.get(database) or homes.get(None)
        if found is None and database is None:
            there = [entry for entry in homes.values() if entry.__class__ is Known]
            found = there[0] if len(there) == 1 else None
        return found if isinstance(found, Known) else None

    def must_find(self, name: Name, line: int) -> Known:
        """A table that a statement needs."""
        known = self.find(*name)
        if known is None:
            dotted = ".".join(part for part in name if part is not None)
            raise Unreadable(f"table {shown(dotted)} is not known", line)
        return known

    def entry(self, name: Name) -> Known | Absent | None:
        """What is known of a table, or why nothing is."""
        homes = self.tables.get(name[1], {})
        return homes.get(name[0]) or homes.get(None)

    def draft(self, name: Name, line: int) -> Draft:
        """A table's draft, to be changed."""
        draft = self.must_find(name, line).draft
        self.spend(4 * len(draft.columns))
        return draft.copy(self.steps)

    # Changes

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

    def set(self, name: Name, draft: Draft) -> None:
        """Note a table; one without a database is the one table of its name."""
        database, table = name
        homes = self.tables.get(table, {})
        if database is None and homes and not self.from_file:
            if len(homes) > 1:
                raise Unreadable(f"several databases have a table {shown(table)}", 0)
            database = next(iter(homes))
        self.steps = max(self.steps, draft.steps)
        self.put((database, table), Known(draft))

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


def _weight(name: Name, entry: Known | Absent | None) -> int:
    """About how many bytes are held of a table."""
    if entry is None:
        return 0
    return weight(name) + (entry.bytes if isinstance(entry, Known) else 0)
