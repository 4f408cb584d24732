"""Dates and times, from canonical text to what OMS's methods write."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import lru_cache

from headgate.core.losses import Lossy
from headgate.core.values import EPOCH

ZERO_TIME = "0000-00-00 00:00:00"
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?")
FIRST_DAY = date(1970, 1, 1)


def epoch_text(text: str) -> str:
    """A TIMESTAMP as seconds since the epoch, with its fraction; an invalid time as zero.

    >>> epoch_text("2020-11-24 16:01:02.50"), epoch_text("0000-00-00 00:00:00.000")
    ('1606233662.50', '0000-00-00 00:00:00')
    """
    fraction = text[19:]
    seconds = _seconds(text[:19])
    if seconds is not None and (not fraction or is_fraction(fraction)):
        return seconds + fraction
    if not _TIME.fullmatch(text):
        raise Lossy("misfit", text)
    if text.startswith(ZERO_TIME) and not fraction.strip(".0"):
        return ZERO_TIME
    raise Lossy("zero-dates", ZERO_TIME)


def is_fraction(text: str) -> bool:
    """Whether text is the fraction of a second, including the point."""
    return text[0] == "." and text.isascii() and text[1:].isdigit() and len(text) <= 10


@lru_cache(maxsize=4096)
def _seconds(text: str) -> str | None:
    """Seconds since the epoch from UTC text; None if it is invalid or before the epoch."""
    at = moment(text)
    if at is None or at < EPOCH:
        return None
    return str((at - EPOCH) // timedelta(seconds=1))


def moment(text: str) -> datetime | None:
    """The time from `YYYY-MM-DD HH:MM:SS`; None if the text is not a valid time.

    >>> moment("2020-11-24 16:01:02"), moment("2020-11-24T16:01:02")
    (datetime.datetime(2020, 11, 24, 16, 1, 2), None)
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if str(at) == text else None


def zulu(text: str) -> str:
    """A TIMESTAMP as ISO text in UTC.

    >>> zulu("2022-11-15 05:12:11")
    '2022-11-15T05:12:11Z'
    """
    if moment(text[:19]) is None or (text[19:] and not is_fraction(text[19:])):
        raise Lossy("zero-dates" if text.startswith(ZERO_TIME) else "misfit", text)
    return f"{text[:10]}T{text[11:]}Z"


def days(text: str) -> int:
    """A DATE as days since the epoch.

    >>> days("2022-11-15")
    19311
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise no_time(text) from None
    if str(day) != text:
        raise Lossy("misfit", text)
    return (day - FIRST_DAY).days


def no_time(text: str) -> Lossy:
    """The loss of an invalid date: NULL for a zero date of MySQL, else the text as it is."""
    digits = text.translate(_NO_POINTS)
    if digits.isascii() and digits.isdigit():
        return Lossy("zero-dates", None)
    return Lossy("misfit", text)


_NO_POINTS = str.maketrans("", "", "-: .")


def time_micros(text: str) -> int:
    """A TIME as microseconds.

    >>> time_micros("10:01:00"), time_micros("-00:00:00.5")
    (36060000000, -500000)
    """
    clock, _, fraction = text.removeprefix("-").partition(".")
    parts = clock.split(":")
    digits = clock.replace(":", "") + fraction
    if len(parts) != 3 or not all(parts) or len(digits) > 16 or not digits.isdigit():
        raise Lossy("misfit", text)
    hours, minutes, seconds = map(int, parts)
    micros = (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    return -micros if text[0] == "-" else micros


def datetime_millis(text: str) -> int:
    """A DATETIME as milliseconds since the epoch, as if it were UTC.

    >>> datetime_millis("2022-11-15 05:12:11.25")
    1668489131250
    """
    at, fraction = moment(text[:19]), text[19:]
    if at is None or (fraction and not is_fraction(fraction)):
        raise no_time(text)
    seconds = (at - EPOCH) // timedelta(seconds=1)
    millis = seconds * 1000 + int(fraction[1:4].ljust(3, "0"))
    if fraction[4:].strip("0"):
        raise Lossy("datetime-micros", millis)
    return millis


def six_digits(text: str) -> str:
    """A time with six fraction digits, or nine if six are not enough.

    An invalid time stays as it is.

    >>> six_digits("2016-10-21 05:33:37.523"), six_digits("0000-00-00 00:00:00")
    ('2016-10-21 05:33:37.523000', '0000-00-00 00:00:00')
    >>> six_digits("2016-10-21 05:33:37.1234567"), six_digits("2016-10-21 05:33:37.123456000")
    ('2016-10-21 05:33:37.123456700', '2016-10-21 05:33:37.123456')
    """
    second, fraction = text[:19], text[19:]
    if not _is_time(second) or (fraction and not is_fraction(fraction)):
        return text
    digits = fraction[1:]
    return f"{second}.{digits.ljust(9, '0') if digits[6:].strip('0') else digits[:6].ljust(6, '0')}"


@lru_cache(maxsize=4096)
def _is_time(text: str) -> bool:
    return moment(text) is not None
