"""Which DDL statements a job takes, and their text under the new names of their tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from headgate.core.event import Event, qualified
from headgate.core.keys import KeyedError, key, one_of
from headgate.formats import traits_of
from headgate.formats.base import TableName
from headgate.schema.catalog import Name
from headgate.schema.table_names import rename_tables
from headgate.selection.routes import Names

DDL_OPS = (
    "create", "alter", "drop", "rename", "truncate", "create_index", "drop_index", "query"
)  # fmt: skip


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
        extra=_extra(event, old, (database, qualified(schema, table))),
    )


def _extra(event: Event, old: TableName, new: TableName) -> dict[str, str] | None:
    """What came beside a statement, under its table's new name."""
    renamed_extra = traits_of(event.format, event.dialect).renamed_extra
    if not event.extra or renamed_extra is None:
        return event.extra
    return renamed_extra(event.extra, old, new) or None
