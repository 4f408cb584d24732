"""MySQL column types from the option `columns` or a schema, and how their values are sent."""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from headgate.core import values
from headgate.core.errors import DecodeError
from headgate.core.limits import MAX_PLAIN_EXPONENT
from headgate.core.mysql_types import SPATIAL
from headgate.core.options import CommonOptions, option
from headgate.formats._connect.declared_columns import declared, for_table
from headgate.formats._connect.geometry import geometry, point
from headgate.formats._connect.times import (
    MICROS,
    MILLIS,
    NANOS,
    Convert,
    counted_datetime,
    counted_time,
    date_text,
    zoned,
)

MOST_DECIMAL_BYTES = 1024
_DECIMAL_TEXT = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LENGTH = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")

DECIMALS = ("decimal", "dec", "numeric", "fixed")


@dataclass(frozen=True)
class DecodedValueOptions(CommonOptions):
    """How the connector writes values, for messages whose schema does not declare it."""

    columns: str | None = option(
        None, "MySQL types of columns, as in CREATE TABLE: 'price DECIMAL(9,2), shop.t.day DATE'"
    )
    decimal_handling_mode: str | None = option(
        None, "the connector's decimal.handling.mode", ("precise", "string", "double")
    )
    binary_handling_mode: str | None = option(
        None,
        "the connector's binary.handling.mode",
        ("bytes", "base64", "base64-url-safe", "hex"),
    )
    time_precision_mode: str | None = option(
        None,
        "the connector's time.precision.mode",
        ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
    )
    bigint_unsigned_handling_mode: str | None = option(
        None, "the connector's bigint.unsigned.handling.mode", ("long", "precise")
    )
    unavailable_value_placeholder: str | None = option(
        None, "the connector's unavailable.value.placeholder, if it is not Debezium's default"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        declared(self.columns)


Writer = Literal["debezium", "oms", "ticdc"]
"""The program that wrote a message; each encodes some types in its own way."""


class DeclaredColumn(NamedTuple):
    """The declared types of a column; `wire` is its type in the schema, None without a schema."""

    mysql: str
    wire: str | None
    writer: Writer
    as_text: bool = False
    """Whether the connector treats the column as text although its type is binary."""

    @property
    def oms(self) -> bool:
        """Whether OMS wrote the message."""
        return self.writer == "oms"


TableColumns = Callable[["str | None", "str | None"], dict[str, str]]


def table_columns(columns: str | None) -> TableColumns | None:
    """A function from a table to its column types, as declared in the option `columns`.

    >>> table_columns("note TEXT, shop.t.id INT")("shop", "t")
    {'note': 'text', 'id': 'int'}
    """
    types = declared(columns)
    return (lambda database, table: for_table(types, database, table)) if types else None


def precision(mysql_type: str) -> tuple[int | None, int]:
    """The length and scale in a type's parentheses.

    >>> precision("decimal(12,2)"), precision("datetime")
    ((12, 2), (None, 0))
    """
    match = _LENGTH.search(mysql_type)
    return (int(match[1]), int(match[2] or 0)) if match else (None, 0)


def text(value: Any) -> str:
    """The value if it is text; any other value of a binary or text column is rejected."""
    if not isinstance(value, str):
        raise DecodeError(
            "wrong-type", "the value of a text or binary column is not a string", "check `columns`"
        )
    return value


def decimal_text(unscaled: int, scale: int) -> str:
    """Plain decimal text of an integer and its scale.

    >>> decimal_text(-150, 2), decimal_text(5, 3), decimal_text(7, -2)
    ('-1.50', '0.005', '700')
    """
    digits = str(abs(unscaled))
    if unscaled >= 0 and 0 < scale < len(digits):
        return f"{digits[:-scale]}.{digits[-scale:]}"
    if scale > 0:
        digits = digits.rjust(scale + 1, "0")
        digits = f"{digits[:-scale]}.{digits[-scale:]}"
    elif scale < 0 and unscaled:
        digits += "0" * -scale
    return f"-{digits}" if unscaled < 0 else digits


def base64_decimal(value: str, scale: int) -> str:
    """Decimal text from base64 of a big-endian two's complement integer.

    >>> base64_decimal("AxY=", 2), base64_decimal("/2o=", 2)
    ('7.90', '-1.50')
    """
    unscaled = values.base64_bytes(value)
    if not 0 < len(unscaled) <= MOST_DECIMAL_BYTES:
        raise DecodeError(
            "invalid-value",
            f"a decimal has {len(unscaled)} bytes",
            "check `columns` and `decimal-handling-mode`",
        )
    return decimal_text(int.from_bytes(unscaled, "big", signed=True), scale)


def decimal(scale: int) -> Convert:
    """A function from a decimal as base64, as a number or as text to its plain text.

    >>> decimal(2)("AxY="), decimal(2)(790), decimal(2)("7.90")
    ('7.90', '790', '7.90')
    """
    if abs(scale) > MAX_PLAIN_EXPONENT:
        raise DecodeError("invalid-value", f"a decimal has scale {scale}", "check the schema")

    def convert(value: Any) -> str:
        if value.__class__ is not str:
            return decimal_digits(value)
        if len(value) % 4 or "." in value or value[:1] == "-":  # never base64
            return decimal_digits(value)
        return base64_decimal(value, scale)

    return convert


def decimal_digits(value: Any) -> str:
    """Plain decimal text of a number or a numeric string."""
    if value.__class__ is int:
        return str(value)
    digits = text(value)
    if not _DECIMAL_TEXT.fullmatch(digits):
        raise DecodeError(
            "invalid-value",
            "the value of a decimal column is neither base64 nor a number",
            "check `columns` and `decimal-handling-mode`",
        )
    return str(values.plain(digits))  # a plain str instead of a Number


def unsigned(value: Any) -> str:
    """BIGINT UNSIGNED, which overflows to a negative number in the connector's mode `long`.

    >>> unsigned(-1), unsigned(5)
    ('18446744073709551615', '5')
    """
    if value.__class__ is int and -(2**63) <= value < 0:
        return str(value + 2**64)
    return decimal(0)(value)


def little_endian_bits(value: Any) -> str:
    """BIT(n) from base64 of its bytes, least significant first.

    >>> little_endian_bits("aTY=")
    '13929'
    """
    if value.__class__ is bool or value.__class__ is int:
        return str(int(value))
    bits = values.base64_bytes(text(value))
    if len(bits) > 8:
        raise DecodeError(
            "invalid-value", f"a BIT column has {len(bits)} bytes", "check the schema"
        )
    return str(int.from_bytes(bits, "little"))


def hex_bits(value: Any) -> str:
    """OMS's BIT: its bytes in hexadecimal, most significant first.

    >>> hex_bits("0101"), hex_bits(True)
    ('257', '1')
    """
    if value.__class__ is bool or value.__class__ is int:
        return str(int(value))
    return values.big_endian_bits(values.base64_bytes(values.hex_bytes(text(value))))


def base64_text(value: Any) -> str:
    """Standard base64, validated.

    >>> base64_text("Bf8=")
    'Bf8='
    """
    encoded = text(value)
    values.base64_bytes(encoded)
    return encoded


def url_safe(value: Any) -> str:
    """Standard base64 from the URL-safe alphabet.

    >>> url_safe("-_8=")
    '+/8='
    """
    encoded = text(value).replace("-", "+").replace("_", "/")
    return base64_text(encoded + "=" * (-len(encoded) % 4))


def hexadecimal(value: Any) -> str:
    """Standard base64 from hexadecimal.

    >>> hexadecimal("6A")
    'ag=='
    """
    try:
        return b64encode(bytes.fromhex(text(value))).decode()
    except (ValueError, Base64Error):
        raise DecodeError(
            "invalid-binary", "a binary column is not hexadecimal", "check binary-handling-mode"
        ) from None


def binary_text(value: Any) -> str:
    """Base64 of a column declared CHAR … CHARACTER SET binary, which the connector sends as text.

    >>> binary_text("\\u0005ÿ")
    'Bf8='
    """
    return values.latin1_bytes(text(value))


def unknown_binary(value: Any) -> str:
    """Rejects binary sent as text when the connector's mode is unknown."""
    raise DecodeError(
        "invalid-binary",
        "a binary column was sent as text: base64, URL-safe base64, hexadecimal or, if it was "
        "declared as text with CHARACTER SET binary, its raw bytes",
        "set binary-handling-mode as in the connector's configuration",
    )


BINARY_MODES: dict[str, Convert] = {
    "bytes": base64_text,
    "base64": base64_text,
    "base64-url-safe": url_safe,
    "hex": hexadecimal,
}


def year_text(value: Any) -> str:
    """A YEAR from a number.

    >>> year_text(2022), year_text(1900), year_text(0)
    ('2022', '0000', '0000')
    """
    return values.year(str(value))


def enum_label(mysql_type: str) -> Convert | None:
    """A function that unescapes commas in ENUM labels; None if no label has a comma.

    >>> enum_label("enum('a','x,y')")("x\\\\,y"), enum_label("enum('a')")
    ('x,y', None)
    """
    escaped = {
        label.replace(",", "\\,"): label for label in values.labels(mysql_type) if "," in label
    }
    return (lambda value: str(escaped.get(value, value))) if escaped else None


def binary(column: DeclaredColumn, options: DecodedValueOptions) -> Convert:
    """The converter from a BINARY or BLOB column to base64."""
    mode = options.binary_handling_mode
    if (column.writer == "debezium" and column.as_text) or (
        mode == "bytes" and column.wire == "string"
    ):
        return binary_text
    if mode is not None:
        return BINARY_MODES[mode]
    if column.oms:
        return hexadecimal
    # TiCDC always sends base64, and declares it as a string.
    return (
        unknown_binary if column.wire == "string" and column.writer == "debezium" else base64_text
    )


def datetime_units(column: DeclaredColumn, digits: int, options: DecodedValueOptions) -> int:
    """The number of units per second in a DATETIME(digits) column."""
    mode = options.time_precision_mode or "adaptive_time_microseconds"
    if mode == "nanoseconds":
        return NANOS
    if mode == "microseconds" or (mode.startswith("adaptive") and digits > 3 and not column.oms):
        return MICROS
    return MILLIS


def converter(column: DeclaredColumn, options: DecodedValueOptions) -> Convert | None:
    """The converter to canonical text for a column of known MySQL type; None if none is needed."""
    base = values.base_type(column.mysql)
    length, scale = precision(column.mysql)
    if base in DECIMALS:
        precise = options.decimal_handling_mode in (None, "precise")
        as_text = column.oms or column.wire in ("string", "double") or not precise
        return decimal_digits if as_text else decimal(scale)
    if base == "bigint" and "unsigned" in column.mysql.lower():
        if column.oms:
            return decimal_digits  # text if it exceeds int64
        return decimal(0) if options.bigint_unsigned_handling_mode == "precise" else unsigned
    if base == "bit":
        return hex_bits if column.oms else little_endian_bits
    if base.endswith("blob") or base.endswith("binary"):
        return binary(column, options)
    if base == "enum":
        return enum_label(column.mysql)
    if base == "year":
        return year_text
    if base == "date":
        return date_text
    if base == "time":
        mode = options.time_precision_mode
        units = {"connect": MILLIS, "nanoseconds": NANOS}.get(mode or "", MICROS)
        return counted_time(units, length or 0)
    if base == "datetime":
        return counted_datetime(datetime_units(column, length or 0, options), length or 0)
    if base == "timestamp":
        return zoned(length)
    if base == "point":
        return point
    return geometry if base in SPATIAL else None
