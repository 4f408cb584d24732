"""`headgate verify` of a job that has landed tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from ticdc_messages import TSO, ddl, ticdc, watermark

from headgate.cli.main import cli
from headgate.cli.verify import DIFFERENT
from headgate.core.errors import UsageError


def headgate(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


@pytest.fixture
def job(tmp_path: Path, spark: SparkSession) -> Path:
    """A job from a directory to a lake, which has landed a few changes."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "job.yaml"
    path.write_text(
        "source: {uri: 'file:in'}\n"
        "sink: {uri: 'delta:lake'}\n"
        "pipeline: {name: shop, checkpoint: ./state}\n"
    )
    put(path, "a", ticdc(1, 1), ticdc(2, 2), ticdc(1, 3, "UPDATE"), ticdc(7, 3, table="items"))
    run(path)
    put(path, "b", ddl(4, "ALTER TABLE orders ADD n INT NOT NULL DEFAULT 5"), ticdc(2, 5, "DELETE"))
    run(path)
    return path


def put(job: Path, name: str, *messages: bytes) -> None:
    (job.parent / "in" / f"{name}.jsonl").write_bytes(b"\n".join(messages) + b"\n")


def run(job: Path) -> None:
    ran = headgate("run", str(job), "--once")
    assert 0 == ran.exit_code, ran.output


def test_what_was_landed_equals_the_messages(job: Path) -> None:
    found = headgate("verify", str(job))

    assert 0 == found.exit_code, found.output
    lines = found.output.splitlines()
    assert lines[1].endswith("lake, after batch 1")
    assert ["shop.items 1 1 equal", "shop.orders 1 1 equal"] == [
        " ".join(x.split()) for x in lines[3:5]
    ]
    assert "all 2 tables are equal" in lines[-1]
    assert [] == list((job.parent / "state").glob("verify-*"))


def test_messages_that_the_job_has_not_read_yet_do_not_count(job: Path) -> None:
    put(job, "c", ticdc(9, 9), ticdc(1, 10, "DELETE"))

    assert 0 == headgate("verify", str(job)).exit_code
    run(job)
    found = json.loads(headgate("verify", str(job), "--json").output)
    assert (True, 2) == (found["equal"], found["batch"])


def test_a_table_that_somebody_changed_differs(job: Path) -> None:
    DeltaTable(str(job.parent / "lake" / "shop" / "orders")).update({"amount": "0.5"})

    found = headgate("verify", str(job), "--table", "shop.orders", "--json")

    assert DIFFERENT == found.exit_code
    [table] = json.loads(found.output)["tables"]
    assert ("shop.orders", "different", {"different": 1}) == (
        table["table"], table["state"], table["counts"]
    )  # fmt: skip
    [row] = table["differences"]
    assert ({"id": "1"}, {"amount": {"source": "3.10", "target": "0.50"}}) == (
        row["key"], row["columns"]
    )  # fmt: skip
    assert [("update", "a.jsonl:2"), ("insert", "a.jsonl:0")] == [
        (m["op"], m["place"]) for m in row["messages"]
    ]


def test_a_row_that_was_deleted_at_the_source_is_shown_with_its_delete(job: Path) -> None:
    path = str(job.parent / "lake" / "shop" / "orders")
    DeltaTable(path).restore(DeltaTable(path).version() - 1)

    found = headgate("verify", str(job), "--table", "shop.orders")

    assert DIFFERENT == found.exit_code
    assert "id='2': only in the target" in found.output
    assert "last messages: delete at b.jsonl:1" in found.output


def test_two_lakes_are_compared_by_a_job_with_another_source(job: Path) -> None:
    lake = f"delta://{job.parent}/lake"

    found = headgate("verify", str(job), "--source", lake, "--wait", "0s")

    assert 0 == found.exit_code, found.output
    assert "after batch" not in found.output


@pytest.mark.spark
def test_a_job_that_has_not_run_or_has_no_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for sink, reason in (
        ("delta:lake", "not landed anything"),
        ("console:?protocol=maxwell", "no tables"),
    ):
        path = tmp_path / "job.yaml"
        path.write_text(f"source: {{uri: 'file:in'}}\nsink: {{uri: '{sink}'}}\n")
        found = headgate("verify", str(path))
        assert isinstance(found.exception, UsageError)
        assert reason in str(found.exception)


def test_tables_are_compared_at_the_watermark_that_they_have(
    tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "job.yaml"
    path.write_text(
        "source: {uri: 'file:in'}\n"
        "sink: {uri: 'delta:lake', consistency: watermark}\n"
        "pipeline: {name: shop, checkpoint: ./state}\n"
    )
    put(path, "a", ticdc(1, 1), ticdc(2, 2), ticdc(7, 3, table="items"), watermark(2))
    alter = ddl(4, "ALTER TABLE orders ADD n INT NOT NULL DEFAULT 5")
    put(path, "b", alter, ticdc(2, 5, "DELETE"), watermark(4))
    run(path)
    orders = DeltaTable(tmp_path / "lake/shop/orders")

    found = headgate("verify", str(path), "--json")

    assert 0 == found.exit_code, found.output
    tables = json.loads(found.output)["tables"]
    assert [("shop.items", 1), ("shop.orders", 2)] == [
        (t["table"], t["target_rows"]) for t in tables
    ]
    assert TSO + 4 == orders.transaction_version("headgate.watermark")
    assert [5, 5] == orders.to_pyarrow_table().column("n").to_pylist()
