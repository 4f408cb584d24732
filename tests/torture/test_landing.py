"""Landing under faults: many generated histories, and jobs that are killed, doubled or restored."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from deltalake import DeltaTable
from disturbances import delivered, disturbed
from effort import examples
from emission import schema_of, units_of
from histories import History, histories, written
from history_author import ROW_STEPS
from history_ddl import DDL_STEPS
from hypothesis import HealthCheck, given, settings
from kafka_broker import Broker, Message
from landing_checks import DIALECTS, Delivery, check, deliveries, wrong_tables
from landing_runs import Landed, read_lake
from mysql_model import DATABASE
from splicing import splice_at_once
from written_dialects import limits_of

from headgate.fastpath.convert import has_templates
from headgate.sinks.delta.lake import STEPS
from torture.jobs import Job, family, send, wait_for

KILLS = int(os.environ.get("HEADGATE_KILLS", "20"))
SEED = int(os.environ.get("HEADGATE_SEED", "4"))
DIALECT = "canal-json:ticdc"
STEPS_PER_KILL, TABLES = 60, 6
WAIT = 900
"""Seconds; a batch with many statements has as many Spark jobs."""
WEIGHTS = ["insert"] * 4 + ["update"] * 3
"""Steps that keep tables from being empty most of the time."""


@pytest.mark.parametrize("name", DIALECTS)
def test_landed_tables_equal_the_server(name: str) -> None:
    check_histories(name, examples(100))


@pytest.mark.parametrize("name", [n for n, d in DIALECTS.items() if has_templates(d.spec, {})])
def test_spliced_tables_equal_the_server(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    splice_at_once(monkeypatch)

    check_histories(name, examples(30))


def check_histories(name: str, count: int) -> None:
    """Histories in a dialect, disturbed, cut into batches and interrupted, land as they are."""
    limits = replace(limits_of(name), steps=80)

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(limits), deliveries())
    def run(history: History, delivery: Delivery) -> None:
        check(DIALECTS[name], history, delivery)

    run()


class LandingJob(Job):
    """A job from a topic to Delta tables."""

    def __init__(
        self, broker: Broker, root: Path, topic: str, state: str = "state", **sink: Any
    ) -> None:
        dialect = DIALECTS[DIALECT]
        self.root, self.log, self.lake = root, root / "log", root / "lake"
        options = urlencode({"protocol": dialect.spec, **dialect.source})
        told = {
            "source": {"uri": f"kafka://{broker.bootstrap}/{topic}?{options}"},
            "sink": {
                "uri": f"delta://{self.lake}", "drop_table": "drop", "drop_column": "drop", **sink,
            },
            "pipeline": {
                "checkpoint": f"{root}/{state}", "name": topic, "max_messages": 25, "trigger": "0s",
            },
        }  # fmt: skip
        self.path = root / f"{state}.yaml"
        self.path.write_text(json.dumps(told))

    def found(self) -> Landed:
        """What is landed, as any reader of Delta sees it."""
        found = Landed()
        read_lake(self.lake, found)
        return found

    def tokens(self) -> Iterator[tuple[Path, list[int]]]:
        """Of each table, the tokens in its log, commit by commit."""
        for log in sorted(self.lake.glob("*/*/_delta_log")):
            commits = [
                [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
                for file in sorted(log.glob("*.json"))
            ]
            yield (
                log.parent,
                [action["txn"]["version"] for c in commits for action in c if "txn" in action],
            )


def long_history(chance: random.Random, steps: int) -> History:
    """Changes of several tables with everything that can happen to them."""
    names = [*WEIGHTS * 10, *list(ROW_STEPS) * 3, "alter", "alter", *DDL_STEPS]
    seeds = [chance.randrange(2**32) for _ in range(steps)]
    first = [chance.randrange(2**32) for _ in range(TABLES)]
    limits = replace(limits_of(DIALECT), tables=TABLES, steps=steps)
    return written(first, [(chance.choice(names), seed) for seed in seeds], limits)


def sent(history: History) -> list[Message]:
    """The history as TiCDC sends it, with repeats and disorder."""
    dialect = DIALECTS[DIALECT]
    units = disturbed(units_of(history, dialect, 1, None), dialect, SEED)
    return [(m.key, m.value, 0, None) for m in delivered(units)]


def test_killed_at_random_moments_tables_equal_the_server(broker: Broker, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    broker.create_topic("killed-landing", 1)
    history = long_history(chance, STEPS_PER_KILL * KILLS)
    assert schema_of(history) is None, "the stream tells all tables"
    changes = [change for transaction in history.server.log for change in transaction.changes]
    assert {"insert", "update", "delete"} <= {change.op for change in changes}
    assert any(not change.key for change in changes), "a table without a key"
    messages = sent(history)
    share = len(messages) // KILLS
    job = LandingJob(broker, tmp_path, "killed-landing")
    for kill in range(KILLS):
        broker.produce("killed-landing", messages[kill * share : (kill + 1) * share])
        process = job.start()
        try:
            job.wait_for_progress(process, WAIT)
            time.sleep(chance.uniform(0, 2))
        finally:
            send(family(process.pid), signal.SIGKILL)
            process.wait()
    broker.produce("killed-landing", messages[KILLS * share :])

    assert 0 == job.once(WAIT), job.told()

    found = job.found()
    assert not found.parked
    assert not wrong_tables(history, found)
    assert "Traceback" not in job.told(), job.told()
    for table, tokens in job.tokens():
        assert tokens == sorted(set(tokens)), f"{table} has a batch twice"
        assert tokens[-1] // STEPS <= job.progress()


def test_two_jobs_on_one_lake(broker: Broker, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    broker.create_topic("two-landings", 1)
    history = long_history(chance, 60)
    broker.produce("two-landings", sent(history))
    job = LandingJob(broker, tmp_path, "two-landings")
    other = LandingJob(broker, tmp_path, "two-landings", state="other")
    both = [job.start("--once"), job.start("--once")]
    wait_for(lambda: any(process.poll() is not None for process in both), WAIT)
    codes = sorted(process.wait(WAIT) for process in both)
    assert [0, 1] == codes, "one instance has the checkpoint"

    assert 0 != other.once(WAIT), "the tables are those of the first"

    assert "was landed by another job or from another checkpoint" in other.told()
    assert not wrong_tables(history, job.found())


def test_a_restored_checkpoint_and_a_table_that_somebody_else_changes(
    broker: Broker, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    broker.create_topic("restored-landing", 1)
    history = long_history(chance, 120)
    messages = sent(history)
    half = len(messages) // 2
    job = LandingJob(broker, tmp_path, "restored-landing")
    broker.produce("restored-landing", messages[:half])
    assert 0 == job.once(WAIT), job.told()
    shutil.copytree(tmp_path / "state", tmp_path / "old")
    broker.produce("restored-landing", messages[half:-10])
    assert 0 == job.once(WAIT), job.told()
    (tmp_path / "state").rename(tmp_path / "right")
    (tmp_path / "old").rename(tmp_path / "state")
    before = {table: tokens[-1] for table, tokens in job.tokens()}

    assert 2 == job.once(WAIT), "an older checkpoint"

    assert "older than the target" in job.told()
    assert before == {table: tokens[-1] for table, tokens in job.tokens()}
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "right").rename(tmp_path / "state")
    for log in job.lake.glob(f"{DATABASE}/*/_delta_log"):
        DeltaTable(log.parent).optimize.compact()
    broker.produce("restored-landing", messages[-10:])
    assert 0 == job.once(WAIT), job.told()
    assert not wrong_tables(history, job.found())
