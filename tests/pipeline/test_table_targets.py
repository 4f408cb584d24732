"""Jobs that land tables, on Spark: steps, schema changes, counts; and how they are configured."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from job_runs import Bench
from memory_tables import Store, registered_store
from messages import canal
from pyspark.sql import SparkSession
from ticdc_messages import TSO, ddl, ticdc, watermark

from headgate.config.reader import job_of
from headgate.core.errors import UsageError
from headgate.pipeline.check import checked, described
from headgate.pipeline.status import Status, details
from headgate.schema.changes import AddColumn, RenameTable, TableId


@pytest.fixture
def store() -> Iterator[Store]:
    with registered_store() as found:
        yield found


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession) -> Bench:
    return Bench(tmp_path, spark)


def run(bench: Bench, sink: str = "memory:", **more: Any) -> Status:
    return bench.run(sinks=[{"uri": sink}], **more)


def test_tables_follow_the_source(bench: Bench, store: Store) -> None:
    bench.put("a.jsonl", ticdc(1, 1), ticdc(2, 2), ticdc(1, 3, "UPDATE"))
    run(bench)
    bench.put("b.jsonl", ticdc(2, 4, "DELETE"), ticdc(1, 3, "UPDATE"), ticdc(3, 5))

    status = run(bench)

    assert [
        {"id": 1, "amount": Decimal("3.10"), "note": None},
        {"id": 3, "amount": Decimal("5.10"), "note": None},
    ] == store.values("shop.orders")
    assert {"insert": 3, "update": 1, "delete": 1} == status.totals.rows["shop.orders"]
    assert {"shop.orders": {"upserted": 4, "deleted": 1, "ignored": 0}} == status.totals.merged
    lines = list(details(status))
    assert "  shop.orders: 1 delete, 3 insert, 1 update, 4 rows upserted, 1 rows deleted" in lines


def test_ddl_is_applied_between_the_rows_before_and_after_it(bench: Bench, store: Store) -> None:
    added = {"id": "3", "amount": "3.10", "note": None, "n": "7"}
    types = {"id": "bigint(20)", "amount": "decimal(12,2)", "note": "varchar(20)", "n": "int"}
    columns = "id BIGINT PRIMARY KEY, amount DECIMAL(12,2), note VARCHAR(20)"
    bench.put(
        "a.jsonl",
        ddl(1, f"CREATE TABLE orders ({columns})", "CREATE"),
        ticdc(1, 2),
        ddl(3, "ALTER TABLE orders ADD COLUMN n INT NOT NULL DEFAULT 5"),
        ticdc(3, 4, data=[added], mysqlType=types),
        watermark(9),
    )

    run(bench)

    calls = [call[:3] for call in store.calls]
    assert [
        ("verify", 0),
        ("apply", 0, 0),
        ("merge", 0, 1),
        ("apply", 0, 1),
        ("merge", 0, 2),
        ("finish", 0, TSO + 9),
    ] == calls
    create, alter = store.statements
    (change,) = alter.changes
    assert isinstance(change, AddColumn)
    orders = TableId("shop", "orders")
    assert ["id", "amount", "note"] == [c.name for c in create.shapes[orders].columns]
    assert ["id", "amount", "note", "n"] == [c.name for c in alter.shapes[orders].columns]
    assert ("id",) == alter.shapes[orders].key
    assert f"{TSO + 3:020d}" == alter.position[8:]
    assert [None, 7] == [row.get("n") for row in store.values("shop.orders")]


def test_ddl_is_of_tables_and_columns_as_the_job_selects_them(bench: Bench, store: Store) -> None:
    bench.put(
        "a.jsonl",
        ddl(1, "CREATE TABLE orders (id BIGINT PRIMARY KEY, secret TEXT)", "CREATE"),
        ddl(2, "CREATE TABLE logs (id BIGINT)", "CREATE", table="logs"),
        ddl(3, "RENAME TABLE orders TO orders2", "RENAME"),
        ddl(4, "DROP TABLE orders2", "ERASE", table="orders2"),
    )

    run(
        bench,
        route=[{"table": "shop.(.*)", "to": "lake.$1"}],
        tables={"exclude": ["shop.logs"]},
        filter=[{"table": "*.*", "columns": {"exclude": ["secret"]}}],
        ddl={"exclude": ["drop"]},
    )

    assert ["create", "rename"] == [each.text.split()[0].lower() for each in store.statements]
    create, rename = store.statements
    old, new = TableId("lake", "orders"), TableId("lake", "orders2")
    assert ["id"] == [column.name for column in create.shapes[old].columns]
    assert [RenameTable(old, new)] == list(rename.changes)
    assert [new] == list(rename.shapes)


def test_a_statement_tells_its_time_and_the_tables_that_the_job_leaves_out(
    bench: Bench, store: Store
) -> None:
    bench.put(
        "a.jsonl",
        ddl(1, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE"),
        ddl(2, "RENAME TABLE orders TO _orders_del, _orders_gho TO orders", "RENAME"),
    )

    run(bench, tables={"exclude": ["shop._*"]}, route=[{"table": "shop.(.*)", "to": "lake.$1"}])

    create, swap = store.statements
    first, second = swap.changes
    assert isinstance(first, RenameTable)
    assert isinstance(second, RenameTable)
    assert frozenset() == create.left_out
    assert {first.to, second.table} == swap.left_out
    assert (TableId("lake", "orders"), "lake") == (swap.table, swap.database)
    assert swap.time is not None
    assert swap.time.year > 2000
    assert not swap.is_snapshot


def test_tables_of_an_earlier_batch_are_known(bench: Bench, store: Store) -> None:
    bench.put("a.jsonl", ddl(1, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)", "CREATE"))
    run(bench)
    bench.put("b.jsonl", ddl(2, "ALTER TABLE orders DROP COLUMN n"), ticdc(1, 3))

    run(bench)

    shape = store.statements[-1].shapes[TableId("shop", "orders")]
    assert [("id", "int")] == [(column.name, column.type) for column in shape.columns]


def test_rejected_messages_are_replayed_after_a_fix(bench: Bench, store: Store) -> None:
    from headgate.pipeline.dead_letters import Store as DeadLetters

    bad = ticdc(2, 2, data=[{"id": "2", "amount": "x", "note": None}])
    bench.put("a.jsonl", ticdc(1, 1), bad)
    status = run(bench)
    assert {"shop.orders": {"misfit": 1}} == status.totals.rejected
    assert 1 == DeadLetters(f"{bench.root}/state/dead-letters").replay()

    status = run(bench, "memory:?on-misfit=null")

    assert [1, 2] == [row["id"] for row in store.values("shop.orders")]
    assert {"misfit-null": 1} == status.totals.losses


def test_a_batch_without_changes_is_finished_all_the_same(bench: Bench, store: Store) -> None:
    bench.put("a.jsonl", watermark(4))

    run(bench)

    assert [("verify", 0), ("finish", 0, TSO + 4)] == store.calls


def test_check_says_which_tables_would_be_made(
    tmp_path: Path, spark: SparkSession, store: Store
) -> None:
    (tmp_path / "in").mkdir()
    bad = canal(data=[{"id": "2", "amount": "x", "note": None}])
    rows = [canal(), bad, canal(table="log", pkNames=None)]
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\n".join(rows))
    job = job_of(f"file:{tmp_path}/in", ["memory:"], {"pipeline.checkpoint": f"{tmp_path}/state"})

    report = checked(job, None, 10)

    (sink,) = report["writes"]
    columns = {"id": "bigint", "amount": "decimal(12,2)", "note": "string"}
    assert {
        "shop.orders": {"columns": columns, "key": ["id"]},
        "shop.log": {"columns": columns, "key": []},
    } == sink["tables"]
    lines = list(described(report))
    assert "  lands 2 tables in memory:" in lines
    assert "    table shop.orders, key id: id bigint, amount decimal(12,2), note string" in lines
    assert any(line.startswith("    rejected: 1 x misfit: ") for line in lines)


# Configuration


def test_a_table_sink_needs_no_format_and_takes_its_own_options(store: Store) -> None:
    job = job_of("in", ["memory:?tinyint1=boolean"])

    (sink,) = job.table_sinks
    assert ("memory:?tinyint1=boolean", "boolean") == (sink.name, sink.connector.types.tinyint1)


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        ("memory:?protocol=maxwell", "memory lands tables, which have no format"),
        ("memory:?tinyint=boolean", "unknown parameter of a memory sink 'tinyint'; did you mean"),
        ("memory:?tinyint1=yes", "tinyint1 cannot be 'yes'"),
        ("memory:?schema=x", "set once for the job"),
    ],
)
def test_wrong_options_of_a_table_sink_are_refused(sink: str, reason: str, store: Store) -> None:
    with pytest.raises(UsageError, match=reason):
        job_of("in", [sink])


@pytest.mark.parametrize("sinks", [["memory:", "console:?protocol=maxwell"],
                                   ["console:?protocol=maxwell", "memory:"]])  # fmt: skip
def test_messages_and_tables_are_two_jobs(sinks: list[str], store: Store) -> None:
    with pytest.raises(UsageError, match="a job writes messages or lands tables; run two jobs"):
        job_of("in", sinks)


def test_a_topic_of_a_route_is_refused_where_tables_are_landed(
    tmp_path: Path, store: Store
) -> None:
    from in_process import job_of as job_file

    with pytest.raises(UsageError, match="tables, which have no topics"):
        job_file(tmp_path, "auto", "memory:", route=[{"table": "a.b", "topic": "x"}])
