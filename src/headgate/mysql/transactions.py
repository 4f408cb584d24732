"""Binlog events put together into transactions, with the place of each change.

The server writes a transaction when it commits, as one piece; so its end, with its number, is at
hand before its rows are passed on. Only a very large transaction is passed on in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headgate.core.event import Event
from headgate.mysql import events as e
from headgate.mysql.columns import resolve
from headgate.mysql.errors import BinlogError, malformed
from headgate.mysql.rows import ROWS_TYPES, RowsEvent, RowsType, TableReader, read_rows, table_id
from headgate.mysql.statements import (
    described,
    is_about_accounts,
    named_tables,
    written_tables,
    xa_name,
)
from headgate.mysql.table_map import read_table_map
from headgate.schema.known_tables import KnownTables

MOST_BYTES = 16 * 1024 * 1024
"""A transaction with more bytes of rows is passed on in parts; its rows have no xid."""
MOST_READERS = 4096
_OF_STREAM = frozenset({e.FORMAT_DESCRIPTION, e.ROTATE, *e.HEARTBEATS})
Wanted = Callable[[str, str], bool]
"""Whether a table's rows are read, by database and name."""


@dataclass(slots=True)
class PlacedRows:
    """The rows of an event, and where it is."""

    pos: int
    time: int
    rows: RowsEvent


@dataclass(slots=True)
class Transaction:
    """A transaction, or a part of one, or a DDL statement."""

    file: str
    begin: int
    """Where it begins in the file."""
    server_id: int
    gtid: str | None = None
    thread: int | None = None
    xid: int | None = None
    time: int = 0
    items: list[PlacedRows | Event] = field(default_factory=list)
    """Rows and events, in order."""
    is_first: bool = True
    is_last: bool = True
    last: int = 0
    """Where the event begins that ends it."""
    outcome: str = "commit"
    """The operation of the marker at its end."""
    has_boundaries: bool = True
    """Whether it has a beginning and an end; DDL has not."""
    xa: str | None = None
    """The name of a transaction that is prepared, and committed or not later on."""
    size: int = 0
    is_counted: bool = False
    """Whether its rows are being numbered."""
    log: str | None = None
    """The server whose binlog it is in, where that is not the one that it was made on."""


def constants(transaction: Transaction) -> dict[str, str]:
    """The members of a position that all changes of a transaction share."""
    members = {"server_id": str(transaction.server_id)}
    if transaction.log is not None:
        members["log"] = transaction.log
    if transaction.gtid is not None:
        members["gtid"] = transaction.gtid
    if transaction.xid is not None:
        members["xid"] = str(transaction.xid)
    if transaction.thread is not None:
        members["thread"] = members["thread_id"] = str(transaction.thread)
    return members


class Assembler:
    """Puts events together; `feed` gives a transaction when an event ends it."""

    def __init__(
        self,
        known: KnownTables,
        wanted: Wanted,
        file: str = "",
        pos: int = 4,
        queries: bool = False,
        log: int | None = None,
        wanted_ddl: Wanted | None = None,
        reads_rows: bool = True,
    ) -> None:
        """With `queries` the statements that the server notes before rows are events too.

        `log` is the id of the server whose binlog it is. `wanted_ddl` says of which tables DDL is
        an event; without it, of all. Without `reads_rows` it is no matter what becomes of rows.
        """
        self._reads_rows = reads_rows
        self._prepared: dict[str, bool] = {}
        """Distributed transactions that are prepared, and whether rows of them were read."""
        self._wanted_ddl = wanted_ddl
        self.known = known
        self._log = log
        self._is_mariadb = False
        self.file, self.pos = file, pos
        """Where the next event begins."""
        self._wanted = wanted
        self._readers: dict[bytes, TableReader | None] = {}
        self._tables: dict[int, TableReader | None] = {}
        self._current: Transaction | None = None
        self._in_transaction = False
        self._queries = queries
        self._passed_on = False
        """Whether a part of the transaction was passed on."""

    def feed(self, event: bytes) -> Transaction | None:
        """Take in an event."""
        time, kind, server_id, size, end, flags = e.HEADER.unpack_from(event)
        if kind in _OF_STREAM or flags & e.ARTIFICIAL:
            self._take_of_stream(kind, event, end)
            return None
        start = self.pos
        # MariaDB leaves out the end of events within a transaction.
        if end and end != start + size & 0xFFFFFFFF:
            start = self._moved(size, end)
        self.pos = start + size
        transaction = self._take(kind, event, start, time, server_id)
        return self._finished(transaction, start) if transaction is not None else None

    @property
    def is_between(self) -> bool:
        """Whether the next event begins a transaction."""
        return self._current is None

    def _take_of_stream(self, kind: int, event: bytes, end: int) -> None:
        """Take in an event that is not of changes: which file it is, and how it is written."""
        if kind == e.ROTATE:
            self.file, self.pos = e.rotate(event)
        elif kind == e.FORMAT_DESCRIPTION:
            self._in_transaction, self._current = False, None
            self._is_mariadb = "maria" in e.server_version(event).lower()
            self.pos = end or self.pos

    def _moved(self, size: int, end: int) -> int:
        """Where an event begins that does not follow on the one before: the server left some out.
        Positions in events have four bytes, files may be larger."""
        start = (self.pos & ~0xFFFFFFFF) + end - size
        return start if start >= self.pos else start + (1 << 32)

    def _finished(self, transaction: Transaction, start: int) -> Transaction:
        transaction.last = start
        transaction.is_first = not self._passed_on
        self._passed_on = not transaction.is_last
        if not (transaction.is_first and transaction.is_last):
            transaction.xid = None
        return transaction

    def _take(
        self, kind: int, event: bytes, start: int, time: int, server_id: int
    ) -> Transaction | None:
        """Take in an event of the file; gives the transaction that it ends."""
        rows = ROWS_TYPES.get(kind)
        if rows is not None:
            return self._take_rows(event, rows, start, time, server_id)
        if kind == e.TABLE_MAP:
            self._take_table(event)
        elif kind == e.XID:
            return self._ended(e.xid(event))
        elif kind in (e.GTID, e.ANONYMOUS_GTID, e.MARIADB_GTID):
            self._begin(kind, event, start, time, server_id)
        elif kind in (e.QUERY, e.QUERY_COMPRESSED):
            query = e.query(event, kind == e.QUERY_COMPRESSED)
            return self._take_query(query, start, time, server_id)
        elif kind in (e.ROWS_QUERY, e.ANNOTATE_ROWS):
            if self._queries:
                sql = e.rows_query(event)
                self._add(Event("statement", ddl=sql), start, time, server_id)
        elif kind == e.TRANSACTION_PAYLOAD:
            return self._take_payload(event, start, time, server_id)
        elif kind == e.XA_PREPARE:
            name, one_phase = e.xa_statement(event)
            current = self._transaction(start, time, server_id)
            if not one_phase:
                current.xa = name
                self._prepared[name] = bool(current.items) or self._passed_on
            return self._ended(None)
        elif kind == e.INCIDENT:
            raise BinlogError(
                "the server notes an incident: changes may be missing from its binlog; take a new "
                "snapshot"
            )
        elif kind == e.TAGGED_GTID:
            raise BinlogError(
                "a transaction has a GTID with a tag, which cannot be read; run it without "
                "(SET gtid_next), and begin behind it with a new checkpoint and target"
            )
        elif kind not in e.UNIMPORTANT and kind != e.EXECUTE_LOAD_QUERY:
            raise malformed(f"an event has the type {kind}, which is not known")
        return None

    def _take_payload(
        self, event: bytes, start: int, time: int, server_id: int
    ) -> Transaction | None:
        """The events of a compressed transaction are all where that is."""
        for inner in e.payload(event):
            when, kind, *_ = e.HEADER.unpack_from(inner)
            if kind in ROWS_TYPES:
                self._add_rows(inner, ROWS_TYPES[kind], start, when, server_id)
                continue
            transaction = self._take(kind, inner, start, when, server_id)
            if transaction is not None:
                return transaction
        return None

    def _transaction(self, start: int, time: int, server_id: int) -> Transaction:
        if self._current is None:
            self._current = self._new(start, time, server_id)
        return self._current

    def _new(self, start: int, time: int, server_id: int) -> Transaction:
        log = None if self._log in (None, server_id) else str(self._log)
        return Transaction(self.file, start, server_id, time=time, log=log)

    def _begin(self, kind: int, event: bytes, start: int, time: int, server_id: int) -> None:
        current = self._current = self._new(start, time, server_id)
        if kind == e.MARIADB_GTID:
            current.gtid, self._in_transaction = e.mariadb_gtid(event, server_id)
        elif kind == e.GTID:
            current.gtid = e.mysql_gtid(event)

    def _ended(self, xid: int | None, outcome: str = "commit") -> Transaction | None:
        transaction, self._current = self._current, None
        self._in_transaction = False
        if transaction is not None:
            transaction.xid, transaction.outcome = xid, outcome
        return transaction

    def _take_table(self, event: bytes) -> None:
        # What a table map says of its table begins after its number and flags.
        raw = event[e.HEADER_SIZE + 8 :]
        if raw not in self._readers:
            if len(self._readers) >= MOST_READERS:
                self._readers.clear()
            self._readers[raw] = self._reader(event)
        self._tables[table_id(event)] = self._readers[raw]

    def _reader(self, event: bytes) -> TableReader | None:
        mapped = read_table_map(event, self._is_mariadb)
        if not self._wanted(mapped.database, mapped.table):
            return None
        resolved = resolve(mapped, self.known.table(mapped.database, mapped.table))
        return TableReader(mapped.database, mapped.table, resolved)

    def _take_rows(
        self, event: bytes, kind: RowsType, start: int, time: int, server_id: int
    ) -> Transaction | None:
        """Add rows; gives what was there before them, if that is large."""
        part = None
        current = self._current
        if current is not None and current.size > MOST_BYTES and self._tables.get(table_id(event)):
            part, self._current = current, replace(current, items=[], size=0, is_counted=False)
            part.is_last = False
        self._add_rows(event, kind, start, time, server_id)
        return part

    def _add_rows(
        self, event: bytes, kind: RowsType, start: int, time: int, server_id: int
    ) -> None:
        number = table_id(event)
        if number not in self._tables:
            raise malformed("rows come before their table map")
        table = self._tables[number]
        if table is None:
            return
        current = self._transaction(start, time, server_id)
        current.items.append(PlacedRows(start, time, read_rows(event, kind, table)))
        current.size += len(event)

    def _take_query(
        self, query: e.Query, start: int, time: int, server_id: int
    ) -> Transaction | None:
        current = self._transaction(start, time, server_id)
        current.thread = query.thread
        word = query.sql[:9].upper()
        if word == "BEGIN":
            self._in_transaction = True
            return None
        if word in ("COMMIT", "ROLLBACK"):
            return self._ended(None, word.lower())
        if word.startswith(("XA ", "SAVEPOINT")) or query.sql[:11].upper() == "ROLLBACK TO":
            return self._take_xa(query.sql)
        if is_about_accounts(query):  # which may have a password in it
            current.has_boundaries = False
            return None if self._in_transaction else self._ended(None)
        event = described(query)
        if self._wants_statement(query, event.database):
            self._add(event, start, time, server_id)
        if event.kind == "ddl":
            self.known.learn(event)
            self._readers.clear()
        if self._in_transaction:
            return None
        current.has_boundaries = event.kind != "ddl"
        return self._ended(None)

    def _wants_statement(self, query: e.Query, database: str | None) -> bool:
        """Whether a statement is of a table that is wanted; or of a database that has one."""
        wanted = self._wanted_ddl
        if wanted is None:
            return True
        tables = written_tables(query) or named_tables(query)
        if not tables:
            known = [table for home, table in self.known.names() if home == database]
            tables = [(database or "", table) for table in ["*", *known]]
        return any(wanted(*table) for table in tables)

    def _add(self, event: Event, start: int, time: int, server_id: int) -> None:
        """Add an event that is not of rows, with its place."""
        current = self._transaction(start, time, server_id)
        event.event_time = time * 1_000_000
        event.position = {"file": self.file, "pos": str(start), **constants(current)}
        current.items.append(event)

    def _take_xa(self, sql: str) -> Transaction | None:
        """The statements of a distributed transaction; savepoints are of no consequence."""
        verb = sql.split()[1].upper() if sql[:3].upper() == "XA " else ""
        if verb in ("START", "BEGIN"):
            self._in_transaction = True
        elif verb in ("COMMIT", "ROLLBACK"):
            name = xa_name(sql)
            # Where it was prepared before the reading began, it may have had rows.
            if self._prepared.pop(name, True) and verb == "ROLLBACK" and self._reads_rows:
                raise BinlogError(
                    f"the XA transaction {name} was rolled back after it was prepared: its rows "
                    "were read, and cannot be taken back; begin with a new checkpoint and target"
                )
            if self._current is not None:
                self._current.xa = name
            return self._ended(None, verb.lower())
        return None
