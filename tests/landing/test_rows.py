"""`headgate.rows`: types from messages and DDL, and columns that order rows."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from messages import canal, maxwell
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headgate
from headgate.core.errors import UsageError

Place = tuple[int, int]
"""A partition and an offset."""


def topic(spark: SparkSession, messages: dict[Place, bytes]) -> DataFrame:
    """Messages of a topic by partition and offset."""
    rows = [("cdc", partition, offset, value) for (partition, offset), value in messages.items()]
    return spark.createDataFrame(rows, "topic string, partition int, offset bigint, value binary")


def both(events: DataFrame) -> list[DataFrame]:
    """Events straight from their messages, and events of which only the columns are known."""
    return [events, events.where("kind IS NOT NULL")]


def debezium(op: str, file: str, pos: int, id: int, snapshot: str = "false") -> bytes:
    source = {"connector": "mysql", "db": "shop", "table": "orders", "snapshot": snapshot}
    source |= {"file": file, "pos": pos, "row": 0, "server_id": 0 if op == "r" else 5}
    image = {"id": id, "pos": pos}
    before = image if op in "ud" else None
    after = None if op == "d" else image
    return json.dumps({"op": op, "before": before, "after": after, "source": source}).encode()


def ticdc(commit: int, type_: str, **row: Any) -> bytes:
    old = [row] if type_ == "UPDATE" else None
    tidb = {"commitTs": commit}
    return canal(id=0, type=type_, data=[row], old=old, _tidb=tidb, mysqlType={"id": "int"})


def test_rows_tell_their_message(spark: SparkSession) -> None:
    two = canal(data=[{"id": "1"}, {"id": "2"}])
    events = headgate.decode(topic(spark, {(3, 7): canal(), (3, 8): two}))

    for each in both(events):
        found = headgate.rows(each, "shop.orders", "id INT").collect()
        assert [("cdc", 3, 7), ("cdc", 3, 8), ("cdc", 3, 8)] == [
            (r._topic, r._partition, r._offset) for r in found
        ]
        assert 3 == len({r._sequence for r in found})
        assert sorted(found, key=lambda r: r._sequence) == found


def test_a_place_in_the_log_counts_more_than_an_offset(spark: SparkSession) -> None:
    """Files are numbered: binlog.10 follows binlog.9, and position 1000 position 999."""
    messages = {
        (0, 1): debezium("u", "binlog.10", 4, 1),
        (0, 2): debezium("c", "binlog.9", 999, 1),
        (0, 3): debezium("u", "binlog.9", 1000, 1),
        (0, 4): debezium("r", "binlog.11", 8, 1, "true"),
    }
    for each in both(headgate.decode(topic(spark, messages))):
        ordered = headgate.rows(each, "orders", "pos INT").orderBy("_sequence").collect()
        assert [8, 999, 1000, 1000, 4, 4] == [r.pos for r in ordered]
        assert ["update_preimage", "update_postimage"] == [r._change_type for r in ordered[-2:]]


def test_commit_numbers_order_across_partitions(spark: SparkSession) -> None:
    """A key change that TiCDC splits: of one commit, the delete comes first wherever it is."""
    messages = {
        (0, 9): ticdc(449_000_000_000_000_002, "INSERT", id="1"),
        (1, 5): ticdc(449_000_000_000_000_002, "DELETE", id="1"),
        (1, 9): ticdc(449_000_000_000_000_001, "INSERT", id="1"),
    }
    for each in both(headgate.decode(topic(spark, messages), "canal-json:ticdc")):
        ordered = headgate.rows(each, "orders", "id INT").orderBy("_sequence").collect()
        assert [9, 5, 9] == [r._offset for r in ordered]
        assert ["insert", "delete", "insert"] == [r._change_type for r in ordered]


def test_the_last_row_of_a_transaction_has_no_number(spark: SparkSession) -> None:
    """Maxwell numbers all rows of a transaction but the last."""
    place = {"position": "bin.000001:44", "server_id": 1}
    messages = {
        (0, 1): maxwell(data={"id": 3}, **place),
        (0, 2): maxwell(data={"id": 1}, xoffset=0, commit=None, **place),
        (0, 3): maxwell(data={"id": 2}, xoffset=1, commit=None, **place),
    }
    for each in both(headgate.decode(topic(spark, messages), "maxwell")):
        ordered = headgate.rows(each, "orders", "id INT").orderBy("_sequence").collect()
        assert [1, 2, 3] == [r.id for r in ordered]


def test_a_merge_by_sequence_gives_the_source_table(spark: SparkSession) -> None:
    insert = canal(data=[{"id": "1", "amount": "1"}, {"id": "2", "amount": "1"}])
    update = canal(type="UPDATE", data=[{"id": "1", "amount": "2"}], old=[{"amount": "1"}])
    delete = canal(type="DELETE", data=[{"id": "2", "amount": "1"}])
    events = headgate.decode(topic(spark, {(0, 12): delete, (0, 9): insert, (0, 10): update}))

    rows = headgate.rows(events, "shop.orders", "id INT, amount DECIMAL(12,2)")
    last = rows.groupBy("id").agg(F.max_by(F.struct("*"), "_sequence").alias("row"))
    found = last.where("row._change_type != 'delete'").select("row.id", "row.amount").collect()
    assert [(1, 2)] == [tuple(row) for row in found]


def test_without_offsets_and_places_nothing_is_made_up(spark: SparkSession) -> None:
    df = spark.createDataFrame([(canal().decode(),)], "value string")
    row = headgate.rows(headgate.decode(df), "orders", "id INT").first()

    assert (None, None, None, None) == (row._topic, row._partition, row._offset, row._sequence)


def test_types_come_from_messages(spark: SparkSession) -> None:
    later = canal(
        data=[{"id": "2", "amount": "2.25", "size": "-5"}],
        mysqlType={"id": "bigint(20)", "amount": "decimal(14,4)", "size": "int unsigned"},
    )
    events = headgate.decode(topic(spark, {(0, 1): canal(), (0, 2): later}))

    for each in both(events):
        rows = headgate.rows(each, "shop.orders")
        types = dict(rows.dtypes)
        assert {"id": "bigint", "amount": "decimal(14,4)", "note": "string", "size": "bigint"} == {
            name: type_ for name, type_ in types.items() if not name.startswith("_")
        }
        first, second = rows.orderBy("id").collect()
        assert (1, Decimal("1.1000"), None) == (first.id, first.amount, first.size)
        assert {"size": "-5"} == second._misfits  # UNSIGNED is never negative


def test_types_come_from_ddl(spark: SparkSession) -> None:
    """Messages without types, in two partitions; the DDL is sent to both, as TiCDC does."""
    create = "CREATE TABLE orders (id INT PRIMARY KEY, state ENUM('new','paid'), price DEC(9,2))"
    alter = "ALTER TABLE orders ADD at DATETIME(3)"
    untyped = {"mysqlType": None, "sqlType": None, "pkNames": None}
    row = {"id": "1", "state": "2", "price": "9.90", "at": "2024-02-29 12:00:00.125"}
    ddl = {"isDdl": True, "data": None, "type": "CREATE"}
    messages = {
        (0, 1): canal(sql=create, **ddl),
        (0, 2): canal(sql=alter, **ddl | {"type": "ALTER"}),
        (1, 1): canal(sql=create, **ddl),
        (1, 2): canal(sql=alter, **ddl | {"type": "ALTER"}),
        (1, 3): canal(data=[row], **untyped),
    }
    for each in both(headgate.decode(topic(spark, messages), "canal-json:canal")):
        rows = headgate.rows(each, "shop.orders")
        expected = ["id int", "state string", "price decimal(9,2)", "at timestamp_ntz"]
        assert expected == [" ".join(pair) for pair in rows.dtypes[:4]]
        (found,) = rows.collect()
        assert (1, "paid", Decimal("9.90")) == found[:3]
        assert 125_000 == found.at.microsecond


def test_a_table_that_does_not_occur(spark: SparkSession) -> None:
    events = headgate.decode(topic(spark, {(0, 1): canal(), (0, 2): canal(table="users")}))

    with pytest.raises(UsageError) as refused:
        headgate.rows(events, "shop.order")
    assert "no message has rows or DDL of 'shop.order'" in str(refused.value)
    assert "(there are: 'shop.orders', 'shop.users')" in str(refused.value)


def test_a_stream_has_the_columns_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "in")
    topic(spark, {(0, 1): canal()}).write.parquet(source)
    batch = spark.read.parquet(source)
    events = headgate.decode(spark.readStream.schema(batch.schema).parquet(source))

    with pytest.raises(UsageError, match=r"a streaming DataFrame has no columns .* give them: "):
        headgate.rows(events, "shop.orders")
    schema = headgate.rows(headgate.decode(batch), "shop.orders").schema
    assert schema == headgate.rows(events, "shop.orders", schema).schema


def test_a_column_that_rows_adds_is_refused(spark: SparkSession) -> None:
    events = headgate.decode(topic(spark, {(0, 1): canal()}))

    with pytest.raises(UsageError, match="adds a column _offset itself"):
        headgate.rows(events, "orders", "id INT, _offset INT")


def test_a_type_that_is_given_is_the_columns_type(spark: SparkSession) -> None:
    events = headgate.decode(topic(spark, {(0, 1): canal()}))

    rows = headgate.rows(events, "orders", "id BIGINT, at TIMESTAMP_NTZ, t TIMESTAMP, b BINARY")
    assert ["bigint", "timestamp_ntz", "timestamp", "binary"] == [t for _, t in rows.dtypes[:4]]
