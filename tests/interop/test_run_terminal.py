"""What somebody sees of `headgate run`: in a terminal while it starts, works and waits, and when
something is not there."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import run
from job_runs import files_to_files, uri
from kafka_broker import Broker
from messages import canal
from pyspark.sql import SparkSession
from terminal import Terminal


def test_a_job_speaks_from_its_start_to_its_end(broker: Broker, tmp_path: Path) -> None:
    topic = broker.create_topic("speaks", partitions=2)
    broker.produce(topic, [(None, canal(id=n), n % 2, None) for n in range(40)])
    broker.produce(topic, [(None, canal(id=n, table="other"), 0, None) for n in range(10)])
    job = tmp_path / "shop.yaml"
    job.write_text(
        f"source: {{uri: '{uri(broker, topic)}'}}\n"
        f"sink: {{uri: '{uri(broker, 'spoken')}', format: maxwell}}\n"
        "tables: {include: [shop.orders]}\n"
    )

    shown = Terminal("run", str(job), "--master", "local[1]", columns=160)
    shown.until("headgate: reading ", seconds=10)
    shown.until("shop: starting Spark")
    shown.until(r"\r\x1b\[Kshop: running, batch \d, [\d,]+ messages/s[^\r]*10 filtered")
    shown.until(r"\r\x1b\[Kshop: running, idle for \d+ s, batch \d, lag: 0 messages; ")

    assert 0 == shown.end(signal.SIGINT), shown.raw
    first, second, *steps, last, end = shown.lines()
    assert f"headgate: reading {job}" == first
    assert f"shop: looking for {uri(broker, topic)}, {uri(broker, 'spoken')}" == second
    wanted = ["starting Spark (local[1])", f"connecting to {uri(broker, topic)}",
              "2 partitions, 50 messages to read"]  # fmt: skip
    assert [f"shop: {step}" for step in wanted] == [s for s in steps if "compiling" not in s]
    assert re.fullmatch(
        r"shop: stopped, batch \d, lag: 0 messages; "
        r"total: 50 messages, 0 dead letters, 10 filtered",
        last,
    )
    assert "" == end
    status = json.loads(run("status", str(job), "--json").stdout)
    assert (0.0, None) == (status["rate"], status["idle_since"])


@pytest.mark.spark
def test_without_a_terminal_there_are_plain_lines_and_an_idle_job_says_so_once(
    tmp_path: Path,
) -> None:
    job = files_to_files(tmp_path)
    (tmp_path / "in" / "a.jsonl").write_bytes(canal() + b"\n")
    command = [sys.executable, "-m", "headgate", "run", str(job), "--master", "local[1]"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        lines: list[str] = []
        while not (lines and "idle for" in lines[-1]):
            lines.append(running.stderr.readline().rstrip("\n"))
            assert lines[-1], lines
        time.sleep(5)  # it is idle for longer, and does not say so again
        running.terminate()
        lines += running.stderr.read().splitlines()
        assert 0 == running.wait(60)

    assert not [line for line in lines if "\r" in line or "\x1b" in line]
    assert 1 == sum("idle for" in line for line in lines)
    assert f"headgate: reading {job}" == lines[0]
    assert "shop: 1 file to read" in lines


def test_a_missing_topic_is_named_with_the_nearest_one(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    broker.create_topic("invoices")
    source = uri(broker, "invoice")
    to = f"file:{tmp_path}/out?protocol=maxwell"

    done = run("run", "--from", source, "--to", to, "--set", f"pipeline.checkpoint={tmp_path}/s")

    assert 2 == done.returncode
    last = done.stderr.decode().splitlines()[-1]
    said = f"headgate: {source}: no topic matches invoice; did you mean invoices? there are: "
    assert last.startswith(said)
    assert b"\tat " not in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("source", "settings", "said"),
    [
        ("kafka://127.0.0.1:1/t", [], "kafka://127.0.0.1:1/t: 127.0.0.1:1 cannot be reached: "
         "Connection refused; check the address, and that the server runs"),
        ("kafka://no-such-host.invalid/t", [], "kafka://no-such-host.invalid/t: "
         "no-such-host.invalid:9092 cannot be reached: the host's name is not known; check the "
         "address, and that the server runs"),
        ("file:/no/such/in", [], "file:/no/such/in: there is no directory /no/such/in; create it, "
         "or correct the path"),
        ("/etc", ["pipeline.checkpoint=/dev/null/state"], "checkpoint: /dev/null/state cannot be "
         "created: /dev/null is not a directory; correct the path"),
        ("/dev", ["pipeline.spark.spark.sql.shuffle.partitions=two"],
         "spark.sql.shuffle.partitions is 'two'; it must be a whole number from 1 on"),
        ("/dev", ["--master=local[two]"], "the master is 'local[two]'; it must be local[2], "
         "local[*], spark://HOST:PORT, k8s://HOST:PORT or yarn"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_one_line_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, settings: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    to = f"file:{tmp_path}/out?protocol=maxwell"
    words = [w for s in settings for w in ([s] if s.startswith("--") else ["--set", s])]
    began = time.monotonic()

    done = run("run", "--from", source, "--to", to, *words)

    assert time.monotonic() - began < 10
    assert (1 if "that the server runs" in said else 2) == done.returncode
    assert f"headgate: {said}" == done.stderr.decode().splitlines()[-1]
    assert b"starting Spark" not in done.stderr


@pytest.mark.spark
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("spark.sql.streaming.minBatchesToRetain=many",
         "spark.sql.streaming.minBatchesToRetain is 'many'; Spark says: "),
        ("spark.executor.heartbeatInterval=soon",
         "Spark did not start with the setting spark.executor.heartbeatInterval: "),
    ],
)  # fmt: skip
def test_a_setting_that_only_spark_knows_is_named_without_a_trace(
    tmp_path: Path, setting: str, said: str
) -> None:
    job = files_to_files(tmp_path)
    command = [sys.executable, "-m", "headgate", "run", str(job), "--master", "local[1]",
               "--set", f"pipeline.spark.{setting}"]  # fmt: skip

    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert 2 == ran.returncode, ran.stderr
    last = ran.stderr.splitlines()[-1]
    assert last.startswith(f"headgate: {said}")
    assert 4 == len(ran.stderr.splitlines()), ran.stderr
    if "did not start" in said:
        assert last.endswith(f"; the full trace is in {tmp_path}/state/spark.log")
        assert "\tat org.apache.spark" in (tmp_path / "state" / "spark.log").read_text()
