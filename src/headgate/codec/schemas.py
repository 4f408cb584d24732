"""Table schemas from CREATE TABLE text and from DDL events, for what messages do not tell."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from copy import copy
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from headgate.codec.column_values import (
    HINTS,
    Columns,
    Readers,
    came,
    converted,
    hints_of,
    signature,
    without_hints,
)
from headgate.core import values
from headgate.core.cache import Memo, weight
from headgate.core.errors import UsageError
from headgate.core.event import ColumnType, Event, Types, qualified
from headgate.core.limits import CACHED_BYTES, CACHED_KEY_BYTES
from headgate.core.mysql_types import parse_type
from headgate.core.values import Convert
from headgate.formats import MODULES, load
from headgate.formats.encoding import is_numbered, name_list
from headgate.schema.catalog import Absent, Catalog, Known, Name
from headgate.schema.columns import Column
from headgate.schema.ddl import Statement, run
from headgate.schema.table_builder import Draft
from headgate.schema.tables import Table, handle_key
from headgate.schema.tokenizer import MAX_COLUMNS, Unreadable, statements

__all__ = ["Column", "Schemas", "Table", "handle_key"]

MAX_DDL_LENGTH, MAX_DDL_WORDS = 256 * 1024, 100_000
"""Longer DDL of an event is not read: the table is forgotten."""

MAX_LEARNT_BYTES = 256 * 1024 * 1024
"""Schemas learnt from events beyond this push out the oldest, with a warning."""

log = logging.getLogger("headgate")

_WORD = re.compile(r"\w+|[^\w\s]")


class LearntTable(msgspec.Struct, array_like=True):
    """What DDL told of a table, to be kept; no draft: it was dropped, or is forgotten."""

    database: str | None
    table: str
    draft: Draft | None
    forgotten: bool = False
    over: str = ""
    """A digest of what the schema file said of it: what another one says counts anew."""


class _Plan(NamedTuple):
    """How events with the same columns and the same own types are completed."""

    own: Types | None
    types: Types | None
    columns: Columns
    """Columns that are converted to the form of their type: labels for numbers, and others."""
    read: frozenset[str]
    """Those of them that came without a type, and not as text."""
    hints: dict[str, str]
    """How the others came (`extra`)."""


_PlanKey = tuple[Known, int, tuple[str, ...], tuple["str | None", ...]]
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

    def __init__(self, sql: str | None = None, source: Mapping[str, Any] | None = None) -> None:
        """Tables of SQL text; `source` has the options with which the rows were decoded."""
        self._catalog = Catalog()
        self._readers = Readers(source)
        self._plans: dict[_PlanKey, _Plan] = {}
        self._plan_bytes = 0
        self._contents = Memo(_worked_out)
        if sql:
            self._read(sql)
        self._catalog.end_file(MAX_LEARNT_BYTES)

    def copy(self) -> Schemas:
        """The same, to learn apart.

        >>> known = Schemas("CREATE TABLE t (id INT)")
        >>> known.copy().learn(Event("ddl", "drop", None, "t", ddl="DROP TABLE t"))
        >>> known.table(None, "t") is None
        False
        """
        other = copy(self)
        other._catalog = self._catalog.copy()
        other._plans, other._plan_bytes = {}, 0
        return other

    def learnt(self, file: Schemas) -> list[LearntTable]:
        """What DDL told beyond a schema file, for `with_learnt`."""
        return [
            LearntTable(
                database,
                table,
                entry.draft if isinstance(entry, Known) else None,
                entry is Absent.FORGOTTEN,
                file._digest(database, table),
            )
            for table, homes in self._catalog.tables.items()
            for database, entry in homes.items()
            if file._catalog.tables.get(table, {}).get(database) is not entry
        ]

    def with_learnt(self, tables: Iterable[LearntTable]) -> Schemas:
        """The tables of a schema file and those that DDL told beyond it.

        >>> file = Schemas("CREATE TABLE t (id INT)")
        >>> known = file.copy()
        >>> known.learn(Event("ddl", "create", "d", "u", ddl="CREATE TABLE u (id INT)"))
        >>> file.with_learnt(known.learnt(file)).table("d", "u").types
        {'id': ColumnType(mysql='int', jdbc=None, flags=65)}
        """
        other = self.copy()
        for each in tables:
            if each.over == self._digest(each.database, each.table):
                absent = Absent.FORGOTTEN if each.forgotten else Absent.DROPPED
                entry = absent if each.draft is None else Known(each.draft)
                other._catalog.put((each.database, each.table), entry)
        return other

    def _digest(self, database: str | None, table: str) -> str:
        """What stands for a table's definition; nothing if there is none."""
        known = self._catalog.find(database, table)
        if known is None:
            return ""
        return blake2b(msgspec.msgpack.encode(known.draft), digest_size=8).hexdigest()

    @property
    def pushed_out(self) -> int:
        """How many tables had to make room for newer ones."""
        return self._catalog.pushed_out

    def table(
        self, database: str | None, table: str | None, schema: str | None = None
    ) -> Table | None:
        """A table, if it is known. Without a database, the one table of that name.

        >>> Schemas("CREATE TABLE t (id INT)").table("any", "t").key
        ()
        """
        known = self._catalog.find(database, table, schema)
        return None if known is None else known.table

    def names(self) -> list[Name]:
        """The databases and names of the tables that are known.

        >>> Schemas("USE shop; CREATE TABLE `a.b` (id INT)").names()
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

        >>> known = Schemas("CREATE TABLE t (id INT)")
        >>> known.learn(Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD id BROKEN"))
        >>> known.table("shop", "t")
        """
        if event.kind != "ddl":
            return
        if event.schema is not None:
            self._forget_in_schema(event)
            return
        touched: list[Name] = []
        before = self.pushed_out
        try:
            self._follow(event, touched)
        except Exception:  # whatever hostile text brings about, the answer is to forget
            self._give_up(event, touched)
        if before == 0 < self.pushed_out:
            log.warning("DDL told more than %d bytes of tables: the oldest of them are forgotten, "
                        "and their rows are untyped", MAX_LEARNT_BYTES)  # fmt: skip

    def complete(self, event: Event) -> list[str] | None:
        """Give a row event its table's key and types, and its values the form of their type.

        In place, but with images of its own. Returns the columns whose values are none of their
        type, which are left without it; None where the table is not known.

        >>> known = Schemas("CREATE TABLE t (id INT PRIMARY KEY, size ENUM('S','M'))")
        >>> event = Event("row", "insert", "d", "t", after={"id": "1", "size": "2"})
        >>> event.format = "open-protocol"
        >>> known.complete(event)
        []
        >>> event.key, event.after, event.types["size"].mysql
        (('id',), {'id': '1', 'size': 'M'}, "enum('S','M')")
        """
        known = self.give_key(event)
        if known is None:
            return None
        before, after, own = event.before, event.after, event.types
        image = before if after is None else after
        if image is None:
            return []
        names = tuple(image)
        if before is not None and image is not before and before.keys() != image.keys():
            names = tuple({**image, **before})
        how = signature(event)
        plan = self._plans.get((known, id(own), names, how))
        if plan is None or plan.own is not own:
            plan = self._plan((known, id(own), names, how), event)
        event.types = plan.types
        if not plan.columns:
            return []
        images = tuple(each for each in (before, after) if each is not None)
        rows, wrong = converted(images, plan.columns)
        if before is not None:
            event.before = rows[0]
        if after is not None:
            event.after = rows[-1]
        if wrong:
            event.types = _without(plan, own, wrong)
            event.extra = without_hints(event.extra, plan.read.difference(wrong))
        elif plan.read and event.extra:
            left = {name: v for name, v in event.extra.items() if name not in HINTS}
            event.extra = left | plan.hints or None
        return wrong

    def give_key(self, event: Event) -> Known | None:
        """Give a row event the key of its table, if that is known."""
        if event.kind != "row":
            return None
        known = self._catalog.find(event.database, event.table, event.schema)
        if known is not None:
            # Without a primary key, a message may go by another: Debezium by a unique one.
            event.key = known.table.key or event.key or ()
        return known

    def _plan(self, key: _PlanKey, event: Event) -> _Plan:
        known, _, names, _ = key
        own, how = event.types, came(event)
        content = (known, names, None if own is None else tuple(own.items()))
        types, labels = self._contents[content]
        labels = labels if is_numbered(event) else ()
        labelled = {name for name, _ in labels}
        told = {n: t.mysql for n, t in (own or {}).items()}
        there = set(names) - labelled
        schema = {n: c.mysql for n, c in known.table.columns.items() if n in there}
        if any(parse_type(mysql).family == "binary" for mysql in told.values()):
            how = how._replace(producer=how.producer._replace(binary=True))
        found = [(n, self._readers.column(how, n, told.get(n), t)) for n, t in schema.items()]
        columns = (*labels, *((name, convert) for name, convert in found if convert is not None))
        hinted = {name for hint in how.hints if hint for name in name_list(hint)}
        read = frozenset(name for name, _ in columns if told.get(name) is None and name in hinted)
        plan = _Plan(own, types, columns, read, without_hints(hints_of(event.extra), read) or {})
        size = weight((content, key[-1]))
        if size <= CACHED_KEY_BYTES:
            self._plan_bytes += size
            if self._plan_bytes > CACHED_BYTES:
                self._plans.clear()
                self._plan_bytes = size
            self._plans[key] = plan
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
        if not self._run(event.ddl or "", event.database, touched) and event.op != "truncate":
            raise Unreadable("there is no statement", 1)

    def _run(self, sql: str, database: str | None, touched: list[Name]) -> bool:
        """Apply statements; False if there is none."""
        self._catalog.steps = 0
        if len(sql) > MAX_DDL_LENGTH or sum(1 for _ in _WORD.finditer(sql)) > MAX_DDL_WORDS:
            raise Unreadable("the statement is too long", 1)
        read = False
        for line, text in statements(sql):
            if not text.strip():
                continue
            read = True
            statement = Statement(text, line, database, touched)
            run(self._catalog, statement)
            if statement.routine():
                break
        return read

    def _forget_in_schema(self, event: Event) -> None:
        """Databases with schemas do not speak MySQL: a table that is changed is not known."""
        if event.table is not None and event.op != "create":
            name = qualified(event.schema, event.table) or event.table
            self._catalog.remove((event.database, name), Absent.FORGOTTEN)
            self._catalog.remove((event.schema, event.table), Absent.FORGOTTEN)

    def _give_up(self, event: Event, touched: list[Name]) -> None:
        """Forget what a statement named; a definition beside the statement tells the table anew."""
        if event.table is None and not touched:
            self._catalog.remove_database(event.database, Absent.FORGOTTEN)
        for name in dict.fromkeys(touched):
            self._catalog.remove(name, Absent.FORGOTTEN)
        if event.op != "drop" and self._learn_definitions(event):
            return
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

    def _learn_definitions(self, event: Event) -> bool:
        """Learn the tables that are defined beside a statement; False if there is none."""
        format = load(event.format) if event.format in MODULES else None
        if format is None or format.definitions is None:
            return False
        try:
            sql = format.definitions(event)
            self._run(sql, event.database, [])
        except Exception:  # hostile text, as in `learn`
            return False
        return bool(sql)


def _without(plan: _Plan, own: Types | None, wrong: list[str]) -> Types | None:
    """The types without those of some columns, of which only the message's own word is left."""
    types = dict(plan.types or {})
    for name in wrong:
        told = (own or {}).get(name)
        if told is None:
            del types[name]
        else:
            types[name] = told
    return types or None
