"""Maxwell's DDL messages: the type of a statement, and the table's definition."""

from __future__ import annotations

from typing import Any, NamedTuple

from headgate.core.event import Event, Types
from headgate.core.mysql_types import parse_type
from headgate.formats.table_definitions import table_definitions
from headgate.schema.changes import RenameTable
from headgate.schema.ddl import changes
from headgate.schema.known_tables import KnownTables
from headgate.schema.statement import HEAD_WORDS, first_statement
from headgate.schema.tables import Table

VERBS = {"create": "create", "alter": "alter", "drop": "drop", "rename": "alter"}
DATABASE_VERBS = {"CREATE": "create", "ALTER": "alter", "DROP": "drop"}
Name = tuple["str | None", "str | None"]


class Change(NamedTuple):
    """A statement that Maxwell has a message for: its type, the table's names before and after."""

    type: str
    before: Name
    after: Name


def change_of(event: Event) -> Change | None:
    """How Maxwell describes a DDL event; None if it has no message for it.

    >>> change_of(Event("ddl", "rename", "d", "b", ddl="RENAME TABLE a TO b"))
    Change(type='table-alter', before=('d', 'a'), after=('d', 'b'))
    >>> change_of(Event("ddl", "query", "d", ddl="CREATE DATABASE d")).type
    'database-create'
    >>> change_of(Event("ddl", "create_index", "d", "t"))
    """
    statement = first_statement(event.ddl or "", HEAD_WORDS)
    same_format = event.format == "maxwell"
    verb = VERBS.get(event.op or "")
    name = (event.database, event.table)
    if event.table is None:
        if not same_format:  # there are many statements without a table
            verb = DATABASE_VERBS.get(statement.verb) if statement.object == "DATABASE" else None
        return Change(f"database-{verb}", name, name) if verb else None
    if verb is None or statement.object == "VIEW":
        return None
    before, after = renamed(event) if event.op == "rename" else (name, name)
    return Change(f"table-{verb}", name if same_format else before, after)


def renamed(event: Event) -> tuple[Name, Name]:
    """The names of an event's table before and after its statement; the same if it is not renamed.

    >>> renamed(Event("ddl", "rename", "d", "t", ddl="alter table t rename x.`u``v`"))
    (('d', 't'), ('x', 'u`v'))
    """
    pairs: list[tuple[Name, Name]] = [
        ((change.table.database, change.table.table), (change.to.database, change.to.table))
        for change in changes(event.ddl or "", event.database)
        if isinstance(change, RenameTable)
    ]
    for side in (0, 1):  # producers differ in which of the names they give
        for names in pairs:
            if names[side][1] == event.table:
                return names
    return (event.database, event.table), (event.database, event.table)


class Definitions:
    """The known table definitions, updated by each statement."""

    def __init__(self, schema: str | None) -> None:
        self.tables = KnownTables(schema, table_definitions)

    def follow(self, event: Event, change: Change | None) -> tuple[Any, Any]:
        """The definitions of a statement's table, before and after it."""
        before = change and self.tables.table(*change.before)
        self.tables.learn(event)
        if change is None:
            return None, None
        after = self.tables.table(*change.after)
        types, key = (event.types, event.key) if event.types else types_and_key(after)
        old = definition(change.before, *types_and_key(before)) if before else None
        return old, definition(change.after, types, key)


def types_and_key(table: Table | None) -> tuple[Types | None, tuple[str, ...] | None]:
    """A table's types and key."""
    return (None, None) if table is None else (table.types, table.key)


def definition(name: Name, types: Types | None, key: tuple[str, ...] | None) -> dict[str, Any]:
    """A table's definition; without columns if they are unknown.

    >>> from headgate.core.event import ColumnType
    >>> definition(("d", "t"), {"id": ColumnType("int unsigned")}, ("id",))["columns"]
    [{'type': 'int', 'name': 'id', 'signed': False}]
    """
    return {
        "database": name[0],
        "charset": None,
        "table": name[1],
        "columns": [column(n, t.mysql) for n, t in (types or {}).items()],
        "primary-key": list(key or ()),
    }


def column(name: str, mysql: str | None) -> dict[str, Any]:
    """One column of a definition.

    >>> column("at", "datetime(3)"), column("e", "enum('a')")["enum-values"]
    ({'type': 'datetime', 'name': 'at', 'column-length': 3}, ('a',))
    """
    type_ = parse_type(mysql)
    result: dict[str, Any] = {"type": type_.base, "name": name}
    if type_.family == "string":
        result["charset"] = None
    elif type_.family == "binary":
        result["charset"] = "binary"
    elif type_.family == "integer":
        result["signed"] = not type_.unsigned
    elif type_.labels:
        result["enum-values"] = type_.labels
    elif type_.base in ("datetime", "timestamp", "time"):
        result["column-length"] = type_.length or 0
    return result
