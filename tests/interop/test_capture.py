"""A database captured into formats and landed from there, or landed at once: the same tables."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from capture_workload import DATABASE, TYPES, Workload
from dialects import SPECS
from job_runs import once, wait_for
from kafka_broker import Broker
from mysql_replica import Replica
from mysql_values import ColumnKind
from pyspark.sql import SparkSession
from written_dialects import Dialect, exact, written_dialects

import headgate
from headgate import verify
from headgate.config.reader import job_of
from headgate.core.errors import UsageError
from headgate.verification.api import verify_job
from headgate.verification.run import Wanted


def login(server: Any) -> str:
    return f"mysql://{server.user}:{server.password}@{server.address}"


def change(workload: Workload, seed: int) -> None:
    chance = random.Random(seed)
    with workload.connect() as sql, sql.cursor() as cursor:
        for _ in range(200):
            cursor.execute(workload.statement(chance))
            sql.commit()


@pytest.fixture
def workload(mariadb: Any) -> Workload:
    workload = Workload(mariadb, 7)
    workload.create()
    return workload


ALL = ("orders", "types", "items", "journal", "nothing", "later")


@dataclass(frozen=True)
class Group:
    """Dialects that carry the same of a database."""

    specs: tuple[str, ...]
    tables: tuple[str, ...] = ALL
    has_ddl: bool = True
    """Whether their messages have DDL, so that a table may be altered on the way."""

    @property
    def pattern(self) -> str:
        return ",".join(f"{DATABASE}.{table}" for table in self.tables)


KEYED = ("orders", "types", "items", "nothing", "later")
WITHOUT_DDL = ("debezium:oms", "debezium:oms-flatten")
APART = ("debezium-smt:debezium", "debezium-smt:oms", *WITHOUT_DDL)
GROUPS = {
    "whole": Group(tuple(spec for spec in SPECS if spec not in APART)),
    "without old rows": Group(("debezium-smt:debezium",), KEYED),
    "without DDL": Group(WITHOUT_DDL, ("orders", "types", "items", "journal"), False),
    "without names": Group(("debezium-smt:oms",), ("orders",), False),
}
"""Together every dialect. One that has no row before a change cannot tell which of two equal rows
of a table without a key is gone; one without DDL has nothing of an empty table; one without names
is of one table."""


def carried_by(dialects: Iterable[Dialect]) -> tuple[ColumnKind, ...]:
    """The types with those of their values that every dialect has a form for."""
    types = TYPES
    for dialect in dialects:
        types = tuple(exact(dialect, types, is_key=False))
    return types


def parameters(options: Mapping[str, Any]) -> str:
    return "".join(f"&{name.replace('_', '-')}={quote(str(value).lower())}"
                   for name, value in options.items())  # fmt: skip


def definitions(server: Any, tables: Iterable[str], path: Path) -> Path:
    """A schema file, which readers of messages without types and DDL need."""
    with server.connect() as sql, sql.cursor() as cursor:
        texts = [f"USE {DATABASE}"]
        for table in tables:
            cursor.execute(f"SHOW CREATE TABLE {DATABASE}.{table}")
            texts.append(cursor.fetchall()[0][1])
    path.write_text(";\n".join(texts))
    return path


def differing(spark: SparkSession, server: Any, lake: str, tables: Iterable[str]) -> dict[str, str]:
    """What is wrong with landed tables, by table."""
    patterns = [f"{DATABASE}.{table}" for table in tables]
    result = verify(f"{login(server)}/{DATABASE}", lake, patterns, spark=spark)
    states = {table.table: table.state for table in result.tables}
    wrong = {name: str(states.get(name)) for name in patterns if states.get(name) != "equal"}
    return wrong if wrong or result.equal else {DATABASE: str(result)}


@pytest.mark.parametrize("database", ["mariadb", "mysql"])
@pytest.mark.parametrize("name", GROUPS)
def test_captured_into_every_dialect_over_kafka_and_landed(
    name: str,
    database: str,
    request: pytest.FixtureRequest,
    broker: Broker,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    server, group = request.getfixturevalue(database), GROUPS[name]
    dialects = [each for each in written_dialects() if each.name in group.specs]
    workload = Workload(server, 7, types=carried_by(dialects))
    workload.create()
    topics = [
        (each, broker.create_topic(f"capture-{database}-{each.spec.replace(':', '-')}"))
        for each in dialects
    ]
    sinks = [
        f"kafka://{broker.bootstrap}/{topic}?protocol={each.spec}{parameters(each.options)}"
        for each, topic in topics
    ]
    source = f"{login(server)}/{group.pattern}"
    once(spark, tmp_path / "capture", source, *sinks)
    change(workload, 1)
    if group.has_ddl:
        workload.alter(0)
        change(workload, 2)
    once(spark, tmp_path / "capture", source, *sinks)

    different = {}
    for each, topic in topics:
        folder = tmp_path / topic
        more = dict(each.source, database=DATABASE) if each.source else {}
        settings = {}
        if not group.has_ddl:
            schema = definitions(server, group.tables, tmp_path / "schema.sql")
            settings["pipeline.schema"] = str(schema)
        messages = f"kafka://{broker.bootstrap}/{topic}?protocol={each.spec}{parameters(more)}"
        once(spark, folder, messages, f"delta://{folder}/lake", **settings)
        wrong = differing(spark, server, f"delta://{folder}/lake", group.tables)
        if wrong:
            different[each.spec] = wrong
    assert {} == different


@pytest.mark.parametrize("database", ["mariadb", "new_mariadb"])
def test_landed_at_once_and_verified_by_its_job(
    database: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    workload = Workload(request.getfixturevalue(database), 7)
    workload.create()
    tables = f"{DATABASE}.orders,{DATABASE}.types"
    source, lake = f"{login(workload.server)}/{tables}", f"delta://{tmp_path}/lake"
    once(spark, tmp_path, source, lake)
    change(workload, 3)
    settings = {"pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "t"}
    job = job_of(source, [lake], settings)

    different = verify_job(job, Wanted(wait=0.0))
    once(spark, tmp_path, source, lake)
    equal = verify_job(job, Wanted(wait=0.0))

    assert not different.equal
    assert equal.equal
    assert tables.split(",") == sorted(table.table for table in equal.tables)


def test_a_run_of_what_is_there_ends_while_others_write(
    mariadb: Any, workload: Workload, spark: SparkSession, tmp_path: Path
) -> None:
    source, lake = f"{login(mariadb)}/{DATABASE}.*", f"delta://{tmp_path}/lake"
    with workload:
        for _ in range(4):
            assert "stopped" == once(spark, tmp_path, source, lake).state

    once(spark, tmp_path, source, lake)
    assert {} == differing(spark, mariadb, lake, ("orders", "items", "journal", "nothing"))


def test_a_stream_of_events_in_spark(
    mariadb: Any, workload: Workload, spark: SparkSession, tmp_path: Path
) -> None:
    headgate.register(spark)
    seen: list[tuple[str, str | None, str | None]] = []

    def read(until: int) -> None:
        events = (
            spark.readStream.format("headgate.mysql")
            .option("url", login(mariadb))
            .option("tables", f"{DATABASE}.later, {DATABASE}.nothing")
            .option("state", str(tmp_path / "state"))
            .load()
        )
        query = (
            events.writeStream.foreachBatch(
                lambda batch, _: seen.extend(
                    (row.kind, row.op, (row.after or {}).get("v")) for row in batch.collect()
                )
            )
            .option("checkpointLocation", str(tmp_path / "query"))
            .start()
        )
        try:
            wait_for(lambda: query.exception() or len(seen) >= until)
        finally:
            query.stop()

    workload.alter(0)
    read(4)
    assert sorted(seen) == [
        ("ddl", "create", None), ("ddl", "create", None), ("row", "snapshot", "a"),
        ("row", "snapshot", "b"),
    ]  # fmt: skip
    mariadb.run(f"INSERT INTO {DATABASE}.later (v) VALUES ('c')")
    read(5)
    assert seen[4:] == [("row", "insert", "c")]


def test_a_purged_position_says_what_to_do(
    mariadb: Any, workload: Workload, spark: SparkSession, tmp_path: Path
) -> None:
    source, lake = f"{login(mariadb)}/{DATABASE}.journal", f"delta://{tmp_path}/lake"
    once(spark, tmp_path, source, lake)
    change(workload, 4)
    mariadb.run("FLUSH LOGS", "FLUSH LOGS")
    newest = mariadb_log(mariadb)
    mariadb.run(f"PURGE BINARY LOGS TO '{newest}'")

    with pytest.raises(Exception, match="take a new snapshot"):
        once(spark, tmp_path, source, lake)


def mariadb_log(server: Any) -> str:
    with server.connect() as sql, sql.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        return str(cursor.fetchall()[0][0])


@pytest.mark.parametrize(
    ("grants", "said"),
    [
        ("SELECT", "GRANT BINLOG MONITOR ON"),
        ("SELECT, BINLOG MONITOR", "GRANT REPLICATION SLAVE ON"),
        ("BINLOG MONITOR, REPLICATION SLAVE", "may not see it"),
    ],
)
def test_the_check_says_which_privilege_is_missing(
    mariadb: Any, workload: Workload, spark: SparkSession, grants: str, said: str
) -> None:
    mariadb.run(
        "DROP USER IF EXISTS weak@'127.0.0.1'",
        "CREATE USER weak@'127.0.0.1' IDENTIFIED BY 'hunter2'",
        f"GRANT {grants} ON *.* TO weak@'127.0.0.1'",
    )
    source = f"mysql://weak:hunter2@{mariadb.address}/{DATABASE}.*"
    job = job_of(source, ["console:?protocol=canal-json"], {})

    with pytest.raises(UsageError) as caught:
        job.source.connector.check(spark, {})

    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_incomplete_row_images_are_landed(
    image: str, mysql: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """The server writes the key and what changed: the rest of a landed row stays as it is.

    With MINIMAL an insert lacks columns that take their default, which nobody can land: so none is
    added here, as it is with NOBLOB.
    """
    workload = Workload(mysql, 11)
    workload.create()
    source, lake = f"{login(mysql)}/{DATABASE}.*", f"delta://{tmp_path}/lake"
    once(spark, tmp_path, source, lake)
    mysql.run(f"SET GLOBAL binlog_row_image = '{image}'")
    try:
        change(workload, 5)
        if image == "NOBLOB":
            workload.alter(0)
            change(workload, 6)
        mysql.run(f"UPDATE {DATABASE}.orders SET doc = NULL, note = 'all' WHERE id < 50")
        once(spark, tmp_path, source, lake)
    finally:
        mysql.run("SET GLOBAL binlog_row_image = 'FULL'")

    tables = ALL if image == "NOBLOB" else ALL[:-1]
    assert {} == differing(spark, mysql, lake, tables)


def test_a_job_goes_on_with_a_promoted_replica(
    mysql: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """The same checkpoint, and another address: the replica's files have lower numbers."""
    lake = f"delta://{tmp_path}/lake"
    with Replica().start() as replica:
        replica.follow(mysql)
        workload = Workload(mysql, 12)
        workload.create()
        mysql.run("FLUSH LOGS", "FLUSH LOGS")
        once(spark, tmp_path, f"{login(mysql)}/{DATABASE}.*", lake)
        change(workload, 7)
        once(spark, tmp_path, f"{login(mysql)}/{DATABASE}.*", lake)
        change(workload, 8)
        replica.promote(mysql)
        promoted = Workload(replica, 12)
        change(promoted, 9)
        promoted.alter(0)
        once(spark, tmp_path, f"{login(replica)}/{DATABASE}.*", lake)
        change(promoted, 10)
        once(spark, tmp_path, f"{login(replica)}/{DATABASE}.*", lake)

        assert {} == differing(spark, replica, lake, ALL)
