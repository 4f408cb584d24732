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
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

import headgate
from examples.job import FEED as JOB_FEED
from examples.job import Outcome, run_twice
from examples.lake import Lake, land, wrong_rows
from examples.ring import START, Hop, around, decoded
from examples.shop import ALTER
from headgate.cli.detect import verdict_of
from headgate.cli.split_work import Decoding, counted
from headgate.sources.message_files import Split, read
from headgate.spark.session import session
from headgate.verification.report import described

FEED = Path(__file__).parent / "feed"
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
# A bare row of OMS looks like one of Debezium and names no table, so both have to be said.
NAMED = {"debezium-smt.oms.parquet": "debezium-smt:oms"}
KINDS = {
    "rows": "row",
    "DDL": "ddl",
    "watermarks": "watermark",
    "heartbeats": "heartbeat",
    "tombstones": "tombstone",
    "rejected": "invalid",
}
CLOCK = r"^[0-9]+([.][0-9]+)?$"
ORDER, PAYMENT = "1002", "5002"
SHOWN = ("reference", "amount", "token")
LANDED_ROWS = 4
HINTS = """See it yourself:
  headgate convert --to debezium --report examples/feed/canal-json.ticdc.jsonl - | head -1
  headgate detect examples/feed/*.jsonl examples/feed/*.parquet
  headgate decode examples/feed/canal-json.ticdc.jsonl | head -3
  headgate decode examples/feed/debezium.debezium.parquet \\
      --option 'columns=reference BIGINT UNSIGNED' | grep 18446744073709551615
"""
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
        return same and self.ring_agrees and self.job_agrees and self.lake_agrees

    @property
    def ring_agrees(self) -> bool:
        """Whether the feed that went through every dialect still gives the truth."""
        return not any(self.wrong_after_ring.values())

    @property
    def job_agrees(self) -> bool:
        """Whether the job wrote every change once."""
        return not any(self.wrong_after_job.values())

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
    found: Rows = defaultdict(dict)
    for row in rows:
        columns = [n for n in row.asDict() if n == "_misfits" or not n.startswith("_")]
        found[row["_file"]][row["id"]] = tuple(row[n] for n in columns)
    return found


def differences(rows: Rows, number: int) -> int:
    """How many rows of a file's table are not the truth's."""
    found, true = rows.get(number, {}), rows.get(TRUTH, {})
    return sum(found.get(key) != true.get(key) for key in found.keys() | true.keys())


def other_texts(state: list[Any], number: int) -> dict[str, tuple[str, str]]:
    """Columns whose text is not the truth's character by character: (truth's, found)."""
    images = {(r["file"], r["table"], r["image"]["id"]): r["image"] for r in state}
    found: dict[str, tuple[str, str]] = {}
    for (file, table, key), true in images.items():
        mine = images.get((number, table, key), {}) if file == TRUTH else {}
        for name in mine:
            if mine[name] != true.get(name):
                found.setdefault(name, (true.get(name), mine[name]))
    return found


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
    found = events.where("kind = 'invalid'").select("origin.*", "error.*", "raw")
    for row in found.orderBy("partition", "offset").collect():
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


class Bare(str):
    """A number as it stood in the JSON."""


def sent_row(value: bytes) -> dict[str, Any] | None:
    """The payment's row as it was sent, found by its id in whatever envelope it is in."""
    text = value[8:] if value[:1] == b"\0" else value  # Open Protocol's length comes first
    return row_in(json.loads(text, parse_int=Bare, parse_float=Bare))


def row_in(value: Any) -> dict[str, Any] | None:
    """The first object that has the payment's id and columns."""
    if not isinstance(value, dict | list):
        return None
    if isinstance(value, list):
        return next(filter(None, map(row_in, value)), None)
    row = {n: v["v"] if isinstance(v, dict) and "v" in v else v for n, v in value.items()}
    if row.get("id") == PAYMENT and set(SHOWN) <= row.keys():
        return row
    return next(filter(None, map(row_in, value.values())), None)


def as_sent(value: Any) -> str:
    """A JSON scalar as it stood in the message."""
    return value if isinstance(value, Bare) else json.dumps(value, ensure_ascii=False)


def grid(*columns: str, title: str, numbers: tuple[str, ...] = ()) -> Table:
    """A table in the demo's style."""
    table = Table(title=title, title_style="bold", title_justify="left", box=SIMPLE_HEAD)
    table.padding, table.pad_edge = (0, 1, 0, 0), False
    for name in columns:
        side = "right" if name in numbers else "left"
        table.add_column(name, justify=side, overflow="fold", no_wrap=name == columns[0])
    return table


def show_detection(console: Console, folder: Path, files: list[str]) -> int:
    """What `headgate detect` says of each file; returns how many messages there are."""
    names = ("file", "detected", "messages", "kinds")
    table = grid(*names, title="1. What is in each file", numbers=("messages",))
    source = Decoding("auto", {})
    total = 0
    for file in files:
        verdict = verdict_of(file, counted(Split(str(folder / file)), source))
        total += verdict["messages"]
        kinds = [f"{n} {kind}" for kind, n in verdict["kinds"].items()]
        kinds += [f"[red]{n} invalid[/red]" for n in verdict["invalid"].values()]
        guess = "" if verdict["format"] == dialect_name(file) else " (a guess)"
        found = f"{verdict['format']}[yellow]{guess}[/yellow]"
        table.add_row(file, found, str(verdict["messages"]), ", ".join(kinds))
    console.print(table)
    return total


def show_comparison(console: Console, report: Report) -> None:
    """One line per dialect: its events, and whether its tables are the truth."""
    title = "2. Decoded on Spark, each file folded to its final tables"
    table = grid("dialect", *KINDS, *TABLES, title=title, numbers=tuple(KINDS))
    for file in report.files:
        kinds = [str(report.kinds[file].get(kind, "")) for kind in KINDS.values()]
        verdicts = [verdict_text(n) for n in report.wrong[file].values()]
        table.add_row(dialect_name(file), *kinds, *verdicts)
    console.print(table)
    show_limits(console, report)


def verdict_text(wrong: int) -> Text:
    """How one table compares, from the number of its rows that differ."""
    if not wrong:
        return Text("match", style="green")
    return Text(f"{wrong} row" + "s" * (wrong > 1) + " differ", style="bold red")


def show_limits(console: Console, report: Report) -> None:
    """Which columns hold the truth's value in other characters, because they were sent so."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file, columns in report.texts.items():
        for name, (true, found) in columns.items():
            alike[name, str(true), str(found)].append(dialect_name(file))
    if alike:
        names = ("column", "truth", "decoded as it was sent", "by")
        table = grid(*names, title="   The same value in other characters")
        for texts, dialects in alike.items():
            table.add_row(*texts, ", ".join(dialects))
        console.print(table)
    for file, spec in NAMED.items():
        if file in report.files:
            console.print(f"   {spec} has to be named, with its tables: a bare row says neither.\n")


def dialect_name(file: str) -> str:
    """`canal-json.ticdc.jsonl` is `canal-json:ticdc`."""
    return file.rpartition(".")[0].replace(".", ":", 1)


def show_history(console: Console, events: DataFrame, files: list[str]) -> None:
    """One order's life, before and after side by side."""
    number = files.index("canal-json.canal.jsonl")
    columns = ["status", "total", "note", "shipped_at"]
    found = events.where(
        (F.col("origin.partition") == number)
        & (F.col("table") == "orders")
        & (F.coalesce("after", "before").getItem("id") == ORDER)
    ).select(F.col("event_time").cast("string"), "op", "before", "after", "origin.offset")
    title = f"3. The life of order {ORDER}, from {files[number]}"
    table = grid("event_time", "op", *columns, title=title)
    for row in found.orderBy("offset").collect():
        old, new = row["before"] or {}, row["after"] or {}
        cells = [change_text(old.get(n), new.get(n), bool(old)) for n in columns]
        table.add_row(row["event_time"], row["op"], *cells)
    console.print(table)


def change_text(old: str | None, new: str | None, updated: bool) -> Text:
    """A value, with the one before it where it changed."""
    shown = Text("NULL" if new is None else new or "''", style="dim" if new is None else "")
    if updated and old != new:
        return Text(f"{'NULL' if old is None else old or repr('')} → ", style="dim") + shown
    return shown


def show_values(console: Console, report: Report, events: DataFrame, messages: pa.Table) -> None:
    """The same payment on the wire of every dialect, and what became of it."""
    found = events.where(
        (F.col("table") == "payments") & (F.col("after").getItem("id") == PAYMENT)
    ).select("origin.partition", "origin.offset", "after")
    title = f"4. Payment {PAYMENT}: what was sent, and what it is"
    table = grid("dialect", *(f"{n}, as sent" for n in SHOWN), title=title)
    decoded: dict[str, set[str]] = {name: set() for name in SHOWN}
    for number, line, after in found.orderBy("partition", "offset").collect():
        row = sent_row(sent(messages, number, line) or b"") or {}
        cells = [Text(as_sent(row.get(name))) for name in SHOWN]
        table.add_row(dialect_name(report.files[number]), *cells)
        for name in SHOWN:
            decoded[name].add(after[name])
    table.add_section()
    cells = [Text("\n".join(sorted(texts)), style="bold green") for texts in decoded.values()]
    table.add_row(Text("decoded", style="bold green"), *cells)
    console.print(table)


def show_dead(console: Console, report: Report) -> None:
    """The messages that could not be decoded: where, and why."""
    table = grid("file", "line", "code", "why", title="5. Dead letters", numbers=("line",))
    for letter in report.dead:
        why = Text(letter["message"])
        table.add_row(letter["file"], str(letter["line"]), f"[red]{letter['code']}[/red]", why)
    console.print(table)


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
    state = fold(decoded(placed, START)).unionByName(read_truth(spark, folder)).cache()
    for table in TABLES:
        rows = by_file(typed(state, table).collect())
        report.wrong_after_ring[table] = differences(rows, number)
    state.unpersist()


def show_ring(console: Console, report: Report) -> None:
    """One line per conversion, then whether all came back."""
    if not report.hops:
        return
    title = f"6. {START} converted through every dialect, one into the next, and back"
    table = grid("to", "messages", "lost in conversion", title=title, numbers=("messages",))
    for hop in report.hops:
        lost = ", ".join(f"{n} {code}" for code, n in sorted(hop.lost.items()))
        table.add_row(hop.to, str(hop.messages), Text(lost, style="dim"))
    console.print(table)
    verdicts = [Text(f"{t}: ") + verdict_text(n) for t, n in report.wrong_after_ring.items()]
    console.print(Text("   After the round trip: ") + Text(", ").join(verdicts) + Text("\n"))


def run_job(report: Report, spark: SparkSession, folder: Path) -> None:
    """Run a job twice on one feed, and compare the tables of what it wrote with the truth."""
    if JOB_FEED not in report.files:
        return
    with tempfile.TemporaryDirectory() as place:
        report.job = run_twice(spark, folder, Path(place))
        state = fold(report.job.written).unionByName(read_truth(spark, folder)).cache()
        for table in TABLES:
            report.wrong_after_job[table] = differences(by_file(typed(state, table).collect()), 0)
        state.unpersist()


def show_job(console: Console, report: Report) -> None:
    """What each run of the job did, then whether every change was written once."""
    if report.job is None:
        return
    console.print(f"7. `headgate run`: half of {JOB_FEED}, then all of it again", style="bold")
    names = ("since the start", "messages", "written", "duplicates", "dead letters")
    table = grid(*names, title="", numbers=names[1:])
    for name, status in (("first run", report.job.first), ("second run", report.job.second)):
        totals = status.totals
        written = sum(n for ops in totals.rows.values() for n in ops.values())
        counts = (totals.messages, written, totals.repeated, totals.dead_letters)
        table.add_row(name, *map(str, counts))
    console.print(table)
    verdicts = [Text(f"{t}: ") + verdict_text(n) for t, n in report.wrong_after_job.items()]
    console.print(Text("   What it wrote, as Debezium: ") + Text(", ").join(verdicts) + Text("\n"))


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


def show_lake(console: Console, report: Report) -> None:
    """The landed tables, and what `headgate verify` says of them."""
    if report.lake is None:
        return
    console.print(f"8. {JOB_FEED} landed in Delta tables", style="bold")
    console.print(f"   On the way: {ALTER}\n", highlight=False)
    for name, landed in report.lake.after.items():
        added = set(landed.column_names) - set(report.lake.before[name].column_names)
        columns = [f"[green]{n} (new)[/green]" if n in added else n for n in landed.column_names]
        table = grid(*columns, title=f"   {name}: {landed.num_rows} rows, of them the first")
        for row in landed.slice(0, LANDED_ROWS).to_pylist():
            table.add_row(*(value_text(value) for value in row.values()))
        console.print(table)
    console.print("\n".join(f"   {line}" for line in described(report.lake.verification)))
    verdicts = [Text(f"{t}: ") + verdict_text(n) for t, n in report.wrong_in_lake.items()]
    console.print(Text("   The lake and the truth: ") + Text(", ").join(verdicts) + Text("\n"))


def value_text(value: Any) -> Text:
    """A value of a landed table."""
    if value is None:
        return Text("NULL", style="dim")
    return Text(f"0x{value.hex()}" if isinstance(value, bytes) else str(value))


def show_verdict(console: Console, report: Report, seconds: float) -> None:
    """What to type next, and the last line."""
    console.print(HINTS, highlight=False, markup=False)
    summary = f"{len(report.files)} dialects, {report.messages} messages"
    if report.agrees:
        dead = f"the {len(report.dead)} damaged messages are dead letters, with their bytes"
        match = "all tables match, also after the round trip, the job and in the lake"
        verdict = f"{summary}: {match}; {dead} ({seconds:.0f} s)"
        console.print(verdict, style="bold green", highlight=False)
        return
    wrong = [dialect_name(f) for f, tables in report.wrong.items() if any(tables.values())]
    if wrong:
        console.print(f"{summary}: {', '.join(wrong)} differ", style="bold red")
    if not report.ring_agrees:
        console.print(f"{summary}: the tables differ after the round trip", style="bold red")
    if not report.job_agrees:
        console.print(f"{summary}: the tables differ after the job", style="bold red")
    if not report.lake_agrees:
        console.print(f"{summary}: the tables in the lake differ", style="bold red")
    if not report.dead_as_expected:
        console.print(f"{summary}: the dead letters are not those of broken.json", style="bold red")


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
    show_comparison(console, report)
    show_history(console, events, report.files)
    show_values(console, report, events, messages)
    show_dead(console, report)
    show_ring(console, report)
    show_job(console, report)
    show_lake(console, report)
    show_verdict(console, report, time.monotonic() - began)
    events.unpersist()
    state.unpersist()
    return report


def main(folder: Path = FEED, spark: SparkSession | None = None) -> int:
    """Run the demo, in a session of its own unless one is given; the exit code is the verdict."""
    console = Console() if sys.stdout.isatty() else Console(width=120)
    report = run(lambda: spark or session("local[2]"), console, folder)
    if not spark and (own := SparkSession.getActiveSession()):
        own.stop()
    return 0 if report.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
