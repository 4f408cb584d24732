"""Landed tables are read by others: Spark with Delta Lake's jars, and polars."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from lake_values import landed
from recorded_landing import landed_recording
from recordings import RECORDINGS
from ticdc_messages import ddl, ticdc

from headgate.core.errors import UsageError
from headgate.spark import jars

Rows = list[dict[str, Any]]
Reader = Callable[[Sequence[Path]], list[pa.Table]]

TYPES = {
    "id": "bigint",
    "tiny": "tinyint",
    "small": "smallint unsigned",
    "medium": "mediumint",
    "whole": "int",
    "big": "bigint unsigned",
    "price": "decimal(12,2)",
    "exact": "decimal(38,10)",
    "too_exact": "decimal(65,2)",
    "ratio": "double",
    "flag": "bit(1)",
    "bits": "bit(8)",
    "day": "date",
    "at": "datetime(6)",
    "seen": "timestamp(3)",
    "length": "time",
    "born": "year",
    "name": "varchar(20)",
    "mood": "enum('good','bad')",
    "doc": "json",
    "raw": "varbinary(8)",
    "unit price": "int",
    "价格": "decimal(10,2)",
}
LOW = (
    "1", "-128", "0", "-8388608", "-2147483648", "0", "-9999999999.99",
    "-" + "9" * 28 + "." + "9" * 10, "-" + "9" * 63 + ".99", "-1.7976931348623157e308", "0", "0",
    "0001-01-01", "1000-01-01 00:00:00.000001", "1970-01-01 00:00:01.000", "-838:59:59", "1901",
    "", "1", '{"a": [1, null]}', "", "1", "0.01",
)  # fmt: skip
HIGH = (
    "2", "127", "65535", "8388607", "2147483647", "18446744073709551615", "9999999999.99",
    "9" * 28 + "." + "9" * 10, "9" * 63 + ".99", "5e-324", "1", "255",
    "9999-12-31", "9999-12-31 23:59:59.999999", "2038-01-19 03:14:07.999", "838:59:59", "2155",
    "Zürich 😀", "2", '"x"', "\u0000ÿ", "2", "9.99",
)  # fmt: skip
EMPTY = ("3", *[None] * (len(TYPES) - 1))
CREATE = f"CREATE TABLE kinds ({', '.join(f'`{n}` {t}' for n, t in TYPES.items())}, "
CREATE += "PRIMARY KEY (id))"
ALTER = "ALTER TABLE kinds ADD COLUMN added INT NOT NULL DEFAULT 7 AFTER id, MODIFY tiny INT"
MOVE = "ALTER TABLE kinds MODIFY born YEAR FIRST, ADD later DATETIME AFTER tiny"
ADDED = {"added": "int"}
EVENTS = {"what": "varchar(9)", "n": "int"}
LAKES: dict[str, dict[str, str]] = {
    "now": {},
    "log": {"mode": "log"},
    "soft": {"deletes": "soft", "drop_table": "drop"},
    "other": {"zero_dates": "string", "tinyint1": "boolean", "decimal_overflow": "decimal38",
              "geometry": "string", "on_misfit": "null", "deletes": "ignore"},
}  # fmt: skip
IN_MESSAGES = {"mood": {"1": "good", "2": "bad"}, "raw": {"\u0000ÿ": "AP8="}}
"""Canonical texts of what TiCDC writes in its own way."""


def change(
    ts: int, op: str, row: dict[str, str | None], types: dict[str, str], **more: Any
) -> bytes:
    """A change of a row."""
    told = {"data": [row], "old": more.pop("old", None), "mysqlType": types, "sqlType": {}}
    return ticdc(0, ts, op, **told, **more)


def history() -> list[bytes]:
    """Two tables: one of all types with a key, which is altered, and one without a key."""
    low, high, empty = (dict(zip(TYPES, texts)) for texts in (LOW, HIGH, EMPTY))
    gone, changed = {**low, "id": "9"}, {**low, "name": "new"}
    later = {**high, "id": "4", "tiny": "2147483647", "added": "8"}
    kinds, events = {"table": "kinds"}, {"table": "events", "pkNames": None}
    twice = {"what": "same", "n": "1"}
    return [
        ddl(1, CREATE, "CREATE", table="kinds"),
        ddl(2, "CREATE TABLE events (what VARCHAR(9), n INT)", "CREATE", table="events"),
        *(
            change(3 + n, "INSERT", row, TYPES, **kinds)
            for n, row in enumerate((gone, low, high, empty))
        ),
        change(10, "DELETE", gone, TYPES, **kinds),
        change(11, "UPDATE", changed, TYPES, old=[low], **kinds),
        *(change(ts, "INSERT", twice, EVENTS, **events) for ts in (12, 13, 14)),
        change(15, "INSERT", {"what": "other", "n": "2"}, EVENTS, **events),
        change(16, "DELETE", twice, EVENTS, **events),
        ddl(20, ALTER, table="kinds"),
        ddl(21, MOVE, table="kinds"),
        ddl(22, "RENAME TABLE events TO happened", "RENAME", table="events"),
        change(23, "INSERT", later, {**TYPES, **ADDED, "tiny": "int"}, **kinds),
    ]


def expected_kinds() -> Rows:
    more = {"added": "7", "later": None}
    low = {**dict(zip(TYPES, LOW)), "name": "new", **more}
    high = {**dict(zip(TYPES, HIGH)), **more}
    empty = {**dict(zip(TYPES, EMPTY)), **more}
    later = {**high, "id": "4", "tiny": "2147483647", "added": "8"}
    types = {**TYPES, **ADDED, "later": "datetime"}
    return [
        {
            name.replace(" ", "_x0020_"): landed(types[name], canonical(name, text))
            for name, text in row.items()
        }
        for row in (low, high, empty, later)
    ]


def canonical(name: str, text: str | None) -> str | None:
    return IN_MESSAGES.get(name, {}).get(text or "", text)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lakes of all kinds, landed by two runs: tables as they are now, logs of all changes, …"""
    folder = tmp_path_factory.mktemp("readers")
    (folder / "in").mkdir()
    job = {
        "source": {"uri": f"file://{folder}/in", "format": "canal-json:ticdc"},
        "sink": [{"uri": f"delta://{folder}/{name}", **sink} for name, sink in LAKES.items()],
        "pipeline": {"name": "t", "checkpoint": f"{folder}/state"},
    }
    (folder / "job.yaml").write_text(json.dumps(job))
    messages = history()
    for name, part in (("a", messages[:9]), ("b", messages[9:])):
        (folder / "in" / f"{name}.jsonl").write_bytes(b"".join(m + b"\n" for m in part))
        command = [sys.executable, "-m", "headgate", "run", str(folder / "job.yaml"), "--once"]
        done = subprocess.run([*command, "--master", "local[2]"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def read_by_spark(tables: Sequence[Path]) -> list[pa.Table]:
    """Delta tables as Spark with Delta Lake's jars reads them."""
    try:
        jars.settings("delta")
    except UsageError as error:
        warnings.warn(f"NOT TESTED, no Delta Lake for Spark: {error}", stacklevel=1)
        pytest.skip(f"no Delta Lake for Spark: {error}")
    out = tables[0].parents[2] / "read"
    out.mkdir(exist_ok=True)
    script = Path(__file__).with_name("read_delta.py")
    command = [sys.executable, str(script), str(out), *map(str, tables)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [pq.read_table(out / f"{number}.parquet") for number in range(len(tables))]


def read_by_polars(tables: Sequence[Path]) -> list[pa.Table]:
    """Delta tables as polars reads them."""
    if find_spec("polars") is None:
        warnings.warn("NOT TESTED, no polars: pip install polars", stacklevel=1)
        pytest.skip("no polars")
    import polars

    return [polars.read_delta(str(table)).to_arrow() for table in tables]


READERS: dict[str, Reader] = {"spark": read_by_spark, "polars": read_by_polars}


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_see_the_rows_of_the_source(reader: str, lake: Path) -> None:
    paths = [log.parent for name in LAKES for log in sorted(lake.glob(f"{name}/shop/*/_delta_log"))]
    tables = dict(zip((f"{p.parts[-3]}/{p.name}" for p in paths), READERS[reader](paths)))

    kinds = tables["now/kinds"].sort_by("id")
    assert expected_kinds() == [without_own(row) for row in kinds.to_pylist()]
    names = [name for name in kinds.column_names if not name.startswith("_")]
    assert ["born", "id", "added", "tiny", "later", "small"] == names[:6]
    assert [
        {"what": "other", "n": 2},
        {"what": "same", "n": 1},
        {"what": "same", "n": 1},
    ] == [without_own(row) for row in tables["now/happened"].sort_by("what").to_pylist()]
    operations = [row["_op"] for row in tables["log/kinds"].sort_by("_commit_ts").to_pylist()]
    assert ["upsert"] * 4 + ["delete"] + ["upsert"] * 2 == operations
    marked = [(row["id"], row["_deleted"]) for row in tables["soft/kinds"].to_pylist()]
    assert [(1, False), (2, False), (3, False), (4, False), (9, True)] == sorted(marked)
    assert [1, 2, 3, 4, 9] == sorted(tables["other/kinds"]["id"].to_pylist())
    rows = {name: table.num_rows for name, table in tables.items() if "happened" in name}
    assert {"now/happened": 3, "log/happened": 0, "soft/happened": 4, "other/happened": 4} == rows


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All tables of a recording of Debezium."""
    folder = tmp_path_factory.mktemp("recorded")
    (recording,) = (each for each in RECORDINGS if each.name == "dbz35-default")
    landed_recording(recording, folder)
    return [log.parent for log in sorted(folder.glob("lake/live*/*/_delta_log"))]


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_see_every_table_of_a_recording(reader: str, recorded: list[Path]) -> None:
    assert 20 < len(recorded)
    for path, table in zip(recorded, READERS[reader](recorded)):
        assert comparable(DeltaTable(path).to_pyarrow_table()) == comparable(table), path


def comparable(table: pa.Table) -> list[str]:
    """Rows in one order, with moments in one time zone."""
    return sorted(
        repr([(n, v.astimezone(UTC) if getattr(v, "tzinfo", None) else v) for n, v in row.items()])
        for row in table.to_pylist()
    )


def without_own(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the columns that Headgate adds."""
    return {name: value for name, value in row.items() if not name.startswith("_")}
