"""Flink as a process beside this one, for the benchmark and for `make interop`."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".cache" / "flink-venv"
PACKAGE = "apache-flink==2.3.0"
TROUBLE = (OSError, RuntimeError, subprocess.CalledProcessError, ValueError, KeyError)
"""What installing and starting it may raise."""


class Flink:
    """The warm process of flink_process.py."""

    def __init__(self, environment: Path, log: Path, jars: Sequence[Path] = ()):
        python = installed(environment)
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("flink_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
            # Not ADD JAR: that loads a connector anew for each job, which then is never warm.
            env={**os.environ, "HADOOP_CLASSPATH": os.pathsep.join(map(str, jars))},
        )
        hello = self.answer()
        self.version, self.java = hello["flink"], hello["java"]

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            last = self.log.read_text().strip()[-500:]
            raise RuntimeError(f"the Flink process ended; its log {self.log} ends with: {last}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def ask(self, **request: object) -> dict:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def execute(self, *statements: str) -> float:
        """Run statements; the seconds that the last one took."""
        return self.ask(execute=statements)["seconds"]

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        """A query's changelog: the kind of each row (+I, -U, +U, -D), then its values as text."""
        return [tuple(row) for row in self.ask(rows=query)["rows"]]

    def begin(self, statement: str) -> str:
        """Start a job that does not end; its id, to cancel it."""
        return self.ask(begin=statement)["job"]

    def cancel(self, job: str) -> None:
        self.ask(cancel=job)

    def define(
        self, name: str, columns: str, path: Path, format: str, options: dict | None = None
    ) -> None:
        """A table of files, to read or to write."""
        files = {"connector": "filesystem", "path": str(path), "format": format}
        self.define_with(name, columns, files | (options or {}))

    def define_with(self, name: str, columns: str, options: dict[str, str]) -> None:
        """A table of any connector."""
        listed = ", ".join(f"'{option}' = '{value}'" for option, value in options.items())
        self.execute(
            f"DROP TEMPORARY TABLE IF EXISTS {name}",
            f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({listed})",
        )

    def close(self) -> None:
        try:
            self.process.stdin.close()
            self.process.wait(timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


def installed(environment: Path) -> Path:
    """The interpreter of an environment with apache-flink, made when it is absent."""
    python, stamp = environment / "bin" / "python", environment / PACKAGE
    environment.mkdir(parents=True, exist_ok=True)
    with (environment / "lock").open("w") as lock:
        # Two processes of a test run must not install at once, nor start half an installation.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            print(f"installing {PACKAGE} into {environment} (once, a few hundred MB) …", flush=True)
            subprocess.run(["python3", "-m", "venv", str(environment)], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", PACKAGE], check=True)
            stamp.touch()
    return python


def start(environment: Path, log: Path, jars: Sequence[Path] = ()) -> tuple[Flink | None, str]:
    """The process, with these jars on its classpath, or why there is none."""
    try:
        return Flink(environment, log, jars), ""
    except TROUBLE as error:
        return None, f"Flink could not be installed or started: {error}"
