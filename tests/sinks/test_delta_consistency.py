"""The writer of `consistency: watermark` with Spark: what waits, what is published, and when."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from deltalake import DeltaTable
from packed_changes import ORDERS, Change, delete, orders, packed, upsert
from pyspark.sql import SparkSession

from headgate.codec.sequence import COMMIT
from headgate.core.batches import SourceRange
from headgate.landing.resolution import watermark_at
from headgate.landing.shape import TableShape
from headgate.schema.changes import TableId
from headgate.schema.ddl import changes as ddl_changes
from headgate.sinks.base import Batch, Statement, Target
from headgate.sinks.delta import DeltaSink
from headgate.sinks.delta.options import DeltaOptions
from headgate.spark.storage import Storage

pytestmark = pytest.mark.spark
ITEMS = TableId("shop", "items")
items = orders(table=ITEMS)


class Job:
    """A job whose changes have commit numbers."""

    def __init__(self, spark: SparkSession, folder: Path, **options: Any) -> None:
        self.spark, self.folder = spark, folder
        sink = DeltaSink(str(folder), DeltaOptions(**{"consistency": "watermark", **options}))
        self.writer = sink.open(spark, Target("job", "delta", {}, {}))

    def land(
        self,
        number: int,
        tables: dict[TableShape, list[Change]],
        watermark: int | None = None,
        ddl: tuple[int, str] | None = None,
    ) -> None:
        """Land a batch: changes, a statement after them, and the watermark of all partitions."""
        batch = Batch(number, SourceRange({"t": {"0": (number, number + 1)}}), lambda: None)
        self.writer.verify(batch)
        rows = [
            (msgspec.json.encode(shape.table).decode(), len(changes), packed(changes, shape))
            for shape, changes in tables.items()
        ]
        if rows:
            frame = self.spark.createDataFrame(rows, "table string, count long, changes binary")
            self.writer.merge(batch, 0, frame, list(tables))
        if ddl is not None:
            at, text = watermark_at(ddl[0]), ddl[1]
            changes = list(ddl_changes(text, "shop"))
            self.writer.apply(batch, 0, Statement(changes, text, at.order, {}, resolved=at))
        self.writer.finish(batch, None if watermark is None else watermark_at(watermark))

    def names(self, table: TableId = ORDERS) -> dict[int, str] | None:
        path = self.folder / (table.database or "") / table.table
        if not path.exists():
            return None
        rows = DeltaTable(path).to_pyarrow_table()
        return {each["id"]: each["name"] for each in rows.sort_by("id").to_pylist()}

    def waiting(self) -> list[str]:
        return Storage(str(self.folder / "_headgate")).names("changes/unresolved/job")


def at(commit: int, id: int, name: str) -> Change:
    return upsert(commit, id, name, kind=COMMIT)


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Callable[..., Job]:
    return lambda **options: Job(spark, tmp_path, **options)


def test_changes_after_the_watermark_wait_across_a_restart(job: Callable[..., Job]) -> None:
    first = job()
    first.land(0, {orders(): [at(1, 1, "a"), at(5, 2, "b")], items: [at(2, 1, "x")]})
    assert first.names() is None
    first.land(1, {items: [at(6, 2, "y")]}, watermark=3)
    assert ({1: "a"}, {1: "x"}) == (first.names(), first.names(ITEMS))
    again = job()
    again.land(2, {}, watermark=3)  # a partition is idle
    again.land(3, {orders(): [delete(7, 1, kind=COMMIT)]}, watermark=6)
    assert ({1: "a", 2: "b"}, {1: "x", 2: "y"}) == (again.names(), again.names(ITEMS))
    again.land(4, {}, watermark=9)
    assert {2: "b"} == again.names()
    assert [] == again.waiting()


def test_versions_have_their_watermark(job: Callable[..., Job]) -> None:
    first = job()
    first.land(0, {orders(): [at(1, 1, "a"), at(5, 1, "b")]}, watermark=3)
    first.land(1, {}, watermark=8)
    table = DeltaTable(first.folder / "shop/orders")
    assert 8 == table.transaction_version("headgate.watermark")
    newest, *_ = table.history()
    assert ("8", "8") == (newest["headgate.watermark"], newest["userMetadata"])
    table.load_as_version(table.version() - 1)
    assert 3 == table.transaction_version("headgate.watermark")
    assert ["a"] == table.to_pyarrow_table().column("name").to_pylist()


def test_statement_waits_between_the_changes_before_and_after_it(job: Callable[..., Job]) -> None:
    first = job()
    statement = (4, "ALTER TABLE orders ADD note VARCHAR(9) NOT NULL DEFAULT 'x'")
    first.land(0, {orders(): [at(1, 1, "a")]}, watermark=1)
    first.land(1, {orders(): [at(2, 2, "b")]}, ddl=statement)
    first.land(2, {orders(): [at(3, 3, "late on another partition")]}, watermark=3)
    table = DeltaTable(first.folder / "shop/orders")
    assert "note" not in table.schema().to_json()
    job().land(3, {}, watermark=4)
    rows = DeltaTable(first.folder / "shop/orders").to_pyarrow_table()
    assert ["x"] * 3 == rows.column("note").to_pylist()


def test_batch_that_is_repeated_is_published_once(job: Callable[..., Job]) -> None:
    log = orders(key=(), table=TableId("shop", "log"))
    for _ in range(2):
        job().land(0, {log: [at(1, 1, "a"), at(5, 2, "b")]}, watermark=3)
    for _ in range(2):
        job().land(1, {log: [at(6, 3, "c")]}, watermark=5)
    rows = DeltaTable(job().folder / "shop/log").to_pyarrow_table()
    assert ["a", "b"] == sorted(rows.column("name").to_pylist())


def test_what_waits_is_merged_when_the_option_is_removed(job: Callable[..., Job]) -> None:
    first = job()
    first.land(0, {orders(): [at(1, 1, "a"), at(5, 2, "b")]}, watermark=3)
    job(consistency="batch").land(1, {orders(): [at(6, 3, "c")]})
    assert {1: "a", 2: "b", 3: "c"} == first.names()
    assert [] == first.waiting()
    first = job()
    first.land(2, {orders(): [at(7, 1, "d"), at(9, 1, "e")]}, watermark=8)
    assert {1: "d", 2: "b", 3: "c"} == first.names()


def test_time_between_merges_counts_here_too(job: Callable[..., Job]) -> None:
    first = job(merge_every="1h")
    first.land(0, {orders(): [at(1, 1, "a")]}, watermark=1)  # the first is due at once
    first.land(1, {orders(): [at(2, 1, "b")]}, watermark=2)
    assert {1: "a"} == first.names()
    state = json.loads((first.folder / "_headgate/jobs/job.json").read_text())
    assert 1 == state["published"]["timestamp"]
