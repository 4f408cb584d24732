"""The primary key's columns, as Maxwell's messages and their Kafka keys name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headgate.core.cache import BoundedCache
from headgate.core.json import parse, reader
from headgate.core.values import Convert

_names = reader(list[str] | None)
_kafka_key = reader(Any)


def _key_names(sent: bytes) -> tuple[str, ...] | None:
    names = parse(_names, sent)
    return None if names is None else tuple(names)


key_names: Callable[[bytes], tuple[str, ...] | None] = BoundedCache(_key_names).__getitem__
"""The names in `primary_key_columns`; made once, because every message repeats them."""


def kafka_key(key: bytes, row: dict[str, Any]) -> tuple[str, ...] | None:
    """The columns that Maxwell's Kafka key names, spelled as the row spells them.

    >>> kafka_key(b'{"database":"d","table":"t","pk.userid":1}', {"UserId": "1"})
    ('UserId',)
    """
    try:
        sent = _kafka_key.decode(key)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None  # some other producer's key, or the bare UUID of a DDL message
    if sent.__class__ is dict:
        names = hash_names(tuple(sent))
    elif sent.__class__ is list and len(sent) == 3 and sent[2].__class__ is list:
        names = tuple(n for part in sent[2] if part.__class__ is dict for n in part)
    else:
        return None
    for name in names or ():
        if name not in row:
            return spelled(names or (), row)
    return names


def _hash_names(members: tuple[str, ...]) -> tuple[str, ...] | None:
    names = tuple(n[3:] for n in members if n.startswith("pk."))
    return names if names or "_uuid" in members else None


hash_names: Callable[[tuple[str, ...]], tuple[str, ...] | None] = BoundedCache(
    _hash_names
).__getitem__
"""The columns among the members of a Kafka key; `_uuid` stands for a table without a key."""


def spelled(names: tuple[str, ...], row: dict[str, Any]) -> tuple[str, ...]:
    """Names of the Kafka key, which are in lower case and in snake_case, as the row spells them."""
    folds: list[Convert] = [str.lower, lambda n: n.lower().replace("_", "")]
    indexes: list[dict[str, list[str]]] = [{} for _ in folds]
    for fold, index in zip(folds, indexes):
        for name in row:
            index.setdefault(fold(name), []).append(name)

    def spell(name: str) -> str:
        if name in row:
            return name
        candidates = (index.get(fold(name), ()) for fold, index in zip(folds, indexes))
        return next((matches[0] for matches in candidates if len(matches) == 1), name)

    return tuple(map(spell, names))
