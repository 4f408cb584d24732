"""The same shop in 17 dialects: decoded on Spark, converted into each other, landed in a lake.

`examples/make_feed.py` wrote the messages and, apart from them, the tables as they should be in the
end. Here every file is detected, all are decoded in one Spark job, each file's changes are folded
to its final tables, and these are compared with the truth. What differs is shown, and the exit code
is 1.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from examples.demo_report import (
    TABLES,
    Report,
    capture_shop,
    compare,
    count_kinds,
    decode,
    feed_files,
    fill_lake,
    fold,
    go_round,
    load,
    note_dead,
    read_truth,
    run_job,
)
from examples.demo_screens import (
    show_captured,
    show_comparison,
    show_dead,
    show_detection,
    show_history,
    show_job,
    show_lake,
    show_ring,
    show_values,
    show_verdict,
)
from headgate.core.errors import UsageError
from headgate.spark import jars
from headgate.spark.session import session
from headgate.verification.database import JARS as DATABASE_JARS

FEED = Path(__file__).parent / "feed"


def run(start: Callable[[], SparkSession], console: Console, folder: Path = FEED) -> Report:
    """The whole demo; the report is what was printed."""
    began = time.monotonic()
    report = Report(feed_files(folder))
    report.expected_dead = json.loads((folder / "broken.json").read_text(encoding="utf-8"))
    tables = ", ".join(TABLES)
    console.print(f"\nA shop's changes ({tables}) as {len(report.files)} producers write them.")
    console.print(f"Messages and truth: {os.path.relpath(folder)}\n")
    report.messages = show_detection(console, folder, report.files)
    messages = load(folder, report.files)
    with console.status("Spark decodes all files in one job …"):
        spark = start()
        events = decode(spark.createDataFrame(messages).coalesce(1), report.files).cache()
        state = fold(events).unionByName(read_truth(spark, folder)).cache()
        count_kinds(report, events)
        compare(report, state)
        note_dead(report, events, messages)
    with console.status("Spark converts one feed through every dialect …"):
        go_round(report, spark.createDataFrame(messages).coalesce(1), spark, folder)
    with console.status("A job runs twice …"):
        run_job(report, spark, folder)
    with console.status("A job lands tables …"):
        fill_lake(report, spark, folder)
    with console.status("A job captures a database …"):
        capture_shop(report, spark)
    show_comparison(console, report)
    show_history(console, events, report.files)
    show_values(console, report, events, messages)
    show_dead(console, report)
    show_ring(console, report)
    show_job(console, report)
    show_lake(console, report)
    show_captured(console, report)
    show_verdict(console, report, time.monotonic() - began)
    events.unpersist()
    state.unpersist()
    return report


def new_session() -> SparkSession:
    """A session with the driver by which a database is compared, if it can be had."""
    try:
        driver = jars.settings(*DATABASE_JARS)
    except UsageError:
        driver = {}
    return session("local[2]", driver)


def main(folder: Path = FEED, spark: SparkSession | None = None) -> int:
    """Run the demo, in a session of its own unless one is given; the exit code is the verdict."""
    console = Console() if sys.stdout.isatty() else Console(width=120)
    report = run(lambda: spark or new_session(), console, folder)
    if not spark and (own := SparkSession.getActiveSession()):
        own.stop()
    return 0 if report.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
