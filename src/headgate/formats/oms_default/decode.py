"""OMS's own message: method Default, and DefaultExtendColumnType, which adds `__light_type`.

Vendor's document: OMS "Default JSON message format". Where it differs from the wire, and from
itself: docs/formats/oms-default.md.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import Any

import msgspec

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event, Types
from headgate.core.json import Raw, exact_text, parse, reader
from headgate.core.limits import CACHED_KEY_BYTES
from headgate.core.options import CommonOptions
from headgate.core.values import micros
from headgate.formats._oms.decode_values import (
    IMAGES,
    Bare,
    TypedConverters,
    converter,
    image_text,
    int64,
    typed,
    unknown,
    wrong_images,
)
from headgate.formats._oms.encode_values import SEPARATOR
from headgate.formats.base import Decode, Sniffed
from headgate.schema.statement import ddl_op

ROW_OPS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
DDL_OPS = {
    "CREATE_TABLE": "create",
    "ALTER_TABLE": "alter",
    "DROP_TABLE": "drop",
    "RENAME_TABLE": "rename",
    "TRUNCATE_TABLE": "truncate",
    "CREATE_INDEX": "create_index",
    "DROP_INDEX": "drop_index",
}
RECORD_TYPES = [*ROW_OPS, "DDL", "HEARTBEAT"]
TYPES_MEMBER = "__light_type"

Text = str | int | None
"""A member that is STRING in the document but a number in some versions."""


class Meta(msgspec.Struct, gc=False):
    """The members of allMetaData that the document names."""

    db: str | None = None
    table_name: str | None = None
    record_primary_key: str | None = None
    dbType: str | None = None
    storeDataSequence: Text = None
    timestamp: Text = None
    checkpoint: Text = None
    source_identity: Text = None
    uniqueId: Text = None
    transId: Text = None
    clusterId: Text = None
    record_primary_value: Text = None
    ddlType: Text = None


class KnownMeta(Meta, gc=False, forbid_unknown_fields=True):
    """allMetaData with no other members."""


class Message(msgspec.Struct, gc=False):
    """The whole message."""

    recordType: str
    allMetaData: Meta
    prevStruct: dict[str, Any] | None = None
    postStruct: dict[str, Any] | None = None


class KnownMessage(Message, gc=False):
    """A message whose allMetaData has only known members."""

    allMetaData: KnownMeta


class RawImages(msgspec.Struct, gc=False):
    """The images alone, each value as its own bytes."""

    prevStruct: dict[str, Raw] | None = None
    postStruct: dict[str, Raw] | None = None


class RawMeta(msgspec.Struct, gc=False):
    """The metadata alone, each value as its own bytes."""

    allMetaData: dict[str, Raw]


class SchemaType(msgspec.Struct, gc=False):
    """The type of one column in `__light_type`."""

    schemaType: str | None = None


class Plan(msgspec.Struct):
    """What the messages of one table have in common."""

    database: str | None
    tenant: str | None
    table: str | None
    key: tuple[str, ...] | None
    light: Any = None
    types: Types | None = None
    converters: TypedConverters = []
    typed: frozenset[str] = frozenset()


_known_message = reader(KnownMessage)
_message = reader(Message)
_raw_images = reader(RawImages)
_raw_meta = reader(RawMeta)


def make_decoder(dialect: str | None, options: CommonOptions) -> Decode:
    """A decoder of one dialect, or of either where `dialect` is None."""
    plans = BoundedCache(make_plan)

    def decode(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        if value is None:
            return [Event("tombstone", format="oms-default", dialect=dialect)]
        message, extra = read(value)
        meta = message.allMetaData
        plan = plans[meta.db, meta.table_name, meta.record_primary_key, meta.dbType]
        op = ROW_OPS.get(message.recordType)
        before, after = message.prevStruct, message.postStruct
        light = None
        if dialect != "default":
            if before is not None:
                light = before.pop(TYPES_MEMBER, None)
            if after is not None and (types := after.pop(TYPES_MEMBER, None)) is not None:
                light = types
            if light is not None and op and light != plan.light:
                if len(value) > CACHED_KEY_BYTES:
                    plan = copy(plan)  # keep what is cached per table small
                learn(plan, light)
        event = Event(
            "row",
            op,
            plan.database,
            plan.table,
            plan.key,
            format="oms-default",
            dialect=dialect or ("default" if light is None else "extend-column-type"),
        )
        describe(event, meta, extra)
        if plan.tenant:
            extra["tenant"] = plan.tenant
        if op is None:
            return [other(event, message, value, extra)]
        if (op, bool(before), bool(after)) not in IMAGES:
            raise wrong_images(op, before, after, ("prevStruct", "postStruct"))
        converters: TypedConverters = ()
        known: frozenset[str] = frozenset()
        if light:
            event.types, converters, known = plan.types, plan.converters, plan.typed
        bare = Bare([], [])
        if after:
            event.after = image_text(after, converters, bare, lambda: raw(value).postStruct)
        if before:
            event.before = image_text(before, converters, bare, lambda: raw(value).prevStruct)
        bare.describe(extra, known)
        event.extra = extra or None
        return [event]

    return decode


def read(value: bytes) -> tuple[Message, dict[str, str]]:
    """The message, and those members of allMetaData that the document does not name."""
    try:
        if not value.isascii():
            str(value, "utf-8")
        return _known_message.decode(value), {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        message = parse(_message, value)
    meta = parse(_raw_meta, value).allMetaData
    others = {n: exact_text(v) for n, v in meta.items() if n not in Meta.__struct_fields__}
    return message, {n: text for n, text in others.items() if text is not None}


def make_plan(table_meta: tuple[str | None, str | None, str | None, str | None]) -> Plan:
    """Split the names of a table: OceanBase's `db` is `tenant.database`."""
    db, table, key, db_type = table_meta
    tenant, _, database = (db or "").partition(".")
    split = (db_type or "").startswith("OB_") and tenant and database and "." not in database
    return Plan(
        database if split else db or None,
        tenant if split else None,
        table or None,
        None if key is None else tuple(key.split(SEPARATOR)) if key else (),
    )


def learn(plan: Plan, light: Any) -> None:
    """Keep a table's types, and a converter for each column that needs one, until they change."""
    try:
        columns = msgspec.convert(light, dict[str, SchemaType | None])
    except msgspec.ValidationError:
        raise wrong_type(TYPES_MEMBER, 'an object of {"schemaType": text}') from None
    named = {n: t.schemaType for n, t in columns.items() if t is not None}
    plan.light = light
    plan.types = {n: ColumnType(named.get(n)) for n in columns}
    plan.typed = typed(plan.types)
    plan.converters = [(n, c) for n, t in named.items() if t and (c := converter(t))]


def describe(event: Event, meta: Meta, extra: dict[str, str]) -> None:
    """Set the event's position and times, and note what only re-encoding needs in `extra`."""
    position = {}
    if meta.checkpoint is not None:
        position["checkpoint"] = str(meta.checkpoint)
    if meta.source_identity is not None:
        position["source_identity"] = str(meta.source_identity)
    if meta.uniqueId is not None:
        position["uniqueId"] = str(meta.uniqueId)
    if meta.transId is not None:
        position["transId"] = str(meta.transId)
    if meta.clusterId is not None:
        position["clusterId"] = str(meta.clusterId)
    event.position = position or None
    if meta.dbType is not None:
        extra["dbType"] = meta.dbType
    if meta.record_primary_value is not None:
        extra["record_primary_value"] = str(meta.record_primary_value)
    if meta.ddlType is not None:
        extra["ddlType"] = str(meta.ddlType)
    if meta.storeDataSequence is not None:
        event.commit_ts = whole(meta.storeDataSequence, "storeDataSequence")
    event.event_time = moment(meta.timestamp)


@lru_cache(maxsize=1024)
def moment(value: str | int | None) -> int | None:
    """Microseconds since the epoch from `timestamp`, which many messages share."""
    return None if value is None else micros(whole(value, "timestamp"))


def whole(value: str | int, name: str) -> int | None:
    """A member of allMetaData that is a number, or the text of one."""
    if value == "":
        return None
    number = int64(value)
    if number is None:
        raise DecodeError(
            "invalid-value", f"{name} is no 64-bit whole number", "check the producer"
        )
    return number


def wrong_type(name: str, wanted: str) -> DecodeError:
    """The error for a member whose JSON type differs from the document."""
    return DecodeError(
        "wrong-type", f"{name} is not {wanted}", "check that the format and dialect are right"
    )


def raw(value: bytes) -> Any:
    """The images again, with each value as its own bytes."""
    return parse(_raw_images, value)


def other(event: Event, message: Message, value: bytes, extra: dict[str, str]) -> Event:
    """Complete an event that is not a row: DDL or a heartbeat."""
    if message.recordType == "HEARTBEAT":
        event.kind = "heartbeat"
    elif message.recordType == "DDL":
        describe_ddl(event, message.postStruct or {}, value, extra)
    else:
        raise unknown("recordType", RECORD_TYPES)
    event.extra = extra or None
    return event


def describe_ddl(event: Event, post: dict[str, Any], value: bytes, extra: dict[str, str]) -> None:
    """Take the statement from the after image, which holds it like a column."""
    statement = post.get("ddl")
    if statement is None:
        raise DecodeError("missing-member", "the DDL has no postStruct.ddl", "check the producer")
    if statement.__class__ is not str:
        raise wrong_type("postStruct.ddl", "text")
    event.kind, event.ddl = "ddl", statement
    event.op = DDL_OPS.get(extra.get("ddlType", "")) or ddl_op(statement)
    for name, sent in raw(value).postStruct.items():
        if name != "ddl" and (text := exact_text(sent)) is not None:
            extra[name] = text


def recognises(message: Sniffed) -> bool:
    """OMS's own members, which no other format has."""
    return "recordType" in message.members and "allMetaData" in message.members
