"""The option `columns`: MySQL types of columns, as in CREATE TABLE."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headgate.core import values
from headgate.core.errors import UsageError, unknown_name
from headgate.core.mysql_types import COLUMN_TYPES

_COLUMN = re.compile(r"((?:`[^`]+`|[^\s`.]+)(?:\.(?:`[^`]+`|[^\s`.]+)){0,3})\s+(\S.*)", re.DOTALL)
_SPLIT = re.compile(r",(?=(?:[^']*'[^']*')*[^']*$)(?![^(]*\))")


def declared(columns: str | None) -> dict[str, str]:
    """Types by column name, or by database.table.column, from the option `columns`.

    For a table in a schema the name is database.schema.table.column.

    >>> declared("price DECIMAL(9,2), shop.t.state ENUM('a','b')")
    {'price': 'decimal(9,2)', 'shop.t.state': "enum('a','b')"}
    """
    types: dict[str, str] = {}
    for part in _SPLIT.split(columns) if columns and columns.strip() else ():
        match = _COLUMN.fullmatch(part.strip())
        if not match:
            raise UsageError(
                f"option columns: cannot parse {part.strip()!r}; write it as in CREATE TABLE: "
                "'price DECIMAL(9,2), shop.orders.day DATE'"
            )
        name, type_ = match[1].replace("`", ""), match[2].strip()
        base = values.base_type(type_)
        if base not in COLUMN_TYPES:
            raise unknown_name("column type", base, COLUMN_TYPES)
        if name.count(".") == 1:
            raise UsageError(f"option columns: write {name!r} as database.table.column")
        types[name] = base + type_[len(base) :] if "'" in type_ else type_.lower()
    return types


def for_table(
    columns: Mapping[str, str], database: str | None, table: str | None
) -> dict[str, str]:
    """The declared columns of one table; they override those declared for every table.

    >>> for_table({"a": "date", "d.t.a": "time", "d.u.b": "year"}, "d", "t")
    {'a': 'time'}
    """
    prefix = f"{database}.{table}."
    of_table = {n[len(prefix) :]: t for n, t in columns.items() if n.startswith(prefix)}
    return {n: t for n, t in columns.items() if "." not in n} | of_table
