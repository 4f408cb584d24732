"""Which format a message is in: every format says whether it recognises it, and one should."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any

from msgspec import Raw

from headgate.core.compression import decompressor, is_json
from headgate.core.errors import DecodeError, shown
from headgate.core.event import Event
from headgate.core.json import escape_control_characters, members, parse
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.formats import load, registered, share
from headgate.formats.base import Decode, Sniffed

unpack_lz4 = decompressor("auto", MAX_MESSAGE_BYTES)


def candidates(
    key: bytes | None,
    value: bytes | None,
    unpack: Callable[[bytes], bytes] = unpack_lz4,
    most: int | None = None,
) -> list[str]:
    """The formats that recognise a message, most likely first; raises where it is not JSON at all.

    At most `most` of them: each costs time.

    >>> candidates(None, b'{"type":"INSERT","isDdl":false}')
    ['canal-json']
    """
    first = None if value is None else first_object(key, value, unpack)
    sniffed = Sniffed(key, members_of(first) if first is not None else {})
    names = (name for name, recognises in recognisers().items() if recognises(sniffed))
    return list(islice(names, most))


def first_object(key: bytes | None, value: bytes, unpack: Callable[[bytes], bytes]) -> bytes | None:
    """The JSON object that says what a message is; None where only its key does."""
    for first in unframers():
        payload = first(key, value)
        if payload is not None:
            return payload or None
    return unpack(value)


@cache
def unframers() -> list[Callable[[bytes | None, bytes], bytes | None]]:
    """What takes the messages of framed formats apart, looked up once."""
    return [first for name in registered() if (first := load(name).first_object) is not None]


@cache
def recognisers() -> dict[str, Callable[[Sniffed], bool]]:
    """Each format's own test, looked up once."""
    return {name: load(name).recognises for name in registered()}


def members_of(value: bytes) -> Mapping[str, Raw]:
    """The members of a message, also where control characters are not escaped as JSON has it."""
    try:
        result: Mapping[str, Raw] = parse(members, value)
    except DecodeError as error:
        escaped = escape_control_characters(value)
        if error.code != "malformed-json" or escaped == value:
            raise
        result = parse(members, escaped)
    return result


def auto_decoder(options: Mapping[str, Any]) -> Decode:
    """A decoder that detects the format of each message by itself, also in a mixed topic."""
    shared = share(options)
    decoders = {name: load(name).decoder(None, shared[name]) for name in registered()}
    common = next(each for each in shared.values() if hasattr(each, "compression"))
    decompress = decompressor(common.compression, common.max_message_bytes)
    tombstone = next(decoders[name] for name in registered() if load(name).traits.tombstones)

    def unpack(value: bytes) -> bytes:
        return value if is_json(value) else decompress(value)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is not None and value.strip() == b"null":
            value = None  # Kafka Connect's tombstone without schemas
        names = candidates(key, value, unpack, None if common.strict else 1)
        if not names:
            if value is None:
                return tombstone(key, value, topic)
            raise unrecognised(unpack(value))
        if common.strict and len(names) > 1:
            raise DecodeError(
                "ambiguous-format", f"the message can be {' or '.join(names)}", "name the format"
            )
        return decoders[names[0]](key, value, topic)

    return decode


def unrecognised(value: bytes) -> DecodeError:
    """The error for a JSON object that no format claims; it names members, never values."""
    names = ", ".join(shown(name, 40) for name in list(members_of(value))[:8])
    return DecodeError(
        "unrecognised",
        f"no format has a message with the members {names or '(none)'}",
        "name the format, if the message is CDC at all",
    )
