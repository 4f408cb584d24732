from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest
from messages import canal, maxwell
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import headgate
from headgate.arrow.events import EVENT_SCHEMA
from headgate.core.errors import UsageError

ORDERS = "id BIGINT, amount DECIMAL(12,2), note STRING"


def kafka(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    """Messages as Spark's Kafka source gives them."""
    now = dt.datetime(2024, 1, 2, 3, 4, 5)
    rows = [(None, v, "cdc", 3, 100 + i, now, 0, None) for i, v in enumerate(values)]
    return spark.createDataFrame(
        rows,
        "key binary, value binary, topic string, partition int, offset bigint, "
        "timestamp timestamp, timestampType int, headers array<struct<key:string,value:binary>>",
    )


def test_events_have_the_columns_of_the_contract(spark: SparkSession) -> None:
    events = headgate.decode(kafka(spark, [canal()]), "canal-json")

    assert EVENT_SCHEMA.names == events.columns
    assert from_arrow_schema(EVENT_SCHEMA).simpleString() == events.schema.simpleString()


def test_an_event_carries_its_row_and_where_it_came_from(spark: SparkSession) -> None:
    (event,) = headgate.decode(kafka(spark, [canal()]), "canal-json").collect()

    assert {"id": "1", "amount": "1.10", "note": None} == event.after
    assert ["id"] == event.key
    assert "decimal(12,2)" == event.types["amount"].mysql
    assert ("canal-json", "canal", "cdc", 3, 100) == event.origin[:5]
    assert dt.datetime(2024, 1, 2, 3, 4, 5) == event.origin.timestamp


def test_one_bad_message_is_a_row_and_its_neighbours_live(spark: SparkSession) -> None:
    values = [canal(), b"{", None, canal(data=[{"id": "2"}, {"id": "3"}])]
    events = headgate.decode(kafka(spark, values)).collect()

    assert ["row", "invalid", "tombstone", "row", "row"] == [e.kind for e in events]
    assert [100, 101, 102, 103, 103] == [e.origin.offset for e in events]
    assert b"{" == bytes(events[1].raw)


def test_a_mixed_topic_is_detected_message_by_message(spark: SparkSession) -> None:
    events = headgate.decode(kafka(spark, [canal(), maxwell(), canal()])).collect()

    assert ["canal-json", "maxwell", "canal-json"] == [e.origin.format for e in events]


def test_any_dataframe_with_a_value_column_will_do(spark: SparkSession) -> None:
    df = spark.createDataFrame([(canal().decode(),)], "value string")

    assert "insert" == df.transform(headgate.decoder("canal-json:canal")).first().op


def test_a_dataframe_without_value_is_refused_by_name(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"no column 'value'.*body"):
        headgate.decode(spark.createDataFrame([("x",)], "body string"))


@pytest.mark.parametrize("filtered", [False, True], ids=["fresh", "filtered"])
def test_rows_are_typed_one_per_image(spark: SparkSession, filtered: bool) -> None:
    update = canal(type="UPDATE", old=[{"amount": "1.00"}])
    events = headgate.decode(kafka(spark, [canal(), update, canal(type="DELETE")]))
    events = events.where("kind = 'row'") if filtered else events
    rows = headgate.rows(events, "shop.orders", ORDERS).collect()

    types = ["insert", "update_preimage", "update_postimage", "delete"]
    assert types == [r._change_type for r in rows]
    assert [Decimal("1.10"), Decimal("1.00"), Decimal("1.10"), Decimal("1.10")] == [
        r.amount for r in rows
    ]
    assert dt.datetime(2020, 5, 13, 12, 38, 35) == rows[0]._commit_timestamp
    assert all(r._misfits is None for r in rows)


@pytest.mark.parametrize("filtered", [False, True], ids=["fresh", "filtered"])
def test_a_value_that_does_not_fit_is_reported(spark: SparkSession, filtered: bool) -> None:
    odd = canal(data=[{"id": "18446744073709551615", "amount": "1.234", "note": "x"}])
    events = headgate.decode(kafka(spark, [odd, canal()]))
    events = events.where("kind = 'row'") if filtered else events
    bad, good = headgate.rows(events, "shop.orders", ORDERS).collect()

    assert {"id": "18446744073709551615", "amount": "1.234"} == bad._misfits
    assert "x" == bad.note
    assert (1, Decimal("1.10"), None) == (good.id, good.amount, good._misfits)


def test_rows_of_other_tables_are_left_out(spark: SparkSession) -> None:
    events = headgate.decode(kafka(spark, [canal(table="other"), canal(database="x"), canal()]))

    assert 1 == headgate.rows(events, "shop.orders", ORDERS).count()
    assert 2 == headgate.rows(events, "orders", ORDERS).count()


def test_every_type_of_a_row(spark: SparkSession) -> None:
    data = {
        "b": "AAH/",
        "f": "0.5",
        "d": "2024-02-29",
        "t": "2024-02-29 12:00:00.123456",
        "l": "2024-02-29 12:00:00",
        "y": "1",
        "s": "-128",
    }
    schema = "b BINARY, f DOUBLE, d DATE, t TIMESTAMP, l TIMESTAMP_NTZ, y BOOLEAN, s TINYINT"
    events = headgate.decode(kafka(spark, [canal(data=[data])]))
    (row,) = headgate.rows(events, "orders", schema).collect()

    assert (b"\x00\x01\xff", 0.5, dt.date(2024, 2, 29)) == (bytes(row.b), row.f, row.d)
    assert dt.datetime(2024, 2, 29, 12, 0, 0, 123456) == row.t
    assert (dt.datetime(2024, 2, 29, 12), True, -128) == (row.l, row.y, row.s)


def test_a_type_that_no_mysql_column_has_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="'m' cannot be map<string,string>"):
        headgate.rows(headgate.decode(kafka(spark, [])), "t", "m MAP<STRING, STRING>")


def test_streaming_is_the_same_code(spark: SparkSession, tmp_path: Path) -> None:
    source, target, state = (str(tmp_path / n) for n in ("in", "out", "state"))
    kafka(spark, [canal(), b"nonsense", canal(id=8)]).write.parquet(source)
    schema = spark.read.parquet(source).schema
    stream = spark.readStream.schema(schema).parquet(source).transform(headgate.decoder("auto"))
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", state)
        .trigger(availableNow=True)
        .start(target)
    )
    query.awaitTermination(120)

    kinds = [r.kind for r in spark.read.parquet(target).orderBy("origin.offset").collect()]
    assert ["row", "invalid", "row"] == kinds


def test_a_fifty_megabyte_message_is_one_invalid_row(spark: SparkSession) -> None:
    large = canal(data=[{"note": "x" * 50_000_000}])
    events = headgate.decode(kafka(spark, [canal(), large, canal()])).select(
        "kind", "error.code", "origin.offset"
    )

    assert [("row", None), ("invalid", "too-large"), ("row", None)] == [
        (e.kind, e.code) for e in events.orderBy("offset").collect()
    ]


def test_an_option_lets_large_messages_through(spark: SparkSession) -> None:
    large = kafka(spark, [canal(data=[{"note": "x" * 17_000_000}])])

    assert "invalid" == headgate.decode(large).select("kind").first().kind
    allowed = headgate.decode(large, max_message_bytes=20_000_000)
    assert "row" == allowed.select("kind").first().kind


def test_rows_of_two_schemas_are_no_one_table(spark):
    source = '{"connector":"postgresql","db":"shop","schema":"%s","table":"orders"}'
    value = '{"op":"c","after":{"id":%d},"source":' + source + "}"
    messages = [(value % (1, "public"),), (value % (99, "archive"),)]
    events = headgate.decode(spark.createDataFrame(messages, "value string"), "debezium")

    for found in (events, events.where("kind = 'row'")):  # from messages, and from events
        for name in ("public.orders", "shop.public.orders"):
            assert [1] == [r.id for r in headgate.rows(found, name, "id INT").collect()]
        assert 0 == headgate.rows(found, "shop.orders", "id INT").count()
        assert 2 == headgate.rows(found, "orders", "id INT").count()
    assert ["archive", "public"] == sorted(e.schema for e in events.collect())
