"""The JDBC codes (java.sql.Types) of columns, as Canal assigns them."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.core.mysql_types import MySqlType

CODES = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 7, "double": 8,
    "decimal": 3, "char": 1, "varchar": 12, "date": 91, "time": 92, "datetime": 93,
    "timestamp": 93, "year": 12, "enum": 4, "set": -7, "bit": -7, "json": 12, "vector": 12,
}  # fmt: skip
LARGE_UNSIGNED = {
    "tinyint": ("127", 5),
    "smallint": ("32767", 4),
    "int": ("2147483647", -5),
    "bigint": ("9223372036854775807", 3),
}
"""Unsigned integers: the largest value of their JDBC code, and the code of larger values."""


def jdbc_code(type_: MySqlType, differing: Mapping[str, int]) -> int:
    """The code of a column, not considering its value; `differing`: the codes unlike Canal's.

    >>> from headgate.core.mysql_types import parse_type
    >>> jdbc_code(parse_type("text"), {}), jdbc_code(parse_type("float"), {"float": 6})
    (2005, 6)
    """
    if type_.base in differing:
        return differing[type_.base]
    if type_.family in ("binary", "spatial"):
        return 2004
    if type_.base.endswith("text"):
        return 2005
    return CODES.get(type_.base, 12)
