"""TiCDC Open Protocol's frames: lengths and bodies in key and value; the key has a version."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat, zip_longest
from struct import Struct

from headgate.core.errors import DecodeError
from headgate.core.limits import MAX_EVENTS_PER_MESSAGE

VERSION = (1).to_bytes(8, "big")
_version_and_length = Struct(">QQ").unpack_from
_length = Struct(">Q").unpack_from


def frames(data: bytes, start: int = 0) -> Iterator[bytes]:
    """The bodies of a sequence of length-prefixed frames; lengths are checked before use.

    >>> list(frames(bytes(7) + b"\\x02{}" + bytes(8)))
    [b'{}', b'']
    """
    end = len(data)
    while start < end:
        if end - start < 8:
            raise malformed(f"{end - start} bytes are left where an 8-byte length should be")
        length = int.from_bytes(data[start : start + 8], "big")
        start += 8
        if length > end - start:
            raise malformed(f"a frame claims {length} bytes and {end - start} are left")
        yield data[start : start + length]
        start += length


def malformed(what: str) -> DecodeError:
    """The error for bytes that are not valid frames."""
    return DecodeError(
        "malformed-frame", what, "check that key and value are the whole, unchanged Kafka record"
    )


def check_version(key: bytes | None) -> None:
    """Reject a key that does not start with protocol version 1."""
    if key is not None and key[:8] == VERSION:
        return
    if not key or len(key) < 8:
        raise malformed(f"the key has {len(key or b'')} bytes, too few for a protocol version")
    if key[:1] == b"{":
        raise malformed("the key is bare JSON, without version and length")
    raise malformed("the protocol version is not 1")


def pairs(key: bytes, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
    """Each event key with its value body; bodies are None if the message has no value."""
    events: list[tuple[bytes, bytes | None]] = []
    nothing: Iterator[None] = repeat(None)
    keys = frames(key, 8)
    for event_key, body in zip_longest(keys, frames(value)) if value else zip(keys, nothing):
        if value and (event_key is None or body is None):
            more = "values than keys" if event_key is None else "keys than values"
            raise malformed(f"the message has more {more}")
        if not event_key:
            raise malformed("an event key is empty")
        if len(events) == MAX_EVENTS_PER_MESSAGE:
            raise DecodeError(
                "too-large", f"more than {len(events)} events in one message", "drop it"
            )
        events.append((event_key, body))
    return events


def single(key: bytes, value: bytes) -> bool:
    """Whether a message is exactly one pair, as most are; cheaper than iterating over frames."""
    return (
        len(key) > 16
        and len(value) >= 8
        and _version_and_length(key) == (1, len(key) - 16)
        and _length(value) == (len(value) - 8,)
    )
