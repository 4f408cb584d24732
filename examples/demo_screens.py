"""What the demo prints: a table for each step, and the verdict."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from examples.capture import ALTER as ALTER_CAPTURED
from examples.demo_report import NAMED, TABLES, Report, sent
from examples.job import FEED as JOB_FEED
from examples.ring import START
from examples.shop import ALTER
from headgate.cli.detect import verdict_of
from headgate.cli.split_work import Decoding, counted
from headgate.sources.message_files import Split
from headgate.verification.report import described

KINDS = {
    "rows": "row",
    "DDL": "ddl",
    "watermarks": "watermark",
    "heartbeats": "heartbeat",
    "tombstones": "tombstone",
    "rejected": "invalid",
}
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
        detected = f"{verdict['format']}[yellow]{guess}[/yellow]"
        table.add_row(file, detected, str(verdict["messages"]), ", ".join(kinds))
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
        for name, (true, decoded) in columns.items():
            alike[name, str(true), str(decoded)].append(dialect_name(file))
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
    history = events.where(
        (F.col("origin.partition") == number)
        & (F.col("table") == "orders")
        & (F.coalesce("after", "before").getItem("id") == ORDER)
    ).select(F.col("event_time").cast("string"), "op", "before", "after", "origin.offset")
    title = f"3. The life of order {ORDER}, from {files[number]}"
    table = grid("event_time", "op", *columns, title=title)
    for row in history.orderBy("offset").collect():
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
    payments = events.where(
        (F.col("table") == "payments") & (F.col("after").getItem("id") == PAYMENT)
    ).select("origin.partition", "origin.offset", "after")
    title = f"4. Payment {PAYMENT}: what was sent, and what it is"
    table = grid("dialect", *(f"{n}, as sent" for n in SHOWN), title=title)
    decoded: dict[str, set[str]] = {name: set() for name in SHOWN}
    for number, line, after in payments.orderBy("partition", "offset").collect():
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
    show_verdicts(console, "After the round trip", report.wrong_after_ring)


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
    show_verdicts(console, "What it wrote, as Debezium", report.wrong_after_job)


def show_verdicts(console: Console, what: str, wrong: Mapping[str, int]) -> None:
    """Of each table, how many of its rows are wrong."""
    verdicts = [Text(f"{table}: ") + verdict_text(count) for table, count in wrong.items()]
    console.print(Text(f"   {what}: ") + Text(", ").join(verdicts) + Text("\n"))


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


def show_captured(console: Console, report: Report) -> None:
    """A database that was captured while it was in use."""
    if report.captured is None:
        return
    console.print(
        "9. A shop in MariaDB, captured into Delta tables while it is in use", style="bold"
    )
    verification = report.captured.verification
    if verification is None:
        console.print(f"   Left out: {report.captured.left_out}\n", highlight=False, markup=False)
        return
    console.print(f"   On the way: {ALTER_CAPTURED}\n", highlight=False)
    console.print("\n".join(f"   {line}" for line in described(verification)) + "\n")


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
    if not report.captured_agrees:
        console.print(f"{summary}: the captured tables differ", style="bold red")
    if not report.dead_as_expected:
        console.print(f"{summary}: the dead letters are not those of broken.json", style="bold red")
