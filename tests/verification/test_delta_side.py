"""Delta tables as one version of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession

from headgate.core.errors import UsageError
from headgate.verification.delta import DeltaSide


def rows_of(side: DeltaSide, table: str) -> list[tuple[Any, ...]]:
    found = side.table(table)
    assert found is not None
    return sorted(map(tuple, found.rows.collect()))


def write(path: Path, rows: dict[str, Any], **more: Any) -> None:
    path.mkdir(parents=True, exist_ok=True)
    write_deltalake(str(path), pa.table(rows), **more)


def of_batch(number: int) -> dict[str, Any]:
    token = Transaction("headgate-j", number * 100_000)
    return {"mode": "overwrite", "commit_properties": CommitProperties(app_transactions=[token])}


def test_tables_are_found_below_the_root_by_their_names(
    tmp_path: Path, spark: SparkSession
) -> None:
    for path in ("shop/orders", "shop/a_x2f_b", "_headgate/deleted/shop/orders", "other"):
        write(tmp_path / path, {"id": [1]})
    (tmp_path / "shop" / "no-table").mkdir()
    (tmp_path / "readme.txt").touch()

    side = DeltaSide(spark, str(tmp_path))

    assert ["shop.a/b", "shop.orders"] == side.tables()
    assert [(1,)] == rows_of(side, "shop.a/b")
    assert None is side.table("shop.missing")
    assert ["other"] == DeltaSide(spark, str(tmp_path), template="{table}").tables()


def test_what_landing_adds_is_not_compared_and_rows_marked_as_deleted_are_not_there(
    tmp_path: Path, spark: SparkSession
) -> None:
    rows = {"id": [1, 2, 3], "_position": ["a", "b", "c"], "_deleted": [False, True, None]}
    write(tmp_path / "shop" / "orders", rows)

    side = DeltaSide(spark, str(tmp_path))

    assert [(1,), (3,)] == rows_of(side, "shop.orders")


def test_files_from_before_a_column_was_added_and_rows_that_were_removed(
    tmp_path: Path, spark: SparkSession
) -> None:
    path = tmp_path / "shop" / "orders"
    write(path, {"id": pa.array([1, 2], pa.int32())})
    later = {"id": pa.array([3], pa.int32()), "n": pa.array(["x"])}
    write(path, later, mode="append", schema_mode="merge")
    DeltaTable(str(path)).delete("id = 1")

    side = DeltaSide(spark, str(tmp_path))

    assert [(2, None), (3, "x")] == rows_of(side, "shop.orders")


def test_a_table_without_rows_has_its_columns(tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "shop" / "orders"
    write(path, {"id": [1], "at": pa.array([0], pa.timestamp("us"))})
    DeltaTable(str(path)).delete()

    found = DeltaSide(spark, str(tmp_path)).table("shop.orders")

    assert found is not None
    assert [("id", "bigint"), ("at", "timestamp_ntz")] == found.rows.dtypes
    assert 0 == found.rows.count()


def test_tables_are_read_as_they_were_after_a_batch(tmp_path: Path, spark: SparkSession) -> None:
    orders, late = tmp_path / "shop" / "orders", tmp_path / "shop" / "late"
    for batch in (3, 5, 6):
        write(orders, {"id": [batch]}, **of_batch(batch))
    write(late, {"id": [1]}, **of_batch(6))

    def after(batch: int) -> DeltaSide:
        return DeltaSide(spark, str(tmp_path), job_id="j", batch=batch)

    assert [[(3,)], [(5,)], [(6,)]] == [rows_of(after(n), "shop.orders") for n in (4, 5, 6)]
    assert None is after(5).table("shop.late")
    assert [(6,)] == rows_of(DeltaSide(spark, str(tmp_path)), "shop.orders")


def test_a_table_whose_files_do_not_hold_its_rows_is_refused(
    tmp_path: Path, spark: SparkSession
) -> None:
    path = tmp_path / "shop" / "orders"
    write(path, {"id": [1]})
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"],
    }  # fmt: skip
    log = path / "_delta_log" / f"{1:020d}.json"
    log.write_text(json.dumps({"protocol": protocol}) + "\n")

    with pytest.raises(UsageError, match="deletionVectors"):
        DeltaSide(spark, str(tmp_path)).table("shop.orders")
