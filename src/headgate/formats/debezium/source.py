"""The origin of a change: the `source` block, its times, and the Kafka key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.event import Event
from headgate.core.json import Int64, Raw, exact_text, parse, reader
from headgate.core.values import micros
from headgate.formats._connect.connectors import TICDC
from headgate.formats._connect.keys import key_members

NULL = Raw(b"null")
OMS = "OMS"
# The range of both an Arrow timestamp and a Python datetime: the years 1 to 9999.
Seconds = Annotated[int, msgspec.Meta(ge=-62_135_596_800, le=253_402_300_799)]
Millis = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000, le=253_402_300_799_999)]
Micros = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
Flag = str | bool | None

OTHER_POSITIONS = {
    "lsn",
    "scn",
    "commit_scn",
    "change_lsn",
    "commit_lsn",
    "event_serial_no",
    "txId",
}
"""Positions of connectors other than MySQL's."""


class Times(msgspec.Struct, gc=False):
    """A time in up to three units; the finest one present is used."""

    ts_ms: Millis | None = None
    ts_us: Micros | None = None
    ts_ns: Int64 | None = None


class Source(Times, gc=False):
    """The members of `source` that identify a change, of all connectors and versions."""

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
    """A row's position in its transaction."""

    id: str | None = None
    total_order: int | str | None = None
    data_collection_order: int | str | None = None


class RawSource(msgspec.Struct, gc=False):
    """`source` only, with members as raw bytes."""

    source: dict[str, Raw] | None = None


NO_SOURCE = Source()
_raw_source = reader(RawSource)
UNSUPPORTED = {"mongodb": "MongoDB", "cassandra": "Cassandra"}
"""Connectors whose messages have the envelope, but not rows of columns."""


def reject_connector(connector: str | None) -> None:
    """Reject messages of a connector that look like row changes and are not."""
    if connector in UNSUPPORTED:
        raise DecodeError(
            "unsupported-connector",
            f"Debezium's {UNSUPPORTED[connector]} connector is not supported",
            "its changes are not rows with columns; exclude its topics",
        )


def reject_unsupported(value: bytes) -> None:
    """The same for a message that could not be parsed as an envelope."""
    if any(name.encode() in value for name in UNSUPPORTED):
        envelope = key_members(value) or {}
        source = key_members(bytes(envelope.get("source", b""))) or {}
        reject_connector(exact_text(source.get("connector", NULL)))


def moment(times: Any) -> int | None:
    """Microseconds since the epoch of a message or its source; 0 means unknown.

    >>> moment(Times(ts_ms=1465491411815, ts_us=1465491411815437)), moment(Times(ts_ms=0))
    (1465491411815437, None)
    """
    if times.ts_us:
        time_us: int = times.ts_us
        return time_us
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
        return micros(source.ts_ms)  # OMS documents seconds, but its samples have milliseconds
    time_us = moment(source)
    return source.ts_sec * 1_000_000 if time_us is None and source.ts_sec else time_us


def is_oms(source: Source) -> bool:
    """Whether OceanBase OMS wrote the message.

    >>> is_oms(Source(connector="OB_MYSQL"))
    True
    """
    connector = source.connector
    return source.name == OMS or (connector is not None and connector.startswith("OB_"))


def position_of(source: Source) -> dict[str, str] | None:
    """The source's position in its log, with Debezium's names.

    >>> position_of(Source(file="mysql-bin.000003", pos=154, row=0))
    {'file': 'mysql-bin.000003', 'pos': '154', 'row': '0'}
    """
    if source.connector == TICDC:
        return None  # without a binlog, these members are always empty or 0
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
    """The value of `snapshot`; None if the row is not part of a snapshot.

    >>> flag(True), flag("last"), flag("false")
    ('true', 'last', None)
    """
    if not snapshot or snapshot == "false":
        return None
    return "true" if snapshot is True else snapshot


def describe_source(source: Source) -> dict[str, str]:
    """The producer's members, which only encoding needs."""
    members = {
        "version": source.version,
        "connector": source.connector,
        "name": source.name,
        "snapshot": flag(source.snapshot),
        "cluster_id": source.cluster_id,
    }
    return {name: value for name, value in members.items() if value is not None}


def describe_other_connector(event: Event, payload: bytes) -> None:
    """Keep the source members of connectors for other databases (PostgreSQL, Oracle, …)."""
    members = parse(_raw_source, payload).source or {}
    known = {*Source.__struct_fields__} - {"keyspace"}
    others = {n: t for n, raw in members.items() if n not in known and (t := exact_text(raw))}
    position = {n: t for n, t in others.items() if n in OTHER_POSITIONS}
    if position:
        event.position = {**(event.position or {}), **position}
    extra = {f"source.{n}": t for n, t in others.items() if n not in OTHER_POSITIONS}
    if extra:
        event.extra = {**(event.extra or {}), **extra}


def _same(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


shared: Callable[[tuple[str, ...]], tuple[str, ...]] = BoundedCache(_same).__getitem__
"""One shared tuple per distinct list of names, so that Arrow stores it once."""


def key_names(key: bytes | None) -> tuple[str, ...] | None:
    """The key's column names; None if the key is absent or not a struct.

    >>> key_names(b'{"id":1001}'), key_names(b'{"payload":{"id":1}}'), key_names(b"7")
    (('id',), ('id',), None)
    """
    struct = key_members(key)
    return None if struct is None else shared(tuple(struct))


def key_text(key: bytes | None) -> dict[str, str]:
    """The key as it was sent, for events that nothing else identifies."""
    try:
        return {"key": key.decode()} if key else {}
    except UnicodeDecodeError:
        return {}


def tombstone(key: bytes | None, format: str, dialect: str | None) -> Event:
    """A null value: the row with that key was deleted.

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
