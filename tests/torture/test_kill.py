"""A job that is killed again and again, on a topic with repeats and disorder, loses nothing."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

from kafka_broker import Broker, Message
from ticdc_messages import TSO, ticdc

from headgate.arrow.headers import ID_HEADER
from headgate.codec.decoder import decoder
from torture.jobs import Job, family, send

KILLS = int(os.environ.get("HEADGATE_KILLS", "20"))
SEED = int(os.environ.get("HEADGATE_SEED", "4"))
ROWS, PARTITIONS, CHANGES_PER_KILL = 30, 3, 120
Change = tuple[int, int]
"""A row and the commit of its change."""


def workload(chance: random.Random, count: int) -> list[Change]:
    """Changes of some rows in commit order."""
    return [(chance.randrange(ROWS), commit) for commit in range(1, count + 1)]


def as_sent(chance: random.Random, changes: list[Change]) -> list[Change]:
    """The same changes with repeats, and out of order except for each row's own."""
    sent: list[Change] = []
    for start in range(0, len(changes), 8):
        window = changes[start : start + 8]
        rows = [row for row, _ in window]
        chance.shuffle(rows)
        own = {row: iter([c for c in window if c[0] == row]) for row in rows}
        for row in rows:
            sent.append(next(own[row]))
            if chance.random() < 0.3:
                sent.append(chance.choice(sent[-40:]))
        if chance.random() < 0.1:
            sent += sent[-25:]  # a producer that was restarted
    return sent


def messages(changes: list[Change]) -> list[Message]:
    """The changes as TiCDC sends them; a repeat is the same message."""
    first = {row: min(commits) for row, commits in by_row(changes).items()}
    return [
        (None, ticdc(row, commit, "INSERT" if commit == first[row] else "UPDATE"),
         row % PARTITIONS, None)
        for row, commit in changes
    ]  # fmt: skip


def by_row(changes: list[Change]) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row, commit in changes:
        rows.setdefault(row, []).append(commit)
    return rows


def changes_in(format: str, records: list[tuple[Any, Any]]) -> list[Change]:
    decode = decoder(format)
    events = [e for key, value in records for e in decode(key, value, None)]
    return [(int((e.after or {})["id"]), e.commit_ts - TSO) for e in events]


def test_killed_at_random_moments_nothing_is_lost_doubled_or_disordered(
    broker: Broker, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    broker.create_topic("killed", PARTITIONS)
    changes = workload(chance, CHANGES_PER_KILL * KILLS)
    sent = messages(as_sent(chance, changes))
    share = len(sent) // KILLS
    kafka = {
        "uri": f"kafka://{broker.bootstrap}/killed-out?protocol=open-protocol",
        "partition-num": 2, "partition": "index-value", "max-batch-size": 1,
    }  # fmt: skip
    job = Job(broker, tmp_path, "killed", kafka, max_messages=60)
    for kill in range(KILLS):
        broker.produce("killed", sent[kill * share : (kill + 1) * share])
        process = job.start()
        job.wait_for_progress(process)
        time.sleep(chance.uniform(0, 1.5))
        send(family(process.pid), signal.SIGKILL)
        process.wait()
    broker.produce("killed", sent[KILLS * share :])

    assert 0 == job.once(), job.told()

    files = changes_in("canal-json:ticdc", [(None, m["value"]) for m in job.written()])
    assert sorted(changes) == sorted(files)
    assert by_row(changes) == by_row(files)
    seen: dict[bytes, tuple[Any, Any]] = {}
    for record in broker.consume("killed-out"):
        seen.setdefault(dict(record[4] or ())[ID_HEADER], (record[2], record[3]))
    topic = changes_in("open-protocol", list(seen.values()))
    assert sorted(changes) == sorted(topic)
    assert by_row(changes) == by_row(topic)
    assert "Traceback" not in job.log.read_text(), job.told()
