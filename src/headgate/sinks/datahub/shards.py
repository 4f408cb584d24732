"""The active shards of a topic, and which of them a record goes to.

Every record has a *hash key*, a number of 128 bits, and a shard owns a range of them. A shard that
is split or merged hands its range on, so that the hash key alone says where a record goes next.
The shards of a topic that is scaled horizontally have no ranges of their own; there a record goes
by the remainder of its hash key, as the vendor's documentation asks of applications.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import md5
from typing import NamedTuple, Self

HASH_KEYS = 1 << 128


class Shard(NamedTuple):
    """An active shard; its range includes `begin` and excludes `end`."""

    id: str
    begin: int
    end: int


@dataclass(frozen=True)
class Shards:
    """The active shards of a topic, in the order of their ranges, else of their numbers."""

    ids: tuple[str, ...]
    begins: tuple[int, ...] = ()
    """Where their ranges begin; empty where they have none of their own."""

    @classmethod
    def of(cls, active: Iterable[Shard]) -> Self | None:
        """The active shards of a topic; None while they leave gaps, as in the middle of a split.

        >>> Shards.of([Shard("1", 1 << 127, HASH_KEYS - 1), Shard("0", 0, 1 << 127)]).ids
        ('0', '1')
        >>> Shards.of([Shard("1", 1 << 127, HASH_KEYS - 1)]) is None
        True
        """
        shards = sorted(active, key=lambda shard: (shard.begin, len(shard.id), shard.id))
        if not shards:
            return None
        ids = tuple(shard.id for shard in shards)
        ranges = {(shard.begin, shard.end) for shard in shards}
        if len(ranges) == 1 and (len(shards) > 1 or shards[0].begin >= shards[0].end):
            return cls(ids)
        reached = 0
        for shard in shards:
            if shard.begin > reached:
                return None
            reached = shard.end
        if reached < HASH_KEYS - 1:
            return None
        return cls(ids, tuple(shard.begin for shard in shards))

    def hash_key_of(self, partition: int) -> int:
        """A hash key that belongs to a shard by its number, as formats choose partitions.

        >>> shards = Shards(("0", "7"), (0, 1 << 127))
        >>> shards.owner(shards.hash_key_of(1))
        '7'
        """
        return self.begins[partition % len(self.begins)] if self.begins else partition

    def owner(self, hash_key: int) -> str:
        """The shard of a hash key.

        >>> Shards(("0", "1", "2")).owner(4)
        '1'
        """
        if not self.begins:
            return self.ids[hash_key % len(self.ids)]
        return self.ids[bisect_right(self.begins, hash_key) - 1]


def hash_key(key: bytes) -> int:
    """The hash key of a message's key: its MD5, as DataHub has it of a partition key.

    >>> hash_key(b"1") >> 112
    50378
    """
    return int.from_bytes(md5(key, usedforsecurity=False).digest())
