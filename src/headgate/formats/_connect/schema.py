"""Kafka Connect's schema blocks of Debezium and OMS, encoded as the start of a message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from headgate.formats._connect.column import Column
from headgate.formats._connect.connectors import TICDC
from headgate.formats.encoding import jackson_style, to_json

SNAPSHOT_WORDS = (
    "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
)
COMMON = "io.debezium.connector.common."
HISTORY = "io.debezium.connector.schema."


def field(name: str, type_: str, optional: bool = False) -> dict[str, Any]:
    """A field without a semantic name.

    >>> field("op", "string")
    {'type': 'string', 'optional': False, 'field': 'op'}
    """
    return {"type": type_, "optional": optional, "field": name}


def struct(
    fields: Iterable[dict[str, Any]],
    name: str | None,
    version: int | None = 1,
    optional: bool = False,
    field: str | None = None,
) -> dict[str, Any]:
    """A struct, on its own or as a field of another."""
    schema: dict[str, Any] = {"type": "struct", "fields": list(fields), "optional": optional}
    if name is not None:
        schema["name"] = name
    if version is not None:
        schema["version"] = version
    if field is not None:
        schema["field"] = field
    return schema


def array(items: dict[str, Any], field: str, optional: bool = False) -> dict[str, Any]:
    """An array as a field."""
    return {"type": "array", "items": items, "optional": optional, "field": field}


def opened(schema: dict[str, Any]) -> bytes:
    """The start of a message with this schema; the payload and a closing brace follow.

    >>> opened({"type": "int32"})
    b'{"schema":{"type":"int32"},"payload":'
    """
    return b'{"schema":' + jackson_style(to_json(schema)) + b',"payload":'


SNAPSHOT = "snapshot"
"""Marks the type of `source.snapshot`, which is an enumeration."""


def metadata(name: str, type_: str) -> dict[str, Any]:
    """A field that the transform adds: optional, and without the member's default.

    >>> metadata("__op", "string")
    {'type': 'string', 'optional': True, 'field': '__op'}
    """
    if type_ != SNAPSHOT:
        return field(name, type_, True)
    return {
        "type": "string",
        "optional": True,
        "name": "io.debezium.data.Enum",
        "version": 1,
        "parameters": {"allowed": SNAPSHOT_WORDS},
        "field": name,
    }


def source(connector: str, has_position: bool, in_schema: bool = False) -> dict[str, Any]:
    """The schema of `source`.

    `has_position`: the position in the binlog is known. `in_schema`: the table is in a schema.
    """
    snapshot = metadata(SNAPSHOT, SNAPSHOT)
    snapshot |= {"default": "false", "field": snapshot.pop("field")}  # `field` stays last
    unknown = not has_position
    fields = [
        field("version", "string"),
        field("connector", "string"),
        field("name", "string"),
        field("ts_ms", "int64"),
        snapshot,
        field("db", "string"),
        field("sequence", "string", True),
        field("ts_us", "int64", True),
        field("ts_ns", "int64", True),
        *([field("schema", "string")] if in_schema else []),
        field("table", "string", True),
        field("server_id", "int64", unknown),
        field("gtid", "string", True),
        field("file", "string", unknown),
        field("pos", "int64", unknown),
        field("row", "int32", unknown),
        field("thread", "int64", True),
        field("query", "string", True),
    ]
    if connector == TICDC:
        fields += [field("commit_ts", "int64", True), field("cluster_id", "string", True)]
    return struct(fields, f"io.debezium.connector.{connector}.Source", field="source")


TRANSACTION = struct(
    [
        field("id", "string"),
        field("total_order", "int64"),
        field("data_collection_order", "int64"),
    ],
    "event.block",
    optional=True,
    field="transaction",
)


def dotted(*names: str | None) -> str:
    """A schema's name.

    >>> dotted("shop", None, "orders", "Key")
    'shop.orders.Key'
    """
    return ".".join(name for name in names if name)


def columns(
    row_columns: Mapping[str, Column], required: Iterable[str], nullable: Mapping[str, bool]
) -> list[dict[str, Any]]:
    """The fields of a table's columns; they are nullable unless declared NOT NULL."""
    not_null = set(required)
    return [c.field(n, nullable.get(n, n not in not_null)) for n, c in row_columns.items()]


def envelope(
    fields: list[dict[str, Any]],
    names: tuple[str | None, ...],
    connector: str,
    has_position: bool,
    in_schema: bool,
) -> bytes:
    """The start of a change event's message."""
    images = [
        struct(fields, dotted(*names, "Value"), None, True, image) for image in ("before", "after")
    ]
    times = [field(f"ts_{unit}", "int64", True) for unit in ("ms", "us", "ns")]
    origin = source(connector, has_position, in_schema)
    members = [*images, origin, TRANSACTION, field("op", "string"), *times]
    return opened(struct(members, dotted(*names, "Envelope"), 2))


@lru_cache(maxsize=64)
def watermark(name: str) -> bytes:
    """The start of TiCDC's watermark."""
    members = [
        source(TICDC, True),
        TRANSACTION,
        field("op", "string"),
        field("ts_ms", "int64", True),
    ]
    return opened(struct(members, dotted(name, "Envelope")))


def key(fields: list[dict[str, Any]], names: tuple[str | None, ...]) -> bytes:
    """The start of a message's key."""
    return opened(struct(fields, dotted(*names, "Key"), None))


def flat(
    fields: list[dict[str, Any]], names: tuple[str | None, ...], optional: bool = False
) -> bytes:
    """The start of a row without its envelope; `optional` if it may be null."""
    return opened(struct(fields, dotted(*names, "Value"), None, optional))


HEARTBEAT = opened(struct([field("ts_ms", "int64")], f"{COMMON}Heartbeat"))
HEARTBEAT_KEY = opened(struct([field("serverName", "string")], f"{COMMON}ServerNameKey"))
BOUNDARY = opened(
    struct(
        [
            field("status", "string"),
            field("id", "string"),
            field("event_count", "int64", True),
            array(
                struct(
                    [field("data_collection", "string"), field("event_count", "int64")],
                    "event.collection",
                    optional=True,
                ),
                "data_collections",
                True,
            ),
            field("ts_ms", "int64"),
        ],
        f"{COMMON}TransactionMetadataValue",
    )
)
BOUNDARY_KEY = opened(struct([field("id", "string")], f"{COMMON}TransactionMetadataKey"))
NOTIFICATION = opened(
    struct(
        [
            field("id", "string"),
            field("type", "string"),
            field("aggregate_type", "string"),
            {
                "type": "map",
                "keys": {"type": "string", "optional": False},
                "values": {"type": "string", "optional": False},
                "optional": True,
                "field": "additional_data",
            },
            field("timestamp", "int64", True),
        ],
        f"{COMMON}Notification",
    )
)
TEXT_ITEM = {"type": "string", "optional": False}
HISTORY_COLUMN = struct(
    [
        field("name", "string"),
        field("jdbcType", "int32"),
        field("nativeType", "int32", True),
        field("typeName", "string"),
        field("typeExpression", "string", True),
        field("charsetName", "string", True),
        field("length", "int32", True),
        field("scale", "int32", True),
        field("position", "int32"),
        field("optional", "boolean", True),
        field("autoIncremented", "boolean", True),
        field("generated", "boolean", True),
        field("comment", "string", True),
        field("defaultValueExpression", "string", True),
        array(TEXT_ITEM, "enumValues", True),
    ],
    f"{HISTORY}Column",
)
HISTORY_CHANGE = struct(
    [
        field("type", "string"),
        field("id", "string"),
        struct(
            [
                field("defaultCharsetName", "string", True),
                array(TEXT_ITEM, "primaryKeyColumnNames", True),
                array(HISTORY_COLUMN, "columns"),
                field("comment", "string", True),
            ],
            f"{HISTORY}Table",
            optional=True,
            field="table",
        ),
    ],
    f"{HISTORY}Change",
)


@lru_cache(maxsize=64)
def schema_change(connector: str, has_position: bool, in_schema: bool) -> tuple[bytes, bytes]:
    """The starts of a schema change's value and key."""
    prefix = f"io.debezium.connector.{connector}."
    fields = [
        source(connector, has_position, in_schema),
        field("ts_ms", "int64"),
        field("databaseName", "string", True),
        field("schemaName", "string", True),
        field("ddl", "string", True),
        array(HISTORY_CHANGE, "tableChanges"),
    ]
    value = opened(struct(fields, f"{prefix}SchemaChangeValue"))
    return value, opened(struct([field("databaseName", "string")], f"{prefix}SchemaChangeKey"))


# OMS


OMS_SOURCE = ("version", "connector", "name", "ts_ms", "db", "table", "server_id", "pos")
OMS_LONGS = ("ts_ms", "server_id")


def oms_field(name: str, type_: str, **more: Any) -> dict[str, Any]:
    """A field as OMS writes it: never optional, and without a semantic name.

    >>> oms_field("op", "string")
    {'field': 'op', 'optional': False, 'type': 'string'}
    """
    return {"field": name, "optional": False, "type": type_, **more}


def oms_envelope(types: Mapping[str, str]) -> bytes:
    """The start of an OMS message, from the Connect types of its columns."""
    fields = [oms_field(name, type_) for name, type_ in types.items()]
    source_fields = [oms_field(n, "int64" if n in OMS_LONGS else "string") for n in OMS_SOURCE]
    members = [
        oms_field("before", "struct", fields=fields),
        oms_field("after", "struct", fields=fields),
        oms_field("source", "struct", fields=source_fields),
        oms_field("op", "string"),
        oms_field("ts_ms", "int64"),
    ]
    return opened({"optional": False, "type": "STRUCT", "fields": members})
