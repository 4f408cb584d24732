"""Flink reads what Headgate encodes, and Headgate reads what Flink encodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.flink import Flink
from headgate.encoding import Encoder, packed
from headgate.event import Event
from tests.interop.gadgets import CANAL, MAXWELL, Reading, changes, expected


class Target:
    """A format as Headgate writes it and as Flink is told to read it."""

    def __init__(
        self,
        spec: str,
        format: str,
        readings: dict[str, Reading],
        flink: dict[str, str] | None = None,
        snapshots: bool = True,
        **options: Any,
    ) -> None:
        self.spec, self.format, self.readings = spec, format, readings
        self.flink = {f"{format}.{name}": value for name, value in (flink or {}).items()}
        self.snapshots = snapshots
        self.options = options


TARGETS = {
    "canal-json:canal": Target("canal-json:canal", "canal-json", CANAL),
    "canal-json:ticdc": Target("canal-json:ticdc", "canal-json", CANAL),
    "canal-json:ticdc, compatible": Target(
        "canal-json:ticdc", "canal-json", CANAL, content_compatible=True, enable_tidb_extension=True
    ),
}


def write(path: Path, target: Target, events: Iterable[Event]) -> None:
    """The events' messages as JSON Lines, without tombstones, which are no lines."""
    encoder = Encoder(target.spec, **target.options)
    found = [(number, event, encoder(event)) for number, event in enumerate(events)]
    assert [] == [encoded.error for _, _, encoded in found if encoded.error]
    values = [message.record.value for message in packed(encoder, found)]
    path.write_bytes(b"".join(value + b"\n" for value in values if value is not None))


def read(
    flink: Flink, path: Path, target: Target, readings: dict[str, Reading]
) -> list[tuple[str | None, ...]]:
    columns = ", ".join(f"`{name}` {reading.type}" for name, reading in readings.items())
    flink.define("gadgets", columns, path, target.format, target.flink)
    return flink.rows(f"SELECT {', '.join(map(shown, readings.items()))} FROM gadgets")


def shown(column: tuple[str, Reading]) -> str:
    """A column as it is collected: times as text, because PyFlink cuts their microseconds."""
    name, reading = column
    return f"CAST(`{name}` AS STRING)" if reading.type.startswith("TIMESTAMP") else f"`{name}`"


@pytest.mark.parametrize("name", TARGETS)
def test_flink_reads_every_type(flink: Flink, tmp_path: Path, name: str) -> None:
    target = TARGETS[name]
    events = [e for e in changes() if target.snapshots or e.op != "snapshot"]
    write(tmp_path / "messages.jsonl", target, events)
    found = read(flink, tmp_path / "messages.jsonl", target, target.readings)
    wanted = expected(events, target.readings)

    assert differences(wanted, found, target.readings) == []
    assert len(wanted) == len(found)


def differences(
    wanted: list[tuple[str | None, ...]],
    found: list[tuple[str | None, ...]],
    readings: dict[str, Reading],
) -> list[tuple[int, str, str | None, str | None]]:
    """Where two changelogs differ: row, column, the expected and the found value."""
    names = ["kind", *readings]
    return [
        (number, name, one, other)
        for number, (wanted_row, found_row) in enumerate(zip(wanted, found))
        for name, one, other in zip(names, wanted_row, found_row)
        if one != other
    ]
