"""`headgate.run` and `headgate.session`, from Python and notebooks."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from job_runs import files_to_files, lines_in
from kafka_broker import Broker
from messages import canal
from pyspark.sql import SparkSession

import headgate
from headgate.core.errors import UsageError
from headgate.pipeline.status import Status

SHUFFLE = "spark.sql.shuffle.partitions"
PROGRAM = """
import sys
import headgate

spark = headgate.session("local[1]", connectors=["kafka"], **{"spark.sql.shuffle.partitions": 7})
source = spark.read.format("kafka").option("kafka.bootstrap.servers", sys.argv[1])
messages = source.option("subscribe", sys.argv[2]).load()
events = headgate.decode(messages)
orders = headgate.rows(
    events, "shop.orders", "id BIGINT, amount DECIMAL(12,2), placed_at TIMESTAMP_NTZ"
)
print([(row.id, str(row.amount), row._offset) for row in orders.collect()])
print(spark.conf.get("spark.sql.shuffle.partitions"), spark.sparkContext.uiWebUrl is not None)
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = files_to_files(tmp_path)
    (tmp_path / "in" / "a.jsonl").write_bytes(canal() + b"\n")
    return path


def test_a_job_file_runs_on_the_session_that_is_there(spark: SparkSession, job: Path) -> None:
    """Here in another thread, as some notebooks do; the session keeps its settings."""
    spark.conf.set(SHUFFLE, "3")
    done: list[Status] = []
    try:
        thread = threading.Thread(target=lambda: done.append(headgate.run(job, once=True)))
        thread.start()
        thread.join(120)
        assert "3" == spark.conf.get(SHUFFLE)
    finally:
        spark.conf.unset(SHUFFLE)

    (status,) = done
    assert ("stopped", 1) == (status.state, status.totals.messages)
    assert ["orders"] == [m["table"] for m in lines_in(job.parent / "out")]


def test_uris_run_as_a_job(spark: SparkSession, job: Path) -> None:
    status = headgate.run(
        source=str(job.parent / "in"),
        sink=f"file://{job.parent}/other?protocol=maxwell&as=lines",
        settings={"pipeline.checkpoint": f"{job.parent}/state-2"},
        once=True,
        spark=spark,
    )

    assert 1 == status.totals.messages
    assert ["insert"] == [m["type"] for m in lines_in(job.parent / "other")]


def test_what_is_not_a_job_is_refused(job: Path) -> None:
    for given in ({}, {"job": job, "source": "in"}, {"source": "in"}):
        with pytest.raises(UsageError, match="takes a job file, or source=URI and sink=URI"):
            headgate.run(**given)


def test_a_session_that_is_there_is_not_started_again(spark: SparkSession) -> None:
    assert spark.sparkContext is headgate.session(connectors=["kafka"]).sparkContext
    with pytest.raises(UsageError, match=r"no connector delta.*--packages io.delta:delta-spark"):
        headgate.session(connectors=["delta"])


def test_the_first_example_runs_as_it_stands(broker: Broker) -> None:
    topic = broker.create_topic("first-example")
    broker.produce(topic, [(None, canal(), 0, None)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, broker.bootstrap, topic], capture_output=True, text=True
    )

    assert done.stdout.splitlines() == ["[(1, '1.10', 0)]", "7 True"], done.stderr
