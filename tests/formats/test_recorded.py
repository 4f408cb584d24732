"""Every message that real producers wrote, against the rows that the server held."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from effort import one_in
from recorded import Comparison, Recording
from recorded_losses import LOSSES, MISSING
from recordings import RECORDINGS


def readings(recording: Recording) -> list[str]:
    """How a recording can be read: rows without types make sense only with a schema or DDL."""
    if recording.typed:
        return ["alone", "schema"]
    has_ddl = recording.format != "debezium-smt"
    return ["schema", "converted"] if has_ddl else ["schema"]


CASES = [(recording.name, reading) for recording in RECORDINGS for reading in readings(recording)]


@cache
def held(recording: str, reading: str) -> Comparison:
    return next(r for r in RECORDINGS if r.name == recording).compared(reading)


@pytest.mark.parametrize(
    ("recording", "reading"),
    one_in(6, CASES),
)
def test_decoded_values_are_the_servers(recording: str, reading: str) -> None:
    found = held(recording, reading)
    wrong = [
        each
        for each in found.differences
        if not any(loss.covers(recording, reading, each) for loss in LOSSES)
    ]

    assert found.values > 1_000
    assert found.unmatched == []
    assert wrong == []
    absent = next((MISSING[name] for name in MISSING if re.fullmatch(name, recording)), "")
    assert [name for name in map(".".join, found.missing) if not re.fullmatch(absent, name)] == []


@pytest.mark.slow
def test_every_loss_in_the_list_is_still_there() -> None:
    met: Counter[int] = Counter()
    for recording, reading in CASES:
        for each in held(recording, reading).differences:
            for number, loss in enumerate(LOSSES):
                met[number] += loss.covers(recording, reading, each)

    assert [loss.why for number, loss in enumerate(LOSSES) if not met[number]] == []
