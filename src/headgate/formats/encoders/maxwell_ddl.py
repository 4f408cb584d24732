"""Maxwell's DDL messages: what a statement is called, and the table's definition beside it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from headgate.event import Event, Types
from headgate.mysql_types import parse_type
from headgate.schemas import Schemas, Table

VERBS = {"create": "create", "alter": "alter", "drop": "drop", "rename": "alter"}
_DATABASE = re.compile(r"\s*(create|alter|drop)\s+(?:database|schema)\b", re.IGNORECASE)
_VIEW = re.compile(
    r"\s*(?:create|alter|drop)\s+(?:(?!table\b)[^\s(`]{1,100}\s+){0,9}?view\b", re.IGNORECASE
)
_NAME = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
_TABLE = rf"(?:{_NAME}\s*\.\s*)?{_NAME}"
_PAIR = re.compile(rf"{_TABLE}\s+to\s+{_TABLE}", re.IGNORECASE)
_RENAME = re.compile(r"\s*rename\s+tables?\s", re.IGNORECASE)
_ALTER = re.compile(
    rf"\s*alter\s+table\s+{_TABLE}\s+rename\s+(?:to\s+|as\s+|=\s*)?(?!column\b|index\b|key\b){_TABLE}",
    re.IGNORECASE,
)
MOST_DDL = 100_000
"""Longer statements are not searched for names."""

Name = tuple["str | None", "str | None"]


class Change(NamedTuple):
    """A statement that Maxwell has a message for: its type, the table's names before and after."""

    type: str
    before: Name
    after: Name


def change_of(event: Event, own: bool) -> Change | None:
    """What a DDL event is to Maxwell; None where it has no message for it.

    >>> change_of(Event("ddl", "rename", "d", "b", ddl="RENAME TABLE a TO b"), False)
    Change(type='table-alter', before=('d', 'a'), after=('d', 'b'))
    >>> change_of(Event("ddl", "query", "d", ddl="CREATE DATABASE d"), False).type
    'database-create'
    >>> change_of(Event("ddl", "create_index", "d", "t"), False)
    """
    statement = (event.ddl or "")[:MOST_DDL]
    name = (event.database, event.table)
    verb = VERBS.get(event.op or "")
    if event.table is None:
        found = _DATABASE.match(statement)
        if found:
            verb = found[1].lower()
        elif not own:
            verb = None
        return Change(f"database-{verb}", name, name) if verb else None
    if verb is None or _VIEW.match(statement):
        return None
    before, after = (
        (renamed(event, statement) or (name, name)) if event.op == "rename" else (name, name)
    )
    return Change(f"table-{verb}", before, after)


def renamed(event: Event, statement: str) -> tuple[Name, Name] | None:
    """The names before and after, of the table that an event is about.

    >>> renamed(Event("ddl", "rename", "d", "t"), "alter table t rename x.`u``v`")
    (('d', 't'), ('x', 'u`v'))
    """
    found = _PAIR.finditer(statement) if _RENAME.match(statement) else [_ALTER.match(statement)]
    for pair in found:
        if pair is None:
            continue
        names = [quoted.replace("``", "`") if quoted else plain for quoted, plain in _twos(pair)]
        before = (names[0] or event.database, names[1])
        after = (names[2] or event.database, names[3])
        if event.table in (before[1], after[1]):  # producers differ in which of them they name
            return before, after
    return None


def _twos(pair: re.Match[str]) -> list[tuple[str | None, str | None]]:
    parts = pair.groups()
    return list(zip(parts[::2], parts[1::2]))


class Definitions:
    """What is known of tables, statement by statement."""

    def __init__(self, schema: str | None) -> None:
        self.schemas = Schemas(schema)

    def follow(self, event: Event, change: Change | None) -> tuple[Any, Any]:
        """The definitions of a statement's table, before and after it."""
        before = change and self.schemas.table(*change.before)
        self.schemas.learn(event)
        if change is None:
            return None, None
        after = self.schemas.table(*change.after)
        types, key = (event.types, event.key) if event.types else told(after)
        old = definition(change.before, *told(before)) if before else None
        return old, definition(change.after, types, key)


def told(table: Table | None) -> tuple[Types | None, tuple[str, ...] | None]:
    """A table's types and key."""
    return (None, None) if table is None else (table.types, table.key)


def definition(name: Name, types: Types | None, key: tuple[str, ...] | None) -> dict[str, Any]:
    """A table's definition; no columns where they are not known.

    >>> from headgate.event import ColumnType
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
