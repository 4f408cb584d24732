"""`headgate.register`: a table function in SQL, and files of messages in `spark.read`."""

from __future__ import annotations

from pathlib import Path

import pytest
from messages import canal, maxwell
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import headgate
from headgate.arrow.events import EVENT_SCHEMA


@pytest.fixture
def registered(spark: SparkSession) -> SparkSession:
    headgate.register(spark)
    return spark


def test_a_table_of_messages_is_decoded_in_sql(registered: SparkSession) -> None:
    messages = [("cdc", 3, 1, canal()), ("cdc", 3, 2, b"{"), ("cdc", 3, 3, maxwell())]
    df = registered.createDataFrame(
        messages, "topic string, partition int, offset bigint, value binary"
    )
    df.createOrReplaceTempView("cdc")

    events = registered.sql("SELECT * FROM headgate_decode(TABLE(cdc), 'auto')")
    assert headgate.decode(df).collect() == events.orderBy("origin.offset").collect()
    assert from_arrow_schema(EVENT_SCHEMA) == events.schema
    only = "SELECT kind FROM headgate_decode(TABLE(SELECT value FROM cdc), 'maxwell')"
    kinds = [row.kind for row in registered.sql(only).collect()]
    assert ["invalid", "invalid", "row"] == sorted(kinds)


def test_options_are_named_in_sql(registered: SparkSession) -> None:
    at = canal(data=[{"at": "2024-01-01 08:00:00"}], mysqlType={"at": "timestamp"})
    registered.createDataFrame([(at.decode(),)], "value string").createOrReplaceTempView("local")

    found = registered.sql(
        "SELECT after['at'] AS at FROM headgate_decode(TABLE(local), 'canal-json', "
        "map('timezone', 'Asia/Shanghai'))"
    )
    assert "2024-01-01 00:00:00" == found.first().at


def test_a_wrong_format_is_refused_in_sql(registered: SparkSession) -> None:
    registered.createDataFrame([("{}",)], "value string").createOrReplaceTempView("one")
    with pytest.raises(PySparkException, match="did you mean 'maxwell'"):
        registered.sql("SELECT * FROM headgate_decode(TABLE(one), 'maxwel')").collect()


def test_files_of_messages_are_read_as_events(registered: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(canal() + b"\n{\n")
    (tmp_path / "b.jsonl").write_bytes(maxwell() + b"\n")

    events = registered.read.format("headgate").load(str(tmp_path))
    assert from_arrow_schema(EVENT_SCHEMA) == events.schema
    found = {(e.kind, e.origin.format) for e in events.collect()}
    assert {("row", "canal-json"), ("invalid", None), ("row", "maxwell")} == found
    typed = headgate.rows(events, "shop.orders", "id BIGINT")
    assert [1, 1] == [row.id for row in typed.collect()]


def test_files_are_read_with_options_of_their_format(
    registered: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_bytes(maxwell(data={"tags": ["b", "a"]}) + b"\n")

    def events(path: Path, **options: str) -> DataFrame:
        return registered.read.format("headgate").options(**options).load(str(path))

    found = events(tmp_path / "a.jsonl", format="maxwell", columns="tags SET")
    assert {"tags": "b,a"} == found.first().after
    with pytest.raises(PySparkException, match="unknown option 'colunms'; did you mean 'columns'"):
        events(tmp_path, format="maxwell", colunms="x").collect()
    with pytest.raises(PySparkException, match="no such file or directory"):
        events(tmp_path / "missing").collect()
