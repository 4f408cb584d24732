"""How TiCDC writes values as text."""

from __future__ import annotations

from headgate.core.mysql_types import MySqlType
from headgate.core.values import plain
from headgate.formats._canal.values import ValueSource, float_text, text_writer
from headgate.formats.encoding import Write, java_notation


def ticdc_writer(type_: MySqlType, source: ValueSource, to_local: Write | None) -> Write | None:
    """The function that writes a column's values as TiCDC does; None if they stay unchanged."""
    if type_.family == "year":
        return year_number
    if type_.family in ("float", "double"):
        return None if source.same_dialect else go_float
    return text_writer(type_, source, to_local)


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
    return float_text(text, go_notation)


def go_notation(text: str) -> str:
    """A number without an exponent and without trailing zeros in its fraction.

    >>> go_notation("1.0E-7"), go_notation("5.0"), go_notation("1e20")
    ('0.0000001', '5', '100000000000000000000')
    """
    digits = plain(java_notation(text))
    return digits.rstrip("0").removesuffix(".") if "." in digits else digits
