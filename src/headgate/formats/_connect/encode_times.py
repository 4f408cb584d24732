"""Dates and times as canonical text to JSON values of Kafka Connect's types."""

from __future__ import annotations

import re
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType
from headgate.core.values import EPOCH
from headgate.formats._connect.column import CONNECT, TIME, Column, always_lossy, named
from headgate.formats._connect.encode_numbers import INT32, INT64, filled
from headgate.formats._connect.options import EncodedValueOptions
from headgate.formats._connect.times import MICROS, MILLIS, NANOS
from headgate.formats.encoding import Write

EPOCH_DAY = date(1970, 1, 1).toordinal()
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097
"""The Gregorian calendar repeats after 400 years."""
_DATE = re.compile(r"(-?\d{4,7})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)", re.ASCII)
is_usual = re.compile(r"\d{4}-\d\d-\d\d (?!24)\d\d:\d\d:\d\d(?:\.\d+)?", re.ASCII).fullmatch
"""Text that is safe for Python's parser, which also accepts 2024-W10-1 and 24:00."""
DAY_MILLIS = range(24 * 60 * 60 * 1000 + 1)
"""The range of Connect's Time: neither negative nor over a day."""


def temporal(
    type_: MySqlType,
    digits: int,
    precision_unknown: bool,
    required: bool,
    options: EncodedValueOptions,
) -> Column:
    """A DATE, TIME, DATETIME or TIMESTAMP by the time precision mode.

    `precision_unknown` if nothing in the message declares a DATETIME's fractional digits.
    """
    base, mode = type_.family, options.time_precision_mode
    zero = 0 if required else None
    if base == "timestamp":
        fraction = "." + "0" * type_.length if type_.length else ""
        text_zero = f"1970-01-01T00:00:00{fraction}Z" if required else None
        return named("string", f"{TIME}ZonedTimestamp", iso_datetime(text_zero, type_.length))
    if mode == "isostring":
        write, name = {
            "date": (iso_date("1970-01-01Z" if required else None), "IsoDate"),
            "time": (iso_time, "IsoTime"),
            "datetime": (
                iso_datetime("1970-01-01T00:00:00Z" if required else None),
                "IsoTimestamp",
            ),
        }[base]
        return named("string", TIME + name, write)
    if base == "date":
        return named("int32", (CONNECT if mode == "connect" else TIME) + "Date", days(zero))
    if mode == "connect":
        if base == "time":
            return named("int32", f"{CONNECT}Time", counted_time(MILLIS, DAY_MILLIS))
        return named("int64", f"{CONNECT}Timestamp", counted_datetime(MILLIS, zero))
    nanos = mode == "nanoseconds"
    if base == "time":
        name = "NanoTime" if nanos else "MicroTime"
        return named("int64", TIME + name, counted_time(NANOS if nanos else MICROS))
    if nanos:
        return named("int64", f"{TIME}NanoTimestamp", counted_datetime(NANOS, zero))
    if mode == "microseconds":
        return named("int64", f"{TIME}MicroTimestamp", counted_datetime(MICROS, zero))
    column = named("int64", f"{TIME}Timestamp", counted_datetime(MILLIS, zero))
    if digits > 3:
        column = named("int64", f"{TIME}MicroTimestamp", counted_datetime(MICROS, zero))
    return always_lossy(column, "datetime-precision") if precision_unknown else column


@lru_cache(maxsize=65536)
def day_number(text: str) -> int | None:
    """Days since the epoch; None if the calendar has no such day.

    >>> day_number("2022-11-15"), day_number("0000-01-01"), day_number("2022-02-30")
    (19311, -719528, None)
    """
    match = _DATE.fullmatch(text)
    if not match:
        return None
    year_, month, day = map(int, match.groups())
    cycles, within = divmod(year_, CYCLE_YEARS)
    try:  # one cycle later, because Python has no year 0
        ordinal = date(within + CYCLE_YEARS, month, day).toordinal()
    except ValueError:
        return None
    return ordinal - EPOCH_DAY + (cycles - 1) * CYCLE_DAYS


def since_epoch(text: str) -> tuple[int, str] | None:
    """Seconds since the epoch and the digits of the fraction; None for an invalid time.

    >>> since_epoch("2022-11-15 05:12:11.120"), since_epoch("0000-00-00 00:00:00")
    ((1668489131, '120'), None)
    """
    day, _, clock = text.partition(" ")
    clock, point, fraction = clock.partition(".")
    if point and not (fraction.isascii() and fraction.isdigit() and len(fraction) <= 9):
        return None
    day_ = day_number(day)
    match = _CLOCK.fullmatch(clock)
    if day_ is None or not match:
        return None
    hours, minutes, seconds = map(int, match.groups())
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return day_ * 86400 + hours * 3600 + minutes * 60 + seconds, fraction


def invalid_time(text: str, zero: Any) -> Lossy:
    """The loss for an invalid or zero date, or for text that is not a date."""
    digits = text.translate(_NO_PUNCTUATION)
    if digits.isascii() and digits.isdigit():
        return Lossy("zero-dates", zero)
    return Lossy("misfit", text)


_NO_PUNCTUATION = str.maketrans("", "", "-: .")


def days(zero: int | None) -> Write:
    """A function from DATE text to days since the epoch; zero dates become `zero`.

    >>> days(None)("2022-11-15")
    19311
    """

    def write(text: str) -> int:
        day = day_number(text)
        if day is None:
            raise invalid_time(text, zero)
        if day not in INT32:
            raise Lossy("misfit", text)
        return day

    return write


def counted_datetime(units: int, zero: int | None) -> Write:
    """A function from DATETIME text to a count since the epoch, as if it were UTC.

    >>> counted_datetime(MILLIS, None)("2022-11-15 05:12:11.12")
    1668489131120
    """
    width = len(str(units)) - 1
    fromisoformat = datetime.fromisoformat

    def write(text: str) -> int:
        if len(text) == 19 and is_usual(text):  # fast path
            try:
                since = fromisoformat(text) - EPOCH
                count = (since.days * 86400 + since.seconds) * units
                if count in INT64:
                    return count
            except ValueError:
                pass  # a year that Python does not support, or an invalid time
        parsed = since_epoch(text)
        if parsed is None:
            raise invalid_time(text, zero)
        seconds, fraction = parsed
        count = seconds * units + int(fraction[:width].ljust(width, "0"))
        if count not in INT64:
            raise Lossy("misfit", text)
        if fraction[width:].strip("0"):
            raise Lossy("datetime-micros", count)
        return count

    return write


def counted_time(units: int, allowed: range = INT64) -> Write:
    """A function from TIME text to a count since midnight; values out of range stay text.

    >>> counted_time(MICROS)("-838:59:59"), counted_time(MICROS)("10:01:00.5")
    (-3020399000000, 36060500000)
    """
    width = len(str(units)) - 1

    def write(text: str) -> int:
        parts = time_parts(text)
        if parts is None:
            raise Lossy("misfit", text)
        seconds, fraction = parts
        count = seconds * units + int(fraction[:width].ljust(width, "0"))
        count = -count if text[0] == "-" else count
        if count not in allowed:
            raise Lossy("misfit", text)
        if fraction[width:].strip("0"):
            raise Lossy("time-micros", count)
        return count

    return write


def time_parts(text: str) -> tuple[int, str] | None:
    """The seconds of a TIME without its sign, and the digits of its fraction."""
    clock, _, fraction = text.removeprefix("-").partition(".")
    parts = clock.split(":")
    numeric = clock.replace(":", "") + fraction
    if len(parts) != 3 or not (numeric.isascii() and numeric.isdigit()) or len(text) > 20:
        return None
    hours, minutes, seconds = (int(p or 0) for p in parts)
    return hours * 3600 + minutes * 60 + seconds, fraction


def iso_date(zero: str | None) -> Write:
    """A function from DATE text to ISO text with the zone letter."""

    def write(text: str) -> str:
        if day_number(text) is None:
            raise invalid_time(text, zero)
        return f"{text}Z"

    return write


def iso_time(text: str) -> str:
    """ISO text of a TIME.

    >>> iso_time("04:05:11.789")
    '04:05:11.789Z'
    """
    if time_parts(text) is None:
        raise Lossy("misfit", text)
    return f"{text}Z"


def iso_datetime(zero: str | None, digits: int | None = None) -> Write:
    """A function from DATETIME text to ISO text in UTC; None keeps the fraction's digits.

    >>> iso_datetime(None)("2018-06-20 13:37:03.50"), iso_datetime(None, 3)("2018-06-20 13:37:03.5")
    ('2018-06-20T13:37:03.50Z', '2018-06-20T13:37:03.500Z')
    """

    fromisoformat = datetime.fromisoformat
    fill = str if digits is None else filled(digits)

    def write(text: str) -> str:
        if is_usual(text):  # fast path
            try:
                fromisoformat(text)
                return f"{text[:10]}T{fill(text[11:])}Z"
            except ValueError:
                pass
        if since_epoch(text) is None:
            raise invalid_time(text, zero)
        return f"{fill(text.replace(' ', 'T', 1))}Z"

    return write
