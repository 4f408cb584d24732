"""Two tables compared by Spark: checksums, then the rows that differ."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.verification.comparison import (
    Differences,
    Pair,
    checksums,
    differences,
    differing_buckets,
    hashes,
    paired,
)
from headgate.verification.sides import SideTable

SCHEMA = "id int, name string, price decimal(12,2)"
ROWS = [(n, f"name {n}", Decimal(n)) for n in range(50)]


@pytest.fixture
def frame(spark: SparkSession) -> Any:
    def make(rows: list[tuple[Any, ...]], schema: str = SCHEMA) -> DataFrame:
        return spark.createDataFrame(rows, schema)

    return make


def pair_of(source: DataFrame, target: DataFrame, key: tuple[str, ...] = ("id",)) -> Pair:
    return paired("d.t", SideTable(source, key), SideTable(target))


def found(pair: Pair, most: int = 20) -> Differences:
    [(source, target)] = checksums([pair])
    return differences(pair, differing_buckets(source, target), most)


def test_equal_rows_in_another_order_have_equal_checksums(frame: Any) -> None:
    pair = pair_of(frame(ROWS), frame(ROWS[::-1]).repartition(3))

    [(source, target)] = checksums([pair])

    assert source == target
    assert (50, 50) == (source.rows, target.rows)
    assert [] == differing_buckets(source, target)


def test_rows_that_are_missing_extra_or_different_are_shown_with_both_sides(frame: Any) -> None:
    target = [(99, "new", None), (2, None, Decimal("2.00")), *ROWS[3:]]
    pair = pair_of(frame(ROWS[1:]), frame(target))

    shown = found(pair)

    assert {"missing": 1, "extra": 1, "different": 1} == shown.counts
    assert [
        ("missing", ("1",), ("1", "name 1", "1.00"), None),
        ("different", ("2",), ("2", "name 2", "2.00"), ("2", None, "2.00")),
        ("extra", ("99",), None, ("99", "new", None)),
    ] == [(row.kind, row.key, row.source, row.target) for row in shown.rows]


def test_rows_that_were_landed_twice_or_not_at_all_are_counted_and_the_first_are_shown(
    frame: Any,
) -> None:
    shown = found(pair_of(frame(ROWS), frame([*ROWS[:8], ROWS[7]])), most=2)

    assert {"missing": 42, "duplicate": 1} == shown.counts
    assert [("duplicate", ("7",), (1, 2)), ("missing", ("8",), (1, 0))] == [
        (row.kind, row.key, row.copies) for row in shown.rows
    ]


def test_a_null_does_not_equal_the_null_of_another_column_nor_an_empty_text(frame: Any) -> None:
    schema = "id int, a string, b string"
    source = frame([(1, None, "x"), (2, "", None), (3, "a", "b"), (4, "a", "a ")], schema)
    target = frame([(1, "x", None), (2, None, None), (3, "a", "b"), (4, "A", "a")], schema)

    assert ["1", "2", "4"] == [row.key[0] for row in found(pair_of(source, target)).rows]


def test_tables_without_a_key_are_compared_as_multisets(frame: Any) -> None:
    a, b = (1, "a", None), (1, "b", Decimal("0.50"))
    equal = pair_of(frame([a, b, a]), frame([a, a, b]), key=())
    unequal = pair_of(frame([a, b, a]), frame([a, b, b]), key=())

    [(source, target), others] = checksums([equal, unequal])

    assert (source == target, others[0] == others[1]) == (True, False)
    shown = found(unequal)
    assert [("missing", (2, 1)), ("duplicate", (1, 2))] == [
        (row.kind, row.copies) for row in shown.rows
    ]


def test_values_of_other_types_are_equal_if_they_are_the_same_value(frame: Any) -> None:
    source = [
        (1, True, 0.5, Decimal("1.1"), "1.10", 1),
        (2, False, 0.1, Decimal("1.1"), "1.1", 2),
    ]
    target = [
        (1, 1, 0.5, Decimal("1.10"), Decimal("1.10"), 1),
        (2, 0, 0.1, Decimal("1.11"), Decimal("1.10"), 2),
    ]
    pair = pair_of(
        frame(source, "id int, b boolean, f float, d decimal(10,1), s string, n int"),
        frame(target, "id int, b tinyint, f double, d decimal(12,2), s decimal(12,2), n bigint"),
    )

    shown = found(pair)

    assert [("2",)] == [row.key for row in shown.rows]
    [row] = shown.rows
    assert row.source is not None
    assert row.target is not None
    different = [name for name, a, b in zip(pair.columns, row.source, row.target) if a != b]
    assert ["f", "d", "s"] == different
    assert ["column b is", "column f is", "column d is", "column s is", "column n is"] == [
        note[:11] for note in pair.notes
    ]


def test_columns_that_the_target_lacks_are_named_and_those_that_it_has_more_are_not_compared(
    frame: Any,
) -> None:
    source = frame([(1, "a")], "id int, name string")
    target = frame([(1, "kept")], "id int, dropped string")

    pair = pair_of(source, target)

    assert (("name",), ("id",)) == (pair.lacking, pair.columns)
    assert ["columns of the target only, not compared: dropped"] == list(pair.notes)


def test_json_that_a_database_prints_is_compared_by_its_value(frame: Any) -> None:
    schema = "id int, j string"
    texts = frame([(1, '{"b":[1,2],"a":null}'), (2, "not json")], schema)
    printed = frame([(1, '{"a": null, "b": [1, 2]}'), (2, "not json")], schema)
    pair = paired("d.t", SideTable(printed, ("id",), frozenset({"j"})), SideTable(texts))

    [(source, target)] = checksums([pair])

    assert source == target


def test_names_with_dots_and_backticks(frame: Any) -> None:
    odd = frame([(1, "x")], "`a.b` int, `it``s` string")
    other = frame([(1, "y")], "`a.b` int, `it``s` string")

    shown = found(pair_of(odd, other, key=("a.b",)))

    assert [("1", "x")] == [row.source for row in shown.rows]


def test_hashes_tell_rows_apart_that_are_on_one_side_only(frame: Any) -> None:
    pair = pair_of(frame(ROWS[:2]), frame(ROWS[1:3]))

    both = sorted((s is None, t is None) for s, t in hashes(pair, range(256), 10).values())

    assert [(False, True), (True, False)] == both
