"""Debezium 3.0's MySQL connector in its default modes, ExtractNewRecordState, and OMS's three."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from examples.producers import Message, base, dump, plain
from examples.shop import (
    ADDED,
    ALTER,
    DATABASE,
    KEY,
    TABLES,
    Row,
    Shop,
    Step,
    digits_of,
    type_of,
)

PREFIX = "shopdb"
OPS = {"insert": "c", "update": "u", "delete": "d"}
DECIMAL = {
    "type": "bytes",
    "optional": True,
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "4", "connect.decimal.precision": "20"},
}
FIELDS: dict[str, dict[str, Any]] = {
    "bigint": {"type": "int64", "optional": True},
    "bigint unsigned": {"type": "int64", "optional": True},
    "varchar": {"type": "string", "optional": True},
    "varbinary": {"type": "bytes", "optional": True},
    "decimal": DECIMAL,
    "datetime": {
        "type": "int64", "optional": True, "name": "io.debezium.time.Timestamp", "version": 1,
    },
    "timestamp": {
        "type": "string", "optional": True, "name": "io.debezium.time.ZonedTimestamp", "version": 1,
    },
}  # fmt: skip
SNAPSHOTS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
SOURCE_FIELDS = {
    "version": "string", "connector": "string", "name": "string", "ts_ms": "int64",
    "snapshot": "string", "db": "string", "sequence": "string", "ts_us": "int64",
    "ts_ns": "int64", "table": "string", "server_id": "int64", "gtid": "string",
    "file": "string", "pos": "int64", "row": "int32", "thread": "int64", "query": "string",
}  # fmt: skip
OPTIONAL = {"sequence", "ts_us", "ts_ns", "table", "gtid", "thread", "query"}
OMS_FIELDS = {"bigint": "int64", "varbinary": "bytes"}


def json_bytes(value: Any) -> bytes:
    """JSON as Kafka Connect's converter sends it."""
    return dump(value).encode()


def epoch_millis(value: datetime) -> int:
    """A wall clock as if it were UTC."""
    return round((value - datetime(1970, 1, 1)).total_seconds() * 1000)


def zoned(value: datetime, digits: int) -> str:
    """ISO text in UTC with the column's fraction digits."""
    fraction = f".{value.microsecond:06d}"[: 1 + digits] if digits else ""
    return f"{value:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def two_complement(unscaled: int) -> bytes:
    """The shortest big-endian two's complement, as Java's BigInteger gives it."""
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)


def values(table: str, row: Row) -> dict[str, Any]:
    """Decimals and bytes as base64, DATETIME as milliseconds, unsigned BIGINT wrapped to a long."""

    def value(name: str, sent: Any) -> Any:
        kind = base(type_of(table, name))
        if isinstance(sent, Decimal):
            sent = two_complement(int(sent.scaleb(4)))
        if isinstance(sent, bytes):
            return b64encode(sent).decode()
        if isinstance(sent, datetime):
            digits = digits_of(type_of(table, name))
            return zoned(sent, digits) if kind == "timestamp" else epoch_millis(sent)
        if kind == "bigint unsigned" and sent is not None and sent >= 2**63:
            return sent - 2**64
        return sent

    return {name: value(name, sent) for name, sent in row.items()}


def struct(fields: list[dict[str, Any]], name: str, **more: Any) -> dict[str, Any]:
    """A Connect struct."""
    return {"type": "struct", "fields": fields, "optional": False, "name": name} | more


def source_schema(connector_name: str = "io.debezium.connector.mysql.Source") -> dict[str, Any]:
    """The schema of `source`."""
    fields = []
    for name, kind in SOURCE_FIELDS.items():
        field: dict[str, Any] = {"type": kind, "optional": name in OPTIONAL}
        if name == "snapshot":
            field |= {"optional": True, "name": "io.debezium.data.Enum", "version": 1}
            field |= {"parameters": {"allowed": SNAPSHOTS}, "default": "false"}
        fields.append(field | {"field": name})
    return struct(fields, connector_name, version=1)


def envelope_schema(table: str, columns: list[str]) -> dict[str, Any]:
    """The schema of a change event."""
    name = f"{PREFIX}.{DATABASE}.{table}"
    fields = [FIELDS[base(type_of(table, n))] | {"field": n} for n in columns]
    fields[0] |= {"optional": False}
    row = struct(fields, f"{name}.Value") | {"optional": True}
    times = [{"type": "int64", "optional": True, "field": f"ts_{u}"} for u in ("ms", "us", "ns")]
    block = [
        {"type": "string", "optional": False, "field": "id"},
        {"type": "int64", "optional": False, "field": "total_order"},
        {"type": "int64", "optional": False, "field": "data_collection_order"},
    ]
    transaction = struct(block, "event.block", version=1) | {"optional": True}
    return struct(
        [
            row | {"field": "before"},
            row | {"field": "after"},
            source_schema() | {"field": "source"},
            transaction | {"field": "transaction"},
            {"type": "string", "optional": False, "field": "op"},
            *times,
        ],
        f"{name}.Envelope",
        version=2,
    )


def source(step: Step, row: int | None) -> dict[str, Any]:
    """Where a change comes from."""
    at = step.seconds * 1000
    return {
        "version": "3.0.8.Final", "connector": "mysql", "name": PREFIX, "ts_ms": at,
        "snapshot": "false", "db": DATABASE, "sequence": None, "ts_us": at * 1000,
        "ts_ns": at * 1_000_000, "table": step.table, "server_id": 223344, "gtid": None,
        "file": "binlog.000042", "pos": 1000 + step.number * 512, "row": row or 0,
        "thread": None if row is None else 17, "query": None,
    }  # fmt: skip


def times(step: Step) -> dict[str, int]:
    """When the connector saw it."""
    at = step.millis + 97
    return {"ts_ms": at, "ts_us": at * 1000 + 211, "ts_ns": (at * 1000 + 211) * 1000 + 500}


def topic(table: str) -> str:
    """The topic of a table."""
    return f"{PREFIX}.{DATABASE}.{table}"


def keyed(table: str, row: Row) -> bytes:
    """The Kafka key of a row, with its schema."""
    schema = struct([{"type": "int64", "optional": False, "field": KEY}], f"{topic(table)}.Key")
    return json_bytes({"schema": schema, "payload": {KEY: row[KEY]}})


def debezium(shop: Shop) -> Iterator[Message]:
    """Schema and payload, keys, a tombstone after each delete; DDL and heartbeats in own topics."""
    for step in shop.steps:
        if step.kind == "beat":
            yield heartbeat(step)
        if step.kind == "ddl":
            yield schema_change(step)
        for number, (before, after) in enumerate(step.rows):
            row = after or before or {}
            payload = {
                "before": values(step.table, before) if before else None,
                "after": values(step.table, after) if after else None,
                "source": source(step, number),
                "transaction": None,
                "op": OPS[step.op],
                **times(step),
            }
            schema = envelope_schema(step.table, list(row))
            key = keyed(step.table, row)
            value = json_bytes({"schema": schema, "payload": payload})
            yield Message(key, value, topic(step.table))
            if after is None:
                yield Message(key, None, topic(step.table))


def heartbeat(step: Step) -> Message:
    """A message of the heartbeat topic."""
    name = "io.debezium.connector.common"
    key = struct(
        [{"type": "string", "optional": False, "field": "serverName"}], f"{name}.ServerNameKey"
    )
    value = struct([{"type": "int64", "optional": False, "field": "ts_ms"}], f"{name}.Heartbeat")
    return Message(
        json_bytes({"schema": key, "payload": {"serverName": PREFIX}}),
        json_bytes({"schema": value, "payload": {"ts_ms": step.millis}}),
        f"__debezium-heartbeat.{PREFIX}",
    )


def schema_change(step: Step) -> Message:
    """A message of the schema-change topic."""
    name = "io.debezium.connector.mysql"
    change = struct(
        [
            {"type": "string", "optional": False, "field": "type"},
            {"type": "string", "optional": False, "field": "id"},
        ],
        "io.debezium.connector.schema.Change",
        version=1,
    )
    texts = [{"type": "string", "optional": True, "field": n}
             for n in ("databaseName", "schemaName", "ddl")]  # fmt: skip
    schema = struct(
        [
            source_schema() | {"field": "source"},
            {"type": "int64", "optional": False, "field": "ts_ms"},
            *texts,
            {"type": "array", "items": change, "optional": False, "field": "tableChanges"},
        ],
        f"{name}.SchemaChangeValue",
        version=1,
    )
    payload = {
        "source": source(step, None),
        "ts_ms": step.millis + 97,
        "databaseName": DATABASE,
        "schemaName": None,
        "ddl": ALTER,
        "tableChanges": [
            {"type": "ALTER", "id": f'"{DATABASE}"."{step.table}"', "table": altered(step.table)}
        ],
    }
    key = struct(
        [{"type": "string", "optional": False, "field": "databaseName"}],
        f"{name}.SchemaChangeKey",
        version=1,
    )
    return Message(
        json_bytes({"schema": key, "payload": {"databaseName": DATABASE}}),
        json_bytes({"schema": schema, "payload": payload}),
        PREFIX,
    )


def altered(table: str) -> dict[str, Any]:
    """The table after the ALTER."""
    columns = {**TABLES[table], ADDED[0]: ADDED[1]}
    return {
        "defaultCharsetName": "utf8mb4",
        "primaryKeyColumnNames": [KEY],
        "columns": [
            {"name": n, "typeName": base(t).upper(), "typeExpression": base(t).upper(),
             "position": i, "optional": n != KEY}
            for i, (n, t) in enumerate(columns.items(), 1)
        ],
        "comment": None,
    }  # fmt: skip


def smt(shop: Shop) -> Iterator[Message]:
    """ExtractNewRecordState with delete.tombstone.handling.mode=rewrite, schemas.enable=false."""
    for step in shop.steps:
        for before, after in step.rows:
            row = after or before or {}
            sent = values(step.table, row) | {"__deleted": "false" if after else "true"}
            yield Message(json_bytes({KEY: row[KEY]}), json_bytes(sent), topic(step.table))


def oms_values(table: str, row: Row) -> dict[str, Any]:
    """Decimals and unsigned BIGINT as text, bytes in hexadecimal, DATETIME as milliseconds."""

    def value(name: str, sent: Any) -> Any:
        kind = base(type_of(table, name))
        if isinstance(sent, bytes):
            return sent.hex().upper()
        if isinstance(sent, datetime):
            if kind == "datetime":
                return epoch_millis(sent)
            digits = len(f"{sent.microsecond:06d}".rstrip("0")) if sent.microsecond else 0
            return zoned(sent, digits)
        if isinstance(sent, Decimal):
            return f"{sent:f}"
        return str(sent) if kind == "bigint unsigned" and sent is not None else sent

    return {name: value(name, sent) for name, sent in row.items()}


def oms_envelope(step: Step, before: Row | None, after: Row | None) -> dict[str, Any]:
    """OMS's envelope; an image that is not there is left out."""
    if step.kind == "beat":
        signed = {"version": "2.0.1.Final", "connector": "OB_MYSQL", "name": "OMS"}
        return {
            "source": signed | {"ts_ms": step.seconds * 1000, "pos": step.seconds},
            "op": "HEARTBEAT",
            "ts_ms": step.millis + 318,
            "before": {},
            "after": {},
        }
    message: dict[str, Any] = {"op": OPS[step.op]}
    if before:
        message["before"] = oms_values(step.table, before)
    message["source"] = {
        "connector": "OB_MYSQL", "pos": f"{553000 + step.number}@{step.seconds}", "name": "OMS",
        "version": "", "ts_ms": step.seconds * 1000, "db": DATABASE, "table": step.table,
    }  # fmt: skip
    if after:
        message["after"] = oms_values(step.table, after)
    return message | {"ts_ms": step.millis + 318}


def oms_schema(table: str, columns: list[str]) -> dict[str, Any]:
    """OMS's schema: nothing is optional, and a DATETIME is called a string."""

    def field(name: str, kind: str, **more: Any) -> dict[str, Any]:
        return {"field": name, "optional": False, "type": kind} | more

    row = [field(n, OMS_FIELDS.get(base(type_of(table, n)), "string")) for n in columns]
    origin = {"version": "string", "connector": "string", "name": "string", "ts_ms": "int64"}
    origin |= {"db": "string", "table": "string", "server_id": "int64", "pos": "string"}
    return {
        "optional": False,
        "type": "STRUCT",
        "fields": [
            field("before", "struct", fields=row),
            field("after", "struct", fields=row),
            field("source", "struct", fields=[field(n, t) for n, t in origin.items()]),
            field("op", "string"),
            field("ts_ms", "int64"),
        ],
    }


def oms_changes(shop: Shop) -> Iterator[tuple[Step, Row | None, Row | None]]:
    """One row at a time; the document knows no DDL in these three methods."""
    for step in shop.steps:
        if step.kind != "ddl":
            for before, after in step.rows or [(None, None)]:
                yield step, before, after


def oms(shop: Shop) -> Iterator[Message]:
    """Method Debezium with the schema; a heartbeat has none."""
    for step, before, after in oms_changes(shop):
        wrapped: dict[str, Any] = {"payload": oms_envelope(step, before, after)}
        if row := after or before:
            wrapped = {"schema": oms_schema(step.table, list(row))} | wrapped
        yield plain(wrapped)


def oms_flatten(shop: Shop) -> Iterator[Message]:
    """Method DebeziumFlatten: the payload alone."""
    for step, before, after in oms_changes(shop):
        yield plain(oms_envelope(step, before, after))


def oms_smt(shop: Shop) -> Iterator[Message]:
    """Method DebeziumSmt: rows, one topic per table; a heartbeat keeps its envelope."""
    for step, before, after in oms_changes(shop):
        row = after or before
        if row is None:
            yield plain({"payload": oms_envelope(step, None, None)})._replace(topic="orders")
        else:
            sent = oms_values(step.table, row) | {"__deleted": "false" if after else "true"}
            yield Message(None, json_bytes(sent), step.table)
