"""`headgate init` beside a broker: it lists topics, looks at one, and writes a job that runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run
from kafka_broker import Broker
from messages import canal
from pyspark.sql import SparkSession
from terminal import Terminal


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    topic = broker.create_topic("init-orders", partitions=2)
    broker.produce(topic, [(None, canal(id=n), n % 2, None) for n in range(1, 7)])
    return topic


@pytest.fixture
def here(topic: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory, for commands that use the session that tests share."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_in_a_terminal_it_asks_for_a_topic_and_its_file_runs(broker: Broker, here: Path) -> None:
    shown = Terminal("init", "--from", f"kafka://{broker.bootstrap}", cwd=here, columns=160)
    shown.until("Topics: .*init-orders")
    shown.until(r"Topic \[")
    shown.type("init-orders")
    shown.until(r"  6 messages: canal-json:canal \(6 events\)")
    shown.until("Write to .*: ")
    shown.type("file:out?as=lines")
    shown.until("Format to write")
    shown.type("maxwell")
    shown.until(r"Job file \[job.yaml\]: ")
    shown.type("")
    assert 0 == shown.end(), shown.raw

    checked = run("check", "job.yaml")
    assert b"writes 6 messages" in checked.stdout, checked.stderr.decode()
    ran = run("run", "job.yaml", "--once")
    assert 0 == ran.returncode, ran.stderr.decode()
    assert 6 == sum(len(file.read_text().splitlines()) for file in here.glob("out/*/*/*.txt"))


def test_without_a_terminal_the_topics_are_in_the_error(broker: Broker, here: Path) -> None:
    done = run("init", "--from", f"kafka://{broker.bootstrap}", "--to", "delta:lake")

    assert 2 == done.returncode
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("headgate: --from names no topic; there are: ")
    assert "init-orders" in last
    assert not (here / "job.yaml").exists()


def test_a_named_topic_is_looked_at(broker: Broker, here: Path) -> None:
    source = f"kafka://{broker.bootstrap}/init-orders"
    done = run("init", "--from", source, "--to", "delta:lake")

    assert 0 == done.returncode, done.stderr.decode()
    assert "  tables: shop.orders (6 events)" in done.stderr.decode().splitlines()
    linted = run("lint", "job.yaml")
    assert (0, b"") == (linted.returncode, linted.stderr)
