"""Every folder of bytes under tests/cases decodes to what its expect.json says.

A case is a folder `tests/cases/<format>/<case>/` with
  value.json or value.bin   the message, byte for byte (no value file: a null value)
  key.json or key.bin       the key, if any
  expect.json               the events, as `headgate decode` prints them
  case.json                 {"format": "...", "options": {...}, "topic": "...", "auto": false}, all
                            optional: format defaults to the folder's name; "auto" says that `auto`
                            cannot know this message, and why must be told in origin.txt
  origin.txt                who made the bytes
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cases import DETECTABLE, FOLDERS, events, settings_of


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_case_decodes_to_its_events(folder: Path) -> None:
    settings = settings_of(folder)
    expected = json.loads((folder / "expect.json").read_text())

    assert expected == events(folder, settings.get("format", folder.parent.name), settings)


@pytest.mark.parametrize("folder", DETECTABLE, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_auto_gives_the_same_events(folder: Path) -> None:
    expected = json.loads((folder / "expect.json").read_text())

    assert expected == events(folder, "auto", settings_of(folder))


def test_every_case_says_who_made_it() -> None:
    assert FOLDERS
    assert [] == [f.name for f in FOLDERS if not (f / "origin.txt").exists()]
