"""Changes applied to a table's definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

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
    SetCharset,
    SetDefault,
    SetPrimaryKey,
)
from headgate.schema.definition import Index, TableDefinition, index_name
from headgate.schema.tokenizer import Unreadable


def altered(
    table: TableDefinition, changes: Iterable[AlterTable], steps: int = 0
) -> TableDefinition:
    """The definition after these changes; raises Unreadable where one does not fit.

    `steps` is the work that was done already for the event's statements.

    >>> from headgate.schema.changes import Position, TableId
    >>> from headgate.schema.columns import Column, ColumnDefinition
    >>> change = AddColumn(TableId("d", "t"), ColumnDefinition("a", "int"), Position())
    >>> list(altered(TableDefinition({"b": Column("text")}), [change]).columns)
    ['a', 'b']
    """
    after = table.copy(steps)
    applied = True
    for change in changes:
        if isinstance(change, AddColumn):
            applied = not change.if_not_exists or after.find(change.column.name) is None
        elif isinstance(change, ModifyColumn):
            applied = not change.if_exists or after.find(change.column.name) is not None
        elif isinstance(change, SetPrimaryKey | AddIndex) and change.if_applied and not applied:
            continue
        _APPLY[type(change)](after, change)
    if not after.columns:
        raise Unreadable("no column is left")
    return after


def _add_column(table: TableDefinition, change: AddColumn) -> None:
    name, position = change.column.name, change.position
    after = None if position is None or position.after is None else table.get(position.after)
    there = table.find(name)
    if there is not None and change.if_not_exists:
        return
    table.put(
        name, change.column.column(table.binary, table.charset), there if table.ahead else None
    )
    if position is not None and after != name:
        table.move(name, after)


def _drop_column(table: TableDefinition, change: DropColumn) -> None:
    if table.find(change.name) is not None or not (change.if_exists or table.ahead):
        table.drop(table.get(change.name))


def _rename_column(table: TableDefinition, change: RenameColumn) -> None:
    name = table.find(change.name)
    if name is None and (change.if_exists or (table.ahead and table.find(change.to))):
        return
    name = table.get(change.name)
    table.put(change.to, table.columns[name], name)


def _modify_column(table: TableDefinition, change: ModifyColumn) -> None:
    name = change.column.name
    if change.if_exists and table.find(name) is None:
        return
    table.put(name, change.column.column(table.binary, table.charset), table.get(name))


def _move_column(table: TableDefinition, change: MoveColumn) -> None:
    if change.if_exists and table.find(change.name) is None:
        return
    name, after = table.get(change.name), change.position.after
    after = None if after is None else table.get(after)
    if after != name:
        table.move(name, after)


def _set_default(table: TableDefinition, change: SetDefault) -> None:
    """Nothing: a definition holds no defaults."""


def _set_charset(table: TableDefinition, change: SetCharset) -> None:
    table.charset = change.charset
    table.binary = change.charset == "binary"
    if change.converts:
        columns = table.columns.items()
        table.columns = {name: column.with_charset(change.charset) for name, column in columns}


def _set_primary_key(table: TableDefinition, change: SetPrimaryKey) -> None:
    table.set_key(tuple(map(table.get, change.columns)))


def _add_index(table: TableDefinition, change: AddIndex) -> None:
    if change.if_not_exists and index_name(change.name, change.index) in table.indexes:
        return
    columns = tuple(map(table.get, change.index.columns))
    table.add_index(change.name, Index(columns, change.index.unique))


def _drop_index(table: TableDefinition, change: DropIndex) -> None:
    if not change.if_exists or change.name.lower() in table.indexes:
        table.drop_index(change.name)


def _rename_index(table: TableDefinition, change: RenameIndex) -> None:
    index = table.indexes.get(change.name.lower())
    table.drop_index(change.name)
    if index:
        table.add_index(change.to, index)


_APPLY: dict[type, Callable[[TableDefinition, Any], None]] = {
    AddColumn: _add_column,
    DropColumn: _drop_column,
    RenameColumn: _rename_column,
    ModifyColumn: _modify_column,
    MoveColumn: _move_column,
    SetDefault: _set_default,
    SetCharset: _set_charset,
    SetPrimaryKey: _set_primary_key,
    AddIndex: _add_index,
    DropIndex: _drop_index,
    RenameIndex: _rename_index,
}
