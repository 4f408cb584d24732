"""Messages that are only counted on their way to a worker, and long ones among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from job_runs import once, uri
from kafka_broker import Broker
from messages import canal
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.engine import Engine
from headgate.pipeline.plan import BatchPlan
from headgate.spark import arrow_batching


def test_a_long_message_comes_without_its_contents(spark: SparkSession) -> None:
    rows = [
        (b"k" * 10, b"v" * 80, "h" * 10, 0, 5),
        (b"k" * 10, b"v" * 80, "h" * 11, 0, 6),
        (None, None, None, 0, 7),
        (None, b"v" * 101, None, 1, 8),
    ]
    columns = "key binary, value binary, headers string, partition int, offset long"
    found = arrow_batching.shortened(spark.createDataFrame(rows, columns), 100).collect()
    empty = (None, None, None)
    assert [rows[0], (*empty, 0, None), rows[2], (*empty, 1, None)] == list(map(tuple, found))


@pytest.mark.parametrize(
    ("size", "rows", "expected"),
    [
        ("33554432", "10000", 3_355),
        ("64m", "10000", 6_710),
        (None, "10000", 6_710),  # Spark's own
        ("64m", "0", 0),
    ],
)
def test_the_share_of_a_message_is_what_the_limits_leave(
    spark: SparkSession, size: str | None, rows: str, expected: int
) -> None:
    """Without a limit of rows there is none: they must be measured."""
    before = {
        name: spark.conf.get(name) for name in (arrow_batching.MOST_ROWS, arrow_batching.MOST_BYTES)
    }
    spark.conf.unset(arrow_batching.MOST_BYTES)
    if size is not None:
        spark.conf.set(arrow_batching.MOST_BYTES, size)
    spark.conf.set(arrow_batching.MOST_ROWS, rows)
    try:
        assert expected == arrow_batching.share(spark)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def failing(spark: SparkSession) -> None:
    with arrow_batching.unmeasured(spark):
        assert arrow_batching.UNMEASURED == spark.conf.get(arrow_batching.MOST_BYTES)
        _ = 1 // 0


def test_spark_measures_again_whatever_happens(spark: SparkSession) -> None:
    before = spark.conf.get(arrow_batching.MOST_BYTES)
    with pytest.raises(ZeroDivisionError):
        failing(spark)
    assert before == spark.conf.get(arrow_batching.MOST_BYTES)


def test_long_messages_among_short_ones_arrive_in_order(
    broker: Broker, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = []
    passed = Engine.passed

    def noted(self: Engine, messages: DataFrame, plan: BatchPlan) -> Any:
        passes.append(plan.unmeasured)
        return passed(self, messages, plan)

    monkeypatch.setattr(Engine, "passed", noted)
    long = "ä" * 5_000
    notes = {n: long if n in (25, 37) else f"note {n}" for n in range(40)}
    topic = broker.create_topic("lots", 1)
    broker.produce(
        topic,
        (
            (None, canal(data=[{"id": str(n), "amount": "1.10", "note": note}]), 0, None)
            for n, note in notes.items()
        ),
    )

    told = {"pipeline.max_messages": "10"}
    status = once(
        spark, tmp_path, uri(broker, topic), uri(broker, "lots-out", protocol="canal-json"), **told
    )

    assert [True, True, True, False, False] == passes
    assert 40 == status.totals.messages
    rows = [json.loads(value)["data"][0] for _, _, _, value, _ in broker.consume("lots-out")]
    assert notes == {int(row["id"]): row["note"] for row in rows}
    assert sorted(notes) == [int(row["id"]) for row in rows]
