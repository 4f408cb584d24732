"""Numbers as canonical text to JSON values of Kafka Connect's types."""

from __future__ import annotations

import re
from binascii import b2a_base64
from math import isinf
from typing import Any

from msgspec import Raw

from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType
from headgate.formats._connect.column import CONNECT, DATA, TEXT, Column, always_lossy, named, plain
from headgate.formats._connect.options import EncodedValueOptions
from headgate.formats._oms.encode_values import scientific
from headgate.formats.encoding import Write, boolean, number, whole

MOST_DIGITS = 2_000
MOST_CHARACTERS = 1_000
"""Jackson rejects longer numbers."""
_DECIMAL = re.compile(r"(-?)(\d+)(?:\.(\d+))?", re.ASCII)
INT32, INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
RANGES = {"int16": range(-(2**15), 2**15), "int32": INT32, "int64": INT64}
INTEGERS = {
    "tinyint": ("int16", "int16"),
    "smallint": ("int16", "int32"),
    "mediumint": ("int32", "int32"),
    "int": ("int32", "int64"),
    "bigint": ("int64", "int64"),
}
"""Connect's types of the integers, signed and unsigned."""


def integer(type_: MySqlType, options: EncodedValueOptions, schemas: bool) -> Column:
    """An integer; BIGINT UNSIGNED by its mode. With a schema, its range is checked."""
    if type_.base == "bigint" and type_.unsigned:
        if options.bigint_unsigned_handling_mode == "long":
            return plain("int64", wrapped)
        return decimal_column(20, 0, options)
    wire = INTEGERS[type_.base][type_.unsigned]
    return plain(wire, within(RANGES[wire]) if schemas else whole)


def within(allowed: range) -> Write:
    """A function from digits to a number within a declared range.

    >>> within(range(-128, 128))("-5")
    -5
    """
    safe_digits = len(str(allowed[-1])) - 1  # numbers this short are always in range

    def write(text: str) -> Any:
        size = len(text)
        if (
            size <= safe_digits
            and text.isdigit()
            and text.isascii()
            and (size == 1 or text[0] != "0")
        ):
            return int(text)
        value = whole(text)
        if size > 20 or (value if value.__class__ is int else int(text)) not in allowed:
            raise Lossy("misfit", value)
        return value

    return write


def wrapped(text: str) -> Any:
    """BIGINT UNSIGNED in a Java long.

    >>> wrapped("5")
    5
    """
    value = whole(text)
    if len(text) > 20:
        raise Lossy("misfit", text)
    if value.__class__ is not int and (beyond := int(text)) >= 2**63:
        raise (
            Lossy("misfit", value) if beyond >= 2**64 else Lossy("bigint-unsigned", beyond - 2**64)
        )
    if value.__class__ is not int and int(text) < -(2**63):
        raise Lossy("misfit", value)
    return value


def decimal(
    precision: int | None, scale: int, scale_unknown: bool, options: EncodedValueOptions
) -> Column:
    """A DECIMAL by its mode; `scale_unknown` if nothing in the message declares its scale."""
    if options.decimal_handling_mode == "string":
        return TEXT if precision is None else plain("string", scaled(scale))
    if options.decimal_handling_mode == "double":
        return plain("double", as_double)
    column = decimal_column(precision, scale, options)
    if not scale_unknown or options.decimal_format == "numeric":
        return column
    return always_lossy(column, "decimal-scale")


def scaled(scale: int) -> Write:
    """A function that pads decimal text to the column's scale.

    >>> scaled(2)("1.5"), scaled(2)("7"), scaled(2)("x")
    ('1.50', '7.00', 'x')
    """
    fill = filled(scale)
    return lambda text: fill(text) if _DECIMAL.fullmatch(text) else text


def filled(digits: int) -> Write:
    """A function that pads or trims the fraction to so many digits; it never cuts off nonzero ones.

    >>> filled(3)("13:37:03.5"), filled(0)("1.00"), filled(1)("0.25")
    ('13:37:03.500', '1', '0.25')
    """

    def write(text: str) -> str:
        head, _, fraction = text.partition(".")
        if fraction[digits:].strip("0"):
            return text
        return f"{head}.{fraction[:digits].ljust(digits, '0')}" if digits else head

    return write


def decimal_column(precision: int | None, scale: int, options: EncodedValueOptions) -> Column:
    """Connect's Decimal."""
    parameters = {"scale": str(scale)}
    if precision is not None:
        parameters["connect.decimal.precision"] = str(precision)
    write = big_number(scale) if options.decimal_format == "numeric" else decimal_bytes(scale)
    return named("bytes", f"{CONNECT}Decimal", write, **parameters)


def decimal_bytes(scale: int) -> Write:
    """A function from decimal text to base64 of its unscaled two's complement integer.

    >>> decimal_bytes(2)("-1.50"), decimal_bytes(2)("7.9"), decimal_bytes(0)("18446744073709551615")
    ('/2o=', 'AxY=', 'AP//////////')
    """

    def write(text: str) -> str:
        head, _, fraction = text.partition(".")
        if len(fraction) != scale:
            if len(fraction) > scale:
                raise Lossy("misfit", text)
            fraction = fraction.ljust(scale, "0")
        digits = head + fraction
        positive = digits if digits[:1] != "-" else digits[1:]
        if not positive.isdigit() or not digits.isascii() or len(digits) > MOST_DIGITS:
            raise Lossy("misfit", text)
        unscaled = int(digits)
        bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
        raw = unscaled.to_bytes(bits // 8 + 1, "big", signed=True)
        return b2a_base64(raw, newline=False).decode()

    return write


def big_number(scale: int) -> Write:
    """A function from decimal text to a JSON number, in the notation of Java's BigDecimal.

    >>> bytes(big_number(8)("0.00000015")), bytes(big_number(2)("1.5"))
    (b'1.5E-7', b'1.50')
    """
    fill = scaled(scale)
    return lambda text: real(scientific(fill(text)))


def as_double(text: str) -> Any:
    """A decimal as a Java double.

    >>> bytes(as_double("7.90")), bytes(as_double("12345678"))
    (b'7.9', b'1.2345678E7')
    """
    match = _DECIMAL.fullmatch(text)
    if not match or len(text) > MOST_DIGITS:
        raise Lossy("misfit", text)
    _, head, fraction = match.groups("")
    if isinf(float(text)):
        raise Lossy("misfit", text)
    nearest = Raw(java_double(float(text)).encode())
    significant = (head + fraction).strip("0")
    if len(significant) > 15 and float_digits(float(text)) != significant:
        raise Lossy("float-digits", nearest)
    return nearest


def float_digits(value: float) -> str:
    """The significant digits of a float's shortest text."""
    return repr(abs(value)).partition("e")[0].replace(".", "").strip("0")


def java_double(value: float) -> str:
    """A finite double as Java writes it.

    >>> java_double(1.0), java_double(-12345678.5), java_double(0.0005)
    ('1.0', '-1.23456785E7', '5.0E-4')
    """
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e7:
        return repr(value)
    digits = float_digits(value)
    exponent = int(f"{value:.17e}".partition("e")[2])
    if "e" in repr(size):
        exponent = int(repr(size).partition("e")[2])
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def real(text: str) -> Any:
    """A FLOAT or DOUBLE, digit for digit, unless it is too long for Jackson.

    >>> bytes(real("1.10"))
    b'1.10'
    """
    if len(text) > MOST_CHARACTERS:
        raise Lossy("misfit", text)
    return number(text)


def year(text: str) -> int:
    """A YEAR; 0000 becomes 1900, as in the connector.

    >>> year("2022")
    2022
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise Lossy("misfit", text)
    if int(text) == 0:
        raise Lossy("zero-dates", 1900)
    return int(text)


def own_year(text: str) -> int:
    """A YEAR from the connector, which itself writes 0000 as 1900.

    >>> own_year("0000")
    1900
    """
    return 1900 if text == "0000" else year(text)


def bit(length: int | None) -> Column:
    """BIT(1) as a boolean; longer ones as bytes, least significant first.

    >>> bit(16).write("13929"), bit(1).write("1")
    ('aTY=', True)
    """
    if length == 1:
        return plain("boolean", boolean)
    size = None if length is None else (length + 7) // 8

    def write(text: str) -> str:
        if not (text.isascii() and text.isdigit() and len(text) <= 20) or (bits := int(text)) >> 64:
            raise Lossy("misfit", text)
        least = (bits.bit_length() + 7) // 8 or 1
        raw = bits.to_bytes(max(size or 0, least), "little")
        return b2a_base64(raw, newline=False).decode()

    return named("bytes", f"{DATA}Bits", write, length=str(length or 64))
