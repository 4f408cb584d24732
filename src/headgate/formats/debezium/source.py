"""What Debezium says of a change's origin: the `source` block, its times, and the Kafka key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from headgate.core.cache import Memo
from headgate.core.errors import DecodeError
from headgate.core.event import Event
from headgate.core.json import Int64, Raw, exact_text, parse, reader
from headgate.core.values import micros
from headgate.formats._connect.connectors import TICDC
from headgate.formats._connect.keys import key_members

NULL = Raw(b"null")
OMS = "OMS"
# What an Arrow timestamp and a Python datetime both hold: the years 1 to 9999.
Seconds = Annotated[int, msgspec.Meta(ge=-62_135_596_800, le=253_402_300_799)]
Millis = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000, le=253_402_300_799_999)]
Micros = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
Flag = str | bool | None

ELSEWHERE = {"lsn", "scn", "commit_scn", "change_lsn", "commit_lsn", "event_serial_no", "txId"}
"""Positions of connectors other than MySQL's."""


class Times(msgspec.Struct, gc=False):
    """A moment in up to four units; the finest that is there counts."""

    ts_ms: Millis | None = None
    ts_us: Micros | None = None
    ts_ns: Int64 | None = None


class Source(Times, gc=False):
    """The members of `source` that say which change it is, of all connectors and versions."""

    version: str | None = None
    connector: str | None = None
    name: str | None = None
    ts_sec: Seconds | None = None
    snapshot: Flag = None
    db: str | None = None
    schema: str | None = None
    keyspace: str | None = None
    """Vitess's database, whose `db` is empty."""
    table: str | None = None
    sequence: Raw = NULL
    server_id: Int64 | None = None
    gtid: str | None = None
    file: str | None = None
    pos: int | str | None = None
    row: Int64 | None = None
    thread: Int64 | None = None
    query: str | None = None
    commit_ts: Int64 | None = None
    cluster_id: str | None = None


class Transaction(msgspec.Struct, gc=False):
    """A row's place in its transaction."""

    id: str | None = None
    total_order: int | str | None = None
    data_collection_order: int | str | None = None


class RawSource(msgspec.Struct, gc=False):
    """`source` alone, each member unread."""

    source: dict[str, Raw] | None = None


NO_SOURCE = Source()
_raw_source = reader(RawSource)
UNSUPPORTED = {"mongodb": "MongoDB", "cassandra": "Cassandra"}
"""Connectors whose messages have the envelope, but no rows with columns and values in it."""


def refuse_connector(connector: str | None) -> None:
    """Refuse the messages of a connector that would be taken for rows and are none."""
    if connector in UNSUPPORTED:
        raise DecodeError(
            "unsupported-connector",
            f"Debezium's {UNSUPPORTED[connector]} connector is not supported",
            "its changes are no rows with columns: leave its topics out",
        )


def refuse_unsupported(value: bytes) -> None:
    """The same for a message that cannot be read as an envelope."""
    if any(name.encode() in value for name in UNSUPPORTED):
        found = key_members(value) or {}
        source = key_members(bytes(found.get("source", b""))) or {}
        refuse_connector(exact_text(source.get("connector", NULL)))


def moment(times: Any) -> int | None:
    """Microseconds since the epoch of a message or its source; 0 means that nobody knows.

    >>> moment(Times(ts_ms=1465491411815, ts_us=1465491411815437)), moment(Times(ts_ms=0))
    (1465491411815437, None)
    """
    if times.ts_us:
        found: int = times.ts_us
        return found
    if times.ts_ns:
        return int(times.ts_ns // 1000)
    if times.ts_ms:
        return int(times.ts_ms * 1000)
    return None


def source_moment(source: Source, oms: bool) -> int | None:
    """When the change happened, in microseconds.

    >>> source_moment(Source(ts_sec=1465491411), False)
    1465491411000000
    """
    if oms and source.ts_ms and not source.ts_us:
        return micros(source.ts_ms)  # OMS's document calls it seconds, its samples are milliseconds
    found = moment(source)
    return source.ts_sec * 1_000_000 if found is None and source.ts_sec else found


def is_oms(source: Source) -> bool:
    """Whether OceanBase OMS wrote the message.

    >>> is_oms(Source(connector="OB_MYSQL"))
    True
    """
    connector = source.connector
    return source.name == OMS or (connector is not None and connector.startswith("OB_"))


def position_of(source: Source) -> dict[str, str] | None:
    """The source's place in its log, under Debezium's own names.

    >>> position_of(Source(file="mysql-bin.000003", pos=154, row=0))
    {'file': 'mysql-bin.000003', 'pos': '154', 'row': '0'}
    """
    if source.connector == TICDC:
        return None  # it has no binlog: these members are always empty or 0
    position: dict[str, str] = {}
    if source.file is not None:
        position["file"] = source.file
    if source.pos is not None:
        position["pos"] = f"{source.pos}"
    if source.row is not None:
        position["row"] = f"{source.row}"
    if source.gtid is not None:
        position["gtid"] = source.gtid
    if source.server_id is not None:
        position["server_id"] = f"{source.server_id}"
    if source.thread is not None:
        position["thread"] = f"{source.thread}"
    if source.sequence != NULL and (sequence := exact_text(source.sequence)) is not None:
        position["sequence"] = sequence
    return position or None


def flag(snapshot: Flag) -> str | None:
    """The snapshot word, None where the row is no part of one.

    >>> flag(True), flag("last"), flag("false")
    ('true', 'last', None)
    """
    if not snapshot or snapshot == "false":
        return None
    return "true" if snapshot is True else snapshot


def describe_source(source: Source) -> dict[str, str]:
    """Who wrote the message: what only a re-encode needs."""
    told = {
        "version": source.version,
        "connector": source.connector,
        "name": source.name,
        "snapshot": flag(source.snapshot),
        "cluster_id": source.cluster_id,
    }
    return {name: value for name, value in told.items() if value is not None}


def describe_elsewhere(event: Event, payload: bytes) -> None:
    """Keep the source members of other databases' connectors (PostgreSQL, Oracle, …)."""
    found = parse(_raw_source, payload).source or {}
    known = {*Source.__struct_fields__} - {"keyspace"}
    others = {n: t for n, raw in found.items() if n not in known and (t := exact_text(raw))}
    position = {n: t for n, t in others.items() if n in ELSEWHERE}
    if position:
        event.position = {**(event.position or {}), **position}
    extra = {f"source.{n}": t for n, t in others.items() if n not in ELSEWHERE}
    if extra:
        event.extra = {**(event.extra or {}), **extra}


def _same(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


shared: Callable[[tuple[str, ...]], tuple[str, ...]] = Memo(_same).__getitem__
"""The one tuple of those names, so that Arrow lays it down once."""


def key_names(key: bytes | None) -> tuple[str, ...] | None:
    """The key's column names; None where the key is absent or no struct.

    >>> key_names(b'{"id":1001}'), key_names(b'{"payload":{"id":1}}'), key_names(b"7")
    (('id',), ('id',), None)
    """
    found = key_members(key)
    return None if found is None else shared(tuple(found))


def key_text(key: bytes | None) -> dict[str, str]:
    """The key as it was sent, for events whose row is known by nothing else."""
    try:
        return {"key": key.decode()} if key else {}
    except UnicodeDecodeError:
        return {}


def tombstone(key: bytes | None, format: str, dialect: str | None) -> Event:
    """A null value: the row of that key is gone.

    >>> tombstone(b'{"id":1}', "debezium", None).extra
    {'key': '{"id":1}'}
    """
    return Event(
        "tombstone",
        key=key_names(key),
        format=format,
        dialect=dialect,
        extra=key_text(key) or None,
    )
