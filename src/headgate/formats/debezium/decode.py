"""Debezium's change event envelope, and what OceanBase OMS made of it.

Vendors' documents: Debezium's MySQL connector; OMS "Debezium JSON message format". Where they
differ from the wire: docs/formats/debezium.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.core.cache import Memo
from headgate.core.errors import DecodeError
from headgate.core.event import Event, qualified
from headgate.core.json import members, parse
from headgate.core.values import convert, exact_nested, names_json, to_text
from headgate.formats._connect.columns import ValueOptions, Writer
from headgate.formats._connect.connectors import MYSQL_LIKE, TICDC
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
    describe_elsewhere,
    describe_source,
    flag,
    is_oms,
    key_names,
    key_text,
    moment,
    position_of,
    refuse_connector,
    refuse_unsupported,
    source_moment,
    tombstone,
)
from headgate.formats.debezium.unavailable import make_take, may_lack

OPS = {"c": "insert", "u": "update", "d": "delete", "r": "snapshot", "t": "truncate"}
OPS |= {code.upper(): op for code, op in OPS.items()}
HEARTBEAT, WATERMARK = "HEARTBEAT", "m"


@dataclass(frozen=True)
class Options(ValueOptions):
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
            refuse_unsupported(value)
            raise
        if envelope is None:
            return [tombstone(key, "debezium", dialect)]
        op = OPS.get(envelope.op or "")
        if op is None:
            return [other(key, unwrapped(value, wrapped), envelope, wrapped, dialect)]
        return [row(key, value, (schema, envelope, wrapped, rest), op)]

    return decode


def row_decoder(
    dialect: str | None, options: Options
) -> Callable[[bytes | None, bytes, tuple[bytes, Envelope, bool, bytes], str], Event]:
    """A function from key, value, what was read of it, and the operation, to a row's event."""
    plan_of = planner(options)
    extra_of = extras()
    take_unavailable = make_take(options.unavailable_value_placeholder)
    lean = options.lean and options.schema is None  # what tells how values came is needed then

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
            missing = take_unavailable(rest, before, after)
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
            position=None if lean else position_of(source),
            format="debezium",
            dialect=name,
            extra=None if lean else extra_of(source, bare),
        )
        if op != "update" or after is None:
            check_images(event, key)
        if not lean:
            describe_rest(event, envelope, key)
            if source.connector not in MYSQL_LIKE and not oms:
                describe_elsewhere(event, unwrapped(value, wrapped))
            if missing is not None:
                event.extra = {**(event.extra or {}), "unavailable": missing}
        return event

    return row


def named_dialect(dialect: str | None, source: Source, wrapped: bool) -> str:
    """Whose message this is; connectors that are not supported are refused."""
    if dialect is None and source.connector == "mysql" and source.name != OMS:
        return "debezium"
    refuse_connector(source.connector)
    return dialect or dialect_of(source, wrapped)


def describe_rest(event: Event, envelope: Envelope, key: bytes | None) -> None:
    """Keep what few messages have: a key beside the row, a transaction, a query, nanoseconds."""
    row = event.before if event.after is None else event.after
    if event.key is not None and lacks(row, event.key):
        event.extra = {**(event.extra or {}), **key_text(key)}
    query = envelope.source.query if envelope.source is not None else None
    if envelope.transaction is not None or query is not None:
        describe_transaction(event, envelope.transaction, query)
    if envelope.ts_ns and envelope.ts_ns % 1000:
        event.extra = event.extra.copy() if event.extra else {}  # it is shared
        event.extra["ts_ns"] = f"{envelope.ts_ns}"


def lacks(row: Mapping[str, Any] | None, names: tuple[str, ...]) -> bool:
    """Whether a row does not have all of these columns."""
    if row is not None:
        for name in names:
            if name not in row:
                return True
    return False


Bare = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Columns that came as numbers, as true/false, and as objects or arrays.

A schema tells all of this but that a TINYINT(1) is a boolean."""


def images_to_text(envelope: Envelope, value: bytes, wrapped: bool) -> Bare:
    """Make text of both images, and say which columns came bare."""
    numbers: list[str] = []
    booleans: list[str] = []
    nested: tuple[str, ...] = ()
    found = False
    if envelope.after:
        found = to_text(envelope.after, numbers, booleans)
    if envelope.before:
        found |= to_text(envelope.before, numbers, booleans)
    if found:
        nested = exact_images(envelope, unwrapped(value, wrapped))
    return tuple(numbers), tuple(booleans), nested


def exact_images(envelope: Envelope, payload: bytes) -> tuple[str, ...]:
    """Give objects and arrays (geometry, vector) the very text that was sent; name them."""
    exact = parse(raw_images_reader, payload)
    names: list[str] = []
    for image, raw in ((envelope.after, exact.after), (envelope.before, exact.before)):
        if image:
            names += nested_names(image)
            exact_nested(image, raw)
    return tuple(names)


def nested_names(row: Mapping[str, Any]) -> list[str]:
    """The columns that hold objects or arrays."""
    return [name for name, value in row.items() if value.__class__ in (dict, list)]


def extras() -> Any:
    """A function from source and bare columns to `extra`; equal ones are one shared object."""

    def make(told: tuple[Any, ...]) -> dict[str, str] | None:
        source, bare = Source(**dict(zip(ORIGIN, told))), told[len(ORIGIN) :]
        extra = describe_source(source)
        for label, columns in zip(("numbers", "booleans", "nested"), bare):
            if columns:
                extra[label] = names_json(columns)
        return extra or None

    known = Memo(make)

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
"""The members of the source that rows of one producer share."""


def unwrapped(value: bytes, wrapped: bool) -> bytes:
    """The bytes of the payload."""
    return bytes(parse(members, value)["payload"]) if wrapped else value


def dialect_of(source: Source, wrapped: bool) -> str:
    """Whose message this is: OMS signs its own.

    >>> dialect_of(Source(name="OMS"), wrapped=False)
    'oms-flatten'
    """
    if is_oms(source):
        return "oms" if wrapped else "oms-flatten"
    return "debezium"


def check_images(event: Event, key: bytes | None) -> None:
    """Drop images that the operation does not have; refuse a row without the one it must have."""
    op = event.op
    if op == "delete":
        event.after = None
        if event.before is None:
            if event.key is None:
                raise no_image("before", "d")
            event.extra = {**(event.extra or {}), **key_text(key)}
    elif op == "truncate":
        event.before = event.after = None
    else:
        if event.after is None:
            raise no_image("after", str(op))
        if op != "update":
            event.before = None


def no_image(image: str, op: str) -> DecodeError:
    """The error for a row change without the image that its operation must have."""
    return DecodeError(
        "missing-member", f"{image} is null or missing, but op is {op}", "check the producer"
    )


def describe_transaction(event: Event, transaction: Transaction | None, query: str | None) -> None:
    """Add what few messages have: the transaction and the statement."""
    more: dict[str, str] = {}
    if transaction is not None:
        for name, member in msgspec.structs.asdict(transaction).items():
            if member is not None:
                more[f"transaction.{name}"] = str(member)
    if query is not None:
        more["query"] = query
    if more:
        event.extra = {**(event.extra or {}), **more}


def other(
    key: bytes | None, payload: bytes, envelope: Envelope, wrapped: bool, dialect: str | None
) -> Event:
    """Everything that is not a row."""
    if envelope.op is None:
        return decode_auxiliary(key, payload, dialect)
    source = envelope.source or NO_SOURCE
    if envelope.op == WATERMARK and source.connector == TICDC:
        return watermark(source, envelope)
    if envelope.op.upper() != HEARTBEAT:
        raise DecodeError(
            "unknown-type",
            "op is none that a row change has",
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
    """TiCDC: every change up to this commit number has been sent."""
    return Event(
        "watermark",
        commit_ts=source.commit_ts or None,  # 0 is no TSO
        event_time=source_moment(source, False),
        emit_time=moment(envelope),
        format="debezium",
        dialect="debezium",
        extra=describe_source(source),
    )


def recognises(message: Sniffed) -> bool:
    """An envelope or an auxiliary message, bare or under `payload`."""
    found = message.members
    if "payload" in found and found.keys() <= WRAPPER:
        payload = bytes(found["payload"])
        if payload == b"null":
            return True
        if payload[:1] != b"{":
            return False
        found = parse(members, payload)
    if "__deleted" in found or "__op" in found:
        return False
    if bytes(found.get("op", b""))[:1] == b'"' and (
        bytes(found.get("source", b""))[:1] == b"{"
        or bytes(found.get("before", b""))[:1] in (b"{", b"n")
        or bytes(found.get("after", b""))[:1] in (b"{", b"n")
    ):
        return True  # columns may be called op and source, but hold no objects
    return shape(found) is not None
