"""Tables under construction, and CREATE TABLE's columns and indexes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from headgate.core.errors import shown
from headgate.schema.columns import CHARSET_WORDS, Column, Defined, read_column
from headgate.schema.tables import Table
from headgate.schema.tokenizer import MAX_COLUMNS, MAX_INDEXES, Cursor, Unreadable, set_of

MAX_INDEX_COLUMNS = 64
"""At least as many as MySQL and TiDB allow."""

MAX_STEPS = 3_000_000
"""Columns that the statements of one event go over, again and again."""

INDEX_STARTS = set_of("PRIMARY UNIQUE KEY INDEX FULLTEXT SPATIAL FOREIGN CHECK")
SPECIAL_INDEXES = ("VECTOR", "COLUMNAR", "HYPO", "CLUSTERING")


class Index(NamedTuple):
    """An index; `columns` is empty where it is on an expression."""

    columns: tuple[str, ...]
    unique: bool


@dataclass
class Draft:
    """A table that statements change. Index names are in lower case."""

    columns: dict[str, Column] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    indexes: dict[str, Index] = field(default_factory=dict)
    binary: bool = False
    """Whether text columns are binary unless they say otherwise."""
    ahead: bool = False
    """From a file, which may hold already what an event only now tells."""
    steps: int = 0
    """How many columns were gone over to make it."""

    def __post_init__(self) -> None:
        self._names = {name.lower(): name for name in self.columns}

    def copy(self, steps: int) -> Draft:
        """The same, to be changed apart, after so many steps."""
        columns, indexes = dict(self.columns), dict(self.indexes)
        return replace(self, columns=columns, indexes=indexes, steps=steps)

    def _go_over(self, columns: int) -> None:
        """Count a walk over so many columns: hostile text would have no end of them."""
        self.steps += columns
        if self.steps > MAX_STEPS:
            raise Unreadable("there are too many changes", 0)

    def table(self) -> Table:
        """The finished table."""
        ready = [index for index in self.indexes.values() if index.columns]
        return Table(
            self.columns,
            self.key,
            tuple(index.columns for index in ready if index.unique),
            tuple(index.columns for index in ready if not index.unique),
        )

    def find(self, name: str) -> str | None:
        """A column's name as the table writes it: MySQL's column names ignore case."""
        return name if name in self.columns else self._names.get(name.lower())

    def get(self, name: str, line: int) -> str:
        """The same, of a column that must be there."""
        found = self.find(name)
        if found is None:
            raise Unreadable(f"there is no column {shown(name)}", line)
        return found

    def set_key(self, names: tuple[str, ...]) -> None:
        """Make these columns the primary key, which takes NULL from them."""
        self.key = names
        for name in names:
            self.columns[name] = self.columns[name]._replace(nullable=False)

    def add_index(self, name: str, index: Index) -> None:
        """Add an index; one without a name gets the name that MySQL gives it."""
        name = stem = name.lower() or (index.columns[0].lower() if index.columns else "expression")
        if name in self.indexes and self.ahead:
            del self.indexes[name]
        if len(self.indexes) >= MAX_INDEXES:
            raise Unreadable(f"more than {MAX_INDEXES} indexes", 0)
        count = 2
        while name in self.indexes:
            name, count = f"{stem}_{count}", count + 1
        self.indexes[name] = index

    def drop_index(self, name: str, line: int) -> None:
        """Drop an index by its name."""
        if name.lower() == "primary":
            self.key = ()
        elif self.indexes.pop(name.lower(), None) is None and not self.ahead:
            raise Unreadable(f"there is no index {shown(name)}", line)

    def put(self, defined: Defined, line: int, old: str | None = None) -> None:
        """Add a column at the end, or in place of the column `old`."""
        name, column = defined.name, defined.column
        if self.find(name) not in (None, old):
            raise Unreadable(f"column {shown(name)} is there twice", line)
        if old is not None and name != old:
            self._go_over(len(self.columns))
            self.columns = {name if n == old else n: c for n, c in self.columns.items()}
            del self._names[old.lower()]
            self._in_keys(old, (name,))
        self.columns[name] = column
        self._names[name.lower()] = name
        if len(self.columns) > MAX_COLUMNS:
            raise Unreadable(f"more than {MAX_COLUMNS} columns", line)
        if defined.unique:
            self.add_index("", Index((name,), True))
        if defined.key or name in self.key:
            self.set_key((name,) if defined.key else self.key)

    def drop(self, name: str) -> None:
        """Drop a column, and take it out of all keys."""
        del self.columns[name], self._names[name.lower()]
        self._in_keys(name, ())

    def _in_keys(self, old: str, new: tuple[str, ...]) -> None:
        """Write other columns for one in all keys; an index without columns is gone."""
        self._go_over(sum(len(index.columns) for index in self.indexes.values()))

        def swapped(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(n for name in names for n in (new if name == old else (name,)))

        self.key = swapped(self.key)
        for name, index in list(self.indexes.items()):
            if old in index.columns:
                self.indexes[name] = index._replace(columns=swapped(index.columns))
                if not self.indexes[name].columns:
                    del self.indexes[name]

    def move(self, name: str, after: str | None) -> None:
        """Move a column behind another, or to the front."""
        self._go_over(len(self.columns))
        names = [known for known in self.columns if known != name]
        names.insert(0 if after is None else names.index(after) + 1, name)
        self.columns = {known: self.columns[known] for known in names}


def is_index(cursor: Cursor) -> bool:
    """Whether a definition is of an index or a constraint, not of a column."""
    word, following = cursor.word(), cursor.word(1)
    special = word in SPECIAL_INDEXES and following in ("INDEX", "KEY")
    period = word == "PERIOD" and following == "FOR"
    return word in INDEX_STARTS or word == "CONSTRAINT" or special or period


def add_index(draft: Draft, cursor: Cursor) -> None:
    """Read an index or constraint into a table; foreign keys and checks say nothing of interest."""
    symbol = ""
    if cursor.take("CONSTRAINT") and cursor.word() not in INDEX_STARTS:
        symbol = cursor.name("a constraint's name")
    if cursor.take_any("FOREIGN", "CHECK", "PERIOD"):
        return
    if cursor.take("PRIMARY"):
        cursor.take("KEY")
        _, columns = index_columns(draft, cursor)
        draft.set_key(columns)
        return
    unique = cursor.take("UNIQUE")
    cursor.take_any("FULLTEXT", "SPATIAL", *SPECIAL_INDEXES)
    cursor.take_any("INDEX", "KEY")
    cursor.take("IF", "NOT", "EXISTS")
    name, columns = index_columns(draft, cursor)
    draft.add_index(name or symbol, Index(columns, unique))


def index_columns(draft: Draft, cursor: Cursor) -> tuple[str, tuple[str, ...]]:
    """An index's name, if it has one, and its columns; none where one is an expression."""
    name = ""
    while cursor.word() != "(":
        if cursor.take_any("USING", "TYPE"):
            cursor.name("an index type")
        elif name:
            raise cursor.error("expected ( and the index's columns")
        else:
            name = cursor.name("an index name")
    columns: list[str] = []
    for part in cursor.parens("the index's columns").parts(MAX_INDEX_COLUMNS):
        if part.word() == "(":
            return name, ()
        line = part.line
        columns.append(draft.get(part.name("a column name"), line))
    return name, tuple(columns)


def create(body: Cursor, options: Cursor) -> Draft:
    """The table of a CREATE TABLE's parentheses and what follows them."""
    draft = Draft(binary=binary_charset(options))
    indexes = []
    for part in body.parts():
        if part.done():
            raise part.error("a column definition is empty; is there a comma too many?")
        if is_index(part):
            indexes.append(part)
        else:
            line = part.line
            draft.put(read_column(part, draft.binary), line)
    for part in indexes:  # after all columns, which they may name before these come
        add_index(draft, part)
    if not draft.columns:
        raise body.error("the table has no columns")
    return draft


def binary_charset(options: Cursor) -> bool:
    """Whether table options name `binary` as character set; a SELECT among them is refused."""
    words = [word for word in options.outline() if word != "="]
    if {"AS", "SELECT"} & set(words):
        raise options.error("CREATE TABLE … SELECT does not tell the columns; write them out")
    if ")" in words:
        raise options.error("a parenthesis is closed that was not opened")
    pairs = zip(["", *words], words)
    return any(b in CHARSET_WORDS and w.lstrip("'") == "BINARY" for b, w in pairs)
