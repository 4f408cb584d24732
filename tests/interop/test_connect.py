"""The DataFrame functions on a Spark Connect session."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from messages import canal

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import headgate

spark = SparkSession.builder.remote("local[1]").getOrCreate()
assert "connect" in type(spark).__module__
messages = spark.createDataFrame(
    [("cdc", 0, 1, sys.argv[1].encode()), ("cdc", 0, 2, b"{")],
    "topic string, partition int, offset bigint, value binary",
)
events = messages.transform(headgate.decoder("auto"))
print([(e.kind, e.origin.offset) for e in events.collect()])
for each in (events, events.where("kind = 'row'")):
    for schema in ("id BIGINT, amount DECIMAL(12,2)", None):
        rows = headgate.rows(each, "shop.orders", schema)
        print([(r.id, str(r.amount), r._offset) for r in rows.collect()])
out = headgate.encode(events, "maxwell", topic="{table}")
print([(m.topic, bytes(m.value)[:18]) for m in out.collect()])
print([e.error.code for e in headgate.dead_letters(events, "maxwell").collect()])
events.cache()
print(headgate.rows(events, "orders", "id INT").count())
headgate.register(spark)
messages.createOrReplaceTempView("topic")
sql = "SELECT kind FROM headgate_decode(TABLE(topic), 'auto')"
print(sorted(e.kind for e in spark.sql(sql).collect()))
try:
    headgate.run(source="in", sink="file:out?protocol=maxwell", spark=spark)
except headgate.UsageError as error:
    print(str(error).partition(';')[0])
spark.stop()
"""


@pytest.mark.spark
def test_everything_on_dataframes_works_on_a_connect_session() -> None:
    pytest.importorskip("grpc_status", reason="pip install 'pyspark[connect]'")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, canal()], capture_output=True, text=True, env=environment
    )

    rows = "[(1, '1.10', 1)]"
    assert done.stdout.splitlines() == [
        "[('row', 1), ('invalid', 2)]",
        *[rows] * 4,
        "[('orders', b'{\"database\":\"shop\"')]",
        "['malformed-json']",
        "1",
        "['invalid', 'row']",
        "a job cannot run on a Spark Connect session",
    ], done.stderr[-2000:]
