"""What ALTER TABLE makes of dates and times, on canonical text: MySQL rounds, it does not cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from headgate.core.mysql_types import MySqlType

LONGEST_TIME = (838 * 3600 + 59 * 60 + 59) * 1_000_000
"""In microseconds."""
_DATETIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_TIME = re.compile(r"(-?)(\d{1,3}):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)


class NotComputable(Exception):
    """MySQL's result cannot be computed from what is landed; the text says why."""


def time_rule(old: MySqlType, new: MySqlType, as_text: bool) -> Callable[[str], str] | None:
    """How dates and times become others; None where they stay what they are.

    Raises KeyError for a pair of types that has no rule.
    """
    digits, before = new.length or 0, old.length or 0
    zeros = "." + "0" * digits if digits else ""
    if old.family == new.family:
        if new.family == "date" or digits == before or (digits > before and not as_text):
            return None
        return {
            "time": lambda text: rounded_time(text, digits),
            "datetime": lambda text: rounded(text, digits),
            "timestamp": lambda text: rounded(text, digits),
        }[new.family]
    rules: dict[tuple[str, str], Callable[[str], str]] = {
        ("date", "datetime"): lambda text: f"{text} 00:00:00{zeros}",
        ("date", "time"): lambda text: f"00:00:00{zeros}",
        ("datetime", "date"): lambda text: rounded(text, 0)[:10],
        ("datetime", "time"): lambda text: _time_of(text, digits),
        ("string", "date"): _date,
        ("string", "datetime"): lambda text: rounded(text, digits),
        ("string", "time"): lambda text: rounded_time(text, digits),
    }
    return rules[old.family, new.family]


def rounded(text: str, digits: int) -> str:
    """A DATETIME or TIMESTAMP with so many digits of a fraction.

    >>> rounded("2024-12-31 23:59:59.95", 1), rounded("2024-01-01", 0)
    ('2025-01-01 00:00:00.0', '2024-01-01 00:00:00')
    """
    match = _DATETIME.fullmatch(text.strip())
    if match is None:
        raise NotComputable("a value is not a time in the form YYYY-MM-DD hh:mm:ss")
    whole = f"{match[1]} {match[2] or '00:00:00'}"
    micros = _rounded_micros(int((match[3] or "").ljust(6, "0")), digits)
    if micros == 1_000_000:
        whole, micros = _next_second(whole), 0
    return f"{whole}.{micros:06d}"[: 20 + digits] if digits else whole


def rounded_time(text: str, digits: int) -> str:
    """A TIME with so many digits of a fraction.

    >>> rounded_time("-01:02:03.5", 0), rounded_time("00:00:00.1", 3)
    ('-01:02:04', '00:00:00.100')
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise NotComputable("a value is not a time in the form hh:mm:ss")
    sign, hours, minutes, seconds, fraction = match.groups("")
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    micros = whole * 1_000_000 + int(fraction.ljust(6, "0"))
    micros = min(_rounded_micros(micros, digits), LONGEST_TIME)
    whole, rest = divmod(micros, 1_000_000)
    shown = f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return (sign if micros else "") + shown + (f".{rest:06d}"[: 1 + digits] if digits else "")


def _rounded_micros(micros: int, digits: int) -> int:
    unit: int = 10 ** max(6 - digits, 0)
    return (micros + unit // 2) // unit * unit


def _next_second(text: str) -> str:
    try:
        following = datetime.fromisoformat(text) + timedelta(seconds=1)
    except (ValueError, OverflowError):
        raise NotComputable("a date that no calendar has is rounded to the next second") from None
    return following.isoformat(" ")


def _time_of(text: str, digits: int) -> str:
    result = rounded(text, digits)
    if result[:10] != text[:10]:
        raise NotComputable("a time is rounded to midnight")
    return result[11:]


def _date(text: str) -> str:
    match = _DATETIME.fullmatch(text.strip())
    if match is None or match[2]:
        raise NotComputable("a value is not a date in the form YYYY-MM-DD")
    return match[1]
