"""Which DDL statements a job takes, and their text under the new names of their tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from headgate.core.event import Event, qualified
from headgate.core.keys import KeyedError, key, one_of
from headgate.schema.catalog import Name
from headgate.schema.table_names import rename_tables
from headgate.selection.routes import Names

DDL_OPS = (
    "create", "alter", "drop", "rename", "truncate", "create_index", "drop_index", "query"
)  # fmt: skip
_DEFINITIONS = ("def", "old")
_Pair = tuple["str | None", "str | None"]
"""A database and a table."""


@dataclass(frozen=True)
class Ddl:
    """Which DDL statements are processed, by operation; all, where `include` is None."""

    include: tuple[str, ...] | None = key(
        f"statements that are processed: `{' '.join(DDL_OPS)}`; `[]` is none",
        None,
        read=one_of("DDL operation", DDL_OPS),
        default_text="all",
    )
    exclude: tuple[str, ...] = key(
        "statements that are skipped", (), read=one_of("DDL operation", DDL_OPS)
    )

    def __post_init__(self) -> None:
        for op in self.exclude:
            if self.include is not None and op in self.include:
                raise KeyedError("exclude", f"{op} is both included and excluded")

    @property
    def selects_all(self) -> bool:
        """Whether every statement is taken."""
        return self.include is None and not self.exclude

    def selects(self, op: str | None) -> bool:
        """Whether statements of an operation are taken.

        >>> Ddl(exclude=("drop",)).selects("drop")
        False
        """
        return op not in self.exclude and (self.include is None or op in self.include)


def rename_statement(event: Event, new: Names | None, new_name: Callable[[Name], Name]) -> Event:
    """A statement under its table's new names; other tables that it names may have some too.

    Statements of databases that have schemas are not MySQL's, and keep their text.
    """
    old, text = (event.database, event.table), event.ddl or ""
    database, schema, table = new or (event.database, event.schema, event.table)
    statement = None
    if event.schema is None:
        statement = rename_tables(text, event.database, database, new_name)
    if new is None and statement in (None, text):
        return event
    return msgspec.structs.replace(
        event,
        database=database,
        schema=schema,
        table=table,
        ddl=statement or event.ddl,
        extra=_definitions(event.extra, old, (database, qualified(schema, table))),
    )


def _definitions(extra: dict[str, str] | None, old: _Pair, new: _Pair) -> dict[str, str] | None:
    """What came beside a statement, under the new names; what cannot be renamed is removed."""
    if not extra:
        return extra
    kept = {name: text for name, text in extra.items() if name != "tableChanges"}
    for name in _DEFINITIONS:
        if name in kept:
            text = _definition(kept.pop(name), old, new)
            if text is not None:
                kept[name] = text
    return kept or None


def _definition(text: str, old: _Pair, new: _Pair) -> str | None:
    """Maxwell's definition of a table under its new name."""
    try:
        table = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(table, dict) or (table.get("database"), table.get("table")) != old:
        return None
    return msgspec.json.encode({**table, "database": new[0], "table": new[1]}).decode()
