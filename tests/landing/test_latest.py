"""The last change of each key, compared with changes taken one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed_changes import Change, Model, delete, packed, partial, truncate, upsert

from headgate.codec.sequence import COMMIT, SNAPSHOT
from headgate.landing.changes import unpack
from headgate.landing.latest import CombinedChanges, Latest, combined, latest
from headgate.landing.table_rows import DELETE


def of(*parts: list[Change]) -> CombinedChanges:
    """Changes, each list packed by its own worker."""
    first, blobs = 0, []
    for part in parts:
        blobs.append(packed(part, first=first))
        first += len(part)
    return combined([unpack(blob)[1] for blob in blobs])


def rows(found: Latest) -> dict[Any, dict[str, Any] | None]:
    """What is to be landed by key; None: the row goes."""
    return {
        row.pop("id"): None if row.pop("_op") == DELETE else row
        for row in found.rows.drop_columns(["_position"]).to_pylist()
    }


def test_last_change_of_a_key_is_that_of_the_greatest_position() -> None:
    changes = of([upsert(3, 1, "c", 3), upsert(1, 1, "a", 1), upsert(2, 2, "b", 2)], [delete(4, 2)])
    assert {1: {"name": "c", "n": 3}, 2: None} == rows(latest(changes, ["id"]))


def test_numbers_of_positions_compare_as_numbers() -> None:
    assert {1: {"name": "ten", "n": None}} == rows(
        latest(of([upsert(10, 1, "ten"), upsert(9, 1, "nine")]), ["id"])
    )


def test_of_equal_positions_the_one_that_arrives_last_counts() -> None:
    assert {1: None} == rows(latest(of([upsert(5, 1, "a")], [delete(5, 1)]), ["id"]))
    assert {1: {"name": "a", "n": None}} == rows(
        latest(of([delete(5, 1)], [upsert(5, 1, "a")]), ["id"])
    )


def test_of_one_commit_an_upsert_follows_a_delete() -> None:
    """The parts of an update that come in two partitions have arrivals that do not compare."""
    parts = [upsert(5, 1, "a", kind=COMMIT)], [delete(5, 1, kind=COMMIT)]
    expected = {1: {"name": "a", "n": None}}
    assert expected == rows(latest(of(*parts), ["id"]))
    assert expected == rows(latest(of(*reversed(parts)), ["id"]))
    assert {1: None} == rows(latest(of(*parts, [delete(6, 1, kind=COMMIT)]), ["id"]))
    assert expected == rows(latest(of([upsert(9, 1, "old")], *parts), ["id"]))


def test_key_of_several_columns() -> None:
    table = pa.table(
        {
            "_op": pa.array([0, 0, 0, 0], pa.int8()),
            "_position": [f"0badcafe{n}" for n in range(4)],
            "_arrival": ["0", "1", "2", "3"],
            "a": [1, 1, 2, 1],
            "b": ["x", "y", "x", "x"],
        }
    )
    found = latest(CombinedChanges(table), ["a", "b"]).rows
    assert [(1, "y", 1), (2, "x", 2), (1, "x", 3)] == [
        (row["a"], row["b"], int(row["_position"][-1])) for row in found.to_pylist()
    ]


def test_partial_images_are_completed_by_earlier_changes() -> None:
    found = latest(of([upsert(1, 1, "a", 1), partial(2, 1, n=2), partial(3, 1, name="c")]), ["id"])
    assert {1: {"name": "c", "n": 2}} == rows(found)
    assert not found.gaps["n"].required.any()


def test_partial_image_of_which_no_change_has_the_rest() -> None:
    found = latest(of([partial(2, 1, n=2), upsert(1, 2, "b", 1)]), ["id"])
    gap = found.gaps["name"]
    assert [True, False] == gap.rows.tolist()
    assert [True, False] == gap.required.tolist()
    assert [None, "0badcafe00000000000000000001"] == gap.known_at.to_pylist()


def test_partial_image_does_not_take_values_from_before_a_delete() -> None:
    found = latest(of([upsert(1, 1, "a", 1), delete(2, 1), partial(3, 1, n=3)]), ["id"])
    assert {1: {"name": None, "n": 3}} == rows(found)
    assert found.gaps["name"].required.all()


def test_column_that_some_changes_do_not_have_yet() -> None:
    old = [Change(0, 1, {"id": 1, "name": "a"}), Change(0, 2, {"id": 2, "name": "b"})]
    found = latest(of(old, [upsert(3, 2, "c", 7)]), ["id"])
    assert {1: {"name": "a", "n": None}, 2: {"name": "c", "n": 7}} == rows(found)
    assert [True, False] == found.gaps["n"].rows.tolist()
    assert not found.gaps["n"].required.any()


def test_soft_delete_keeps_the_values() -> None:
    changes = of([upsert(1, 1, "a", 1), upsert(2, 2, "b", 2)], [delete(3, 1)])
    found = latest(changes, ["id"], keep_deleted=True).rows.to_pylist()
    assert [(2, 0, "b"), (1, 1, "a")] == [(row["id"], row["_op"], row["name"]) for row in found]


def test_truncate_removes_what_is_before_it() -> None:
    changes = of([upsert(1, 1, "a"), truncate(5), upsert(6, 2, "b")], [upsert(4, 3, "late")])
    found = latest(changes, ["id"])
    assert {2: {"name": "b", "n": None}} == rows(found)
    assert found.truncated == "0badcafe00000000000000000005"


def test_changes_of_another_source_are_newer_when_they_arrive_later() -> None:
    other = "ffffffff"
    found = latest(of([upsert(9, 1, "old"), upsert(2, 1, "new", kind=other)]), ["id"])
    assert {1: {"name": "new", "n": None}} == rows(found)
    assert found.newer is not None
    assert found.newer.all()


def test_snapshot_row_after_a_change_is_no_news() -> None:
    found = latest(of([upsert(9, 1, "change"), upsert(2, 1, "read", kind=SNAPSHOT)]), ["id"])
    assert {1: {"name": "change", "n": None}} == rows(found)
    found = latest(of([upsert(9, 1, "read", kind=SNAPSHOT), upsert(2, 1, "change")]), ["id"])
    assert {1: {"name": "change", "n": None}} == rows(found)
    assert found.newer is None or not found.newer.any()


def test_no_changes() -> None:
    assert latest(of([truncate(1)]), ["id"]).rows.num_rows == 0


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    """Changes of a few keys, at positions that are all different, in any order."""
    numbers = draw(st.permutations(range(draw(st.integers(1, 12)))))
    changes: list[Change] = []
    for at in numbers:
        key = draw(st.integers(1, 3))
        kind = draw(st.sampled_from(["upsert"] * 4 + ["delete"] * 2 + ["truncate"]))
        if kind == "upsert":
            changes.append(upsert(at, key, draw(st.sampled_from("abc")), at))
        else:
            changes.append(delete(at, key) if kind == "delete" else truncate(at))
    return changes


@given(histories(), st.integers(0, 12))
def test_any_history_gives_the_rows_of_the_model(changes: list[Change], cut: int) -> None:
    parts = [part for part in (changes[:cut], changes[cut:]) if part]
    found = latest(of(*parts), ["id"])
    expected = Model().apply(changes)
    landed = {key: row for key, row in rows(found).items() if row is not None}
    assert {row.pop("id"): row for row in expected.table()} == landed


@pytest.mark.parametrize("size", [0, 1])
def test_codes_of_few_rows(size: int) -> None:
    table = of([upsert(1, 1)]).rows.slice(0, size)
    assert latest(CombinedChanges(table), ["id"]).rows.num_rows == size
