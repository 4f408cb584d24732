"""The columns and indexes of a CREATE TABLE."""

from __future__ import annotations

from typing import NamedTuple

from headgate.schema.columns import charset_named, read_column
from headgate.schema.definition import Index, TableDefinition
from headgate.schema.tokenizer import Cursor, set_of

MAX_INDEX_COLUMNS = 64
"""At least as many as MySQL and TiDB allow."""

INDEX_STARTS = set_of("PRIMARY UNIQUE KEY INDEX FULLTEXT SPATIAL FOREIGN CHECK")
SPECIAL_INDEXES = ("VECTOR", "COLUMNAR", "HYPO", "CLUSTERING")


class ReadIndex(NamedTuple):
    """An index or a primary key as a statement defines it."""

    name: str
    """Empty where it has none."""
    columns: tuple[str, ...]
    """None where one of them is an expression."""
    unique: bool = False
    primary: bool = False
    if_not_exists: bool = False


def is_index(cursor: Cursor) -> bool:
    """Whether a definition is of an index or a constraint, not of a column."""
    word, following = cursor.word(), cursor.word(1)
    special = word in SPECIAL_INDEXES and following in ("INDEX", "KEY")
    period = word == "PERIOD" and following == "FOR"
    return word in INDEX_STARTS or word == "CONSTRAINT" or special or period


def read_index(cursor: Cursor) -> ReadIndex | None:
    """Read an index or a constraint; None for foreign keys and checks, which are not keys."""
    symbol = ""
    if cursor.take("CONSTRAINT") and cursor.word() not in INDEX_STARTS:
        symbol = cursor.name("a constraint's name")
    if cursor.take_any("FOREIGN", "CHECK", "PERIOD"):
        return None
    if cursor.take("PRIMARY"):
        cursor.take("KEY")
        return ReadIndex("", read_index_columns(cursor)[1], primary=True)
    unique = cursor.take("UNIQUE")
    cursor.take_any("FULLTEXT", "SPATIAL", *SPECIAL_INDEXES)
    cursor.take_any("INDEX", "KEY")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name, columns = read_index_columns(cursor)
    return ReadIndex(name or symbol, columns, unique, if_not_exists=if_not_exists)


def read_index_columns(cursor: Cursor) -> tuple[str, tuple[str, ...]]:
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
        columns.append(part.name("a column name"))
    return name, tuple(columns)


def read_definition(body: Cursor, options: Cursor, sql: str) -> TableDefinition:
    """The table of a CREATE TABLE's parentheses and what follows them."""
    charset = table_charset(options)
    table = TableDefinition(binary=charset == "binary", charset=charset)
    indexes = []
    for part in body.parts():
        if part.done():
            raise part.error("a column definition is empty; is there a comma too many?")
        if is_index(part):
            indexes.append(part)
            continue
        place = part.place
        column, primary, unique = read_column(part, sql)
        table.put(column.name, column.column(table.binary, charset), at=place)
        if unique:
            table.add_index("", Index((column.name,), True))
        if primary:
            table.set_key((column.name,))
    for part in indexes:  # after all columns, which they may name before these come
        place = part.place
        index = read_index(part)
        if index is None:
            continue
        columns = tuple(table.get(name, place) for name in index.columns)
        if index.primary:
            table.set_key(columns)
        else:
            table.add_index(index.name, Index(columns, index.unique))
    if not table.columns:
        raise body.error("the table has no columns")
    return table


def table_charset(options: Cursor) -> str | None:
    """The character set that table options name; a SELECT among them is refused."""
    words = [word for word in options.outline() if word != "="]
    if {"AS", "SELECT"} & set(words):
        raise options.error("CREATE TABLE … SELECT does not define the columns; write them out")
    if ")" in words:
        raise options.error("a parenthesis is closed that was not opened")
    return charset_named(words)
