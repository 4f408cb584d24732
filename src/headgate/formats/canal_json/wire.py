"""The members of a canal-json message, and how to parse them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.json import Int64, Raw, escape_control_characters, parse, reader

ROW_OPS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "INIT": "snapshot"}
DDL_OPS = {
    "CREATE": "create",
    "ALTER": "alter",
    "ERASE": "drop",
    "RENAME": "rename",
    "TRUNCATE": "truncate",
    "CINDEX": "create_index",
    "DINDEX": "drop_index",
    "QUERY": "query",
}
MARKER_OPS = {"XACOMMIT": "commit", "XAROLLBACK": "rollback", "GTID": "begin"}
TYPES = [*ROW_OPS, *DDL_OPS, *MARKER_OPS, "MHEARTBEAT", "TIDB_WATERMARK"]

NULL = Raw(b"null")
NO_TYPES = (NULL, Raw(b"{}"))


class Tidb(msgspec.Struct, gc=False):
    """TiCDC's extension member `_tidb`."""

    commitTs: Int64 | None = None
    watermarkTs: Int64 | None = None
    onlyHandleKey: bool = False
    claimCheckLocation: str | None = None
    rowkey: str | None = None


class Envelope(msgspec.Struct, gc=False):
    """All members except the rows; type maps stay raw, because they repeat and are cached."""

    type: str
    database: str | None = None
    table: str | None = None
    isDdl: bool = False
    es: Int64 | None = None
    ts: Int64 | None = None
    id: Int64 | UnsetType | None = UNSET
    gtid: str | None = None
    sql: str | None = None
    pkNames: Raw = NULL
    mysqlType: Raw = NULL
    sqlType: Raw = NULL
    tidb: Tidb | None = msgspec.field(name="_tidb", default=None)


class TextRows(Envelope, gc=False):
    """Canal and TiCDC: every value is a string or null."""

    data: list[dict[str, str | None]] | None = None
    old: list[dict[str, str | None] | None] | None = None


class TypedRows(Envelope, gc=False):
    """OMS and Tencent: numbers are bare."""

    data: list[dict[str, Any]] | None = None
    old: list[dict[str, Any] | None] | None = None


class RawRows(msgspec.Struct, gc=False):
    """The rows only, each value as its unparsed bytes."""

    data: list[dict[str, Raw] | None] | None = None
    old: list[dict[str, Raw] | None] | None = None


read_text_rows = reader(TextRows).decode
typed_rows_reader = reader(TypedRows)
raw_rows_reader = reader(RawRows)
names_reader = reader(list[str] | None)
mysql_types_reader = reader(dict[str, str | None] | None)
sql_types_reader = reader(dict[str, Int64 | None] | None)


def read(value: bytes, typed: bool) -> Any:
    """Parse a message: as text rows if possible, else as rows with bare values."""
    if not typed:
        try:
            if not value.isascii():
                str(value, "utf-8")
            return read_text_rows(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
    try:
        return parse(typed_rows_reader, value)
    except DecodeError as error:
        escaped = escape_control_characters(value)
        if error.code != "malformed-json" or escaped == value:
            raise
        return parse(typed_rows_reader, escaped)


def _read_mysql_types(text: bytes) -> dict[str, str | None]:
    return parse(mysql_types_reader, text) or {}


_mysql_types = BoundedCache(_read_mysql_types)
"""By its text: TiCDC writes the same map in several orders."""


def mysql_types(message: Envelope) -> dict[str, str | None]:
    """The map `mysqlType`."""
    return _mysql_types[bytes(message.mysqlType)]
