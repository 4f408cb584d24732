"""OMS's own message: methods Default and DefaultExtendColumnType, as in the document's samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from headgate.core.event import Event, Record, Types
from headgate.core.options import EncodeOptions
from headgate.formats._oms.encode_values import (
    SEPARATOR,
    key_values,
    row_writers,
    type_name,
)
from headgate.formats.base import Encode, Encoding
from headgate.formats.encoding import PerTypeMap, json_value, to_json, written
from headgate.formats.oms_default.decode import DDL_OPS, TYPES_MEMBER

FORMAT = "oms-default"
EXTENDED = "extend-column-type"
METHODS = {"default": "Default", EXTENDED: "DefaultExtendColumnType"}
RECORD_TYPES = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE", "snapshot": "INSERT"}
DDL_TYPES = {op: word for word, op in DDL_OPS.items()}
DDL_LIGHT_TYPE = Raw(b'{"ddl":{"schemaType":"VAR_STRING"}}')
FOREIGN = {"dbType": "MYSQL"}
"""Replaces `extra` of an event from another format."""
KNOWN = {"dbType", "record_primary_value", "ddlType", "tenant", "numbers", "booleans", TYPES_MEMBER}
"""Members of `extra` that are not additional members of allMetaData."""
NOTHING: dict[str, str] = {}


# One class per order of members; UNSET members are not written.


class RowMeta(msgspec.Struct, gc=False):
    """allMetaData of a row."""

    checkpoint: str | None
    record_primary_key: str | None
    source_identity: str | None
    record_primary_value: str | None
    dbType: str | None
    storeDataSequence: Any
    table_name: str | None
    db: str | None
    timestamp: Any
    uniqueId: Any = UNSET
    transId: Any = UNSET
    clusterId: Any = UNSET


class OtherMeta(msgspec.Struct, gc=False):
    """allMetaData of DDL and heartbeats."""

    checkpoint: str | None
    dbType: str | None
    storeDataSequence: int | None
    db: str | None
    timestamp: str | None
    uniqueId: str | None
    transId: Any
    clusterId: Any
    ddlType: str | None
    record_primary_key: str | None
    source_identity: str | None
    record_primary_value: str | None
    table_name: str | None


class RowMessage(msgspec.Struct, gc=False):
    """A row."""

    allMetaData: Any
    prevStruct: Any
    recordType: str
    postStruct: Any


class OtherMessage(msgspec.Struct, gc=False):
    """DDL and heartbeats."""

    prevStruct: None
    postStruct: Any
    allMetaData: Any
    recordType: str


def make_encoder(dialect: str, options: EncodeOptions) -> Encode:
    """An encoder of one dialect."""
    writers_of = row_writers(METHODS[dialect], FORMAT)
    light_types = {
        same_format: PerTypeMap(light_planner(same_format)) for same_format in (False, True)
    }
    extended = dialect == EXTENDED

    def encode(event: Event, lost: list[str]) -> list[Record]:
        if event.kind == "row":
            writers = writers_of(event, lost)
            before = after = None
            if event.before is not None:
                before = written(event.before, writers, lost)
            if event.after is not None:
                after = written(event.after, writers, lost)
            meta = row_meta(event, after if after is not None else before or {})
            if extended:
                for row in (before, after):
                    if row is not None and row.pop(TYPES_MEMBER, row) is not row:
                        lost.append("incomplete")  # a column of that name gives way to the types
                if event.types is not None:
                    light = light_types[event.format == FORMAT](event.types)
                    for row in (before, after):
                        if row is not None:
                            row[TYPES_MEMBER] = light
            record_type = RECORD_TYPES[event.op or ""]
            return [Record(to_json(RowMessage(meta, before, record_type, after)))]
        if event.kind == "tombstone":
            return [Record(None)]
        if event.kind == "heartbeat":
            return [Record(to_json(OtherMessage(None, None, other_meta(event), "HEARTBEAT")))]
        if event.kind == "ddl":
            post = ddl_struct(event, dialect)
            return [Record(to_json(OtherMessage(None, post, other_meta(event), "DDL")))]
        return []

    return encode


def light_planner(same_format: bool) -> Any:
    """A function from type map to `__light_type`; this format's own types are written unchanged."""

    def make(types: Types | None) -> Raw:
        columns = (types or {}).items()
        named = {n: {"schemaType": type_name(t, same_format)} for n, t in columns}
        return Raw(to_json(named))

    return make


def row_meta(event: Event, row: Mapping[str, Any]) -> Any:
    """allMetaData of a row; what is unknown is null, or omitted as in the samples."""
    same_format = event.format == FORMAT
    extra = (event.extra or NOTHING) if same_format else FOREIGN
    place = event.position or NOTHING
    if same_format:
        values = extra.get("record_primary_value")
    else:
        image = event.before if event.after is None else event.after
        values = key_values(event.key, image, row) if event.key and image else None
    meta = RowMeta(
        place.get("checkpoint"),
        None if event.key is None else SEPARATOR.join(event.key),
        place.get("source_identity"),
        values,
        extra.get("dbType"),
        UNSET if event.commit_ts is None else event.commit_ts,
        event.table,
        tenant_and_database(event, extra),
        UNSET if event.event_time is None else str(event.event_time // 1_000_000),
    )
    if place:
        meta.uniqueId = place.get("uniqueId", UNSET)
        meta.transId = place.get("transId", UNSET)
        meta.clusterId = place.get("clusterId", UNSET)
    return meta if extra.keys() <= KNOWN else with_others(meta, extra)


def other_meta(event: Event) -> Any:
    """allMetaData of DDL and heartbeats."""
    same_format = event.format == FORMAT
    extra = (event.extra or NOTHING) if same_format else FOREIGN
    place = event.position or NOTHING
    absent: Any = UNSET if event.kind == "ddl" else None
    meta = OtherMeta(
        place.get("checkpoint"),
        extra.get("dbType"),
        event.commit_ts,
        tenant_and_database(event, extra),
        None if event.event_time is None else str(event.event_time // 1_000_000),
        place.get("uniqueId"),
        place.get("transId", absent),
        place.get("clusterId", absent),
        extra.get("ddlType") if same_format else DDL_TYPES.get(event.op or ""),
        None if event.key is None else SEPARATOR.join(event.key),
        place.get("source_identity"),
        extra.get("record_primary_value"),
        event.table,
    )
    return meta if extra.keys() <= KNOWN else with_others(meta, extra)


def with_others(meta: Any, extra: Mapping[str, str]) -> dict[str, Any]:
    """allMetaData with the members that the document does not name."""
    members: dict[str, Any] = msgspec.to_builtins(meta)
    return members | {name: text for name, text in extra.items() if name not in KNOWN}


def tenant_and_database(event: Event, extra: Mapping[str, str]) -> str | None:
    """`db`: the database, prefixed with the tenant if there is one."""
    tenant = extra.get("tenant")
    return f"{tenant}.{event.database}" if tenant else event.database


def ddl_struct(event: Event, dialect: str) -> dict[str, Any]:
    """The statement in the form of a column, with its type if the dialect has types."""
    struct: dict[str, Any] = {"ddl": event.ddl or ""}
    types = (event.extra or NOTHING).get(TYPES_MEMBER) if event.format == FORMAT else None
    if types is not None and event.dialect == dialect:
        struct[TYPES_MEMBER] = json_value(types) or types
    elif dialect == EXTENDED:
        struct[TYPES_MEMBER] = DDL_LIGHT_TYPE
    return struct


PLACES = ("checkpoint", "source_identity", "uniqueId", "transId", "clusterId")
ROWS = frozenset({"insert", "before", "database", "table", "key", "bare-values", "commit-ts"})
ROWS |= {"event-time", "ddl", "heartbeat", *(f"position.{p}" for p in PLACES)}


def carries(dialect: str, options: EncodeOptions) -> frozenset[str]:
    """What a dialect can represent."""
    return ROWS | {"types"} if dialect == EXTENDED else ROWS


ENCODING = Encoding(EncodeOptions, make_encoder, carries)
