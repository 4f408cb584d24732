"""The row that the changes of a key leave."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from headgate.verification.fold import ADD, PUT, REMOVE, REPLACE, TAKE, Truncation, fold

A, B, SNAPSHOT = "aaaaaaaa", "bbbbbbbb", ""


def rows(*changes: tuple[Any, ...], truncations: list[Truncation] | None = None) -> list[Any]:
    """What is left of changes (op, order, place, row), which arrive as they stand here."""
    logged = [
        (0, "k", op, order, f"{place:020d}", arrival, arrival, msgspec.json.encode(row))
        for arrival, (op, order, place, row) in enumerate(changes)
    ]
    logged.sort(key=lambda each: (each[4], each[6]))
    return [json.loads(row) for row in fold(logged, truncations or [])]


def test_the_last_change_in_the_sources_order_counts_not_the_last_that_arrives() -> None:
    assert [{"v": "2"}] == rows((REPLACE, A, 9, {"v": "2"}), (PUT, A, 8, {"v": "1"}))
    assert [] == rows((REMOVE, A, 9, {}), (PUT, A, 8, {"v": "1"}))
    assert [{"v": "3"}] == rows((REMOVE, A, 9, {}), (REPLACE, A, 10, {"v": "3"}))


def test_columns_that_an_update_does_not_tell_are_those_of_the_row_before() -> None:
    found = rows((PUT, A, 2, {"b": "2"}), (REPLACE, A, 1, {"a": "1", "b": "1"}))

    assert [{"a": "1", "b": "2"}] == found
    assert [{"b": "3"}] == rows(
        (REPLACE, A, 1, {"a": "1"}), (REMOVE, A, 2, {}), (PUT, A, 3, {"b": "3"})
    )


def test_another_server_follows_the_one_whose_last_change_is_older() -> None:
    assert [{"v": "b"}] == rows((REPLACE, A, 9, {"v": "a"}), (REPLACE, B, 1, {"v": "b"}))
    assert [] == rows((REPLACE, B, 9, {"v": "b"}), (REMOVE, A, 1, {}))


def test_a_snapshots_row_counts_if_it_is_later_in_the_log_and_in_the_source() -> None:
    change, snapshot = (REPLACE, A, 5, {"v": "1"}), {"v": "0"}

    assert [{"v": "1"}] == rows(change, (REPLACE, SNAPSHOT, 4, snapshot))
    assert [{"v": "0"}] == rows(change, (REPLACE, SNAPSHOT, 6, snapshot))
    assert [{"v": "1"}] == rows((REPLACE, SNAPSHOT, 6, snapshot), change)
    assert [] == rows((REMOVE, A, 5, {}), (REPLACE, SNAPSHOT, 4, snapshot))
    assert [{"v": "0"}] == rows((REPLACE, SNAPSHOT, 4, snapshot))
    assert [{"v": "0", "w": "1"}] == rows((REPLACE, SNAPSHOT, 4, snapshot), (PUT, A, 5, {"w": "1"}))


def test_a_snapshots_row_without_a_place_does_not_replace_a_change_that_has_one() -> None:
    change = (0, "k", REPLACE, A, "00005", 5, 5, b'{"v":"1"}')
    snapshot = (0, "k", REPLACE, SNAPSHOT, "", 9, 9, b'{"v":"0"}')
    unplaced = (0, "k", REPLACE, B, "", 5, 5, b'{"v":"1"}')

    assert [b'{"v":"1"}'] == list(fold([snapshot, change], []))
    assert [b'{"v":"0"}'] == list(fold([unplaced, snapshot], []))


def test_what_comes_before_a_truncate_is_gone() -> None:
    truncation = [Truncation(A, f"{5:020d}", 99)]

    assert [] == rows((REPLACE, A, 4, {"v": "1"}), truncations=truncation)
    assert [{"v": "2"}] == rows(
        (REPLACE, A, 4, {"v": "1"}), (REPLACE, A, 6, {"v": "2"}), truncations=truncation
    )


def test_equal_rows_of_a_table_without_a_key_are_counted() -> None:
    row = {"v": "1"}

    assert [row, row] == rows(
        (ADD, A, 1, row), (ADD, A, 2, row), (TAKE, A, 3, row), (ADD, A, 4, row)
    )
    assert [] == rows((TAKE, A, 2, row), (ADD, A, 1, row))
