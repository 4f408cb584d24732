"""What the measurements share: the session, the files, the taking of turns, the tables."""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import messages
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import headgate
from headgate.spark.session import SETTINGS, sockets

ROOT = Path(__file__).resolve().parent.parent
# Test servers; behind bench, because both have a module `messages`.
sys.path.append(str(ROOT / "tests" / "support"))
FILES = ROOT / ".cache" / "bench"
CORES = 2
DRIVER_MEMORY = "4g"
PARTITION = "64m"
"""Ten tasks per file; with the default of 128 MB there are five, and one core idles at the end."""
MESSAGES = 1_000_000
FLINK_AIM = 2.0
SAMPLE = 300
"""Messages of the small file that is compared row by row, and whose time is a job's start-up."""

TABLE = "shop.orders"
COLUMNS = """id BIGINT, customer_id INT, status STRING, amount DECIMAL(12,2), note STRING,
created_at TIMESTAMP_NTZ, weight DOUBLE"""
FLINK_COLUMNS = COLUMNS.replace("TIMESTAMP_NTZ", "TIMESTAMP(3)")
FLINK_FORMATS = {
    "canal-json": "canal-json",
    "debezium": "debezium-json",
    "maxwell": "maxwell-json",
}
KINDS = {"insert": "+I", "update_preimage": "-U", "update_postimage": "+U", "delete": "-D"}

Row = tuple[str | None, ...]
"""Flink's row kind, then the seven values as text."""


@dataclass
class Figures:
    """What was seen of one format, or of one conversion."""

    name: str
    messages: int
    bytes: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    startup: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of the same work over SAMPLE messages: what a job costs before it reads."""
    remarks: list[str] = field(default_factory=list)

    def remark(self, text: str) -> None:
        self.remarks.append(text)
        print(f"  ! {text}", flush=True)

    def speed(self, work: str) -> float | None:
        return self.messages / median(self.seconds[work]) if self.seconds.get(work) else None

    def ratio(self, work: str, other: str) -> float | None:
        a, b = self.speed(work), self.speed(other)
        return a / b if a and b else None

    def sustained(self, work: str) -> float | None:
        """Messages a second, without what a job costs before it reads."""
        if not (self.seconds.get(work) and self.startup.get(work)):
            return None
        net = median(self.seconds[work]) - median(self.startup[work])
        return self.messages / net if net > 0 else None

    def net_ratio(self, work: str, other: str = "flink") -> float | None:
        """A work against another, by default Flink, each less its own job start-up."""
        a, b = self.sustained(work), self.sustained(other)
        return a / b if a and b else None

    def cells(self, work: str) -> list[str]:
        """Median speed, slowest to fastest, MB/s; empty where it was not measured."""
        speed = self.speed(work)
        if speed is None:
            return [""] * 3
        slowest, fastest = max(self.seconds[work]), min(self.seconds[work])
        return [
            f"{speed:,.0f}",
            f"{self.messages / slowest / 1e3:.0f} to {self.messages / fastest / 1e3:.0f} k",
            f"{speed * self.bytes / self.messages / 1e6:.1f}",
        ]

    def startup_cells(self, work: str) -> list[str]:
        """Start-up of Spark and of Flink, and the ratio of what is left."""
        net = self.net_ratio(work)
        return [
            f"{median(self.startup[work]):.2f} s",
            f"{median(self.startup['flink']):.2f} s",
            times(net),
        ]


def startup_table(results: list[Figures], work: str) -> list[list[str]]:
    """The start-up of a work, where Flink has it too."""
    return [
        [figures.name, *figures.startup_cells(work)]
        for figures in results
        if figures.startup.get(work) and figures.startup.get("flink")
    ]


OTHERS = {
    "headgate": "one table",
    "bare": "the bare loop",
    "loop": "the bare loop",
    "debezium": "Debezium",
    "jdbc": "JDBC",
}
"""What else than Flink a work is judged by."""


@dataclass
class Bar:
    """What a work must reach, and what it reached; None when a side of it was not measured."""

    work: str
    wanted: float
    reached: float | None
    other: str

    def __str__(self) -> str:
        of_flink = self.other == "flink"
        other = OTHERS.get(self.other, "ceiling")
        name = f"{self.wanted} x Flink" if of_flink else f"{self.wanted:.0%} of {other}"
        if self.reached is None:
            return f"not measured: {name}"
        above = of_flink and self.reached >= FLINK_AIM > self.wanted
        aim = f", reaches {FLINK_AIM:g} x" if above else ""
        return f"{'holds' if self.holds else 'MISSED'}: {name}{aim}"

    @property
    def holds(self) -> bool:
        return self.reached is not None and self.reached >= self.wanted


def times(ratio: float | None) -> str:
    return f"{ratio:.2f} x" if ratio else ""


Works = dict[str, Callable[[], float]]
"""Each work by its name, as what does it once and says the seconds it took."""


def take_turns(
    figures: Figures, works: Works, startups: Works, rounds: int, labels: dict[str, str]
) -> None:
    """Every work once unmeasured and then so many times; a failure is reported and left out."""
    for round in range(rounds + 1):
        for kept, some in ((figures.seconds, works), (figures.startup, startups)):
            for work, run in list(some.items()):
                try:
                    taken = run()
                except Exception as error:
                    del some[work]
                    kept.pop(work, None)
                    figures.remark(f"{labels[work]} failed: {first_line(error)}")
                    continue
                if round:
                    kept.setdefault(work, []).append(taken)
                if kept is figures.seconds:
                    name = f"round {round}" if round else "warm-up"
                    speed = f"{figures.messages / taken:>11,.0f} messages/s"
                    print(f"  {name:8} {labels[work]:31} {speed}", flush=True)


def start_spark(settings: dict[str, str] | None = None) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .appName("headgate bench")
        .config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.sql.files.maxPartitionBytes", PARTITION)
        .config(map={**SETTINGS, **sockets("local"), **(settings or {})})
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def stop_spark(spark: SparkSession) -> None:
    """End the session, and its JVM, which a new one would go on in."""
    spark.stop()
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None


def generated(format: str, count: int) -> Path:
    """The file of that many messages, written unless this generator already wrote it."""
    of = hashlib.sha1(Path(messages.__file__).read_bytes()).hexdigest()[:8]
    suffix = "parquet" if format == "open-protocol" else "jsonl"
    name = format.replace(":", "-")
    path = FILES / f"{name}-{count}-{of}.{suffix}"
    if not path.exists():
        for stale in FILES.glob(f"{name}-{count}-????????.{suffix}"):
            stale.unlink()
        messages.write(format, path, count)
    return path


def read(spark: SparkSession, format: str, path: Path) -> DataFrame:
    if format == "open-protocol":
        return spark.read.parquet(str(path))
    return spark.read.text(str(path))


def source(spark: SparkSession, format: str, path: Path) -> DataFrame:
    """What the ceiling and Headgate both receive: Kafka's columns, or `value` alone, binary."""
    df = read(spark, format, path)
    return df if format == "open-protocol" else df.select(F.col("value").cast("binary"))


def typed_rows(df: DataFrame, format: str) -> DataFrame:
    return headgate.rows(headgate.decode(df, format=format), TABLE, schema=COLUMNS)


def collected(rows: DataFrame) -> list[Row]:
    """Typed rows as Flink's side gives them."""
    names = StructType.fromDDL(COLUMNS).names
    return [
        (KINDS.get(row["_change_type"]), *(v if v is None else str(v) for v in row[:-1]))
        for row in rows.select(*names, "_change_type").collect()
    ]


def difference(actual: Iterable[Row], expected: Iterable[Row]) -> str:
    """How rows differ from those that the messages stand for; empty when they do not."""
    got, wanted = Counter(actual), Counter(expected)
    missing, extra = wanted - got, got - wanted
    if not missing and not extra:
        return ""
    return (
        f"{missing.total()} of {wanted.total()} rows missing, {extra.total()} unexpected; "
        f"missing e.g. {next(iter(missing), None)}, unexpected e.g. {next(iter(extra), None)}"
    )


def timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


RIGHT = {
    "p50",
    "p99",
    "sent/s",
    "messages/s",
    "changes/s",
    "slowest to fastest",
    "MB/s",
    "of ceiling",
    "of Flink",
    "of the loop",
    "Spark",
    "Flink",
}


def plain(head: list[str], lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *lines)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if name in RIGHT else cell.ljust(width)
            for name, cell, width in zip(head, line, widths)
        ).rstrip()
        for line in (head, *lines)
    )


def markdown(head: list[str], lines: list[list[str]]) -> str:
    rule = ["---:" if name in RIGHT else "---" for name in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines))
