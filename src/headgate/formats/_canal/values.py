"""Canal's values: from canonical text to the values that Canal, TiCDC, OMS and Tencent write."""

from __future__ import annotations

import re

from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType
from headgate.core.values import Convert, plain, year
from headgate.formats._oms import encode_values as oms_values
from headgate.formats.encoding import (
    Write,
    enum_index,
    java_notation,
    latin1,
    number,
    set_mask,
    whole,
)

_FLOAT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


def writer(
    type_: MySqlType, dialect: str, own: bool, numbered: bool, to_local: Write | None
) -> Write | None:
    """The function that writes a column's canonical text, or None if it is written unchanged.

    `own`: the value came from this dialect; `numbered`: ENUM and SET values came as numbers.
    """
    if dialect == "oms":
        return oms_values.canal_writer(type_)
    if dialect == "tencent":
        return bare_writer(type_)
    if type_.family in ("binary", "spatial"):
        return latin1
    if type_.base == "enum":
        return enum_index(type_.labels, numbered)
    if type_.base == "set":
        return set_mask(type_.labels, numbered)
    if type_.family == "year":
        return year if dialect == "canal" else year_number
    if type_.family in ("float", "double"):
        return None if own else java_float if dialect == "canal" else go_float
    return to_local if type_.base == "timestamp" else None


def as_written(type_: MySqlType, dialect: str, to_local: Convert | None) -> Convert | None:
    """A function from canonical text to the text that a dialect of Canal writes, lossy or not.

    >>> from headgate.core.mysql_types import parse_type
    >>> as_written(parse_type("set('a','b','c')"), "canal", None)("a,c")
    '5'
    """
    write = writer(type_, dialect, own=False, numbered=True, to_local=to_local)
    if write is None:
        return None

    def convert(value: str) -> str:
        try:
            return str(write(value))
        except Lossy as lossy:
            return str(lossy.value)

    return convert


def bare_writer(type_: MySqlType) -> Write | None:
    """Tencent: numbers without quotes."""
    if type_.family in ("integer", "bit"):
        return whole
    if type_.family == "year":
        return lambda text: whole(year_number(text))
    return number if type_.family in ("decimal", "float", "double") else None


def year_number(text: str) -> str:
    """A YEAR as TiCDC writes it: as a number.

    >>> year_number("0000"), year_number("2024")
    ('0', '2024')
    """
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text


def go_float(text: str) -> str:
    """A float as TiCDC writes it: the shortest digits, no exponent.

    >>> go_float("1.5")
    '1.5'
    """
    return laid_out(text, go_notation)


def go_notation(text: str) -> str:
    """A number without an exponent and without trailing zeros in its fraction.

    >>> go_notation("1.0E-7"), go_notation("5.0"), go_notation("1e20")
    ('0.0000001', '5', '100000000000000000000')
    """
    digits = plain(java_notation(text))
    return digits.rstrip("0").removesuffix(".") if "." in digits else digits


def java_float(text: str) -> str:
    """A float as Canal writes it: in Java's notation.

    >>> java_float("1.5")
    '1.5'
    """
    return laid_out(text, java_notation)


def laid_out(text: str, notation: Convert) -> str:
    """A float in a producer's notation; raises Lossy if that differs from the given text.

    >>> laid_out("5", java_notation)
    Traceback (most recent call last):
    headgate.core.losses.Lossy: float-digits
    """
    if not _FLOAT.fullmatch(text):
        raise Lossy("misfit", text)
    formatted = notation(text)
    if formatted != text:
        raise Lossy("float-digits", formatted)
    return text
