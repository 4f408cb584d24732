"""Binlog events other than rows and table maps: the header, and what is in each kind.

An event is its bytes, from its header to before its checksum; integers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

import pyarrow as pa

from headgate.mysql.charsets import charset_of, lenient_decoder
from headgate.mysql.errors import BinlogError, malformed

HEADER = struct.Struct("<IBIIIH")
"""Time in seconds, type, server id, size, end in the file, flags."""
HEADER_SIZE, TYPE_AT = 19, 4
ARTIFICIAL = 0x20
"""The flag of an event that the server made up for this connection."""

QUERY, STOP, ROTATE, INTVAR, RAND, USER_VAR, FORMAT_DESCRIPTION, XID = 2, 3, 4, 5, 13, 14, 15, 16
BEGIN_LOAD_QUERY, EXECUTE_LOAD_QUERY, TABLE_MAP, INCIDENT, HEARTBEAT = 17, 18, 19, 26, 27
IGNORABLE, ROWS_QUERY, GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS = 28, 29, 33, 34, 35
TRANSACTION_CONTEXT, VIEW_CHANGE, XA_PREPARE, TRANSACTION_PAYLOAD = 36, 37, 38, 40
HEARTBEAT_V2, TAGGED_GTID = 41, 42
HEARTBEATS = (HEARTBEAT, HEARTBEAT_V2)
ANNOTATE_ROWS, BINLOG_CHECKPOINT, MARIADB_GTID, GTID_LIST, START_ENCRYPTION = range(160, 165)
QUERY_COMPRESSED = 165
UNIMPORTANT = frozenset({
    STOP, INTVAR, RAND, USER_VAR, BEGIN_LOAD_QUERY, IGNORABLE, PREVIOUS_GTIDS, TRANSACTION_CONTEXT,
    VIEW_CHANGE, BINLOG_CHECKPOINT, GTID_LIST, START_ENCRYPTION, HEARTBEAT, HEARTBEAT_V2,
})  # fmt: skip
"""Events that tell nothing of changes."""

_STATUS_SIZES = {0: 4, 1: 8, 3: 4}
"""The sizes of a query's variables that may come before its character set."""
_CATALOG, _CHARSET = 6, 4


class Query(NamedTuple):
    """A statement: DDL, BEGIN, or DML of a statement-based binlog."""

    thread: int
    database: str | None
    sql: str


def packed_int(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A length-encoded integer, and where it ends.

    >>> packed_int(b"\\xfc\\x01\\x02", 0)
    (513, 3)
    """
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}.get(first)
    if size is None:
        raise malformed("an event has a length that is none")
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def server_version(event: bytes) -> str:
    """From a format description: the version of the server that wrote the file."""
    return event[HEADER_SIZE + 2 : HEADER_SIZE + 52].split(b"\0")[0].decode()


def checksum_size(event: bytes) -> int:
    """From a format description: how many bytes at the end of each event are its checksum."""
    if event[HEADER_SIZE] != 4:
        raise BinlogError("the binlog is of a server older than MySQL 5.0; it cannot be read")
    version = server_version(event)
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:3])
    if numbers < (5, 6, 1) and "maria" not in version.lower():
        return 0
    return 4 if event[-5] == 1 else 0


def rotate(event: bytes) -> tuple[str, int]:
    """The next file, and where in it events go on."""
    (position,) = struct.unpack_from("<Q", event, HEADER_SIZE)
    return event[HEADER_SIZE + 8 :].split(b"\0")[0].decode(), position


def query(event: bytes, compressed: bool = False) -> Query:
    """A statement with its database."""
    if event[-6:] == b"\0BEGIN" and not compressed:  # most of all statements
        return Query(int.from_bytes(event[HEADER_SIZE : HEADER_SIZE + 4], "little"), None, "BEGIN")
    thread, _, database_size, _, status_size = struct.unpack_from("<IIBHH", event, HEADER_SIZE)
    start = HEADER_SIZE + 13
    charset = _client_charset(event[start : start + status_size])
    start += status_size
    database = event[start : start + database_size].decode()
    text = event[start + database_size + 1 :]
    if compressed:
        text = uncompressed(text)
    return Query(thread, database or None, lenient_decoder(charset)(text))


def _client_charset(variables: bytes) -> str:
    at = 0
    while at < len(variables):
        code = variables[at]
        if code == _CHARSET:
            return charset_of(int.from_bytes(variables[at + 1 : at + 3], "little"))
        if code == _CATALOG:
            at += 2 + variables[at + 1]
        elif code in _STATUS_SIZES:
            at += 1 + _STATUS_SIZES[code]
        else:
            break
    return "utf8mb4"


def xid(event: bytes) -> int:
    """The number of a committed transaction."""
    return int.from_bytes(event[HEADER_SIZE : HEADER_SIZE + 8], "little")


def mysql_gtid(event: bytes) -> str:
    """The id in MySQL's GTID event."""
    number = int.from_bytes(event[HEADER_SIZE + 17 : HEADER_SIZE + 25], "little")
    return f"{_uuid_text(event[HEADER_SIZE + 1 : HEADER_SIZE + 17])}:{number}"


@lru_cache
def _uuid_text(data: bytes) -> str:
    return str(UUID(bytes=data))


def mariadb_gtid(event: bytes, server_id: int) -> tuple[str, bool]:
    """The id in MariaDB's GTID event, and whether it stands for BEGIN: one statement without a
    commit of its own follows otherwise."""
    number, domain, flags = struct.unpack_from("<QIB", event, HEADER_SIZE)
    return f"{domain}-{server_id}-{number}", not flags & 1


def rows_query(event: bytes) -> str:
    """The statement whose rows follow: MySQL's has its length, cut to a byte, before it."""
    start = HEADER_SIZE + (event[TYPE_AT] == ROWS_QUERY)
    return event[start:].decode("utf-8", "replace")


def xa_statement(event: bytes) -> tuple[str, bool]:
    """XA_PREPARE: the transaction's name as SQL writes it, and whether it is committed at once."""
    one_phase, format_id, first, second = struct.unpack_from("<?III", event, HEADER_SIZE)
    start = HEADER_SIZE + 13
    name = event[start : start + first]
    branch = event[start + first : start + first + second]
    return f"X'{name.hex()}',X'{branch.hex()}',{format_id}", one_phase


def uncompressed(data: bytes) -> bytes:
    """MariaDB's compressed data: a head with the length of what was compressed, then zlib's."""
    size = data[0] & 7
    if data[0] & 0xF0 != 0x80:
        raise malformed("an event is compressed in an unknown way")
    length = int.from_bytes(data[1 : 1 + size], "big")
    try:
        content = zlib.decompress(data[1 + size :])
    except zlib.error:
        raise malformed("a compressed event cannot be read") from None
    if len(content) != length:
        raise malformed("a compressed event has another length than it says")
    return content


def payload(event: bytes) -> Iterator[bytes]:
    """The events in a compressed transaction of MySQL's."""
    at, compression, size = HEADER_SIZE, 0, 0
    while True:
        field, at = packed_int(event, at)
        if field == 0:
            break
        length, at = packed_int(event, at)
        if field == 2:
            compression = packed_int(event, at)[0]
        elif field == 3:
            size = packed_int(event, at)[0]
        at += length
    data = event[at:]
    if compression == 0:
        data = pa.decompress(data, decompressed_size=size, codec="zstd", asbytes=True)
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 9)
        if length < HEADER_SIZE:
            raise malformed("a compressed transaction has an event without a header")
        yield data[at : at + length]
        at += length
