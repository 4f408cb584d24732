from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from paths import FEED, ROOT
from rich.console import Console


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("examples.demo")


@pytest.fixture
def make_feed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("examples.make_feed")


def test_every_dialect_equals_the_truth(demo: Any, spark: Any) -> None:
    printed = io.StringIO()
    report = demo.run(lambda: spark, Console(file=printed, width=200), FEED)
    assert len(report.files) == 17
    assert {f: t for f, t in report.wrong.items() if any(t.values())} == {}
    assert {kinds["row"] for kinds in report.kinds.values()} == {65}
    injected = json.loads((FEED / "broken.json").read_text(encoding="utf-8"))
    where = [(b["file"], b["line"], b["code"]) for b in injected]
    assert [(d["file"], d["line"], d["code"]) for d in report.dead] == sorted(where)
    assert all(d["whole"] for d in report.dead)
    assert report.agrees
    last = printed.getvalue().rstrip().splitlines()[-1]
    assert last.startswith(f"17 dialects, {report.messages} messages: all tables match")


def test_one_wrong_value_fails_the_demo(
    demo: Any, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = "canal-json.canal.jsonl"
    sent = (FEED / file).read_bytes()
    assert b"9999999999999999.9999" in sent
    (tmp_path / file).write_bytes(sent.replace(b"9999999999999999.9999", b"9999999999999999.9998"))
    shutil.copy(FEED / "truth.json", tmp_path)
    injected = json.loads((FEED / "broken.json").read_text(encoding="utf-8"))
    ours = [b for b in injected if b["file"] == file]
    (tmp_path / "broken.json").write_text(json.dumps(ours), encoding="utf-8")
    assert demo.main(tmp_path, spark) == 1
    printed = capsys.readouterr().out
    assert "1 row differ" in printed
    assert "canal-json:canal differ" in printed
    assert printed.rstrip().endswith("the tables differ after the round trip")


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
