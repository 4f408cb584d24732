"""The tables that a DDL statement names, and its text with other names for them.

Only the names change: the rest of the text stays byte for byte. A statement that is not understood
stays as it is, for a wrong guess would change another table than the one that was meant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headgate.schema.catalog import Name
from headgate.schema.statement import MAX_LENGTH, Statement, split_statements, table_words
from headgate.schema.tokenizer import Cursor, Unreadable, Word


class TableName(NamedTuple):
    """A table's name in the text of a statement."""

    database: str | None
    """None where it has none."""
    table: str
    start: int
    end: int
    quote: str
    """The quote in which it can be written."""


def rename_tables(
    sql: str, database: str | None, new_database: str | None, rename: Callable[[Name], Name]
) -> str | None:
    """The statement with new names for its tables; None where it is not understood.

    `database` is that of names without one, `new_database` what it is called from now on.

    >>> rename_tables("ALTER TABLE t ADD x INT", "shop", "lake", lambda name: ("lake", "t2"))
    'ALTER TABLE `t2` ADD x INT'
    """
    if len(sql) > MAX_LENGTH:
        return None
    try:
        names = [name for statement in split_statements(sql) for name in named_tables(statement)]
    except Unreadable:
        return None
    parts, at = [], 0
    for name in names:
        old = (name.database or database, name.table)
        new = rename(old)
        if new == old and (name.database is not None or database == new_database):
            continue
        bare = name.database is None and new[0] == new_database
        written = [part for part in ((None if bare else new[0]), new[1]) if part is not None]
        parts += [sql[at : name.start], ".".join(_quoted(part, name.quote) for part in written)]
        at = name.end
    return "".join([*parts, sql[at:]])


def named_tables(statement: Statement) -> list[TableName]:
    """The tables that a statement names, in the order of its text; Unreadable if that is unclear.

    >>> from headgate.schema.statement import first_statement
    >>> sql = "CREATE TABLE t (i INT REFERENCES x.u (i))"
    >>> [(name.database, name.table) for name in named_tables(first_statement(sql))]
    [(None, 't'), ('x', 'u')]
    """
    text = statement.text
    read = _READERS.get((statement.verb, statement.object))
    if read is None or text.unclosed is not None:
        raise Unreadable("the tables of the statement are not known", text.unclosed)
    names: list[list[Word]] = []
    read(statement.cursor(), names)
    return [_table_name(text.sql, words) for words in names]


def _table_name(sql: str, words: list[Word]) -> TableName:
    for word in words:
        # In single quotes, or with escapes, it is text.
        if word.quote == "'" or (word.quote == '"' and "\\" in sql[word.start : word.end]):
            raise Unreadable("expected a table name, found text", word.start)
    if len(words) > 2:
        raise Unreadable("the table is in a schema", words[0].start)
    quote = '"' if any(word.quote == '"' for word in words) else "`"
    database = words[0].text if len(words) > 1 else None
    return TableName(database, words[-1].text, words[0].start, words[-1].end, quote)


_Names = list[list[Word]]


def _create_table(cursor: Cursor, names: _Names) -> None:
    cursor.take("IF", "NOT", "EXISTS")
    names.append(table_words(cursor))
    if cursor.take("LIKE") or cursor.take("(", "LIKE"):
        names.append(table_words(cursor))
    _references(cursor, names)


def _alter_table(cursor: Cursor, names: _Names) -> None:
    cursor.take("IF", "EXISTS")
    names.append(table_words(cursor))
    _references(cursor, names)


def _references(cursor: Cursor, names: _Names) -> None:
    """What is left of a CREATE or ALTER: other tables stand after few words, all of them reserved.

    RENAME stands for a new name only outside parentheses.
    """
    depth = 0
    while not cursor.done():
        word, place = cursor.word(), cursor.place
        cursor.at += 1
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "REFERENCES":
            names.append(table_words(cursor))
        elif word == "RENAME" and not depth and cursor.word() not in ("COLUMN", "INDEX", "KEY"):
            cursor.take_any("TO", "AS", "=")
            names.append(table_words(cursor))
        elif word == "WITH" and cursor.take("TABLE"):  # EXCHANGE PARTITION p WITH TABLE t
            names.append(table_words(cursor))
        elif word == "VALUES" and cursor.word() in ("LESS", "IN"):  # of a partition
            continue
        elif word in ("SELECT", "UNION", "TABLE", "VALUES"):
            raise Unreadable("the statement reads other tables", place)


def _index(cursor: Cursor, names: _Names) -> None:
    """CREATE or DROP INDEX name … ON table."""
    while not cursor.done() and not cursor.take("ON"):
        cursor.at += 1
    names.append(table_words(cursor))


def _drop_table(cursor: Cursor, names: _Names) -> None:
    cursor.take("IF", "EXISTS")
    names.append(table_words(cursor))
    while cursor.take(","):
        names.append(table_words(cursor))


def _truncate_table(cursor: Cursor, names: _Names) -> None:
    names.append(table_words(cursor))


def _rename_table(cursor: Cursor, names: _Names) -> None:
    cursor.take("IF", "EXISTS")
    for part in cursor.parts():
        names.append(table_words(part))
        if not part.take("TO"):
            raise part.error("expected TO")
        names.append(table_words(part))


_READERS: dict[tuple[str, str], Callable[[Cursor, _Names], None]] = {
    ("CREATE", "TABLE"): _create_table,
    ("CREATE", "INDEX"): _index,
    ("ALTER", "TABLE"): _alter_table,
    ("DROP", "TABLE"): _drop_table,
    ("DROP", "INDEX"): _index,
    ("TRUNCATE", "TABLE"): _truncate_table,
    ("RENAME", "TABLE"): _rename_table,
}


def _quoted(name: str, quote: str) -> str:
    return quote + name.replace(quote, quote * 2) + quote
