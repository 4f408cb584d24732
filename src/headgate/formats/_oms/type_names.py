"""OMS's names of MySQL's types."""

from __future__ import annotations

from headgate.core.event import Types
from headgate.formats.base import TypeNames

MYSQL = {"int64": "bigint", "bigint": "bigint unsigned"}


def to_mysql(types: Types | None) -> Types | None:
    """MySQL's types for OMS's names: its INT64 is BIGINT, and its BIGINT is unsigned.

    >>> from headgate.core.event import ColumnType
    >>> to_mysql({"id": ColumnType("INT64"), "n": ColumnType("BIGINT")})["n"].mysql
    'bigint unsigned'
    """
    return types and {
        # A type with flags comes from a schema and is already MySQL's.
        name: type_ if type_.flags is not None or type_.mysql is None
        else type_._replace(mysql=MYSQL.get(type_.mysql.lower(), type_.mysql.lower()))
        for name, type_ in types.items()
    }  # fmt: skip


TYPE_NAMES = TypeNames(to_mysql, frozenset({"bigint"}))
