"""A checkpoint has one holder; a dead one's lease is free, and a late one notices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.pipeline.lease import FILE, Lease, LeaseError
from headgate.pipeline.run import as_lost
from headgate.spark.storage import Storage

HOLDER = """
import sys, time
from headgate.pipeline.lease import Lease
from headgate.spark.storage import Storage
with Lease(Storage(sys.argv[1]), renew=0.2, expire=2) as lease:
    print("held", flush=True)
    for line in sys.stdin:
        try:
            lease.check()
            print("ours", flush=True)
        except Exception as error:
            print(error, flush=True)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the checkpoint."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert "held\n" == process.stdout.readline()
        yield process
        process.kill()


def ask(holder: subprocess.Popen[str]) -> str:
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    return holder.stdout.readline()


def lease(root: Path) -> Lease:
    return Lease(Storage(str(root)), renew=0.2, expire=2)


def rewritten(root: Path, **changes: Any) -> None:
    """A lease that another left."""
    told = json.loads((root / FILE).read_text())
    (root / FILE).write_text(json.dumps({**told, **changes}))


@pytest.mark.slow
def test_a_second_instance_is_refused_and_told_of_the_first(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    time.sleep(2.5)  # longer than a lease that is not renewed
    with pytest.raises(
        LeaseError, match=rf"another instance .* process {holder.pid} on \S+, since"
    ):
        lease(tmp_path).__enter__()
    assert "ours\n" == ask(holder)
    holder.stdin.close()  # type: ignore[union-attr]
    holder.wait(10)
    assert not (tmp_path / FILE).exists()


def test_a_killed_instances_lease_is_free_at_once(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    holder.kill()  # not waited for: a zombie has its number still
    time.sleep(0.1)
    with Lease(Storage(str(tmp_path)), expire=3600) as mine:
        mine.check()


@pytest.mark.slow
def test_a_stopped_instance_loses_its_lease_and_notices_when_it_wakes(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    holder.send_signal(signal.SIGSTOP)
    time.sleep(2.2)
    with lease(tmp_path) as mine:
        holder.send_signal(signal.SIGCONT)
        assert "was taken over by another instance" in ask(holder)
        time.sleep(0.5)
        mine.check()
    assert not (tmp_path / FILE).exists()


def test_what_another_host_or_an_older_process_left(tmp_path: Path) -> None:
    with lease(tmp_path):
        left = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**left, "system": "another/host", "host": "far"}))
    with pytest.raises(LeaseError, match="on far, since"):
        lease(tmp_path).__enter__()
    for jump in (-3600, 3600):  # by its clock or ours: it is silent, and that counts
        rewritten(tmp_path, renewed=time.time() + jump)
        lease(tmp_path).__enter__().__exit__()
        (tmp_path / FILE).write_text(json.dumps({**left, "system": "another/host"}))
    # The number of a dead process is another's by now: this one's.
    rewritten(tmp_path, system=left["system"], pid=os.getppid(), began="1", renewed=time.time())
    with lease(tmp_path) as mine:
        mine.check()


def test_a_lease_that_a_crash_cut_short_is_free(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"")
    with Lease(Storage(str(tmp_path)), renew=0.1, expire=1) as lease:
        lease.check()


def test_what_fails_after_a_take_over_fails_because_of_it(tmp_path: Path) -> None:
    error = OSError("Multiple streaming queries are concurrently using the checkpoint")
    with lease(tmp_path) as mine:
        with pytest.raises(OSError, match="Multiple"), as_lost(mine):
            raise error
        rewritten(tmp_path, token="another's", host="far")
        with pytest.raises(LeaseError, match=r"was taken over .* on far"), as_lost(mine):
            raise error
