"""Values and row images of OMS's own formats (Default, DataWorks, SharePlex).

Vendor's document: OMS "Data format description", section "Data transmission from a database to a
text protocol".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Any

import msgspec

from headgate.core import values
from headgate.core.errors import DecodeError
from headgate.core.event import Event, Image, Types
from headgate.core.json import Number, Raw
from headgate.core.mysql_types import parse_type
from headgate.formats.base import Producer, ReadColumn

TypedConvert = Callable[[Any], Any]
"""From a parsed JSON value to canonical text; unknown values stay as they are."""
TypedConverters = values.TypedConverters

IMAGES = {
    ("insert", False, True),
    ("update", True, True),
    ("update", False, True),
    ("delete", True, False),
}
"""(operation, has a before image, has an after image): the combinations that the formats allow."""

FIRST_MICROS = 100_000_000_000_000
"""The smallest number that is read as microseconds, not as milliseconds."""

_CLOCK = [f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}" for s in range(86400)]
_MILLIS = re.compile(r"(-?\d{1,13})(?:\.(\d+))?")


def converter(mysql_type: str) -> TypedConvert | None:
    """How values of a column type become canonical text; None if they already are.

    >>> converter("TIMESTAMP")("1606233662.012345"), converter("BIT")("BQ=="), converter("BIT")(5)
    ('2020-11-24 16:01:02.012345', '5', 5)
    """
    return CONVERTERS.get(values.base_type(mysql_type))


def column_reader(producer: Producer, options: object) -> ReadColumn:
    """How OMS's values are read whose type is known from the schema or from DDL."""
    return lambda sent_type, mysql: converter(mysql) if sent_type is None else None


def epoch_seconds(value: str) -> str:
    """UTC text from seconds since the epoch, with any fraction; other text as it is.

    >>> epoch_seconds("1606233662.012345"), epoch_seconds("0000-00-00 00:00:00")
    ('2020-11-24 16:01:02.012345', '0000-00-00 00:00:00')
    """
    whole, dot, fraction = value.partition(".")
    digits = whole + fraction
    if digits.isdigit() and digits.isascii() and 0 < len(whole) < 12 and (fraction or not dot):
        return f"{utc_text(int(whole))}{dot}{fraction}"
    return value


def utc_text(seconds: int) -> str:
    """UTC text from seconds since the epoch; days are cached because they repeat.

    >>> utc_text(1606233662)
    '2020-11-24 16:01:02'
    """
    day, second = divmod(seconds, 86400)
    return f"{_day(day)} {_CLOCK[second]}"


@lru_cache(maxsize=65536)
def _day(day: int) -> str:
    return str(values.EPOCH + timedelta(days=day))[:10]


def _timestamp(value: Any) -> Any:
    if value.__class__ is str:
        text = epoch_seconds(value)
        return values.spaced(value) if text is value else text
    if value.__class__ is int and 0 <= value < 100_000_000_000:
        return utc_text(value)
    return epoch_millis(value)


def _datetime(value: Any) -> Any:
    return values.spaced(value) if value.__class__ is str else epoch_millis(value)


def _date(value: Any) -> Any:
    if value.__class__ is str:
        return value
    text = epoch_millis(value)
    return text.removesuffix(" 00:00:00") if text.__class__ is str else text


def _decimal(value: Any) -> Any:
    if isinstance(value, str) and ("E" in value or "e" in value):
        return values.plain(value)
    return value


def _bit(value: Any) -> Any:
    # Only the JSON type distinguishes the base64 of today's OMS from the number before 3.3.0:
    # "1234" is three bytes, 1234 is a number.
    if value.__class__ is not str:
        return value
    return values.big_endian_bits(values.base64_bytes(value))


def _year(value: Any) -> Any:
    if value.__class__ is int or value.__class__ is str:
        return values.year(str(value))
    return value


CONVERTERS: dict[str, TypedConvert] = {
    "timestamp": _timestamp,
    "datetime": _datetime,
    "date": _date,
    "decimal": _decimal,
    "numeric": _decimal,
    "bit": _bit,
    "year": _year,
}


def epoch_millis(value: Any) -> Any:
    """UTC text from DataWorks' bare milliseconds, every digit kept; anything else as it is.

    Nine fraction digits are the nanoseconds of the second, not of the millisecond.

    >>> epoch_millis(Number("1590315269000.123456789")), epoch_millis(1590315269120)
    ('2020-05-24 10:14:29.123456789', '2020-05-24 10:14:29.120')
    """
    if value.__class__ is not int and value.__class__ is not Number:
        return value
    match = _MILLIS.fullmatch(str(value))
    if not match or (match[2] and match[1][0] == "-"):
        return value  # before 1970, the fraction may count forward or backward
    seconds, millis = divmod(int(match[1]), 1000)
    part, fraction = f"{millis:03}", match[2] or ""
    if not fraction:
        fraction = part if millis else ""
    elif millis and not (len(fraction) == 9 and fraction.startswith(part)):
        fraction = part + fraction
    at = utc_text(seconds)
    return f"{at}.{fraction}" if fraction else at


class Bare(msgspec.Struct, gc=False):
    """Which columns of a row were sent as bare numbers and booleans; for columns without types."""

    numbers: list[str]
    booleans: list[str]

    def describe(self, extra: dict[str, str], typed: frozenset[str] = frozenset()) -> None:
        """Note the names of the untyped ones in `extra`."""
        numbers, booleans = self.numbers, self.booleans
        if typed:
            if typed.issuperset(numbers) and typed.issuperset(booleans):
                return
            numbers = [name for name in numbers if name not in typed]
            booleans = [name for name in booleans if name not in typed]
        if numbers:
            extra["numbers"] = values.names_json(tuple(numbers))
        if booleans:
            extra["booleans"] = values.names_json(tuple(booleans))


def typed(types: Types) -> frozenset[str]:
    """The columns whose type is known, and with it how their values are written.

    >>> from headgate.core.event import ColumnType
    >>> typed({"id": ColumnType("INT64"), "n": ColumnType("new"), "m": ColumnType()})
    frozenset({'id'})
    """
    return frozenset(n for n, type_ in types.items() if parse_type(type_.mysql).family != "unknown")


def milliseconds(value: int | None) -> int | None:
    """Microseconds since the epoch from milliseconds, or from microseconds if the number is large.

    >>> milliseconds(5), milliseconds(-5), milliseconds(1620457659000001)
    (5000, -5000, 1620457659000001)
    """
    if value is None or abs(value) >= FIRST_MICROS:
        return values.micros(value)
    at = value * 1_000
    return at if at >= values.YEAR_ONE else None


def image_text(
    image: dict[str, Any],
    converters: TypedConverters,
    bare: Bare,
    reread: Callable[[], dict[str, Raw]],
) -> Image:
    """Turn an image into canonical text, in place; note in `bare` which columns were bare.

    >>> bare = Bare([], [])
    >>> row = {"a": 1, "b": {"x": 1.10}, "c": "BQ=="}
    >>> image_text(row, [("c", converter("bit"))], bare, lambda: {"b": Raw(b'{"x": 1.10}')})
    {'a': '1', 'b': '{"x": 1.10}', 'c': '5'}
    >>> bare
    Bare(numbers=['a'], booleans=[])
    """
    values.convert(image, converters)
    if values.to_text(image, bare.numbers, bare.booleans):
        values.exact_nested(image, reread())
    return image


def wrong_images(op: str, before: Any, after: Any, names: tuple[str, str]) -> DecodeError:
    """The error for a row that is not in IMAGES: an image is missing, or there is one too many."""
    needs_before = op == "delete"
    if (needs_before and not before) or (not needs_before and not after):
        lacking = names[0 if needs_before else 1]
        return DecodeError(
            "missing-member", f"the {op} has no {lacking}", "check the format and the producer"
        )
    return DecodeError(
        "invalid-value",
        f"the {op} has a {names[1 if needs_before else 0]}, which the format says it cannot have",
        "check the producer",
    )


def sequence(event: Event, name: str, value: str | int | None) -> None:
    """Put a sequence number into `commit_ts`, or into `position` if it is not a 64-bit number.

    OMS writes the text "null" if it has none.
    """
    if value is None or value == "null" or value == "":
        return
    number = int64(value)
    if number is None:
        event.position = {**(event.position or {}), name: str(value)}
    else:
        event.commit_ts = number


def int64(value: str | int) -> int | None:
    """A 64-bit whole number from a JSON number or its text; None if it is not one.

    >>> int64("174417071548000000"), int64("12a"), int64(2**63)
    (174417071548000000, None, None)
    """
    if isinstance(value, str):
        if len(value) > 20 or not value.isascii() or not value.removeprefix("-").isdigit():
            return None
        value = int(value)
    return value if -(2**63) <= value < 2**63 else None


def unknown(member: str, known: list[str]) -> DecodeError:
    """The error for an operation that a format does not have."""
    return DecodeError(
        "unknown-type",
        f"{member} has an unknown value",
        f"known: {', '.join(known)}",
    )
