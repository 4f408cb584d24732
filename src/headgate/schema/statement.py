"""The structure of a DDL statement: its verb, what it is about, and the parts of an ALTER TABLE.

Nothing here fails: a statement that is broken further on still begins with its verb and object.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from headgate.schema.create_table import SPECIAL_INDEXES
from headgate.schema.tokenizer import Cursor, Unreadable, Word, Words, set_of, statements

MAX_LENGTH = 256 * 1024
"""So many characters of a statement are looked at."""

HEAD_WORDS = 40
"""In so many words a statement says what it is about; CREATE VIEW needs the most."""

_WITH_OBJECT = set_of("CREATE ALTER DROP RENAME TRUNCATE")
_MODIFIERS = set_of("""
    TEMPORARY GLOBAL SESSION ONLINE OFFLINE IGNORE UNIQUE FULLTEXT SPATIAL AGGREGATE LOADABLE
    MATERIALIZED UNDO
    """)
_ROUTINES = set_of("PROCEDURE FUNCTION TRIGGER EVENT PACKAGE")
_INDEX_WORDS = ("INDEX", "KEY")
_OPS = {
    ("CREATE", "TABLE"): "create",
    ("ALTER", "TABLE"): "alter",
    ("DROP", "TABLE"): "drop",
    ("RENAME", "TABLE"): "rename",
    ("TRUNCATE", "TABLE"): "truncate",
    ("CREATE", "INDEX"): "create_index",
    ("DROP", "INDEX"): "drop_index",
}


class Statement(NamedTuple):
    """One statement, by its first words."""

    text: Words
    verb: str
    """In upper case, as CREATE; empty where the statement does not begin with a word."""
    object: str
    """What it is about, in upper case: TABLE, INDEX, DATABASE, VIEW, USER …"""
    modifiers: frozenset[str]
    """What stands between the two: OR, TEMPORARY, UNIQUE, DEFINER …"""
    rest: int
    """Where the words after the object begin."""

    def cursor(self) -> Cursor:
        """A walk over the words after the object."""
        return Cursor(self.text.words, self.rest)

    @property
    def is_ddl(self) -> bool:
        """Whether its verb is one that defines tables and other objects."""
        return self.verb in _WITH_OBJECT

    @property
    def is_routine(self) -> bool:
        """Whether it makes a routine, whose body has statements of its own."""
        return self.verb == "CREATE" and self.object in _ROUTINES

    @property
    def op(self) -> str:
        """The operation of a DDL event; `query` where it is not about a table or an index."""
        return _OPS.get((self.verb, self.object), "query")


def split_statements(sql: str, most_words: int | None = None) -> Iterator[Statement]:
    """The statements in a text.

    >>> [(s.verb, s.object) for s in split_statements("DROP VIEW v; CREATE OR REPLACE TABLE t")]
    [('DROP', 'VIEW'), ('CREATE', 'TABLE')]
    """
    return map(_statement, statements(sql, most_words))


def first_statement(sql: str, most_words: int | None = None) -> Statement:
    """The first statement in a text; one without words where there is none."""
    return next(split_statements(sql[:MAX_LENGTH], most_words), _statement(Words(sql, [])))


def ddl_op(sql: str) -> str:
    """The operation of a DDL event, by the statement's first words.

    >>> ddl_op("/* x */ create unique index i on t (a)"), ddl_op("CREATE DATABASE d")
    ('create_index', 'query')
    """
    return first_statement(sql, HEAD_WORDS).op


def _statement(text: Words) -> Statement:
    cursor = Cursor(text.words)
    verb = cursor.word()
    cursor.at = min(1, cursor.end)
    if verb == "TRUNCATE":  # TABLE may be left out
        cursor.take("TABLE")
        return Statement(text, verb, "TABLE", frozenset(), cursor.at)
    modifiers = set()
    while verb in _WITH_OBJECT and (modifier := _take_modifier(cursor)):
        modifiers.add(modifier)
    object = cursor.word()
    cursor.at = min(cursor.at + 1, cursor.end)
    object = {"TABLES": "TABLE", "SCHEMA": "DATABASE", "KEY": "INDEX"}.get(object, object)
    return Statement(text, verb, object, frozenset(modifiers), cursor.at)


def _take_modifier(cursor: Cursor) -> str:
    """Step over a modifier before the object; empty where there is none."""
    word = cursor.word()
    if cursor.take("OR", "REPLACE") or cursor.take_any(*_MODIFIERS):
        return word
    if word in SPECIAL_INDEXES and cursor.word(1) in _INDEX_WORDS:
        cursor.at += 1
        return word
    if cursor.take("SQL", "SECURITY"):
        cursor.at += 1
        return word
    if word in ("DEFINER", "ALGORITHM") and cursor.word(1) == "=":
        cursor.at += 3
        if cursor.take("@"):
            cursor.at += 1
        cursor.take("(", ")")
        return word
    return ""


# The parts of an ALTER TABLE


class Action(NamedTuple):
    """One part of an ALTER TABLE."""

    kind: str
    """ADD, DROP or RENAME and what; else the first two words of the part."""
    cursor: Cursor
    """At the word after ADD, DROP and the like; of other parts, at the first word."""
    if_not_exists: bool = False
    """Said before several columns in parentheses."""


LAST_ACTIONS = set_of("""
    ORDER PARTITION REORGANIZE TRUNCATE COALESCE ANALYZE CHECK OPTIMIZE REBUILD REPAIR IMPORT
    DISCARD EXCHANGE REMOVE SPLIT MERGE COMPACT FIRST LAST
    """)
"""What comes last in an ALTER, may have commas of its own, and changes no column."""
_CONSTRAINTS = {
    "PRIMARY": "PRIMARY KEY", "FOREIGN": "FOREIGN KEY", "CHECK": "CHECK", "UNIQUE": "INDEX",
    "INDEX": "INDEX", "KEY": "INDEX", "FULLTEXT": "INDEX", "SPATIAL": "INDEX",
}  # fmt: skip
_DROPPED = {
    "PRIMARY": "PRIMARY KEY", "FOREIGN": "FOREIGN KEY", "CHECK": "CHECK", "INDEX": "INDEX",
    "KEY": "INDEX", "CONSTRAINT": "CONSTRAINT", "PARTITION": "PARTITION",
}  # fmt: skip
_RENAMED = {"COLUMN": "COLUMN", "INDEX": "INDEX", "KEY": "INDEX"}


def alter_actions(statement: Statement) -> Iterator[Action]:
    """The parts of an ALTER TABLE; none where it does not name a table.

    >>> alter = first_statement("ALTER TABLE t ADD (a INT, KEY (a)), DROP b, ENGINE = x")
    >>> [action.kind for action in alter_actions(alter)]
    ['ADD COLUMN', 'ADD INDEX', 'DROP COLUMN', 'ENGINE']
    """
    cursor = statement.cursor()
    cursor.take("IF", "EXISTS")
    try:
        table_words(cursor)
    except Unreadable:
        return iter(())
    return actions(cursor)


def actions(cursor: Cursor) -> Iterator[Action]:
    """The parts of an ALTER TABLE, from behind the table's name on."""
    for part in () if cursor.done() else cursor.parts():
        if part.word() in LAST_ACTIONS or (
            part.word() in ("ADD", "DROP") and part.word(1) == "PARTITION"
        ):
            yield _action(Cursor(part.words, part.at, cursor.end))
            return
        if part.word() == "ADD":
            yield from _added(part)
        else:
            yield _action(part)


def _added(part: Cursor) -> Iterator[Action]:
    """An ADD; each column and index in its parentheses is one."""
    start = Cursor(part.words, part.at + 1, part.end)
    start.take("COLUMN")
    if_not_exists = start.take("IF", "NOT", "EXISTS")
    inner = None
    if start.word() == "(":
        with suppress(Unreadable):  # who reads the column says what is wrong
            inner = start.parens("columns")
    if inner is None:
        yield _action(part)
        return
    for each in inner.parts():
        yield Action("ADD " + _added_object(each), each, if_not_exists)


def _action(part: Cursor) -> Action:
    word = part.word()
    after = Cursor(part.words, part.at + 1, part.end)
    if word == "ADD":
        return Action("ADD " + _added_object(after), after)
    if word == "DROP":
        return Action("DROP " + _DROPPED.get(after.word(), "COLUMN"), after)
    if word == "RENAME":
        return Action("RENAME " + _RENAMED.get(after.word(), "TABLE"), after)
    if word in ("MODIFY", "CHANGE"):
        return Action(word + " COLUMN", after)
    second = after.word()
    return Action(f"{word} {second}" if second.isalpha() else word, part)


def _added_object(cursor: Cursor) -> str:
    """What an ADD adds."""
    word, following = cursor.word(), cursor.word(1)
    if word == "CONSTRAINT":
        symbol = following not in _CONSTRAINTS
        return _CONSTRAINTS.get(cursor.word(2) if symbol else following, "INDEX")
    if word in SPECIAL_INDEXES and following in _INDEX_WORDS:
        return "VECTOR INDEX" if word in ("VECTOR", "COLUMNAR") else "INDEX"
    if word == "PARTITION" or (word == "PERIOD" and following == "FOR"):
        return word
    return _CONSTRAINTS.get(word, "COLUMN")


def table_words(cursor: Cursor) -> list[Word]:
    """The words of a table's name: one, or two or three with dots between them."""
    words = [cursor.name_word("a table name")]
    while len(words) < 3 and cursor.take("."):
        words.append(cursor.name_word("a table name"))
    return words
