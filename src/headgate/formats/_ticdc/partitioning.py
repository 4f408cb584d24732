"""TiCDC's partition rules, for both of its architectures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple
from zlib import crc32

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event
from headgate.core.mysql_types import parse_type
from headgate.core.values import Convert, base64_bytes, local
from headgate.formats._canal.values import ANY_SOURCE, text_of
from headgate.formats._ticdc.keys import handle_key, split_update
from headgate.formats._ticdc.values import ticdc_writer
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
    """CRC-32 of the table's name, XORed with the CRC-32 of each column's name and value.

    The new architecture skips NULL (`skips_null`); the classic one hashes the word `null`.

    >>> ticdc_hash()(Event("row", "insert", "test", "t1", after={"a": "11"}), ())
    1079797119
    """
    to_local = local(zone)
    columns: BoundedCache[tuple[str, ColumnType | None], ColumnCrc] = BoundedCache(
        lambda column: column_crc(*column, to_local)
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
    """The parts shared by all values of a column: CRC-32 of its name, and of its name and NULL."""

    start: int
    null: int
    to_bytes: Callable[[str], bytes]


def column_crc(name: str, column_type: ColumnType | None, to_local: Convert | None) -> ColumnCrc:
    """Precompute the parts of one column."""
    start = crc32(name.encode())
    return ColumnCrc(start, crc32(b"null", start), ticdc_bytes(column_type, to_local))


def ticdc_bytes(column_type: ColumnType | None, to_local: Convert | None) -> Callable[[str], bytes]:
    """A function from canonical text to the bytes that TiCDC hashes.

    >>> ticdc_bytes(ColumnType("varbinary(4)"), None)("Bf8=")
    b'\\x05\\xff'
    >>> ticdc_bytes(ColumnType("set('a','b')"), None)("b")
    b'2'
    """
    type_ = parse_type(column_type.mysql if column_type else None)
    if type_.family == "binary":
        return stored_bytes
    convert = text_of(ticdc_writer(type_, ANY_SOURCE, to_local))
    return (lambda value: convert(value).encode()) if convert else str.encode


def stored_bytes(value: str) -> bytes:
    """Decode base64; text that is not base64 is used as it is, because it is also written so."""
    try:
        return base64_bytes(value)
    except DecodeError:
        return value.encode()


def ticdc_rules(skips_null: bool) -> dict[str, Callable[[RuleOptions], Hash]]:
    """The partition rules of one of TiCDC's architectures."""

    def by_table(options: RuleOptions) -> Hash:
        total = ticdc_hash(options.zone, skips_null)
        return lambda event: total(event, ())

    def by_handle_key(options: RuleOptions) -> Hash:
        total = ticdc_hash(options.zone, skips_null)
        return lambda event: total(event, handle_key(event))

    def by_columns(options: RuleOptions) -> Hash:
        """By the listed columns, ignoring case; the declared name is the one that is hashed."""
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
    """The listed columns, spelled as they are in the row.

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
    "ticdc", "table", ticdc_rules(skips_null=False), ALIASES, split_update=split_update
)
NEW = PartitionRules(
    "ticdc-new", "table", ticdc_rules(skips_null=True), ALIASES, split_update=split_update
)
