"""Recorded messages of real producers, landed: the tables equal the server's at the end."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from effort import one_in
from lake_values import landed, landed_name
from landing_runs import Landed, land
from recorded import (
    ABSENT,
    MYSQL,
    Change,
    Difference,
    declared_digits,
    final,
    lines,
    parsed,
    unpacked,
)
from recorded_losses import LOSSES, MISSING, Loss

from headgate.core.event import Message

OPTIONS = {
    "canal15": ("canal-json", {}),
    "canal17": ("canal-json", {"timezone": "Asia/Shanghai"}),
    "maxwell122": ("maxwell", {}),
    "maxwell145": ("maxwell", {}),
    "dbz19-default": ("debezium", {}),
    "dbz19-noschema": ("debezium", {}),
    "dbz35-default": ("debezium", {}),
    "dbz35-prop": ("debezium", {}),
    "dbz35-noschema": ("debezium", {}),
    "dbz35-trunc": ("debezium", {}),
}
"""Recordings of each producer and version that have DDL: their format and options."""
BATCH = 100

OF_LANDING = [
    Loss(".*", "a foreign key's cascade is not in the binlog", column=r"live\.t_chi\..*"),
    Loss(
        ".*", "TRUNCATE PARTITION does not tell which rows are gone", column=r"live\.dp\..*",
        truth=re.escape(ABSENT),
    ),
    Loss(
        r"maxwell.*|dbz35-(default|prop|noschema)", "TRUNCATE is not sent", column=r"live\.d4\..*",
        truth=re.escape(ABSENT),
    ),
]  # fmt: skip
"""What no message tells, so that no landed table can have it."""


def messages(name: str) -> list[Message]:
    """The messages of a recording, as one partition's."""
    found = []
    for offset, line in enumerate(lines(MYSQL / f"{name}.jsonl.xz")):
        key, value = unpacked(line["key"]), unpacked(line["value"])
        found.append(Message(value, key, line["topic"] or "in", 0, offset))
    return found


@cache
def landed_recording(name: str) -> Landed:
    format, options = OPTIONS[name]
    every = messages(name)
    batches = [every[start : start + BATCH] for start in range(0, len(every), BATCH)]
    root = Path(tempfile.mkdtemp(prefix="landed-"))
    # A zero date has no place in a lake: it is NULL there.
    sink = {"on_misfit": "null", "drop_column": "drop", "drop_table": "drop"}
    return land(root, format, batches, options, sink)


def lake_value(type_: str, text: str | None) -> Any:
    """A value as it lands where misfits are NULL."""
    try:
        return landed(type_, text)
    except ValueError:
        return None


def differences(name: str) -> Iterator[Difference]:
    """Where landed tables differ from the server's."""
    tables = landed_recording(name).tables
    missing = next((MISSING[each] for each in MISSING if re.fullmatch(each, name)), "")
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


@pytest.mark.parametrize(
    "name",
    one_in(5, OPTIONS),
)
def test_landed_tables_are_the_servers(name: str) -> None:
    losses = [*LOSSES, *OF_LANDING]
    wrong = [
        each
        for each in differences(name)
        if not any(loss.covers(name, "converted", each) for loss in losses)
    ]

    assert wrong == []
    assert landed_recording(name).dead_letters == []
    assert landed_recording(name).parked in ([], ["live.dp"])
