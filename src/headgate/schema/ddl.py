"""The reader of DDL: from a statement's text to the changes that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from headgate.core.errors import shown
from headgate.core.event import Event, qualified
from headgate.schema.alter import drop_index, read_action
from headgate.schema.changes import (
    AddIndex,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    RenameTable,
    SchemaChange,
    TableId,
    TruncateTable,
    Unknown,
)
from headgate.schema.create_table import read_definition, read_index_columns
from headgate.schema.definition import Index
from headgate.schema.statement import (
    MAX_LENGTH,
    Statement,
    actions,
    first_statement,
    split_statements,
    table_words,
)
from headgate.schema.tokenizer import Cursor, Unreadable, set_of

MAX_WORDS = 100_000
"""A statement with more is not read."""

_IGNORED_VERBS = set_of("""
    ANALYZE BEGIN BINLOG CALL CHANGE CHECK CHECKSUM COMMIT DEALLOCATE DELETE DELIMITER DESC DESCRIBE
    DO END EXECUTE EXPLAIN FLUSH GRANT HANDLER INSERT INSTALL KILL LOAD LOCK OPTIMIZE PREPARE PURGE
    RELEASE REPAIR REPLACE RESET REVOKE ROLLBACK SAVEPOINT SELECT SET SHOW SIGNAL START STOP
    UNINSTALL UNLOCK UPDATE USE WITH XA
    """)
_OTHER_OBJECTS = set_of("""
    AGGREGATE ALGORITHM BINDING DEFINER EVENT FUNCTION GLOBAL INSTANCE LOADABLE LOGFILE PLACEMENT
    PREPARE PROCEDURE RANGE REFERENCE RESOURCE ROLE SEQUENCE SERVER SESSION SQL STATISTICS
    STATS_EXTENDED TABLESPACE TRIGGER UNDO USER VIEW MASKING PACKAGE
    """)
"""What has no columns, or none of its own."""


class Reading(NamedTuple):
    """What a statement does."""

    statement: Statement
    changes: list[SchemaChange]
    """In order; none where it leaves tables, columns and keys as they are."""
    tables: list[TableId]
    """The tables that it changes or takes over, as far as it could be read."""
    if_exists: bool = False
    """Of an ALTER TABLE: whether the table may be missing."""


def changes(sql: str, database: str | None = None) -> list[SchemaChange]:
    """The changes that DDL makes, in order. `database` is that of names without one.

    A statement that is not understood gives Unknown, with the reason. One that leaves tables,
    columns and keys as they are gives nothing: CREATE VIEW, INSERT, ALTER TABLE … ENGINE.

    >>> changes("RENAME TABLE t TO old, shop.new TO t", "shop")
    [RenameTable(table=TableId(database='shop', table='t'), to=TableId(database='shop', ...
    >>> changes("ALTER TABLE t ADD n INT NOT NULL DEFAULT 5 FIRST, DROP PRIMARY KEY")
    [AddColumn(table=TableId(database=None, table='t'), column=ColumnDefinition(name='n', ...
    >>> changes("ALTER TABLE t ADD n NUMBER(5)")[0].reason
    "unknown column type 'number'; did you mean 'numeric'? known: ...
    """
    result: list[SchemaChange] = []
    for reading in read_statements(sql, database):
        result += reading.changes
        if reading.statement.is_routine:
            break
    return result


def event_changes(event: Event) -> list[SchemaChange]:
    """The changes that a DDL event makes, in order.

    Databases that have schemas do not speak MySQL: the event's operation says whether a table
    is created, dropped or truncated, and an alteration is Unknown.

    >>> event_changes(Event("ddl", "alter", "d", "t", ddl="ALTER TABLE t DROP n"))
    [DropColumn(table=TableId(database='d', table='t'), name='n', if_exists=False)]
    >>> event_changes(Event("ddl", "drop", "d", "t", schema="s", ddl='drop table "s"."t"'))
    [DropTable(table=TableId(database='d', table='s.t'), if_exists=False)]
    """
    if event.kind != "ddl":
        return []
    sql = event.ddl or ""
    if event.schema is None and sql.strip():
        return changes(sql, event.database)
    reason = "the statement is not MySQL's" if sql.strip() else "there is no statement"
    if event.table is None:
        return [Unknown((), reason)]
    table = TableId(event.database, qualified(event.schema, event.table) or event.table)
    unknown = Unknown((table,), reason)
    by_op: dict[str | None, SchemaChange] = {
        "create": CreateTable(table, unknown=unknown),
        "drop": DropTable(table),
        "truncate": TruncateTable(table),
    }
    return [by_op.get(event.op, unknown)]


def read_statements(sql: str, database: str | None, limited: bool = True) -> Iterator[Reading]:
    """What each statement of a text does; USE says which database the following ones are for."""
    if limited and len(sql) > MAX_LENGTH:
        yield Reading(first_statement(""), [Unknown((), "the statement is too long")], [])
        return
    for statement in split_statements(sql):
        if limited and len(statement.text.words) > MAX_WORDS:
            yield Reading(statement, [Unknown((), "the statement is too long")], [])
            return
        if statement.verb == "USE":
            database = Cursor(statement.text.words, 1).text() or database
        yield _read(statement, database)


def _read(statement: Statement, database: str | None) -> Reading:
    reader = _Reader(statement, database)
    try:
        result = reader.read()
    except Unreadable as error:
        result = [Unknown(tuple(reader.tables), error.reason, error.at or 0)]
    return Reading(statement, result, reader.tables, reader.if_exists)


class _Reader:
    """Reads one statement; notes the tables that it names."""

    def __init__(self, statement: Statement, database: str | None) -> None:
        self.statement, self.database = statement, database
        self.sql = statement.text.sql
        self.tables: list[TableId] = []
        self.if_exists = False

    def read(self) -> list[SchemaChange]:
        statement = self.statement
        verb, object = statement.verb, statement.object
        if statement.text.unclosed is not None and verb not in _IGNORED_VERBS:
            raise Unreadable("a quote is not closed", statement.text.unclosed)
        if "TEMPORARY" in statement.modifiers:
            return []
        read = _READERS.get((verb, object))
        if read is not None:
            return read(self, statement.cursor())
        if verb in _IGNORED_VERBS or object in _OTHER_OBJECTS or (verb, object) in _NO_CHANGE:
            return []
        place = statement.text.words[0].start
        if verb in _VERBS:
            raise Unreadable(f"expected TABLE, found {shown(object)}", place)
        raise Unreadable(f"{shown(verb)} is not a known statement", place)

    def table(self, cursor: Cursor) -> TableId:
        """Read a table's name."""
        words = table_words(cursor)
        table = TableId(self.database, words[0].text)
        if len(words) > 1:  # PostgreSQL, Oracle and others have schemas in databases
            table = TableId(words[0].text, ".".join(word.text for word in words[1:]))
        self.tables.append(table)
        return table

    def create_table(self, cursor: Cursor) -> list[SchemaChange]:
        if_not_exists = cursor.take("IF", "NOT", "EXISTS")
        or_replace = "OR" in self.statement.modifiers
        place, table = cursor.place, self.table(cursor)
        definition = like = unknown = None
        try:
            body = cursor.parens("columns") if cursor.word() == "(" else cursor
            if body.take("LIKE"):
                like = self.table(body)
            elif body is cursor or body.word() in ("SELECT", "WITH", "("):
                raise Unreadable("the statement does not define the table's columns", place)
            else:
                definition = read_definition(body, cursor, self.sql)
        except Unreadable as error:
            unknown = Unknown((table,), error.reason, error.at or 0)
        return [CreateTable(table, definition, like, if_not_exists, or_replace, unknown)]

    def alter_table(self, cursor: Cursor) -> list[SchemaChange]:
        self.if_exists = cursor.take("IF", "EXISTS")
        table, to = self.table(cursor), None
        result: list[SchemaChange] = []
        for action in actions(cursor):
            if action.kind == "RENAME TABLE":
                action.cursor.take_any("TO", "AS", "=")
                to = self.table(action.cursor)
            else:
                result += read_action(table, action, self.sql)
        # MySQL renames last: the other parts are of the table under its old name.
        return result if to is None else [*result, RenameTable(table, to)]

    def rename_table(self, cursor: Cursor) -> list[SchemaChange]:
        cursor.take("IF", "EXISTS")
        result: list[SchemaChange] = []
        for part in cursor.parts():
            old = self.table(part)
            if not part.take("TO"):
                raise part.error("expected TO")
            result.append(RenameTable(old, self.table(part)))
        return result

    def drop_table(self, cursor: Cursor) -> list[SchemaChange]:
        if_exists = cursor.take("IF", "EXISTS")
        return [DropTable(self.table(part), if_exists) for part in cursor.parts()]

    def truncate_table(self, cursor: Cursor) -> list[SchemaChange]:
        return [TruncateTable(self.table(part)) for part in cursor.parts()]

    def create_index(self, cursor: Cursor) -> list[SchemaChange]:
        """CREATE INDEX name ON table (columns)."""
        if_not_exists = cursor.take("IF", "NOT", "EXISTS")
        name = cursor.name("an index name")
        while not cursor.done() and not cursor.take("ON"):
            cursor.at += 1
        table = self.table(cursor)
        unique = "UNIQUE" in self.statement.modifiers
        index = Index(read_index_columns(cursor)[1], unique)
        return [AddIndex(table, name, index, if_not_exists)]

    def drop_index(self, cursor: Cursor) -> list[SchemaChange]:
        """DROP INDEX name ON table."""
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.name("an index name")
        if not cursor.take("ON"):
            raise cursor.error("expected ON and a table")
        return [drop_index(self.table(cursor), name, if_exists)]

    def create_database(self, cursor: Cursor) -> list[SchemaChange]:
        cursor.take("IF", "NOT", "EXISTS")
        return [CreateDatabase(cursor.name("a database"))]

    def drop_database(self, cursor: Cursor) -> list[SchemaChange]:
        cursor.take("IF", "EXISTS")
        return [DropDatabase(cursor.name("a database"))]


_VERBS = ("CREATE", "ALTER", "DROP", "RENAME")
_NO_CHANGE = (("ALTER", "DATABASE"),)
_READERS: dict[tuple[str, str], Callable[[_Reader, Cursor], list[SchemaChange]]] = {
    ("CREATE", "TABLE"): _Reader.create_table,
    ("CREATE", "INDEX"): _Reader.create_index,
    ("CREATE", "DATABASE"): _Reader.create_database,
    ("ALTER", "TABLE"): _Reader.alter_table,
    ("RENAME", "TABLE"): _Reader.rename_table,
    ("DROP", "TABLE"): _Reader.drop_table,
    ("DROP", "INDEX"): _Reader.drop_index,
    ("DROP", "DATABASE"): _Reader.drop_database,
    ("TRUNCATE", "TABLE"): _Reader.truncate_table,
}
