"""`make bench`: how fast Headgate decodes, beside Spark's own floors and Flink, in one run.

One Spark session with two cores and one warm Flink process with parallelism 2 take turns over the
same files. Each work is done once unmeasured and then --rounds times; the median counts. A missed
bar is said, never an error.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter

import messages
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import headgate

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
CACHE = ROOT / ".cache"
CORES = 2
DRIVER_MEMORY = "4g"
PARTITION = "64m"
"""Ten tasks per file; with the default of 128 MB there are five, and one core idles at the end."""
MESSAGES = 1_000_000
SAMPLE = 300
"""Messages of the small file that is compared row by row, and whose time is a job's start-up."""

TABLE = "shop.orders"
COLUMNS = """id BIGINT, customer_id INT, status STRING, amount DECIMAL(12,2), note STRING,
created_at TIMESTAMP_NTZ, weight DOUBLE"""

FLINK_FORMATS = {
    "canal-json": "canal-json",
    "debezium": "debezium-json",
    "maxwell": "maxwell-json",
}
CEILING_BAR = 0.35
FLINK_BARS = {"canal-json": 1.3, "debezium": 1.2, "maxwell": 1.0}
FLINK_AIM = 2.0

IMAGE = "map<string,string>"
FROM_JSON = {
    "canal-json": f"data array<{IMAGE}>, old array<{IMAGE}>, mysqlType {IMAGE}, sqlType {IMAGE}, "
    "pkNames array<string>, database string, `table` string, type string, isDdl boolean, "
    "sql string, es bigint, ts bigint, id bigint, gtid string",
    "oms-default": f"prevStruct {IMAGE}, postStruct {IMAGE}, allMetaData {IMAGE}, "
    "recordType string",
    "dataworks": f"version string, schema struct<source: {IMAGE}, column: array<{IMAGE}>, "
    f"pk: array<string>>, payload struct<before: struct<data: {IMAGE}>, "
    f"after: struct<data: {IMAGE}>, op: string, timestamp: map<string,bigint>, ddl: {IMAGE}, "
    "scn: string>",
    "shareplex": f"data {IMAGE}, meta {IMAGE}, key {IMAGE}, sql {IMAGE}",
    "debezium": f"before {IMAGE}, after {IMAGE}, source {IMAGE}, op string, ts_ms bigint, "
    "ts_us bigint, ts_ns bigint",
    "debezium-smt": IMAGE,
    "maxwell": f"database string, `table` string, type string, ts bigint, xid bigint, "
    "commit boolean, position string, gtid string, server_id bigint, thread_id bigint, "
    "schema_id bigint, push_ts double, primary_key array<string>, "
    f"primary_key_columns array<string>, data {IMAGE}, old {IMAGE}",
}
"""Not the exact decode that Headgate does: the JVM's parse into maps, to compare with."""

LABELS = {
    "read": "read only",
    "ceiling": "identity mapInArrow (ceiling)",
    "from_json": "from_json into maps",
    "events": "headgate.decode to events",
    "rows": "headgate.rows, typed",
    "flink": "Flink, typed rows",
}
KINDS = {"insert": "+I", "update_preimage": "-U", "update_postimage": "+U", "delete": "-D"}


@dataclass
class Figures:
    """What was seen of one format."""

    format: str
    messages: int
    bytes: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    startup: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of the same work over SAMPLE messages: what a job costs before it reads."""
    remarks: list[str] = field(default_factory=list)

    def speed(self, work: str) -> float | None:
        return self.messages / median(self.seconds[work]) if self.seconds.get(work) else None

    def ratio(self, work: str, other: str) -> float | None:
        a, b = self.speed(work), self.speed(other)
        return a / b if a and b else None

    def net_ratio(self) -> float | None:
        """Rows against Flink, each less its own job start-up."""
        net = {}
        for work in ("rows", "flink"):
            if not (self.seconds.get(work) and self.startup.get(work)):
                return None
            net[work] = median(self.seconds[work]) - median(self.startup[work])
        return net["flink"] / net["rows"] if min(net.values()) > 0 else None


class Flink:
    """The warm process of flink.py."""

    def __init__(self, python: Path, log: Path):
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.process = subprocess.Popen(
            [str(python), str(ROOT / "bench" / "flink.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
        )
        hello = self.answer()
        self.version, self.java = hello["flink"], hello["java"]

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the Flink process ended; see {self.log}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def ask(self, command: str, format: str, path: Path) -> dict:
        self.process.stdin.write(f"{command} {FLINK_FORMATS[format]} {path}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        try:
            self.process.stdin.close()
            self.process.wait(timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


def flink_python(environment: Path) -> Path:
    """The interpreter of an environment with apache-flink, made when it is absent."""
    python = environment / "bin" / "python"
    if not python.exists() or subprocess.run([python, "-c", "import pyflink"]).returncode:
        print(f"installing apache-flink into {environment} (once, a few hundred MB) …", flush=True)
        subprocess.run(["python3", "-m", "venv", str(environment)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "apache-flink"], check=True)
    return python


def start_flink(environment: Path) -> tuple[Flink | None, str]:
    try:
        return Flink(flink_python(environment), CACHE / "bench" / "flink.log"), ""
    except (OSError, RuntimeError, subprocess.CalledProcessError, ValueError, KeyError) as error:
        return None, f"Flink could not be installed or started: {error}"


def start_spark() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .appName("headgate bench")
        .config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.sql.files.maxPartitionBytes", PARTITION)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def generated(format: str, count: int) -> Path:
    """The file of that many messages, written unless this generator already wrote it."""
    of = hashlib.sha1(Path(messages.__file__).read_bytes()).hexdigest()[:8]
    suffix = "parquet" if format == "open-protocol" else "jsonl"
    directory = CACHE / "bench"
    path = directory / f"{format}-{count}-{of}.{suffix}"
    if not path.exists():
        for stale in directory.glob(f"{format}-{count}-????????.{suffix}"):
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


def identity(df: DataFrame) -> DataFrame:
    return df.mapInArrow(lambda batches: batches, df.schema)


def typed_rows(df: DataFrame, format: str) -> DataFrame:
    return headgate.rows(headgate.decode(df, format=format), TABLE, schema=COLUMNS)


def plans(spark: SparkSession, format: str, path: Path) -> dict[str, Callable[[], DataFrame]]:
    """Each Spark work, as what makes its DataFrame; making it is measured too."""
    works = {
        "read": lambda: read(spark, format, path),
        "ceiling": lambda: identity(source(spark, format, path)),
        "events": lambda: headgate.decode(source(spark, format, path), format=format),
        "rows": lambda: typed_rows(source(spark, format, path), format),
    }
    if format in FROM_JSON:
        works["from_json"] = lambda: read(spark, format, path).select(
            F.from_json("value", FROM_JSON[format]).alias("message")
        )
    return {work: works[work] for work in LABELS if work in works}


def spark_seconds(plan: Callable[[], DataFrame]) -> float:
    start = perf_counter()
    plan().write.format("noop").mode("overwrite").save()
    return perf_counter() - start


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def difference(found: Iterable[Iterable[str | None]], format: str) -> str:
    """How the rows differ from those the messages stand for; empty when they do not."""
    got = Counter(tuple(row) for row in found)
    wanted = Counter(messages.expected_rows(format, SAMPLE))
    missing, extra = wanted - got, got - wanted
    if not missing and not extra:
        return ""
    return (
        f"{missing.total()} of {wanted.total()} rows missing, {extra.total()} unexpected; "
        f"missing e.g. {next(iter(missing), None)}, unexpected e.g. {next(iter(extra), None)}"
    )


def check(spark: SparkSession, flink: Flink | None, format: str, sample: Path) -> list[str]:
    """Both sides must give the rows that the generator meant, or their speed means nothing."""
    remarks = []
    try:
        df = source(spark, format, sample)
        events = headgate.decode(df, format=format).groupBy("kind", "error.code").count().collect()
        if [(row.kind, row["count"]) for row in events] != [("row", SAMPLE)]:
            remarks.append(f"of {SAMPLE} messages Headgate made {[tuple(row) for row in events]}")
        names = StructType.fromDDL(COLUMNS).names
        rows = (
            (KINDS.get(row["_change_type"]), *(v if v is None else str(v) for v in row[:-1]))
            for row in typed_rows(df, format).select(*names, "_change_type").collect()
        )
        if wrong := difference(rows, format):
            remarks.append(f"Headgate's rows differ from the messages': {wrong}")
    except Exception as error:
        remarks.append(f"Headgate could not decode the sample: {first_line(error)}")
    if flink and format in FLINK_FORMATS:
        try:
            if wrong := difference(flink.ask("rows", format, sample)["rows"], format):
                remarks.append(f"Flink's rows differ from the messages': {wrong}")
        except (OSError, RuntimeError, ValueError) as error:
            remarks.append(f"Flink could not read the sample: {first_line(error)}")
    return remarks


def measure(
    spark: SparkSession, flink: Flink | None, format: str, count: int, rounds: int
) -> Figures:
    path, sample = generated(format, count), generated(format, SAMPLE)
    figures = Figures(format, count, messages.message_bytes(format, path, count))
    print(f"\n{format}: {count:,} messages of {figures.bytes / count:.0f} bytes", flush=True)
    figures.remarks = check(spark, flink, format, sample)
    for remark in figures.remarks:
        print(f"  ! {remark}", flush=True)

    works: dict[str, Callable[[], float]] = {
        work: lambda plan=plan: spark_seconds(plan)
        for work, plan in plans(spark, format, path).items()
    }
    startups: dict[str, Callable[[], float]] = {}
    if flink and format in FLINK_FORMATS:
        works["flink"] = lambda: flink.ask("run", format, path)["seconds"]
        startups["flink"] = lambda: flink.ask("run", format, sample)["seconds"]
        small = plans(spark, format, sample)["rows"]
        startups["rows"] = lambda: spark_seconds(small)

    for round in range(rounds + 1):
        for kept, some in ((figures.seconds, works), (figures.startup, startups)):
            for work, run in list(some.items()):
                try:
                    taken = run()
                except Exception as error:
                    del some[work]
                    kept.pop(work, None)
                    figures.remarks.append(f"{LABELS[work]} failed: {first_line(error)}")
                    print(f"  ! {figures.remarks[-1]}", flush=True)
                    continue
                if round:
                    kept.setdefault(work, []).append(taken)
                if kept is figures.seconds:
                    name = f"round {round}" if round else "warm-up"
                    speed = f"{count / taken:>11,.0f} messages/s"
                    print(f"  {name:8} {LABELS[work]:31} {speed}", flush=True)
    return figures


@dataclass
class Bar:
    """What a work must reach, and what it reached; None when a side of it was not measured."""

    work: str
    wanted: float
    reached: float | None
    other: str

    def __str__(self) -> str:
        of_flink = self.other == "flink"
        name = f"{self.wanted} x Flink" if of_flink else f"{self.wanted:.0%} of ceiling"
        if self.reached is None:
            return f"not measured: {name}"
        aim = f", reaches {FLINK_AIM:g} x" if of_flink and self.reached >= FLINK_AIM else ""
        return f"{'holds' if self.holds else 'MISSED'}: {name}{aim}"

    @property
    def holds(self) -> bool:
        return self.reached is not None and self.reached >= self.wanted


def bars(figures: Figures) -> list[Bar]:
    found = [Bar("events", CEILING_BAR, figures.ratio("events", "ceiling"), "ceiling")]
    if bar := FLINK_BARS.get(figures.format):
        found.append(Bar("rows", bar, figures.ratio("rows", "flink"), "flink"))
    return found


def summary(results: list[Figures]) -> str:
    """The bars that do not hold, and how a run of fewer messages is to be read."""
    short = [f"{r.format} {bar}" for r in results for bar in bars(r) if not bar.holds]
    text = "Bars: " + ("; ".join(short) + "; the others hold." if short else "all hold.")
    if results[0].messages < MESSAGES:
        text += (
            f" This is a trial of {results[0].messages:,} messages: job start-up weighs more than"
            f" in a run of {MESSAGES:,}, for which the bars are set. Do not quote it."
        )
    return text


HEAD = ["format", "work", "messages/s", "slowest to fastest", "MB/s", "of ceiling", "of Flink"]
HEAD.append("bar")


def table(results: list[Figures]) -> list[list[str]]:
    lines = []
    for figures in results:
        judged = {bar.work: str(bar) for bar in bars(figures)}
        for work, label in LABELS.items():
            speed = figures.speed(work)
            if speed is None:
                if work in ("events", "rows") or (work == "flink" and figures.format in FLINK_BARS):
                    lines.append([figures.format, label, *[""] * 5, judged.get(work, "")])
                continue
            slowest, fastest = max(figures.seconds[work]), min(figures.seconds[work])
            of_ceiling = None if work == "flink" else figures.ratio(work, "ceiling")
            of_flink = figures.ratio(work, "flink") if work == "rows" else None
            lines.append(
                [
                    figures.format,
                    label,
                    f"{speed:,.0f}",
                    f"{figures.messages / slowest / 1e3:.0f} to "
                    f"{figures.messages / fastest / 1e3:.0f} k",
                    f"{speed * figures.bytes / figures.messages / 1e6:.1f}",
                    f"{of_ceiling:.0%}" if of_ceiling else "",
                    f"{of_flink:.2f} x" if of_flink else "",
                    judged.get(work, ""),
                ]
            )
    return lines


def startup_table(results: list[Figures]) -> list[list[str]]:
    return [
        [
            figures.format,
            f"{median(figures.startup['rows']):.2f} s",
            f"{median(figures.startup['flink']):.2f} s",
            f"{net:.2f} x" if (net := figures.net_ratio()) else "",
        ]
        for figures in results
        if figures.startup.get("rows") and figures.startup.get("flink")
    ]


STARTUP_HEAD = ["format", "Spark", "Flink", "rows of Flink, each less its start-up"]
RIGHT = {"messages/s", "slowest to fastest", "MB/s", "of ceiling", "of Flink", "Spark", "Flink"}


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


def machine() -> str:
    def of(path: str, name: str) -> str:
        try:
            lines = Path(path).read_text().splitlines()
        except OSError:
            return "unknown"
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "?")

    memory = of("/proc/meminfo", "MemTotal").split()[0]
    gib = f"{int(memory) / 2**20:.0f} GiB" if memory.isdigit() else "unknown"
    return f"{os.cpu_count()} cores, {gib} memory, {of('/proc/cpuinfo', 'model name')}"


def commit() -> str:
    """The commit, and whether src/ had changes beside it."""
    try:
        git = ["git", "-C", str(ROOT)]
        name = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True).strip()
        dirty = subprocess.check_output([*git, "status", "--porcelain", "src"], text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + (" with uncommitted changes" if dirty else "")


def page(results: list[Figures], facts: dict[str, str], rounds: int) -> str:
    count = results[0].messages
    sizes = ", ".join(f"{r.format} {r.bytes / r.messages:.0f}" for r in results)
    remarks = [f"- {r.format}: {remark}" for r in results for remark in r.remarks]
    right = ", ".join(r.format for r in results if not r.remarks)
    remarks.append(
        "- Every side measured gave exactly the rows that the generator meant, on a sample of "
        f"{SAMPLE} messages per format: {right or 'no format'}."
    )
    startups = startup_table(results)
    parts = [
        "# Benchmarks",
        "Written by `make bench` (`bench/run.py`); do not edit. "
        "**The figures are of this one run on this one machine.** Absolute speeds differ between "
        "machines and between runs; what the page supports is the ratios, because everything in "
        "it was measured in the same run, taking turns.",
        "\n".join(f"- {name}: {fact}" for name, fact in facts.items()),
        "## Result",
        summary(results),
        markdown(HEAD, table(results)),
        "\n".join(remarks),
        "## What was measured",
        f"{count:,} messages per format from `bench/messages.py`: changes of `shop.orders`, seven "
        "columns (BIGINT, INT, VARCHAR, DECIMAL(12,2), VARCHAR, DATETIME, DOUBLE), inserts, "
        "updates and deletes in equal thirds, one row per message. Mean bytes per message: "
        f"{sizes}. One file per format: JSON Lines, and for open-protocol, which is binary, "
        "uncompressed Parquet with the columns of Spark's Kafka source. debezium is the bare "
        "envelope (schemas.enable=false) with decimal.handling.mode=string and DATETIME as text, "
        "because Flink's `debezium-json` types no epoch milliseconds; debezium-smt has "
        "add.fields=op,db,table,source.ts_ms,file,pos; maxwell is what Maxwell writes by default.",
        f"Each work ran once unmeasured, then {rounds} times, the works of a format in turn; the "
        "median counts. A time is that of a whole job, from building the DataFrame or submitting "
        "the statement to its end, job start-up included on both sides. Everything Spark does "
        f"goes to the `noop` sink, in partitions of {PARTITION} so that both cores have work to "
        "the end (the default of 128m makes five tasks of a file); everything Flink does goes to "
        "`blackhole`. MB are millions of bytes of messages, keys included.",
        "- **read only**: the lines as text (open-protocol: its Parquet columns).\n"
        "- **identity mapInArrow**: the columns that decode receives, to Python and back, "
        "untouched: the ceiling of any decoder in Python.\n"
        "- **from_json into maps**: row images as `map<string,string>` and the scalars beside "
        "them; no completed images, no check, no exact numbers. Not for open-protocol.\n"
        "- **headgate.decode**: message to change events, all columns.\n"
        "- **headgate.rows**: message to typed rows of the table, an update as two rows.\n"
        "- **Flink**: Table API, streaming mode, parallelism 2, filesystem source with "
        "`canal-json`, `debezium-json`, `maxwell-json`: message to the same typed rows, an update "
        "as two rows. Flink cuts a local file every 32 MiB, so a file under 64 MiB does not "
        "occupy both of its tasks evenly.",
        f"Bars: events at least {CEILING_BAR:.0%} of the ceiling in every format; typed rows at "
        "least " + ", ".join(f"{bar} x Flink on {f}" for f, bar in FLINK_BARS.items()) + ". "
        f"The aim is {FLINK_AIM:g} x Flink.",
    ]
    if startups:
        parts += [
            "## Job start-up",
            f"The same typed-rows jobs over {SAMPLE} messages. Flink starts a local cluster per "
            "job, which Spark's session has done already; on a long-running job neither counts, "
            "so the last column leaves both out.",
            markdown(STARTUP_HEAD, startups),
        ]
    return "\n\n".join(parts) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=MESSAGES, help="per format")
    parser.add_argument("--formats", default=",".join(messages.FORMATS), help="comma-separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-flink", action="store_true")
    parser.add_argument(
        "--flink-env",
        type=Path,
        default=CACHE / "flink-venv",
        help="environment with apache-flink; made when absent",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help=f"the Markdown page; {PAGE.relative_to(ROOT)} when the run is a full one, else none",
    )
    args = parser.parse_args()
    args.formats = args.formats.split(",")
    for format in args.formats:
        if format not in messages.FORMATS:
            parser.error(f"no format {format!r}; there are: {', '.join(messages.FORMATS)}")
    if args.messages < 3 or args.rounds < 1:
        parser.error("--messages must be at least 3 and --rounds at least 1")
    full = args.messages >= MESSAGES and args.rounds >= 3 and not args.no_flink
    if args.out is None and full and set(args.formats) == set(messages.FORMATS):
        args.out = PAGE
    return args


def main() -> None:
    args = arguments()
    load = os.getloadavg()[0]
    flink, why_not = (
        (None, "left out (--no-flink)") if args.no_flink else start_flink(args.flink_env)
    )
    if why_not:
        print(f"Flink: {why_not}", flush=True)
    spark = start_spark()
    facts = {
        "Date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Commit": commit(),
        "Machine": f"{machine()}; load average {load:.2f} when the run began",
        "Spark": f"{spark.version}, local[{CORES}], driver memory {DRIVER_MEMORY}, "
        f"Java {spark.sparkContext._jvm.System.getProperty('java.version')}",
        "Python": f"{platform.python_version()}, pyarrow {version('pyarrow')}, "
        f"msgspec {version('msgspec')}",
        "Flink": f"{flink.version}, parallelism {CORES}, default heap, Java {flink.java}"
        if flink
        else why_not,
    }
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    results = []
    try:
        for format in args.formats:
            results.append(measure(spark, flink, format, args.messages, args.rounds))
    finally:
        spark.stop()
        if flink:
            flink.close()

    print(f"\n{args.messages:,} messages per format, median of {args.rounds}; this run only")
    print(plain(HEAD, table(results)))
    print("\n" + summary(results))
    if startups := startup_table(results):
        print(f"\nThe same jobs over {SAMPLE} messages (start-up)")
        print(plain(STARTUP_HEAD, startups))
    for figures in results:
        for remark in figures.remarks:
            print(f"! {figures.format}: {remark}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(page(results, facts, args.rounds))
        print(f"\nwrote {args.out}")


if __name__ == "__main__":
    main()
