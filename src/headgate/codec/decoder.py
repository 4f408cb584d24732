"""One message to events: the decoder of a format, with a table schema if one is given."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from headgate.codec.schemas import Schemas
from headgate.core.errors import DecodeError, internal_error
from headgate.core.event import Event
from headgate.core.limits import KEPT_BYTES
from headgate.core.options import build
from headgate.formats import load, split
from headgate.formats.base import Decode
from headgate.formats.detect import auto_decoder
from headgate.formats.foreign import refusal

UNCLEAR = frozenset(
    {"unrecognised", "malformed-json", "invalid-utf8", "wrong-type", "unknown-type",
     "missing-member"}
)  # fmt: skip
"""Errors that a message of another system gives, too."""


def decoder(spec: str = "auto", **options: Any) -> Decode:
    """The function that decodes one message of a format; plain Python, no Spark.

    >>> decode = decoder("maxwell")
    >>> m = b'{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
    >>> decode(None, m, None)[0].after
    {'id': '1.10'}
    """
    name, dialect = split(spec)
    if name == "auto":
        decode = auto_decoder(options)
    else:
        format = load(name)
        decode = format.decoder(dialect, build(format.options, options))
    schema = options.get("schema")
    return decode if schema is None else with_schema(decode, Schemas(schema, options))


def with_schema(decode: Decode, schemas: Schemas) -> Decode:
    """A decoder whose rows have the types, keys and labels of a schema.

    >>> known = Schemas("CREATE TABLE t (e ENUM('a','b') PRIMARY KEY)")
    >>> m = b'{"database":"d","table":"t","type":"INSERT","isDdl":false,"id":1,"data":[{"e":"2"}]}'
    >>> with_schema(decoder("canal-json"), known)(None, m, None)[0].after
    {'e': 'b'}
    """
    return _followed_by(decode, schemas.complete)


def with_keys(decode: Decode, schemas: Schemas) -> Decode:
    """A decoder whose rows have the keys of a schema; all else stays as it was sent."""
    return _followed_by(decode, schemas.give_key)


def _followed_by(decode: Decode, step: Callable[[Event], object]) -> Decode:
    def run(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        events = decode(key, value, topic)
        for event in events:
            step(event)
        return events

    return run


def decode_message(
    decode: Decode, key: bytes | None, value: bytes | None, topic: str | None, most_bytes: int
) -> list[Event]:
    """Decode one message; one that cannot be decoded gives exactly one `invalid` event.

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
        named = refusal(key, value) if error.code in UNCLEAR else None
        reason = (named or error).code, str(named or error)
    except Exception as error:
        reason = internal_error(error)
    return [Event("invalid", error=reason, raw=value, raw_key=key)]


def too_large(key: bytes | None, value: bytes | None, what: str, most_bytes: int) -> Event:
    """The event of a message over the limit, with its beginning only; `what` tells of the whole."""
    error = DecodeError(
        "too-large",
        f"the message has {what}, more than {most_bytes}",
        "raise max-message-bytes if it is real",
    )
    cut = [each and each[:KEPT_BYTES] for each in (value, key)]
    return Event("invalid", error=(error.code, str(error)), raw=cut[0], raw_key=cut[1])


def size_and_hash(size: int, sha256: str) -> str:
    """What is reported of a message that is not kept: its bytes, and the hash of its value.

    >>> size_and_hash(20_000_000, "44136f…")
    '20000000 bytes (the value has the SHA-256 44136f…)'
    """
    return f"{size} bytes (the value has the SHA-256 {sha256})"
