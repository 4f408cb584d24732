"""How far a job follows schema changes, and what it knows when one comes.

The words for how far, and their meanings, are Flink CDC's:

evolve      apply every change; a table to which one cannot be applied is parked
try_evolve  apply what can be applied; of the rest the operator is warned, and the table goes on
lenient     never lose anything: a renamed column is added under its new name and kept under the
            old one, dropped columns and tables stay, types only widen, TRUNCATE is not applied
ignore      only new tables are created
exception   a statement that changes a landed table stops the job
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from headgate.core.errors import HeadgateError, shown
from headgate.landing.shape import TableShape
from headgate.landing.types import DEFAULTS, TypePreferences
from headgate.schema.changes import TableId

Behaviour = Literal["evolve", "try_evolve", "lenient", "ignore", "exception"]


class SchemaChangeRefused(HeadgateError):
    """A landed table would change, and the job is not to follow any change."""


@dataclass(frozen=True)
class Rules:
    """How schema changes are followed."""

    behaviour: Behaviour = "evolve"
    drop_table: Literal["keep", "drop"] = "keep"
    drop_column: Literal["keep", "drop"] = "keep"
    log: bool = False
    """Whether tables are logs of all changes: what is in them stays as it was."""
    ignore_deletes: bool = False
    """Whether rows stay that the source deletes."""
    prefer: TypePreferences = DEFAULTS
    timezone: str = "UTC"
    """The server's, for the time of a statement in a DATETIME."""

    @property
    def only_grow(self) -> bool:
        """Whether nothing is lost that is in a table."""
        return self.behaviour == "lenient" or self.log

    @property
    def keep_columns(self) -> bool:
        """Whether columns stay that the source drops."""
        return self.drop_column == "keep" or self.only_grow

    @property
    def park(self) -> bool:
        """Whether a table that cannot follow a change waits, rather than going on without it."""
        return self.behaviour in ("evolve", "exception") and not self.log


@dataclass(frozen=True)
class Statement:
    """A DDL event."""

    text: str
    position: str
    """Its place in the source's order, as rows have it."""
    time: datetime | None = None
    table: TableId | None = None
    """The table that its event names."""
    database: str | None = None
    is_snapshot: bool = False
    """Whether it describes a table of a snapshot, and nobody ran it: it creates tables at most."""


@dataclass(frozen=True)
class Tables:
    """What is known of tables."""

    landed: Mapping[TableId, TableShape]
    """All landed tables, as they are."""
    after: Mapping[TableId, TableShape] = field(default_factory=dict)
    """The source's tables after the statement, as far as the catalog knows them."""
    is_empty: Callable[[TableId], bool] = lambda table: False
    """Whether a landed table has no rows; asked only where rows would be in the way."""
    takes: Callable[[TableId], bool] = lambda table: True
    """Whether the job lands a table of that name."""


@dataclass(frozen=True)
class Context:
    """A statement, what is known of tables, and how it is to be followed."""

    statement: Statement
    tables: Tables
    rules: Rules

    def has_rows(self, table: TableId | None) -> bool:
        """Whether there may be rows in a landed table; there are none without a table."""
        return table is not None and not self.tables.is_empty(table)


def table_name(table: TableId) -> str:
    """A table's name for errors.

    >>> table_name(TableId("shop", "orders"))
    "'shop.orders'"
    """
    return shown(".".join(name for name in table if name is not None))
