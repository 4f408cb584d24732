"""Every decoded case is encoded again: the same events, and for documents' examples the same JSON.

A case's `encode.json`, where there is one, has
  options    of the encoder
  bytes      true: the message must come out byte for byte
  differs    {"path.to.member": "why"}: members of the JSON that cannot or should not come out as
             they were, e.g. a typing error in the document; exactly these differ
  unequal    why the events that come back are not the ones that went out
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import READABLE, content, decoded, encode_settings_of, encoded
from paths import CASES, DOCS

from headgate.core.event import Event
from headgate.core.json import escape_control_characters

DOCUMENTS = (DOCS / "conformance.md").read_text()
DOCUMENTS = DOCUMENTS.partition("## Vendors' documents")[2].partition("\n## ")[0]
EXAMPLES = [CASES / name for name in re.findall(r"`([a-z-]+/[\w.-]+)`", DOCUMENTS)]
EXAMPLES = sorted({folder for folder in EXAMPLES if (folder / "expect.json").exists()})


def plain(event: Event) -> Event:
    """An event as it comes back: rows are written one by one, and JSON is on one line."""
    extra = {n: v.replace("\n", " ") for n, v in (event.extra or {}).items()} or None
    if event.format == "debezium":
        return msgspec.structs.replace(event, extra=extra)
    position = {n: v for n, v in (event.position or {}).items() if n != "row"} or None
    return msgspec.structs.replace(event, position=position, extra=extra)


@pytest.mark.parametrize("folder", READABLE, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_case_comes_back_as_the_same_events(folder: Path) -> None:
    events = decoded(folder, content(folder, "key"), content(folder, "value"))
    records = encoded(folder, events)
    again = [e for r in records for e in decoded(folder, r.key, r.value)]
    if events[0].kind != "tombstone" and events[0].format == "debezium":
        again = [e for e in again if e.kind != "tombstone"]  # one follows each delete
    equal = list(map(plain, events)) == list(map(plain, again))

    assert equal == ("unequal" not in encode_settings_of(folder)), [plain(e) for e in again]


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_documented_example_comes_back_as_the_same_json(folder: Path) -> None:
    key, value = content(folder, "key"), content(folder, "value")
    records = encoded(folder, decoded(folder, key, value))
    found = members(records[0].value)
    if key is not None:
        found |= members(records[0].key, "key")
    expected = members(value) | (members(key, "key") if key is not None else {})
    different = {p for p in expected.keys() | found.keys() if expected.get(p) != found.get(p)}

    assert set(encode_settings_of(folder).get("differs", {})) == different, {
        p: (expected.get(p), found.get(p)) for p in different
    }


BYTES = [f for f in READABLE if encode_settings_of(f).get("bytes")]


@pytest.mark.parametrize("folder", BYTES, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_producers_bytes_come_back(folder: Path) -> None:
    key, value = content(folder, "key"), content(folder, "value")
    record = encoded(folder, decoded(folder, key, value))[0]

    assert value == record.value
    if key is not None:
        assert key == record.key


class Digits(str):
    """A number, so that 1.10 is not "1.10" and not 1.1."""


def members(message: bytes | None, path: str = "") -> dict[str, Any]:
    """All leaves of a message by their path, numbers as their digits; frames are taken apart."""
    if message is None:
        return {path: None}
    if message.lstrip()[:1] not in (b"{", b'"', b"["):
        return framed(message, path)
    text = escape_control_characters(message).decode()
    return dict(leaves(json.loads(text, parse_float=Digits, parse_int=Digits, strict=False), path))


def framed(message: bytes, path: str) -> dict[str, Any]:
    """The parts of an Open Protocol key or value."""
    found: dict[str, Any] = {}
    at = 8 if path == "key" else 0
    number = 0
    while at < len(message):
        size = int.from_bytes(message[at : at + 8], "big")
        body = message[at + 8 : at + 8 + size]
        found |= members(body, f"{path}.{number}") if body else {f"{path}.{number}": b""}
        at, number = at + 8 + size, number + 1
    return found


def leaves(value: Any, path: str) -> Any:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            yield from leaves(inner, f"{path}.{i}" if path else str(i))
    else:
        yield path, (type(value).__name__, value) if isinstance(value, bool | str) else value
