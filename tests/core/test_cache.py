"""Caches are bounded, in entries and in bytes."""

from __future__ import annotations

from headgate.core.cache import BoundedCache
from headgate.core.limits import CACHED_BYTES, CACHED_KEY_BYTES


def test_a_cache_is_bounded_in_bytes() -> None:
    sizes = BoundedCache(len)
    for i in range(200):
        assert CACHED_KEY_BYTES // 2 == sizes[f"{i}".ljust(CACHED_KEY_BYTES // 2)]
    assert sum(map(len, sizes)) <= CACHED_BYTES
    assert CACHED_KEY_BYTES == sizes["x" * CACHED_KEY_BYTES]
    assert "x" * CACHED_KEY_BYTES not in sizes
