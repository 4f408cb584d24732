"""Flink reads what Headgate encodes, and Headgate reads what Flink encodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bench.flink import Flink
from headgate.codec.encoder import Encoder
from headgate.codec.packing import packed
from headgate.core.event import Event
from tests.interop.gadgets import (
    CANAL,
    DEBEZIUM,
    DEBEZIUM_NUMERIC,
    MAXWELL,
    Reading,
    changes,
    expected,
)


@dataclass(frozen=True)
class Target:
    """A format as Headgate writes it and as Flink is told to read it."""

    spec: str
    format: str
    readings: dict[str, Reading]
    flink: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    readable: Callable[[Event], bool] = lambda event: True
    splits_key_changes: bool = False

    def told(self, **options: Any) -> Target:
        """The same with more options for Headgate."""
        return replace(self, options=self.options | options)


def maxwell_readable(event: Event) -> bool:
    """Flink knows no bootstrap-insert, and wants `old`, which Maxwell leaves out if it is empty."""
    return event.op != "snapshot" and not (event.op == "update" and event.before == event.after)


ISO = {"debezium-json.timestamp-format.standard": "ISO-8601"}
TARGETS = {
    "canal-json:canal": Target("canal-json:canal", "canal-json", CANAL),
    "canal-json:ticdc": Target("canal-json:ticdc", "canal-json", CANAL, splits_key_changes=True),
    "canal-json:ticdc, compatible": Target(
        "canal-json:ticdc",
        "canal-json",
        CANAL,
        options={"content_compatible": True, "enable_tidb_extension": True},
        splits_key_changes=True,
    ),
    "debezium": Target(
        "debezium",
        "debezium-json",
        DEBEZIUM,
        {"debezium-json.schema-include": "true", **ISO},
        {"decimal_handling_mode": "string"},
        splits_key_changes=True,
    ),
    "debezium, no schemas": Target(
        "debezium",
        "debezium-json",
        DEBEZIUM,
        ISO,
        {"schemas_enable": False, "decimal_handling_mode": "string"},
        splits_key_changes=True,
    ),
    "debezium, numeric and iso": Target(
        "debezium",
        "debezium-json",
        DEBEZIUM_NUMERIC,
        ISO,
        {
            "schemas_enable": False,
            "decimal_format": "numeric",
            "bigint_unsigned_handling_mode": "precise",
            "time_precision_mode": "isostring",
        },
        splits_key_changes=True,
    ),
    "maxwell": Target("maxwell", "maxwell-json", MAXWELL, readable=maxwell_readable),
}


def write(path: Path, target: Target, events: Iterable[Event]) -> None:
    """The events' messages as JSON Lines, without tombstones, which are no lines."""
    encoder = Encoder(target.spec, **target.options)
    events = list(events)
    found = list(map(encoder, events))
    assert [] == [encoded.error for encoded in found if encoded.error]
    values = [record.value for record in packed(encoder, events, found)[0]]
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
    events = list(filter(target.readable, changes()))
    write(tmp_path / "messages.jsonl", target, events)
    found = read(flink, tmp_path / "messages.jsonl", target, target.readings)
    wanted = expected(events, target.readings, target.splits_key_changes)

    assert [] == differences(wanted, found, target.readings)[:10]
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
