"""`consistency: watermark`: whatever arrives when, tables have states that the server had.

Histories of a server are written with watermarks on each partition, shuffled, cut into batches, and
their job is killed now and then. After every batch all tables together are what the server had at
the watermark that was published, and at the end they are its tables.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from disturbances import cut, delivered, disturbed
from effort import examples
from emission import schema_of, units_of
from histories import History, histories
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_process import job_of
from landing_checks import DIALECTS, Delivery, deliveries, wrong_tables
from landing_runs import Landed, land
from messages import canal, maxwell
from watermarks import commits_of, with_watermarks
from written_dialects import Dialect, limits_of

from headgate.core.errors import UsageError
from headgate.core.event import Message
from headgate.formats import traits_of

WITH_WATERMARKS = [
    name
    for name, dialect in DIALECTS.items()
    if dialect.is_netted and not dialect.variant and traits_of(*dialect.spec.split(":")).watermarks
]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_WATERMARKS)
def test_tables_are_always_a_state_of_the_server(name: str) -> None:
    limits = replace(limits_of(name), steps=20)

    @settings(
        max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck),
        database=None,
    )  # fmt: skip
    @given(histories(limits), deliveries())
    def run(history: History, delivery: Delivery) -> None:
        check(DIALECTS[name], history, delivery)

    run()


def check(dialect: Dialect, history: History, delivery: Delivery) -> None:
    """Land a history batch by batch, and look at the tables after each."""
    commits = commits_of(history, dialect)
    if not commits:
        return
    units = units_of(history, dialect, delivery.partitions, delivery.rule)
    if delivery.disturbance is not None:
        units = disturbed(units, dialect, delivery.disturbance)
    units = with_watermarks(units, list(commits), dialect, delivery.partitions, delivery.cuts)
    root = Path(tempfile.mkdtemp(prefix="consistent-"))
    watermarks: list[int] = []

    def look(found: Landed) -> None:
        watermark = published(root)
        watermarks.append(watermark)
        if watermark:
            at = history.server.after(commits[watermark])
            assert not wrong_tables(History(at, ""), found), watermark
        else:
            assert not found.tables

    try:
        found = land(
            root,
            dialect.spec,
            cut(delivered(units), delivery.cuts),
            dialect.source,
            {"drop_table": "drop", "drop_column": "drop", "consistency": "watermark"},
            schema_of(history),
            delivery.killed,
            delivery.partitions,
            look,
        )
        assert not found.dead_letters
        assert not found.parked
        assert sorted(watermarks) == watermarks
        assert max(commits) == watermarks[-1]
        assert not left(root)
    finally:
        shutil.rmtree(root)


Write = tuple[str, int, int | None]
"""A table, a row's id, and its value; None: the row is deleted."""
writes = st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.none() | st.integers(0, 9))


def maxwell_messages(transactions: list[list[Write]]) -> Iterator[tuple[int, Message]]:
    """Messages, each with the number of transactions that are whole then."""
    offset = 0
    for xid, transaction in enumerate(transactions):
        for row, (table, id, value) in enumerate(transaction):
            is_last = row + 1 == len(transaction)
            place = {"commit": True} if is_last else {"commit": False, "xoffset": row}
            message = maxwell(
                **{"table": table, "xid": xid, "ts": 1_700_000_000 + xid, **place},
                type="delete" if value is None else "update",
                data={"id": id, "n": value},
                primary_key_columns=["id"],
            )
            yield xid + is_last, Message(message, None, "in", 0, offset, None)
            offset += 1


@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(writes, min_size=1, max_size=4), min_size=1, max_size=6), st.integers(0))
def test_transactions_are_published_as_a_whole(
    tmp_path_factory: pytest.TempPathFactory, transactions: list[list[Write]], seed: int
) -> None:
    root = tmp_path_factory.mktemp("job")
    numbered = list(maxwell_messages(transactions))
    batches = cut([message for _, message in numbered], seed)
    ends = iter([numbered[batch[-1].offset or 0][0] if batch else 0 for batch in batches])

    def look(found: Landed) -> None:
        state: dict[tuple[str, int], str] = {}
        for table, id, value in chain(*transactions[: next(ends)]):
            state.pop((table, id), None)
            if value is not None:
                state[table, id] = str(value)
        assert state == {
            (table, int(row["id"])): row["n"]
            for (_, table), rows in found.tables.items()
            for row in rows
        }

    sink = {"consistency": "watermark"}
    land(root, "maxwell:maxwell", batches, None, sink, None, seed, 1, look)


def test_transactions_on_several_partitions_are_refused(tmp_path: Path) -> None:
    messages = [message for _, message in maxwell_messages([[("a", 1, 1)]])]
    with pytest.raises(UsageError, match="one topic with one partition"):
        land(tmp_path, "maxwell", [messages], sink={"consistency": "watermark"}, partitions=2)


def test_changes_without_commit_numbers_are_dead_letters(tmp_path: Path) -> None:
    plain = Message(canal(type="INSERT", data=[{"id": "1"}]), None, "in", 0, 0, None)
    found = land(tmp_path, "canal-json:ticdc", [[plain]], sink={"consistency": "watermark"})
    assert ["no-commit"] == [code for code, _ in found.dead_letters]
    assert {} == found.tables


def test_format_without_watermarks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="those of canal-json:canal do not"):
        job_of(tmp_path, "canal-json:canal", f"delta://{tmp_path}/lake?consistency=watermark")


def published(root: Path) -> int:
    """The watermark that the job has published; 0 where there is none."""
    files = list((root / "lake/_headgate/jobs").glob("*.json"))
    [state] = [json.loads(file.read_text()) for file in files] or [{}]
    return int((state.get("published") or {}).get("timestamp", 0))


def left(root: Path) -> Sequence[Path]:
    """What still waits."""
    notes = root / "lake/_headgate"
    return [*notes.glob("changes/unresolved/*/*"), *notes.glob("statements/*/*")]
