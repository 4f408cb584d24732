"""Reads Debezium's envelope, with and without a schema block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headgate.core.errors import DecodeError
from headgate.core.json import Raw, parse, reader
from headgate.formats._connect.decode_values import (
    MOST_PLANS,
    MOST_SCHEMA_BYTES,
)
from headgate.formats.debezium.source import (
    Source,
    Times,
    Transaction,
)

NO_SCHEMA = b"null"
NO_RAW = Raw(NO_SCHEMA)
_SCHEMA_FIRST, _PAYLOAD = b'{"schema":', b',"payload":'


class Envelope(Times, gc=False):
    """The envelope of all versions; other members are read from auxiliary messages."""

    op: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    source: Source | None = None
    transaction: Transaction | None = None


class Wire(Envelope, gc=False):
    """A message with or without the wrapper; its schema is cached by its bytes."""

    schema: Raw = NO_RAW
    payload: Envelope | UnsetType | None = UNSET


class RawImages(msgspec.Struct, gc=False):
    """The images only, with values as raw bytes."""

    before: dict[str, Raw] | None = None
    after: dict[str, Raw] | None = None


wire_reader = reader(Wire | None)
envelope_reader = reader(Envelope | None)
raw_images_reader = reader(RawImages)


Read = tuple[bytes, Envelope | None, bool, bytes]
"""The schema's bytes, the envelope, whether it was wrapped, and the bytes with the images."""


def make_reader() -> Callable[[bytes], Read]:
    """A function that reads a message.

    Kafka's converter writes `{"schema":…,"payload":…}` with the same kilobytes of schema each time.
    A schema that was read once is recognised by its bytes and not parsed again.
    """
    known_starts: dict[bytes, bytes] = {}

    def read(value: bytes) -> Read:
        end = 0
        if value.startswith(_SCHEMA_FIRST) and value.endswith(b"}"):
            end = value.find(_PAYLOAD) + len(_PAYLOAD)
            schema = known_starts.get(value[:end])
            if schema is not None:
                payload = value[end:-1]
                try:
                    return schema, parse(envelope_reader, payload), True, payload
                except DecodeError:
                    end = 0  # parsing the whole message gives a better error
        message = parse(wire_reader, value)
        if message is None:
            return NO_SCHEMA, None, False, value
        schema = NO_SCHEMA if message.schema is NO_RAW else bytes(message.schema)
        if message.payload is UNSET:
            return schema, message, False, value
        start = _SCHEMA_FIRST + schema + _PAYLOAD
        if value[:end] == start and end <= MOST_SCHEMA_BYTES:
            if len(known_starts) >= MOST_PLANS:
                known_starts.clear()
            known_starts[start] = schema
        return schema, message.payload, True, value

    return read
