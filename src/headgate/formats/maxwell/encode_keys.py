"""The primary key in Maxwell's messages, and their Kafka keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from headgate.core.event import Event
from headgate.formats.maxwell.encode_values import Message, finish

_values = msgspec.json.Decoder(list[Raw])


def key_values(
    key: tuple[str, ...], row: Mapping[str, Any], extra: Mapping[str, str]
) -> list[Any] | None:
    """The key's values, from `primary_key` if the row lacks one of its columns."""
    try:
        return [row[name] for name in key]
    except KeyError:
        pass
    try:
        values = _values.decode(extra.get("primary_key", "[]"))
    except msgspec.MsgspecError:
        return None
    return list(values) if len(values) == len(key) else None


def hash_key(event: Event, key: tuple[str, ...], values: list[Any]) -> bytes:
    """Maxwell's default Kafka key.

    >>> hash_key(Event("row", "insert", "shop", "t"), ("Id",), [1])
    b'{"database":"shop","table":"t","pk.id":1}'
    """
    message: Message = {"database": event.database, "table": event.table}
    for name, value in zip(key, values):
        message[f"pk.{name.lower()}"] = value
    return finish(message)


def array_key(event: Event, key: tuple[str, ...], values: list[Any]) -> bytes:
    """The Kafka key with kafka_key_format=array.

    >>> array_key(Event("row", "insert", "shop", "t"), ("Id",), [1])
    b'["shop","t",[{"id":1}]]'
    """
    columns = [{name.lower(): value} for name, value in zip(key, values)]
    return finish([event.database, event.table, columns])
