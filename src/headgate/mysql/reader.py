"""Reading a server's binlog as batches of events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headgate.mysql.batches import BatchMaker
from headgate.mysql.connection import Connection, Start
from headgate.mysql.errors import DisconnectedError
from headgate.mysql.events import HEARTBEATS, TYPE_AT
from headgate.mysql.gtids import GtidSet, gtids_of
from headgate.mysql.transactions import Assembler, Transaction, Wanted
from headgate.schema.known_tables import KnownTables

BATCH_BYTES = 8 * 1024 * 1024
"""So many bytes of rows make a batch."""
BATCH_TRANSACTIONS = 20_000
SYSTEM = frozenset({"mysql", "sys", "information_schema", "performance_schema"})


@dataclass(frozen=True)
class Batch:
    """Events, and from where to read on after them."""

    events: list[pa.RecordBatch]
    next: Start
    is_complete: bool = True
    """Whether `next` is where it ends; otherwise it is where the last complete one ended."""


def any_table(database: str, table: str) -> bool:
    """Whether a table is one of a user's.

    >>> any_table("shop", "orders"), any_table("mysql", "user")
    (True, False)
    """
    return database.lower() not in SYSTEM


def read_binlog(
    connection: Connection,
    start: Start,
    replica_id: int,
    known: KnownTables | None = None,
    wanted: Wanted = any_table,
    markers: bool = False,
    queries: bool = False,
    wait: bool = False,
    heartbeat: float = 10.0,
    until: Start | None = None,
    wanted_ddl: Wanted | None = None,
) -> Iterator[Batch]:
    """The changes from a position on, in batches that end where a transaction does, if possible.

    `known` are the tables as they were there, which DDL in the binlog changes: it is needed where
    the server does not write `binlog_row_metadata=FULL`. With `wait` it goes on for ever: a batch
    ends where the server has no more for now, and one without events comes when nothing happens for
    `heartbeat` seconds. `until` is a position after which nothing is read: of this server's files,
    or, where it has no file, of transactions. With `markers` and `queries` the boundaries of
    transactions, and the statements that the server notes before rows, are events too. DDL is an
    event of all tables, or of those that `wanted_ddl` chooses.
    """
    progress = Progress(start, connection.facts.is_mariadb)
    if until is not None and progress.reaches(until):
        return
    own = connection.facts.server_id
    assembler = Assembler(
        known or KnownTables(), wanted, start.file, start.pos, queries, own, wanted_ddl
    )
    maker = BatchMaker(markers)
    stream = connection.binlog(start, replica_id, heartbeat, wait)
    waiting: list[Transaction] = []
    size = 0
    for event in stream:
        transaction = assembler.feed(event)
        if transaction is not None and not progress.has(transaction):
            waiting.append(transaction)
            size += transaction.size
            progress.note(transaction, assembler)
        elif not assembler.is_between:
            continue
        elif wait and event[TYPE_AT] in HEARTBEATS:
            yield Batch([], progress.start())
        progress.see_file(assembler)
        at_end = until is not None and progress.reaches(until)
        full = size >= BATCH_BYTES or len(waiting) >= BATCH_TRANSACTIONS
        if waiting and (full or at_end or (wait and not stream.has_more())):
            yield from _batches(maker, waiting, progress)
            waiting, size = [], 0
        if at_end:
            return
    if waiting:
        yield from _batches(maker, waiting, progress)
    if until is not None and not progress.reaches(until):
        raise DisconnectedError("the server ended the binlog before the position that is read to")


def _batches(
    maker: BatchMaker, transactions: list[Transaction], progress: Progress
) -> Iterator[Batch]:
    """The batches of transactions; only with the last one all of them are read."""
    ready: list[pa.RecordBatch] = []
    for events in maker.make(transactions):
        if ready:
            yield Batch(ready, progress.passed, False)
        ready = events
    progress.passed = progress.start()
    yield Batch(ready, progress.passed, transactions[-1].is_last)


def reaches(file: str, pos: int, until: Start) -> bool:
    """Whether a position is another, or behind it.

    >>> reaches("b.000010", 4, Start("b.000009", 900)), reaches("b.000009", 4, Start("b.000009", 5))
    (True, False)
    """
    if file == until.file:
        return pos >= until.pos
    return int(file.rpartition(".")[2]) > int(until.file.rpartition(".")[2])


class Progress:
    """Where to read on."""

    def __init__(self, start: Start, is_mariadb: bool) -> None:
        self._gtids = None if start.gtids is None else gtids_of(start.gtids, is_mariadb)
        self._is_mariadb = is_mariadb
        self._file, self._pos = start.file, start.pos
        self._is_placed = not start.by_gtid
        """Whether its place in this server's files is known: what was read may be anywhere there,
        until a transaction comes that was not."""
        self.passed = start
        """Up to where batches were given."""

    def has(self, transaction: Transaction) -> bool:
        """Whether a transaction was read before, from another server, whose order differs."""
        gtid = transaction.gtid
        return isinstance(self._gtids, GtidSet) and gtid is not None and gtid in self._gtids

    def note(self, transaction: Transaction, assembler: Assembler) -> None:
        """A transaction was read."""
        if transaction.is_last:
            self._is_placed = True
            self._file, self._pos = assembler.file, assembler.pos
            if self._gtids is not None and transaction.gtid is not None:
                self._gtids.add(transaction.gtid)

    def see_file(self, assembler: Assembler) -> None:
        """Between two transactions the place is that of the next one, also in another file."""
        if assembler.is_between and self._is_placed:
            self._file, self._pos = assembler.file, assembler.pos

    def reaches(self, until: Start) -> bool:
        """Whether all up to a position was read."""
        if until.file:
            return bool(self._file) and reaches(self._file, self._pos, until)
        if self._gtids is None or until.gtids is None:
            return False
        return self._gtids.covers(gtids_of(until.gtids, self._is_mariadb))  # type: ignore[arg-type]

    def start(self) -> Start:
        """The end of the last whole transaction."""
        return Start(self._file, self._pos, None if self._gtids is None else str(self._gtids))
