"""Jobs that write and read RocketMQ are killed again and again, and its broker twice."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_broker import Broker
from rocketmq_server import Sent, Server

from headgate.arrow.headers import ID_HEADER
from torture.jobs import Job, family, send
from torture.test_kill import (
    CHANGES_PER_KILL,
    KILLS,
    SEED,
    as_sent,
    by_row,
    changes_in,
    messages,
    workload,
)

QUEUES = 3


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that a test may kill."""
    with Server() as found:
        yield found


def killed(job: Job, chance: random.Random, server: Server, with_broker: bool) -> None:
    """Start a job, and kill it at a random moment; the broker may be killed with it."""
    process = job.start()
    job.wait_for_progress(process)
    time.sleep(chance.uniform(0, 1.5))
    if with_broker:
        server.kill_broker()
        time.sleep(chance.uniform(0, 1))
    send(family(process.pid), signal.SIGKILL)
    process.wait()
    if with_broker:
        server.start_broker()


def broker_kills() -> set[int]:
    """After which kills of the job the broker is killed too."""
    return {KILLS // 3, 2 * KILLS // 3}


def test_a_job_to_rocketmq_loses_nothing_and_copies_are_known_by_their_ids(
    broker: Broker, server: Server, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    broker.create_topic("to-rocketmq", QUEUES)
    changes = workload(chance, CHANGES_PER_KILL * KILLS)
    sent = messages(as_sent(chance, changes))
    share = len(sent) // KILLS
    sink = {
        "uri": f"{server.uri('killed-out')}protocol=canal-json:ticdc&enable-tidb-extension=true",
        "partition-num": QUEUES, "partition": "index-value",
    }  # fmt: skip
    job = Job(broker, tmp_path, "to-rocketmq", sink, max_messages=60)
    for kill in range(KILLS):
        broker.produce("to-rocketmq", sent[kill * share : (kill + 1) * share])
        killed(job, chance, server, kill in broker_kills())
    broker.produce("to-rocketmq", sent[KILLS * share :])

    assert 0 == job.once(), job.told()

    seen: dict[Any, tuple[Any, Any]] = {}
    for received in server.consume("killed-out"):
        seen.setdefault(received.properties[ID_HEADER], (None, received.body))
    found = changes_in("canal-json:ticdc", list(seen.values()))
    assert sorted(changes) == sorted(found)
    assert by_row(changes) == by_row(found)


def test_a_job_from_rocketmq_loses_and_doubles_nothing(server: Server, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    server.create_topic("from-rocketmq", QUEUES)
    changes = workload(chance, CHANGES_PER_KILL * KILLS)
    sent = [
        Sent(value, partition)
        for _, value, partition, _ in messages(as_sent(chance, changes))
        if partition is not None and value is not None
    ]
    share = len(sent) // KILLS
    job = Job(f"rocketmq://{server.name_server}", tmp_path, "from-rocketmq", max_messages=60)
    for kill in range(KILLS):
        server.produce("from-rocketmq", sent[kill * share : (kill + 1) * share])
        killed(job, chance, server, kill in broker_kills())
    server.produce("from-rocketmq", sent[KILLS * share :])

    assert 0 == job.once(), job.told()

    files = changes_in("canal-json:ticdc", [(None, m["value"]) for m in job.written()])
    assert sorted(changes) == sorted(files)
    assert by_row(changes) == by_row(files)
