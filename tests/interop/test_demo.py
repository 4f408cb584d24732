"""`make demo`: what it prints, and that a wrong value fails it."""

from __future__ import annotations

import io
import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from paths import FEED, ROOT
from rich.console import Console


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("examples.demo")


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
