"""Messages that go to the sinks packed into rows come out of them as they were."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.arrow.headers import ID_HEADER, to_text
from headgate.spark import row_packing
from headgate.spark.row_packing import (
    FLAT_SCHEMA,
    PACK_SCHEMA,
    Unpacking,
    flat_batches,
    flat_rows,
    packed_rows_of,
)

Flat = dict[str, Any]


def message(n: int, rng: Random) -> Flat:
    """A message for a sink, anything of it missing, empty or long."""
    texts = [None, b"", b"\0\xff", b"x" * rng.randrange(300)]
    return {
        "key": rng.choice(texts),
        "value": rng.choice(texts),
        "id": f"in-0-{n}",
        "partition": rng.choice([None, 0, 7]),
        "topic": rng.choice([None, "a", "ä.b"]),
        "headers": rng.choice([None, None, to_text([("trace", b"\1"), ("none", None)])]),
        "table": rng.choice([None, "orders", "ö"]),
    }


def batch(flat: list[Flat]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(flat, FLAT_SCHEMA)


def packed(flat: pa.RecordBatch) -> pa.RecordBatch:
    columns = row_packing.pack_messages(0, 0, flat)
    rows = len(columns["sink"])
    arrays = [columns.get(f.name, pa.nulls(rows, f.type)) for f in PACK_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=PACK_SCHEMA)


def taken_apart(
    spark: SparkSession, batches: list[pa.RecordBatch], with_headers: bool
) -> list[Any]:
    table = pa.Table.from_batches(batches, PACK_SCHEMA)
    frame = spark.createDataFrame(table).coalesce(1)
    messages = Unpacking().messages(frame, 0, 0, with_headers)
    return [row.asDict(recursive=True) for row in messages.collect()]


def expected(flat: Flat) -> Flat:
    named = {"key": ID_HEADER, "value": flat["id"].encode()}
    trace = [{"key": "trace", "value": b"\1"}, {"key": "none", "value": None}]
    headers = [*(trace if flat["headers"] else ()), named]
    return {**{n: flat[n] for n in ("key", "value", "partition", "topic")}, "headers": headers}


@pytest.mark.parametrize("size", [1, 1_000, row_packing.PACK_BYTES])
def test_messages_come_out_as_they_went_in(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(row_packing, "PACK_BYTES", size)
    rng = Random(size)
    lists = [[message(n, rng) for n in range(count)] for count in (1, 2, 100, 300)]
    found = taken_apart(spark, [packed(batch(flat)) for flat in lists], True)
    assert [expected(each) for flat in lists for each in flat] == found


def test_what_no_message_has_is_null(spark: SparkSession) -> None:
    flat = flat_rows(2, value=pa.array([b"a", b"b"]), id=pa.array(["x", "y"]))
    pack = packed(flat)
    assert [None] == pack.column("partitions").to_pylist()
    assert [None] == pack.column("carried").to_pylist()
    found = taken_apart(spark, [pack], False)
    assert [(None, b"a", None, None), (None, b"b", None, None)] == [
        (m["key"], m["value"], m["partition"], m["topic"]) for m in found
    ]


def test_a_slice_of_a_batch_is_packed_as_that(spark: SparkSession) -> None:
    rng = Random(3)
    flat = [message(n, rng) for n in range(50)]
    found = taken_apart(spark, [packed(batch(flat).slice(20, 10))], True)
    assert [expected(each) for each in flat[20:30]] == found


def test_a_pack_holds_no_more_than_it_should() -> None:
    flat = [
        {**dict.fromkeys(FLAT_SCHEMA.names), "value": b"x" * 1_000, "id": "i"} for _ in range(2_000)
    ]
    sizes = [len(each) for each in packed(batch(flat)).column("value_bytes").to_pylist()]
    assert 2_000_000 == sum(sizes)
    assert max(sizes) <= row_packing.PACK_BYTES + 1_000
    assert len(sizes) <= 2_000_000 // row_packing.PACK_BYTES + 1


@pytest.mark.parametrize("size", [1, 1_000, row_packing.PACK_BYTES])
def test_a_worker_takes_packed_rows_apart(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(row_packing, "PACK_BYTES", size)
    for count in (1, 40):
        sent = [message(n, Random(n + count)) for n in range(count)]

        packed = packed_rows_of(batch(sent))
        parts = (packed.slice(n, 1) for n in range(packed.num_rows))  # as Spark may send them

        found = [row for part in parts for each in flat_batches(part) for row in each.to_pylist()]
        assert sent == found
