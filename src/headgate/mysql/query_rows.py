"""The rows of a query as columns of text, read from the server's packets as they arrive.

The server sends every value as text, or as bytes; no object is made for a row. `packet_kernel` does
by machine code what `walk` does here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from importlib import import_module
from select import select
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pymysql.constants import COMMAND

from headgate.core.mysql_types import parse_type
from headgate.mysql.compilation import ROW_LOOPS
from headgate.mysql.connection import MOST_IN_PACKET, Connection, disconnections, refusal
from headgate.mysql.errors import DisconnectedError
from headgate.mysql.images import Cells, Layout, texts
from headgate.mysql.numbers import float_text
from headgate.mysql.sql import identifier
from headgate.mysql.values import BASE64, COPY, Reader, base64_text

ROWS, BYTES = 8192, 8 * 1024 * 1024
"""A batch of rows has at most so many, or about so many bytes."""
RECEIVED = 1 << 20
FOR_MORE = 0.005
"""The seconds for which more is waited for, so that few rows are not a batch of their own."""
MORE, ENDED, LARGE = 0, 1, 2
"""As in `packet_kernel`."""


class QueryColumn(NamedTuple):
    """A column of a query: its SQL, and how what the server sends for it is read."""

    sql: str
    reader: Reader


def query_column(name: str, mysql: str) -> QueryColumn:
    """How a column of a table is asked for and read, so that it is as the binlog has it.

    >>> query_column("a", "bit(4)").sql, query_column("a", "text").sql
    ('`a` + 0', '`a`')
    """
    column, parsed = identifier(name), parse_type(mysql)
    match parsed.family:
        case "bit":
            return QueryColumn(f"{column} + 0", _copied)
        case "float" if parsed.base != "double":  # as a FLOAT it would be printed with six digits
            return QueryColumn(f"{column} + 0e0", _float)
        case "float" | "double":
            return QueryColumn(f"{column} + 0e0", _copied)
        case "binary" | "spatial" | "vector":
            return QueryColumn(column, _base64)
        case "integer" | "decimal" if " zerofill" in mysql:
            return QueryColumn(f"{column} + 0", _copied)
        case _:
            return QueryColumn(column, _copied)


_copied = Reader(0, bytes.decode, COPY)
_base64 = Reader(0, base64_text, BASE64)
_float = Reader(0, lambda text: float_text(struct.pack("<f", float(text))))


def query_texts(connection: Connection, sql: str, layout: Layout) -> Iterator[pa.Array]:
    """The values of a query's rows, row by row, in batches; its columns are those of `layout`."""
    print_texts: Any = texts if _compiled() is None else import_module(_COMPILED).texts
    for data, cells in query_cells(connection, sql, len(layout.columns)):
        yield print_texts(data, cells, layout)


def query_cells(connection: Connection, sql: str, width: int) -> Iterator[tuple[bytes, Cells]]:
    """Where the values of a query's rows are in the bytes of packets."""
    session = connection.sql
    with disconnections():
        session._execute_command(COMMAND.COM_QUERY, sql)
    packets = _Packets(session._sock)
    while packets.next()[:1] != b"\xfe":  # what the columns are is known
        pass
    while True:
        rows, end, cells, why = walk(packets.data, width)
        if rows:
            yield packets.data[:end], cells
            packets.take(end)
        elif why == LARGE:
            row = packets.next()
            yield row, _row_cells(row, width)
        elif why == ENDED:
            packets.next()
            return
        else:
            packets.receive()


def walk(data: bytes, width: int) -> tuple[int, int, Cells, int]:
    """The rows at the beginning of some packets: how many, where they end, and why there."""
    starts, lengths = np.zeros((ROWS, width), np.int64), np.zeros((ROWS, width), np.int64)
    compiled = _compiled()
    if compiled is not None:
        octets = np.frombuffer(data, np.uint8)
        rows, end, why = compiled.walk_packets(octets, width, ROWS, starts, lengths)
        return rows, end, Cells(starts[:rows], lengths[:rows]), why
    at = rows = 0
    why = MORE
    while rows < ROWS and at + 5 <= len(data):
        size = int.from_bytes(data[at : at + 3], "little")
        if data[at + 4] == 0xFF or (data[at + 4] == 0xFE and size < 9):
            why = ENDED
            break
        if size == MOST_IN_PACKET:
            why = LARGE
            break
        if at + 4 + size > len(data):
            break
        one = _row_cells(data, width, at + 4)
        starts[rows], lengths[rows] = one.starts[0], one.lengths[0]
        at += 4 + size
        rows += 1
    return rows, at, Cells(starts[:rows], lengths[:rows]), why


def _row_cells(data: bytes, width: int, at: int = 0) -> Cells:
    """The values of one row."""
    starts, lengths = np.zeros((1, width), np.int64), np.zeros((1, width), np.int64)
    for column in range(width):
        length, at = data[at], at + 1
        if length == 251:
            lengths[0, column] = -1
            continue
        if length > 251:
            octets = {252: 2, 253: 3, 254: 8}[length]
            length, at = int.from_bytes(data[at : at + octets], "little"), at + octets
        starts[0, column], lengths[0, column] = at, length
        at += length
    return Cells(starts, lengths)


class _Packets:
    """The bytes that come from the server, in which packets begin at any place."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self.data = b""

    def receive(self) -> None:
        """Wait for more, and take what is there then."""
        parts = [self.data, self._received()]
        size = sum(map(len, parts))
        while size < BYTES and self._has_more():
            parts.append(self._received())
            size += len(parts[-1])
        self.data = b"".join(parts)

    def _has_more(self) -> bool:
        pending = getattr(self._socket, "pending", lambda: 0)()
        return bool(pending) or bool(select([self._socket], [], [], FOR_MORE)[0])

    def take(self, size: int) -> None:
        """So much has been read."""
        self.data = self.data[size:]

    def next(self) -> bytes:
        """The content of the next packet, joined where there are several."""
        parts: list[bytes] = []
        size = MOST_IN_PACKET
        while size == MOST_IN_PACKET:
            size = int.from_bytes(self._read(4)[:3], "little")
            parts.append(self._read(size))
        if parts[0][:1] == b"\xff":
            raise refusal(parts[0][1:], "the server cannot run a query")
        return b"".join(parts)

    def _read(self, size: int) -> bytes:
        parts, missing = [self.data], size - len(self.data)
        while missing > 0:
            parts.append(self._received())
            missing -= len(parts[-1])
        whole = b"".join(parts)
        self.data = whole[size:]
        return whole[:size]

    def _received(self) -> bytes:
        try:
            data: bytes = self._socket.recv(RECEIVED)
        except OSError as error:
            raise DisconnectedError(f"the connection to the server broke: {error}") from None
        if not data:
            raise DisconnectedError("the server closed the connection")
        return data


_COMPILED = "headgate.mysql.compiled"


def _compiled() -> Any:
    """The compiled loop; None without Numba, and until it is compiled."""
    return import_module("headgate.mysql.packet_kernel") if ROW_LOOPS.is_ready() else None


def table_layout(columns: Sequence[tuple[str, str]]) -> tuple[list[str], Layout]:
    """The SQL of columns, given by name and type, and how their values are read."""
    asked = [query_column(name, mysql) for name, mysql in columns]
    names = [name for name, _ in columns]
    readers = [each.reader for each in asked]
    return [each.sql for each in asked], Layout(range(len(names)), names, readers)
