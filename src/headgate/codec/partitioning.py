"""To which Kafka partition a message goes, by the rules and hashes of the producers themselves.

Whoever replaces a producer must send each row where its later changes will go. docs/dispatch.md has
the rules and the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from struct import unpack
from typing import NamedTuple
from zlib import crc32

from headgate.core.cache import Memo
from headgate.core.errors import DecodeError, HeadgateError, UsageError, shown, unknown_name
from headgate.core.event import ColumnType, Event, Image
from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.core.values import Convert, base64_bytes, local
from headgate.formats._ticdc.keys import handle_key
from headgate.formats.canal_json.values import writer

RULES = {
    "table": "by table: all rows of a table in one partition",
    "index-value": "by table and handle key (TiCDC)",
    "columns": "by the columns that partition-columns lists",
    "ts": "by commit number (TiCDC)",
    "database": "by database (Maxwell)",
    "primary-key": "by primary key (Canal, Maxwell)",
    "transaction-id": "by transaction (Maxwell)",
    "thread-id": "by the thread of the source's server (Maxwell)",
}
"""What may choose a partition; not every producer has every rule."""

Partition = Callable[[Event], tuple["int | None", ...]]
"""The partitions a message of this event goes to; (None,) leaves the choice to Kafka."""

Hash = Callable[[Event], int]
"""A number whose size, modulo the number of partitions, is the partition."""

MAX_PARTITIONS = 2**31 - 1
"""Kafka numbers partitions with 32 bits."""


class DispatchError(HeadgateError):
    """An event cannot be given a partition, because what its rule hashes is not there."""

    code = "dispatch"


class Asked(NamedTuple):
    """What a rule may go by: the columns that are listed, and the zone of the producer."""

    columns: tuple[str, ...]
    zone: str


class Producer(NamedTuple):
    """One producer's rules, what else it calls them, and the one it goes by if none is named."""

    default: str | None
    rules: Mapping[str, Callable[[Asked], Hash]]
    aliases: Mapping[str, str]


def partitioner(
    rule: str | None,
    count: int | None,
    columns: str | None,
    producer: str,
    broadcast_ddl: bool,
    zone: str = "UTC",
) -> Partition:
    """The function that chooses the partitions of each event's message.

    `count` is the number of partitions, `columns` what the rule `columns` hashes, `zone` where the
    producer hashes TIMESTAMP as local text.

    >>> choose = partitioner("index-value", 16, None, "ticdc", broadcast_ddl=True)
    >>> choose(Event("row", "insert", "test", "t1", key=("a",), after={"a": "11"}))
    (2,)
    >>> partitioner("table", 3, None, "canal", False)(Event("ddl", "create", "test", "t1"))
    (0,)
    """
    name = rule_of(producer, rule)
    listed = column_list(name, columns)
    if count is None:
        if rule is not None:
            raise UsageError(f"the partition rule {name} needs partition-num: how many there are")
        return left_to_kafka
    if not 1 <= count <= MAX_PARTITIONS:
        raise UsageError(f"partition-num cannot be {count}; it is 1 to {MAX_PARTITIONS}")
    if producer == "kafka":
        return left_to_kafka
    if name is None:
        return all_to_first
    row = PRODUCERS[producer].rules[name](Asked(listed, zone))
    if producer == "maxwell":
        return like_maxwell(row, maxwell_table if name == "table" else maxwell_database, count)
    return with_ddl_first(row, count, broadcast_ddl)


def left_to_kafka(event: Event) -> tuple[None]:
    """Kafka's own partitioner goes by the message's key."""
    return (None,)


def all_to_first(event: Event) -> tuple[int]:
    """Canal without a rule writes to one partition."""
    return (0,)


def with_ddl_first(row: Hash, count: int, broadcast_ddl: bool) -> Partition:
    """Rows by their hash, watermarks to all partitions, all else to the first; DDL as told."""

    def choose(event: Event) -> tuple[int, ...]:
        kind = event.kind
        if kind == "row" and event.op != "truncate":
            return (abs(row(event)) % count,)
        broadcast = kind == "watermark" or (broadcast_ddl and kind in ("ddl", "row"))
        return tuple(range(count)) if broadcast else (0,)

    return choose


def like_maxwell(row: Hash, ddl: Hash, count: int) -> Partition:
    """Rows by their hash, and DDL by a coarser one."""

    def choose(event: Event) -> tuple[int, ...]:
        kind = event.kind
        # The begin and end of a bootstrap are rows without columns to Maxwell.
        row_like = event.op != "truncate" if kind == "row" else kind == "marker" and event.table
        if row_like:
            return (abs(row(event)) % count,)
        if kind in ("ddl", "statement", "row"):
            return (abs(ddl(event)) % count,)
        return tuple(range(count)) if kind == "watermark" else (0,)

    return choose


def rule_of(producer: str, rule: str | None) -> str | None:
    """The rule's name in RULES; None where the producer has neither that nor a default.

    >>> rule_of("maxwell", "primary_key"), rule_of("ticdc", None), rule_of("canal", None)
    ('primary-key', 'table', None)
    """
    if producer not in PRODUCERS:
        raise unknown_name("producer", producer, PRODUCERS)
    default, rules, aliases = PRODUCERS[producer]
    if rule is None:
        return default
    plainly = rule.strip().lower().replace("_", "-")
    name = aliases.get(plainly, plainly)
    if name in rules:
        return name
    if not rules:
        raise UsageError(
            f"unknown partition rule {shown(rule)}; messages of this format are placed by Kafka, "
            "by their key: leave partition out"
        )
    kin = KIN.get(name)
    if kin in rules:
        known = ", ".join(sorted(rules))
        raise UsageError(
            f"{producer} has no partition rule {name!r}; did you mean {kin!r}? known: {known}"
        )
    raise unknown_name(f"partition rule of {producer}", rule, rules)


def column_list(rule: str | None, columns: str | None) -> tuple[str, ...]:
    """The names that partition-columns lists.

    >>> column_list("columns", "id, region")
    ('id', 'region')
    """
    listed = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
    if rule == "columns" and not listed:
        raise UsageError("the partition rule columns needs partition-columns, as in 'id,region'")
    if columns is not None and rule != "columns":
        raise UsageError(
            "partition-columns is for the partition rule columns; add partition=columns"
        )
    if len({name.lower() for name in listed}) < len(listed):
        # Hashes are joined by XOR: the second mention would undo the first.
        raise UsageError("partition-columns names a column twice; name each once")
    return listed


def row_of(event: Event) -> Image:
    """The image whose values count: the row after the change, of a delete the row before it."""
    first, second = event.after, event.before
    if event.op == "delete":
        first, second = second, first
    return first if first is not None else second or {}


# TiCDC

TicdcHash = Callable[[Event, Iterable[str]], int]


def ticdc_hash(zone: str = "UTC", skips_null: bool = False) -> TicdcHash:
    """CRC-32 of the table's name, XOR that of each column's name and value.

    `skips_null` is the new architecture's way; the classic one hashes the word.

    >>> ticdc_hash()(Event("row", "insert", "test", "t1", after={"a": "11"}), ())
    1079797119
    """
    to_local = local(zone)
    columns: Memo[tuple[str, ColumnType | None], ColumnCrc] = Memo(
        lambda told: column_crc(*told, to_local)
    )

    def total(event: Event, names: Iterable[str]) -> int:
        types = event.types or {}
        image = row_of(event)
        total = _table_crc[event.database or "", event.table or ""]
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


def missing(name: str) -> DispatchError:
    """The error for a row without a column that is hashed."""
    return DispatchError(
        f"the row has no column {shown(name)}, which chooses its partition; "
        "choose another rule or other columns"
    )


class ColumnCrc(NamedTuple):
    """What is the same for all values of a column: CRC-32 of its name, and of its name and NULL."""

    start: int
    null: int
    to_bytes: Callable[[str], bytes]


def column_crc(name: str, told: ColumnType | None, to_local: Convert | None) -> ColumnCrc:
    """Prepare one column."""
    start = crc32(name.encode())
    return ColumnCrc(start, crc32(b"null", start), ticdc_bytes(told, to_local))


_table_crc: Memo[tuple[str, str], int] = Memo(lambda names: crc32("".join(names).encode()))


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


def as_written(type_: MySqlType, dialect: str, to_local: Convert | None) -> Convert | None:
    """A function from canonical text to what a dialect of Canal writes for it, lossy or not.

    >>> as_written(parse_type("set('a','b','c')"), "canal", None)("a,c")
    '5'
    """
    write = writer(type_, dialect, own=False, numbered=True, to_local=to_local)
    if write is None:
        return None

    def convert(value: str) -> str:
        try:
            return str(write(value))
        except Lossy as lossy:
            return str(lossy.value)

    return convert


def ticdc_rules(skips_null: bool) -> dict[str, Callable[[Asked], Hash]]:
    """The rules of one of TiCDC's architectures."""

    def by_table(asked: Asked) -> Hash:
        total = ticdc_hash(asked.zone, skips_null)
        return lambda event: total(event, ())

    def by_handle_key(asked: Asked) -> Hash:
        total = ticdc_hash(asked.zone, skips_null)
        return lambda event: total(event, handle_key(event))

    def by_columns(asked: Asked) -> Hash:
        """The listed columns, whatever their case; the declared name is what is hashed."""
        total = ticdc_hash(asked.zone, skips_null)
        declared: Memo[tuple[str, ...], list[str]] = Memo(
            lambda present: declared_names(asked.columns, present)
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


# Java


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


# Canal takes abs(abs(h) % n) and Maxwell abs(h % n), both in 32 bits, where abs(-2^31) is negative
# and % keeps the sign. In Python's integers both are abs(h) % n.
_name_hash: Memo[str, int] = Memo(java_hash)


# Canal


def canal_hash(zone: str) -> Callable[[Event, Iterable[str]], int]:
    """The database's hash XOR that of each column's value; NULL, like "", is 0.

    >>> canal_hash("UTC")(Event("row", "insert", "test", "t", after={"id": "abc"}), ["id"])
    3620080
    """
    to_local = local(zone)
    texts: Memo[ColumnType | None, Convert | None] = Memo(
        lambda told: as_written(parse_type(told.mysql if told else None), "canal", to_local)
    )

    def total(event: Event, names: Iterable[str]) -> int:
        image = row_of(event)
        if not image:  # Canal writes what has no rows to the first partition
            return 0
        types = event.types or {}
        total = _name_hash[event.database or ""]
        for name in names:
            value = image.get(name)
            if value is not None:
                convert = texts[types.get(name)]
                total ^= java_hash(convert(value) if convert else value)
        return total

    return total


def canal_key(asked: Asked) -> Hash:
    """By primary key."""
    total = canal_hash(asked.zone)
    return lambda event: total(event, event.key or ())


def canal_columns(asked: Asked) -> Hash:
    """By the listed columns."""
    total = canal_hash(asked.zone)
    return lambda event: total(event, asked.columns)


# Maxwell


def maxwell_database(event: Event) -> int:
    """By database."""
    return _name_hash[event.database or ""]


def maxwell_table(event: Event) -> int:
    """By table; what has none (CREATE DATABASE) by database."""
    return _name_hash[event.table or event.database or ""]


def maxwell_key(event: Event) -> int:
    """By the values of the primary key one after the other, without NULLs."""
    if not event.key:
        return _name_hash[(event.database or "") + (event.table or "")]
    return java_hash(joined(event, event.key) or "None")


def maxwell_columns(asked: Asked) -> Hash:
    """By the values of the listed columns one after the other; by database where there are none."""

    def choose(event: Event) -> int:
        text = joined(event, asked.columns)
        return java_hash(text) if text else maxwell_database(event)

    return choose


def joined(event: Event, names: Iterable[str]) -> str:
    """The values of these columns, as one text."""
    image = row_of(event)
    return "".join([value for name in names if (value := image.get(name)) is not None])


def maxwell_place(name: str) -> Hash:
    """By a part of the position; "null" is what Java makes of none."""
    return lambda event: java_hash((event.position or {}).get(name, "null"))


KIN = {
    "primary-key": "index-value",
    "index-value": "primary-key",
    "database": "table",
    "ts": "transaction-id",
    "transaction-id": "ts",
}
"""What another producer has in place of a rule."""

TICDC_NAMES = {"default": "table", "rowid": "index-value"}

PRODUCERS = {
    "ticdc": Producer("table", ticdc_rules(skips_null=False), TICDC_NAMES),
    "ticdc-new": Producer("table", ticdc_rules(skips_null=True), TICDC_NAMES),
    "canal": Producer(
        None,
        {
            "table": lambda _: lambda event: _name_hash[event.table or ""],
            "primary-key": canal_key,
            "columns": canal_columns,
        },
        {"pk-hash": "primary-key", "$pk$": "primary-key", "index-value": "primary-key"},
    ),
    "maxwell": Producer(
        "database",
        {
            "database": lambda _: maxwell_database,
            "table": lambda _: maxwell_table,
            "primary-key": lambda _: maxwell_key,
            "transaction-id": lambda _: maxwell_place("xid"),
            "thread-id": lambda _: maxwell_place("thread_id"),
            "columns": maxwell_columns,
        },
        {"column": "columns"},
    ),
    "kafka": Producer(None, {}, {}),
}
"""Whose messages they are; `kafka` is who leaves the partition to Kafka, as Debezium does."""
