"""Source and target compared as a user does it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command_line import run
from deltalake import write_deltalake
from messages import canal
from pyspark.sql import SparkSession
from ticdc_messages import ticdc

import headgate
from headgate.cli.verify import DIFFERENT
from headgate.core.errors import UsageError
from headgate.verification.report import described
from headgate.verification.run import Wanted, compare
from headgate.verification.sides import Side, SideTable

LANDED = {
    "id": pa.array([1, 2], pa.int64()),
    "amount": pa.array(["1.10", "2.10"]).cast(pa.decimal128(12, 2)),
    "note": pa.array([None, None], pa.string()),
    "_position": pa.array(["p", "q"]),
}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    messages = [ticdc(1, 1), ticdc(2, 2), ticdc(1, 3, table="items")]
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\n".join(messages))
    return tmp_path / "lake"


def land(lake: Path, table: str, **columns: Any) -> None:
    path = lake / "shop" / table
    path.mkdir(parents=True, exist_ok=True)
    write_deltalake(str(path), pa.table({**LANDED, **columns}), mode="overwrite")


def verify(spark: SparkSession, lake: Path, *tables: str) -> Any:
    source = f"file://{lake.parent}/in"
    return headgate.verify(source, f"delta://{lake}", tables=tables, spark=spark)


def test_tables_that_are_equal(spark: SparkSession, lake: Path) -> None:
    land(lake, "orders")

    found = verify(spark, lake, "shop.orders")

    assert found
    [table] = found.tables
    assert ("shop.orders", "equal", 2, 2) == (
        table.table, table.state, table.source_rows, table.target_rows
    )  # fmt: skip
    assert table.source_checksum == table.target_checksum != "0"
    assert "all 1 tables are equal" in list(described(found))[-1]


def test_rows_that_differ_are_shown_column_by_column_with_their_messages(
    spark: SparkSession, lake: Path
) -> None:
    land(lake, "orders", note=pa.array([None, "wrong"]))

    found = verify(spark, lake, "shop.orders")

    assert not found
    [table] = found.tables
    assert {"different": 1} == table.counts
    [row] = table.differences
    assert ({"id": "2"}, ["note"]) == (row.key, list(row.columns))
    assert (None, "wrong") == (row.columns["note"].source, row.columns["note"].target)
    assert [("insert", "a.jsonl:1")] == [(m.op, m.place) for m in row.messages]
    lines = "\n".join(described(found))
    assert "id='2': different" in lines
    assert "note  source NULL  target 'wrong'" in lines
    assert "last messages: insert at a.jsonl:1" in lines
    assert lines.endswith(f"1 of 1 tables differ ({found.seconds:.1f} s)")


def test_tables_that_only_one_side_has(spark: SparkSession, lake: Path) -> None:
    land(lake, "orders")
    land(lake, "kept")

    found = verify(spark, lake)

    states = {table.table: table.state for table in found.tables}
    assert {"shop.items": "missing", "shop.orders": "equal", "shop.kept": "extra"} == states
    assert not found
    assert "kept    " in next(line for line in described(found) if "only in the target" in line)


def test_two_lakes_are_compared(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    land(lake, "orders")
    land(tmp_path / "copy", "orders")

    assert headgate.verify(f"delta://{lake}", f"delta://{tmp_path}/copy", spark=spark)


def test_the_command_compares_two_places_without_a_job(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    land(lake, "orders")
    land(tmp_path / "copy", "orders")
    places = ("--source", f"delta://{lake}", "--target", f"delta://{tmp_path}/copy")

    equal = run("verify", *places, "--wait", "0s")

    assert (0, b"") == (equal.returncode, equal.stderr)
    assert [f"source delta:{lake}", f"target delta:{tmp_path}/copy"] == (
        equal.stdout.decode().splitlines()[:2]
    )
    assert b"\nall 1 tables are equal" in equal.stdout

    land(tmp_path / "copy", "orders", note=pa.array([None, "wrong"]))
    differs = run("verify", *places, "--wait", "0s", "--json")
    assert DIFFERENT == differs.returncode
    assert {"extra": 1, "missing": 1} == json.loads(differs.stdout)["tables"][0]["counts"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "give a job file, or --source and --target"),
        (["--source", "delta:a"], "--target is missing; without a job file, give --source and "),
        (["--target", "delta:a"], "--source is missing; without a job file, give --source and "),
        (["job.yaml", "--target", "delta:a"], "give a job, or --source and --target, not both"),
    ],
)
def test_the_command_says_which_place_is_missing(given: list[str], said: str) -> None:
    done = run("verify", *given)

    assert 2 == done.returncode
    assert done.stderr.decode().startswith(f"headgate: {said}")


def test_a_pattern_that_matches_nothing_is_an_error_with_the_nearest_name(
    spark: SparkSession, lake: Path
) -> None:
    land(lake, "orders")
    places = ("--source", f"delta://{lake}", "--target", f"delta://{lake}", "--wait", "0s")

    typo = run("verify", *places, "--table", "shop.orders", "--table", "shop.ordesr")

    assert (2, b"") == (typo.returncode, typo.stdout)
    said = "no table of the source or the target matches 'shop.ordesr'; did you mean 'shop.orders'?"
    assert f"headgate: {said}\n" == typo.stderr.decode()


def test_nothing_to_compare_is_an_error_and_not_equal(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    land(lake, "orders")
    empty = f"delta://{tmp_path}/empty"

    for words in ([], ["--table", "shop.*"]):  # all tables are extra
        done = run("verify", "--source", empty, "--target", f"delta://{lake}", *words)
        assert 2 == done.returncode, done.stdout
        said = f"headgate: there is nothing to compare: delta:{tmp_path}/empty has no table"
        assert done.stderr.decode().startswith(said)
    with pytest.raises(UsageError, match="nothing to compare"):
        headgate.verify(empty, empty, spark=spark)


def test_a_database_whose_name_has_a_dot(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    message = canal(database="a.b", table="t.u", id=1)
    (lake.parent / "in" / "a.jsonl").write_bytes(message)
    events = headgate.decode(spark.read.text(f"file://{lake.parent}/in"))
    headgate.land(events, f"delta://{lake}")
    assert (lake / "a.b" / "t.u" / "_delta_log").is_dir()

    found = verify(spark, lake, "a.b.*")

    assert [("a.b.t.u", "equal")] == [(table.table, table.state) for table in found.tables]


def test_a_wrong_place_is_a_usage_error(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="mysql://USER:PASSWORD@HOST:PORT/DATABASE"):
        headgate.verify("mysql:nowhere", "delta:///lake", spark=spark)


class Moving(Side):
    """A side whose rows change between looks."""

    live = True

    def __init__(self, spark: SparkSession, *looks: Sequence[tuple[int, str]]) -> None:
        self.name, self.spark, self.looks = "moving", spark, list(looks)

    def tables(self) -> list[str]:
        return ["d.t"]

    def table(self, name: str) -> SideTable:
        rows = self.spark.createDataFrame(list(self.looks[0]), "id int, v string")
        return SideTable(rows, ("id",))

    def refresh(self) -> None:
        if len(self.looks) > 1:
            self.looks.pop(0)


def test_rows_that_the_target_follows_later_are_equal(spark: SparkSession) -> None:
    source = Moving(spark, [(1, "a"), (2, "b")], [(1, "a2"), (2, "b")], [(1, "a3"), (2, "b")])
    target = Moving(spark, [(1, "old")], [(1, "old"), (2, "b")], [(1, "a2"), (2, "b")])

    found = compare(source, target, Wanted(wait=30))

    assert found, found.tables
    assert ["rows that changed meanwhile were compared again"] == found.tables[0].notes


def test_rows_that_the_target_does_not_follow_differ_and_the_others_are_not_shown(
    spark: SparkSession,
) -> None:
    source = Moving(spark, [(1, "a"), (2, "b")], [(1, "a"), (2, "b2")])
    target = Moving(spark, [(1, "wrong"), (2, "old")], [(1, "wrong"), (2, "b")])

    found = compare(source, target, Wanted(wait=3))

    assert {"different": 1} == found.tables[0].counts
    assert [{"id": "1"}] == [row.key for row in found.tables[0].differences]
