"""Helpers for encoding any Debezium message: numbers, times, losses."""

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
"""The range of microseconds whose nanoseconds fit into 64 bits."""


def int64_or_none(text: str | None) -> int | None:
    """A 64-bit integer, as in a position; None if the text is not one.

    >>> int64_or_none("154"), int64_or_none("553132@1668496109")
    (154, None)
    """
    if text is None or not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    value = int(text)
    return value if value in INT64 else None


def bare(text: str) -> Any:
    """An integer as a number, anything else as text.

    >>> bare("556"), bare("007")
    (556, '007')
    """
    value = int64_or_none(text)
    return text if value is None or str(value) != text else value


def nanos(micros: int | None) -> int | None:
    """Nanoseconds; None if they do not fit into 64 bits.

    >>> nanos(7), nanos(2**62)
    (7000, None)
    """
    if micros is None or not MIN_MICROS <= micros <= MAX_MICROS:
        return None
    return micros * 1_000


def millis(micros: int | None) -> int:
    """Milliseconds of a required time; 0 if it is unknown."""
    return (micros or 0) // 1_000


def millis_or_none(micros: int | None) -> int | None:
    """Milliseconds of an optional time."""
    return None if micros is None else micros // 1_000


def own_extra(event: Event) -> Mapping[str, str] | None:
    """The `extra` of an event that Debezium wrote; None for other events."""
    if event.format == "debezium" and event.dialect == "debezium":
        return event.extra or NOTHING
    return None


def retract(lost: list[str], codes: Container[str]) -> None:
    """Remove losses that were counted before the message was known."""
    if lost:
        lost[:] = [code for code in lost if code not in codes]


def finish(start: bytes, message: Any, end: bytes) -> bytes:
    """A message as Kafka's JSON converter writes it, inside its schema block if it has one."""
    encoded = to_json(message)
    return start + (jackson_style(encoded) if BACKSLASH in encoded else encoded) + end
