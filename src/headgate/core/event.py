"""The change event: the one shape in which all formats meet."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class ColumnType(NamedTuple):
    """What a message says of one column's type; each part is None where it says nothing."""

    mysql: str | None = None
    jdbc: int | None = None
    flags: int | None = None


Image = dict[str, "str | None"]
Types = dict[str, ColumnType]


class Event(msgspec.Struct, gc=False):
    """One row change, DDL statement, watermark, heartbeat, marker, tombstone or invalid message.

    Times are microseconds since the epoch. Images hold canonical text (docs/events.md).

    >>> Event("row", "insert", "shop", "orders", after={"id": "1"}).op
    'insert'
    """

    kind: str
    op: str | None = None
    database: str | None = None
    table: str | None = None
    key: tuple[str, ...] | None = None
    before: Image | None = None
    after: Image | None = None
    types: Types | None = None
    ddl: str | None = None
    commit_ts: int | None = None
    event_time: int | None = None
    emit_time: int | None = None
    position: dict[str, str] | None = None
    format: str | None = None
    dialect: str | None = None
    extra: dict[str, str] | None = None
    error: tuple[str, str] | None = None
    raw: bytes | None = None
    raw_key: bytes | None = None
    schema: str | None = None
    """The schema between database and table, where the source has one (PostgreSQL, Oracle, …)."""


def qualified(schema: str | None, table: str | None) -> str | None:
    """A table's name with its schema's before it, for whoever knows databases and tables only.

    >>> qualified("public", "orders"), qualified(None, "orders")
    ('public.orders', 'orders')
    """
    return f"{schema}.{table}" if schema and table else table


def flattened(event: Event) -> Event:
    """The event with its schema's name before the table's, for formats that have no other place.

    >>> flattened(Event("row", "insert", "shop", "orders", schema="public")).table
    'public.orders'
    """
    table = qualified(event.schema, event.table)
    return msgspec.structs.replace(event, table=table, schema=None)


class Message(NamedTuple):
    """One record as a transport hands it over: Kafka's columns, `value` is certain."""

    value: bytes | None
    key: bytes | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None


class Record(msgspec.Struct, gc=False):
    """One message to be written; a value of None is a tombstone."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] | None = None
    topic: str | None = None
    partition: int | None = None
    table: str | None = None
    """The table it is of, for sinks that take packed rows."""
