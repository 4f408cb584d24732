from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from paths import FEED, ROOT


@pytest.fixture
def make_feed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("examples.make_feed")


def test_the_feed_can_be_made_again(make_feed: Any, tmp_path: Path) -> None:
    make_feed.main(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in FEED.iterdir())
    for made in tmp_path.iterdir():
        if made.suffix == ".parquet":  # its bytes depend on the Arrow version, its rows do not
            assert pq.read_table(made).equals(pq.read_table(FEED / made.name)), made.name
        else:
            assert made.read_bytes() == (FEED / made.name).read_bytes(), made.name


def test_the_feed_is_made_without_headgate() -> None:
    code = "import examples.make_feed, sys; print([m for m in sys.modules if 'headgate' in m])"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_command_line_prints_every_file() -> None:
    files = sorted(str(p) for p in FEED.iterdir() if p.suffix in (".jsonl", ".parquet"))
    command = "from headgate.cli.main import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", command, "decode", *files], capture_output=True, check=False
    )
    assert ran.returncode == 3, ran.stderr.decode()[-500:]
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds.count("row") == 17 * 65
    assert kinds.count("invalid") == 5
