"""How Canal writes values, and what TiCDC has in common with it: canonical text to text."""

from __future__ import annotations

import re
from typing import NamedTuple

from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType
from headgate.core.values import Convert, year
from headgate.formats.encoding import Write, enum_index, java_notation, latin1, set_mask

_FLOAT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


class ValueSource(NamedTuple):
    """What has to be known of the producer whose values are written."""

    same_dialect: bool
    """Whether the values were read from the dialect that is written."""
    enum_as_number: bool
    """Whether ENUM and SET values may be numbers instead of labels."""


ANY_SOURCE = ValueSource(same_dialect=False, enum_as_number=True)


def canal_writer(type_: MySqlType, source: ValueSource, to_local: Write | None) -> Write | None:
    """The function that writes a column's values as Canal does; None if they stay unchanged."""
    if type_.family == "year":
        return year
    if type_.family in ("float", "double"):
        return None if source.same_dialect else java_float
    return text_writer(type_, source, to_local)


def text_writer(type_: MySqlType, source: ValueSource, to_local: Write | None) -> Write | None:
    """The function for the types that Canal and TiCDC write alike; None if values stay unchanged.

    >>> from headgate.core.mysql_types import parse_type
    >>> text_writer(parse_type("enum('a','b')"), ANY_SOURCE, None)("b")
    '2'
    """
    if type_.family in ("binary", "spatial"):
        return latin1
    if type_.base == "enum":
        return enum_index(type_.labels, source.enum_as_number)
    if type_.base == "set":
        return set_mask(type_.labels, source.enum_as_number)
    return to_local if type_.base == "timestamp" else None


def text_of(write: Write | None) -> Convert | None:
    """A function from canonical text to the text that a writer gives, lossy or not.

    >>> from headgate.core.mysql_types import parse_type
    >>> text_of(canal_writer(parse_type("set('a','b','c')"), ANY_SOURCE, None))("a,c")
    '5'
    """
    if write is None:
        return None

    def convert(value: str) -> str:
        try:
            return str(write(value))
        except Lossy as lossy:
            return str(lossy.value)

    return convert


def java_float(text: str) -> str:
    """A float as Canal writes it: in Java's notation.

    >>> java_float("1.5")
    '1.5'
    """
    return float_text(text, java_notation)


def float_text(text: str, notation: Convert) -> str:
    """A float in a producer's notation; raises Lossy if that differs from the given text.

    >>> float_text("5", java_notation)
    Traceback (most recent call last):
    headgate.core.losses.Lossy: float-digits
    """
    if not _FLOAT.fullmatch(text):
        raise Lossy("misfit", text)
    formatted = notation(text)
    if formatted != text:
        raise Lossy("float-digits", formatted)
    return text
