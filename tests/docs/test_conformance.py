"""docs/conformance.md names only cases that exist."""

from __future__ import annotations

import re

from paths import CASES, DOCS

PAGE = DOCS / "conformance.md"
FORMATS = "|".join(sorted(p.name for p in CASES.iterdir() if p.is_dir()))


def test_every_case_on_the_page_exists() -> None:
    named = re.findall(rf"`((?:{FORMATS})/[^`/]+)`", PAGE.read_text())

    assert named
    assert [] == [case for case in named if not (CASES / case / "expect.json").exists()]
