"""Who writes the histories of a small MySQL server: rows of its tables, as a seed says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from mysql_model import Column, Row, Server, Table
from mysql_values import KEY_KINDS, KINDS, ColumnKind, widened, wider

TABLE_NAMES = ("orders", "items", "Odd.Täble-1 $x", "select", "log")
COLUMN_NAMES = (
    "a", "b", "price", "with space", "dot.ted", "ünï", "select", "Upper", "op", "$d", "_position",
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a history may hold: the part of MySQL that a dialect has messages for."""

    kinds: tuple[ColumnKind, ...] = KINDS
    key_kinds: tuple[ColumnKind, ...] = KEY_KINDS
    ddl: bool = True
    truncate: bool = True
    snapshots: bool = True
    keyless: bool = True
    """Tables without a key."""
    names: tuple[str, ...] = TABLE_NAMES
    tables: int = 3
    steps: int = 30


class Author:
    """Writes changes of rows: each step is a method that does what its random numbers say.

    A step that the server's state does not allow does nothing.
    """

    def __init__(self, server: Server, limits: Limits) -> None:
        self.server, self.limits = server, limits
        self.random = Random(0)

    @property
    def tables(self) -> dict[str, Table]:
        return self.server.tables

    def rows(self, name: str) -> None:
        """A transaction: the step, and now and then others."""
        several = self.random.choice((0, 0, 0, 1, 3))
        for each in (name, *self.random.choices(tuple(ROW_STEPS), k=several)):
            self.server.begin_statement()
            ROW_STEPS[each](self)

    # Choices

    def table(self) -> str | None:
        return self.random.choice(sorted(self.tables)) if self.tables else None

    def row(self, name: str) -> Row | None:
        rows = self.tables[name].rows
        return self.random.choice(rows) if rows else None

    def value(self, column: Column, is_key: bool = False) -> str | None:
        if column.nullable and self.random.random() < 0.2:
            return None
        return self.random.choice(self.values_of(column.type, is_key))

    def values_of(self, type_: str, is_key: bool) -> tuple[str, ...]:
        """The values of a type, also of one that a column was modified to."""
        both = (self.limits.kinds, self.limits.key_kinds)
        kinds = {kind.type: kind.values for each in both[:: 1 if is_key else -1] for kind in each}
        if type_ not in kinds:
            old = next(t for t in kinds if type_ in wider(t))
            return tuple(str(widened(value, old, type_)) for value in kinds[old])
        return kinds[type_]

    def new_row(self, name: str) -> Row | None:
        """A row with a key that no row has; None if that is not found."""
        table = self.tables[name]
        row = {
            column.name: self.value(column, column.name in table.key) for column in table.columns
        }
        return None if table.key and table.key_of(row) in table.key_values() else row

    def free_key(self, name: str) -> Row | None:
        row = self.new_row(name)
        return None if row is None else {each: row[each] for each in self.tables[name].key}

    def name_for(self, table: Table) -> str | None:
        free = [name for name in COLUMN_NAMES if name not in table.names]
        return self.random.choice(free) if free else None

    def column(self, name: str) -> Column:
        """A column of any type."""
        kind = self.random.choice(self.limits.kinds)
        return Column(name, kind.type, self.random.random() < 0.8)

    def new_table(self) -> Table:
        count = 0 if self.limits.keyless and self.random.random() < 0.2 else 1
        count += bool(count and self.random.random() < 0.3)
        kinds = self.random.choices(self.limits.key_kinds, k=count)
        keys = [Column(f"k{n}", kind.type, nullable=False) for n, kind in enumerate(kinds)]
        names = self.random.sample(COLUMN_NAMES, self.random.randint(1, 5))
        columns = keys + list(map(self.column, names))
        self.random.shuffle(columns)
        return Table(columns, tuple(column.name for column in keys))

    # Rows

    def insert(self) -> None:
        name = self.table()
        for _ in range(self.random.choice((1, 1, 2, 4))):
            row = self.new_row(name) if name else None
            if name and row is not None:
                again = not self.tables[name].key and self.random.random() < 0.4
                for _ in range(2 if again else 1):
                    self.server.insert(name, row)

    def update(self) -> None:
        name = self.table()
        row = self.row(name) if name else None
        if name and row is not None:
            self.server.update(name, row, self.other_values(name))

    def other_values(self, name: str) -> Row:
        table = self.tables[name]
        columns = [column for column in table.columns if column.name not in table.key]
        least = min(1, len(columns))  # all may be in the key
        chosen = self.random.sample(columns, self.random.randint(least, len(columns)))
        return {column.name: self.value(column) for column in chosen}

    def update_key(self) -> None:
        name = self.table()
        row = self.row(name) if name else None
        key = self.free_key(name) if name else None
        if name and row is not None and key:
            self.server.update(name, row, {**self.other_values(name), **key})

    def swap_keys(self) -> None:
        """Two rows change places, by way of a key that is free."""
        name = self.table()
        key = self.free_key(name) if name else None
        if not name or not key or len(self.tables[name].rows) < 2:
            return
        one, other = self.random.sample(self.tables[name].rows, 2)
        first = {each: one[each] for each in key}
        second = {each: other[each] for each in key}
        for row, to in ((one, key), (other, first), (one, second)):
            self.server.update(name, row, to)
            self.server.begin_statement()

    def shift_keys(self) -> None:
        """Each row takes the key of the next, the last one a free key: one statement."""
        name = self.table()
        key = self.free_key(name) if name else None
        if name and key:
            to: Row = key
            for row in list(self.tables[name].rows):
                left = {each: row[each] for each in key}
                self.server.update(name, row, to)
                to = left

    def delete(self) -> None:
        name = self.table()
        row = self.row(name) if name else None
        if name and row is not None:
            self.server.delete(name, row)

    def change_often(self) -> None:
        """A row is changed, deleted and inserted again."""
        name = self.table()
        row = self.row(name) if name else None
        if not name or row is None:
            return
        for _ in range(self.random.randint(1, 3)):
            row = self.server.update(name, row, self.other_values(name))
            self.server.begin_statement()
        self.server.delete(name, row)
        self.server.begin_statement()
        if self.random.random() < 0.7:
            self.server.insert(name, {**row, **self.other_values(name)})

    def snapshot(self) -> None:
        """A table is read while the stream goes on."""
        name = self.table()
        # A table without a key has nothing by which a row that is read again could be recognised.
        if name and self.limits.snapshots and self.tables[name].key:
            self.server.transaction(partial(self.server.snapshot, name))


ROW_STEPS: dict[str, Callable[[Author], None]] = {
    "insert": Author.insert,
    "update": Author.update,
    "update key": Author.update_key,
    "swap keys": Author.swap_keys,
    "shift keys": Author.shift_keys,
    "delete": Author.delete,
    "change often": Author.change_often,
}
