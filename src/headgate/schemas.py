"""Table schemas from CREATE TABLE text and from DDL events, for what messages do not tell."""

from __future__ import annotations

import re
from typing import NamedTuple

from headgate import values
from headgate.errors import UsageError
from headgate.event import ColumnType, Event, Image, Types
from headgate.formats.encoders.common import is_numbered
from headgate.limits import CACHED_BYTES, CACHED_KEY_BYTES
from headgate.memo import Memo, weight
from headgate.sql.catalog import Absent, Catalog, Known, Name
from headgate.sql.columns import Column
from headgate.sql.drafts import Draft
from headgate.sql.statements import Statement, run
from headgate.sql.tables import Table, handle_key
from headgate.sql.words import MAX_COLUMNS, Unreadable, statements
from headgate.values import Convert

__all__ = ["Column", "Schemas", "Table", "handle_key"]

MAX_DDL_LENGTH, MAX_DDL_WORDS = 256 * 1024, 100_000
"""Longer DDL of an event is not read: the table is forgotten."""

MAX_LEARNT_BYTES = 64 * 1024 * 1024
"""Schemas learnt from events beyond this push out the oldest."""

_WORD = re.compile(r"\w+|[^\w\s]")


class _Plan(NamedTuple):
    """How events with the same columns and the same own types are completed."""

    own: Types | None
    types: Types | None
    labels: tuple[tuple[str, Convert], ...]


_Content = tuple[Known, tuple[str, ...], "tuple[tuple[str, ColumnType], ...] | None"]


def _worked_out(content: _Content) -> tuple[Types | None, tuple[tuple[str, Convert], ...]]:
    """An event's types and the columns whose numbers become labels."""
    known, names, told = content
    own, schema, there = dict(told or ()), known.table.types, set(names)
    types = {
        name: _merged(schema.get(name), own.get(name))
        for name in dict.fromkeys((*schema, *names, *own))
        if name in own or (name in there and name in schema)
    }
    labels = tuple(
        (name, convert)
        for name, base, convert in known.table.labels
        if name in there and _unlabelled(own.get(name), base)
    )
    return (schema if types == schema else types) or None, labels


def _merged(schema: ColumnType | None, own: ColumnType | None) -> ColumnType:
    """The schema's type with the event's own jdbc and flags, where it has them."""
    if schema is None or own is None:
        return schema or own or ColumnType()
    flags = schema.flags if own.flags is None else own.flags
    return ColumnType(schema.mysql, own.jdbc, flags)


def _unlabelled(own: ColumnType | None, base: str) -> bool:
    """Whether an event could not know the labels of an ENUM or SET column."""
    if own is None or own.mysql is None:
        return True
    return values.base_type(own.mysql) == base and not values.labels(own.mysql)


class Schemas:
    """The tables that a file and the DDL events so far tell.

    >>> known = Schemas("USE shop; CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(80) NOT NULL)")
    >>> known.table("shop", "t").columns["name"]
    Column(mysql='varchar(80)', nullable=False, generated=None)
    >>> known.learn(Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD price DEC(9,2)"))
    >>> known.table("shop", "t").columns["price"].mysql
    'decimal(9,2)'
    """

    def __init__(self, sql: str | None = None) -> None:
        self._catalog = Catalog()
        self._plans: dict[tuple[Known, int, tuple[str, ...]], _Plan] = {}
        self._plan_bytes = 0
        self._contents = Memo(_worked_out)
        if sql:
            self._read(sql)
        self._catalog.end_file(MAX_LEARNT_BYTES)

    def table(self, database: str | None, table: str | None) -> Table | None:
        """A table, if it is known. Without a database, the one table of that name.

        >>> Schemas("CREATE TABLE t (id INT)").table("any", "t").key
        ()
        """
        known = self._catalog.find(database, table)
        return None if known is None else known.table

    def learn(self, event: Event) -> None:
        """Follow a DDL event; a table whose change is not understood is forgotten.

        >>> known = Schemas("CREATE TABLE t (id INT)")
        >>> known.learn(Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD id BROKEN"))
        >>> known.table("shop", "t")
        """
        if event.kind != "ddl":
            return
        touched: list[Name] = []
        try:
            self._follow(event, touched)
        except Exception:  # whatever hostile text brings about, the answer is to forget
            self._give_up(event, touched)

    def complete(self, event: Event) -> None:
        """Give a row event the key and the types of its table, and labels for numbers, in place.

        >>> known = Schemas("CREATE TABLE t (id INT PRIMARY KEY, size ENUM('S','M'))")
        >>> event = Event("row", "insert", "d", "t", after={"id": "1", "size": "2"})
        >>> event.format = "open-protocol"
        >>> known.complete(event)
        >>> event.key, event.after, event.types["size"].mysql
        (('id',), {'id': '1', 'size': 'M'}, "enum('S','M')")
        """
        if event.kind != "row":
            return
        known = self._catalog.find(event.database, event.table)
        if known is None:
            return
        event.key = known.table.key
        before, after, own = event.before, event.after, event.types
        image = before if after is None else after
        if image is None:
            return
        names = tuple(image)
        if before is not None and image is not before and before.keys() != image.keys():
            names = tuple({**image, **before})
        plan = self._plans.get((known, id(own), names))
        if plan is None or plan.own is not own:
            plan = self._plan(known, own, names)
        event.types = plan.types
        if plan.labels and is_numbered(event):
            # Copies, because the caller's event may be encoded again.
            if after is not None:
                event.after = _labelled(after, plan.labels)
            if before is not None:
                event.before = _labelled(before, plan.labels)

    def _plan(self, known: Known, own: Types | None, names: tuple[str, ...]) -> _Plan:
        content = (known, names, None if own is None else tuple(own.items()))
        plan = _Plan(own, *self._contents[content])
        size = weight(content)
        if size <= CACHED_KEY_BYTES:
            self._plan_bytes += size
            if self._plan_bytes > CACHED_BYTES:
                self._plans.clear()
                self._plan_bytes = size
            self._plans[known, id(own), names] = plan
        return plan

    def _read(self, sql: str) -> None:
        """Read a schema file."""
        database: str | None = None
        for line, text in statements(sql):
            statement = Statement(text, line, database)
            self._catalog.steps = 0
            try:
                if statement.verb == "USE":
                    database = statement.cursor().name("a database")
                else:
                    run(self._catalog, statement)
            except Unreadable as error:
                raise UsageError(
                    f"schema file, line {error.line}: {error.what}; write it as MySQL's "
                    "SHOW CREATE TABLE does, or leave the statement out"
                ) from None

    def _follow(self, event: Event, touched: list[Name]) -> None:
        """Apply a DDL event's statements."""
        sql = event.ddl or ""
        self._catalog.steps = 0
        if len(sql) > MAX_DDL_LENGTH or sum(1 for _ in _WORD.finditer(sql)) > MAX_DDL_WORDS:
            raise Unreadable("the statement is too long", 1)
        read = False
        for line, text in statements(sql):
            if not text.strip():
                continue
            read = True
            statement = Statement(text, line, event.database, touched)
            run(self._catalog, statement)
            if statement.routine():
                break
        if not read and event.op != "truncate":
            raise Unreadable("there is no statement", 1)

    def _give_up(self, event: Event, touched: list[Name]) -> None:
        """Forget what a statement named; a definition beside the statement tells the table anew."""
        if event.table is None and not touched:
            self._catalog.remove_database(event.database, Absent.FORGOTTEN)
        for name in dict.fromkeys(touched):
            self._catalog.remove(name, Absent.FORGOTTEN)
        if event.table is None:
            return
        name = (event.database, event.table)
        self._catalog.remove(name, Absent.FORGOTTEN)
        types = event.types or {}
        told = {n: Column(t.mysql) for n, t in types.items() if t.mysql is not None}
        if told and len(told) == len(types) <= MAX_COLUMNS and event.op != "drop":
            draft = Draft(told)
            draft.set_key(tuple(n for n in event.key or () if n in told))
            self._catalog.put(name, Known(draft))


def _labelled(image: Image, labels: tuple[tuple[str, Convert], ...]) -> Image:
    """A copy of a row with labels for numbers."""
    row = image.copy()
    for name, convert in labels:
        value = row.get(name)
        if value is not None:
            row[name] = convert(value)
    return row
