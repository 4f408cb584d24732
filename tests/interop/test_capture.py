"""A database captured into formats and landed from there, or landed at once: the same tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from capture_workload import DATABASE, Workload, statement
from job_runs import once, wait_for
from pyspark.sql import SparkSession

import headgate
from headgate import verify
from headgate.config.reader import job_of
from headgate.core.errors import UsageError
from headgate.verification.api import verify_job
from headgate.verification.run import Wanted

FORMATS = ["canal-json:ticdc", "debezium", "maxwell"]


def login(server: Any) -> str:
    return f"mysql://{server.user}:{server.password}@{server.address}"


def change(workload: Workload, seed: int) -> None:
    chance = random.Random(seed)
    with workload.connect() as sql, sql.cursor() as cursor:
        for _ in range(200):
            cursor.execute(statement(chance))
            sql.commit()


@pytest.fixture
def workload(mariadb: Any) -> Workload:
    workload = Workload(mariadb, 7)
    workload.create()
    return workload


def test_captured_into_formats_and_landed(
    mariadb: Any, workload: Workload, spark: SparkSession, tmp_path: Path
) -> None:
    source = f"{login(mariadb)}/{DATABASE}.*"
    outs = {f: f"file://{tmp_path}/{f.replace(':', '-')}.out" for f in FORMATS}
    sinks = [f"{out}?protocol={format}" for format, out in outs.items()]
    once(spark, tmp_path / "capture", source, *sinks)
    change(workload, 1)
    workload.alter(0)
    change(workload, 2)
    once(spark, tmp_path / "capture", source, *sinks)

    for format, out in outs.items():
        lake = f"delta://{out.removeprefix('file://')}.lake"
        once(spark, Path(f"{out.removeprefix('file://')}.state"), f"{out}?protocol={format}", lake)
        result = verify(f"{login(mariadb)}/{DATABASE}.*", lake, spark=spark)
        assert result.equal, f"{format}: {result}"
        assert 5 == len(result.tables)


def test_landed_at_once_and_verified_by_its_job(
    mariadb: Any, workload: Workload, spark: SparkSession, tmp_path: Path
) -> None:
    source, lake = f"{login(mariadb)}/{DATABASE}.orders", f"delta://{tmp_path}/lake"
    once(spark, tmp_path, source, lake)
    change(workload, 3)
    settings = {"pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "t"}
    job = job_of(source, [lake], settings)

    different = verify_job(job, Wanted(wait=0.0))
    once(spark, tmp_path, source, lake)
    equal = verify_job(job, Wanted(wait=0.0))

    assert not different.equal
    assert equal.equal
    assert [f"{DATABASE}.orders"] == [table.table for table in equal.tables]


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
