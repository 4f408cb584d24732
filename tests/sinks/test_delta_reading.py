"""`headgate.table`: what is read before a merge equals the table after it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from deltalake import DeltaTable, write_deltalake
from packed_changes import COLUMNS, Change, delete, orders, packed, partial, truncate, upsert
from pyspark.sql import SparkSession

import headgate
from headgate.core.batches import SourceRange
from headgate.core.errors import UsageError
from headgate.landing.shape import TableShape
from headgate.landing.table_rows import DELETE
from headgate.schema.changes import TableId
from headgate.sinks.base import Batch, Target
from headgate.sinks.delta import DeltaSink
from headgate.sinks.delta.options import DeltaOptions

pytestmark = pytest.mark.spark
WIDER = {**COLUMNS, "note": "text"}


def land(
    spark: SparkSession,
    lake: Path,
    number: int,
    tables: dict[TableShape, list[Change]],
    **options: Any,
) -> None:
    """A batch of a job that starts anew with each."""
    sink = DeltaSink(str(lake), DeltaOptions(**options))
    writer = sink.open(spark, Target("job", "delta", {}, {}))
    batch = Batch(number, SourceRange({"t": {"0": (number, number + 1)}}), lambda: None)
    writer.verify(batch)
    if tables:
        rows = [
            (msgspec.json.encode(s.table).decode(), len(c), packed(c, s, first=number * 100))
            for s, c in tables.items()
        ]
        changes = spark.createDataFrame(rows, "table string, count long, changes binary")
        writer.merge(batch, 0, changes, list(tables))
    writer.finish(batch, None)


def with_key(chance: Random, first: int, landed: bool) -> list[Change]:
    """Changes of a few keys; partial ones only where the keys are landed for sure."""
    found = []
    for at in range(first, first + 8):
        key = chance.randrange(5)
        kind = chance.choice(["upsert"] * 4 + ["delete", "delete", "late", "partial", "truncate"])
        if kind == "delete":
            found.append(delete(at, key))
        elif kind == "late":
            found.append(upsert(max(at - 12, 0), key, "late", at))
        elif kind == "partial" and landed:
            found.append(partial(at, 100 + chance.randrange(2), n=at))
        elif kind == "truncate" and chance.random() < 0.15:
            found.append(truncate(at))
        else:
            found.append(upsert(at, key, f"name {at}", at))
    return found


def without_key(chance: Random, first: int) -> list[Change]:
    """Rows of few values come and go."""
    found = []
    for at in range(first, first + 8):
        row = {"id": chance.randrange(3), "name": None, "n": chance.randrange(2)}
        op = DELETE if chance.random() < 0.4 else 0
        found.append(truncate(at) if chance.random() < 0.05 else Change(op, at, row))
    return found


def rows_of(lake: Path, name: str) -> list[dict[str, Any]]:
    rows = DeltaTable(lake / "shop" / name).to_pyarrow_table().to_pylist()
    return sorted(rows, key=repr)


def read(spark: SparkSession, lake: Path, name: str) -> list[dict[str, Any]]:
    found = headgate.table(spark, f"delta://{lake}/shop/{name}")
    return sorted((row.asDict() for row in found.collect()), key=repr)


@pytest.mark.parametrize(
    "options",
    [{}, {"deletes": "soft"}, {"deletes": "ignore"}, {"mode": "log"}],
    ids=["hard", "soft", "ignore", "log"],
)
def test_a_table_with_changes_that_wait_is_what_it_will_be(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    chance, waiting = Random(5), {"merge_every": "1h", **options}
    keyed = [orders(table=TableId("shop", f"keyed{n}")) for n in range(4)]
    keyless = [orders(key=(), table=TableId("shop", f"keyless{n}")) for n in range(2)]
    fixed = [upsert(0, 100, "x", 1), upsert(0, 101, "y", 2)]
    first: dict[TableShape, list[Change]] = {s: fixed + with_key(chance, 1, False) for s in keyed}
    first |= {s: without_key(chance, 1) for s in keyless}
    land(spark, tmp_path, 0, first, **waiting)
    for number in (1, 2):
        later: dict[TableShape, list[Change]] = {}
        later |= {s: with_key(chance, number * 20, "mode" not in options) for s in keyed}
        later |= {s: without_key(chance, number * 20) for s in keyless}
        land(spark, tmp_path, number, later, **waiting)
    names = [shape.table.table for shape in (*keyed, *keyless)]
    before = {name: rows_of(tmp_path, name) for name in names}

    found = {name: read(spark, tmp_path, name) for name in names}

    land(spark, tmp_path, 3, {}, **options)
    after = {name: rows_of(tmp_path, name) for name in names}
    assert before != after
    assert after == found
    for name in names[3:5]:
        assert after[name] == read(spark, tmp_path, name)


def test_a_column_that_the_merge_will_add_is_there(spark: SparkSession, tmp_path: Path) -> None:
    land(spark, tmp_path, 0, {orders(): [upsert(1, 1, "a"), upsert(2, 2, "b")]}, merge_every="1h")
    noted = Change(0, 3, {"id": 1, "name": "c", "n": None, "note": "new"})
    land(spark, tmp_path, 1, {orders(WIDER): [noted]}, merge_every="1h")

    found = read(spark, tmp_path, "orders")

    land(spark, tmp_path, 2, {})
    assert rows_of(tmp_path, "orders") == found
    assert {"new", None} == {row["note"] for row in found}


@pytest.mark.parametrize("options", [{}, {"deletes": "soft"}, {"mode": "log"}])
def test_columns_that_the_merge_will_widen_are_wider(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    columns = {**COLUMNS, "id": "int", "flag": "bit(1)", "day": "date", "at": "datetime"}
    old = {"day": date(2024, 5, 1), "at": datetime(2024, 5, 1, 12), "flag": True}
    rows = [Change(0, n, {"id": n, "name": "a", "n": n, **old}) for n in (1, 2, 3)]
    land(spark, tmp_path, 0, {orders(columns): rows}, merge_every="1h", **options)
    wider = {
        **columns, "id": "bigint", "n": "decimal(12,2)", "flag": "varchar(9)", "day": "datetime",
        "seen": "datetime",
    }  # fmt: skip
    when = datetime(2024, 5, 2, 3, 4, 5)
    change = {"id": 2, "name": "b", "n": Decimal("2.50"), "flag": "x", "day": when, "at": when}
    far = {**change, "id": 2**40, "seen": when}
    kept = Change(0, 6, {"id": 3, "name": "c"}, tuple(n for n in wider if n not in ("id", "name")))
    changes = [Change(0, 4, change), Change(0, 5, far), *([] if "mode" in options else [kept])]
    land(spark, tmp_path, 1, {orders(wider): changes}, merge_every="1h", **options)

    found = read(spark, tmp_path, "orders")

    land(spark, tmp_path, 2, {}, **options)
    assert rows_of(tmp_path, "orders") == found
    assert {"1", "x"} == {row["flag"] for row in found}
    assert {when, None} == {row["seen"] for row in found}


def test_what_cannot_be_told_before_the_merge_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    land(spark, tmp_path, 0, {orders(): [upsert(1, 1, "a", 1)]}, merge_every="1h")
    wider = orders({**COLUMNS, "id": "varchar(9)"})
    land(spark, tmp_path, 1, {wider: [upsert(2, "x", "a", 2)]}, merge_every="1h")

    with pytest.raises(UsageError, match="read it after that"):
        headgate.table(spark, f"delta://{tmp_path}/shop/orders")


def test_tables_of_others_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "other", spark.range(2).toArrow())

    with pytest.raises(UsageError, match="not a table that Headgate has landed"):
        headgate.table(spark, f"delta://{tmp_path}/other")
    with pytest.raises(UsageError, match="not a Delta table"):
        headgate.table(spark, f"delta://{tmp_path}/none")
