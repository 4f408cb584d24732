"""OMS's method DataWorks: the DataWorks V2.0 message, with the table's schema in each message.

Vendor's document: OMS "DataWorks JSON message format". Where it differs from itself:
docs/formats/dataworks.md.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event, Types
from headgate.core.json import Raw, exact_text, parse, reader
from headgate.core.options import CommonOptions
from headgate.formats._oms.decode_values import (
    IMAGES,
    Bare,
    TypedConverters,
    converter,
    image_text,
    milliseconds,
    sequence,
    typed,
    unknown,
    wrong_images,
)
from headgate.formats.base import Decode, Sniffed
from headgate.formats.dataworks.messages import (
    DDL_OPS,
    MARKER_OPS,
    ROW_OPS,
    VERSION,
    Payload,
    Source,
    Times,
)

OPS = [*ROW_OPS, *DDL_OPS, *MARKER_OPS, "HEARTBEAT"]
NULL = Raw(b"null")


class Schema(msgspec.Struct, gc=False):
    """Source and columns; the columns stay raw because they repeat and are cached."""

    source: Source | None = None
    column: Raw = NULL
    pk: Raw = NULL


class Message(msgspec.Struct, gc=False):
    """The whole message; a heartbeat may come without `schema`."""

    version: str
    payload: Payload
    schema: Schema | None = None
    extend: Raw = NULL


class Column(msgspec.Struct, gc=False):
    """One column of the schema."""

    name: str
    type: str | None = None


class RawImage(msgspec.Struct, gc=False):
    """One row image, each value as its own bytes."""

    data: dict[str, Raw] | None = None


class RawPayload(msgspec.Struct, gc=False):
    """Both images."""

    before: RawImage | None = None
    after: RawImage | None = None


class RawMessage(msgspec.Struct, gc=False):
    """The images alone."""

    payload: RawPayload


class Plan(msgspec.Struct):
    """How the images of a message are read; made once per distinct schema."""

    key: tuple[str, ...] | None = None
    types: Types | None = None
    converters: TypedConverters = []
    typed: frozenset[str] = frozenset()


_message = reader(Message)
_raw_message = reader(RawMessage)
_columns = reader(list[Column] | None)
_names = reader(list[str] | None)
_NO_SCHEMA = Schema()
_NO_SOURCE = Source()
_NO_TIMES = Times()


def make_decoder(dialect: str | None, options: CommonOptions) -> Decode:
    """A decoder of DataWorks V2.0, the only version."""
    plans = BoundedCache(make_plan)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [Event("tombstone", format="dataworks", dialect="v2.0")]
        message = parse(_message, value)
        if message.version != VERSION:
            raise unknown_version()
        payload = message.payload
        schema = message.schema or _NO_SCHEMA
        plan = plans[bytes(schema.column), bytes(schema.pk)]
        source = schema.source or _NO_SOURCE
        times = payload.timestamp or _NO_TIMES
        op = ROW_OPS.get(payload.op)
        event = Event(
            "row",
            op,
            source.dbName or None,
            source.table or None,
            schema=source.schema or None,
            key=plan.key,
            types=plan.types,
            event_time=milliseconds(times.eventTime),
            emit_time=milliseconds(times.systemTime),
            format="dataworks",
            dialect="v2.0",
        )
        if times.checkpointTime is not None:
            event.position = {"checkpointTime": str(times.checkpointTime)}
        if payload.scn is not None:
            sequence(event, "scn", payload.scn)
        extra = extra_of(source, message.extend)
        if op is None:
            other(event, payload, extra)
        else:
            before = payload.before.data if payload.before is not None else None
            after = payload.after.data if payload.after is not None else None
            if (op, bool(before), bool(after)) not in IMAGES:
                raise wrong_images(op, before, after, ("payload.before.data", "payload.after.data"))
            place(event, before, after, plan, value, extra)
        event.extra = extra or None
        return [event]

    return decode


def unknown_version() -> DecodeError:
    """The error for a version of the protocol that is not documented."""
    return DecodeError(
        "unknown-type", "version is not known", f"the one version known is {VERSION!r}"
    )


def make_plan(columns_and_key: tuple[bytes, bytes]) -> Plan:
    """The types and the key, and a converter for each column that needs one."""
    column, pk = columns_and_key
    columns = parse(_columns, column)
    names = parse(_names, pk)
    key = None if names is None else tuple(names)
    if not columns:
        return Plan(key)
    types = {c.name: ColumnType(c.type) for c in columns}
    converters = [(c.name, f) for c in columns if c.type and (f := converter(c.type))]
    return Plan(key, types, converters, typed(types))


def extra_of(source: Source, extend: Raw) -> dict[str, str]:
    """What only re-encoding needs, under the producer's own names."""
    extra = {}
    if source.dbType is not None:
        extra["dbType"] = source.dbType
    if source.dbVersion is not None:
        extra["dbVersion"] = source.dbVersion
    if (text := exact_text(extend)) is not None:
        extra["extend"] = text
    return extra


def place(
    event: Event, before: Any, after: Any, plan: Plan, value: bytes, extra: dict[str, str]
) -> None:
    """Put a row's images into its event, as canonical text."""
    bare = Bare([], [])
    if after:
        event.after = image_text(after, plan.converters, bare, lambda: raw(value).after.data)
    if before:
        event.before = image_text(before, plan.converters, bare, lambda: raw(value).before.data)
    bare.describe(extra, plan.typed)


def raw(value: bytes) -> Any:
    """The payload again, with each value as its own bytes."""
    return parse(_raw_message, value).payload


def other(event: Event, payload: Payload, extra: dict[str, str]) -> None:
    """Complete an event that is not a row: DDL, a transaction marker or a heartbeat."""
    text = payload.ddl.text if payload.ddl is not None else None
    if payload.op == "HEARTBEAT":
        event.kind = "heartbeat"
    elif payload.op in DDL_OPS:
        event.kind, event.op, event.ddl = "ddl", DDL_OPS[payload.op], text or ""
    elif payload.op in MARKER_OPS:
        event.kind, event.op = "marker", MARKER_OPS[payload.op]
        extra["op"] = payload.op
        if text:
            extra["ddl"] = text
    else:
        raise unknown("payload.op", OPS)


def recognises(message: Sniffed) -> bool:
    """`version` beside `payload`; Debezium has no `version` there."""
    members = message.members
    return "version" in members and "payload" in members and b'"op"' in bytes(members["payload"])
