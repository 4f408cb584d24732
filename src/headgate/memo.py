"""A cache of what repeats from message to message; bounded in bytes, as messages are hostile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headgate.limits import CACHED_BYTES, CACHED_KEY_BYTES

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """A function's results by its argument; a hit costs what a dictionary costs.

    A long argument is not kept, and all are forgotten when they grow past CACHED_BYTES.

    >>> length = Memo(len)
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
    if isinstance(key, tuple):
        return sum(map(weight, key), 64)
    return 64 + len(key) if isinstance(key, str | bytes) else 64
