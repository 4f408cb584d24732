"""What DDL does to tables, as values: the one answer to "what does this statement do".

A statement gives its changes in order (`headgate.schema.ddl.changes`). Whoever keeps tables equal
to the source, the catalog or a sink, applies them one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headgate.schema.columns import ColumnDefinition, Default
from headgate.schema.definition import Index, TableDefinition


class TableId(NamedTuple):
    """A table's database and name. In a database with schemas, the name is `schema.table`."""

    database: str | None
    """None is the current database."""
    table: str


class Position(NamedTuple):
    """A column's place: after another column, or first."""

    after: str | None = None


class _Change(msgspec.Struct, frozen=True, tag=True):
    """One change."""


class CreateDatabase(_Change, frozen=True):
    """CREATE DATABASE."""

    database: str


class DropDatabase(_Change, frozen=True):
    """DROP DATABASE: all its tables are gone."""

    database: str


class Unknown(_Change, frozen=True):
    """A statement that is not understood: it may have changed these tables in any way."""

    tables: tuple[TableId, ...]
    """The tables that it names, as far as it could be read; if none, it may be any."""
    reason: str
    at: int = 0
    """Where in the text."""


class CreateTable(_Change, frozen=True):
    """CREATE TABLE."""

    table: TableId
    definition: TableDefinition | None = None
    """None: the columns are those of `like`, or unknown."""
    like: TableId | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    unknown: Unknown | None = None
    """Why the columns are not known: CREATE TABLE … SELECT, an unknown type."""


class DropTable(_Change, frozen=True):
    """DROP TABLE; one change for each table."""

    table: TableId
    if_exists: bool = False


class RenameTable(_Change, frozen=True):
    """RENAME TABLE, or ALTER TABLE … RENAME; a swap of tables is several of them, in order."""

    table: TableId
    to: TableId


class TruncateTable(_Change, frozen=True):
    """TRUNCATE TABLE: all rows are gone, without a row event."""

    table: TableId


class ReplaceRows(_Change, frozen=True):
    """Rows go or come without a row event: DROP, TRUNCATE or EXCHANGE PARTITION and the like."""

    table: TableId
    action: str
    """What does it: `DROP PARTITION`."""


class AddColumn(_Change, frozen=True):
    """ADD COLUMN. Existing rows get its default, without a row event."""

    table: TableId
    column: ColumnDefinition
    position: Position | None = None
    """None is last."""
    if_not_exists: bool = False


class DropColumn(_Change, frozen=True):
    """DROP COLUMN."""

    table: TableId
    name: str
    if_exists: bool = False


class RenameColumn(_Change, frozen=True):
    """RENAME COLUMN, or the new name in CHANGE COLUMN."""

    table: TableId
    name: str
    to: str
    if_exists: bool = False


class ModifyColumn(_Change, frozen=True):
    """MODIFY COLUMN, or the new type in CHANGE COLUMN: type, nullability and default."""

    table: TableId
    column: ColumnDefinition
    if_exists: bool = False


class MoveColumn(_Change, frozen=True):
    """MODIFY or CHANGE COLUMN … FIRST or AFTER."""

    table: TableId
    name: str
    position: Position
    if_exists: bool = False


class SetDefault(_Change, frozen=True):
    """ALTER COLUMN … SET DEFAULT, or DROP DEFAULT (None)."""

    table: TableId
    name: str
    default: Default | None


class SetCharset(_Change, frozen=True):
    """The character set of later columns, or with CONVERT TO of all."""

    table: TableId
    charset: str | None
    """None: the database's."""
    converts: bool


class SetPrimaryKey(_Change, frozen=True):
    """ADD or DROP PRIMARY KEY, also as an attribute of a new column; no columns: there is none."""

    table: TableId
    columns: tuple[str, ...]
    if_applied: bool = False
    """Whether it counts only if the AddColumn or ModifyColumn before it did: a column's own PRIMARY
    KEY or UNIQUE in ADD COLUMN IF NOT EXISTS or MODIFY COLUMN IF EXISTS."""


class AddIndex(_Change, frozen=True):
    """ADD INDEX or CREATE INDEX; a unique one is a key of the table."""

    table: TableId
    name: str
    """Empty where MySQL makes one up."""
    index: Index
    if_not_exists: bool = False
    if_applied: bool = False
    """Whether it counts only if the AddColumn or ModifyColumn before it did: a column's own PRIMARY
    KEY or UNIQUE in ADD COLUMN IF NOT EXISTS or MODIFY COLUMN IF EXISTS."""


class DropIndex(_Change, frozen=True):
    """DROP INDEX."""

    table: TableId
    name: str
    if_exists: bool = False


class RenameIndex(_Change, frozen=True):
    """RENAME INDEX."""

    table: TableId
    name: str
    to: str


AlterTable = (
    AddColumn | DropColumn | RenameColumn | ModifyColumn | MoveColumn | SetDefault
    | SetCharset | SetPrimaryKey | AddIndex | DropIndex | RenameIndex
)  # fmt: skip
"""A change to the columns or keys of one table."""

SchemaChange = (
    CreateDatabase | DropDatabase | CreateTable | DropTable | RenameTable | TruncateTable
    | ReplaceRows | AlterTable | Unknown
)  # fmt: skip
