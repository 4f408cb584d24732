"""The site of docs/, as `make docs` builds it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import DOCS, ROOT

import headgate


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip

    assert 0 == built.returncode, built.stdout + built.stderr
    loads = re.compile(r'<(?:script|img|link rel="(?:stylesheet|icon|preconnect)")[^>]*"https?:')
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) >= len(list(DOCS.rglob("*.md")))
    assert [] == [page.name for page in pages if loads.search(page.read_text())]
    python = (tmp_path / "python.html").read_text()
    assert set() == {name for name in headgate.__all__ if f'id="headgate.{name}"' not in python}
    assert "headgate dead-letters replay [OPTIONS] STORE|JOB" in (tmp_path / "cli.html").read_text()
