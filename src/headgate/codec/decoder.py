"""The one place that calls a decoder: events come back, whatever the bytes are."""

from __future__ import annotations

import hashlib

from headgate.core.errors import DecodeError, internal_error
from headgate.core.event import Event
from headgate.core.limits import KEPT_BYTES
from headgate.formats.base import Decode


def decode_message(
    decode: Decode, key: bytes | None, value: bytes | None, topic: str | None, most_bytes: int
) -> list[Event]:
    """Decode one message; one that cannot be decoded gives exactly one `invalid` event.

    >>> from headgate.formats import decoder
    >>> decode_message(decoder("canal-json"), None, b"{", None, 1000)[0].error[0]
    'malformed-json'
    """
    try:
        size = len(value or b"") + len(key or b"")
        if size > most_bytes:
            what = size_and_hash(size, hashlib.sha256(value or b"").hexdigest())
            return [too_large(key, value, what, most_bytes)]
        return decode(key, value, topic)
    except DecodeError as error:
        told = error.code, str(error)
    except Exception as error:
        told = internal_error(error)
    return [Event("invalid", error=told, raw=value, raw_key=key)]


def too_large(key: bytes | None, value: bytes | None, what: str, most_bytes: int) -> Event:
    """The event of a message over the limit, with its beginning only; `what` tells of the whole."""
    error = DecodeError(
        "too-large",
        f"the message has {what}, more than {most_bytes}",
        "raise max-message-bytes if it is real",
    )
    kept = [each and each[:KEPT_BYTES] for each in (value, key)]
    return Event("invalid", error=(error.code, str(error)), raw=kept[0], raw_key=kept[1])


def size_and_hash(size: int, sha256: str) -> str:
    """What is told of a message that is not kept: its bytes, and the hash of its value.

    >>> size_and_hash(20_000_000, "44136f…")
    '20000000 bytes (the value has the SHA-256 44136f…)'
    """
    return f"{size} bytes (the value has the SHA-256 {sha256})"
