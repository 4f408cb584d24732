"""Looks ahead in the binlog: where transactions end, and which DDL there is.

Rows are passed over, so that this costs little more than receiving them.
"""

from __future__ import annotations

from headgate.mysql.connection import Connection, EventStream, Start
from headgate.mysql.errors import DisconnectedError
from headgate.mysql.login import Login
from headgate.mysql.reader import Progress
from headgate.mysql.transactions import Assembler
from headgate.schema.known_tables import KnownTables


class BinlogScan:
    """A position that moves on; the server is asked again after a break."""

    def __init__(self, login: Login, replica_id: int, heartbeat: float) -> None:
        self.login, self.replica_id, self.heartbeat = login, replica_id, heartbeat
        self.connection: Connection | None = None
        self.stream: EventStream | None = None
        self.had_ddl = False
        """Whether DDL was met by the last `advance`."""

    def open(self, start: Start, known: KnownTables) -> None:
        """Begin at a position."""
        self.close()
        connection = self.connection = self.login.connect()
        own = connection.facts
        self.progress = Progress(start, own.is_mariadb)
        self.assembler = Assembler(
            known, _no_table, start.file, start.pos, log=own.server_id, reads_rows=False
        )
        now = connection.current_position()
        self.there = Start(gtids=now.gtids) if start.by_gtid else now
        """Where the binlog ended then: so far it can be read without waiting."""
        self.stream = connection.binlog(start, self.replica_id, self.heartbeat)
        self.events = iter(self.stream)

    def close(self) -> None:
        """Let go of the server."""
        if self.connection is not None:
            self.connection.close()
            self.connection = self.stream = None

    def advance(self, most_bytes: int) -> Start:
        """Where the last transaction ends that is there now, within about so many bytes.

        One that is larger than that counts as a whole.
        """
        self.had_ddl, size = False, 0
        while not self.assembler.is_between or (size < most_bytes and self._has_more()):
            event = next(self.events, None)
            if event is None:
                raise DisconnectedError("the server ended the binlog")
            size += len(event)
            transaction = self.assembler.feed(event)
            if transaction is not None and not self.progress.has(transaction):
                self.progress.note(transaction, self.assembler)
                items = transaction.items
                self.had_ddl |= any(getattr(item, "kind", "row") == "ddl" for item in items)
            self.progress.see_file(self.assembler)
        return self.progress.start()

    def _has_more(self) -> bool:
        assert self.stream is not None
        return not self.progress.reaches(self.there) or self.stream.has_more()


def _no_table(database: str, table: str) -> bool:
    return False
