"""Jobs as processes of their own, to be killed, stopped and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kafka_broker import Broker

from headgate.sources.message_files import expand, read, splits


class Job:
    """A job from a topic to files, and to whatever else is told."""

    def __init__(
        self, broker: Broker | str, root: Path, topic: str, *sinks: dict[str, Any], **pipeline: Any
    ) -> None:
        """`broker` is Kafka's, or the URI of another server's topics without the topic."""
        self.root, self.log = root, root / "log"
        server = broker if isinstance(broker, str) else f"kafka://{broker.bootstrap}"
        told = {
            "source": {"uri": f"{server}/{topic}", "format": "canal-json:ticdc"},
            "sink": [
                {"uri": f"file://{root}/out?protocol=canal-json:ticdc&enable-tidb-extension=true"},
                *sinks,
            ],
            "pipeline": {"checkpoint": f"{root}/state", "name": topic, **pipeline},
        }
        self.path = root / "job.yaml"
        self.path.write_text(json.dumps(told))

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "headgate", "run", str(self.path), *more]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*command, "--master", "local[2]"], stdout=log, stderr=log, start_new_session=True
            )

    def once(self, seconds: float = 300) -> int:
        """Run it until everything there is now is done; its exit code."""
        return self.start("--once").wait(seconds)

    def told(self) -> str:
        """What the job and Spark have logged."""
        return self.log.read_text(errors="replace")

    def progress(self) -> int:
        """The newest batch of which the job has written its state."""
        found = (self.root / "state" / "headgate" / "batches").glob("*.json")
        return max((int(path.stem) for path in found), default=-1)

    def wait_for_progress(self, process: subprocess.Popen[bytes], seconds: float = 180) -> None:
        """A fault before anything was done would prove nothing."""
        before = self.progress()
        wait_for(lambda: process.poll() is not None or self.progress() > before, seconds)
        assert process.poll() is None, self.told()

    def written(self) -> Iterator[dict[str, Any]]:
        for file in expand([str(self.root / "out")]):
            for split in splits(file):
                for batch in read(split):
                    yield from batch.to_pylist()


def wait_for(condition: Callable[[], bool], seconds: float = 180) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"nothing happened within {seconds} s"
        time.sleep(0.02)


def family(pid: int) -> list[int]:
    """A process and those that it started: its JVM, and the JVM's workers."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(stat.parent.name))
    found = [pid]
    for each in found:
        found += parents.get(each, [])
    return found


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
