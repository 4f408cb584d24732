"""`make bench`: how fast Headgate decodes, converts and lands, beside Spark and Flink.

One Spark session with two cores and one warm Flink process with parallelism 2 take turns over the
same files. Each work is done once unmeasured and then --rounds times; the median counts. A missed
bar is reported, never an error.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import capture
import convert
import decode
import kafka
import landing
import landing_sides
import latency
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
        choices=("decode", "convert", "kafka", "latency", "rocketmq", "landing", "capture"),
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


@dataclass
class Processes:
    """Spark and Flink, which take turns; each part can have them anew."""

    args: argparse.Namespace
    spark: SparkSession = field(init=False)
    flink: Flink | None = field(init=False, default=None)
    without_flink: str | None = field(init=False, default=None)

    @property
    def with_kafka(self) -> bool:
        return self.args.only in (None, "kafka", "latency", "rocketmq", "landing")

    def start(self) -> None:
        """Both: what a JVM compiled for one part is not what suits another."""
        only = self.args.only
        if self.args.no_flink or only in ("rocketmq", "landing", "capture"):
            self.flink, self.without_flink = None, "left out"
        else:
            jars = flink_jars() if self.with_kafka else []
            self.flink, self.without_flink = start(self.args.flink_env, FILES / "flink.log", jars)
        if self.without_flink:
            print(f"Flink: {self.without_flink}", flush=True)
        if only == "landing":
            self.spark = start_spark(landing_sides.session_settings())
        elif only == "capture":
            self.spark = start_spark(capture.session_settings())
        else:
            self.spark = start_spark(connector_settings() if self.with_kafka else {})

    def stop(self) -> None:
        stop_spark(self.spark)
        self.stop_flink()

    def stop_flink(self) -> None:
        if self.flink:
            self.flink.close()
            self.flink = None


@dataclass
class Results:
    """What was measured, part by part."""

    decoded: list[Any] = field(default_factory=list)
    converted: list[Any] = field(default_factory=list)
    topics: list[Any] = field(default_factory=list)
    latencies: list[Any] = field(default_factory=list)
    queues: list[Any] = field(default_factory=list)
    landed: list[Any] = field(default_factory=list)
    captured: list[Any] = field(default_factory=list)

    def parts(self) -> list[tuple[Any, list[Any]]]:
        """The module and the figures of each part that was measured."""
        every = (
            (decode, self.decoded),
            (convert, self.converted),
            (kafka, self.topics),
            (latency, self.latencies),
            (rocketmq, self.queues),
            (landing, self.landed),
            (capture, self.captured),
        )
        return [(module, figures) for module, figures in every if figures]


def facts_of(run: Processes, load: float) -> dict[str, str]:
    """What the figures depend on."""
    spark, flink = run.spark, run.flink
    with_delta = run.args.only in (None, "landing", "capture")
    return {
        "Date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Commit": commit(),
        "Machine": f"{machine()}; load average {load:.2f} when the run began",
        "Spark": f"{spark.version}, local[{CORES}], driver memory {DRIVER_MEMORY}, "
        f"Java {spark.sparkContext._jvm.System.getProperty('java.version')}",
        "Python": f"{platform.python_version()}, pyarrow {version('pyarrow')}, "
        f"msgspec {version('msgspec')}",
        "Flink": f"{flink.version}, parallelism {CORES}, default heap, Java {flink.java}"
        if flink
        else str(run.without_flink),
        "Kafka": f"{SERVER[0]}; Spark's connector: {kafka.connector_fact(spark)}; "
        f"Flink's: {FLINK_CONNECTOR[0]}"
        if run.with_kafka
        else "left out",
        "Delta": landing_sides.delta_fact() if with_delta else "left out",
    }


def measure(run: Processes, results: Results) -> None:
    """Every part that is asked for, in turn."""
    args = run.args
    if args.only in (None, "decode"):
        if run.flink:
            run.flink.execute(
                f"CREATE TEMPORARY TABLE nowhere ({FLINK_COLUMNS}) WITH ('connector' = 'blackhole')"
            )
        for format in args.formats:
            figures = decode.measure(run.spark, run.flink, format, args.messages, args.rounds)
            results.decoded.append(figures)
    if args.only in (None, "convert"):
        for pair in convert.PAIRS:
            figures = convert.measure(run.spark, run.flink, pair, args.messages, args.rounds)
            results.converted.append(figures)
    if args.only in (None, "kafka"):
        if results.parts():
            run.stop()
            run.start()
        results.topics += kafka.measure(run.spark, run.flink, args.messages, args.rounds)
    if args.only in (None, "latency"):
        results.latencies += latency.measure(run.spark, run.flink, args.messages)
    if args.only in (None, "rocketmq"):
        run.stop_flink()
        results.queues += rocketmq.measure(run.spark, args.messages, args.rounds)
    if args.only in (None, "landing"):
        if args.only is None:
            stop_spark(run.spark)
            run.spark = start_spark(landing_sides.session_settings())
        results.landed += landing.measure(run.spark, args.messages, args.rounds)
    if args.only in (None, "capture"):
        if args.only is None:
            stop_spark(run.spark)
            run.spark = start_spark(capture.session_settings())
        results.captured += capture.measure(run.spark, args.messages, args.rounds)


def print_tables(results: Results) -> None:
    if results.decoded:
        print("\n" + plain(decode.HEAD, decode.table(results.decoded)))
    if results.converted:
        print("\n" + plain(convert.HEAD, convert.table(results.converted)))
    for figures in results.topics:
        print("\n" + plain(kafka.HEAD, kafka.table(figures)))
    if results.latencies:
        print("\n" + plain(latency.HEAD, latency.table(results.latencies)))
    if results.queues:
        print("\n" + plain(rocketmq.HEAD, rocketmq.table(results.queues)))
    if results.landed:
        print("\n" + plain(landing.HEAD, landing.table(results.landed)))
    if results.captured:
        print("\n" + plain(capture.HEAD, capture.table(results.captured)))
    if startups := startup_table(results.decoded, "rows"):
        print(f"\nThe same jobs over {SAMPLE} messages (start-up)")
        print(plain(decode.STARTUP_HEAD, startups))
    if startups := startup_table(results.converted, "headgate"):
        print(f"\nThe same conversions of {SAMPLE} messages (start-up)")
        print(plain(convert.STARTUP_HEAD, startups))
    for _, measured in results.parts():
        for figures in measured:
            for remark in figures.remarks:
                print(f"! {figures.name}: {remark}")


def main() -> None:
    args, results = arguments(), Results()
    load = os.getloadavg()[0]
    run = Processes(args)
    run.start()
    try:
        facts = facts_of(run, load)
        for name, fact in facts.items():
            print(f"{name}: {fact}")
        measure(run, results)
    finally:
        run.stop()

    print(f"\n{args.messages:,} messages per format, median of {args.rounds}; this run only")
    print_tables(results)
    sections: list[str] = []
    for part, figures in results.parts():
        bars = summary([(f.name, bar) for f in figures for bar in part.bars(f)], args.messages)
        print(f"\n{bars}")
        sections.append(section(part.section(figures, args.rounds), facts, bars))
    if args.out:
        write(args.out, sections)
        print(f"\nwrote {args.out}")


if __name__ == "__main__":
    main()
