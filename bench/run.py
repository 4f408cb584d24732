"""`make bench`: how fast Headgate decodes, converts and lands, beside Spark and Flink.

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
from importlib.metadata import version
from pathlib import Path

import convert
import decode
import kafka
import landing
import landing_sides
import messages
import rocketmq
from flink import ENVIRONMENT, Flink, start
from harness import (
    CORES,
    DRIVER_MEMORY,
    FILES,
    FLINK_COLUMNS,
    MESSAGES,
    ROOT,
    SAMPLE,
    plain,
    start_spark,
    startup_table,
    stop_spark,
)
from kafka_topics import FLINK_CONNECTOR, SERVER, connector_settings, flink_jars
from latency import LATENCY_HEAD, latency_table
from page import section, summary, write
from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "benchmarks.md"


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


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=MESSAGES, help="per format")
    parser.add_argument("--formats", default=",".join(messages.FORMATS), help="comma-separated")
    parser.add_argument(
        "--only",
        choices=("decode", "convert", "kafka", "rocketmq", "landing"),
        help="one of the parts",
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
        help=f"the Markdown page; {PAGE.relative_to(ROOT)} when nothing is cut short, else none",
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
    with_kafka = args.only in (None, "kafka", "rocketmq", "landing")
    jars = flink_jars() if with_kafka and args.only != "landing" else []
    with_delta = landing_sides.session_settings() if args.only in (None, "landing") else {}
    settings = connector_settings() if with_kafka else {}
    if args.only == "landing":
        settings = with_delta

    def processes() -> tuple[SparkSession, Flink | None, str | None]:
        """Spark and Flink anew: what a JVM compiled for one part is not what suits another."""
        flink, why_not = (
            (None, "left out")
            if args.no_flink or args.only in ("rocketmq", "landing")
            else start(args.flink_env, FILES / "flink.log", jars)
        )
        if why_not:
            print(f"Flink: {why_not}", flush=True)
        return start_spark(settings), flink, why_not

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
        else f"{SERVER[0]}; Spark's connector: {kafka.connector_fact(spark)}; "
        f"Flink's: {FLINK_CONNECTOR[0]}",
        "Delta": landing_sides.delta_fact() if with_delta else "left out",
    }
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    results, conversions, topics, queues, landed = [], [], [], [], []
    try:
        if args.only in (None, "decode"):
            if flink:
                flink.execute(
                    f"CREATE TEMPORARY TABLE nowhere ({FLINK_COLUMNS}) "
                    "WITH ('connector' = 'blackhole')"
                )
            for format in args.formats:
                results.append(decode.measure(spark, flink, format, args.messages, args.rounds))
        if args.only in (None, "convert"):
            for pair in convert.PAIRS:
                conversions.append(convert.measure(spark, flink, pair, args.messages, args.rounds))
        if args.only in (None, "kafka"):
            if results or conversions:
                stop_spark(spark)
                if flink:
                    flink.close()
                spark, flink, _ = processes()
            topics += kafka.measure(spark, flink, args.messages, args.rounds)
        if args.only in (None, "rocketmq"):
            if flink:
                flink.close()
                flink = None
            queues += rocketmq.measure(spark, args.messages, args.rounds)
        if args.only in (None, "landing"):
            if args.only is None:
                stop_spark(spark)
                spark = start_spark(with_delta)
            landed += landing.measure(spark, args.messages, args.rounds)
    finally:
        stop_spark(spark)
        if flink:
            flink.close()

    print(f"\n{args.messages:,} messages per format, median of {args.rounds}; this run only")
    if results:
        print("\n" + plain(decode.HEAD, decode.table(results)))
    if conversions:
        print("\n" + plain(convert.HEAD, convert.table(conversions)))
    for figures in topics:
        print("\n" + plain(kafka.HEAD, kafka.table(figures)))
        if figures.latency:
            print("\n" + plain(LATENCY_HEAD, latency_table(figures)))
    if queues:
        print("\n" + plain(rocketmq.HEAD, rocketmq.table(queues)))
    if landed:
        print("\n" + plain(landing.HEAD, landing.table(landed)))
    if startups := startup_table(results, "rows"):
        print(f"\nThe same jobs over {SAMPLE} messages (start-up)")
        print(plain(decode.STARTUP_HEAD, startups))
    if startups := startup_table(conversions, "headgate"):
        print(f"\nThe same conversions of {SAMPLE} messages (start-up)")
        print(plain(convert.STARTUP_HEAD, startups))
    for figures in [*results, *conversions, *topics, *queues, *landed]:
        for remark in figures.remarks:
            print(f"! {figures.name}: {remark}")
    sections: list[str] = []
    parts = (
        (decode, results),
        (convert, conversions),
        (kafka, topics),
        (rocketmq, queues),
        (landing, landed),
    )
    for part, figures in parts:
        if figures:
            bars = summary([(f.name, bar) for f in figures for bar in part.bars(f)], args.messages)
            print(f"\n{bars}")
            sections.append(section(part.section(figures, args.rounds), facts, bars))
    if args.out:
        write(args.out, sections)
        print(f"\nwrote {args.out}")


if __name__ == "__main__":
    main()
