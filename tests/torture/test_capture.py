"""Capturing a database in use, by a job that is killed, from a server that is started again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from capture_workload import DATABASE, Workload

from torture.jobs import Job, family, send

KILLS = int(os.environ.get("HEADGATE_KILLS", "20"))
SEED = int(os.environ.get("HEADGATE_SEED", "4"))
WAIT = 600


class CaptureJob(Job):
    """A job from a database to Delta tables."""

    def __init__(self, server: Any, root: Path) -> None:
        self.root, self.log, self.lake = root, root / "log", root / "lake"
        login = f"{server.user}:{server.password}@{server.address}"
        self.database = f"mysql://{login}/{DATABASE}"
        told = {
            "source": {
                "uri": f"{self.database}.*", "chunk_rows": 600, "parallel_chunks": 4,
                "retry": "60s",
            },
            "sink": {"uri": f"delta://{self.lake}"},
            "pipeline": {"checkpoint": f"{root}/state", "name": "capture", "trigger": "0s"},
        }  # fmt: skip
        self.path = root / "job.yaml"
        self.path.write_text(json.dumps(told))

    def verified(self) -> dict[str, Any]:
        """What `headgate verify` says of the lake and the server."""
        command = [sys.executable, "-m", "headgate", "verify", str(self.path), "--json"]
        done = subprocess.run(
            [*command, "--source", self.database, "--wait", "1s", "--master", "local[2]"],
            capture_output=True, timeout=WAIT, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 4), done.stderr.decode()[-2000:]
        return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_killed_at_random_moments_tables_equal_the_server(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(name)
    chance = random.Random(SEED)
    workload = Workload(server, SEED)
    workload.create()
    job = CaptureJob(server, tmp_path)
    with workload:
        for kill in range(KILLS):
            process = job.start()
            try:
                job.wait_for_progress(process, WAIT)
                if kill < 3:
                    workload.alter(kill)
                if kill in (1, KILLS // 2):
                    server.restart()
                time.sleep(chance.uniform(0, 2))
            finally:
                send(family(process.pid), signal.SIGKILL)
                process.wait()
    assert workload.changes > 100 * KILLS

    assert 0 == job.once(WAIT), job.told()[-3000:]

    result = job.verified()
    assert result["equal"], json.dumps(result)[:3000]
    assert 6 == len(result["tables"])
    rows = {table["table"]: table["source_rows"] for table in result["tables"]}
    assert rows[f"{DATABASE}.items"] > 20_000
    assert server.password not in job.told()
