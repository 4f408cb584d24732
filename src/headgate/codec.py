"""The one place that calls a decoder: events come back, whatever the bytes are."""

from __future__ import annotations

from headgate.errors import DecodeError, internal_error
from headgate.event import Event
from headgate.formats import Decode


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
            raise too_large(size, most_bytes)
        return decode(key, value, topic)
    except DecodeError as error:
        told = error.code, str(error)
    except Exception as error:
        told = internal_error(error)
    return [Event("invalid", error=told, raw=value, raw_key=key)]


def too_large(size: int, most_bytes: int) -> DecodeError:
    """The error for a message over the limit."""
    return DecodeError(
        "too-large",
        f"the message has {size} bytes, more than {most_bytes}",
        "raise max-message-bytes if it is real",
    )
