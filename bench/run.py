"""`make bench`: how fast Headgate decodes and converts, beside Spark's own floors and Flink.

One Spark session with two cores and one warm Flink process with parallelism 2 take turns over the
same files. Each work is done once unmeasured and then --rounds times; the median counts. A missed
bar is said, never an error.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import convert
import kafka
import messages
from flink import ENVIRONMENT, Flink, start
from harness import (
    CORES,
    DRIVER_MEMORY,
    FILES,
    FLINK_AIM,
    FLINK_COLUMNS,
    FLINK_FORMATS,
    MESSAGES,
    PARTITION,
    ROOT,
    SAMPLE,
    Bar,
    Figures,
    Works,
    collected,
    difference,
    first_line,
    generated,
    markdown,
    plain,
    read,
    source,
    start_spark,
    stop_spark,
    take_turns,
    timed,
    times,
    typed_rows,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headgate

PAGE = ROOT / "docs" / "benchmarks.md"
CEILING_BAR = 0.35
FLINK_BARS = {"canal-json": 1.3, "debezium": 1.2, "maxwell": 1.0}

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


def identity(df: DataFrame) -> DataFrame:
    return df.mapInArrow(lambda batches: batches, df.schema)


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


def decoding(plan: Callable[[], DataFrame]) -> Callable[[], float]:
    return lambda: timed(lambda: plan().write.format("noop").mode("overwrite").save())


def define(flink: Flink, format: str, path: Path) -> None:
    flink.define("orders", FLINK_COLUMNS, path, FLINK_FORMATS[format])


def flink_decoding(flink: Flink, format: str, path: Path) -> Callable[[], float]:
    def run() -> float:
        define(flink, format, path)
        return flink.execute("INSERT INTO nowhere SELECT * FROM orders")

    return run


def check(spark: SparkSession, flink: Flink | None, figures: Figures, sample: Path) -> None:
    """Both sides must give the rows that the generator meant, or their speed means nothing."""
    format = figures.name
    expected = list(messages.expected_rows(format, SAMPLE))
    try:
        df = source(spark, format, sample)
        events = headgate.decode(df, format=format).groupBy("kind", "error.code").count().collect()
        if [(row.kind, row["count"]) for row in events] != [("row", SAMPLE)]:
            made = [tuple(row) for row in events]
            figures.remark(f"of {SAMPLE} messages Headgate made {made}")
        if wrong := difference(collected(typed_rows(df, format)), expected):
            figures.remark(f"Headgate's rows differ from the messages': {wrong}")
    except Exception as error:
        figures.remark(f"Headgate could not decode the sample: {first_line(error)}")
    if flink and format in FLINK_FORMATS:
        try:
            define(flink, format, sample)
            if wrong := difference(flink.rows("SELECT * FROM orders"), expected):
                figures.remark(f"Flink's rows differ from the messages': {wrong}")
        except (OSError, RuntimeError, ValueError) as error:
            figures.remark(f"Flink could not read the sample: {first_line(error)}")


def measure(
    spark: SparkSession, flink: Flink | None, format: str, count: int, rounds: int
) -> Figures:
    path, sample = generated(format, count), generated(format, SAMPLE)
    figures = Figures(format, count, messages.message_bytes(format, path, count))
    print(f"\n{format}: {count:,} messages of {figures.bytes / count:.0f} bytes", flush=True)
    check(spark, flink, figures, sample)
    works: Works = {work: decoding(plan) for work, plan in plans(spark, format, path).items()}
    startups: Works = {}
    if flink and format in FLINK_FORMATS:
        works["flink"] = flink_decoding(flink, format, path)
        startups["flink"] = flink_decoding(flink, format, sample)
        startups["rows"] = decoding(plans(spark, format, sample)["rows"])
    take_turns(figures, works, startups, rounds, LABELS)
    return figures


def bars(figures: Figures) -> list[Bar]:
    found = [Bar("events", CEILING_BAR, figures.ratio("events", "ceiling"), "ceiling")]
    if bar := FLINK_BARS.get(figures.name):
        found.append(Bar("rows", bar, figures.ratio("rows", "flink"), "flink"))
    return found


def summary(judged: list[tuple[str, Bar | kafka.LatencyBar]], count: int) -> str:
    """The bars that do not hold, and how a run of fewer messages is to be read."""
    short = [f"{name} {bar}" for name, bar in judged if not bar.holds]
    rest = "; the others hold." if len(short) < len(judged) else "."
    text = "Bars: " + ("; ".join(short) + rest if short else "all hold.")
    if count < MESSAGES:
        text += (
            f" This is a trial of {count:,} messages: job start-up weighs more than in a run of"
            f" {MESSAGES:,}, for which the bars are set. Do not quote it."
        )
    return text


HEAD = ["format", "work", "messages/s", "slowest to fastest", "MB/s", "of ceiling", "of Flink"]
HEAD.append("bar")


def table(results: list[Figures]) -> list[list[str]]:
    lines = []
    for figures in results:
        judged = {bar.work: str(bar) for bar in bars(figures)}
        for work, label in LABELS.items():
            of_ceiling = None if work == "flink" else figures.ratio(work, "ceiling")
            of_flink = figures.ratio(work, "flink") if work == "rows" else None
            missed = work in ("events", "rows") or (work == "flink" and figures.name in FLINK_BARS)
            if figures.speed(work) is not None or missed:
                lines.append(
                    [
                        figures.name,
                        label,
                        *figures.cells(work),
                        f"{of_ceiling:.0%}" if of_ceiling else "",
                        times(of_flink),
                        judged.get(work, ""),
                    ]
                )
    return lines


def startup_table(results: list[Figures]) -> list[list[str]]:
    return [
        [figures.name, *figures.startup_cells("rows")]
        for figures in results
        if figures.startup.get("rows") and figures.startup.get("flink")
    ]


STARTUP_HEAD = ["format", "Spark", "Flink", "rows of Flink, each less its start-up"]


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


def judged(
    results: list[Figures], conversions: list[Figures], topics: list[kafka.KafkaFigures]
) -> list[tuple[str, Bar | kafka.LatencyBar]]:
    found: list[tuple[str, Bar | kafka.LatencyBar]] = []
    found += [(r.name, bar) for r in results for bar in bars(r)]
    found += [(r.name, bar) for r in conversions for bar in convert.bars(r)]
    return found + [(r.name, bar) for r in topics for bar in kafka.bars(r)]


def page(
    results: list[Figures],
    conversions: list[Figures],
    topics: list[kafka.KafkaFigures],
    facts: dict[str, str],
    rounds: int,
) -> str:
    parts = [
        "# Benchmarks",
        "Written by `make bench` (`bench/run.py`); do not edit. "
        "**The figures are of this one run on this one machine.** Absolute speeds differ between "
        "machines and between runs; what the page supports is the ratios, because everything in "
        "it was measured in the same run, taking turns.",
        "\n".join(f"- {name}: {fact}" for name, fact in facts.items()),
        summary(
            judged(results, conversions, topics), [*results, *conversions, *topics][0].messages
        ),
    ]
    if results:
        parts += decoding_section(results, rounds)
    if conversions:
        parts += convert.section(conversions, rounds)
    if topics:
        parts += kafka.section(topics, rounds)
    return "\n\n".join(parts) + "\n"


def decoding_section(results: list[Figures], rounds: int) -> list[str]:
    count = results[0].messages
    sizes = ", ".join(f"{r.name} {r.bytes / r.messages:.0f}" for r in results)
    remarks = [f"- {r.name}: {remark}" for r in results for remark in r.remarks]
    right = ", ".join(r.name for r in results if not r.remarks)
    remarks.append(
        "- Every side measured gave exactly the rows that the generator meant, on a sample of "
        f"{SAMPLE} messages per format: {right or 'no format'}."
    )
    startups = startup_table(results)
    parts = [
        "## Decoding",
        markdown(HEAD, table(results)),
        "\n".join(remarks),
        "### What was measured",
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
            "### Job start-up",
            f"The same typed-rows jobs over {SAMPLE} messages. Flink starts a local cluster per "
            "job, which Spark's session has done already; on a long-running job neither counts, "
            "so the last column leaves both out.",
            markdown(STARTUP_HEAD, startups),
        ]
    return parts


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=MESSAGES, help="per format")
    parser.add_argument("--formats", default=",".join(messages.FORMATS), help="comma-separated")
    parser.add_argument(
        "--only", choices=("decode", "convert", "kafka"), help="one of the three parts"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-flink", action="store_true")
    parser.add_argument(
        "--flink-env",
        type=Path,
        default=ENVIRONMENT,
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
    full = args.messages >= MESSAGES and args.rounds >= 3 and not (args.no_flink or args.only)
    if args.out is None and full and set(args.formats) == set(messages.FORMATS):
        args.out = PAGE
    return args


def main() -> None:
    args = arguments()
    load = os.getloadavg()[0]
    with_kafka = args.only in (None, "kafka")
    jars = kafka.flink_jars() if with_kafka else []

    def processes() -> tuple[SparkSession, Flink | None, str | None]:
        """Spark and Flink anew: what a JVM compiled for one part is not what suits another."""
        flink, why_not = (
            (None, "left out (--no-flink)")
            if args.no_flink
            else start(args.flink_env, FILES / "flink.log", jars)
        )
        if why_not:
            print(f"Flink: {why_not}", flush=True)
        return start_spark(kafka.connector_settings() if with_kafka else {}), flink, why_not

    spark, flink, why_not = processes()
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
        "Kafka": "left out"
        if not with_kafka
        else f"{kafka.SERVER[0]}; Spark's connector: {kafka.connector_fact(spark)}; "
        f"Flink's: {kafka.FLINK_CONNECTOR[0]}",
    }
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    results, conversions, topics = [], [], []
    try:
        if args.only in (None, "decode"):
            if flink:
                flink.execute(
                    f"CREATE TEMPORARY TABLE nowhere ({FLINK_COLUMNS}) "
                    "WITH ('connector' = 'blackhole')"
                )
            for format in args.formats:
                results.append(measure(spark, flink, format, args.messages, args.rounds))
        if args.only in (None, "convert"):
            for pair in convert.PAIRS:
                conversions.append(convert.measure(spark, flink, pair, args.messages, args.rounds))
        if with_kafka:
            if results or conversions:
                stop_spark(spark)
                if flink:
                    flink.close()
                spark, flink, _ = processes()
            topics += kafka.measure(spark, flink, args.messages, args.rounds)
    finally:
        stop_spark(spark)
        if flink:
            flink.close()

    print(f"\n{args.messages:,} messages per format, median of {args.rounds}; this run only")
    if results:
        print("\n" + plain(HEAD, table(results)))
    if conversions:
        print("\n" + plain(convert.HEAD, convert.table(conversions)))
    for figures in topics:
        print("\n" + plain(kafka.HEAD, kafka.table(figures)))
        if figures.latency:
            print("\n" + plain(kafka.LATENCY_HEAD, kafka.latency_table(figures)))
    print("\n" + summary(judged(results, conversions, topics), args.messages))
    if startups := startup_table(results):
        print(f"\nThe same jobs over {SAMPLE} messages (start-up)")
        print(plain(STARTUP_HEAD, startups))
    if startups := convert.startup_table(conversions):
        print(f"\nThe same conversions of {SAMPLE} messages (start-up)")
        print(plain(convert.STARTUP_HEAD, startups))
    for figures in [*results, *conversions, *topics]:
        for remark in figures.remarks:
            print(f"! {figures.name}: {remark}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(page(results, conversions, topics, facts, args.rounds))
        print(f"\nwrote {args.out}")


if __name__ == "__main__":
    main()
