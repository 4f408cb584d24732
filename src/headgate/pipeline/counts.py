"""Counts by table: what a job keeps for ever, so names are short and tables a bounded number."""

from __future__ import annotations

from hashlib import blake2b

MOST_NAME = 256
"""The longest name that is kept whole, in characters; databases allow at most three times 128."""
MOST_TABLES = 5_000
OTHERS = "(other tables)"
"""Under this name the tables are counted that come when so many are known already."""


def short_name(name: str) -> str:
    """A name that is kept: a long one is cut, and a hash tells it from others that start alike.

    >>> short_name("shop.orders"), len(short_name("x" * 100_000))
    ('shop.orders', 256)
    """
    if len(name) <= MOST_NAME:
        return name
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{name[: MOST_NAME - 1 - len(digest)]}~{digest}"


def add_table(to: dict[str, dict[str, int]], table: str, counts: dict[str, int]) -> None:
    """Add a table's counts to those of all tables.

    >>> found = {}
    >>> add_table(found, "shop.orders", {"insert": 1})
    >>> found
    {'shop.orders': {'insert': 1}}
    """
    name = short_name(table)
    if name not in to and len(to) >= MOST_TABLES:
        name = OTHERS
    add_counts(to.setdefault(name, {}), counts)


def add_counts(to: dict[str, int], more: dict[str, int]) -> None:
    """Add counts to counts."""
    for name, n in more.items():
        to[name] = to.get(name, 0) + n
