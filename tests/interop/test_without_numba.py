"""Without the extra `fast`, the codecs convert all messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from job_runs import files_to_files, lines_in
from messages import canal

COUNT = 5_000
"""More messages than the fast path waits for."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which nobody, Spark's workers included, can import numba."""
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "numba.py").write_text("raise ImportError('blocked')\n")
    paths = [str(tmp_path / "blocked"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "headgate", *words]
    return subprocess.run(command, env=environment, capture_output=True, timeout=600)


def test_convert_works_without_numba(environment: dict[str, str], tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b"\n".join([canal()] * COUNT))
    done = run(environment, "convert", str(source), str(out), "--to", "maxwell")

    assert 0 == done.returncode, done.stderr
    assert b"Traceback" not in done.stderr
    assert COUNT == len(out.read_bytes().splitlines())


@pytest.mark.spark
def test_run_works_without_numba(environment: dict[str, str], tmp_path: Path) -> None:
    job = files_to_files(tmp_path)
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\n".join([canal()] * COUNT))
    done = run(environment, "run", str(job), "--once")

    assert 0 == done.returncode, done.stderr
    assert b"Traceback" not in done.stderr
    assert COUNT == len(lines_in(tmp_path / "out"))
