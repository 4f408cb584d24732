"""ALTER TABLE on what a landed table will be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from headgate.core.errors import shown
from headgate.core.mysql_types import parse_type
from headgate.landing.contents import Contents, constant_column
from headgate.landing.conversion import constant
from headgate.landing.defaults import existing_value, is_current_time
from headgate.landing.mysql_conversion import text_rule
from headgate.landing.mysql_times import NotComputable
from headgate.landing.operations import ColumnSource
from headgate.landing.rules import Context
from headgate.landing.shape import LandedColumn, TableShape, landed_name
from headgate.landing.types import lake_type, wider
from headgate.schema.changes import (
    AddColumn,
    AddIndex,
    AlterTable,
    DropColumn,
    DropIndex,
    ModifyColumn,
    MoveColumn,
    RenameColumn,
    RenameIndex,
    ReplaceRows,
    SetCharset,
    SetDefault,
    SetPrimaryKey,
    TableId,
)
from headgate.schema.columns import ColumnDefinition, as_binary


def alter(contents: Contents, change: AlterTable | ReplaceRows, context: Context) -> None:
    """Apply a change to a table.

    A column that is not there is not the job's, or was changed before.
    """
    try:
        _APPLY[type(change)](contents, change, context)
    except NotComputable as error:
        contents.fail(str(error), context.rules.park)


def take_columns(contents: Contents, after: TableShape, context: Context) -> None:
    """Give a table the columns of a copy that took its place, whose rows are the same.

    NotComputable says why that cannot be done.
    """
    wanted = {column.source_name.lower(): column for column in after.columns}
    for place in reversed(range(len(contents.columns))):
        column = contents.columns[place].landed
        new = wanted.pop(column.source_name.lower(), None)
        if new is not None and new.mysql != column.mysql and column.mysql is not None:
            _convert(contents, place, msgspec.structs.replace(new, name=column.name), context)
        elif new is None and not column.dropped:
            contents.drop(place, context.rules.keep_columns)
    contents.key = after.key
    if wanted:
        names = ", ".join(shown(column.name) for column in wanted.values())
        raise NotComputable(f"the copy that took its place is not landed, and adds {names}")


def _add_column(contents: Contents, change: AddColumn, context: Context) -> None:
    contents.applied = contents.find(change.column.name, renamed=False) is None
    if not contents.applied:
        return
    column = _landed_column(change.table, change.column, context)
    mysql, text = column.mysql or "", None
    if not context.rules.log:
        try:
            text = existing_value(
                change.column, mysql, context.statement.time, context.rules.timezone
            )
            constant(ColumnSource((mysql,), text=text), column.type, context.rules.prefer)
            if is_current_time(change.column) and context.has_rows(contents.origin):
                contents.warnings += _warnings_of_time(change.column.name, mysql, context)
        except NotComputable as error:
            text = None
            if context.has_rows(contents.origin):
                contents.fail(f"column {shown(change.column.name)}: {error}", context.rules.park)
    contents.put(constant_column(column, text), change.position)


def _warnings_of_time(name: str, mysql: str, context: Context) -> list[str]:
    """How the time of a statement may differ from what the server gave to its rows."""
    type_, start = parse_type(mysql), f"column {shown(name)}: rows that are there have the time of"
    warnings = []
    if type_.length:
        warnings.append(f"{start} the statement's event, perhaps without a fraction of the second")
    if type_.family != "timestamp":
        warnings.append(f"{start} the statement in the time zone {context.rules.timezone}")
    return warnings


def _landed_column(table: TableId, column: ColumnDefinition, context: Context) -> LandedColumn:
    mysql = _type_of(table, column, context)
    name = landed_name(column.name)
    source = None if name == column.name else column.name
    return LandedColumn(name, lake_type(mysql, context.rules.prefer), mysql, source)


def _type_of(table: TableId, column: ColumnDefinition, context: Context) -> str:
    """A column's type; in a table whose character set is binary, the catalog knows it."""
    after = context.tables.after.get(table)
    for each in () if after is None else after.columns:
        if each.source_name.lower() == column.name.lower():
            binary = as_binary(column.mysql)
            return binary if each.mysql == binary else column.mysql
    return column.mysql


def _drop_column(contents: Contents, change: DropColumn, context: Context) -> None:
    place = contents.find(change.name, renamed=False)
    if place is not None:
        contents.drop(place, context.rules.keep_columns)


def _rename_column(contents: Contents, change: RenameColumn, context: Context) -> None:
    place = contents.find(change.name, renamed=False)
    if place is None:
        return
    old = contents.columns[place]
    contents.rename(place, change.to)
    if context.rules.only_grow and change.name.lower() != change.to.lower():
        kept = msgspec.structs.replace(old.landed, dropped=True)
        contents.columns.append(replace(old, landed=kept))


def _modify_column(contents: Contents, change: ModifyColumn, context: Context) -> None:
    place = contents.find(change.column.name)
    contents.applied = place is not None
    if place is None:
        return
    old = contents.columns[place].landed
    new = _landed_column(change.table, change.column, context)
    new = msgspec.structs.replace(new, name=old.name, source=old.source)
    if old.mysql is None:
        contents.warnings.append(
            f"column {shown(old.name)} stays as it is: its type before the statement is not known"
        )
    elif new.mysql != old.mysql:
        _convert(contents, place, new, context)


def _convert(contents: Contents, place: int, new: LandedColumn, context: Context) -> None:
    """Give a column another type, and its values what MySQL makes of them."""
    column = contents.columns[place]
    old, mysql = column.landed, new.mysql or ""
    if context.rules.only_grow:
        _widen(contents, place, new)
        return
    try:
        rule = text_rule(parse_type(old.mysql), parse_type(mysql), old.type == "string")
    except NotComputable as error:
        if context.has_rows(contents.origin):
            raise NotComputable(f"column {shown(old.name)}: {error}") from None
        contents.columns[place] = constant_column(new, None)
        return
    source = column.source
    if rule is not None or new.type != old.type:
        source = msgspec.structs.replace(source, types=(*source.types, mysql))
    contents.columns[place] = replace(column, landed=new, source=source)


def _widen(contents: Contents, place: int, new: LandedColumn) -> None:
    """Give a column the type that holds both what it has and what will come."""
    column = contents.columns[place]
    lake = wider(column.landed.type, new.type)
    if lake is None:
        raise NotComputable(
            f"column {shown(new.name)}: no type holds both {column.landed.type} and {new.type}"
        )
    contents.columns[place] = replace(column, landed=msgspec.structs.replace(new, type=lake))


def _move_column(contents: Contents, change: MoveColumn, context: Context) -> None:
    place = contents.find(change.name)
    if place is not None:
        contents.move(place, change.position)


def _set_primary_key(contents: Contents, change: SetPrimaryKey, context: Context) -> None:
    if contents.applied or not change.if_applied:
        contents.set_key(change.columns)


def _replace_rows(contents: Contents, change: ReplaceRows, context: Context) -> None:
    if context.has_rows(contents.origin) or not change.action.startswith(("DROP", "TRUNCATE")):
        raise NotComputable(f"{change.action} adds or removes rows that no change tells")


def _leave(contents: Contents, change: Any, context: Context) -> None:
    """Nothing: defaults and indexes are not landed."""


_APPLY: dict[type, Callable[[Contents, Any, Context], None]] = {
    AddColumn: _add_column,
    DropColumn: _drop_column,
    RenameColumn: _rename_column,
    ModifyColumn: _modify_column,
    MoveColumn: _move_column,
    SetPrimaryKey: _set_primary_key,
    ReplaceRows: _replace_rows,
    SetDefault: _leave,
    SetCharset: _leave,
    AddIndex: _leave,
    DropIndex: _leave,
    RenameIndex: _leave,
}
