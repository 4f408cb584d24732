"""Recorded messages of real producers, landed, beside the tables of the server at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lake_values import landed, landed_name
from landing_runs import Landed, land
from recorded import (
    ABSENT,
    MYSQL,
    Change,
    Difference,
    Recording,
    declared_digits,
    final,
    lines,
    parsed,
    unpacked,
)
from recorded_losses import LOSSES, MISSING, Loss

from headgate.core.event import Message

SETTINGS = {
    "dbz35-smt-d2t": {"delete_tombstone_handling_mode": "delete-to-tombstone"},
    "dbz35-smt-tomb": {"delete_tombstone_handling_mode": "tombstone"},
}
"""What only a job that lands has to know."""
WITHOUT_PLACES = re.compile(r"dbz19-smt.*|dbz35-smt-(?!rewrite$).*")
"""Recordings whose rows do not tell their place in the binlog, so that they and DDL have no order:
what statements change is left out, and a schema file stands in for them."""
CHANGED = re.compile(r"(.*\.)?live\.d(\d|p)|dbz")
"""Tables that statements change, and the topic of statements."""
WITH_SCHEMA = re.compile(rf"dbz.*snap.*|{WITHOUT_PLACES.pattern}")
"""Recordings that are landed with a schema file."""
BATCH = 100

OF_LANDING = [
    Loss(".*", "a foreign key's cascade is not in the binlog", column=r"live\.t_chi\..*"),
    Loss(
        ".*", "TRUNCATE PARTITION does not tell which rows are gone", column=r"live\.dp\..*",
        truth=re.escape(ABSENT),
    ),
    Loss(
        r"maxwell.*|dbz35-(?!trunc).*", "TRUNCATE is not sent", column=r"live\.d4\..*",
        truth=re.escape(ABSENT),
    ),
    Loss(
        r"dbz.*-smt.*", "the row before an update is not sent", column=r"live\.t_nokey\..*",
    ),
    Loss(
        r"dbz.*-smt.*", "text that is the placeholder of an unavailable value",
        column=r"live\.t_str\..*", truth="__debezium_unavailable_value", decoded="None",
    ),
    Loss(r"dbz35-smt-drop", "deletes are not sent", truth=re.escape(ABSENT)),
    Loss(
        r"dbz35-snap2.*", "DECIMAL ZEROFILL is left out", column=r"live\.t_num\.dz", decoded="None",
    ),
    Loss("dbz35-dec-double", "DECIMAL as a double, in a key", column=r"live\.t_bkey\..*"),
]  # fmt: skip
"""What no message tells, so that no landed table can have it."""


def messages(recording: Recording) -> list[Message]:
    """The messages of a recording, as one partition's."""
    found = []
    for offset, line in enumerate(lines(MYSQL / f"{recording.name}.jsonl.xz")):
        topic = line["topic"] or "in"
        if not (WITHOUT_PLACES.fullmatch(recording.name) and CHANGED.fullmatch(topic)):
            key, value = unpacked(line["key"]), unpacked(line["value"])
            found.append(Message(value, key, topic, 0, offset))
    return found


def landed_recording(recording: Recording, root: Path) -> Landed:
    """Land a recording in batches."""
    every = messages(recording)
    batches = [every[start : start + BATCH] for start in range(0, len(every), BATCH)]
    # A zero date has no place in a lake: it is NULL there.
    sink = {"on_misfit": "null", "drop_column": "drop", "drop_table": "drop"}
    has_schema = WITH_SCHEMA.fullmatch(recording.name)
    schema = (MYSQL / "schema.sql").read_text("utf-8") if has_schema else None
    options = {**recording.options, **SETTINGS.get(recording.name, {})}
    return land(root, recording.format, batches, options, sink, schema)


def lake_value(type_: str, text: str | None) -> Any:
    """A value as it lands where misfits are NULL."""
    try:
        return landed(type_, text)
    except ValueError:
        return None


def differences(
    name: str, tables: Mapping[tuple[str, str], list[dict[str, Any]]]
) -> Iterator[Difference]:
    """Where landed tables differ from the server's."""
    missing = next((MISSING[each] for each in MISSING if re.fullmatch(each, name)), "")
    if WITHOUT_PLACES.fullmatch(name):
        missing += f"|{CHANGED.pattern}"
    for where, rows in final().items():
        table = ".".join(where)
        if where[1] == "t_bulk" or re.fullmatch(missing, table):
            continue
        if where not in tables:
            yield Difference(table, "(table)", "", "there", ABSENT)
            continue
        yield from of_rows(table, rows, list(tables[where]))


def of_rows(table: str, truth: list[Change], found: list[dict[str, Any]]) -> Iterator[Difference]:
    """The differences of a table's rows, each held against the one that it is nearest to."""
    for change in truth:
        row = {landed_name(n): (change.types[n], v) for n, v in (change.after or {}).items()}
        wanted = {name: lake_value(*each) for name, each in row.items()}
        key = list(map(landed_name, change.key)) or list(wanted)
        near = max(found, key=lambda row: likeness(row, wanted, key), default=None)
        if near is None or (change.key and any(near.get(n) != wanted[n] for n in key)):
            yield Difference(table, "(row)", "", {n: row[n][1] for n in key}, ABSENT)
            continue
        found.remove(near)
        for name in {**wanted, **near}:
            type_, text = row.get(name, ("", ABSENT))
            if name not in wanted or name not in near or not same(type_, wanted[name], near[name]):
                yield Difference(table, name, type_, text, near.get(name, ABSENT))
    for row in found:
        yield Difference(table, "(row)", "", ABSENT, row)


def likeness(row: dict[str, Any], wanted: dict[str, Any], key: list[str]) -> tuple[int, int]:
    return (
        sum(row.get(name) == wanted[name] for name in key),
        sum(row.get(name) == wanted[name] for name in wanted),
    )


def same(type_: str, wanted: Any, found: Any) -> bool:
    """Whether two values are equal; a JSON document in any notation, DOUBLE(M,D) as it is shown."""
    if wanted is None or found is None:
        return wanted is found
    if type_ == "json":
        try:
            return parsed(wanted) == parsed(found)
        except ValueError:
            return False
    if type_.startswith("double("):
        return bool(round(wanted, declared_digits(type_)) == round(found, declared_digits(type_)))
    return bool(wanted == found)


def check_landed(recording: Recording, root: Path) -> None:
    """Land a recording, and compare its tables with the server's; it is the producer who loses."""
    found = landed_recording(recording, root)
    reading = "schema" if WITH_SCHEMA.fullmatch(recording.name) else "converted"
    losses = [*LOSSES, *OF_LANDING]
    wrong = [
        each
        for each in differences(recording.name, found.tables)
        if not any(loss.covers(recording.name, reading, each) for loss in losses)
    ]

    assert wrong == []
    dead_letters = [
        text for _, text in found.dead_letters if not text.startswith("'live.t_nokey': ")
    ]
    assert dead_letters == []
    assert "smt" in recording.name or found.dead_letters == []
    assert found.parked in ([], ["live.dp"])
