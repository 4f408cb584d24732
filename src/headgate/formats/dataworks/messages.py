"""The members and operations of a DataWorks V2.0 message that decoder and encoder share."""

from __future__ import annotations

from typing import Any

import msgspec

from headgate.core.json import Int64

VERSION = "2.0"
ROW_OPS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
DDL_OPS = {
    "CREATE": "create",
    "ALTER": "alter",
    "ERASE": "drop",
    "QUERY": "query",
    "TRUNCATE": "truncate",
    "RENAME": "rename",
    "CINDEX": "create_index",
    "DINDEX": "drop_index",
}
MARKER_OPS = {
    "TRANSACTION_BEGIN": "begin",
    "TRANSACTION_END": "commit",
    "GTID": "begin",
    "XACOMMIT": "commit",
    "XAROLLBACK": "rollback",
}


class Source(msgspec.Struct, gc=False):
    """The table a change comes from."""

    dbType: str | None = None
    dbVersion: str | None = None
    dbName: str | None = None
    schema: str | None = None
    table: str | None = None


class Image(msgspec.Struct, gc=False):
    """One row image."""

    data: dict[str, Any] | None = None


class Times(msgspec.Struct, gc=False):
    """When the change happened and was written, and how far the synchronization is."""

    eventTime: Int64 | None = None
    systemTime: Int64 | None = None
    checkpointTime: Int64 | None = None


class Statement(msgspec.Struct, gc=False):
    """A DDL statement."""

    text: str | None = None


class Payload(msgspec.Struct, gc=False, kw_only=True):
    """The change itself."""

    before: Image | None = None
    after: Image | None = None
    op: str
    timestamp: Times | None = None
    ddl: Statement | None = None
    scn: str | int | None = None
