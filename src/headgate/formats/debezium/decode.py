"""Debezium's change event envelope, also as written by OceanBase OMS.

Vendors' documents: Debezium's MySQL connector; OMS "Debezium JSON message format". Where they
differ from the wire: docs/formats/debezium.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.event import Event, qualified
from headgate.core.json import members, parse
from headgate.core.values import convert, exact_nested, names_json, to_text
from headgate.formats._connect.columns import DecodedValueOptions, Writer
from headgate.formats._connect.connectors import MYSQL_LIKE, POSTGRESQL, TICDC
from headgate.formats._connect.decode_values import (
    planner,
    with_datetimes,
)
from headgate.formats._connect.keys import WRAPPER
from headgate.formats.base import Decode, Sniffed
from headgate.formats.debezium.auxiliary import decode_auxiliary, shape
from headgate.formats.debezium.reader import NO_SCHEMA, Envelope, make_reader, raw_images_reader
from headgate.formats.debezium.source import (
    NO_SOURCE,
    OMS,
    Source,
    Transaction,
    describe_other_connector,
    describe_source,
    flag,
    is_oms,
    key_names,
    key_text,
    moment,
    position_of,
    reject_connector,
    reject_unsupported,
    source_moment,
    tombstone,
)
from headgate.formats.debezium.unavailable import make_remover, may_lack

OPS = {"c": "insert", "u": "update", "d": "delete", "r": "snapshot", "t": "truncate"}
OPS |= {code.upper(): op for code, op in OPS.items()}
HEARTBEAT, WATERMARK = "HEARTBEAT", "m"
LOGICAL_MESSAGE = "m"  # of PostgreSQL's connector


@dataclass(frozen=True)
class Options(DecodedValueOptions):
    """Options of debezium."""


_json = msgspec.json.encode


def make_decoder(dialect: str | None, options: Options) -> Decode:
    """A decoder of one dialect, or of any where `dialect` is None."""
    read = make_reader()
    row = row_decoder(dialect, options)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [tombstone(key, "debezium", dialect)]
        try:
            schema, envelope, wrapped, rest = read(value)
        except DecodeError:
            reject_unsupported(value)
            raise
        if envelope is None:
            return [tombstone(key, "debezium", dialect)]
        op = OPS.get(envelope.op or "")
        if op is None:
            return [decode_other(key, unwrapped(value, wrapped), envelope, wrapped, dialect)]
        return [row(key, value, (schema, envelope, wrapped, rest), op)]

    return decode


def row_decoder(
    dialect: str | None, options: Options
) -> Callable[[bytes | None, bytes, tuple[bytes, Envelope, bool, bytes], str], Event]:
    """A function from key, value, parsed message and operation to a row's event."""
    plan_of = planner(options)
    extra_of = extras()
    remove_unavailable = make_remover(options.unavailable_value_placeholder)
    lean = options.lean and options.schema is None  # a schema needs to know how values were sent

    def row(
        key: bytes | None, value: bytes, message: tuple[bytes, Envelope, bool, bytes], op: str
    ) -> Event:
        schema, envelope, wrapped, rest = message
        source = envelope.source or NO_SOURCE
        name = named_dialect(dialect, source, wrapped)
        oms = name != "debezium"
        writer: Writer = "oms" if oms else "ticdc" if source.connector == TICDC else "debezium"
        database, table = source.db or source.keyspace or None, source.table or None
        plan = plan_of(schema, writer, database, qualified(source.schema, table))
        before, after = envelope.before, envelope.after
        missing = None
        if may_lack(source.connector, source.version):
            missing = remove_unavailable(rest, before, after)
        types = plan.types if not plan.texts else with_datetimes(plan, before, after)
        if plan.converters:
            for image in (before, after):
                if image:
                    convert(image, plan.converters)
        bare = images_to_text(envelope, value, wrapped)
        if schema != NO_SCHEMA:
            bare = ((), plan.booleans, ())
        if op == "insert" and flag(source.snapshot):
            op = "snapshot"  # MySQL's connector before 1.4 wrote snapshot rows as `c`
        event = Event(
            "row",
            op,
            database,
            table,
            schema=source.schema or None,
            key=key_names(key) if key else None,
            before=before,
            after=after,
            types=types,
            commit_ts=source.commit_ts,
            event_time=source_moment(source, oms),
            emit_time=moment(envelope),
            position=position_of(source),
            format="debezium",
            dialect=name,
            extra=None if lean else extra_of(source, bare),
        )
        if op != "update" or after is None:
            check_images(event, key)
        if not lean:
            describe_rest(event, envelope, key)
            if source.connector not in MYSQL_LIKE and not oms:
                describe_other_connector(event, unwrapped(value, wrapped))
            if missing is not None:
                event.extra = {**(event.extra or {}), "unavailable": missing}
        return event

    return row


def named_dialect(dialect: str | None, source: Source, wrapped: bool) -> str:
    """The dialect of a message; unsupported connectors are rejected."""
    if dialect is None and source.connector == "mysql" and source.name != OMS:
        return "debezium"
    reject_connector(source.connector)
    return dialect or dialect_of(source, wrapped)


def describe_rest(event: Event, envelope: Envelope, key: bytes | None) -> None:
    """Keep rarely used members: a key that the row lacks, a transaction, a query, nanoseconds."""
    row = event.before if event.after is None else event.after
    if event.key is not None and lacks(row, event.key):
        event.extra = {**(event.extra or {}), **key_text(key)}
    query = envelope.source.query if envelope.source is not None else None
    if envelope.transaction is not None or query is not None:
        describe_transaction(event, envelope.transaction, query)
    if envelope.ts_ns and envelope.ts_ns % 1000:
        event.extra = event.extra.copy() if event.extra else {}  # shared between events
        event.extra["ts_ns"] = f"{envelope.ts_ns}"


def lacks(row: Mapping[str, Any] | None, names: tuple[str, ...]) -> bool:
    """Whether a row lacks any of these columns."""
    if row is not None:
        for name in names:
            if name not in row:
                return True
    return False


Bare = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Columns that were sent as numbers, as true/false, and as objects or arrays.

A schema declares all of this, except that a TINYINT(1) is a boolean."""


def images_to_text(envelope: Envelope, value: bytes, wrapped: bool) -> Bare:
    """Convert both images to text; returns the columns that were not sent as text."""
    numbers: list[str] = []
    booleans: list[str] = []
    nested: tuple[str, ...] = ()
    has_nested = False
    if envelope.after:
        has_nested = to_text(envelope.after, numbers, booleans)
    if envelope.before:
        has_nested |= to_text(envelope.before, numbers, booleans)
    if has_nested:
        nested = exact_images(envelope, unwrapped(value, wrapped))
    return tuple(numbers), tuple(booleans), nested


def exact_images(envelope: Envelope, payload: bytes) -> tuple[str, ...]:
    """Restore the exact text of objects and arrays (geometry, vector); returns their columns."""
    exact = parse(raw_images_reader, payload)
    names: list[str] = []
    for image, raw in ((envelope.after, exact.after), (envelope.before, exact.before)):
        if image:
            names += nested_names(image)
            exact_nested(image, raw)
    return tuple(names)


def nested_names(row: Mapping[str, Any]) -> list[str]:
    """The columns whose values are objects or arrays."""
    return [name for name, value in row.items() if value.__class__ in (dict, list)]


def extras() -> Any:
    """A function from source and bare columns to `extra`; equal results are one shared object."""

    def make(cache_key: tuple[Any, ...]) -> dict[str, str] | None:
        source, bare = Source(**dict(zip(ORIGIN, cache_key))), cache_key[len(ORIGIN) :]
        extra = describe_source(source)
        for label, columns in zip(("numbers", "booleans", "nested"), bare):
            if columns:
                extra[label] = names_json(columns)
        return extra or None

    known = BoundedCache(make)

    def extra_of(source: Source, bare: Bare) -> dict[str, str] | None:
        return known[
            (
                source.version,
                source.connector,
                source.name,
                source.snapshot,
                source.cluster_id,
                *bare,
            )
        ]

    return extra_of


ORIGIN = ("version", "connector", "name", "snapshot", "cluster_id")
"""The members of the source that all rows of a producer share."""


def unwrapped(value: bytes, wrapped: bool) -> bytes:
    """The bytes of the payload."""
    return bytes(parse(members, value)["payload"]) if wrapped else value


def dialect_of(source: Source, wrapped: bool) -> str:
    """The dialect of a message, by the names that OMS writes into its source.

    >>> dialect_of(Source(name="OMS"), wrapped=False)
    'oms-flatten'
    """
    if is_oms(source):
        return "oms" if wrapped else "oms-flatten"
    return "debezium"


def check_images(event: Event, key: bytes | None) -> None:
    """Drop images that the operation does not use; reject a row without the required one."""
    op = event.op
    if op == "delete":
        event.after = None
        if event.before is None:
            if event.key is None:
                raise missing_image("before", "d")
            event.extra = {**(event.extra or {}), **key_text(key)}
    elif op == "truncate":
        event.before = event.after = None
    else:
        if event.after is None:
            raise missing_image("after", str(op))
        if op != "update":
            event.before = None


def missing_image(image: str, op: str) -> DecodeError:
    """The error for a row change without the image that its operation requires."""
    return DecodeError(
        "missing-member", f"{image} is null or missing, but op is {op}", "check the producer"
    )


def describe_transaction(event: Event, transaction: Transaction | None, query: str | None) -> None:
    """Keep the transaction and the statement, which few messages have."""
    extra: dict[str, str] = {}
    if transaction is not None:
        for name, member in msgspec.structs.asdict(transaction).items():
            if member is not None:
                extra[f"transaction.{name}"] = str(member)
    if query is not None:
        extra["query"] = query
    if extra:
        event.extra = {**(event.extra or {}), **extra}


def decode_other(
    key: bytes | None, payload: bytes, envelope: Envelope, wrapped: bool, dialect: str | None
) -> Event:
    """The event of a message that is not a row change."""
    if envelope.op is None:
        return decode_auxiliary(key, payload, dialect)
    source = envelope.source or NO_SOURCE
    if envelope.op == WATERMARK and source.connector == TICDC:
        return watermark(source, envelope)
    if envelope.op == LOGICAL_MESSAGE and source.connector == POSTGRESQL:
        raise DecodeError(
            "unsupported-format",
            "a logical decoding message (pg_logical_emit_message), which is no change of a row",
            "exclude its topic, which ends in .message",
        )
    if envelope.op.upper() != HEARTBEAT:
        raise DecodeError(
            "unknown-type",
            "unknown op",
            "known: c, u, d, r, t, HEARTBEAT, and TiCDC's m",
        )
    return Event(
        "heartbeat",
        database=source.db or None,
        table=source.table or None,
        schema=source.schema or None,
        event_time=source_moment(source, True),
        emit_time=moment(envelope),
        position=position_of(source),
        format="debezium",
        dialect=dialect or ("oms" if wrapped else "oms-flatten"),
        extra=describe_source(source) or None,
    )


def watermark(source: Source, envelope: Envelope) -> Event:
    """TiCDC: every change up to this commit timestamp has been sent."""
    return Event(
        "watermark",
        commit_ts=source.commit_ts or None,  # 0 is not a valid TSO
        event_time=source_moment(source, False),
        emit_time=moment(envelope),
        format="debezium",
        dialect="debezium",
        extra=describe_source(source),
    )


def recognises(message: Sniffed) -> bool:
    """An envelope or an auxiliary message, bare or under `payload`."""
    raw_members = message.members
    if "payload" in raw_members and raw_members.keys() <= WRAPPER:
        payload = bytes(raw_members["payload"])
        if payload == b"null":
            return True
        if payload[:1] != b"{":
            return False
        raw_members = parse(members, payload)
    if "__deleted" in raw_members or "__op" in raw_members:
        return False
    if bytes(raw_members.get("op", b""))[:1] == b'"' and (
        bytes(raw_members.get("source", b""))[:1] == b"{"
        or bytes(raw_members.get("before", b""))[:1] in (b"{", b"n")
        or bytes(raw_members.get("after", b""))[:1] in (b"{", b"n")
    ):
        return True  # columns may be called op and source, but their values are not objects
    return shape(raw_members) is not None
