"""`headgate.land`: DataFrames of events, batch and streaming, end as lake tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import headgate
from headgate.core.errors import UsageError
from headgate.pipeline import land as land_module
from headgate.pipeline.land import Landed
from headgate.pipeline.lease import LeaseError
from headgate.spark.storage import Storage

Row = dict[str, Any]
COLUMNS = "value string, topic string, partition int, offset bigint"


def change(op: str, row: Row, old: Row | None = None, table: str = "orders") -> str:
    """What Canal sends: no position in the source's log."""
    types = {"id": "bigint", "name": "varchar(20)", "n": "int"}
    return json.dumps({
        "database": "shop", "table": table, "type": op, "isDdl": False, "es": 1, "ts": 1, "id": 1,
        "pkNames": None if table == "notes" else ["id"],
        "mysqlType": {name: types[name] for name in row}, "data": [row],
        "old": None if old is None else [old],
    })  # fmt: skip


def ddl(sql: str, table: str = "orders") -> str:
    return json.dumps({
        "database": "shop", "table": table, "type": "ALTER", "isDdl": True, "sql": sql, "es": 1,
        "ts": 1, "id": 1,
    })  # fmt: skip


CHANGES = [
    change("INSERT", {"id": "1", "name": "a"}),
    change("INSERT", {"id": "2", "name": "b"}),
    change("UPDATE", {"id": "1", "name": "c"}, {"name": "a"}),
    ddl("ALTER TABLE orders ADD COLUMN n INT DEFAULT 7"),
    change("INSERT", {"id": "3", "name": "d", "n": "8"}),
    change("DELETE", {"id": "2", "name": "b", "n": "7"}),
]
ROWS = [{"id": 1, "name": "c", "n": 7}, {"id": 3, "name": "d", "n": 8}]


def events(spark: SparkSession, messages: Sequence[str], partitions: int = 2) -> DataFrame:
    """Events of messages of one Kafka partition, wherever Spark has them."""
    rows = [(message, "cdc", 0, offset) for offset, message in enumerate(messages)]
    return headgate.decode(spark.createDataFrame(rows, COLUMNS).repartition(partitions))


def landed(lake: Path, table: str = "shop/orders") -> list[Row]:
    rows = DeltaTable(lake / table).to_pyarrow_table().drop_columns(["_position"]).to_pylist()
    return sorted(rows, key=lambda row: list(map(str, row.values())))


def batch(*arguments: Any, **options: Any) -> Landed:
    result = headgate.land(*arguments, **options)
    assert isinstance(result, Landed)
    return result


def test_events_in_any_order_of_rows_are_landed_and_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = batch(events(spark, [*CHANGES, "{"]), f"delta://{tmp_path}")

    assert ROWS == landed(tmp_path)
    assert {"insert": 3, "update": 1, "delete": 1, "ddl": 1} == result.changes["shop.orders"]
    assert {"": {"malformed-json": 1}} == result.rejected
    [letter] = spark.read.parquet(result.dead_letters).collect()
    assert ("malformed-json", b"{", "cdc", 6) == (
        letter.code, bytes(letter.value), letter.topic, letter.offset,
    )  # fmt: skip
    assert result.dead_letters in str(result)


def test_the_same_events_again_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    notes = [change("INSERT", {"id": "1"}, table="notes")] * 2
    batch(events(spark, [*CHANGES, *notes]), f"delta://{tmp_path}")

    again = batch(events(spark, [*CHANGES, *notes]), f"delta://{tmp_path}")
    more = batch(
        events(spark, [*CHANGES, *notes, change("INSERT", {"id": "9", "name": "z", "n": "1"})]),
        f"delta://{tmp_path}",
    )

    assert {"ignored": 2} == again.merged["shop.notes"]
    assert {"id": 9, "name": "z", "n": 1} in landed(tmp_path)
    assert 3 == len(landed(tmp_path)), more
    assert [{"id": 1}, {"id": 1}] == landed(tmp_path, "shop/notes")


def test_events_that_were_filtered_and_options_of_the_sink(
    spark: SparkSession, tmp_path: Path
) -> None:
    given = events(spark, [*CHANGES, change("INSERT", {"id": "1"}, table="items")])
    batch(given.where("table = 'orders'"), f"delta://{tmp_path}", deletes="soft", table="{table}")

    assert not (tmp_path / "items").exists()
    rows = landed(tmp_path, "orders")
    assert [(1, False), (2, True), (3, False)] == [(row["id"], row["_deleted"]) for row in rows]


def test_a_schema_tells_the_types_and_keys(spark: SparkSession, tmp_path: Path) -> None:
    message = '{"database":"shop","table":"t","type":"insert","ts":1,"data":{"id":1,"at":2024}}'
    given = headgate.decode(spark.createDataFrame([(message, "t", 0, 0)], COLUMNS))
    schema = "CREATE TABLE t (id BIGINT PRIMARY KEY, at YEAR)"
    batch(given, f"delta://{tmp_path}", schema=schema)

    assert [{"id": 1, "at": 2024}] == landed(tmp_path, "shop/t")


def test_lines_of_a_file_are_in_order(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "changes.jsonl").write_text("\n".join(CHANGES))
    given = headgate.decode(spark.read.text(str(tmp_path / "changes.jsonl")))
    batch(given, f"delta://{tmp_path}/lake")

    assert ROWS == landed(tmp_path / "lake")


def test_events_without_any_order_are_refused_and_leave_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    values = spark.createDataFrame([(message,) for message in CHANGES], "value string")
    with pytest.raises(UsageError, match="nobody knows which is the newer"):
        headgate.land(headgate.decode(values.repartition(3)), f"delta://{tmp_path}")

    assert not (tmp_path / "shop").exists()
    batch(events(spark, CHANGES), f"delta://{tmp_path}")
    assert ROWS == landed(tmp_path)


def test_a_value_that_does_not_fit_is_a_dead_letter_with_its_event(
    spark: SparkSession, tmp_path: Path
) -> None:
    wrong = change("INSERT", {"id": "1", "n": "many"})
    result = batch(
        events(spark, [*CHANGES, wrong]), f"delta://{tmp_path}/lake", dead_letters=f"{tmp_path}/bad"
    )

    assert {"shop.orders": {"misfit": 1}} == result.rejected
    [letter] = spark.read.parquet(f"{tmp_path}/bad").collect()
    assert {"id": "1", "n": "many"} == json.loads(letter.value)["after"]
    assert ROWS == landed(tmp_path / "lake")

    fixed = batch(events(spark, [*CHANGES, wrong]), f"delta://{tmp_path}/lake", on_misfit="null")
    assert not fixed.rejected, "the same events again, after a fix"
    assert [{"id": 1, "name": None, "n": None}, ROWS[1]] == landed(tmp_path / "lake")


@pytest.mark.parametrize("at", ["before", "after"])
def test_a_call_that_was_cut_off_is_finished_by_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """As by kill -9: while the events are landed, or when they are and nobody knows."""
    engine = land_module.Engine
    process = engine.process

    def cut_off(self: Any, *arguments: Any) -> None:
        self.begun = arguments[1]
        if at == "after":
            process(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(engine, "process", cut_off)
        with pytest.raises(KeyboardInterrupt):
            headgate.land(events(spark, CHANGES), f"delta://{tmp_path}")
    other = change("INSERT", {"id": "5"}, table="items")
    batch(
        headgate.decode(spark.createDataFrame([(other, "o", 0, 0)], COLUMNS)), f"delta://{tmp_path}"
    )

    assert ROWS == landed(tmp_path)
    assert [{"id": 5}] == landed(tmp_path, "shop/items")
    assert [] == Storage(f"{tmp_path}/_headgate/land/events").names()


def test_one_call_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    state = Storage(f"{tmp_path}/_headgate/land/headgate")
    with land_module.Lease(state), pytest.raises(LeaseError, match="in use by another instance"):
        headgate.land(events(spark, CHANGES), f"delta://{tmp_path}")


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return headgate.decode(spark.readStream.schema(COLUMNS).parquet(str(folder)))


def put(spark: SparkSession, folder: Path, messages: Sequence[str], first: int = 0) -> None:
    rows = [(message, "cdc", 0, first + n) for n, message in enumerate(messages)]
    spark.createDataFrame(rows, COLUMNS).coalesce(1).write.mode("append").parquet(str(folder))


def test_a_streaming_dataframe_is_landed_batch_by_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = {"target": f"delta://{tmp_path}/lake", "checkpoint": f"{tmp_path}/state"}
    put(spark, tmp_path / "in", CHANGES[:3])
    given = stream(spark, tmp_path / "in")
    with pytest.raises(UsageError, match="needs a checkpoint"):
        headgate.land(given, target["target"])
    for messages in ((), CHANGES[3:]):
        if messages:
            put(spark, tmp_path / "in", messages, first=3)
        query: Any = headgate.land(given, **target, once=True)
        assert query.awaitTermination(120)

    assert ROWS == landed(tmp_path / "lake")
    with pytest.raises(UsageError, match="checkpoint of a streaming DataFrame"):
        headgate.land(events(spark, CHANGES), **target)


def test_a_call_for_each_batch_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    put(spark, tmp_path / "in", CHANGES)
    lake = f"delta://{tmp_path}/lake"
    query = (
        stream(spark, tmp_path / "in")
        .writeStream.foreachBatch(lambda given, _: batch(given, lake) and None)
        .option("checkpointLocation", f"{tmp_path}/state")
        .trigger(availableNow=True)
        .start()
    )

    assert query.awaitTermination(120)
    assert ROWS == landed(tmp_path / "lake")


@pytest.mark.parametrize(
    ("target", "options", "error"),
    [
        ("delta:///nowhere", {"delets": "soft"}, "delets"),
        ("delta:///nowhere", {"deletes": "sometimes"}, "deletes cannot be 'sometimes'"),
        ("delta:///nowhere", {"once": True}, "for a streaming DataFrame"),
        ("kafka://h/t?protocol=debezium", {}, "takes messages, and no tables"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    spark: SparkSession, target: str, options: Row, error: str
) -> None:
    with pytest.raises(UsageError, match=error):
        headgate.land(events(spark, CHANGES), target, **options)


def test_a_dataframe_of_something_else_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="not an event table"):
        headgate.land(spark.range(1), "delta:///nowhere")
