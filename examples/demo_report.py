"""What the demo computes: every feed decoded, converted, run through a job, landed, and compared.

All of it is compared with the truth, the tables as `examples/make_feed.py` meant them.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headgate
from examples.capture import Captured, capture
from examples.job import FEED as JOB_FEED
from examples.job import Outcome, run_twice
from examples.lake import Lake, land, wrong_rows
from examples.ring import START, Hop, around, decoded
from headgate.sources.message_files import Split, read

TRUTH = -1
TABLES = {
    "customers": "id BIGINT, name STRING, email STRING, points DECIMAL(20,0), avatar BINARY, "
    "created_at TIMESTAMP_NTZ, tier STRING",
    "orders": "id BIGINT, customer_id BIGINT, status STRING, total DECIMAL(20,4), note STRING, "
    "placed_at TIMESTAMP_NTZ, shipped_at TIMESTAMP_NTZ",
    "payments": "id BIGINT, order_id BIGINT, amount DECIMAL(20,4), method STRING, token BINARY, "
    "reference DECIMAL(20,0), paid_at TIMESTAMP_NTZ",
}
# What a Debezium or Maxwell message does not say of its columns.
COLUMNS = (
    "points BIGINT UNSIGNED, avatar VARBINARY(16), created_at DATETIME, total DECIMAL(20,4), "
    "placed_at DATETIME(3), shipped_at DATETIME, amount DECIMAL(20,4), token VARBINARY(16), "
    "reference BIGINT UNSIGNED, paid_at TIMESTAMP(3)"
)
# A bare row of OMS looks like one of Debezium and names no table, so both have to be named.
NAMED = {"debezium-smt.oms.parquet": "debezium-smt:oms"}
CLOCK = r"^[0-9]+([.][0-9]+)?$"
Rows = dict[int, dict[int, tuple[Any, ...]]]


@dataclass
class Report:
    """What the demo found; `agrees` is the verdict."""

    files: list[str]
    messages: int = 0
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    wrong: dict[str, dict[str, int]] = field(default_factory=dict)
    texts: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    dead: list[dict[str, Any]] = field(default_factory=list)
    expected_dead: list[dict[str, Any]] = field(default_factory=list)
    hops: list[Hop] = field(default_factory=list)
    wrong_after_ring: dict[str, int] = field(default_factory=dict)
    job: Outcome | None = None
    wrong_after_job: dict[str, int] = field(default_factory=dict)
    lake: Lake | None = None
    wrong_in_lake: dict[str, int] = field(default_factory=dict)
    captured: Captured | None = None

    @property
    def dead_as_expected(self) -> bool:
        """Whether the dead letters are the damaged messages and nothing else."""
        actual, expected = (
            sorted((each["file"], each["line"], each["code"]) for each in dead_letters)
            for dead_letters in (self.dead, self.expected_dead)
        )
        return actual == expected and all(each["whole"] for each in self.dead)

    @property
    def agrees(self) -> bool:
        """Whether every table of every dialect is the truth, and every dead letter expected."""
        compared = [n for tables in self.wrong.values() for n in tables.values()]
        complete = len(compared) == len(self.files) * len(TABLES) > 0
        same = complete and not any(compared) and self.dead_as_expected
        agrees = self.ring_agrees and self.job_agrees and self.lake_agrees
        return same and agrees and self.captured_agrees

    @property
    def ring_agrees(self) -> bool:
        """Whether the feed that went through every dialect still gives the truth."""
        return not any(self.wrong_after_ring.values())

    @property
    def job_agrees(self) -> bool:
        """Whether the job wrote every change once."""
        return not any(self.wrong_after_job.values())

    @property
    def captured_agrees(self) -> bool:
        """Whether the captured tables are the database's."""
        return self.captured is None or self.captured.agrees

    @property
    def lake_agrees(self) -> bool:
        """Whether the landed tables are the truth, and verification says so too."""
        verified = self.lake is None or self.lake.verification.equal
        return verified and not any(self.wrong_in_lake.values())


def feed_files(folder: Path) -> list[str]:
    """The files of messages, in name order."""
    return sorted(p.name for p in folder.iterdir() if p.suffix in (".jsonl", ".parquet"))


def load(folder: Path, files: list[str]) -> pa.Table:
    """All messages in Kafka's columns; the partition is the file, the offset is the line."""
    parts = []
    for number, file in enumerate(files):
        messages = pa.Table.from_batches(read(Split(str(folder / file))))
        count = messages.num_rows
        columns = {n: messages[n] for n in ("key", "value", "topic") if n in messages.column_names}
        columns.setdefault("key", pa.nulls(count, pa.binary()))
        columns.setdefault("topic", pa.array(["shop"] * count))
        columns["partition"] = pa.array([number] * count, pa.int32())
        columns["offset"] = pa.array(range(1, count + 1), pa.int64())
        names = ["key", "value", "topic", "partition", "offset"]
        parts.append(pa.table({n: columns[n] for n in names}))
    return pa.concat_tables(parts)


def decode(messages: DataFrame, files: list[str]) -> DataFrame:
    """Every message as change events; the format is detected, but where it has to be named."""
    named = [number for number, file in enumerate(files) if file in NAMED]
    rest = messages.where(~F.col("partition").isin(named)) if named else messages
    parts = [headgate.decode(rest, "auto", columns=COLUMNS)]
    for number in named:
        for table in TABLES:
            some = messages.where((F.col("partition") == number) & (F.col("topic") == table))
            spec = NAMED[files[number]]
            parts.append(headgate.decode(some, spec, columns=COLUMNS, database="shop", table=table))
    return reduce(DataFrame.unionByName, parts)


def fold(events: DataFrame) -> DataFrame:
    """Each file's tables in the end: the last image of every row that is still there."""
    image = F.coalesce("after", "before")
    changes = events.where("kind = 'row'").select(
        F.col("origin.partition").alias("file"),
        "database",
        "table",
        image.getItem("id").alias("id"),
        F.struct(
            F.col("origin.offset").alias("offset"),
            F.coalesce(F.col("position").getItem("row").cast("int"), F.lit(0)).alias("row"),
        ).alias("at"),
        F.struct("op", image.alias("image")).alias("change"),
    )
    last = changes.groupBy("file", "database", "table", "id").agg(
        F.max_by("change", "at").alias("last")
    )
    return last.where("last.op <> 'delete'").select(
        "file", "database", "table", F.col("last.image").alias("image")
    )


def read_truth(spark: SparkSession, folder: Path) -> DataFrame:
    """The tables as the writer of the feed left them, as one more file."""
    tables = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    rows = [(TRUTH, "shop", table, row) for table, rows in tables.items() for row in rows]
    schema = "file int, database string, table string, image map<string, string>"
    return spark.createDataFrame(rows, schema)


def typed(state: DataFrame, table: str) -> DataFrame:
    """One table of every file, typed by `headgate.rows`; the file travels as one more column."""
    # Where no types came with the messages, a TIMESTAMP is what OMS sends: seconds since the epoch.
    seconds = f"""
        transform_values(image, (name, text) -> IF(name = 'paid_at' AND text RLIKE '{CLOCK}',
            CAST(timestamp_seconds(CAST(text AS DECIMAL(20, 6))) AS STRING), text))
    """
    images = state.select(
        F.lit("row").alias("kind"),
        F.lit("insert").alias("op"),
        "database",
        "table",
        F.lit(None).cast("map<string,string>").alias("before"),
        F.map_concat(
            F.expr(seconds), F.create_map(F.lit("_file"), F.col("file").cast("string"))
        ).alias("after"),
        F.lit(None).cast("bigint").alias("commit_ts"),
        F.lit(None).cast("timestamp").alias("event_time"),
    )
    return headgate.rows(images, f"shop.{table}", f"_file INT, {TABLES[table]}")


def by_file(rows: list[Any]) -> Rows:
    """Typed rows by file and id; what did not fit its type is part of the row, so it differs."""
    files: Rows = defaultdict(dict)
    for row in rows:
        columns = [n for n in row.asDict() if n == "_misfits" or not n.startswith("_")]
        files[row["_file"]][row["id"]] = tuple(row[n] for n in columns)
    return files


def differences(rows: Rows, number: int) -> int:
    """How many rows of a file's table are not the truth's."""
    file_rows, true = rows.get(number, {}), rows.get(TRUTH, {})
    return sum(file_rows.get(key) != true.get(key) for key in file_rows.keys() | true.keys())


def other_texts(state: list[Any], number: int) -> dict[str, tuple[str, str]]:
    """Columns whose text is not the truth's character by character: (truth's, decoded)."""
    images = {(r["file"], r["table"], r["image"]["id"]): r["image"] for r in state}
    texts: dict[str, tuple[str, str]] = {}
    for (file, table, key), true in images.items():
        mine = images.get((number, table, key), {}) if file == TRUTH else {}
        for name in mine:
            if mine[name] != true.get(name):
                texts.setdefault(name, (true.get(name), mine[name]))
    return texts


def compare(report: Report, state: DataFrame) -> None:
    """Note, per file and table, how many rows differ from the truth."""
    for table in TABLES:
        rows = by_file(typed(state, table).collect())
        for number, file in enumerate(report.files):
            report.wrong.setdefault(file, {})[table] = differences(rows, number)
    texts = state.collect()
    report.texts = {file: other_texts(texts, n) for n, file in enumerate(report.files)}


def count_kinds(report: Report, events: DataFrame) -> None:
    """Count events by file and kind."""
    report.kinds = {file: {} for file in report.files}
    for number, kind, n in events.groupBy("origin.partition", "kind").count().collect():
        report.kinds[report.files[number]][kind] = n


def note_dead(report: Report, events: DataFrame, messages: pa.Table) -> None:
    """List the dead letters, and whether each still has the bytes of its message."""
    invalid_events = events.where("kind = 'invalid'").select("origin.*", "error.*", "raw")
    for row in invalid_events.orderBy("partition", "offset").collect():
        report.dead.append(
            {
                "file": report.files[row["partition"]],
                "line": row["offset"],
                "code": row["code"],
                "message": row["message"],
                "whole": bytes(row["raw"]) == sent(messages, row["partition"], row["offset"]),
            }
        )


def sent(messages: pa.Table, number: int, line: int) -> bytes | None:
    """The value of the message on a line of a file."""
    lines = messages.filter((pc.field("partition") == number) & (pc.field("offset") == line))
    value: bytes | None = lines["value"][0].as_py()
    return value


def go_round(report: Report, messages: DataFrame, spark: SparkSession, folder: Path) -> None:
    """Convert one file through every dialect and back, and compare its tables with the truth."""
    file = "canal-json.canal.jsonl"
    if file not in report.files:
        return
    number = report.files.index(file)
    report.hops, back = around(messages.where(F.col("partition") == number))
    placed = back.withColumn("partition", F.lit(number)).withColumn(
        "offset", F.monotonically_increasing_id()
    )
    rows = fold(decoded(placed, START))
    report.wrong_after_ring = wrong_tables(rows, number, spark, folder)


def wrong_tables(rows: DataFrame, number: int, spark: SparkSession, folder: Path) -> dict[str, int]:
    """Of each table, how many of the rows of a feed are not as they are in truth."""
    state = rows.unionByName(read_truth(spark, folder)).cache()
    wrong = {table: differences(by_file(typed(state, table).collect()), number) for table in TABLES}
    state.unpersist()
    return wrong


def run_job(report: Report, spark: SparkSession, folder: Path) -> None:
    """Run a job twice on one feed, and compare the tables of what it wrote with the truth."""
    if JOB_FEED not in report.files:
        return
    with tempfile.TemporaryDirectory() as place:
        report.job = run_twice(spark, folder, Path(place))
        report.wrong_after_job = wrong_tables(fold(report.job.written), 0, spark, folder)


def fill_lake(report: Report, spark: SparkSession, folder: Path) -> None:
    """Land one feed in Delta tables, and compare them with the truth."""
    if JOB_FEED not in report.files:
        return
    with tempfile.TemporaryDirectory() as place:
        report.lake = land(spark, folder, Path(place))
    truth = read_truth(spark, folder)
    for table, landed in report.lake.after.items():
        rows = typed(truth, table).select(*landed.column_names).collect()
        true = {row["id"]: row.asDict() for row in rows}
        report.wrong_in_lake[table] = wrong_rows(landed, true)


def capture_shop(report: Report, spark: SparkSession) -> None:
    """Capture a database, where one can be had."""
    if JOB_FEED not in report.files:
        return
    with tempfile.TemporaryDirectory() as place:
        report.captured = capture(spark, Path(place))
