"""The demo's lake: the shop's tables in Delta, with an ALTER on the way, and compared in the end.

The job runs on what came before the statement, and then on the rest.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from examples.shop import DATABASE, KEY, TABLES
from headgate.config.reader import load_job
from headgate.pipeline.run import run
from headgate.verification.api import verify_job
from headgate.verification.report import Verification
from headgate.verification.run import Wanted

FEED = "canal-json.ticdc.jsonl"
JOB = Path(__file__).with_name("lake.yaml")
STATEMENT = b'"isDdl":true'


@dataclass
class Lake:
    """The landed tables before the statement and in the end, and what verification says."""

    before: dict[str, pa.Table]
    after: dict[str, pa.Table]
    verification: Verification


def land(spark: SparkSession, folder: Path, place: Path) -> Lake:
    """Land the feed up to its ALTER, then the rest, and compare the lake with the messages."""
    shutil.copy(JOB, place)
    (place / "in").mkdir()
    (place / "schema.sql").write_text(schema())
    lines = (folder / FEED).read_bytes().splitlines(keepends=True)
    cut = next(n for n, line in enumerate(lines) if STATEMENT in line)
    job = load_job(str(place / JOB.name))
    seen = []
    for number, part in enumerate((lines[:cut], lines[cut:])):
        (place / "in" / f"{number}.jsonl").write_bytes(b"".join(part))
        run(job, once=True, spark=spark)
        seen.append(tables(place / "lake"))
    return Lake(*seen, verify_job(job, Wanted()))


def schema() -> str:
    """The shop's tables before the ALTER."""
    return "".join(
        f"CREATE TABLE {DATABASE}.{table} ("
        + ", ".join(f"{name} {type_}" for name, type_ in columns.items())
        + f", PRIMARY KEY ({KEY}));\n"
        for table, columns in TABLES.items()
    )


def tables(lake: Path) -> dict[str, pa.Table]:
    """The landed tables, without the column that Headgate adds."""
    landed = {name: DeltaTable(lake / DATABASE / name).to_pyarrow_table() for name in TABLES}
    return {name: rows.drop_columns(["_position"]).sort_by(KEY) for name, rows in landed.items()}


def wrong_rows(landed: pa.Table, truth: Mapping[Any, Mapping[str, Any]]) -> int:
    """How many rows of a landed table are not the truth's."""
    rows = {row[KEY]: {n: without_zone(v) for n, v in row.items()} for row in landed.to_pylist()}
    return sum(rows.get(key) != truth.get(key) for key in rows.keys() | truth.keys())


def without_zone(value: Any) -> Any:
    """A value as the truth has it: a TIMESTAMP is a time in UTC."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
