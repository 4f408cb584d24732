"""The values that landed tables must have: MySQL's canonical text as Python's values.

The mapping of docs/lake-types.md with its defaults, written a second time and as simply as can be.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from mysql_model import Server, Table
from mysql_values import INTEGER_BITS, base_of

SPATIAL = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
           "multipolygon", "geomcollection", "geometrycollection")  # fmt: skip
MOST_DIGITS = 38


def landed(type_: str, text: str | None) -> Any:
    """A value as it lands; ValueError if it has no place in a lake.

    >>> landed("bit(1)", "1"), landed("decimal(10,2)", "1.10"), landed("bit(64)", "7")
    (True, Decimal('1.10'), Decimal('7'))
    >>> landed("time", "838:59:59"), landed("int(5) unsigned zerofill", "00042")
    ('838:59:59', 42)
    """
    if text is None:
        return None
    base = base_of(type_)
    if base in INTEGER_BITS:
        return Decimal(text) if type_.startswith("bigint") and "unsigned" in type_ else int(text)
    if base == "bit":
        return landed_bits(type_, text)
    if base == "decimal":
        digits = int(type_.partition("(")[2].partition(",")[0].partition(")")[0] or 10)
        return Decimal(text) if digits <= MOST_DIGITS else text
    if base == "float":
        return struct.unpack("f", struct.pack("f", float(text)))[0]
    if base == "double":
        return float(text)
    if base == "year":
        return int(text)
    if base == "date":
        return date.fromisoformat(text)
    if base == "datetime":
        return datetime.fromisoformat(text)
    if base == "timestamp":
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    if base.endswith(("binary", "blob")) or base in SPATIAL:
        return b64decode(text)
    return text


def landed_bits(type_: str, text: str) -> Any:
    length = int(type_.partition("(")[2].partition(")")[0] or 1)
    if length == 1:
        return text == "1"
    return int(text) if length < 64 else Decimal(text)


def landed_name(name: str) -> str:
    """The name of a column as it lands: what a reader could stumble over is its code point.

    >>> landed_name("with space"), landed_name("ünï-1"), landed_name("_position")
    ('with_x0020_space', 'ünï-1', '_x005f_position')
    """
    if name in ("_position", "_op", "_deleted"):
        return f"_x005f{name}"
    return "".join(c if c.isalnum() or c in "_-$#@" else f"_x{ord(c):04x}_" for c in name)


def expected_columns(table: Table) -> list[str]:
    """The columns of a table as they land."""
    return [landed_name(name) for name in table.names]


def expected_rows(table: Table) -> list[dict[str, Any]]:
    """The rows of a table as they land."""
    types = table.types
    return [
        {landed_name(name): landed(types[name], row[name]) for name in types} for row in table.rows
    ]


def expected_tables(server: Server) -> dict[str, list[dict[str, Any]]]:
    """All tables as they land."""
    return {name: expected_rows(table) for name, table in server.tables.items()}


def differences(
    expected: list[dict[str, Any]], found: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows that are missing, and those that should not be there; equal rows count."""
    missing, surplus = list(expected), []
    for row in found:
        if row in missing:
            missing.remove(row)
        else:
            surplus.append(row)
    return missing, surplus
