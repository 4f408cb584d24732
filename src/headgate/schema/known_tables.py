"""The tables that a schema file and the DDL so far define."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from copy import copy
from hashlib import blake2b
from typing import Self

import msgspec

from headgate.core.errors import UsageError
from headgate.core.event import Event, qualified
from headgate.schema.catalog import Absent, Catalog, Known, Name
from headgate.schema.changes import TableId
from headgate.schema.columns import Column
from headgate.schema.ddl import read_statements
from headgate.schema.definition import TableDefinition
from headgate.schema.tables import Table
from headgate.schema.tokenizer import MAX_COLUMNS, Unreadable

MAX_LEARNT_BYTES = 256 * 1024 * 1024
"""Schemas learnt from events beyond this push out the oldest, with a warning."""

log = logging.getLogger("headgate")


class LearntTable(msgspec.Struct, array_like=True):
    """A table as DDL left it, for a job's state; no definition: it was dropped or forgotten."""

    database: str | None
    table: str
    definition: TableDefinition | None
    forgotten: bool = False
    over: str = ""
    """A digest of its definition in the schema file: if that differs, the file counts again."""


class KnownTables:
    """The tables of a schema file, as DDL events have changed them since.

    >>> known = KnownTables("USE shop; CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(80))")
    >>> known.table("shop", "t").columns["name"].mysql
    'varchar(80)'
    >>> known.learn(Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD price DEC(9,2)"))
    >>> known.table("shop", "t").columns["price"].mysql
    'decimal(9,2)'
    """

    def __init__(
        self, sql: str | None = None, definitions: Callable[[Event], str] | None = None
    ) -> None:
        """Tables of SQL text.

        `definitions` gives the CREATE TABLE statements of the tables that an event defines beside
        its DDL.
        """
        self._catalog = Catalog()
        self._definitions = definitions
        if sql:
            self._read(sql)
        self._catalog.end_file(MAX_LEARNT_BYTES)

    def copy(self) -> Self:
        """The same, to learn apart.

        >>> known = KnownTables("CREATE TABLE t (id INT)")
        >>> known.copy().learn(Event("ddl", "drop", None, "t", ddl="DROP TABLE t"))
        >>> known.table(None, "t") is None
        False
        """
        other = copy(self)
        other._catalog = self._catalog.copy()
        return other

    def learnt(self, file: Self) -> list[LearntTable]:
        """The tables that DDL changed since the schema file, for `with_learnt`."""
        return [
            LearntTable(
                database,
                table,
                entry.definition if isinstance(entry, Known) else None,
                entry is Absent.FORGOTTEN,
                file._digest(database, table),
            )
            for table, homes in self._catalog.tables.items()
            for database, entry in homes.items()
            if file._catalog.tables.get(table, {}).get(database) is not entry
        ]

    def with_learnt(self, tables: Iterable[LearntTable]) -> Self:
        """The tables of a schema file, as DDL has changed them since.

        >>> file = KnownTables("CREATE TABLE t (id INT)")
        >>> known = file.copy()
        >>> known.learn(Event("ddl", "create", "d", "u", ddl="CREATE TABLE u (id INT)"))
        >>> file.with_learnt(known.learnt(file)).table("d", "u").types
        {'id': ColumnType(mysql='int', jdbc=None, flags=65)}
        """
        other = self.copy()
        for each in tables:
            if each.over == self._digest(each.database, each.table):
                absent = Absent.FORGOTTEN if each.forgotten else Absent.DROPPED
                entry = absent if each.definition is None else Known(each.definition)
                other._catalog.put((each.database, each.table), entry)
        return other

    def _digest(self, database: str | None, table: str) -> str:
        """What stands for a table's definition; nothing if there is none."""
        known = self._catalog.find(database, table)
        if known is None:
            return ""
        return blake2b(msgspec.msgpack.encode(known.definition), digest_size=8).hexdigest()

    @property
    def pushed_out(self) -> int:
        """How many tables had to make room for newer ones."""
        return self._catalog.pushed_out

    def table(
        self, database: str | None, table: str | None, schema: str | None = None
    ) -> Table | None:
        """A table, if it is known. Without a database, the one table of that name.

        >>> KnownTables("CREATE TABLE t (id INT)").table("any", "t").key
        ()
        """
        known = self._catalog.find(database, table, schema)
        return None if known is None else known.table

    def names(self) -> list[Name]:
        """The databases and names of the tables that are known.

        >>> KnownTables("USE shop; CREATE TABLE `a.b` (id INT)").names()
        [('shop', 'a.b')]
        """
        return [
            (database, table)
            for table, homes in self._catalog.tables.items()
            for database, known in homes.items()
            if isinstance(known, Known)
        ]

    def learn(self, event: Event) -> None:
        """Follow a DDL event; a table whose change is not understood is forgotten.

        >>> known = KnownTables("CREATE TABLE t (id INT)")
        >>> known.learn(Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD id BROKEN"))
        >>> known.table("shop", "t")
        """
        if event.kind != "ddl":
            return
        if event.schema is not None:
            self._forget_in_schema(event)
            return
        touched: list[TableId] = []
        before = self.pushed_out
        try:
            self._follow(event, touched)
        except Exception:  # hostile text can cause anything; the answer is to forget
            self._give_up(event, touched)
        if before == 0 < self.pushed_out:
            log.warning("DDL defines more than %d bytes of tables: the oldest are forgotten, "
                        "and their rows are untyped", MAX_LEARNT_BYTES)  # fmt: skip

    def _read(self, sql: str) -> None:
        """Read a schema file."""
        for reading in read_statements(sql, None, limited=False):
            self._catalog.steps = 0
            statement = reading.statement
            try:
                if statement.is_ddl or statement.object in ("TABLE", "INDEX", "DATABASE"):
                    self._catalog.run(reading)
            except Unreadable as error:
                at = statement.text.words[0].start if error.at is None else error.at
                raise UsageError(
                    f"schema file, line {sql.count(chr(10), 0, at) + 1}: {error.reason}; write it "
                    "as MySQL's SHOW CREATE TABLE does, or leave the statement out"
                ) from None

    def _follow(self, event: Event, touched: list[TableId]) -> None:
        """Apply a DDL event's statements."""
        if not self._run(event.ddl or "", event.database, touched) and event.op != "truncate":
            raise Unreadable("there is no statement")

    def _run(self, sql: str, database: str | None, touched: list[TableId]) -> bool:
        """Apply statements; False if there is none."""
        self._catalog.steps = 0
        ran = False
        for reading in read_statements(sql, database):
            ran = True
            touched += reading.tables
            self._catalog.run(reading)
            if reading.statement.is_routine:
                break
        return ran

    def _forget_in_schema(self, event: Event) -> None:
        """Databases with schemas do not speak MySQL: a table that is changed is not known."""
        if event.table is not None and event.op != "create":
            name = qualified(event.schema, event.table) or event.table
            self._catalog.remove((event.database, name), Absent.FORGOTTEN)
            self._catalog.remove((event.schema, event.table), Absent.FORGOTTEN)

    def _give_up(self, event: Event, touched: list[TableId]) -> None:
        """Forget the tables that a statement names, unless its message defines them beside it."""
        if event.table is None and not touched:
            self._catalog.remove_database(event.database, Absent.FORGOTTEN)
        for name in dict.fromkeys(touched):
            self._catalog.remove(name, Absent.FORGOTTEN)
        if event.op != "drop" and self._learn_definitions(event):
            return
        if event.table is None:
            return
        name = TableId(event.database, event.table)
        self._catalog.remove(name, Absent.FORGOTTEN)
        types = event.types or {}
        columns = {n: Column(t.mysql) for n, t in types.items() if t.mysql is not None}
        if columns and len(columns) == len(types) <= MAX_COLUMNS and event.op != "drop":
            definition = TableDefinition(columns)
            definition.set_key(tuple(n for n in event.key or () if n in columns))
            self._catalog.put(name, Known(definition))

    def _learn_definitions(self, event: Event) -> bool:
        """Learn the tables that are defined beside a statement; False if there is none."""
        if self._definitions is None:
            return False
        try:
            sql = self._definitions(event)
            self._run(sql, event.database, [])
        except Exception:  # hostile text, as in `learn`
            return False
        return bool(sql)
