"""Finished tables: columns, keys, and what events say of them."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from headgate.core import values
from headgate.core.cache import BoundedCache
from headgate.core.column_flags import (
    BINARY,
    GENERATED,
    HANDLE,
    MULTIPLE,
    NULLABLE,
    PRIMARY,
    UNIQUE,
    UNSIGNED,
)
from headgate.core.event import ColumnType, Types
from headgate.core.values import Convert
from headgate.schema.columns import Column
from headgate.schema.tokenizer import set_of

_STRINGS = set_of("char varchar tinytext text mediumtext longtext enum set uuid inet4 inet6")
_LABELLERS = {"enum": values.enum_label, "set": values.set_labels}


class _TableParts(NamedTuple):
    columns: dict[str, Column]
    key: tuple[str, ...]
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()


class Table(_TableParts):
    """One table: columns in order, primary key, unique and other indexes.

    >>> Table({"id": Column("int", nullable=False), "name": Column("text")}, ("id",)).types["id"]
    ColumnType(mysql='int', jdbc=None, flags=11)
    """

    @cached_property
    def types(self) -> Types:
        """What an event's `types` say of this table; always the same object."""
        return {
            name: ColumnType(column.mysql, None, flag)
            for (name, column), flag in zip(self.columns.items(), _flags(self))
        }

    @cached_property
    def labels(self) -> tuple[tuple[str, str, Convert], ...]:
        """ENUM and SET columns: name, which of the two, and a function from number to labels."""
        return tuple(
            (name, base, BoundedCache(convert).__getitem__)
            for name, column in self.columns.items()
            if (base := values.base_type(column.mysql)) in _LABELLERS
            and (convert := _LABELLERS[base](column.mysql)) is not None
        )


def handle_key(table: Table) -> tuple[str, ...]:
    """The columns that tell rows apart: primary key, else the shortest unique key without NULLs.

    >>> handle_key(Table({"a": Column("int"), "b": Column("int", False)}, (), (("a",), ("b",))))
    ('b',)
    """
    if table.key:
        return table.key
    firm = {n for n, c in table.columns.items() if not c.nullable and not c.generated}
    return min((unique for unique in table.uniques if firm.issuperset(unique)), key=len, default=())


def _flags(table: Table) -> list[int]:
    """The flags of each column, in table order."""
    handle, unique = set(handle_key(table)), {n for names in table.uniques for n in names}
    # TiDB's "multiple key": in an index of several columns, or in one whose values may repeat.
    several = [names for names in (table.key, *table.uniques) if len(names) > 1]
    multiple = {n for names in (*several, *table.indexes) for n in names}
    return [
        _type_flags(column.mysql)
        | HANDLE * (name in handle)
        | GENERATED * (column.generated is not None)
        | PRIMARY * (name in table.key)
        | UNIQUE * (name in unique)
        | MULTIPLE * (name in multiple)
        | NULLABLE * (column.nullable and name not in table.key)
        for name, column in table.columns.items()
    ]


def _type_flags(mysql: str) -> int:
    """The flags that follow from the type alone."""
    base = values.base_type(mysql)
    if base in _STRINGS:
        return 0
    unsigned = base in ("bit", "year") or " unsigned" in mysql or " zerofill" in mysql
    return BINARY | UNSIGNED * unsigned
