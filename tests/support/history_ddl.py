"""Who writes the histories of a small MySQL server: its tables and their columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from history_author import ROW_STEPS, Author
from mysql_model import (
    Column,
    Operation,
    Table,
    add_column,
    drop_column,
    modify_column,
    rename_column,
    set_key,
)
from mysql_values import IMPLICIT, widened, wider


class TableAuthor(Author):
    """Writes changes of tables too."""

    def step(self, name: str, seed: int) -> None:
        """One step: a transaction of row changes, a snapshot, or a change of tables."""
        self.random = Random(seed)
        if name in ROW_STEPS:
            pause = self.random.choice((1, 1, 7, 1_500))
            self.server.transaction(partial(self.rows, name), pause)
        else:
            STEPS[name](self)

    def create(self) -> None:
        free = [name for name in self.limits.names if name not in self.tables]
        if free and len(self.tables) < self.limits.tables:
            self.server.create(self.random.choice(free), self.new_table())

    def drop(self) -> None:
        name = self.table()
        if name and len(self.tables) > 1:
            self.server.drop(name)

    def drop_and_create(self) -> None:
        """The same name, other columns or the same."""
        name = self.table()
        if name:
            same = replace(self.tables[name].copy(), rows=[])
            self.server.drop(name)
            self.server.create(name, self.random.choice((same, self.new_table())))

    def truncate(self) -> None:
        name = self.table()
        if name and self.limits.truncate:
            self.server.truncate(name)

    def rename_table(self) -> None:
        name = self.table()
        free = [each for each in self.limits.names if each not in self.tables]
        if name and free:
            to = self.random.choice(free)
            self.server.rename((name, to), by_alter=self.random.random() < 0.5)

    def swap_tables(self) -> None:
        if len(self.tables) > 1:
            one, other = self.random.sample(sorted(self.tables), 2)
            self.server.rename((one, "_swap"), (other, one), ("_swap", other))

    def change_online(self) -> None:
        """A schema change as gh-ost makes it: a copy that takes the table's place."""
        name = self.table()
        if not name:
            return
        copy, old = f"_{name}_gho", f"_{name}_del"
        self.server.create_like(copy, name)
        self.server.alter(copy, *self.operations(copy, renames=False))
        if self.random.random() < 0.5:
            self.random.shuffle(self.tables[name].rows)
        self.server.transaction(partial(self.copy_rows, name, copy))
        self.server.rename((name, old), (copy, name))
        self.server.drop(old)

    def copy_rows(self, name: str, copy: str) -> None:
        table = self.tables[copy]
        fresh = {column.name: self.value(column) for column in table.columns}
        old = self.tables[name].types
        for row in list(self.tables[name].rows):
            kept = {
                each: widened(row[each], old[each], table.column(each).type)
                for each in row
                if each in fresh
            }
            self.server.insert(copy, fresh | kept)

    # Columns

    def alter(self) -> None:
        name = self.table()
        if name:
            self.server.alter(name, *self.operations(name))

    def change_key(self) -> None:
        """Another primary key: one with a column more, or none."""
        name = self.table()
        table = self.tables[name] if name else None
        if not name or table is None or not table.key:
            return
        types = {kind.type for kind in self.limits.key_kinds}
        more = [
            c.name for c in self.free_columns(table, set()) if not c.nullable and c.type in types
        ]
        if more:
            self.server.alter(name, set_key((*table.key, self.random.choice(more))))
        elif self.limits.keyless and self.random.random() < 0.3:
            self.server.alter(name, set_key(()))

    def operations(self, name: str, renames: bool = True) -> list[Operation]:
        """One or several parts of ALTER TABLE, each of a column of its own."""
        table = self.tables[name].copy()
        touched: set[str] = set()
        operations: list[Operation] = []
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            makers = [self.adding, self.adding, self.dropping, self.modifying]
            make = self.random.choice([*makers, self.renaming] if renames else makers)
            operation = make(table, touched)
            if operation is not None:
                operation.apply(table)
                operations.append(operation)
        return operations or [Operation("COMMENT 'unchanged'", lambda table: None)]

    def adding(self, table: Table, touched: set[str]) -> Operation | None:
        name = self.name_for(table)
        if name is None or name in touched:
            return None
        touched.add(name)
        kind = self.random.choice(self.limits.kinds)
        place = self.place(table, touched)
        default = self.random.choice((None, *kind.values)) if kind.has_default else None
        if default is not None or self.random.random() < 0.7:
            column = Column(name, kind.type, self.random.random() < 0.5 or default is None, default)
            return add_column(column, place, default)
        implicit = IMPLICIT.get(kind.base, "0")
        if implicit not in kind.values:
            return None
        return add_column(Column(name, kind.type, nullable=False), place, implicit)

    def place(self, table: Table, touched: set[str]) -> str | None:
        """Where a column goes: behind one that the statement does not touch otherwise."""
        free = [name for name in table.names if name not in touched]
        place = self.random.choice((None, None, "", *free))
        touched |= {place} if place else set()
        return place

    def free_columns(self, table: Table, touched: set[str]) -> list[Column]:
        used = {*table.key, *touched}
        return [column for column in table.columns if column.name not in used]

    def dropping(self, table: Table, touched: set[str]) -> Operation | None:
        columns = self.free_columns(table, touched)
        if len(columns) < 2:
            return None
        name = self.random.choice(columns).name
        touched.add(name)
        return drop_column(name)

    def renaming(self, table: Table, touched: set[str]) -> Operation | None:
        columns = [column for column in table.columns if column.name not in touched]
        to = self.name_for(table)
        if not columns or to is None or to in touched:
            return None
        column = self.random.choice(columns)
        touched |= {column.name, to}
        return rename_column(column.name, to, self.random.choice((None, column)))

    def modifying(self, table: Table, touched: set[str]) -> Operation | None:
        """Another type, another place, or both."""
        columns = self.free_columns(table, touched)
        if not columns:
            return None
        column = self.random.choice(columns)
        touched.add(column.name)
        place = self.place(table, touched)
        types = [*wider(column.type), column.type]
        changed = self.random.choice(types)
        default = widened(column.default, column.type, changed)
        return modify_column(replace(column, type=changed, default=default), place)


Step = Callable[[TableAuthor], None]
DDL_STEPS: dict[str, Step] = {
    "create": TableAuthor.create,
    "drop": TableAuthor.drop,
    "drop and create": TableAuthor.drop_and_create,
    "truncate": TableAuthor.truncate,
    "rename table": TableAuthor.rename_table,
    "swap tables": TableAuthor.swap_tables,
    "change online": TableAuthor.change_online,
    "alter": TableAuthor.alter,
    "change key": TableAuthor.change_key,
}
STEPS: dict[str, Step] = {"snapshot": TableAuthor.snapshot, **DDL_STEPS}
