"""docs/conformance.md names only cases that exist."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "conformance.md"
CASES = Path(__file__).parent / "cases"
FORMATS = "|".join(sorted(p.name for p in CASES.iterdir() if p.is_dir()))


def test_every_case_on_the_page_exists() -> None:
    named = re.findall(rf"`((?:{FORMATS})/[^`/]+)`", PAGE.read_text())

    assert named
    assert [] == [case for case in named if not (CASES / case / "expect.json").exists()]
