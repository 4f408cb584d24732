"""MySQL column types as encoders need them: the text of a type, taken apart once."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from headgate.core.limits import MAX_PLAIN_EXPONENT
from headgate.core.values import labels

SAME = {
    "bool": "tinyint", "boolean": "tinyint", "integer": "int", "int8": "tinyint",
    "int16": "smallint", "int24": "mediumint", "int32": "int", "int64": "bigint",
    "numeric": "decimal", "dec": "decimal", "fixed": "decimal", "real": "double",
    "geomcollection": "geometrycollection",
}  # fmt: skip
"""Other names of a type: MySQL's own, and those of OMS."""

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
STRINGS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
MARIADB_STRINGS = ("uuid", "inet4", "inet6")
"""Types of MariaDB whose values are text to everyone who reads them."""
TIMES = ("date", "time", "datetime", "timestamp")
SPATIAL = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
    "multipolygon", "geometrycollection",
)  # fmt: skip
FAMILIES = (
    dict.fromkeys(INTEGERS, "integer")
    | dict.fromkeys((*STRINGS, *MARIADB_STRINGS), "string")
    | dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "binary")
    | dict.fromkeys(SPATIAL, "spatial")
    | {
        name: name
        for name in (*TIMES, "decimal", "float", "double", "bit", "year", "enum", "set", "json")
    }
    | {"vector": "vector"}
)
_COLUMN_TYPES = """
tinyint smallint mediumint int integer bigint decimal dec numeric fixed float double real
bit bool boolean date time datetime timestamp year char varchar tinytext text mediumtext
longtext binary varbinary tinyblob blob mediumblob longblob enum set json geometry point
linestring polygon multipoint multilinestring multipolygon geometrycollection vector
uuid inet4 inet6
"""
COLUMN_TYPES = frozenset(_COLUMN_TYPES.split())
"""The names of column types that MySQL, MariaDB and TiDB know, with their synonyms."""
_NUMBERS = re.compile(r"\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\)")


class MySqlType(NamedTuple):
    """A column type taken apart; `family` groups types whose values are written alike."""

    base: str
    family: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    labels: tuple[str, ...] = ()


UNKNOWN = MySqlType("", "unknown")


MOST_DECLARED = {
    "decimal": MAX_PLAIN_EXPONENT, "time": 9, "datetime": 9, "timestamp": 9, "bit": 64,
    "binary": 65_535,
}  # fmt: skip
"""The largest length or number of digits that is believed, by base type or family."""


@lru_cache(maxsize=4096)
def parse_type(text: str | None) -> MySqlType:
    """Take a type's text apart, as messages and CREATE TABLE write it.

    >>> parse_type("DECIMAL(12, 2) unsigned")
    MySqlType(base='decimal', family='decimal', length=12, scale=2, unsigned=True, ...)
    >>> parse_type("enum('a','b')").labels, parse_type("INT64").base, parse_type(None).family
    (('a', 'b'), 'bigint', 'unknown')
    """
    if not text:
        return UNKNOWN
    words = re.split(r"[(\s]", text.strip().lower(), maxsplit=1)
    base = SAME.get(words[0], words[0])
    family = FAMILIES.get(base, "unknown")
    if family in ("enum", "set"):
        return MySqlType(base, family, labels=labels(text))
    numbers = _NUMBERS.search(text)
    most = MOST_DECLARED.get(base) or MOST_DECLARED.get(family)
    if numbers and most and max(map(int, numbers.groups("0"))) > most:
        numbers = None  # no database has such a column, and values are filled up to its length
    rest = text.lower()
    return MySqlType(
        base,
        family,
        int(numbers[1]) if numbers else None,
        int(numbers[2]) if numbers and numbers[2] else None,
        "unsigned" in rest or "zerofill" in rest,
        "zerofill" in rest,
    )
