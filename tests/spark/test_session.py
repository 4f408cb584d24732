"""The session that Headgate makes itself."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import accumulators

from headgate.spark import session
from headgate.spark.daemon import print_exc

PROGRAM = """
import os
from headgate.spark.session import session

def told(batches):
    import pyarrow as pa
    for _ in batches:
        yield pa.record_batch({"told": [os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED")]})

spark = session("local[1]")
print(spark.range(1).mapInArrow(told, "told string").first().told)
print(spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir"))
"""


@pytest.mark.spark
def test_workers_are_reached_by_unix_sockets_that_leave_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    enabled, folder = done.stdout.split()
    assert "True" == enabled
    assert not Path(folder).exists()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("sent", "trace"), [(b"", ""), (b"odd", "struct.error")])
def test_a_jvm_that_ends_leaves_no_trace_of_the_accumulators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sent: bytes, trace: str
) -> None:
    path = str(tmp_path / "accumulators")
    server = accumulators._start_update_server("", True, path)
    session.end_quietly(server)

    with socket.socket(socket.AF_UNIX) as jvm:
        jvm.connect(path)
        jvm.sendall(sent)
    with socket.socket(socket.AF_UNIX) as after:  # is served when the first has been
        after.connect(path)
        after.sendall(bytes(4))
        assert b"\1" == after.recv(1)
    server.shutdown()

    shown = capsys.readouterr().err
    assert trace in shown
    assert bool(trace) == ("Traceback" in shown)


def test_a_folder_too_long_for_sockets_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(session, "LONGEST_FOLDER", len(str(tmp_path)))
    assert {} == session.sockets.__wrapped__("local[2]")


def test_only_the_end_of_a_session_is_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (BrokenPipeError(32, "Broken pipe"), ValueError("it broke")):
        try:
            raise error
        except Exception:
            print_exc()
    told = capsys.readouterr().err
    assert "Broken pipe" not in told
    assert "ValueError: it broke" in told
