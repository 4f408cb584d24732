"""Canal's partition rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headgate.core.cache import BoundedCache
from headgate.core.event import ColumnType, Event
from headgate.core.mysql_types import parse_type
from headgate.core.values import Convert, local
from headgate.formats._canal.values import ANY_SOURCE, canal_writer, text_of
from headgate.formats.partitioning import (
    Hash,
    PartitionRules,
    RuleOptions,
    java_hash,
    name_hash,
    row_of,
)


def hashed_text(column: ColumnType | None, to_local: Convert | None) -> Convert | None:
    """A function from canonical text to the text that Canal hashes; None if it is the same."""
    type_ = parse_type(column.mysql if column else None)
    return text_of(canal_writer(type_, ANY_SOURCE, to_local))


def canal_hash(zone: str) -> Callable[[Event, Iterable[str]], int]:
    """The hash of the database XORed with that of each column's value; NULL and "" hash to 0.

    >>> canal_hash("UTC")(Event("row", "insert", "test", "t", after={"id": "abc"}), ["id"])
    3620080
    """
    to_local = local(zone)
    converters: BoundedCache[ColumnType | None, Convert | None] = BoundedCache(
        lambda column: hashed_text(column, to_local)
    )

    def total(event: Event, names: Iterable[str]) -> int:
        image = row_of(event)
        if not image:  # Canal writes messages without rows to the first partition
            return 0
        types = event.types or {}
        total = name_hash[event.database or ""]
        for name in names:
            value = image.get(name)
            if value is not None:
                convert = converters[types.get(name)]
                total ^= java_hash(convert(value) if convert else value)
        return total

    return total


def canal_key(options: RuleOptions) -> Hash:
    """By primary key."""
    total = canal_hash(options.zone)
    return lambda event: total(event, event.key or ())


def canal_columns(options: RuleOptions) -> Hash:
    """By the listed columns."""
    total = canal_hash(options.zone)
    return lambda event: total(event, options.columns)


CANAL = PartitionRules(
    "canal",
    None,
    {
        "table": lambda _: lambda event: name_hash[event.table or ""],
        "primary-key": canal_key,
        "columns": canal_columns,
    },
    {"pk-hash": "primary-key", "$pk$": "primary-key", "index-value": "primary-key"},
)
