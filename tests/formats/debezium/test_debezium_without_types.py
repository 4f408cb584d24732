"""Debezium without types: its own encodings are never taken for values without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import REPRO

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.core.event import Event

FILE = REPRO / "others" / "dbz-mysql-noschema.jsonl"
COLUMNS = (
    "id INT PRIMARY KEY, amount DECIMAL(9,2), created DATETIME, updated TIMESTAMP, d DATE, "
    "tags JSON, flag TINYINT, bin VARBINARY(9), y YEAR, t TIME, p POINT"
)
SCHEMA = f"CREATE TABLE shop.orders ({COLUMNS})"


def rows(**options: Any) -> list[Event]:
    decode = decoder("debezium", **options)
    events = [e for line in FILE.read_bytes().splitlines() for e in decode(None, line, None)]
    return [event for event in events if event.kind == "row"]


@pytest.mark.parametrize("spec", ["canal-json", "maxwell", "oms-default", "debezium:oms"])
def test_another_dialect_counts_it_and_strict_refuses(spec: str) -> None:
    for event in rows():
        assert 1 == Encoder(spec)(event).lost.count("untyped")
        outcome = Encoder(spec, strict=True)(event)
        assert ([], "lossy") == (outcome.records, outcome.error and outcome.error[0])


@pytest.mark.parametrize("spec", ["debezium", "debezium-smt"])
def test_debeziums_own_formats_lose_nothing_by_it(spec: str) -> None:
    for event in rows():
        assert "untyped" not in Encoder(spec, schemas_enable=False)(event).lost


@pytest.mark.parametrize(
    ("reading", "writing"),
    [
        ({"schema": SCHEMA}, {}),
        ({}, {"schema": SCHEMA}),
        ({"columns": COLUMNS.replace(" PRIMARY KEY", "")}, {}),
    ],
    ids=["decoder", "encoder", "columns"],
)
def test_types_from_a_schema_make_it_right(reading: Any, writing: Any) -> None:
    outcome = Encoder("canal-json", **writing)(rows(**reading)[0])

    assert "untyped" not in outcome.lost
    assert b'"amount":"1234.00"' in outcome.records[0].value
    assert b'"d":"2024-05-01"' in outcome.records[0].value


def test_a_column_that_columns_does_not_name_is_still_counted() -> None:
    assert "untyped" in Encoder("maxwell")(rows(columns="amount DECIMAL(9,2)")[0]).lost


def test_convert_says_it_without_being_asked(tmp_path: Path) -> None:
    out = str(tmp_path / "out.jsonl")
    command = [
        sys.executable,
        "-m",
        "headgate",
        "convert",
        str(FILE),
        out,
        "--to",
        "canal-json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)

    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "untyped" in line]
    assert "4 times" in line
    assert "--schema" in line
    assert "columns=" in line
