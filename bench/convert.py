"""How fast Headgate converts one format to another, files to files, beside Flink SQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import messages
from flink import Flink
from harness import (
    COLUMNS,
    FILES,
    FLINK_COLUMNS,
    FLINK_FORMATS,
    SAMPLE,
    Bar,
    Figures,
    Row,
    Works,
    collected,
    difference,
    first_line,
    generated,
    markdown,
    read,
    source,
    startup_table,
    take_turns,
    timed,
    times,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate
from headgate.cli.on_spark import write_records
from headgate.fastpath.convert import converter

OUT = FILES / "converted"
BAR = 2.0
LABELS = {
    "headgate": "headgate convert",
    "frames": "headgate.encode(headgate.decode)",
    "flink": "Flink SQL, INSERT INTO … SELECT",
}
SEEN_AS = {"-U": "-D", "+U": "+I"}
"""Flink writes an update as the row that goes and the row that comes."""


@dataclass(frozen=True)
class Pair:
    """A conversion: from which format to which, and how Headgate is told to write."""

    source: str
    target: str
    options: dict[str, Any] = field(default_factory=dict)
    flink: bool = False
    """Whether Flink does it too."""

    @property
    def name(self) -> str:
        return f"{self.source} → {self.target}"


DEBEZIUM = {
    "schemas_enable": False,
    "decimal_handling_mode": "string",
    "tombstones_on_delete": False,
}
PAIRS = (
    Pair("canal-json", "debezium", DEBEZIUM, flink=True),
    Pair("canal-json:ticdc", "debezium", DEBEZIUM),
    Pair("debezium", "canal-json", flink=True),
    Pair("canal-json", "open-protocol"),
    Pair("maxwell", "canal-json"),
)


def emptied(side: str) -> Path:
    """A directory to write to, without what an earlier round wrote."""
    path = OUT / side
    shutil.rmtree(path, ignore_errors=True)
    return path


def headgate_run(spark: SparkSession, pair: Pair, path: Path, out: Path) -> None:
    """What `headgate convert` does on Spark, in this warm session."""
    lines = pair.target != "open-protocol"
    make = partial(converter, pair.source, {}, pair.target, pair.options)
    write_records([str(path)], None, str(out), lines, None, make)


def frames_run(spark: SparkSession, pair: Pair, path: Path, out: Path) -> None:
    """The same by DataFrames: each message a row of Spark's, in and out."""
    events = headgate.decode(read(spark, pair.source, path), format=pair.source)
    records = headgate.encode(events, pair.target, **pair.options)
    if pair.target == "open-protocol":
        records.write.parquet(str(out))
    else:
        records.select(F.col("value").cast("string")).write.text(str(out))


Run = Callable[[SparkSession, Pair, Path, Path], None]


def headgate_work(
    spark: SparkSession, pair: Pair, path: Path, runs: Run = headgate_run
) -> Callable[[], float]:
    def run() -> float:
        out = emptied("headgate")
        return timed(lambda: runs(spark, pair, path, out))

    return run


def flink_work(flink: Flink, pair: Pair, path: Path) -> Callable[[], float]:
    def run() -> float:
        flink.define("source", FLINK_COLUMNS, path, FLINK_FORMATS[pair.source])
        flink.define("sink", FLINK_COLUMNS, emptied("flink"), FLINK_FORMATS[pair.target])
        return flink.execute("INSERT INTO sink SELECT * FROM source")

    return run


def read_by_flink(flink: Flink, format: str, path: Path) -> list[Row]:
    """What Headgate wrote, as Flink reads it: a DATETIME of Debezium is milliseconds."""
    columns = FLINK_COLUMNS
    created_at = "created_at"
    if format == "debezium":
        columns = columns.replace("created_at TIMESTAMP(3)", "created_at BIGINT")
        created_at = "CAST(TO_TIMESTAMP_LTZ(created_at, 3) AS TIMESTAMP(3))"
    flink.define("converted", columns, path, FLINK_FORMATS[format])
    return flink.rows(
        f"SELECT id, customer_id, status, amount, note, {created_at}, weight FROM converted"
    )


def read_by_headgate(spark: SparkSession, format: str, path: Path) -> list[Row]:
    events = headgate.decode(source(spark, format, path), format=format)
    named = events.withColumn("table", F.lit("orders"))  # which Flink does not write
    return collected(headgate.rows(named, "orders", schema=COLUMNS))


def check(spark: SparkSession, flink: Flink | None, figures: Figures, pair: Pair) -> None:
    """What each side wrote of the sample, read by the other, is what the messages meant."""
    sample = generated(pair.source, SAMPLE)
    expected = list(messages.expected_rows(pair.source, SAMPLE))
    for runs in (headgate_run, frames_run):
        try:
            headgate_work(spark, pair, sample, runs)()
            if flink and pair.target in FLINK_FORMATS:
                rows = read_by_flink(flink, pair.target, OUT / "headgate")
            else:
                rows = read_by_headgate(spark, pair.target, OUT / "headgate")
            if wrong := difference(rows, expected):
                figures.remark(f"what Headgate wrote differs from the messages: {wrong}")
        except Exception as error:
            figures.remark(f"Headgate's conversion of the sample failed: {first_line(error)}")
    if flink and pair.flink:
        try:
            flink_work(flink, pair, sample)()
            rows = read_by_headgate(spark, pair.target, OUT / "flink")
            seen = [(SEEN_AS.get(kind, kind), *values) for kind, *values in expected]
            if wrong := difference(rows, seen):
                figures.remark(f"what Flink wrote differs from the messages: {wrong}")
        except Exception as error:
            figures.remark(f"Flink's conversion of the sample failed: {first_line(error)}")


def measure(
    spark: SparkSession, flink: Flink | None, pair: Pair, count: int, rounds: int
) -> Figures:
    path, sample = generated(pair.source, count), generated(pair.source, SAMPLE)
    figures = Figures(pair.name, count, messages.message_bytes(pair.source, path, count))
    print(f"\n{pair.name}: {count:,} messages of {figures.bytes / count:.0f} bytes", flush=True)
    works: Works = {
        "headgate": headgate_work(spark, pair, path),
        "frames": headgate_work(spark, pair, path, frames_run),
    }
    startups: Works = {}
    if flink and pair.flink:
        works["flink"] = flink_work(flink, pair, path)
        startups["headgate"] = headgate_work(spark, pair, sample)
        startups["flink"] = flink_work(flink, pair, sample)
    take_turns(figures, works, startups, rounds, LABELS)
    check(spark, flink, figures, pair)  # last, when the workers do what they did in the rounds
    shutil.rmtree(OUT, ignore_errors=True)
    return figures


BARRED = {pair.name for pair in PAIRS if pair.flink}


def bars(figures: Figures) -> list[Bar]:
    if figures.name not in BARRED:
        return []
    return [Bar("headgate", BAR, figures.ratio("headgate", "flink"), "flink")]


HEAD = ["conversion", "by", "messages/s", "slowest to fastest", "MB/s", "of Flink", "bar"]


def table(results: list[Figures]) -> list[list[str]]:
    lines = []
    for figures in results:
        (judged,) = map(str, bars(figures) or [""])
        for work, bar in (("headgate", judged), ("frames", "")):
            of_flink = times(figures.ratio(work, "flink"))
            lines.append([figures.name, LABELS[work], *figures.cells(work), of_flink, bar])
        if figures.name in BARRED:
            lines.append([figures.name, LABELS["flink"], *figures.cells("flink"), "", ""])
    return lines


STARTUP_HEAD = ["conversion", "Spark", "Flink", "of Flink, each less its start-up"]


def section(results: list[Figures], rounds: int) -> list[str]:
    remarks = [f"- {r.name}: {remark}" for r in results for remark in r.remarks]
    right = ", ".join(r.name for r in results if not r.remarks)
    remarks.append(
        "- What each side wrote was read back, by the other side where it can, and gave exactly "
        f"the rows that the generator meant, on a sample of {SAMPLE} messages: "
        f"{right or 'no conversion'}."
    )
    parts = [
        "## Conversion",
        markdown(HEAD, table(results)),
        "\n".join(remarks),
        f"Files to files: the same {results[0].messages:,} messages per format as above, "
        f"converted once unmeasured and then {rounds} times, the two sides in turn; the median "
        "counts. Speeds and MB are of the messages read. A time is that of a whole job, files "
        "written and start-up included. `headgate convert` is the command's work on Spark in a "
        "warm session; beside it, the same by DataFrames, `spark.read.text` to `write.text`, where "
        "each message is a row of Spark's. Both write lines of text and, for open-protocol, which "
        "is binary, Parquet; Flink reads and writes with its filesystem connector: `INSERT INTO "
        "sink SELECT * FROM source`.",
        "The two sides do not do the same work. Flink writes rows: no database, table, types, "
        "times or positions, and an update as a delete and an insert, so it writes four messages "
        "for three and each is shorter. Headgate writes the message that the format's own "
        "producer would write, with all of these that the source carries. debezium is without "
        "schemas (`schemas-enable=false`) on both sides, because Flink writes none, with "
        "`decimal-handling-mode=string`, and without tombstones, which are no lines.",
        f"Bar: at least {BAR:g} x Flink on "
        + " and ".join(pair.name for pair in PAIRS if pair.flink)
        + "; Flink has no open-protocol.",
    ]
    if startups := startup_table(results, "headgate"):
        parts += [
            "### Start-up of a conversion",
            f"The same conversions of {SAMPLE} messages; the last column leaves both start-ups "
            "out, as above.",
            markdown(STARTUP_HEAD, startups),
        ]
    return parts
