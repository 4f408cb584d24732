"""Maxwell's DDL messages: what a statement is called, and the table's definition beside it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from headgate.core.event import Event, Types
from headgate.core.mysql_types import parse_type
from headgate.formats.table_definitions import table_definitions
from headgate.schema.known_tables import KnownTables
from headgate.schema.tables import Table

VERBS = {"create": "create", "alter": "alter", "drop": "drop", "rename": "alter"}
_DATABASE = re.compile(r"\s*(create|alter|drop)\s+(?:database|schema)\b", re.IGNORECASE)
_VIEW = re.compile(
    r"\s*(?:create|alter|drop)\s+(?:(?!table\b)[^\s(`]{1,100}\s+){0,9}?view\b", re.IGNORECASE
)
_NAME = r"(?:`((?:[^`]|``)++)`|([\w$]++))"
_TABLE = rf"(?:{_NAME}\s*+\.\s*+)?{_NAME}"
_RENAME = re.compile(r"\s*rename\s+tables?\s", re.IGNORECASE)
_PAIR = re.compile(rf"(?<![\w$`]){_TABLE}\s+to\s+{_TABLE}", re.IGNORECASE)
_ALTER = re.compile(
    rf"\s*alter\s+table\s+{_TABLE}\s+rename\s+(?:to\s+|as\s+|=\s*)?"
    rf"(?!(?:column|index|key)\b){_TABLE}",
    re.IGNORECASE,
)
MOST_SEARCHED = 10_000
"""So many characters of a statement are searched for names."""

Name = tuple["str | None", "str | None"]


class Change(NamedTuple):
    """A statement that Maxwell has a message for: its type, the table's names before and after."""

    type: str
    before: Name
    after: Name


def change_of(event: Event) -> Change | None:
    """What a DDL event is to Maxwell; None where it has no message for it.

    >>> change_of(Event("ddl", "rename", "d", "b", ddl="RENAME TABLE a TO b"))
    Change(type='table-alter', before=('d', 'a'), after=('d', 'b'))
    >>> change_of(Event("ddl", "query", "d", ddl="CREATE DATABASE d")).type
    'database-create'
    >>> change_of(Event("ddl", "create_index", "d", "t"))
    """
    statement = (event.ddl or "")[:MOST_SEARCHED]
    own = event.format == "maxwell"
    verb = VERBS.get(event.op or "")
    name = (event.database, event.table)
    if event.table is None:
        found = _DATABASE.match(statement)
        if not own:  # there are many statements without a table
            verb = found and found[1].lower()
        return Change(f"database-{verb}", name, name) if verb else None
    if verb is None or _VIEW.match(statement):
        return None
    before, after = renamed(event, statement) if event.op == "rename" else (name, name)
    return Change(f"table-{verb}", name if own else before, after)


def renamed(event: Event, statement: str) -> tuple[Name, Name]:
    """The names of an event's table before and after a statement; the same where it tells none.

    >>> renamed(Event("ddl", "rename", "d", "t"), "alter table t rename x.`u``v`")
    (('d', 't'), ('x', 'u`v'))
    """
    found = _PAIR.finditer(statement) if _RENAME.match(statement) else [_ALTER.match(statement)]
    pairs = [name_pair(pair, event.database) for pair in found if pair]
    for side in (0, 1):  # producers differ in which of the names they give
        for names in pairs:
            if names[side][1] == event.table:
                return names
    return (event.database, event.table), (event.database, event.table)


def name_pair(match: re.Match[str], database: str | None) -> tuple[Name, Name]:
    """The two tables' names in a match of four names, two of which may be missing."""
    parts = match.groups()
    names = [(q.replace("``", "`") if q else plain) for q, plain in zip(parts[::2], parts[1::2])]
    return (names[0] or database, names[1]), (names[2] or database, names[3])


class Definitions:
    """What is known of tables, statement by statement."""

    def __init__(self, schema: str | None) -> None:
        self.tables = KnownTables(schema, table_definitions)

    def follow(self, event: Event, change: Change | None) -> tuple[Any, Any]:
        """The definitions of a statement's table, before and after it."""
        before = change and self.tables.table(*change.before)
        self.tables.learn(event)
        if change is None:
            return None, None
        after = self.tables.table(*change.after)
        types, key = (event.types, event.key) if event.types else told(after)
        old = definition(change.before, *told(before)) if before else None
        return old, definition(change.after, types, key)


def told(table: Table | None) -> tuple[Types | None, tuple[str, ...] | None]:
    """A table's types and key."""
    return (None, None) if table is None else (table.types, table.key)


def definition(name: Name, types: Types | None, key: tuple[str, ...] | None) -> dict[str, Any]:
    """A table's definition; no columns where they are not known.

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
    found: dict[str, Any] = {"type": type_.base, "name": name}
    if type_.family == "string":
        found["charset"] = None
    elif type_.family == "binary":
        found["charset"] = "binary"
    elif type_.family == "integer":
        found["signed"] = not type_.unsigned
    elif type_.labels:
        found["enum-values"] = type_.labels
    elif type_.base in ("datetime", "timestamp", "time"):
        found["column-length"] = type_.length or 0
    return found
