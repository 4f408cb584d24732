"""The commands of jobs, as a person types them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from job_runs import files_to_files, lines_in
from messages import canal
from pyspark.sql import SparkSession

from headgate.cli.main import cli
from headgate.core.errors import UsageError
from headgate.kafka import admin
from headgate.sources.kafka import topic_ids

SECRET = "canary-5f1d"


def headgate(*words: str, text: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, words, input=text)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return files_to_files(tmp_path)


def test_run_status_and_dead_letters(spark: SparkSession, job: Path) -> None:
    (job.parent / "in" / "a.jsonl").write_bytes(canal() + b"\n[1]\n" + canal(table="b") + b"\n")
    dead = str(job.parent / "dead")

    ran = headgate("run", str(job), "--once")

    assert 0 == ran.exit_code, ran.output
    assert ["orders", "b"] == [m["table"] for m in lines_in(job.parent / "out")]
    status = json.loads(headgate("status", str(job), "--json").output)
    assert ("stopped", 3) == (status["state"], status["totals"]["messages"])
    told = headgate("status", str(job.parent / "state")).output.splitlines()
    assert "shop: stopped, batch 0" == told[0][:22]
    assert ["  (no table): 1 rejected (wrong-type)", "  shop.b: 1 insert"] == told[1:3]

    listed = headgate("dead-letters", "list", dead).output
    assert listed.startswith("1  a.jsonl:1  wrong-type  ")
    assert "value: [1]" in headgate("dead-letters", "show", dead, "1").output
    assert b"[1]" == headgate("dead-letters", "show", dead, "1", "--raw").stdout_bytes
    wrong = headgate("dead-letters", "show", dead, "2")
    assert isinstance(wrong.exception, UsageError)

    assert "1 dead letters" in headgate("dead-letters", "replay", dead).output
    assert "no dead letters\n" == headgate("dead-letters", "list", dead).output
    assert 0 == headgate("run", str(job), "--once").exit_code
    assert 1 == len(headgate("dead-letters", "list", dead, "--json").output.splitlines())


def test_standard_input_and_the_console(spark: SparkSession, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "headgate", "run", "--from", "-", "--to",
         "console:?protocol=maxwell", "--set", f"pipeline.checkpoint={tmp_path}/state",
         "--json-logs", "--master", "local[1]"],
        input=canal() + b"\n", capture_output=True,
    )  # fmt: skip

    assert 0 == ran.returncode, ran.stderr.decode()
    assert ["insert"] == [json.loads(line)["type"] for line in ran.stdout.splitlines()]
    logs = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith(b"{")]
    assert ["batch", "stopped"] == [line["event"] for line in logs]
    assert 1 == logs[0]["messages"]


def children(pid: int) -> dict[int, str]:
    """The processes that a process started, with their command lines."""
    found = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(pid), "-ww"],
                           capture_output=True, text=True).stdout  # fmt: skip
    lines = (line.split(maxsplit=1) for line in found.splitlines())
    return {int(number): command for number, command in lines}


@contextmanager
def started(job: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A job that runs and waits for messages: its process, and that of its JVM."""
    command = [sys.executable, "-m", "headgate", "run", str(job), "--master", "local[1]",
               "--set", f"pipeline.spark.spark.my.password={SECRET}"]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as running:
        try:
            until = time.monotonic() + 120
            while state_of(job) != "running" and time.monotonic() < until:
                time.sleep(0.1)
            (java,) = (n for n, told in children(running.pid).items() if "SparkSubmit" in told)
            yield running, java
        finally:
            if running.poll() is None:
                running.kill()


def state_of(job: Path) -> str:
    """What is told of a job."""
    told = headgate("status", str(job), "--json")
    return str(json.loads(told.output)["state"]) if told.exit_code == 0 else ""


def wait_for_lines(job: Path, count: int) -> None:
    until = time.monotonic() + 120
    while len(lines_in(job.parent / "out")) < count and time.monotonic() < until:
        time.sleep(0.1)


@pytest.mark.spark
def test_a_job_runs_before_its_first_message_and_a_signal_to_its_group_stops_it(job: Path) -> None:
    with started(job) as (running, java):
        command = Path(f"/proc/{java}/cmdline").read_bytes()
        (job.parent / "in" / "a.jsonl").write_bytes(canal() + b"\n")
        wait_for_lines(job, 1)
        os.killpg(running.pid, signal.SIGTERM)
        assert running.stderr is not None
        said = running.stderr.read()
        assert 0 == running.wait(60), said.decode()

    assert "stopped" == state_of(job)
    assert b"Traceback" not in said
    assert b"\tat " not in said
    assert 1 == len(lines_in(job.parent / "out"))
    assert b"spark.master" in command
    assert SECRET.encode() not in command


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.spark
def test_the_end_of_the_jvm_is_told_as_that_or_is_the_stop_that_was_asked_for(
    job: Path, asked: bool
) -> None:
    with started(job) as (running, java):
        if asked:  # as systemd does by default: every process is told
            running.send_signal(signal.SIGTERM)
            os.kill(java, signal.SIGTERM)
        else:
            os.kill(java, signal.SIGKILL)
        assert running.stderr is not None
        said = running.stderr.read().decode()
        assert (0 if asked else 1) == running.wait(60), said

    assert ("stopped" if asked else "failed") == state_of(job)
    assert asked or "headgate: Spark's JVM ended (SIGKILL); look" in said


def test_a_wrong_job_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("source: {uri: 'file:in'}\nsink: {uri: 'file:out?protocol=maxwel'}\n")

    ran = subprocess.run(
        [sys.executable, "-m", "headgate", "run", str(path)], capture_output=True, text=True
    )

    assert 2 == ran.returncode
    assert re.search(r"job.yaml:2: .*did you mean 'maxwell'", ran.stderr)


def test_secrets_are_in_no_output_and_no_checkpoint(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (admin, topic_ids):  # nobody answers, so it waits to the end
        monkeypatch.setattr(module, "AT_ONCE", admin.Patience(1, 1_000, 500))
    uri = f"kafka://127.0.0.1:1/t?protocol=maxwell&sasl-user=me&sasl-password={SECRET}"
    told = ("--set", f"pipeline.checkpoint={tmp_path}/state")

    for words in (("run", "--once"), ("check",)):
        ran = headgate(
            *words, "--from", uri, "--to", f"file://{tmp_path}/out?protocol=maxwell", *told
        )
        assert ran.exit_code
        assert SECRET not in ran.output + repr(ran.exception)

    for folder, _, files in os.walk(tmp_path):
        for name in files:
            assert SECRET.encode() not in (Path(folder) / name).read_bytes(), name
