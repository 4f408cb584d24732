"""Faults of checkpoints, topics and processes: 0 lost, 0 doubled, or refused with a reason."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient
from kafka_broker import Broker
from ticdc_messages import ticdc

from headgate.codec.decoder import decoder
from headgate.pipeline.lease import EXPIRE_SECONDS
from torture.jobs import Job, family, send, wait_for


def produce(broker: Broker, topic: str, rows: range) -> None:
    broker.produce(topic, [(None, ticdc(n, n + 1), n % 2, None) for n in rows])


def rows(job: Job) -> list[int]:
    decode = decoder("canal-json:ticdc")
    events = [e for m in job.written() for e in decode(m.get("key"), m["value"], None)]
    return sorted(int((e.after or {})["id"]) for e in events)


def test_a_clock_that_jumps_a_day_ahead_and_back(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("clock", 2)
    job = Job(broker, tmp_path, "clock", max_messages=40)

    def change(n: int) -> bytes:
        message = json.loads(ticdc(n, n + 1))
        message["es"] += 86_400_000 * (n % 7 == 3)
        return json.dumps(message).encode()

    messages = [(None, change(n), n % 2, None) for n in range(260)]
    for sent in (messages[:130], messages):  # the second time half of them are repeats
        broker.produce("clock", sent)
        assert 0 == job.once(), job.told()

    assert [*range(260)] == rows(job)


def test_two_instances_at_once(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("two-instances", 2)
    produce(broker, "two-instances", range(500))
    job = Job(broker, tmp_path, "two-instances", max_messages=50)
    both = [job.start(), job.start()]
    wait_for(lambda: any(process.poll() is not None for process in both))
    (running,) = [process for process in both if process.poll() is None]
    assert {1} == {process.poll() for process in both} - {None}, job.told()

    assert 1 == job.once(), "a third one beside it"
    assert f"process {running.pid} on" in job.told()
    wait_for(lambda: job.progress() >= 0)
    running.terminate()
    assert 0 == running.wait(60)
    assert 0 == job.once(), job.told()

    assert [*range(500)] == rows(job)


def test_a_stopped_instance_that_wakes_after_another_took_over(
    broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("stopped", 2)
    produce(broker, "stopped", range(300))
    job = Job(broker, tmp_path, "stopped", max_messages=20)
    old = job.start()
    job.wait_for_progress(old)
    everyone = family(old.pid)
    send(everyone, signal.SIGSTOP)
    produce(broker, "stopped", range(300, 400))

    assert 1 == job.once(), "it may only be slow"
    time.sleep(EXPIRE_SECONDS)
    assert 0 == job.once(), job.told()
    found = rows(job)
    send(everyone, signal.SIGCONT)

    assert 1 == old.wait(120), job.told()
    assert "was taken over by another instance" in job.told()
    assert [*range(400)] == found == rows(job)
    produce(broker, "stopped", range(400, 410))
    assert 0 == job.once(), job.told()
    assert [*range(410)] == rows(job)


def test_a_checkpoint_from_a_backup(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("backup", 2)
    job = Job(broker, tmp_path, "backup")
    produce(broker, "backup", range(10))
    assert 0 == job.once(), job.told()
    shutil.copytree(tmp_path / "state", tmp_path / "old")
    produce(broker, "backup", range(10, 20))
    assert 0 == job.once(), job.told()
    (tmp_path / "state").rename(tmp_path / "right")
    (tmp_path / "old").rename(tmp_path / "state")
    produce(broker, "backup", range(20, 30))

    assert 2 == job.once()

    assert "older than the target" in job.told()
    assert [*range(20)] == rows(job)
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "right").rename(tmp_path / "state")
    assert 0 == job.once(), job.told()
    assert [*range(30)] == rows(job)


def test_a_topic_made_anew_under_a_running_job(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("anew", 2)
    produce(broker, "anew", range(10))
    job = Job(broker, tmp_path, "anew", trigger="20s")
    process = job.start()
    job.wait_for_progress(process)
    broker.delete_topic("anew")
    wait_for(lambda: "anew" not in AdminClient(broker.client).list_topics().topics)
    broker.create_topic("anew", 2)
    produce(broker, "anew", range(100, 200))

    assert process.wait(180) != 0
    assert [*range(10)] == rows(job)
    assert 2 == job.once()
    assert "was deleted and made again" in job.told()


def test_state_of_another_version(broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("version", 2)
    job = Job(broker, tmp_path, "version")
    produce(broker, "version", range(10))
    assert 0 == job.once(), job.told()
    produce(broker, "version", range(10, 20))
    file = tmp_path / "state" / "headgate" / "batches" / "0.json"
    whole = file.read_text()
    file.write_text(re.sub(r'"version": \d+', '"version": 99', whole, count=1))

    assert 2 == job.once()

    assert "0.json was written by another version of Headgate" in job.told()
    assert [*range(10)] == rows(job)
    file.write_text(whole)
    assert 0 == job.once(), job.told()
    assert [*range(20)] == rows(job)
