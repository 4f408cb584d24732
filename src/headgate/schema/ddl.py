"""Statements, and what they do to the tables that are known."""

from __future__ import annotations

import re
from collections.abc import Callable

from headgate.core.errors import shown
from headgate.schema.alter import alter
from headgate.schema.catalog import Absent, Catalog, Name
from headgate.schema.table_builder import (
    INDEX_STARTS,
    SPECIAL_INDEXES,
    Index,
    create,
    index_columns,
)
from headgate.schema.tokenizer import Cursor, Unreadable, set_of, words

_HEAD = re.compile(r"\s*([a-z_]*)\b\s*([a-z]*)", re.IGNORECASE)
_IGNORED_VERBS = set_of("""
    ANALYZE BEGIN BINLOG CALL CHANGE CHECK CHECKSUM COMMIT DEALLOCATE DELETE DELIMITER DESC DESCRIBE
    DO END EXECUTE EXPLAIN FLUSH GRANT HANDLER INSERT INSTALL KILL LOAD LOCK OPTIMIZE PREPARE PURGE
    RELEASE REPAIR REPLACE RESET REVOKE ROLLBACK SAVEPOINT SELECT SET SHOW SIGNAL START STOP
    TRUNCATE UNINSTALL UNLOCK UPDATE USE WITH XA
    """)
_OTHER_THINGS = set_of("""
    AGGREGATE ALGORITHM BINDING DATABASE DEFINER EVENT FUNCTION GLOBAL INSTANCE LOADABLE LOGFILE
    PLACEMENT PREPARE PROCEDURE RANGE RESOURCE ROLE SCHEMA SEQUENCE SERVER SESSION SQL STATISTICS
    STATS_EXTENDED TABLESPACE TEMPORARY TRIGGER UNDO USER VIEW MASKING PACKAGE
    """)
_TABLE_THINGS = ("TABLE", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "DATABASE")
_ROUTINES = set_of("PROCEDURE FUNCTION TRIGGER EVENT PACKAGE")
_DROP_DATABASE = (("DROP", "DATABASE"), ("DROP", "SCHEMA"))


class Statement:
    """A statement's words after its verb, its default database, and the tables it names."""

    def __init__(
        self, text: str, line: int, database: str | None, touched: list[Name] | None = None
    ) -> None:
        head = _HEAD.match(text)
        self.verb, self.thing = (head[1].upper(), head[2].upper()) if head else ("", "")
        self.rest = text[head.end(1) :] if head else text
        self.line = line + text[: head.start(1) if head else 0].count("\n")
        self.database = database
        self.touched = [] if touched is None else touched

    def cursor(self) -> Cursor:
        """The words after the verb, which sqlglot would take for a whole command."""
        return Cursor(words(self.rest, self.line), self.line)

    def table(self, cursor: Cursor) -> Name:
        """Read a table's name."""
        name, database = cursor.name("a table name"), self.database
        if cursor.take("."):
            database, name = name, cursor.name("a table name")
        if cursor.take("."):  # PostgreSQL, Oracle and others have schemas in databases
            name = f"{name}.{cursor.name('a table name')}"
        self.touched.append((database, name))
        return database, name

    def routine(self) -> bool:
        """Whether the statement makes a routine, whose body has statements of its own."""
        words = set(self.rest[:1000].upper().split())
        return self.verb == "CREATE" and self.thing not in _TABLE_THINGS and bool(words & _ROUTINES)


def run(catalog: Catalog, statement: Statement) -> None:
    """Apply one statement."""
    verb, thing = statement.verb, statement.thing
    catalog.spend(1000)
    if thing in _OTHER_THINGS and (verb, thing) not in _DROP_DATABASE:
        return
    if verb in _VERBS:
        _VERBS[verb](catalog, statement, statement.cursor())
    elif verb not in _IGNORED_VERBS and (
        not catalog.from_file or thing in ("TABLE", "INDEX", "DATABASE")
    ):
        raise Unreadable(f"{shown(verb)} is not a known statement", statement.line)


def _create(catalog: Catalog, statement: Statement, cursor: Cursor) -> None:
    cursor.take("OR", "REPLACE")
    if cursor.take("TABLE"):
        _create_table(catalog, statement, cursor)
    elif cursor.word() in INDEX_STARTS or cursor.word(1) == "INDEX":
        _create_index(catalog, statement, cursor)
    else:
        _other(cursor)


def _create_table(catalog: Catalog, statement: Statement, cursor: Cursor) -> None:
    unless = cursor.take("IF", "NOT", "EXISTS")
    line, name = cursor.line, statement.table(cursor)
    if unless and catalog.entry(name) not in (None, Absent.DROPPED):
        return
    body = cursor.parens("columns") if cursor.word() == "(" else cursor
    if body.take("LIKE"):
        draft = catalog.draft(statement.table(body), line)
    elif body is cursor or body.word() in ("SELECT", "WITH", "("):
        raise Unreadable("the statement does not tell the table's columns", line)
    else:
        draft = create(body, cursor)
    draft.ahead = catalog.from_file
    catalog.set(name, draft)


def _create_index(catalog: Catalog, statement: Statement, cursor: Cursor) -> None:
    """CREATE INDEX name ON table (columns)."""
    unique = cursor.take("UNIQUE")
    cursor.take_any("FULLTEXT", "SPATIAL", *SPECIAL_INDEXES)
    if cursor.take("REFERENCE"):  # a spatial reference system
        return
    cursor.take_any("INDEX", "KEY")
    unless = cursor.take("IF", "NOT", "EXISTS")
    index = cursor.name("an index name")
    while not cursor.done() and not cursor.take("ON"):
        cursor.at += 1
    line, name = cursor.line, statement.table(cursor)
    draft = catalog.draft(name, line)
    if unless and index.lower() in draft.indexes:
        return
    _, columns = index_columns(draft, cursor)
    draft.add_index(index, Index(columns, unique))
    catalog.set(name, draft)


def _alter(catalog: Catalog, statement: Statement, cursor: Cursor) -> None:
    while cursor.take_any("ONLINE", "OFFLINE", "IGNORE"):
        pass
    if not cursor.take("TABLE"):
        _other(cursor)
        return
    if_there = cursor.take("IF", "EXISTS")
    line, name = cursor.line, statement.table(cursor)
    if if_there and catalog.entry(name) is None:
        return
    draft = catalog.draft(name, line)
    target = alter(draft, cursor)
    if target is None:
        catalog.set(name, draft)
        return
    new = statement.table(target)
    _remove(catalog, name, Absent.DROPPED)
    catalog.set(new, draft)


def _rename(catalog: Catalog, statement: Statement, cursor: Cursor) -> None:
    if not cursor.take_any("TABLE", "TABLES"):
        _other(cursor)
        return
    cursor.take("IF", "EXISTS")
    pairs = []
    for part in cursor.parts():
        old = statement.table(part)
        if not part.take("TO"):
            raise part.error("expected TO")
        pairs.append((old, statement.table(part), part.line))
    for old, new, line in pairs:
        known = catalog.must_find(old, line) if catalog.from_file else catalog.find(*old)
        if known is None:
            # Nothing is known of the new table either: the old one may come back under it.
            _remove(catalog, new, Absent.FORGOTTEN)
        else:
            _remove(catalog, old, Absent.DROPPED)
            catalog.set(new, known.draft)


def _drop(catalog: Catalog, statement: Statement, cursor: Cursor) -> None:
    if cursor.take_any("TABLE", "TABLES"):
        cursor.take("IF", "EXISTS")
        for part in cursor.parts():
            _remove(catalog, statement.table(part), Absent.DROPPED)
    elif cursor.take_any("DATABASE", "SCHEMA"):
        cursor.take("IF", "EXISTS")
        catalog.spend(4 * len(catalog.tables))
        catalog.remove_database(cursor.name("a database"), Absent.DROPPED)
    elif cursor.take("INDEX"):
        if_there = cursor.take("IF", "EXISTS")
        line, index = cursor.line, cursor.name("an index name")
        if not cursor.take("ON"):
            raise cursor.error("expected ON and a table")
        name = statement.table(cursor)
        draft = catalog.draft(name, line)
        if not if_there or index.lower() in draft.indexes:
            draft.drop_index(index, line)
        catalog.set(name, draft)
    else:
        _other(cursor)


_VERBS: dict[str, Callable[[Catalog, Statement, Cursor], None]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "RENAME": _rename,
    "DROP": _drop,
}


def _remove(catalog: Catalog, name: Name, why: Absent) -> None:
    if name[0] is None:
        catalog.spend(4 * len(catalog.tables.get(name[1], ())))
    catalog.remove(name, why)


def _other(cursor: Cursor) -> None:
    """Let pass what makes, changes or drops something that is no table."""
    if cursor.word() not in _OTHER_THINGS:
        raise cursor.error(f"expected TABLE, found {shown(cursor.word())}")
