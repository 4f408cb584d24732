"""A message with holes, and what is written for it: what the codecs answered, as operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from headgate.fastpath.kernel import (
    DATE,
    DATETIME,
    DAYS,
    DECIMAL64,
    EPOCH,
    INTEGER,
    ISO,
    LITERAL,
    NUMBER,
    POINT,
    STAMP,
    TRIM,
)
from headgate.fastpath.leaves import Leaf
from headgate.fastpath.program import SEPARATOR, Program

NEEDS = {
    TRIM: {STAMP},
    POINT: {STAMP},
    EPOCH: {DATETIME},
    ISO: {DATETIME},
    DAYS: {DATE},
    DECIMAL64: {INTEGER, NUMBER},
}
"""The forms of values to which an operation can be applied."""


class WrittenRecord(NamedTuple):
    """A message that the codecs wrote, and for which sink."""

    value: bytes | None
    key: bytes | None
    headers: Any
    topic: str | None
    partition: int | None
    losses: Any = None
    sink: int = 0
    table: str | None = None


class Answer(NamedTuple):
    """What the codecs make of a message: all that a template must give."""

    records: tuple[WrittenRecord, ...]
    lost: tuple[Any, ...]
    """What was lost, as the asker names it."""
    about: Any
    """What else has to be the same in all messages of a template: tables, operations."""
    time: int | None
    """The time of the change, in microseconds; it may vary."""
    format: str | None
    treated: Any
    """What decides, with a column's type, how its values are treated."""
    types: Any
    key: tuple[str, ...]


Result = tuple[list[WrittenRecord], int]
"""The records of a message, and the time of its change."""
Form = tuple[int, int, int]
"""The form of a value, with two parameters (kernel.fits)."""
Ask = Callable[["bytes | None", bytes], "Answer | None"]
"""From key and value to the codecs' answer; None where it cannot be that of a template."""


@dataclass
class Template:
    """A message with holes, and what is written for it."""

    text: bytes
    leaves: list[Leaf]
    holes: list[int]
    forms: dict[int, Form]
    pairs: list[tuple[int, int, int]]
    answer: Answer
    values: list[list[tuple[int, int, int]]] = field(default_factory=list)
    """For each record: the operations that write its value."""
    keys: list[list[tuple[int, int, int]]] = field(default_factory=list)
    literals: bytearray = field(default_factory=bytearray)
    time_leaf: int = -1
    time_factor: int = 0


def ask_codecs(ask: Ask, text: bytes) -> Answer | None:
    """The codecs' answer for a message, given with its key before it."""
    key, separator, value = text.partition(SEPARATOR)
    return ask(key, value) if separator else ask(None, text)


def is_possible(template: Template, hole: int) -> bool:
    """Whether the operations on a hole can be applied to values of its form."""
    form = template.forms[hole][0]
    pieces = [op for made in (*template.values, *template.keys) for op in made]
    return all(
        form in NEEDS[op] for op, i, _ in pieces if op != LITERAL and i == hole and op in NEEDS
    )


def run_template(
    template: Template, texts: list[bytes]
) -> list[tuple[list[WrittenRecord], int] | None]:
    """The results of the loop for messages by one template; None for those that do not match it."""
    program = Program([template])
    spliced = program.run(*joined(texts), only=True)
    made: list[Result | None] = [None] * len(texts)
    for row in np.flatnonzero(spliced.templates >= 0):
        made[row] = ([], int(spliced.times[row]))
    for n in range(len(spliced.rows)):
        result = made[spliced.rows[n]]
        if result is not None:
            result[0].append(spliced.record(n))
    return made


def joined(texts: list[bytes]) -> tuple[Any, Any]:
    """Messages one after the other, and where each begins."""
    data = np.frombuffer(b"".join(texts), np.uint8)
    return data, np.cumsum([0, *map(len, texts)]).astype(np.int64)


def same_shape(one: Answer, other: Answer) -> bool:
    """Whether two answers differ in values only."""
    return (
        one.about == other.about
        and one.lost == other.lost
        and (one.time is None) == (other.time is None)
        and [shape(r) for r in one.records] == [shape(r) for r in other.records]
    )


def shape(record: WrittenRecord) -> tuple[Any, ...]:
    """The part of a record that a template fixes."""
    return (record.value is None, record.key is None, *record[2:])


def agrees(
    made: tuple[list[WrittenRecord], int], answer: Answer | None, template: Template
) -> bool:
    """Whether the loop and the codecs have the same result for a message."""
    if answer is None or not same_shape(answer, template.answer):
        return False
    records, time = made
    known = template.time_leaf >= 0
    return records == list(answer.records) and (not known or time == answer.time)


Operation = tuple[int, int, int]


def operations(
    template: Template, text: bytes | None, fragments: list[tuple[bytes, Operation]]
) -> list[Operation]:
    """The operations that write a text: literals, and the values between them."""
    result: list[Operation] = []
    at = 0
    for start, end, operation in [*places(text or b"", fragments), (len(text or b""), 0, None)]:
        if text is not None and start > at:
            result.append((LITERAL, len(template.literals), start - at))
            template.literals.extend(text[at:start])
        if operation is not None:
            result.append(operation)
        at = end
    return result


def places(
    text: bytes, fragments: list[tuple[bytes, Operation]]
) -> list[tuple[int, int, Operation]]:
    """Where fragments stand in a text; one that comes earlier in the list goes first.

    >>> places(b"a12b1", [(b"12", (1, 0, 0)), (b"1", (1, 1, 0))])
    [(1, 3, (1, 0, 0)), (4, 5, (1, 1, 0))]
    """
    spans: list[tuple[int, int, Operation]] = []
    for fragment, operation in fragments:
        start = text.find(fragment)
        while start >= 0:
            end = start + len(fragment)
            if all(end <= first or start >= last for first, last, _ in spans):
                spans.append((start, end, operation))
            start = text.find(fragment, start + 1)
    return sorted(spans)
