"""Canonical text of dates and times to the JSON values of Kafka Connect's types."""

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
from headgate.formats._connect.options import ValueOptions
from headgate.formats._connect.times import MICROS, MILLIS, NANOS
from headgate.formats.encoding import Write

EPOCH_DAY = date(1970, 1, 1).toordinal()
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097
"""After so many years the calendar repeats."""
_DATE = re.compile(r"(-?\d{4,7})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)", re.ASCII)
is_usual = re.compile(r"\d{4}-\d\d-\d\d (?!24)\d\d:\d\d:\d\d(?:\.\d+)?", re.ASCII).fullmatch
"""What Python's reader of times may be given: 2024-W10-1 is a day to it, 24:00 the next one's."""
DAY_MILLIS = range(24 * 60 * 60 * 1000 + 1)
"""What Connect's Time may be: it has no negative times, and none beyond a day."""


def temporal(
    type_: MySqlType, digits: int, untold: bool, required: bool, options: ValueOptions
) -> Column:
    """A DATE, TIME, DATETIME or TIMESTAMP by the time precision mode.

    `untold` says that nothing in the message tells a DATETIME's number of digits.
    """
    base, mode = type_.family, options.time_precision_mode
    zero = 0 if required else None
    if base == "timestamp":
        text_zero = "1970-01-01T00:00:00Z" if required else None
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
    found = named("int64", f"{TIME}Timestamp", counted_datetime(MILLIS, zero))
    if digits > 3:
        found = named("int64", f"{TIME}MicroTimestamp", counted_datetime(MICROS, zero))
    return always_lossy(found, "datetime-precision") if untold else found


@lru_cache(maxsize=65536)
def day_number(text: str) -> int | None:
    """Days since the epoch; None for what is no day of the calendar.

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
    """Seconds since the epoch and the digits of the fraction; None for what is no such time.

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


def no_time(text: str, zero: Any) -> Lossy:
    """The loss of a date that no calendar has, or of text that is no date at all."""
    digits = text.translate(_NO_POINTS)
    if digits.isascii() and digits.isdigit():
        return Lossy("zero-dates", zero)
    return Lossy("misfit", text)


_NO_POINTS = str.maketrans("", "", "-: .")


def days(zero: int | None) -> Write:
    """A function from DATE text to days since the epoch; `zero` stands for no date.

    >>> days(None)("2022-11-15")
    19311
    """

    def write(text: str) -> int:
        found = day_number(text)
        if found is None:
            raise no_time(text, zero)
        if found not in INT32:
            raise Lossy("misfit", text)
        return found

    return write


def counted_datetime(units: int, zero: int | None) -> Write:
    """A function from DATETIME text to a count since the epoch, as if it were UTC.

    >>> counted_datetime(MILLIS, None)("2022-11-15 05:12:11.12")
    1668489131120
    """
    width = len(str(units)) - 1
    fromisoformat = datetime.fromisoformat

    def write(text: str) -> int:
        if len(text) == 19 and is_usual(text):  # made short
            try:
                since = fromisoformat(text) - EPOCH
                count = (since.days * 86400 + since.seconds) * units
                if count in INT64:
                    return count
            except ValueError:
                pass  # the years that Python does not have, and what is no time
        found = since_epoch(text)
        if found is None:
            raise no_time(text, zero)
        seconds, fraction = found
        count = seconds * units + int(fraction[:width].ljust(width, "0"))
        if count not in INT64:
            raise Lossy("misfit", text)
        if fraction[width:].strip("0"):
            raise Lossy("datetime-micros", count)
        return count

    return write


def counted_time(units: int, allowed: range = INT64) -> Write:
    """A function from TIME text to a count since midnight; those that are not allowed stay text.

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
            raise no_time(text, zero)
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
    """A function from DATETIME text to ISO text in UTC, with so many digits, or its own.

    >>> iso_datetime(None)("2018-06-20 13:37:03.50"), iso_datetime(None, 3)("2018-06-20 13:37:03.5")
    ('2018-06-20T13:37:03.50Z', '2018-06-20T13:37:03.500Z')
    """

    fromisoformat = datetime.fromisoformat
    fill = str if digits is None else filled(digits)

    def write(text: str) -> str:
        if is_usual(text):  # made short
            try:
                fromisoformat(text)
                return f"{text[:10]}T{fill(text[11:])}Z"
            except ValueError:
                pass
        if since_epoch(text) is None:
            raise no_time(text, zero)
        return f"{fill(text.replace(' ', 'T', 1))}Z"

    return write
