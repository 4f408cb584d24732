"""Every message that real producers wrote, against the rows that the server held."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest
from effort import one_in
from recorded import MYSQL, Comparison, Recording
from recorded_losses import LOSSES, MISSING


def debezium(name: str, **options: str) -> Recording:
    """A recording of Debezium: its name tells how the connector was set up."""
    format = "debezium-smt" if "-smt" in name else "debezium"
    typed = not re.search(r"-ns$|-noschema$|-d2t$", name)
    with_deletes = not re.search(r"-(d2t|drop|tomb)$", name)
    return Recording(name, format, options, typed, with_deletes)


MODES = {
    "dec-string": {"decimal_handling_mode": "string"},
    "big-precise": {"bigint_unsigned_handling_mode": "precise"},
    "bin-hex": {"binary_handling_mode": "hex"},
    "bin-url": {"binary_handling_mode": "base64-url-safe"},
    "bin-base64": {"binary_handling_mode": "base64"},
    "time-connect": {"time_precision_mode": "connect"},
    "time-iso": {"time_precision_mode": "isostring"},
    "time-ns": {"time_precision_mode": "nanoseconds"},
    "time-us": {"time_precision_mode": "microseconds"},
    "smt-rwt": {"add_fields_prefix": "_m_"},
}
"""The connector's settings that only its messages' reader can tell."""

RECORDINGS = [
    Recording("canal15", "canal-json"),
    Recording("canal17", "canal-json", {"timezone": "Asia/Shanghai"}),
    Recording("maxwell122", "maxwell", typed=False),
    Recording("maxwell145", "maxwell", typed=False),
    *(
        debezium(name, **next((MODES[mode] for mode in MODES if mode in name), {}))
        for name in sorted(path.name.split(".")[0] for path in MYSQL.glob("dbz*.jsonl.xz"))
    ),
]


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
