"""Connections to the server: pymysql does handshake, TLS and authentication; the binlog is a stream
of packets after that, which are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from select import select
from typing import Any

import pymysql
from pymysql.constants import COMMAND

from headgate.mysql.errors import BinlogError, DisconnectedError, PurgedError
from headgate.mysql.events import FORMAT_DESCRIPTION, checksum_size
from headgate.mysql.gtids import GtidSet

NON_BLOCK, ANNOTATE_ROWS, THROUGH_GTID = 1, 2, 4
PURGED = 1236
"""The server's error for a position that it cannot read from."""
SAME_REPLICA = "same server_uuid/server_id"
"""In the text of the same error: where a replica with the same id has connected."""
MISSED_HEARTBEATS, NETWORK_SECONDS = 3, 30
"""How long a silent server is waited for."""
LOST = {1053, 1927, 2006, 2013, 2055, 3169, 4031}
"""The errors of a server that goes away, of a session that is killed, and of a connection that is
lost."""
READ_BUFFER = 1 << 20
MOST_IN_PACKET = 0xFFFFFF


@dataclass(frozen=True)
class Start:
    """Where reading begins: at a position of a file, or without one after transactions."""

    file: str = ""
    pos: int = 4
    gtids: str | None = None
    """The transactions that were read. MySQL: a GTID set; MariaDB: the latest GTID of each
    domain."""

    @property
    def by_gtid(self) -> bool:
        """Whether it is a place on any server that has the same transactions."""
        return not self.file and self.gtids is not None


@dataclass(frozen=True)
class ServerFacts:
    """What reading depends on."""

    version: str
    is_mariadb: bool
    server_id: int


class Connection:
    """A connection to a server, for statements, and for reading its binlog once."""

    def __init__(self, **options: Any) -> None:
        """Options are those of pymysql.connect: host, port, user, password, ssl …"""
        self.sql: Any = pymysql.connect(autocommit=True, charset="utf8mb4", **options)
        version, server_id = self.query("SELECT @@version, @@server_id")[0]
        self.facts = ServerFacts(version, "mariadb" in version.lower(), int(server_id))

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement; DisconnectedError where the connection broke."""
        with disconnections(), self.sql.cursor() as cursor:
            cursor.execute(sql, parameters or None)
            return list(cursor.fetchall())

    def close(self) -> None:
        """Close it, also in the middle of a stream."""
        self.sql._force_close()

    def current_position(self) -> Start:
        """Where the binlog ends now."""
        # Before the position: a transaction between the two is read again elsewhere, and not lost.
        variable = "gtid_binlog_pos" if self.facts.is_mariadb else "gtid_executed"
        ((gtids,),) = self.query(f"SELECT @@GLOBAL.{variable}")
        version = tuple(int(part) for part in self.facts.version.split("-")[0].split(".")[:2])
        is_new = not self.facts.is_mariadb and version >= (8, 2)
        rows = self.query("SHOW BINARY LOG STATUS" if is_new else "SHOW MASTER STATUS")
        if not rows:
            raise BinlogError("the server writes no binlog: start it with log_bin")
        return Start(rows[0][0], int(rows[0][1]), "".join(gtids.split()))

    def binlog(
        self, start: Start, replica_id: int, heartbeat: float = 10.0, wait: bool = True
    ) -> EventStream:
        """The events of the binlog, as bytes; without `wait` they end where the binlog ends.

        `replica_id` is a server id that no other replica has. When the server has nothing to send
        for `heartbeat` seconds, it sends a heartbeat event; a server that does not is gone.
        """
        self._prepare(start, replica_id, heartbeat)
        ((checksum,),) = self.query("SELECT @@GLOBAL.binlog_checksum")
        flags = 0 if wait else NON_BLOCK
        if self.facts.is_mariadb:
            flags |= ANNOTATE_ROWS
        name = start.file.encode()
        if start.by_gtid and not self.facts.is_mariadb:
            gtids = GtidSet(start.gtids or "").packed()
            arguments = struct.pack("<HII", flags | THROUGH_GTID, replica_id, 0)
            arguments += struct.pack("<QI", 4, len(gtids)) + gtids
            command = COMMAND.COM_BINLOG_DUMP_GTID
        elif start.pos > 0xFFFFFFFF and not self.facts.is_mariadb:
            arguments = struct.pack("<HII", flags, replica_id, len(name)) + name
            arguments += struct.pack("<QI", start.pos, 0)
            command = COMMAND.COM_BINLOG_DUMP_GTID
        else:
            arguments = struct.pack("<IHI", start.pos, flags, replica_id) + name
            command = COMMAND.COM_BINLOG_DUMP
        with disconnections():
            self.sql._execute_command(command, arguments)
        self.sql._sock.settimeout(MISSED_HEARTBEATS * heartbeat + NETWORK_SECONDS)
        return EventStream(self.sql._sock, 4 if checksum == "CRC32" else 0)

    def _prepare(self, start: Start, replica_id: int, heartbeat: float) -> None:
        """Tell the server what this replica understands, and who it is."""
        statements = [
            "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum",
            f"SET @master_heartbeat_period = {int(heartbeat * 1_000_000_000)}",
            f"SET @slave_uuid = '{replica_uuid(replica_id)}'",
        ]
        if self.facts.is_mariadb:
            statements.append("SET @mariadb_slave_capability = 4")
            if start.by_gtid:
                gtids = self.sql.escape(start.gtids or "")
                statements.append(f"SET @slave_connect_state = {gtids}")
        else:
            statements.append("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum")
            statements.append(f"SET @source_heartbeat_period = {int(heartbeat * 1_000_000_000)}")
        for statement in statements:
            self.query(statement)
        register = struct.pack("<IBBBHII", replica_id, 0, 0, 0, 0, 0, 0)
        with disconnections():
            self.sql._execute_command(COMMAND.COM_REGISTER_SLAVE, register)
            self.sql._read_ok_packet()


@contextmanager
def disconnections() -> Iterator[None]:
    """DisconnectedError where the connection breaks; what is refused stays pymysql's error."""
    try:
        yield
    except pymysql.err.InterfaceError as error:  # it was closed before
        raise DisconnectedError(f"the connection to the server broke: {error}") from None
    except pymysql.err.OperationalError as error:
        if error.args[0] not in LOST:
            raise
        raise DisconnectedError(f"the connection to the server broke: {error}") from None


def replica_uuid(replica_id: int) -> str:
    """The uuid that a replica shows itself with: two of one uuid push each other out.

    >>> replica_uuid(7)
    '00000000-0000-4000-8000-000000000007'
    """
    return f"00000000-0000-4000-8000-{replica_id:012x}"


class EventStream:
    """The events in a stream of packets, until the server ends it."""

    def __init__(self, socket: Any, checksum: int) -> None:
        """`checksum` is the number of bytes of a checksum, until the server's format tells it."""
        self._socket = socket
        self._checksum = checksum
        self._buffer = b""
        self._at = 0

    def __iter__(self) -> Iterator[bytes]:
        read = self._read
        while True:
            head = read(5)
            size = head[0] | head[1] << 8 | head[2] << 16
            body = read(size - 1)
            if head[4] == 0:
                if size == MOST_IN_PACKET:
                    body = self._with_rest(body)
                if body[4] == FORMAT_DESCRIPTION:
                    self._checksum = checksum_size(body)
                if self._checksum:
                    body = body[: -self._checksum]  # a large event is not kept twice
                yield body
            elif head[4] == 0xFE:
                return
            else:
                raise refusal(body, "the server sends no binlog")

    def has_more(self) -> bool:
        """Whether the next event has begun to arrive."""
        if self._at < len(self._buffer):
            return True
        if getattr(self._socket, "pending", lambda: 0)():
            return True
        return bool(select([self._socket], [], [], 0)[0])

    def _read(self, size: int) -> bytes:
        start = self._at
        end = self._at = start + size
        if end <= len(self._buffer):
            return self._buffer[start:end]
        parts = [self._buffer[start:]]
        missing = size - len(parts[0])
        while missing > 0:
            try:
                part = self._socket.recv(max(READ_BUFFER, min(missing, MOST_IN_PACKET)))
            except OSError as error:
                raise DisconnectedError(f"the connection to the server broke: {error}") from None
            if not part:
                raise DisconnectedError("the server closed the connection")
            parts.append(part)
            missing -= len(part)
        whole = b"".join(parts)
        if size > READ_BUFFER:
            self._buffer, self._at = whole[size:], 0
        else:
            self._buffer, self._at = whole, size
        return whole[:size]

    def _with_rest(self, first: bytes) -> bytes:
        """An event that is larger than a packet, of which this is the first."""
        parts = [first]
        while True:
            head = self._read(4)
            size = head[0] | head[1] << 8 | head[2] << 16
            parts.append(self._read(size))
            if size < MOST_IN_PACKET:
                return b"".join(parts)


def refusal(body: bytes, what: str) -> BinlogError:
    """The server's error, after its first byte."""
    number = int.from_bytes(body[:2], "little")
    text = body[8:].decode("utf-8", "replace") if body[2:3] == b"#" else body[2:].decode()
    if number in LOST:
        return DisconnectedError(f"the connection to the server broke ({number}: {text})")
    if number == PURGED and SAME_REPLICA in text:
        return BinlogError(
            f"another replica has the job's id, and the server sent it away ({number}: {text}); "
            "give the job another with server-id, as far from the other as it has tasks"
        )
    if number == PURGED:
        return PurgedError(
            f"the server cannot read its binlog from there ({number}: {text}); the position is "
            "purged or of another server: take a new snapshot, and keep the binlog longer "
            "(binlog_expire_logs_seconds)"
        )
    return BinlogError(f"{what} ({number}: {text})")
