"""The same messages give the same output, wherever they are cut into batches."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from in_process import Out, Sent, job_of, run_job
from producers import TSO, debezium, maxwells, postgres, smt, ticdc, wrapped

from headgate.arrow.headers import ID_HEADER
from headgate.codec.encoder import Encoder
from headgate.config.job import Job
from headgate.core.event import Event, Record
from headgate.pipeline.balance import Unbalanced
from headgate.pipeline.change import DROP, KEEP
from headgate.pipeline.message_targets import MessageTargets, encoded
from headgate.pipeline.partition_worker import PartitionPass
from headgate.pipeline.plan import PartitionState, PlannedDdl
from headgate.pipeline.state import State

TO = "kafka://127.0.0.1:9/out?partition-num=3&protocol="
NO_TOPIC = "kafka://127.0.0.1:9?partition-num=3&protocol="
Step = tuple[str, int]
"""What happens, and to which row."""


PRODUCERS: dict[str, tuple[str, Callable[[str, int, int], Sent]]] = {
    "debezium": ("debezium", debezium),
    "debezium with schemas": ("debezium", wrapped),
    "debezium without places": ("debezium", postgres),
    "debezium-smt": ("debezium-smt", smt),
    "ticdc": ("canal-json", ticdc),
    "maxwell": ("maxwell", maxwells),
}
ALSO = {"debezium": ("ddl", "heartbeat"), "ticdc": ("ddl", "heartbeat"), "maxwell": ("ddl",)}
WITHOUT_DELETES = [{"table": "shop.t", "ops": ["insert", "update", "snapshot"]}]
ROUTE = [{"table": "shop.(.*)", "topic": "cdc.$1"}]
JOBS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "plain": ((f"{TO}debezium&schemas-enable=false", f"{TO}maxwell"), {}),
    "strict": ((f"{TO}debezium&strict=true",), {}),
    "prefix": ((f"{TO}debezium&topic-prefix=p",), {}),
    "deletes left out": ((f"{TO}debezium",), {"filter": WITHOUT_DELETES}),
    "a condition": ((f"{TO}debezium",), {"filter": [{"table": "shop.*", "where": "id > 1"}]}),
    "routed": ((f"{NO_TOPIC}debezium&schemas-enable=false",), {"route": ROUTE}),
    "flat": ((f"{TO}debezium-smt&delete-tombstone-handling-mode=rewrite-with-tombstone",), {}),
}


def drops_odd(message: Sent) -> str:
    """A condition that does not hold of rows 1 and 3."""
    text = (message.value or b"").replace(b'"', b"").replace(b" ", b"")
    return DROP if b"id:1," in text or b"id:3," in text else KEEP


def stream(producer: str, steps: list[Step]) -> list[Sent]:
    """The messages of what happens; `again` sends the last ones once more."""
    write = PRODUCERS[producer][1]
    found: list[Sent] = []
    for at, (what, row) in enumerate(steps, 1):
        if what == "again":
            found += found[-row - 1 :]
        elif what == "damage":
            found.append(Sent(b"{", b"x"))
        else:
            found.append(write(what, row, at))
            if what == "delete" and "debezium" in producer:
                found.append(write("tombstone", row, at))
    return found


@cache
def job_named(name: str, producer: str) -> tuple[Job, Path]:
    root = Path(tempfile.mkdtemp())
    sinks, told = JOBS[name]
    return job_of(root, PRODUCERS[producer][0], *sinks, **told), root


def output(name: str, producer: str, batches: list[list[Sent]]) -> Out:
    job, root = job_named(name, producer)
    return run_job(job, root, batches, drops_odd if name == "a condition" else None)


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, str, list[Step], list[int]]:
    """A job, a producer, what happens, and where its messages are cut."""
    producer = draw(st.sampled_from(list(PRODUCERS)))
    what = ["insert", "update", "delete", "delete", "again", "damage", *ALSO.get(producer, ())]
    steps = draw(st.lists(st.tuples(st.sampled_from(what), st.integers(1, 3)), max_size=12))
    cuts = draw(st.lists(st.integers(0, 30), max_size=6))
    return draw(st.sampled_from(list(JOBS))), producer, steps, cuts


@given(histories())
@example(("deletes left out", "debezium", [("delete", 1)], [1]))
@example(("a condition", "debezium", [("delete", 1)], [1]))
@example(("plain", "debezium-smt", [("delete", 1)], [1]))
@example(("plain", "debezium", [("delete", 1), ("again", 1)], [1, 2, 3]))
@example(("strict", "ticdc", [("insert", 1), ("heartbeat", 1), ("again", 1)], [1]))
@example(("strict", "ticdc", [("insert", 1), ("insert", 1), ("again", 1)], [1]))
@example(("plain", "maxwell", [("ddl", 1), ("ddl", 1), ("again", 1)], [2]))
@settings(max_examples=examples(150), deadline=None)
def test_the_same_messages_cut_anywhere_give_the_same(
    case: tuple[str, str, list[Step], list[int]],
) -> None:
    name, producer, steps, places = case
    messages = stream(producer, steps)
    cuts = sorted({0, len(messages), *(n for n in places if n < len(messages))})
    parts = [messages[start:end] for start, end in pairwise(cuts)]
    whole, cut = output(name, producer, [messages]), output(name, producer, parts)
    assert whole.written == cut.written
    if producer == "ticdc":
        # A change that was refused is no repeat when it comes again. Whether it is late then, and
        # behind a later one and so put in its place, is only seen in the batch that it is in.
        for out in (whole, cut):
            out.letters.sort()
            out.state.totals.late = 0
    assert whole.letters == cut.letters
    assert whole.state.totals == cut.state.totals


def test_a_copy_on_each_partition_is_a_message_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(tmp_path, "canal-json", f"{TO}open-protocol")
    sent: list[Record] = []
    targets = MessageTargets.__new__(MessageTargets)
    targets.job, targets.topics = job, [None]
    monkeypatch.setattr(targets, "encoder", lambda sink: Encoder("open-protocol", partition_num=3))
    monkeypatch.setattr(targets, "add_records", lambda parts, records: sent.extend(records))
    state = State(partitions=[PartitionState(("in", 0), watermark=TSO)])
    watermark = state.watermark(())
    assert TSO == watermark

    targets.new_batch().add_watermark(watermark, state)
    statement = Event("ddl", "alter", "shop", "t", ddl="ALTER TABLE t ADD c INT", commit_ts=TSO)
    sent += encoded(targets.encoder(0), PlannedDdl(statement, statement, "ddl", True))

    assert 6 == len(sent)
    assert 6 == len({dict(record.headers or ())[ID_HEADER] for record in sent})


def test_the_same_statement_again_is_a_repeat(tmp_path: Path) -> None:
    job = job_of(tmp_path, "canal-json", f"{TO}maxwell", ddl={"exclude": ["drop"]})
    alter = ticdc("ddl", 1, 1)
    drop = Sent((alter.value or b"").replace(b"ALTER TABLE t ADD COLUMN c1 INT", b"DROP TABLE t"))
    dropped = Sent((drop.value or b"").replace(b'"ALTER"', b'"ERASE"'))

    totals = run_job(job, tmp_path, [[alter, alter, alter, dropped, dropped]]).state.totals

    assert {"shop.t": {"ddl": 1}} == totals.rows
    assert (5, 3, 1) == (totals.events, totals.repeated, totals.filtered)


def test_a_batch_that_does_not_balance_stops_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(tmp_path, "canal-json", f"{TO}maxwell")
    emit = PartitionPass.emit
    monkeypatch.setattr(PartitionPass, "emit", lambda self, changes: emit(self, changes[1:]))

    with pytest.raises(Unbalanced, match="of 2 events in 2 messages 1 are accounted for"):
        run_job(job, tmp_path, [[ticdc("insert", 1, 1), ticdc("insert", 2, 2)]])
