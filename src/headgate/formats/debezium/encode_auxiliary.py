"""Debezium's messages other than rows: schema changes, heartbeats, watermarks, transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET

from headgate.core.event import Event, Record
from headgate.core.losses import Lossy
from headgate.formats._connect import schema as connect_schema
from headgate.formats._connect.connectors import TICDC
from headgate.formats._connect.encode_rows import (
    CONNECT_FORMATS,
    NOTHING,
)
from headgate.formats._connect.encode_values import nested
from headgate.formats.base import Encode
from headgate.formats.debezium.encode_parts import (
    finish,
    int64_or_none,
    millis,
    millis_or_none,
    own_extra,
    retract,
)
from headgate.formats.debezium.encode_source import PREFIX, has_binlog_position, make_source
from headgate.formats.debezium.messages import (
    Boundary,
    Notification,
    SchemaChange,
    Source,
    Watermark,
)

BOUNDARIES = {"begin": "BEGIN", "commit": "END"}


def note(event: Event, lost: list[str], *codes: str) -> None:
    """Count what a message other than a row cannot represent."""
    has = {
        "database": event.database,
        "table": event.table,
        "event-time": event.event_time,
        "emit-time": event.emit_time,
        "event-time-micros": (event.event_time or 0) % 1_000,
        "emit-time-micros": (event.emit_time or 0) % 1_000,
    }
    lost += [code for code in codes if has[code]]


Extra = Mapping[str, str] | None
"""The `extra` of an event that Debezium wrote; None for other events."""
SCHEMA_CHANGE_CODES = ("database", "table", "event-time", "event-time-micros", "emit-time")


def auxiliary(prefix: str | None, schemas: bool) -> Encode:
    """An encoder of events other than rows."""
    writer = Writer(prefix, schemas, make_source(prefix))

    def encode(event: Event, lost: list[str]) -> list[Record]:
        extra = own_extra(event)
        if extra is not None:
            retract(lost, ("extra",))
        if event.kind == "marker":
            if event.op in BOUNDARIES:
                return boundary(writer, event, extra, lost)
            return notification(writer, event, extra) if "aggregate_type" in (extra or ()) else []
        if event.kind == "tombstone":
            return tombstone(event, lost)
        write = WRITERS.get(event.kind)
        return [] if write is None else write(writer, event, extra, lost)

    return encode


class Writer(NamedTuple):
    """The topic prefix, whether schema blocks are written, and the maker of `source`."""

    prefix: str | None
    schemas: bool
    source: Callable[[Event, Extra], Source]

    def record(self, value: tuple[bytes, Any], key: tuple[bytes, Any] | None) -> list[Record]:
        """A message and its key, from pairs of schema block and content."""
        record = Record(self.json(value))
        if key is not None:
            record.key = self.json(key)
        return [record]

    def json(self, part: tuple[bytes, Any]) -> bytes:
        """A value or a key, with its schema block if schemas are written."""
        block, message = part
        return finish(block, message, b"}") if self.schemas else finish(b"", message, b"")


def schema_change(writer: Writer, event: Event, extra: Extra, lost: list[str]) -> list[Record]:
    """A message of the schema change topic."""
    source = writer.source(event, extra)
    retract(lost, SCHEMA_CHANGE_CODES)
    if source.commit_ts is not UNSET:
        retract(lost, ("commit-ts",))
    note(event, lost, "emit-time-micros")
    changes = (extra or NOTHING).get("tableChanges")
    database = event.database or ""
    message = SchemaChange(
        source,
        millis(event.emit_time),
        database,
        event.schema,
        event.ddl or "",
        [] if changes is None else json_or(changes, []),
    )
    value, key = connect_schema.schema_change(
        source.connector, has_binlog_position(source), event.schema is not None
    )
    return writer.record((value, message), (key, {"databaseName": database}))


def heartbeat(writer: Writer, event: Event, extra: Extra, lost: list[str]) -> list[Record]:
    """A heartbeat, whose key names the connector."""
    retract(lost, ("database", "table", "event-time", "emit-time"))
    note(event, lost, "database", "table", "event-time", "emit-time-micros")
    name: str | None = writer.prefix or PREFIX
    if extra is not None:
        name = extra.get("serverName")
    key = None if name is None else (connect_schema.HEARTBEAT_KEY, {"serverName": name})
    return writer.record((connect_schema.HEARTBEAT, {"ts_ms": millis(event.emit_time)}), key)


def watermark(writer: Writer, event: Event, extra: Extra, lost: list[str]) -> list[Record]:
    """TiCDC's watermark; no other connector has one."""
    source = writer.source(event, extra)
    if source.connector != TICDC:
        return []
    retract(lost, ("commit-ts",))
    message = Watermark(source, millis_or_none(event.emit_time), None, "m")
    name = connect_schema.dotted(source.name, "watermark")
    return writer.record(
        (connect_schema.watermark(name), message), (connect_schema.key([], (name,)), {})
    )


def boundary(writer: Writer, event: Event, extra: Extra, lost: list[str]) -> list[Record]:
    """The beginning or end of a transaction."""
    members = extra or NOTHING
    retract(lost, ("database", "table", "event-time", "emit-time"))
    note(event, lost, "database", "table", "emit-time", "event-time-micros")
    id = transaction_id(event)
    message = Boundary(
        BOUNDARIES[event.op or ""],
        id,
        int64_or_none(members.get("event_count")),
        json_or(members.get("data_collections"), None),
        millis(event.event_time),
    )
    key = (connect_schema.BOUNDARY_KEY, {"id": id})
    return writer.record((connect_schema.BOUNDARY, message), key)


def notification(writer: Writer, event: Event, extra: Extra) -> list[Record]:
    """A message of the notification channel."""
    members = extra or NOTHING
    message = Notification(
        members.get("id"),
        members.get("type"),
        members.get("aggregate_type"),
        json_or(members.get("additional_data"), None),
        millis_or_none(event.emit_time),
    )
    return writer.record((connect_schema.NOTIFICATION, message), None)


def tombstone(event: Event, lost: list[str]) -> list[Record]:
    """A null value with the original key; keys of other formats are dropped."""
    if event.format not in CONNECT_FORMATS:
        return []
    retract(lost, ("extra",))
    key = (event.extra or NOTHING).get("key")
    return [Record(None, None if key is None else key.encode())]


def transaction_id(event: Event) -> str:
    """The id of a transaction: its GTID, or its start in the binlog.

    >>> transaction_id(Event("marker", "begin", position={"file": "bin.1", "pos": "4"}))
    'file=bin.1,pos=4'
    """
    position = event.position or NOTHING
    if "file" in position and "pos" in position and not position.keys() & {"id", "gtid"}:
        return f"file={position['file']},pos={position['pos']}"
    return position.get("id") or position.get("gtid") or position.get("xid") or ""


def json_or(text: str | None, otherwise: Any) -> Any:
    """An object or array from `extra`, as it was sent."""
    try:
        return otherwise if text is None else nested(text)
    except Lossy:
        return otherwise


WRITERS: dict[str, Callable[[Writer, Event, Extra, list[str]], list[Record]]] = {
    "ddl": schema_change,
    "heartbeat": heartbeat,
    "watermark": watermark,
}
