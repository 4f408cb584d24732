"""Headgate reads what Flink writes in `canal-json`, `debezium-json` and `maxwell-json`."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.flink import Flink
from headgate.codec.decoder import decoder

Row = dict[str, Any]


class Column(NamedTuple):
    """A column of Flink's, two values as JSON for it, and how to compare canonical text."""

    type: str
    one: Any
    other: Any
    value: Callable[[str], Any] = str


COLUMNS = {
    "id": Column("BIGINT", 1, 9223372036854775807),
    "num": Column("INT", -2147483648, 2147483647),
    "ubig": Column("DECIMAL(20,0)", 0, 18446744073709551615, Decimal),
    "price": Column("DECIMAL(20,4)", "-0.0100", "9999999999999999.9999", Decimal),
    "ratio": Column("DOUBLE", 0.1, -1.5e300, float),
    "flag": Column("BOOLEAN", True, False, lambda text: {"1": "True", "0": "False"}.get(text)),
    "name": Column("STRING", 'O\'Brien "Bo" \\ <b>&amp;</b>', "Zoë 李雷 🎉\t\n\u2028"),
    "note": Column("STRING", "", "null"),
    "day": Column("DATE", "2024-02-29", "1969-12-31"),
    "at3": Column("TIMESTAMP(3)", "2024-05-01 08:00:00.12", "1969-12-31 23:59:59",
                  datetime.fromisoformat),
    "at6": Column("TIMESTAMP(6)", "2024-05-01 08:00:00.123456", "1969-12-31 23:59:59.999999",
                  datetime.fromisoformat),
    "bin": Column("BYTES", b64encode(b"\x00\xff").decode(), b64encode(b"plain").decode()),
}  # fmt: skip
ONE = {name: column.one for name, column in COLUMNS.items()}
OTHER = {name: column.other for name, column in COLUMNS.items()}
NULLS = dict.fromkeys(COLUMNS) | {"id": 3}
CHANGES: list[tuple[Row | None, Row | None]] = [
    (None, ONE),
    (None, OTHER),
    (None, NULLS),
    (ONE, NULLS | {"id": 1}),
    (NULLS, OTHER | {"id": 3}),
    (OTHER, None),
    (NULLS | {"id": 1}, None),
]
OPS = {(False, True): "c", (True, True): "u", (True, False): "d"}


def compared(row: dict[str, Any]) -> list[tuple[str, Any]]:
    """The values of a row as they are compared: a DECIMAL as a number, a time as a moment."""
    return [
        (name, None if row[name] is None else column.value(str(row[name])))
        for name, column in COLUMNS.items()
    ]


def original(row: Row) -> list[tuple[str, Any]]:
    return compared(row | {"flag": row["flag"] if row["flag"] is None else int(row["flag"])})


@pytest.mark.parametrize("format", ["canal-json", "debezium", "maxwell"])
def test_headgate_reads_what_flink_writes(flink: Flink, tmp_path: Path, format: str) -> None:
    name = {"canal-json": "canal-json", "debezium": "debezium-json", "maxwell": "maxwell-json"}
    lines = [
        json.dumps(
            {"before": before, "after": after, "op": OPS[before is not None, after is not None]}
        )
        for before, after in CHANGES
    ]
    (tmp_path / "changes.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = ", ".join(f"`{column}` {told.type}" for column, told in COLUMNS.items())
    flink.define("changes", columns, tmp_path / "changes.jsonl", "debezium-json")
    flink.define("written", columns, tmp_path / "written", name[format])
    flink.execute("INSERT INTO written SELECT * FROM changes")
    decode = decoder(format)
    found = [
        (event.op, compared((event.before if event.op == "delete" else event.after) or {}))
        for file in sorted((tmp_path / "written").glob("part-*"))
        for line in file.read_bytes().splitlines()
        for event in decode(None, line, None)
    ]
    # Flink writes an update as the row that goes and the row that comes.
    wanted = [
        (op, original(row))
        for before, after in CHANGES
        for op, row in (("delete", before), ("insert", after))
        if row is not None
    ]

    assert wanted == found
