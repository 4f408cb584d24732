"""The writer of a job: batches of many tables, tables that are parked, changes that wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from deltalake import DeltaTable
from packed_changes import ORDERS, Change, delete, orders, packed, partial, position, upsert
from pyspark.sql import DataFrame, SparkSession

from headgate.core.batches import SourceRange
from headgate.core.errors import HeadgateError, UsageError
from headgate.landing.shape import TableShape
from headgate.schema.changes import SchemaChange, TableId, Unknown
from headgate.schema.ddl import changes as ddl_changes
from headgate.sinks.base import Batch, Statement, Target
from headgate.sinks.delta import DeltaSink
from headgate.sinks.delta import writer as writer_module
from headgate.sinks.delta.kept import KeptChanges
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.state import read_tables, resume
from headgate.sinks.delta.table import LandedTable, TableError
from headgate.spark.storage import Storage

pytestmark = pytest.mark.spark
ITEMS = TableId("shop", "items")


class Job:
    """A job with a Delta sink, as the engine uses it."""

    def __init__(self, spark: SparkSession, folder: Path, job: str = "job", **options: Any) -> None:
        self.spark, self.folder = spark, folder
        sink = DeltaSink(str(folder), DeltaOptions(**options))
        self.writer = sink.open(spark, Target(job, "delta", {}, {}))

    def changes(self, tables: dict[TableShape, Sequence[Change]]) -> DataFrame:
        rows = [
            (msgspec.json.encode(shape.table).decode(), len(changes), packed(changes, shape))
            for shape, changes in tables.items()
        ]
        return self.spark.createDataFrame(rows, "table string, count long, changes binary")

    def land(self, number: int, tables: dict[TableShape, Sequence[Change]]) -> Any:
        batch = self.batch(number)
        self.writer.verify(batch)
        landed: Any = {}
        if tables:
            landed = self.writer.merge(batch, 0, self.changes(tables), list(tables)).tables
        self.writer.finish(batch, None)
        return landed

    def apply(self, number: int, text: str, at: int, *shapes: TableShape) -> None:
        statement = Statement(
            list(ddl_changes(text, "shop")), text, position(at), {s.table: s for s in shapes}
        )
        batch = self.batch(number)
        self.writer.verify(batch)
        self.writer.apply(batch, 0, statement)
        self.writer.finish(batch, None)

    def park(self, number: int, table: TableId) -> None:
        """A statement that is not understood."""
        batch, unknown = self.batch(number), Unknown((table,), "no such syntax")
        self.writer.verify(batch)
        self.writer.apply(batch, 0, Statement([unknown], "ALTER ???", position(2), {}))
        self.writer.finish(batch, None)

    def batch(self, number: int, first: int | None = None) -> Batch:
        start = number * 10 if first is None else first
        source = SourceRange({"t": {"0": (start, start + 10)}})
        return Batch(number, source, lambda: None)

    def names(self, table: TableId = ORDERS) -> dict[int, str]:
        rows = DeltaTable(self.folder / table.database / table.table).to_pyarrow_table()
        return {each["id"]: each["name"] for each in rows.sort_by("id").to_pylist()}

    def tables(self) -> dict[TableId, str]:
        found = read_tables(Storage(str(self.folder / "_headgate")))
        return {table: each.state for table, each in found.items()}


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Callable[..., Job]:
    return lambda name="job", **options: Job(spark, tmp_path, name, **options)


def test_many_tables_in_one_batch(job: Callable[..., Job]) -> None:
    first = job()
    shapes = [orders(table=TableId("shop", f"t{n}")) for n in range(7)]
    report = first.land(0, {shape: [upsert(1, 1, "a"), upsert(2, 2, "b")] for shape in shapes})
    assert {2} == {each.upserted for each in report.values()}
    report = first.land(1, {shape: [delete(3, 1)] for shape in shapes[:3]})
    assert {1} == {each.deleted for each in report.values()}
    assert [{2: "b"}] * 3 + [{1: "a", 2: "b"}] * 4 == [first.names(s.table) for s in shapes]
    assert {shape.table: "landed" for shape in shapes} == first.tables()


def test_batch_that_is_repeated_after_a_crash(job: Callable[..., Job]) -> None:
    job().land(0, {orders(): [upsert(1, 1, "a")]})
    again = job()
    again.land(0, {orders(): [upsert(1, 1, "a")]})
    assert DeltaTable(again.folder / "shop/orders").version() == 1


class Killed(Exception):
    """The job is interrupted."""


@pytest.mark.parametrize(("every", "mode"), [("batch", "current"), ("1h", "log")])
def test_job_that_is_interrupted_anywhere_lands_everything_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: str, mode: str
) -> None:
    """Interrupted before each of the writes of its driver, one after the other."""
    log = TableId("shop", "log")
    keyless = orders(key=(), table=log)
    more = orders({"id": "bigint", "name": "varchar(20)", "n": "int", "note": "text"}, (), log)
    writes: list[str] = []
    limit = [10**9]

    def counted(cls: type, name: str) -> None:
        original = getattr(cls, name)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if len(writes) >= limit[0]:
                raise Killed
            writes.append(name)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(cls, name, method)

    counted(Storage, "write_json")
    counted(Storage, "delete")
    counted(KeptChanges, "keep")
    counted(LandedTable, "describe")
    counted(LandedTable, "add_columns")
    monkeypatch.setattr(writer_module, "merge_tables", interruptible(writes, limit))

    def whole_batch(job: Job) -> None:
        batch = job.batch(0)
        first = {orders(): [upsert(1, 1, "a")], keyless: [upsert(1, 1, "x")]}
        second = {orders(): [upsert(4, 2, "b")], more: [upsert(4, 2, "y")]}
        job.writer.verify(batch)
        job.writer.merge(batch, 0, job.changes(first), list(first))
        job.writer.apply(batch, 0, alter)
        job.writer.merge(batch, 1, job.changes(second), list(second))
        job.writer.finish(batch, None)

    text = "ALTER TABLE log ADD note TEXT"
    alter = Statement(list(ddl_changes(text, "shop")), text, position(2), {log: more})
    killed = 0
    while True:  # what was done stays done, so that each attempt comes a step further
        del writes[:]
        limit[0] = killed
        again = Job(spark, tmp_path, merge_every=every, mode=mode)
        try:
            whole_batch(again)
            break
        except Killed:
            killed += 1
    assert killed >= 5
    limit[0] = 10**9
    Job(spark, tmp_path, mode=mode).land(1, {orders(): [upsert(5, 3, "c")]})  # merges what waits
    rows = DeltaTable(tmp_path / "shop/log").to_pyarrow_table().sort_by("id").to_pylist()
    assert [(1, "x", None), (2, "y", None)] == [(r["id"], r["name"], r["note"]) for r in rows]
    assert {1: "a", 2: "b", 3: "c"} == again.names()


def interruptible(writes: list[str], limit: list[int]) -> Callable[..., Any]:
    """merge_tables, which can be interrupted before and after."""
    original = writer_module.merge_tables

    def merge(*args: Any) -> Any:
        for moment in ("before", "after"):
            if len(writes) >= limit[0]:
                raise Killed
            writes.append(f"{moment} a merge")
            if moment == "before":
                found = original(*args)
        return found

    return merge


def test_older_checkpoint_is_refused(job: Callable[..., Job]) -> None:
    first = job()
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.land(1, {orders(): [upsert(2, 1, "b")]})
    with pytest.raises(UsageError, match="older than the target"):
        job().land(0, {orders(): [upsert(1, 1, "a")]})
    with pytest.raises(UsageError, match="older than the target"):
        first.writer.verify(first.batch(1, first=17))
    assert {1: "b"} == first.names()


def test_older_checkpoint_is_refused_after_a_batch_without_changes(job: Callable[..., Job]) -> None:
    first = job(merge_every="1h")
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.land(1, {orders(): [upsert(2, 1, "b")]})
    again = job()
    again.writer.finish(again.batch(2), None)  # it merges what waits
    assert {1: "b"} == again.names()
    with pytest.raises(UsageError, match="older than the target"):
        job().land(1, {orders(): [upsert(3, 1, "c")]})


def test_lake_that_is_older_than_the_checkpoint_is_refused(job: Callable[..., Job]) -> None:
    with pytest.raises(UsageError, match="has no batch of this job"):
        job().land(7, {orders(): [upsert(1, 1, "a")]})
    job().land(0, {orders(): [upsert(1, 1, "a")]})
    with pytest.raises(UsageError, match=r"up to 0 of this job.*goes on with batch 2"):
        job().land(2, {orders(): [upsert(3, 1, "c")]})
    assert {1: "a"} == job().names()


def test_two_jobs_in_one_lake_do_not_touch_what_the_other_notes(job: Callable[..., Job]) -> None:
    items = orders(table=ITEMS)
    one, two = job("one", merge_every="1h"), job("two", merge_every="1h")
    one.land(0, {orders(): [upsert(1, 1, "a")]})
    two.land(0, {items: [upsert(1, 1, "x")]})
    one.land(1, {orders(): [upsert(2, 1, "b")]})
    two.land(1, {items: [upsert(2, 1, "y")]})  # both wait
    one.park(2, ORDERS)
    two.park(2, ITEMS)
    assert {ORDERS: "parked", ITEMS: "parked"} == one.tables()
    assert ({1: "b"}, {1: "y"}) == (one.names(), one.names(ITEMS))

    assert resume(Storage(str(one.folder / "_headgate")), ITEMS)
    one.land(3, {orders(): [upsert(4, 1, "c")]})
    assert {ORDERS: "parked", ITEMS: "parked"} == one.tables()  # it is not for this job to resume
    two.land(3, {items: [upsert(4, 1, "z")]})
    assert {ORDERS: "parked", ITEMS: "landed"} == one.tables()


def test_parked_table_stays_parked_when_another_job_adopts_it(job: Callable[..., Job]) -> None:
    first = job()
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.park(1, ORDERS)
    second = job("two", adopt=True)
    second.land(0, {orders(): [upsert(3, 1, "b")]})
    assert {1: "a"} == second.names()
    assert resume(Storage(str(first.folder / "_headgate")), ORDERS)
    second.land(1, {})
    assert ({1: "b"}, {ORDERS: "landed"}) == (second.names(), second.tables())


def test_changes_kept_of_a_parked_table_outlast_the_adoption_of_the_table(
    job: Callable[..., Job],
) -> None:
    """The batches of both jobs have the same numbers."""
    first = job()
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.park(1, ORDERS)
    first.land(2, {orders(): [upsert(3, 2, "kept")]})
    second = job("two", adopt=True)
    second.land(0, {})
    second.land(1, {})
    second.land(2, {orders(): [upsert(4, 3, "c")]})
    assert resume(Storage(str(first.folder / "_headgate")), ORDERS)
    second.land(3, {})
    assert {1: "a", 2: "kept", 3: "c"} == second.names()


def test_second_job_on_the_same_tables_is_refused(job: Callable[..., Job]) -> None:
    job("one").land(0, {orders(): [upsert(1, 1, "a")]})
    with pytest.raises(HeadgateError, match="another job"):
        job("two").land(0, {orders(): [upsert(2, 1, "b")], orders(table=ITEMS): [upsert(1, 1)]})
    assert {1: "a"} == job("one").names()


def test_table_with_an_error_is_parked_and_goes_on_later(job: Callable[..., Job]) -> None:
    first = job()
    items = orders(table=ITEMS)
    first.land(0, {orders(): [upsert(1, 1, "a", 1)], items: [upsert(1, 1, "x")]})
    first.land(1, {orders(): [partial(5, 9, n=5)], items: [upsert(2, 1, "y")]})
    first.land(2, {orders(): [upsert(6, 1, "b", 2)], items: [upsert(3, 2, "z")]})
    assert {1: "a"} == first.names()
    assert {1: "y", 2: "z"} == first.names(ITEMS)
    assert {ORDERS: "parked", ITEMS: "landed"} == first.tables()
    reason = read_tables(Storage(str(first.folder / "_headgate")))[ORDERS].reason or ""
    assert "leaves out the column 'name'" in reason

    again = job(on_misfit="null")  # the operator's remedy
    assert resume(Storage(str(first.folder / "_headgate")), ORDERS)
    again.land(3, {orders(): [upsert(7, 2, "c")]})
    assert {1: "b", 2: "c", 9: None} == again.names()
    assert {ORDERS: "landed", ITEMS: "landed"} == again.tables()
    again.land(4, {orders(): [upsert(8, 2, "d")]})
    assert {1: "b", 2: "d", 9: None} == again.names()


@pytest.mark.parametrize("cut_off", ["changes/parked", "tables/", "resume/"])
def test_job_that_is_killed_while_a_table_goes_on(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, cut_off: str
) -> None:
    first = job(mode="log")
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    parked(first)
    first.land(1, {orders(): [upsert(3, 2, "b")]})
    notes = Storage(str(first.folder / "_headgate"))
    assert resume(notes, ORDERS)
    with monkeypatch.context() as patch:
        for name in ("delete", "write_json"):
            patch.setattr(Storage, name, killed_at(cut_off, getattr(Storage, name)))
        with pytest.raises(Killed):
            first.land(2, {})
    again = job(mode="log")
    again.land(2, {})
    parked(again)
    again.land(3, {orders(): [upsert(6, 3, "c")]})
    assert {ORDERS: "parked"} == again.tables()  # until somebody has seen to it again
    assert resume(notes, ORDERS)
    again.land(4, {})
    rows = DeltaTable(again.folder / "shop/orders").to_pyarrow_table()
    assert [1, 2, 3] == sorted(rows.column("id").to_pylist())


def killed_at(path: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A method of Storage, which is interrupted before it touches a path."""

    def method(self: Storage, name: str, *args: Any) -> Any:
        if name.startswith(path):
            raise Killed
        return original(self, name, *args)

    return method


def parked(job: Job) -> None:
    """Park a table of a log, which no statement does."""
    writer: Any = job.writer
    writer.park(ORDERS, "it is damaged", "repair it")


def test_table_that_is_not_parked_is_not_resumed(job: Callable[..., Job]) -> None:
    first = job()
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    assert not resume(Storage(str(first.folder / "_headgate")), ORDERS)


def test_changes_wait_for_their_merge(job: Callable[..., Job]) -> None:
    first = job(merge_every="1h")
    first.land(0, {orders(): [upsert(1, 1, "a")]})  # the first is due at once
    first.land(1, {orders(): [upsert(2, 1, "b"), upsert(3, 2, "c")]})
    first.land(2, {orders(): [upsert(4, 1, "d")]})
    assert {1: "a"} == first.names()
    first.apply(3, "ALTER TABLE orders ADD note TEXT", 5, orders())  # what is before comes first
    assert {1: "d", 2: "c"} == first.names()
    first.land(4, {orders(): [upsert(6, 2, "e")]})
    assert {1: "d", 2: "c"} == first.names()
    job().land(5, {orders(): [upsert(7, 3, "f")]})
    assert {1: "d", 2: "e", 3: "f"} == first.names()


def test_changes_that_wait_are_merged_and_reported_though_no_batch_comes(
    job: Callable[..., Job],
) -> None:
    first = job(merge_every="1h")
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.land(1, {orders(): [upsert(2, 2, "b")]})
    first.writer.idle(first.batch(1))
    assert {1: "a"} == first.names()  # it is not time
    first.writer.state.job.merged_at = 0.0
    first.writer.idle(first.batch(1))
    assert {1: "a", 2: "b"} == first.names()
    assert 1 == first.writer.finish(first.batch(2), None).tables[ORDERS].upserted


def test_merge_between_batches_that_is_cut_off_is_done_once(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = job(merge_every="1h", mode="log")
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.land(1, {orders(): [upsert(2, 2, "b")]})
    first.writer.state.job.merged_at = 0.0
    merge_now = first.writer.merge_now

    def cut_off(*args: Any, **options: Any) -> None:
        merge_now(*args, **options)
        raise InterruptedError

    monkeypatch.setattr(first.writer, "merge_now", cut_off)
    with pytest.raises(InterruptedError):
        first.writer.idle(first.batch(1))
    again = job(merge_every="1h", mode="log")
    again.land(2, {orders(): [upsert(3, 3, "c")]})
    again.writer.state.job.merged_at = 0.0
    again.writer.idle(again.batch(2))
    rows = DeltaTable(again.folder / "shop" / "orders").to_pyarrow_table()
    assert [1, 2, 3] == sorted(rows["id"].to_pylist())


def test_changes_of_a_parked_table_that_waited_are_kept_when_their_batch_is_repeated(
    job: Callable[..., Job],
) -> None:
    first = job(merge_every="1h")
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.park(1, ORDERS)
    first.land(2, {orders(): [upsert(3, 2, "b")]})
    for _ in range(2):  # killed before the checkpoint had it
        job().land(3, {orders(): [upsert(4, 3, "c")]})
    assert resume(Storage(str(first.folder / "_headgate")), ORDERS)
    job().land(4, {})
    assert {1: "a", 2: "b", 3: "c"} == first.names()


def test_many_changes_do_not_wait(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MOST_WAITING", 1)
    first = job(merge_every="1h")
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.land(1, {orders(): [upsert(2, 1, "b")]})
    assert {1: "b"} == first.names()


def test_statement_changes_the_table_in_order_with_rows(job: Callable[..., Job]) -> None:
    first = job()
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    wider = orders({"id": "bigint", "name": "varchar(20)", "n": "int", "note": "varchar(9)"})
    text = "ALTER TABLE orders ADD note VARCHAR(9) NOT NULL DEFAULT 'x'"
    first.apply(1, text, 2, wider)
    first.apply(1, text, 2, wider)
    rows = DeltaTable(first.folder / "shop/orders").to_pyarrow_table().to_pylist()
    assert ["x"] == [each["note"] for each in rows]
    first.apply(2, "TRUNCATE TABLE orders", 5, wider)
    assert {} == first.names()
    first.land(3, {orders(): [upsert(3, 1, "late"), upsert(6, 2, "new")]})
    assert {2: "new"} == first.names()


def test_statement_that_is_not_understood_parks_its_table(job: Callable[..., Job]) -> None:
    first = job()
    items = orders(table=ITEMS)
    first.land(0, {orders(): [upsert(1, 1, "a")], items: [upsert(1, 1, "x")]})
    unknown: list[SchemaChange] = [Unknown((ORDERS,), "no such syntax")]
    first.writer.apply(first.batch(1), 0, Statement(unknown, "ALTER ???", position(2), {}))
    first.land(2, {orders(): [upsert(3, 1, "b")], items: [upsert(3, 1, "y")]})
    assert {1: "a"} == first.names()
    assert {1: "y"} == first.names(ITEMS)
    assert {ORDERS: "parked", ITEMS: "landed"} == first.tables()


@pytest.mark.parametrize("times", [1, 2])
def test_table_that_is_renamed_to_a_parked_one_keeps_its_rows(
    job: Callable[..., Job], times: int
) -> None:
    first = job()
    ghost = TableId("shop", "_orders_gho")
    first.land(0, {orders(): [upsert(1, 1, "a")], orders(table=ghost): [upsert(1, 1, "new")]})
    first.park(1, ORDERS)
    for _ in range(times):
        first.apply(2, "RENAME TABLE orders TO _orders_del, _orders_gho TO orders", 3, orders())
    path = first.folder / "shop/_x5f_orders_gho"
    assert ["new"] == DeltaTable(path).to_pyarrow_table().column("name").to_pylist()
    assert {ORDERS, ghost, TableId("shop", "_orders_del")} == set(first.tables())
    assert {"parked"} == set(first.tables().values())
    assert {1: "a"} == first.names()


def test_table_whose_rename_fails_keeps_its_rows(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise TableError("a value cannot be converted", "convert it")

    first = job()
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    monkeypatch.setattr(writer_module, "carry_out", failing)
    first.apply(1, "RENAME TABLE orders TO items", 2, orders(table=ITEMS))
    assert {1: "a"} == first.names()
    assert {ORDERS: "parked", ITEMS: "parked"} == first.tables()


def test_dropped_tables_are_kept_or_dropped(job: Callable[..., Job]) -> None:
    first = job()
    first.land(0, {orders(): [upsert(1, 1, "a")]})
    first.apply(1, "DROP TABLE orders", 2)
    assert {1: "a"} == first.names()
    dropping = job(drop_table="drop")
    dropping.land(2, {orders(table=ITEMS): [upsert(1, 1, "x")]})
    dropping.apply(3, "DROP TABLE items", 4)
    assert not (dropping.folder / "shop/items").exists()
    assert {ORDERS: "landed"} == dropping.tables()
    old, new = (orders(table=TableId("shop", name)) for name in ("old", "new"))
    dropping.land(4, {old: [upsert(1, 1, "x")]})
    dropping.apply(5, "RENAME TABLE old TO new", 6, new)
    assert {ORDERS: "landed", new.table: "landed"} == dropping.tables()


def test_secrets_are_not_in_errors_or_plans(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path))
    settings = {"spark.hadoop.fs.s3a.secret.key": "s3cr3t"}
    writer: Any = sink.open(spark, Target("job", "delta", {}, settings))
    assert "s3cr3t" not in repr(writer.lake)
    assert "s3cr3t" not in repr(sink)
