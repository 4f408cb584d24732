"""Messages that a pass rejects, and the dead letters that they become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pyarrow as pa

from headgate.arrow.messages import DEAD_LETTER, DEAD_LETTER_COLUMNS
from headgate.core.errors import internal_error
from headgate.core.event import Event
from headgate.pipeline.change import Message
from headgate.pipeline.plan import Emit
from headgate.pipeline.work_rows import slices, work_rows
from headgate.selection.selection import SelectionError


class Rejection(NamedTuple):
    """Why a message is rejected."""

    code: str
    reason: str
    table: str


Rejections = dict[Message, Rejection]


def invalid_event(event: Event, error: Exception) -> Event:
    """An event that cannot be processed, and why.

    >>> invalid_event(Event("row"), SelectionError("route", "it has no name", "add one")).error
    ('route', 'it has no name; add one')
    """
    if isinstance(error, SelectionError):
        return msgspec.structs.replace(event, kind="invalid", error=(error.code, str(error)))
    return msgspec.structs.replace(event, kind="invalid", error=internal_error(error))


class DeadLetters:
    """Makes dead letters of messages, and counts them."""

    def __init__(self, redact: bool, emit: Emit) -> None:
        self.redact, self.emit = redact, emit
        self.counts: Counter[tuple[str, str]] = Counter()
        """By table and code."""
        self.first: tuple[str, str] | None = None
        """Code and reason of the first one."""

    def rows(self, rejections: Rejections) -> Iterator[pa.RecordBatch]:
        """The messages as they were, and why they are rejected."""
        dead_letters = []
        for (messages, row), (code, reason, table) in rejections.items():
            message = messages.content(row)
            if self.redact:
                message["key"] = message["value"] = message["headers"] = None
            dead_letter = {**message, "code": code, "message": reason, "table": table}
            dead_letters.append({name: dead_letter.get(name) for name in DEAD_LETTER_COLUMNS})
            self.counts[table, code] += 1
            self.first = self.first or (code, reason)
        sizes = [len(each["key"] or b"") + len(each["value"] or b"") for each in dead_letters]
        for part in slices(sizes):
            yield work_rows(self.emit, dead_letter=pa.array(dead_letters[part], DEAD_LETTER))
