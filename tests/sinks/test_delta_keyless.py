"""Tables without a key: equal rows are kept as many times as the source has them."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from delta_lake import LandedLake
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_changes import ORDERS, Change, orders, truncate

from headgate.landing.table_rows import DELETE, UPSERT
from headgate.sinks.delta.table import TableError

KEYLESS = orders({"id": "int", "name": "varchar(9)"}, key=())


def insert(at: int, id: int | None, name: str | None = None) -> Change:
    return Change(UPSERT, at, {"id": id, "name": name})


def remove(at: int, id: int | None, name: str | None = None) -> Change:
    return Change(DELETE, at, {"id": id, "name": name})


def land(lake: LandedLake, *changes: Change, batch: int | None = None) -> None:
    lake.land(list(changes), shape=KEYLESS, batch=batch)


def counted(lake: LandedLake) -> Counter[tuple[Any, Any]]:
    found = lake.rows(ORDERS, "id, name", "id, name")
    return Counter((each["id"], each["name"]) for each in found)


def test_equal_rows_are_counted(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    land(lake, insert(1, 1, "a"), insert(2, 1, "a"), insert(3, 1, "a"), insert(4, 2))
    land(lake, remove(5, 1, "a"))
    assert Counter({(1, "a"): 2, (2, None): 1}) == counted(lake)


def test_update_is_a_delete_and_an_insert(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    land(lake, insert(1, 1, "a"), insert(2, 1, "a"))
    land(lake, remove(3, 1, "a"), insert(3, 1, "b"))
    assert Counter({(1, "a"): 1, (1, "b"): 1}) == counted(lake)


def test_nulls_are_equal(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    land(lake, insert(1, None), insert(2, None), insert(3, None, ""))
    land(lake, remove(4, None))
    assert Counter({(None, None): 1, (None, ""): 1}) == counted(lake)


def test_equal_rows_of_one_position(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    land(lake, insert(1, 1, "a"), insert(1, 1, "a"), insert(1, 1, "a"))
    land(lake, remove(2, 1, "a"))
    assert Counter({(1, "a"): 2}) == counted(lake)


def test_range_that_is_read_again_changes_nothing(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    history = [insert(1, 1, "a"), insert(2, 1, "a"), remove(3, 1, "a"), insert(4, 2, "b")]
    for change in history:
        land(lake, change)
    for start in range(4):
        land(lake, *history[start:])
        assert Counter({(1, "a"): 1, (2, "b"): 1}) == counted(lake)


def test_truncate(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    land(lake, insert(1, 1, "a"), insert(9, 2, "b"))
    land(lake, truncate(5), insert(6, 3, "c"))
    land(lake, insert(4, 4, "late"))
    assert Counter({(2, "b"): 1, (3, "c"): 1}) == counted(lake)


def test_column_with_a_name_that_merges_use(tmp_path: Path) -> None:
    shape = orders({"id": "int", "_gone": "varchar(9)"}, key=())
    name, lake = shape.columns[1].name, LandedLake(tmp_path)
    one, two = ({"id": 1, name: value} for value in ("a", "b"))
    lake.land([Change(UPSERT, 1, one), Change(UPSERT, 2, one)], shape=shape)
    lake.land([Change(DELETE, 3, one), Change(UPSERT, 3, two)], shape=shape)
    assert ["a", "b"] == sorted(each[name] for each in lake.rows(ORDERS))


def test_soft_deletes(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path, deletes="soft")
    land(lake, insert(1, 1, "a"), insert(2, 1, "a"))
    land(lake, remove(3, 1, "a"))
    land(lake, remove(4, 1, "a"))
    assert [True, True] == [each["_deleted"] for each in lake.rows(ORDERS)]


def test_partial_image_is_an_error_of_the_table(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    with pytest.raises(TableError, match="has no key"):
        land(lake, Change(UPSERT, 1, {"id": 1}, ("name",)))


@st.composite
def batches(draw: st.DrawFn) -> list[list[Change]]:
    """Inserts and deletes of rows that are there, in batches; a range may come twice."""
    rows: list[int] = []
    changes: list[Change] = []
    for at in range(draw(st.integers(1, 12))):
        if rows and draw(st.booleans()):
            changes.append(remove(at, rows.pop(draw(st.integers(0, len(rows) - 1)))))
        else:
            rows.append(draw(st.integers(1, 2)))
            changes.append(insert(at, rows[-1]))
    places = sorted(draw(st.sets(st.integers(0, len(changes)), max_size=3)))
    start = draw(st.integers(0, len(changes)))
    parts = [changes[a:b] for a, b in zip([0, *places], [*places, len(changes)])]
    return [part for part in [*parts, changes[start:]] if part]


@settings(max_examples=examples(40), deadline=None)
@given(batches())
def test_any_history_gives_the_rows_of_the_model(parts: list[list[Change]]) -> None:
    expected: Counter[tuple[Any, Any]] = Counter()
    for change in {change.at: change for part in parts for change in part}.values():
        expected[change.row["id"], None] += 1 if change.op == UPSERT else -1
    with tempfile.TemporaryDirectory() as folder:
        lake = LandedLake(Path(folder))
        for number, part in enumerate(parts):
            for _ in range(2):
                land(lake, *part, batch=number)
        assert +expected == counted(lake)
