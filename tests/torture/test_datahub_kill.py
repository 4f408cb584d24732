"""A job to DataHub is killed, and goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import quote

from datahub_changes import amounts, changes, expected, put_files, sink_uri
from datahub_server import ACCESS_KEY, DataHubServer

from torture.jobs import family, send, wait_for


def arrived_more_than(datahub: DataHubServer, messages: int) -> bool:
    return len(datahub.values("killed")) > messages


def test_a_killed_job_goes_on_where_it_was_and_shows_no_secret(
    datahub: DataHubServer, tmp_path: Path
) -> None:
    datahub.create_topic("killed", shards=3)
    messages = changes(1_200)
    (tmp_path / "in").mkdir()
    put_files(tmp_path / "in", messages, 12)
    uri = sink_uri(datahub, "killed").replace(quote(ACCESS_KEY, safe=""), "${DATAHUB_KEY}")
    job = tmp_path / "job.yaml"
    job.write_text(
        json.dumps(
            {
                "source": {"uri": f"file://{tmp_path}/in"},
                "sink": {"uri": uri},
                "pipeline": {"checkpoint": f"{tmp_path}/state", "max_messages": 10_000},
            }
        )
    )
    log = tmp_path / "log"

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "headgate", "run", str(job), "--once"]
        with log.open("ab") as said:
            return subprocess.Popen(
                [*command, "--master", "local[2]"], stdout=said, stderr=said,
                start_new_session=True, env={**os.environ, "DATAHUB_KEY": ACCESS_KEY},
            )  # fmt: skip

    for goal in (150, 450):
        running = start()
        wait_for(partial(arrived_more_than, datahub, goal))
        processes = family(running.pid)
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes]
        send(processes, signal.SIGKILL)
        assert -signal.SIGKILL == running.wait(60), log.read_text()
        assert expected(messages) != amounts(datahub.records("killed"))
        assert not any(ACCESS_KEY.encode() in line for line in lines)

    assert 0 == start().wait(300), log.read_text()

    assert expected(messages) == amounts(datahub.records("killed"))
    for file in (log, *(p for p in (tmp_path / "state").rglob("*") if p.is_file())):
        assert ACCESS_KEY.encode() not in file.read_bytes(), file
