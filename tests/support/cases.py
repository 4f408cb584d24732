"""The golden cases under tests/cases: their bytes, their settings, their events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paths import CASES

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder
from headgate.codec.event_lines import as_dict
from headgate.codec.packing import packed
from headgate.core.event import Event, Record
from headgate.core.limits import MAX_MESSAGE_BYTES

FOLDERS = sorted(p.parent for p in CASES.glob("*/*/expect.json"))


def content(folder: Path, name: str) -> bytes | None:
    """The bytes of value or key, without the line end an editor adds to a text file."""
    binary, text = folder / f"{name}.bin", folder / f"{name}.json"
    if binary.exists():
        return binary.read_bytes()
    return text.read_bytes().removesuffix(b"\n") if text.exists() else None


def settings_of(folder: Path) -> dict[str, Any]:
    path = folder / "case.json"
    return json.loads(path.read_text()) if path.exists() else {}


DETECTABLE = [folder for folder in FOLDERS if settings_of(folder).get("auto") is not False]
READABLE = [f for f in FOLDERS if '"invalid"' not in (f / "expect.json").read_text()]


def events(folder: Path, spec: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    decoded_events = decode_message(
        decoder(spec, **settings.get("options", {})),
        content(folder, "key"),
        content(folder, "value"),
        settings.get("topic"),
        MAX_MESSAGE_BYTES,
    )
    return [as_dict(event) for event in decoded_events]


def decoded(folder: Path, key: bytes | None, value: bytes | None) -> list[Event]:
    settings = settings_of(folder)
    decode = decoder(settings.get("format", folder.parent.name), **settings.get("options", {}))
    return decode_message(decode, key, value, settings.get("topic"), MAX_MESSAGE_BYTES)


def encode_settings_of(folder: Path) -> dict[str, Any]:
    path = folder / "encode.json"
    return json.loads(path.read_text()) if path.exists() else {}


def encoded(folder: Path, events: list[Event]) -> list[Record]:
    settings = settings_of(folder)
    first = events[0]
    spec = f"{first.format}:{first.dialect}" if first.dialect else str(first.format)
    options = dict(encode_settings_of(folder).get("options", {}))
    if "timezone" in settings.get("options", {}):
        options["timezone"] = settings["options"]["timezone"]
    if b'"_tidb"' in (content(folder, "value") or b""):
        options.setdefault("enable_tidb_extension", True)
    encoder = Encoder(spec, **options)
    outcomes = list(map(encoder, events))
    assert [] == [e.error for e in outcomes if e.error]
    return packed(encoder, events, outcomes)[0]
