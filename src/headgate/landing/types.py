"""The one mapping of MySQL's column types to lake types, and columns of those types.

Lake types are named as Spark SQL names them. docs/lake-types.md is the mapping as a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.casts import SIMPLE_TYPES, cast
from headgate.core.errors import UsageError, unknown_name
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.options import option
from headgate.core.values import base_type

MAX_DIGITS = 38
"""The most digits of a decimal in Delta, Iceberg and Spark."""
DATES = ("date", "timestamp", "timestamp_ntz")
SIGNED = {
    "tinyint": "tinyint", "smallint": "smallint", "mediumint": "int", "int": "int",
    "bigint": "bigint",
}  # fmt: skip
UNSIGNED = {
    "tinyint": "smallint", "smallint": "int", "mediumint": "int", "int": "bigint",
    "bigint": "decimal(20,0)",
}  # fmt: skip
FAMILY_TYPES = {
    "double": "double", "date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp",
    "year": "smallint", "binary": "binary",
}  # fmt: skip
"""Types of families whose members all land alike. What is nowhere lands as its text."""
_DECIMAL = re.compile(r"decimal\(([1-9]\d?),(\d\d?)\)", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: .*)?", re.ASCII)


def _json_type(text: str) -> str:
    """The value of the option `json`."""
    if text == "variant":
        raise UsageError(
            "json: variant is not supported, because delta-rs makes a STRUCT of a VARIANT when a "
            "schema change writes its table anew; use json: string, and parse_json(column) or "
            "try_parse_json(column) in queries"
        )
    if text != "string":
        raise UsageError(f"json cannot be {text!r}; it is one of: string")
    return text


@dataclass(frozen=True)
class TypePreferences:
    """Choices where a MySQL type has more than one good lake type; options of table sinks."""

    decimal_overflow: str = option(
        "string",
        "DECIMAL with more than 38 digits, or with digits that nobody declares: its exact text, "
        "or a decimal of 38 digits into which some values do not fit",
        ("string", "decimal38"),
    )
    zero_dates: str = option(
        "misfit",
        "dates that no calendar has (0000-00-00, 2024-02-30): rejected as misfits, landed as "
        "NULL, or all DATE, DATETIME and TIMESTAMP columns landed as text",
        ("misfit", "null", "string"),
    )
    tinyint1: str = option(
        "tinyint",
        "TINYINT(1) and BOOLEAN: a number, or a boolean into which only 0 and 1 fit",
        ("tinyint", "boolean"),
    )
    geometry: str = option(
        "binary",
        "spatial types: MySQL's bytes (SRID and well-known binary), or the text that was sent",
        ("binary", "string"),
    )
    json: str = option("string", "JSON: its text; variant is not supported", read=_json_type)


DEFAULTS = TypePreferences()


# The mapping


@lru_cache(maxsize=4096)
def lake_type(mysql: str | None, preferences: TypePreferences = DEFAULTS) -> str:
    """The lake type of a MySQL column; string where the type is not known.

    >>> lake_type("int unsigned"), lake_type("decimal(12,2)"), lake_type("DATETIME(3)")
    ('bigint', 'decimal(12,2)', 'timestamp_ntz')
    >>> lake_type("decimal(65,30)"), lake_type("time"), lake_type(None)
    ('string', 'string', 'string')
    """
    type_ = parse_type(mysql)
    match type_.family:
        case "integer":
            return _integer_type(type_, mysql or "", preferences)
        case "decimal":
            return _decimal_type(type_, preferences)
        case "bit":
            return _bit_type(type_.length)
        case "float":  # FLOAT(53) is a DOUBLE
            wide = type_.scale is None and (type_.length or 0) > 24
            return "double" if wide else "float"
        case "date" | "datetime" | "timestamp" if preferences.zero_dates == "string":
            return "string"
        case "spatial":
            return preferences.geometry
        case family:
            return FAMILY_TYPES.get(family, "string")


def _integer_type(type_: MySqlType, mysql: str, preferences: TypePreferences) -> str:
    is_boolean = base_type(mysql) in ("bool", "boolean") or (
        type_.base == "tinyint" and type_.length == 1 and not type_.unsigned
    )
    if is_boolean and preferences.tinyint1 == "boolean":
        return "boolean"
    return (UNSIGNED if type_.unsigned else SIGNED)[type_.base]


def _decimal_type(type_: MySqlType, preferences: TypePreferences) -> str:
    digits, scale = type_.length, type_.scale or 0
    if digits and scale <= digits <= MAX_DIGITS:
        return f"decimal({digits},{scale})"
    if preferences.decimal_overflow == "string" or scale > MAX_DIGITS:
        return "string"
    # Messages leave the digits out: half of them behind the point serve most.
    return f"decimal({MAX_DIGITS},{18 if digits is None else scale})"


def _bit_type(length: int | None) -> str:
    if length == 1:
        return "boolean"
    return "bigint" if length and length < 64 else "decimal(20,0)"


@lru_cache(maxsize=256)
def arrow_type(lake: str) -> pa.DataType:
    """The Arrow type of a lake type.

    >>> arrow_type("decimal(12,2)"), arrow_type("timestamp_ntz")
    (Decimal128Type(decimal128(12, 2)), TimestampType(timestamp[us]))
    """
    if lake in SIMPLE_TYPES:
        return SIMPLE_TYPES[lake]
    digits, scale = _digits(lake)
    if not max(scale, 1) <= digits <= MAX_DIGITS:
        raise unknown_name("lake type", lake, [*SIMPLE_TYPES, "decimal(p,s)"])
    return pa.decimal128(digits, scale)


def lake_type_of(type_: pa.DataType) -> str:
    """The lake type of an Arrow type, as readers of lake tables give it.

    >>> lake_type_of(pa.large_string()), lake_type_of(pa.timestamp("us", "UTC"))
    ('string', 'timestamp')
    """
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "string"
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return "binary"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    for lake, simple in SIMPLE_TYPES.items():
        if simple == type_:
            return lake
    raise UsageError(f"a column of the Arrow type {type_} is not one that Headgate lands")


# Columns


def typed(
    texts: pa.Array, mysql: str | None, lake: str, preferences: TypePreferences = DEFAULTS
) -> tuple[pa.Array, dict[int, str]]:
    """Canonical texts of a MySQL column in a lake type, and the texts that do not fit, by row.

    `lake` is the column's own type (`lake_type`) or a wider one. A misfit is null in the column.

    >>> column, misfits = typed(pa.array(["2024-05-01", "0000-00-00"]), "date", "date")
    >>> column.null_count, misfits
    (1, {1: '0000-00-00'})
    """
    column, misfits = cast(texts, arrow_type(lake))
    if misfits and preferences.zero_dates == "null" and lake in DATES:
        misfits = {row: text for row, text in misfits.items() if not is_zero_date(text)}
    type_ = parse_type(mysql)
    if type_.unsigned and type_.family == "integer" and lake not in ("string", "boolean"):
        column, negative = _without_negatives(column, texts)
        misfits |= negative
    return column, misfits


def is_zero_date(text: str) -> bool:
    """Whether a DATE or DATETIME is one that MySQL stores and no calendar has.

    >>> [is_zero_date(t) for t in ("0000-00-00 00:00:00", "2024-02-30", "2024-02-29", "x")]
    [True, True, False, False]
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    try:
        date(*map(int, match.groups()))
    except ValueError:
        return True
    return False


def _without_negatives(column: pa.Array, texts: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Numbers of an UNSIGNED column: a negative one is what a producer made of a large one."""
    least = pc.min(column).as_py()
    if least is None or least >= 0:
        return column, {}
    negative = pc.less(column, pa.scalar(Decimal(0) if type(least) is Decimal else 0, column.type))
    rows = pc.indices_nonzero(negative)
    misfits = dict(zip(rows.to_pylist(), texts.take(rows).to_pylist()))
    return pc.if_else(negative, pa.scalar(None, column.type), column), misfits


# Wider types

_INTEGER_DIGITS = {"boolean": 1, "tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Whole numbers, in the order in which each holds those before it."""
_EXACT_IN = {
    "float": ("boolean", "tinyint", "smallint"),
    "double": ("boolean", "tinyint", "smallint", "int", "float"),
}
"""The numbers that floating point holds without rounding."""


@lru_cache(maxsize=1024)
def wider(a: str, b: str) -> str | None:
    """The narrowest lake type that holds the values of both exactly; None where there is none.

    Numbers widen to numbers, a date to a timestamp without time zone, and everything but binary
    to a string. Decimals that would need more than 38 digits become strings.

    >>> wider("int", "bigint"), wider("int", "decimal(12,4)"), wider("date", "timestamp_ntz")
    ('bigint', 'decimal(14,4)', 'timestamp_ntz')
    >>> wider("int", "string"), wider("bigint", "double"), wider("binary", "string")
    ('string', None, None)
    """
    if a == b:
        return a
    pair = {a, b}
    if "binary" in pair:
        return None  # as a string it would be base64, and not distinguishable from text
    if "string" in pair:
        return "string"
    if pair == {"date", "timestamp_ntz"}:
        return "timestamp_ntz"
    if pair == {"int", "float"}:
        return "double"
    for floating, exact in _EXACT_IN.items():
        if floating in pair and pair - {floating} <= set(exact):
            return floating
    return _wider_exact(a, b)


def _wider_exact(a: str, b: str) -> str | None:
    """The same, of whole numbers and decimals."""
    if a in _INTEGER_DIGITS and b in _INTEGER_DIGITS:
        return max(a, b, key=_INTEGER_DIGITS.__getitem__)
    digits = [_digits(lake) for lake in (a, b)]
    if (0, 0) in digits:
        return None
    scale = max(scale for _, scale in digits)
    total = max(all_digits - scale for all_digits, scale in digits) + scale
    return f"decimal({total},{scale})" if total <= MAX_DIGITS else "string"


def _digits(lake: str) -> tuple[int, int]:
    """All digits and those behind the point of an exact number; zeros of any other type."""
    if lake in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[lake], 0
    match = _DECIMAL.fullmatch(lake)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def upcast(column: pa.Array, lake: str, mysql: str | None = None) -> pa.Array:
    """A column in a wider type (`wider`), value for value.

    As a string it is canonical text. `mysql` is the column's declared type before, which gives the
    fraction digits of a DATETIME or TIMESTAMP; six where it is not known.

    >>> upcast(pa.array([True, None]), "string").to_pylist()
    ['1', None]
    """
    narrow, type_ = lake_type_of(column.type), arrow_type(lake)
    if narrow == lake:
        return column.cast(type_)
    if wider(narrow, lake) != lake:
        raise ValueError(f"{lake} does not hold every value of {narrow}")
    if narrow == "boolean":
        return cast(pa.array(["0", "1"]), type_)[0].take(column.cast(pa.int8()))
    if lake != "string":
        return column.cast(type_)
    if narrow in ("timestamp", "timestamp_ntz"):
        return _time_texts(column, parse_type(mysql))
    if pa.types.is_decimal(column.type) and column.type.scale > 6:  # Arrow writes 1E-7
        texts = [None if number is None else f"{number:f}" for number in column.to_pylist()]
        return pa.array(texts, pa.string())
    return column.cast(pa.string())


def _time_texts(column: pa.Array, type_: MySqlType) -> pa.Array:
    digits = 6 if type_.family not in ("datetime", "timestamp") else type_.length or 0
    texts = column.view(pa.timestamp("us")).cast(pa.string())
    return pc.utf8_slice_codeunits(texts, 0, 20 + digits if digits else 19)
