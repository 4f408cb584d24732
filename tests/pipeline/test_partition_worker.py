"""The collaborators of a pass, each alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.core.event import Event
from headgate.pipeline.change import DROP, KEEP, Change, MessageBatch
from headgate.pipeline.counts import Counts
from headgate.pipeline.dedup import settle
from headgate.pipeline.intake import Intake
from headgate.pipeline.ordering import by_commit
from headgate.pipeline.plan import PartitionState
from headgate.pipeline.rejections import DeadLetters, Rejection
from headgate.spark.storage import Storage


def messages(*values: bytes) -> MessageBatch:
    rows = [
        {"value": value, "topic": "in", "partition": 0, "offset": offset}
        for offset, value in enumerate(values)
    ]
    return MessageBatch(("in", 0), pa.RecordBatch.from_pylist(rows, MESSAGE_SCHEMA))


def change(id: bytes | None, batch: MessageBatch, row: int = 0, repeated: bool = False) -> Change:
    return Change(Event("row", "insert"), batch, row, id, "name", repeated=repeated)


def row(commit: int, key: str = "1") -> Event:
    event = Event("row", "insert", "d", "t", ("id",), after={"id": key}, commit_ts=commit)
    event.format, event.dialect = "canal-json", "ticdc"
    return event


@pytest.fixture
def intake(tmp_path: Path) -> Intake:
    storage = Storage(str(tmp_path))
    return Intake(PartitionState(("in", 0), watermark=3), Counts(), storage, False, lambda _: 0)


def test_intake_gives_what_is_new_and_counts_the_rest(intake: Intake) -> None:
    events = [row(5), row(2, "2"), row(5), Event("watermark", commit_ts=9), row(8)]

    changes = intake.new_changes(messages(*[b""] * 5), events, [1] * 5)

    assert [events[0], events[1], events[2], events[4]] == [each.event for each in changes]
    assert [False, False, True, False] == [each.repeated for each in changes]
    assert Counts(events=5, watermarks=1, late=2) == intake.counts
    assert intake.order.disordered
    assert 9 == intake.state_after(60.0).watermark


def test_intake_recognises_what_an_earlier_batch_applied(intake: Intake, tmp_path: Path) -> None:
    intake.new_changes(messages(b""), [row(5)], [1])
    state = intake.state_after(60.0)
    later = Intake(state, Counts(), Storage(str(tmp_path)), False, lambda _: None)

    (only,) = later.new_changes(messages(b"", b""), [row(5), row(6)], [1, 1])

    assert 6 == only.event.commit_ts
    assert 1 == later.counts.repeated


def test_intake_drops_what_a_row_condition_drops(intake: Intake) -> None:
    batch = messages(b"", b"", b"")
    verdicts = pa.array([[KEEP], [DROP], ["code|reason"]], pa.list_(pa.string()))
    batch.rows = batch.rows.append_column("verdicts", verdicts)

    kept, rejected = intake.new_changes(batch, [row(5), row(6), row(7)], [1, 1, 1])

    assert (None, ("code", "reason")) == (kept.event.error, rejected.event.error)
    assert 1 == intake.counts.filtered


def test_changes_of_one_message_are_numbered(intake: Intake) -> None:
    events = [Event("row", "insert", "d", "t", after={"id": str(n)}) for n in range(3)]

    changes = intake.new_changes(messages(b"", b""), events, [2, 1])

    assert ["in-0-0", "in-0-0.1", "in-0-1"] == [each.name for each in changes]


def test_a_repeat_of_what_is_rejected_is_no_repeat() -> None:
    batch = messages(b"a", b"b", b"c")
    first, again = change(b"1", batch, 0), change(b"1", batch, 1, repeated=True)
    applied = {b"1"}
    rejections = {first.message: Rejection("code", "reason", "t")}

    assert ([first, again], [again]) == settle([first, again], rejections, applied)
    assert {b"1"} == applied

    both: dict[Any, Any] = {each.message: Rejection("code", "", "t") for each in (first, again)}
    assert ([first, again], []) == settle([first, again], both, applied)
    assert set() == applied


def test_a_rejected_repeat_of_what_is_written_is_a_repeat() -> None:
    batch = messages(b"a", b"b")
    first, again = change(b"1", batch, 0), change(b"1", batch, 1, repeated=True)
    rejections = {again.message: Rejection("code", "reason", "t")}

    assert ([first], [first]) == settle([first, again], rejections, {b"1"})
    assert {} == rejections


def test_dead_letters_hold_their_messages_unless_they_are_redacted() -> None:
    rejections = {(messages(b"a", b"b"), 1): Rejection("code", "reason", "d.t")}
    for redact, value in ((False, b"b"), (True, None)):
        dead_letters = DeadLetters(redact, "messages")
        (rows,) = dead_letters.rows(rejections)

        (found,) = rows.column("dead_letter").to_pylist()
        assert (value, 1, "code", "reason") == tuple(
            found[name] for name in ("value", "offset", "code", "message")
        )
        assert {("d.t", "code"): 1} == dead_letters.counts
        assert ("code", "reason") == dead_letters.first


def test_changes_are_sorted_by_their_commits() -> None:
    batch = messages(b"")
    events = [row(7), Event("heartbeat"), row(5), row(6)]
    changes = [Change(event, batch, 0, None, "name") for event in events]

    assert [5, 6, 7, None] == [each.event.commit_ts for each in by_commit(changes)]
