"""How fast a database is captured: the binlog as events and into Delta, and tables as a snapshot.

One binlog of 300,000 changes of a table of nine columns is read by Headgate's reader, by
mysql-binlog-connector-java in a bare loop and by Debezium's embedded engine, and landed by a job;
the rows of a table are read by Headgate's chunks and by Spark's JDBC source.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from harness import FILES, Bar, Figures, Works, markdown, take_turns, times
from mysql_server import MySQL
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.events import EVENT_SCHEMA
from headgate.config.reader import job_of
from headgate.core.errors import HeadgateError
from headgate.mysql.connection import Start
from headgate.mysql.definitions import current_table
from headgate.mysql.login import Login
from headgate.mysql.reader import read_binlog
from headgate.mysql.snapshot import Chunk, next_bound, read_chunk
from headgate.pipeline.run import run
from headgate.spark import jars
from headgate.spark.api import fast_worker
from headgate.verification.database import JARS, parse_database

CHANGES = 300_000
STEP = 1_000
"""Rows of a statement."""
PARTS = 2
"""Tasks that read a table."""
SNAPSHOT_ROWS = 1_000_000
REPLICA = 3_999_201
BINLOG_CLIENT = ["com.zendesk:mysql-binlog-connector-java:0.30.1"]
DEBEZIUM = [
    "io.debezium:debezium-embedded:3.5.0.Final",
    "io.debezium:debezium-connector-mysql:3.5.0.Final",
]
FOLDER = Path(__file__).parent
BINLOG, LANDED, SNAPSHOT = "binlog to events", "binlog to Delta", "snapshot"
LABELS = {
    "headgate": "Headgate",
    "dataframe": "Headgate, as a DataFrame of events",
    "loop": "mysql-binlog-connector-java, a bare loop",
    "debezium": "Debezium's embedded engine",
    "jdbc": "Spark's JDBC source",
}
OURS = ("headgate", "dataframe")
BARS = {(BINLOG, "debezium"): 3.0, (BINLOG, "loop"): 0.5, (SNAPSHOT, "jdbc"): 1.0}
HEAD = ["work", "by", "changes/s", "slowest to fastest", "Headgate beside it", "bar"]
TABLE = """CREATE TABLE bench.t (id BIGINT PRIMARY KEY, customer INT, total DECIMAL(12,2),
    note VARCHAR(60), state CHAR(8), created DATETIME(3), price DOUBLE, flags TINYINT,
    code BIGINT)"""
PING = "CREATE TABLE bench.ping (id INT PRIMARY KEY AUTO_INCREMENT)"


def session_settings() -> dict[str, str]:
    """Of a session that reads by JDBC."""
    return jars.settings(*JARS)


class Sizes(NamedTuple):
    """How many changes of each kind there are."""

    inserts: int
    updates: int
    deletes: int

    @classmethod
    def of(cls, changes: int) -> Sizes:
        """Half, a third and a sixth of them, in whole statements."""
        steps = max(1, changes // (6 * STEP)) * STEP
        return cls(3 * steps, 2 * steps, steps)

    @property
    def left(self) -> int:
        """The rows in the end."""
        return self.inserts - self.deletes


class Loop:
    """A Java program that stays warm: a line in, a time out."""

    def __init__(self, coordinates: list[str], source: str, *arguments: str) -> None:
        paths = ":".join(map(str, jars.resolve(coordinates)))
        command = [str(jars.java()), "-Xmx2g", "-cp", paths, str(FOLDER / source), *arguments]
        self.log = FILES / f"{source}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.ask(None, "ready")

    def ask(self, line: str | None, wanted: str | None = None) -> str:
        """The answer to a line; the programs print lines of their own too."""
        if line is not None:
            assert self.process.stdin is not None
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        for text in map(str.strip, self.process.stdout or ()):
            if text == wanted or (wanted is None and text.replace(".", "", 1).isdigit()):
                return text
        raise RuntimeError(f"the program ended; see {self.log}")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def fill(server: MySQL, sizes: Sizes) -> None:
    """The changes: inserts, updates and deletes of many rows each."""
    with server.connect() as sql, sql.cursor() as cursor:
        for first in range(0, sizes.inserts, STEP):
            rows = ", ".join(
                f"({n}, {n % 977}, {n}.{n % 100:02d}, 'note of order number {n}', 'new', "
                f"'2024-05-01 08:00:00.{n % 1000:03d}', {n / 7!r}, {n % 3}, {n * 7919})"
                for n in range(first, first + STEP)
            )
            cursor.execute(f"INSERT INTO bench.t VALUES {rows}")
        for first in range(0, sizes.updates, STEP):
            ids = f"id >= {first} AND id < {first + STEP}"
            cursor.execute(f"UPDATE bench.t SET total = total + 1, state = 'paid' WHERE {ids}")
        for first in range(0, sizes.deletes, STEP):
            cursor.execute(f"DELETE FROM bench.t WHERE id >= {first} AND id < {first + STEP}")


def headgate_binlog(login: Login, start: Start, end: Start, changes: int) -> float:
    """Seconds to read the binlog as batches of events."""
    began, rows = time.monotonic(), 0
    with login.connected() as connection, fast_worker():
        for batch in read_binlog(connection, start, REPLICA, until=Start(end.file, end.pos)):
            rows += sum(events.num_rows for events in batch.events)
    if rows != changes:
        raise RuntimeError(f"{rows} of {changes} changes were read")
    return time.monotonic() - began


def headgate_landed(spark: SparkSession, server: MySQL, start: Start, sizes: Sizes) -> float:
    """Seconds of a job from the binlog to a Delta table, with its start and end."""
    folder = FILES / "captured"
    shutil.rmtree(folder, ignore_errors=True)
    login = f"mysql://{server.user}:{server.password}@{server.address}"
    settings = {"pipeline.name": "bench", "pipeline.checkpoint": str(folder / "state")}
    job = job_of(
        f"{login}/bench.t?starting={start.file}:{start.pos}", [f"delta://{folder}/lake"], settings
    )
    began = time.monotonic()
    totals = run(job, once=True, spark=spark).totals
    taken = time.monotonic() - began
    rows = DeltaTable(folder / "lake" / "bench" / "t").to_pyarrow_dataset().count_rows()
    if (totals.messages, rows) != (sum(sizes), sizes.left):
        raise RuntimeError(f"{totals.messages} changes were landed, {rows} rows are left")
    return taken


def fill_snapshot(server: MySQL, sizes: Sizes, rows: int) -> None:
    """Copies of the rows that are left, under other keys."""
    server.run("CREATE TABLE bench.s LIKE bench.t")
    names = "customer, total, note, state, created, price, flags, code"
    for first in range(0, rows, sizes.left):
        server.run(
            f"INSERT INTO bench.s (id, {names}) SELECT id - {sizes.deletes} + {first}, {names} "
            f"FROM bench.t LIMIT {min(sizes.left, rows - first)}"
        )


def headgate_snapshot(
    spark: SparkSession, login: Login, at: Start, rows: int, in_spark: bool
) -> float:
    """Seconds to read a table in chunks, by Spark's tasks: events that stay in the workers, where a
    job's pass takes them, or that Spark gets as a DataFrame."""
    began = time.monotonic()
    with login.connected() as connection:
        known = current_table(connection, "bench", "s")
        assert known is not None
        key = [(name, known[0].columns[name].mysql) for name in known[0].key]
        middle = next_bound(connection, "bench", "s", key, None, rows // PARTS)
    chunks = [Chunk("bench", "s", None, middle), Chunk("bench", "s", middle, None)]

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            for batch in batches:
                for number in batch["id"].to_pylist():
                    events = read_chunk(login, chunks[number], at, REPLICA + 1 + number)
                    if in_spark:
                        yield from events
                    else:
                        count = sum(batch.num_rows for batch in events)
                        yield pa.RecordBatch.from_pydict({"rows": [count]})

    schema = from_arrow_schema(EVENT_SCHEMA) if in_spark else "rows long"
    events = spark.range(0, PARTS, 1, PARTS).mapInArrow(read, schema)
    if in_spark:
        events.write.format("noop").mode("overwrite").save()
    elif (count := sum(row.rows for row in events.collect())) != rows:
        raise RuntimeError(f"{count} of {rows} rows were read")
    return time.monotonic() - began


def jdbc_snapshot(spark: SparkSession, server: MySQL, rows: int) -> float:
    """Seconds of Spark's own source with as many tasks."""
    uri = f"mysql://{server.user}:{server.password}@{server.address}/bench"
    options = parse_database(uri).spark_options() | {
        "dbtable": "bench.s", "partitionColumn": "id", "lowerBound": "0",
        "upperBound": str(rows), "numPartitions": str(PARTS),
    }  # fmt: skip
    began = time.monotonic()
    table = spark.read.format("jdbc").options(**options).load()
    table.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


@contextmanager
def debezium_begun(server: MySQL, folder: Path) -> Iterator[Loop | None]:
    """Debezium's engine, which has seen the table before its changes; None where it is missing."""
    try:
        loop = Loop(DEBEZIUM, "DebeziumLoop.java", str(folder))
    except HeadgateError as error:
        print(f"Debezium is left out: {error}", flush=True)
        yield None
        return
    try:
        asked = f"begin 127.0.0.1 {server.port} {server.user} {server.password}"
        with ThreadPoolExecutor(1) as pool:
            begun = pool.submit(loop.ask, asked, "begun")
            while not begun.done():
                server.run("INSERT INTO bench.ping VALUES (NULL)")
                time.sleep(0.5)
            begun.result()
        yield loop
    finally:
        loop.close()


def measure(spark: SparkSession, messages: int, rounds: int) -> list[Figures]:
    """Read the same binlog by each, and the same table."""
    sizes = Sizes.of(min(messages, CHANGES))
    count = sum(sizes)
    changes, landed = Figures(BINLOG, count, 0), Figures(LANDED, count, 0)
    rows = Figures(SNAPSHOT, min(messages, SNAPSHOT_ROWS), 0)
    folder = FILES / "debezium"
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    with ExitStack() as stack:
        server = stack.enter_context(MySQL().start())
        server.run("CREATE DATABASE bench", TABLE, PING)
        engine = stack.enter_context(debezium_begun(server, folder))
        login = Login("127.0.0.1", server.port, server.user, server.password)
        with login.connected() as connection:
            start = connection.current_position()
        fill(server, sizes)
        with login.connected() as connection:
            end = connection.current_position()
        loop = Loop(BINLOG_CLIENT, "BinlogLoop.java")
        stack.callback(loop.close)
        address = f"127.0.0.1 {server.port} {server.user} {server.password}"
        asked = f"{address} {start.file} {start.pos} {count}"
        works: Works = {
            "headgate": lambda: headgate_binlog(login, Start(start.file, start.pos), end, count),
            "loop": lambda: float(loop.ask(asked)),
        }
        if engine is not None:
            works["debezium"] = lambda: float(engine.ask(f"read {address} {count}"))
        take_turns(changes, works, {}, rounds, LABELS)
        job: Works = {"headgate": lambda: headgate_landed(spark, server, start, sizes)}
        take_turns(landed, job, {}, rounds, LABELS)
        fill_snapshot(server, sizes, rows.messages)
        with login.connected() as connection:
            filled = connection.current_position()
        tables: dict[str, Any] = {
            "headgate": lambda: headgate_snapshot(spark, login, filled, rows.messages, False),
            "dataframe": lambda: headgate_snapshot(spark, login, filled, rows.messages, True),
            "jdbc": lambda: jdbc_snapshot(spark, server, rows.messages),
        }
        take_turns(rows, tables, {}, rounds, LABELS)
    return [changes, landed, rows]


def bars(figures: Figures) -> list[Bar]:
    return [
        Bar("headgate", bar, figures.ratio("headgate", other), other)
        for (name, other), bar in BARS.items()
        if name == figures.name
    ]


def table(results: list[Figures]) -> list[list[str]]:
    lines = []
    for figures in results:
        judged = {bar.other: str(bar) for bar in bars(figures)}
        for work in [work for work in LABELS if figures.seconds.get(work)]:
            ratio = None if work in OURS else figures.ratio("headgate", work)
            row = [figures.name, LABELS[work], *figures.cells(work)[:2]]
            lines.append([*row, times(ratio), judged.get(work, "")])
    return lines


def section(results: list[Figures], rounds: int) -> list[str]:
    sizes = Sizes.of(results[0].messages)
    return [
        "## Capture",
        markdown(HEAD, table(results)),
        f"One binlog of MySQL 8.0.33 on the same machine with {sizes.inserts:,} inserts, "
        f"{sizes.updates:,} updates and {sizes.deletes:,} deletes of a table of nine columns, "
        f"{STEP:,} rows a statement; "
        f"each once unmeasured and then {rounds} times, in turn; the median counts. Headgate reads "
        "it in one process as Arrow batches of complete events, with both images, types and "
        "positions. The bare loop counts the rows that `mysql-binlog-connector-java` 0.30.1 gives. "
        "Debezium 3.5 runs in its embedded engine and gives JSON without schemas; its time is from "
        "its first events on, without the start of the engine. Into Delta is a whole job "
        "(`run` with `once` in a warm session), with its start and its checkpoint.",
        f"The snapshot reads a table of {results[-1].messages:,} such rows in {PARTS} tasks. "
        "Headgate reads events, which stay in Spark's Python workers: there a job's pass encodes "
        "or lands them. A DataFrame of events, which a program gets from `headgate.mysql`, costs "
        "Spark the transport of 18 columns with three maps to its JVM besides. JDBC reads typed "
        "columns in the JVM. It and the DataFrame go to the `noop` sink.",
    ]
