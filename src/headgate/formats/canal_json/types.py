"""Names and JDBC codes of column types, as Canal, TiCDC and OMS write them."""

from __future__ import annotations

from headgate.core.mysql_types import MySqlType

JDBC = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 7, "double": 8,
    "decimal": 3, "char": 1, "varchar": 12, "date": 91, "time": 92, "datetime": 93,
    "timestamp": 93, "year": 12, "enum": 4, "set": -7, "bit": -7, "json": 12, "vector": 12,
}  # fmt: skip
OMS_JDBC = {"float": 6, "year": 4, "enum": 1, "set": 1, "binary": -2, "varbinary": -3}
"""OMS only: the codes that differ from Canal's."""
PROMOTED = {
    "tinyint": ("127", 5),
    "smallint": ("32767", 4),
    "int": ("2147483647", -5),
    "bigint": ("9223372036854775807", 3),
}
"""Unsigned integers: the largest value of their JDBC code, and the code of larger values."""
OF_NULL = {"set": 2004, "json": 1111}
"""Canal only: the JDBC code of NULL, where it differs from that of a value."""
UNTYPED = ("varchar", 12)
"""The type given to a column of unknown type, where a type is required."""


def jdbc_code(type_: MySqlType, dialect: str) -> int:
    """The java.sql.Types code of a column, not considering its value.

    >>> from headgate.core.mysql_types import parse_type
    >>> jdbc_code(parse_type("text"), "canal"), jdbc_code(parse_type("float"), "oms")
    (2005, 6)
    """
    if dialect == "oms" and type_.base in OMS_JDBC:
        return OMS_JDBC[type_.base]
    if type_.family in ("binary", "spatial"):
        return 2004
    if type_.base.endswith("text"):
        return 2005
    return JDBC.get(type_.base, 12)


WIDTHS = {
    "tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10), "bigint": (20, 20)
}  # fmt: skip


def plain_type(type_: MySqlType) -> str:
    """TiCDC's default: the type's name, with `unsigned` and `zerofill`.

    >>> from headgate.core.mysql_types import parse_type
    >>> plain_type(parse_type("int(10) unsigned")), plain_type(parse_type("year(4)"))
    ('int unsigned', 'year')
    """
    signed = type_.family in ("integer", "decimal", "float", "double")
    sign = " unsigned" if signed and type_.unsigned else ""
    return type_.base + sign + (" zerofill" if signed and type_.zerofill else "")


def described_type(type_: MySqlType) -> str:
    """TiCDC with content-compatible: TiDB's description of a type.

    >>> from headgate.core.mysql_types import parse_type
    >>> described_type(parse_type("int unsigned")), described_type(parse_type("decimal(10, 4)"))
    ('int(10) unsigned', 'decimal(10,4)')
    """
    base, length = type_.base, type_.length
    if type_.labels:
        escaped = (label.replace("\\", "\\\\").replace("'", "''") for label in type_.labels)
        quoted = ",".join(f"'{label}'" for label in escaped)
        return f"{base}({quoted})"
    if base in WIDTHS:
        length = WIDTHS[base][type_.unsigned] if length is None else length
    elif base == "decimal" and length is not None:
        return plain_type(type_).replace(base, f"{base}({length},{type_.scale or 0})", 1)
    elif base in ("float", "double") and type_.scale is not None:
        return plain_type(type_).replace(base, f"{base}({length},{type_.scale})", 1)
    elif base in ("float", "double", "text", "blob") or base.endswith(("text", "blob")):
        length = None
    elif base == "year":
        length = 4
    return plain_type(type_).replace(base, f"{base}({length})", 1) if length else plain_type(type_)
