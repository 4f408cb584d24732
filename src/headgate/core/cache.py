"""A cache of what repeats from message to message; bounded in bytes, as messages are hostile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from headgate.core.event import Types
from headgate.core.limits import CACHED_BYTES, CACHED_KEY_BYTES

K = TypeVar("K")
V = TypeVar("V")

MOST_PLANS = 1_000


class BoundedCache(dict[K, V]):
    """A function's results by its argument; a hit costs what a dictionary costs.

    A long argument is not kept, and all are forgotten when they grow past CACHED_BYTES.

    >>> length = BoundedCache(len)
    >>> length["abc"], "abc" in length
    (3, True)
    """

    def __init__(self, make: Callable[[K], V]) -> None:
        self.make = make
        self.bytes = 0

    def __missing__(self, key: K) -> V:
        value = self.make(key)
        size = weight(key)
        if size <= CACHED_KEY_BYTES:
            self.bytes += size
            if self.bytes > CACHED_BYTES:
                self.clear()
                self.bytes = size
            self[key] = value
        return value


def weight(key: Any) -> int:
    """About how many bytes an argument holds.

    >>> weight(("id", b"abc", None)) < weight(("identity", b"abc", None))
    True
    """
    if isinstance(key, tuple | frozenset):
        return sum(map(weight, key), 64)
    return 64 + len(key) if isinstance(key, str | bytes) else 64


class PerTypeMap(Generic[V]):
    """What a type map means to an encoder, made once per map.

    Events of a table share one map object, so the one asked for last is looked at first, then all
    by identity, then by content.

    >>> plans = PerTypeMap(lambda types: list(types or ()))
    >>> from headgate.core.event import ColumnType
    >>> plans(None), plans({"id": ColumnType("int")})
    ([], ['id'])
    """

    def __init__(self, make: Callable[[Types | None], V]) -> None:
        self.make = make
        self.by_identity: dict[int, tuple[Types | None, V]] = {}
        self.by_content: dict[Any, V] = {}
        self.latest: tuple[Any, Any] = (object(), None)  # a type map and its plan; none yet

    def __call__(self, types: Types | None) -> V:
        """The plan of a type map."""
        latest = self.latest
        if latest[0] is not types:
            latest = self.latest = self.find(types)
        plan: V = latest[1]
        return plan

    def find(self, types: Types | None) -> tuple[Types | None, V]:
        """A type map that is not the latest, and its plan."""
        entry = self.by_identity.get(id(types))
        if entry is not None and entry[0] is types:
            return entry
        content = None if types is None else tuple(types.items())
        if content not in self.by_content:
            if len(self.by_content) >= MOST_PLANS:
                self.by_content.clear()
            self.by_content[content] = self.make(types)
        entry = (types, self.by_content[content])
        if len(self.by_identity) >= MOST_PLANS:
            self.by_identity.clear()
        self.by_identity[id(types)] = entry  # the map stays alive, so its id is not reused
        return entry
