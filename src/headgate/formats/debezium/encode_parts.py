"""What all messages of Debezium share when they are written: numbers, times, losses."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from headgate.core.event import Event
from headgate.formats._connect.encode_numbers import INT64
from headgate.formats._connect.encode_rows import (
    NOTHING,
)
from headgate.formats.encoding import BACKSLASH, jackson_style, to_json

MIN_MICROS, MAX_MICROS = -(2**63) // 1_000 + 1, (2**63 - 1) // 1_000
"""The microseconds whose nanoseconds fit 64 bits."""


def small(text: str | None) -> int | None:
    """A whole number of a position; None where it is none.

    >>> small("154"), small("553132@1668496109")
    (154, None)
    """
    if text is None or not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    found = int(text)
    return found if found in INT64 else None


def bare(text: str) -> Any:
    """A whole number as one, anything else as text.

    >>> bare("556"), bare("007")
    (556, '007')
    """
    found = small(text)
    return text if found is None or str(found) != text else found


def nanos(micros: int | None) -> int | None:
    """Nanoseconds, where 64 bits hold them.

    >>> nanos(7), nanos(2**62)
    (7000, None)
    """
    if micros is None or not MIN_MICROS <= micros <= MAX_MICROS:
        return None
    return micros * 1_000


def millis(micros: int | None) -> int:
    """Milliseconds of a time that has to be there; 0 where it is not known."""
    return (micros or 0) // 1_000


def thousandth(micros: int | None) -> int | None:
    """Milliseconds of a time that may be unknown."""
    return None if micros is None else micros // 1_000


def whose(event: Event) -> Mapping[str, str] | None:
    """What Debezium's own decoder kept of this event; None where no Debezium wrote it."""
    if event.format == "debezium" and event.dialect == "debezium":
        return event.extra or NOTHING
    return None


def discard(lost: list[str], codes: Container[str]) -> None:
    """Take back what was counted as lost of an event by those who did not know its message."""
    if lost:
        lost[:] = [code for code in lost if code not in codes]


def finish(start: bytes, message: Any, end: bytes) -> bytes:
    """A message as Kafka's JSON converter writes it."""
    sent = to_json(message)
    return start + (jackson_style(sent) if BACKSLASH in sent else sent) + end
