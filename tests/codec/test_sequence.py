"""The place of a change in the source's order, as text that compares as the source's log does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.codec.sequence import (
    KIND,
    arrival_sequence,
    arrival_text,
    order,
    sequence,
    supersedes,
)
from headgate.core.event import Event

NUMBERS = st.integers(0, 10**19 - 1)


def committed(ts: int) -> Event:
    return Event("row", "update", "d", "t", commit_ts=ts)


def logged(file: int, pos: int, row: int, op: str = "update", server: str = "7") -> Event:
    position = {"server_id": server, "file": f"bin.{file:06d}", "pos": str(pos), "row": str(row)}
    return Event("row", op, "d", "t", position=position, format="debezium")


def text(event: Event) -> str:
    found = sequence(event)
    assert found is not None
    return found


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_commits_compare_as_numbers(one: int, other: int) -> None:
    assert (one < other) == (text(committed(one)) < text(committed(other)))
    assert (one <= other) == supersedes(text(committed(other)), text(committed(one)))


PLACES = st.tuples(st.integers(0, 10**7), NUMBERS, NUMBERS)


@given(PLACES, PLACES)
def test_places_in_a_binlog_compare_as_numbers(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    first, second = logged(*one), logged(*other)

    assert (one < other) == (text(first) < text(second))
    assert (order(first) < order(second)) == (one < other)  # type: ignore[operator]


def test_a_ninth_file_comes_before_a_tenth() -> None:
    assert text(logged(9, 900, 0)) < text(logged(10, 4, 0))
    assert text(logged(999_999, 4, 0)) < text(logged(1_000_000, 4, 0))


@pytest.mark.parametrize(
    "position",
    [
        None,
        {},
        {"gtid": "a:1"},
        {"file": "bin.000001"},
        {"file": "bin", "pos": "4"},
        {"file": "bin.000001", "pos": "four"},
        {"file": "bin.000001", "pos": "٤"},
        {"file": "bin.000001", "pos": "1" * 21},
        {"file": "bin.000001", "pos": "4", "row": "-1"},
        {"lsn": "24023128"},
    ],
)
def test_what_has_no_place_in_a_log_has_no_sequence(position: dict[str, str] | None) -> None:
    event = Event("row", "update", "d", "t", position=position)

    assert (None, None) == (sequence(event), order(event))


def test_another_server_or_another_log_is_another_order() -> None:
    kinds = {
        text(event)[:KIND]
        for event in (
            committed(1),
            logged(1, 4, 0),
            logged(1, 4, 0, server="8"),
            Event("row", "update", position={"file": "log.000001", "pos": "4"}),
        )
    }
    assert 4 == len(kinds)
    assert supersedes(text(logged(1, 4, 0, server="8")), text(logged(900, 4, 0)))


def test_a_change_replaces_what_is_older_and_itself() -> None:
    early, late = text(logged(1, 4, 0)), text(logged(1, 900, 0))

    assert supersedes(late, early)
    assert not supersedes(early, late)
    assert supersedes(late, late)


def test_a_snapshot_row_with_a_place_counts_by_it() -> None:
    """Debezium's snapshot rows have a place in the log, and no server."""
    snapshot = text(logged(5, 4, 0, "snapshot", server="0"))

    assert not supersedes(snapshot, text(logged(5, 900, 0)))  # changed after the snapshot
    assert supersedes(
        snapshot, text(logged(3, 900, 0))
    )  # a new snapshot, as after a gap in the log
    assert supersedes(text(logged(5, 900, 0)), snapshot)
    assert supersedes(text(logged(1, 4, 0, server="8")), snapshot)


def test_a_snapshot_row_of_the_log_s_own_server_is_a_change_like_others() -> None:
    snapshot = text(logged(5, 4, 0, "snapshot"))

    assert text(logged(5, 4, 0)) == snapshot


def test_a_snapshot_row_without_a_place_replaces_no_change_that_has_one() -> None:
    snapshot = arrival_sequence("in-0", arrival_text(1_000, 0), True)

    assert not supersedes(snapshot, text(committed(1)))
    assert not supersedes(snapshot, text(logged(1, 4, 0)))
    assert supersedes(text(committed(1)), snapshot)


def test_where_no_change_has_a_place_snapshot_rows_count_by_their_arrival() -> None:
    """Maxwell's bootstrap rows stand in the partition where they belong."""
    change = arrival_sequence("in-0", arrival_text(1_000, 0), False)

    assert supersedes(arrival_sequence("in-0", arrival_text(1_001, 0), True), change)
    assert not supersedes(arrival_sequence("in-0", arrival_text(999, 0), True), change)


@given(st.tuples(NUMBERS, st.integers(0, 99_999)), st.tuples(NUMBERS, st.integers(0, 99_999)))
def test_arrivals_compare_as_numbers(one: tuple[int, int], other: tuple[int, int]) -> None:
    texts: list[Any] = [
        arrival_sequence("in-0", arrival_text(*each), False) for each in (one, other)
    ]

    assert (one < other) == (texts[0] < texts[1])


def test_partitions_are_orders_of_their_own() -> None:
    arrival = arrival_text(7, 0)

    assert arrival_sequence("in-0", arrival, False) != arrival_sequence("in-1", arrival, False)


def test_rows_of_one_statement_are_in_the_order_of_their_transaction() -> None:
    """Maxwell writes them with one position; the last of a transaction has no number."""
    place = {"server_id": "1", "file": "bin.000001", "pos": "4"}
    rows = [
        Event("row", "insert", position={**place, "xoffset": "9"}),
        Event("row", "insert", position={**place, "xoffset": "10"}, extra={"commit": "false"}),
        Event("row", "insert", position=place, extra={"commit": "true"}),
        Event("row", "insert", position={**place, "pos": "5", "xoffset": "0"}),
    ]

    texts = list(map(text, rows))

    assert texts == sorted(set(texts))
