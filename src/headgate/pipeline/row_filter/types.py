"""The Spark types in which conditions see columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headgate.core.event import Types
from headgate.core.mysql_types import parse_type
from headgate.pipeline.row_filter.condition import Condition

UNTYPED = "?"
MAX_DIGITS = 38
FAMILY_TYPES = {
    "integer": "DECIMAL(20,0)", "bit": "DECIMAL(20,0)", "float": "DOUBLE", "double": "DOUBLE",
    "date": "DATE", "datetime": "TIMESTAMP", "timestamp": "TIMESTAMP", "year": "INT",
    "string": "STRING", "enum": "STRING", "set": "STRING", "json": "STRING", "time": "STRING",
    "binary": "BINARY",
}  # fmt: skip
_TYPE = re.compile(r"[^,(]+(?:\([^)]*\))?")


def spark_type(mysql: str | None) -> str:
    """The Spark type in which a condition sees a MySQL column; `?` where that is not known.

    Of a DECIMAL with more digits than Spark has, only values that fit are evaluated.

    >>> spark_type("bigint unsigned"), spark_type("decimal(12,2)"), spark_type("decimal(65,30)")
    ('DECIMAL(20,0)', 'DECIMAL(12,2)', 'DECIMAL(38,30)')
    >>> spark_type("varchar(80)"), spark_type("datetime(6)"), spark_type(None)
    ('STRING', 'TIMESTAMP', '?')
    """
    type_ = parse_type(mysql)
    if type_.family != "decimal":
        return FAMILY_TYPES.get(type_.family, UNTYPED)
    if type_.length is None:  # messages leave the digits out
        return "DECIMAL(38,18)"
    digits, scale = type_.length, type_.scale or 0
    if not scale <= digits <= 65 or not digits or scale > 30:
        return UNTYPED
    return f"DECIMAL({min(digits, MAX_DIGITS)},{scale})"


def signature(condition: Condition, types: Types | None) -> str:
    """The types of a condition's columns, in their order.

    >>> from headgate.core.event import ColumnType
    >>> signature(Condition("a > b"), {"A": ColumnType("int")})
    'DECIMAL(20,0),?'
    """
    known = types or {}
    names = (name_in(known, column.name) for column in condition.columns)
    return ",".join(spark_type(None if name is None else known[name].mysql) for name in names)


def types_in(signature: str) -> list[str]:
    """The types of a signature.

    >>> types_in("DECIMAL(12,2),STRING")
    ['DECIMAL(12,2)', 'STRING']
    """
    return _TYPE.findall(signature)


def name_in(names: Mapping[str, Any], name: str) -> str | None:
    """The spelling of a name among others: the same, or one that differs in case.

    >>> name_in({"ID": 1, "id": 2}, "id"), name_in({"ID": 1}, "id"), name_in({}, "id")
    ('id', 'ID', None)
    """
    if name in names:
        return name
    folded = name.casefold()
    return next((each for each in names if each.casefold() == folded), None)
