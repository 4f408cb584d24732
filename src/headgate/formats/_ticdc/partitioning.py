"""Partitions as TiCDC chooses them, in both of its architectures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple
from zlib import crc32

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event
from headgate.core.mysql_types import parse_type
from headgate.core.values import Convert, base64_bytes, local
from headgate.formats._canal.values import as_written
from headgate.formats._ticdc.keys import halves, handle_key
from headgate.formats.partitioning import (
    Hash,
    PartitionRules,
    RuleOptions,
    missing,
    row_of,
    table_crc,
)

TicdcHash = Callable[[Event, Iterable[str]], int]


def ticdc_hash(zone: str = "UTC", skips_null: bool = False) -> TicdcHash:
    """CRC-32 of the table's name, XOR that of each column's name and value.

    `skips_null` is the new architecture's way; the classic one hashes the word.

    >>> ticdc_hash()(Event("row", "insert", "test", "t1", after={"a": "11"}), ())
    1079797119
    """
    to_local = local(zone)
    columns: BoundedCache[tuple[str, ColumnType | None], ColumnCrc] = BoundedCache(
        lambda told: column_crc(*told, to_local)
    )

    def total(event: Event, names: Iterable[str]) -> int:
        types = event.types or {}
        image = row_of(event)
        total = table_crc[event.database or "", event.table or ""]
        for name in names:
            start, null, to_bytes = columns[name, types.get(name)]
            if name not in image:
                raise missing(name)
            value = image[name]
            if value is not None:
                total ^= crc32(to_bytes(value), start)
            elif not skips_null:
                total ^= null
        return total

    return total


class ColumnCrc(NamedTuple):
    """What is the same for all values of a column: CRC-32 of its name, and of its name and NULL."""

    start: int
    null: int
    to_bytes: Callable[[str], bytes]


def column_crc(name: str, told: ColumnType | None, to_local: Convert | None) -> ColumnCrc:
    """Prepare one column."""
    start = crc32(name.encode())
    return ColumnCrc(start, crc32(b"null", start), ticdc_bytes(told, to_local))


def ticdc_bytes(told: ColumnType | None, to_local: Convert | None) -> Callable[[str], bytes]:
    """A function from canonical text to what TiCDC hashes.

    >>> ticdc_bytes(ColumnType("varbinary(4)"), None)("Bf8=")
    b'\\x05\\xff'
    >>> ticdc_bytes(ColumnType("set('a','b')"), None)("b")
    b'2'
    """
    type_ = parse_type(told.mysql if told else None)
    if type_.family == "binary":
        return stored_bytes
    convert = as_written(type_, "ticdc", to_local)
    return (lambda value: convert(value).encode()) if convert else str.encode


def stored_bytes(value: str) -> bytes:
    """The bytes behind base64; text that is not base64 is taken as it is, for so it is written."""
    try:
        return base64_bytes(value)
    except DecodeError:
        return value.encode()


def ticdc_rules(skips_null: bool) -> dict[str, Callable[[RuleOptions], Hash]]:
    """The rules of one of TiCDC's architectures."""

    def by_table(options: RuleOptions) -> Hash:
        total = ticdc_hash(options.zone, skips_null)
        return lambda event: total(event, ())

    def by_handle_key(options: RuleOptions) -> Hash:
        total = ticdc_hash(options.zone, skips_null)
        return lambda event: total(event, handle_key(event))

    def by_columns(options: RuleOptions) -> Hash:
        """The listed columns, whatever their case; the declared name is what is hashed."""
        total = ticdc_hash(options.zone, skips_null)
        declared: BoundedCache[tuple[str, ...], list[str]] = BoundedCache(
            lambda present: declared_names(options.columns, present)
        )
        return lambda event: total(event, declared[tuple(row_of(event))])

    return {
        "table": by_table,
        "index-value": by_handle_key,
        "columns": by_columns,
        "ts": lambda _: lambda event: event.commit_ts or 0,
    }


def declared_names(listed: Iterable[str], present: Iterable[str]) -> list[str]:
    """The row's own spelling of each listed column.

    >>> declared_names(["ID"], ["id", "name"])
    ['id']
    """
    spelling = {name.lower(): name for name in present}
    for name in listed:
        if name.lower() not in spelling:
            raise missing(name)
    return [spelling[name.lower()] for name in listed]


ALIASES = {"default": "table", "rowid": "index-value"}

CLASSIC = PartitionRules(
    "ticdc", "table", ticdc_rules(skips_null=False), ALIASES, split_update=halves
)
NEW = PartitionRules(
    "ticdc-new", "table", ticdc_rules(skips_null=True), ALIASES, split_update=halves
)
