"""Options of decoders: bad ones are usage errors, limits and compression are obeyed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from messages import canal

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.event_lines import line
from headgate.core.errors import UsageError
from headgate.core.event import Event
from headgate.core.limits import MAX_MESSAGE_BYTES


def events(spec: str, value: bytes | None, key: bytes | None = None, **options: Any) -> list[Event]:
    found = decode_message(decoder(spec, **options), key, value, None, MAX_MESSAGE_BYTES)
    for event in found:
        line(event)  # what cannot be printed is as bad as what cannot be decoded
    return found


def code(event: Event) -> str | None:
    return event.error[0] if event.error else None


@pytest.mark.parametrize("text", ["--5", "²", "", "9" * 5_000])
def test_an_option_that_is_no_number_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="max-message-bytes"):
        decoder("maxwell", max_message_bytes=text)


def test_an_option_of_none_is_as_if_not_given() -> None:
    assert "row" == events("auto", canal(), timezone=None, max_message_bytes=None)[0].kind


@pytest.mark.parametrize("spec", ["canal-json", "auto"])
@pytest.mark.parametrize("length", range(115, 132))
def test_a_snappy_message_of_any_length_is_unpacked(spec: str, length: int) -> None:
    message = b'{"type":"QUERY","isDdl":true,"id":1,"database":"%s","sql":"x"}'
    message = message.replace(b"%s", b"d" * (length - len(message) + 2))
    assert length == len(message)
    packed = pa.compress(message, "snappy", asbytes=True)

    assert ["ddl"] == [e.kind for e in events(spec, packed, compression="snappy")]


def test_auto_obeys_a_raised_message_limit() -> None:
    message = canal(data=[{"id": "x" * MAX_MESSAGE_BYTES}])
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "lz4") as stream:
        stream.write(message)
    found = events("auto", packed.getvalue().to_pybytes(), max_message_bytes=10 * MAX_MESSAGE_BYTES)

    assert ["row"] == [e.kind for e in found]
