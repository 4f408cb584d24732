"""Decoding with a table schema: exact types, keys, labels, and values in the form of their type."""

from __future__ import annotations

from headgate.codec.schemas import Schemas
from headgate.core.event import Event
from headgate.formats.base import Decode


def informed(decode: Decode, schemas: Schemas) -> Decode:
    """A decoder whose rows have the types, keys and labels of a schema.

    >>> from headgate.formats import decoder
    >>> known = Schemas("CREATE TABLE t (e ENUM('a','b') PRIMARY KEY)")
    >>> m = b'{"database":"d","table":"t","type":"INSERT","isDdl":false,"id":1,"data":[{"e":"2"}]}'
    >>> informed(decoder("canal-json"), known)(None, m, None)[0].after
    {'e': 'b'}
    """

    def run(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        events = decode(key, value, topic)
        for event in events:
            schemas.complete(event)
        return events

    return run


def keyed(decode: Decode, schemas: Schemas) -> Decode:
    """A decoder whose rows have the keys of a schema, and are else as they came."""

    def run(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        events = decode(key, value, topic)
        for event in events:
            schemas.give_key(event)
        return events

    return run
