"""Partition rules: how the producers of formats choose a message's Kafka partition.

Whoever replaces a producer must send each row where its later changes will go. docs/dispatch.md has
the rules and the formulas; a format gives its rules with its `Encoding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from struct import unpack
from typing import NamedTuple
from zlib import crc32

from headgate.core.cache import BoundedCache
from headgate.core.errors import HeadgateError, shown
from headgate.core.event import Event, Image

Partition = Callable[[Event], tuple["int | None", ...]]
"""The partitions a message of this event goes to; (None,) leaves the choice to Kafka."""

Hash = Callable[[Event], int]
"""A number whose size, modulo the number of partitions, is the partition."""


class DispatchError(HeadgateError):
    """An event cannot be given a partition, because what its rule hashes is not there."""

    code = "dispatch"


class RuleOptions(NamedTuple):
    """What a rule may go by: the columns that are listed, and the zone of the producer."""

    columns: tuple[str, ...]
    zone: str


def with_ddl_first(rule: str, row: Hash, count: int, broadcast_ddl: bool) -> Partition:
    """Rows by their hash, watermarks to all partitions, all else to the first; DDL as asked for."""

    def choose(event: Event) -> tuple[int, ...]:
        kind = event.kind
        if kind == "row" and event.op != "truncate":
            return (abs(row(event)) % count,)
        broadcast = kind == "watermark" or (broadcast_ddl and kind in ("ddl", "row"))
        return tuple(range(count)) if broadcast else (0,)

    return choose


@dataclass(frozen=True)
class PartitionRules:
    """One producer's rules."""

    producer: str
    default: str | None
    """The rule it goes by if none is named; None: all goes to the first partition."""
    rules: Mapping[str, Callable[[RuleOptions], Hash]]
    aliases: Mapping[str, str]
    """What else the producer calls them."""
    partition: Callable[[str, Hash, int, bool], Partition] = with_ddl_first
    """From a rule's name, its hash, how many partitions there are, whether DDL goes to all."""
    split_update: Callable[[Event], tuple[Event, Event]] | None = None
    """The two events of which an update's two messages are, each with a partition of its own."""


def row_of(event: Event) -> Image:
    """The image whose values count: the row after the change, of a delete the row before it."""
    first, second = event.after, event.before
    if event.op == "delete":
        first, second = second, first
    return first if first is not None else second or {}


def missing(name: str) -> DispatchError:
    """The error for a row without a column that is hashed."""
    return DispatchError(
        f"the row has no column {shown(name)}, which chooses its partition; "
        "choose another rule or other columns"
    )


table_crc: BoundedCache[tuple[str, str], int] = BoundedCache(
    lambda names: crc32("".join(names).encode())
)
"""CRC-32 of database and table, one after the other."""


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: 32 bits, signed, over UTF-16 code units.

    >>> java_hash("user"), java_hash("polygenelubricants")
    (3599307, -2147483648)
    """
    units: Iterable[int]
    if text.isascii():
        units = text.encode()
    else:
        wide = text.encode("utf-16-le")
        units = unpack(f"<{len(wide) // 2}H", wide)
    total = 0
    for unit in units:
        total = (31 * total + unit) & 0xFFFFFFFF
    return total - 2**32 if total >= 2**31 else total


# Producers in Java take abs(abs(h) % n) or abs(h % n), both in 32 bits, where abs(-2^31) is
# negative and % keeps the sign. In Python's integers both are abs(h) % n.
name_hash: BoundedCache[str, int] = BoundedCache(java_hash)
"""Java's hash of names, which repeat."""
