"""Kafka Connect's counted times (days, milli-, micro-, nanoseconds) as canonical MySQL text."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from headgate.core.errors import DecodeError

Convert = Callable[[Any], str]

MILLIS, MICROS, NANOS = 10**3, 10**6, 10**9
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MINUTES = [f"{m // 60:02d}:{m % 60:02d}" for m in range(1440)]
_SECONDS = [f":{s:02d}" for s in range(60)]
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?([+-])(\d\d):?(\d\d)", re.ASCII
)


def whole(value: Any) -> int:
    """The value if it is an integer; any other value of a date or time column is rejected."""
    if value.__class__ is not int:
        raise DecodeError(
            "wrong-type",
            "the value of a date or time column is not an integer",
            "check `columns` and `time-precision-mode` against the connector's configuration",
        )
    number: int = value
    return number


def civil(days: int) -> str:
    """The proleptic Gregorian date of a day count, for any year.

    >>> civil(0), civil(-719528), civil(2932897)
    ('1970-01-01', '0000-01-01', '10000-01-01')
    """
    era, day = divmod(days + 719468, 146097)  # a year that starts in March has its leap day last
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += 3 if month < 10 else -9
    year += era * 400 + (month <= 2)
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def date_text(value: Any) -> str:
    """DATE text from days since the epoch, or from ISO text without its zone (`isostring`).

    >>> date_text(19311), date_text("2017-09-15Z")
    ('2022-11-15', '2017-09-15')
    """
    if value.__class__ is str:
        text: str = value
        return text.removesuffix("Z")
    return day_text(whole(value))


@lru_cache(maxsize=65536)
def day_text(days: int) -> str:
    """The date of a day count, cached because most tables have few distinct days.

    >>> day_text(-1), day_text(10**9)
    ('1969-12-31', '2739877-01-03')
    """
    try:
        return date.fromordinal(days + _EPOCH_ORDINAL).isoformat()
    except (ValueError, OverflowError):
        return civil(days)


def seconds_text(seconds: int) -> str:
    """DATETIME text without a fraction from seconds since the epoch.

    >>> seconds_text(1668489131)
    '2022-11-15 05:12:11'
    """
    days, rest = divmod(seconds, 86400)
    return f"{day_text(days)} {_MINUTES[rest // 60]}{_SECONDS[rest % 60]}"


def fraction(part: int, units: int, digits: int | None, always: bool = False) -> str:
    """The fraction of a second, dot included: `digits` long where the column's precision is known.

    >>> fraction(120, 1000, None), fraction(0, 1000, None), fraction(120000, 10**6, 2)
    ('.120', '', '.12')
    """
    width = len(str(units)) - 1
    text = f"{part:0{width}d}"
    if digits is None:
        if units == NANOS and part % 1000 == 0:
            text = text[:6]
        return f".{text}" if part or always else ""
    if len(text.rstrip("0")) <= digits:
        text = text[:digits].ljust(digits, "0")
    return f".{text}" if text else ""


def counted_datetime(units: int, digits: int | None = None) -> Convert:
    """A function from a count since the epoch to DATETIME text.

    >>> counted_datetime(MILLIS)(1668489131120), counted_datetime(MICROS)(0)
    ('2022-11-15 05:12:11.120', '1970-01-01 00:00:00.000000')
    """
    always = units == MICROS
    zero = fraction(0, units, digits, always)
    width = len(str(units)) - 1
    full = f".%0{width}d" if units != NANOS and digits in (None, width) else None

    def convert(value: Any) -> str:
        if value.__class__ is str:
            return zoned_text(value, digits)
        seconds, part = divmod(whole(value), units)
        if part == 0:
            return seconds_text(seconds) + zero
        return seconds_text(seconds) + (full % part if full else fraction(part, units, digits))

    return convert


def counted_time(units: int, digits: int | None = None) -> Convert:
    """A function from a count since midnight to TIME text, also negative or over 24 hours.

    >>> counted_time(MICROS)(36060000000), counted_time(MICROS)(-3020399000000)
    ('10:01:00', '-838:59:59')
    """

    def convert(value: Any) -> str:
        if value.__class__ is str:
            text: str = value
            return text.removesuffix("Z")
        count = whole(value)
        seconds, part = divmod(abs(count), units)
        sign = "-" if count < 0 else ""
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{sign}{clock}{fraction(part, units, digits)}"

    return convert


def zoned(digits: int | None = None) -> Convert:
    """A function from ISO text with an offset to UTC text."""
    return lambda value: zoned_text(value, digits)


def zoned_text(value: Any, digits: int | None = None) -> str:
    """UTC text from ISO text with an offset; other text is unchanged.

    >>> zoned_text("2018-06-20T13:37:03Z"), zoned_text("2018-06-20T13:37:03.50+02:00")
    ('2018-06-20 13:37:03', '2018-06-20 11:37:03.50')
    """
    if value.__class__ is not str:
        raise DecodeError(
            "wrong-type", "the value of a TIMESTAMP column is not a string", "check `columns`"
        )
    text = utc_text(value)
    if digits and text[10:11] == " " and 19 <= len(text) < 20 + digits:
        text = (text if "." in text else text + ".").ljust(20 + digits, "0")
    return text


def utc_text(value: str) -> str:
    """ISO text as UTC text; text that is not an ISO time is unchanged.

    >>> utc_text("2018-06-20T13:37Z"), utc_text("2018-01-01T00:30:00+01:00"), utc_text("never")
    ('2018-06-20 13:37:00', '2017-12-31 23:30:00', 'never')
    """
    if value[-1:] == "Z" and value[10:11] == "T":
        seconds = ":00" if len(value) == 17 else ""
        return f"{value[:10]} {value[11:-1]}{seconds}"
    match = _ISO.fullmatch(value)
    if not match:
        return value
    *parts, tail, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        local = datetime(*(int(p or 0) for p in parts))  # type: ignore[arg-type]
        at = local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError):
        return value
    return f"{at}{tail or ''}"
