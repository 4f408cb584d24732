"""No sentence of an error holds a value of a message: sentences go to logs, status and metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cases import FOLDERS, content
from effort import one_in

from headgate.codec.decoder import decode_message, decoder
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.formats import MODULES

CANARY = "canary5f1d"
NUMBER = 8_273_645_192
"""Of a kind that no sentence has by itself."""
DEEP = {"a": [CANARY]}


def changed(value: Any) -> Iterator[Any]:
    """A message again and again, each time with another of its values replaced by a canary."""
    if isinstance(value, dict):
        for name, inner in value.items():
            for other in changed(inner):
                yield {**value, name: other}
    elif isinstance(value, list):
        for at, inner in enumerate(value[:3]):
            for other in changed(inner):
                yield [*value[:at], other, *value[at + 1 :]]
    yield from (CANARY, NUMBER, f"{CANARY}.5", DEEP, [CANARY])


def objects() -> Iterator[tuple[str, bytes | None, Any]]:
    """Format, key and value of every golden message that is a JSON object."""
    for folder in FOLDERS:
        value = content(folder, "value") or b""
        if len(value) < 4_000 and value[:1] == b"{":
            try:
                yield folder.parent.name, content(folder, "key"), json.loads(value)
            except ValueError:
                continue


@pytest.mark.parametrize("format", one_in(3, MODULES))
def test_no_value_of_a_message_is_in_the_sentence_of_its_error(format: str) -> None:
    decoders = [decoder(format), decoder("auto")]
    told = set()
    for name, key, message in objects():
        if name != format:
            continue
        for other in changed(message):
            value = json.dumps(other).encode()
            for decode in decoders:
                for own in {key, key and json.dumps({"id": CANARY}).encode()}:
                    (first, *_) = decode_message(decode, own, value, None, MAX_MESSAGE_BYTES)
                    told.add(": ".join(first.error or ()))
    assert not any("internal-error" in said for said in told)
    assert [] == [said for said in told if CANARY in said or str(NUMBER) in said]
    assert len(told) > 1 or format == "open-protocol"


def test_the_version_in_a_key_is_not_told() -> None:
    (event,) = decode_message(decoder("open-protocol"), b"canary5f" * 2, b"{}", None, 1_000)
    assert event.error is not None
    assert str(int.from_bytes(b"canary5f", "big")) not in event.error[1]
