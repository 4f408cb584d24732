"""Debezium's and OMS's messages for encoding, in the order of their members; UNSET is omitted."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class Source(msgspec.Struct, gc=False):
    """The source of a change, as of Debezium 2.6."""

    version: str
    connector: str
    name: str
    ts_ms: int
    snapshot: str
    db: str
    sequence: str | None
    ts_us: int
    ts_ns: int | None
    schema: str | UnsetType
    table: str | None
    server_id: int | None = None
    gtid: str | None = None
    file: str | None = None
    pos: int | None = None
    row: int | None = None
    thread: int | None = None
    query: str | None = None
    commit_ts: int | UnsetType | None = UNSET
    cluster_id: str | UnsetType | None = UNSET


class Envelope(msgspec.Struct, gc=False):
    """A change, as of Debezium 2.7."""

    before: Any
    after: Any
    source: Any
    transaction: Any
    op: str
    ts_ms: int | None
    ts_us: int | None
    ts_ns: int | None


class Watermark(msgspec.Struct, gc=False):
    """TiCDC: every change up to a commit timestamp has been sent."""

    source: Source
    ts_ms: int | None
    transaction: None
    op: str


class SchemaChange(msgspec.Struct, gc=False):
    """A message of the schema change topic, as of Debezium 2.0."""

    source: Any
    ts_ms: int
    databaseName: str
    schemaName: str | None
    ddl: str
    tableChanges: Any


class Boundary(msgspec.Struct, gc=False):
    """The beginning or end of a transaction."""

    status: str
    id: str
    event_count: int | None
    data_collections: Any
    ts_ms: int


class Notification(msgspec.Struct, gc=False):
    """A message of the notification channel."""

    id: str | None
    type: str | None
    aggregate_type: str | None
    additional_data: Any
    timestamp: int | None


class OmsSource(msgspec.Struct, gc=False):
    """OMS: the source of a change."""

    connector: Any
    pos: Any
    name: Any
    version: Any
    ts_ms: int
    db: Any
    table: Any


class OmsRow(msgspec.Struct, gc=False):
    """OMS: a change; a missing image is omitted."""

    op: str
    before: Any
    source: OmsSource
    after: Any
    ts_ms: Any


class OmsHeartbeatSource(msgspec.Struct, gc=False):
    """OMS: the source of a heartbeat."""

    version: Any
    connector: Any
    name: Any
    ts_ms: int
    db: Any
    table: Any
    pos: Any


class OmsHeartbeat(msgspec.Struct, gc=False):
    """OMS: a heartbeat."""

    source: OmsHeartbeatSource
    op: str
    ts_ms: Any
    before: dict[str, str]
    after: dict[str, str]
