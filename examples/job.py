"""The demo's job: half a feed, then all of it, as a producer that was restarted sends it.

The job runs twice on directories that stand in for topics. The second run finds every message of
the first half once more, and recognises it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import headgate
from headgate.config.reader import load_job
from headgate.pipeline.run import run
from headgate.pipeline.status import Status
from headgate.sources.message_files import expand, read, splits

FEED = "canal-json.ticdc.jsonl"
JOB = Path(__file__).with_name("job.yaml")


@dataclass
class Outcome:
    """What the two runs reported, and what they wrote."""

    first: Status
    second: Status
    written: DataFrame


def run_twice(spark: SparkSession, folder: Path, place: Path) -> Outcome:
    """Run the job on half of a feed, then on all of it."""
    shutil.copy(JOB, place)
    (place / "in").mkdir()
    lines = (folder / FEED).read_bytes().splitlines(keepends=True)
    job = load_job(str(place / JOB.name))
    (place / "in" / "1.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    first = run(job, once=True, spark=spark)
    (place / "in" / "2.jsonl").write_bytes(b"".join(lines))
    second = run(job, once=True, spark=spark)
    return Outcome(first, second, events(spark, place / "out"))


def events(spark: SparkSession, out: Path) -> DataFrame:
    """The changes in what the job wrote, numbered in the order of the files."""
    batches = [b for file in expand([str(out)]) for split in splits(file) for b in read(split)]
    messages = pa.Table.from_batches(batches).select(["key", "value", "topic"])
    count = messages.num_rows
    placed = messages.append_column("partition", pa.array([0] * count, pa.int32()))
    placed = placed.append_column("offset", pa.array(range(count), pa.int64()))
    return headgate.decode(spark.createDataFrame(placed).coalesce(1), "debezium")
