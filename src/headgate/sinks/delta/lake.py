"""The tables of a job: where each is, and whose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

import pyarrow as pa

from headgate.core.errors import shown
from headgate.landing.rules import Behaviour, Rules
from headgate.landing.shape import TableShape
from headgate.schema.changes import TableId
from headgate.sinks.delta.deleted import DeletedKeys
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.paths import RESERVED, table_path
from headgate.sinks.delta.table import (
    DELETED,
    JOB,
    OP,
    LandedTable,
    Location,
    OwnerError,
    Token,
    create,
    landed_schema,
)

Keep = Literal["keep", "drop"]
STEPS = 100_000
"""Tokens of a batch are numbered from its number times this."""


@dataclass(frozen=True)
class Lake:
    """Where tables are landed, by which job, and how."""

    root: str
    """As delta-rs takes it."""
    job: str
    options: DeltaOptions
    storage: dict[str, str] = field(default_factory=dict, repr=False)
    """delta-rs' options, with credentials."""
    generation: int = 0
    """Raised when a table is removed."""
    watermark: int | None = None
    """Noted with commits: up to which point of the source tables are complete."""

    def path(self, table: TableId) -> str:
        """The path of a table below the root."""
        return table_path(self.options.table, table)

    def location(self, table: TableId) -> Location:
        """Where a table is."""
        return Location(f"{self.root}/{self.path(table)}", self.storage, self.generation)

    def deleted_keys(self, table: TableId) -> DeletedKeys:
        """The positions of its deleted keys."""
        path = f"{self.root}/{RESERVED}/deleted/{self.path(table)}"
        location = Location(path, self.storage, self.generation)
        return DeletedKeys(location, self.options.remember_seconds)

    def merge_token(self, batch: int, step: int) -> Token:
        """The token of a merge."""
        return self._token(batch, 2 * step)

    def ddl_token(self, batch: int, step: int) -> Token:
        """The token of the DDL that follows the merge of its step."""
        return self._token(batch, 2 * step + 1)

    def _token(self, batch: int, number: int) -> Token:
        return Token(f"headgate-{self.job}", batch * STEPS + number, batch, self.watermark)

    def schema(self, shape: TableShape) -> pa.Schema:
        """The columns of a landed table."""
        log, soft = self.options.mode == "log", self.options.deletes == "soft"
        return landed_schema(shape.columns, log=log, soft=soft)

    @property
    def rules(self) -> Rules:
        """How schema changes are followed."""
        options = self.options
        return Rules(
            behaviour=cast(Behaviour, options.schema_change),
            drop_table=cast(Keep, options.drop_table),
            drop_column=cast(Keep, options.drop_column),
            log=options.mode == "log",
            ignore_deletes=options.deletes == "ignore",
            prefer=options.types,
            timezone=options.timezone,
        )

    def opened(self, table: TableId) -> LandedTable | None:
        """A table as it is; None where there is none. One that is not this job's is refused."""
        landed = LandedTable.open(self.location(table))
        return None if landed is None else self.claimed(landed, table)

    def opened_or_new(self, shape: TableShape) -> LandedTable:
        """A table as it is; where there is none, one without rows."""
        landed = self.opened(shape.table)
        if landed is None:
            location = self.location(shape.table)
            landed = create(location, shape, self.schema(shape), self.job)
        return landed

    def claimed(self, landed: LandedTable, table: TableId) -> LandedTable:
        """A table, if it is this job's."""
        uri, shape = landed.location.uri, landed.shape
        if shape.table != table:
            raise OwnerError(
                f"{uri} is where {shown(named(shape.table))} is landed, and "
                f"{shown(named(table))} would be landed there too; choose a `table` path that "
                "tells them apart, or route both to one table"
            )
        if (OP in landed.schema.names) != (self.options.mode == "log"):
            raise OwnerError(
                f"{uri} was landed with another mode than {self.options.mode}; choose another "
                "directory, or the mode it has"
            )
        if landed.properties.get(JOB) != self.job:
            if not self.options.adopt:
                raise OwnerError(
                    f"{uri} was landed by another job or from another checkpoint; choose another "
                    "directory, restore the checkpoint, or go on with its tables: adopt: true. "
                    "Tables with a key are right then, because changes that they have are "
                    "recognised by their positions; logs and tables without a key would have "
                    "changes twice that are read again"
                )
            landed.describe(shape, self.job)
            landed = landed.again()
        if self.options.deletes == "soft" and DELETED not in landed.schema.names:
            landed.add_columns(pa.schema([(DELETED, pa.bool_())]))
            landed = landed.again()
        return landed


def named(table: TableId) -> str:
    """The name of a table for people."""
    return ".".join(name for name in table if name is not None)
