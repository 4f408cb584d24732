"""A small MySQL server: tables, their rows, and the log of what happened to them.

It is the judge of landing, so it shares no code with what it judges: rows are lists of dictionaries
of canonical text, a statement is applied by a few lines of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mysql_values import literal, widened

DATABASE = "shop"
Row = dict[str, "str | None"]


@dataclass(frozen=True)
class Column:
    """A column; its default is canonical text."""

    name: str
    type: str
    nullable: bool = True
    default: str | None = None

    @property
    def sql(self) -> str:
        """Its definition."""
        text = f"{quoted(self.name)} {self.type}{'' if self.nullable else ' NOT NULL'}"
        if self.default is not None:
            return f"{text} DEFAULT {literal(self.type, self.default)}"
        # Without it, MySQL before 8.0 makes the first TIMESTAMP of a table NOT NULL.
        return f"{text} NULL" if self.nullable else text


@dataclass
class Table:
    """A table and its rows, in no order."""

    columns: list[Column]
    key: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def key_values(self) -> list[tuple[str | None, ...]]:
        return [self.key_of(row) for row in self.rows]

    def key_of(self, row: Row) -> tuple[str | None, ...]:
        return tuple(row[name] for name in self.key)

    def definition(self, name: str) -> str:
        """Its CREATE TABLE statement."""
        parts = [column.sql for column in self.columns]
        if self.key:
            parts.append(f"PRIMARY KEY ({', '.join(map(quoted, self.key))})")
        return f"CREATE TABLE {quoted(name)} ({', '.join(parts)})"

    def copy(self) -> Table:
        return Table(list(self.columns), self.key, [dict(row) for row in self.rows])


@dataclass(frozen=True)
class Change:
    """A change of one row, or a row that a snapshot read (`op`)."""

    op: str
    table: str
    before: Row | None
    after: Row | None
    types: dict[str, str]
    key: tuple[str, ...]
    statement: int = 0
    """Which statement of its transaction changed it."""


@dataclass(frozen=True)
class Ddl:
    """A statement that changes tables."""

    op: str
    table: str
    sql: str


@dataclass
class Transaction:
    """What was committed together: changes of rows, or one DDL statement."""

    changes: list[Change] = field(default_factory=list)
    ddl: Ddl | None = None
    pause: int = 1
    """Milliseconds since the transaction before."""


class Server:
    """The tables of one database, and the log."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.log: list[Transaction] = []
        self.states: list[dict[str, Table]] = []
        """The tables before each transaction of the log."""
        self._open: Transaction | None = None
        self._statement = 0

    def transaction(self, statements: Callable[[], object], pause: int = 1) -> None:
        """Run statements as one transaction."""
        self._open = Transaction(pause=pause)
        self._statement = 0
        before = self.copied()
        statements()
        if self._open.changes:
            self.log.append(self._open)
            self.states.append(before)
        self._open = None

    def begin_statement(self) -> None:
        """What follows is another statement of the transaction."""
        self._statement += 1

    def insert(self, name: str, row: Row) -> None:
        self.tables[name].rows.append(dict(row))
        self._log("insert", name, None, row)

    def update(self, name: str, old: Row, changed: Row) -> Row:
        """Change columns of one of a table's rows; the row as it is now."""
        row = next(row for row in self.tables[name].rows if row == old)
        before = dict(row)
        row.update(changed)
        if row != before:  # else MySQL logs nothing
            self._log("update", name, before, row)
        return row

    def delete(self, name: str, row: Row) -> None:
        before = dict(row)
        self.tables[name].rows.remove(row)
        self._log("delete", name, before, None)

    def snapshot(self, name: str) -> None:
        """Read all rows of a table, as a producer does that begins or is asked to."""
        for row in self.tables[name].rows:
            self._log("snapshot", name, None, row)

    def _log(self, op: str, name: str, before: Row | None, after: Row | None) -> None:
        assert self._open is not None
        table = self.tables[name]
        images = (before and dict(before), after and dict(after))
        self._open.changes.append(
            Change(op, name, *images, table.types, table.key, self._statement)
        )

    def run(self, op: str, table: str, sql: str) -> None:
        """Log a DDL statement, which is a transaction of its own."""
        self.log.append(Transaction(ddl=Ddl(op, table, sql)))
        self.states.append(self.copied())

    def copied(self) -> dict[str, Table]:
        """The tables as they are now."""
        return {name: table.copy() for name, table in self.tables.items()}

    def after(self, number: int) -> Server:
        """A server with the tables as they were after a transaction of the log."""
        server = Server()
        last = number + 1 == len(self.log)
        server.tables = self.tables if last else self.states[number + 1]
        return server

    def create(self, name: str, table: Table) -> None:
        self.run("create", name, table.definition(name))
        self.tables[name] = table

    def create_like(self, name: str, other: str) -> None:
        self.run("create", name, f"CREATE TABLE {quoted(name)} LIKE {quoted(other)}")
        self.tables[name] = replace(self.tables[other].copy(), rows=[])

    def drop(self, name: str) -> None:
        self.run("drop", name, f"DROP TABLE {quoted(name)}")
        del self.tables[name]

    def truncate(self, name: str) -> None:
        self.run("truncate", name, f"TRUNCATE TABLE {quoted(name)}")
        self.tables[name].rows.clear()

    def rename(self, *pairs: tuple[str, str], by_alter: bool = False) -> None:
        """Rename tables, one after the other, in one statement."""
        (first, to), *_ = pairs
        if by_alter:
            self.run("rename", first, f"ALTER TABLE {quoted(first)} RENAME TO {quoted(to)}")
        else:
            parts = ", ".join(f"{quoted(old)} TO {quoted(new)}" for old, new in pairs)
            self.run("rename", first, f"RENAME TABLE {parts}")
        for old, new in pairs:
            self.tables[new] = self.tables.pop(old)

    def alter(self, name: str, *operations: Operation) -> None:
        """Change a table's columns, by one statement."""
        parts = ", ".join(operation.sql for operation in operations)
        self.run("alter", name, f"ALTER TABLE {quoted(name)} {parts}")
        for operation in operations:
            operation.apply(self.tables[name])


@dataclass(frozen=True)
class Operation:
    """A part of ALTER TABLE: its text, and what it does."""

    sql: str
    apply: Callable[[Table], None]


def add_column(column: Column, place: str | None = None, value: str | None = None) -> Operation:
    """ADD COLUMN. Rows get `value`; `place` is a column before it, "" is first, None is last."""

    def apply(table: Table) -> None:
        table.columns.insert(index_after(table, place), column)
        for row in table.rows:
            row[column.name] = value

    return Operation(f"ADD COLUMN {column.sql}{place_sql(place)}", apply)


def drop_column(name: str) -> Operation:
    def apply(table: Table) -> None:
        table.columns = [column for column in table.columns if column.name != name]
        for row in table.rows:
            del row[name]

    return Operation(f"DROP COLUMN {quoted(name)}", apply)


def rename_column(name: str, to: str, by_change: Column | None = None) -> Operation:
    """RENAME COLUMN, or CHANGE COLUMN, which repeats its definition."""

    def apply(table: Table) -> None:
        table.columns = [
            replace(column, name=to) if column.name == name else column for column in table.columns
        ]
        table.key = tuple(to if each == name else each for each in table.key)
        for row in table.rows:
            row[to] = row.pop(name)

    if by_change is not None:
        return Operation(f"CHANGE COLUMN {quoted(name)} {replace(by_change, name=to).sql}", apply)
    return Operation(f"RENAME COLUMN {quoted(name)} TO {quoted(to)}", apply)


def modify_column(column: Column, place: str | None = None) -> Operation:
    """MODIFY COLUMN: another type, and another place unless that is None."""

    def apply(table: Table) -> None:
        old = table.column(column.name)
        at = table.columns.index(old)
        table.columns.remove(old)
        table.columns.insert(at if place is None else index_after(table, place), column)
        for row in table.rows:
            row[column.name] = widened(row[column.name], old.type, column.type)

    return Operation(f"MODIFY COLUMN {column.sql}{place_sql(place)}", apply)


def set_key(key: tuple[str, ...]) -> Operation:
    """Another primary key than the one that there is, or none."""

    def apply(table: Table) -> None:
        table.key = key

    parts = f", ADD PRIMARY KEY ({', '.join(map(quoted, key))})" if key else ""
    return Operation(f"DROP PRIMARY KEY{parts}", apply)


def index_after(table: Table, place: str | None) -> int:
    if place is None:
        return len(table.columns)
    return table.names.index(place) + 1 if place else 0


def place_sql(place: str | None) -> str:
    if place is None:
        return ""
    return f" AFTER {quoted(place)}" if place else " FIRST"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
