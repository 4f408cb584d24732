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
from typing import Any

import pytest

from headgate.cli.event_lines import as_dict
from headgate.codec.decoder import decode_message, decoder
from headgate.core.limits import MAX_MESSAGE_BYTES

CASES = Path(__file__).parent / "cases"
FOLDERS = sorted(p.parent for p in CASES.glob("*/*/expect.json"))


def content(folder: Path, name: str) -> bytes | None:
    """The bytes of value or key, without the line end an editor adds to a text file."""
    binary, text = folder / f"{name}.bin", folder / f"{name}.json"
    if binary.exists():
        return binary.read_bytes()
    return text.read_bytes().removesuffix(b"\n") if text.exists() else None


def events(folder: Path, spec: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    found = decode_message(
        decoder(spec, **settings.get("options", {})),
        content(folder, "key"),
        content(folder, "value"),
        settings.get("topic"),
        MAX_MESSAGE_BYTES,
    )
    return [as_dict(event) for event in found]


def settings_of(folder: Path) -> dict[str, Any]:
    path = folder / "case.json"
    return json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_case_decodes_to_its_events(folder: Path) -> None:
    settings = settings_of(folder)
    expected = json.loads((folder / "expect.json").read_text())

    assert expected == events(folder, settings.get("format", folder.parent.name), settings)


DETECTABLE = [folder for folder in FOLDERS if settings_of(folder).get("auto") is not False]


@pytest.mark.parametrize("folder", DETECTABLE, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_auto_gives_the_same_events(folder: Path) -> None:
    expected = json.loads((folder / "expect.json").read_text())

    assert expected == events(folder, "auto", settings_of(folder))


def test_every_case_says_who_made_it() -> None:
    assert FOLDERS
    assert [] == [f.name for f in FOLDERS if not (f / "origin.txt").exists()]
