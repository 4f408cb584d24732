"""Reading a server's binlog as batches of events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headgate.mysql.batches import BatchMaker
from headgate.mysql.connection import Connection, Start
from headgate.mysql.events import HEARTBEATS, TYPE_AT
from headgate.mysql.gtids import GtidPosition, GtidSet
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
) -> Iterator[Batch]:
    """The changes from a position on, in batches that end where a transaction does, if possible.

    `known` are the tables as they were there, which DDL in the binlog changes: it is needed where
    the server does not write `binlog_row_metadata=FULL`. With `wait` it goes on for ever: a batch
    ends where the server has no more for now, and one without events comes when nothing happens for
    `heartbeat` seconds. `until` is a position (file and offset) after
    which nothing is read. With `markers` and `queries` the boundaries of transactions, and the
    statements that the server notes before rows, are events too.
    """
    if until is not None and start.file and reaches(start.file, start.pos, until):
        return
    assembler = Assembler(known or KnownTables(), wanted, start.file, start.pos, queries)
    maker = BatchMaker(markers)
    done = _Progress(start, connection.facts.is_mariadb)
    stream = connection.binlog(start, replica_id, heartbeat, wait)
    waiting: list[Transaction] = []
    size = 0
    for event in stream:
        transaction = assembler.feed(event)
        if transaction is not None:
            waiting.append(transaction)
            size += transaction.size
            done.note(transaction, assembler)
        elif not assembler.is_between:
            continue
        elif wait and event[TYPE_AT] in HEARTBEATS:
            yield Batch([], done.start())
        at_end = until is not None and reaches(assembler.file, assembler.pos, until)
        full = size >= BATCH_BYTES or len(waiting) >= BATCH_TRANSACTIONS
        if waiting and (full or at_end or (wait and not stream.has_more())):
            yield from _batches(maker, waiting, done)
            waiting, size = [], 0
        if at_end:
            return
    if waiting:
        yield from _batches(maker, waiting, done)


def _batches(
    maker: BatchMaker, transactions: list[Transaction], done: _Progress
) -> Iterator[Batch]:
    """The batches of transactions; only with the last one all of them are read."""
    ready: list[pa.RecordBatch] = []
    for events in maker.make(transactions):
        if ready:
            yield Batch(ready, done.passed, False)
        ready = events
    done.passed = done.start()
    yield Batch(ready, done.passed, transactions[-1].is_last)


def reaches(file: str, pos: int, until: Start) -> bool:
    """Whether a position is another, or behind it.

    >>> reaches("b.000010", 4, Start("b.000009", 900)), reaches("b.000009", 4, Start("b.000009", 5))
    (True, False)
    """
    if file == until.file:
        return pos >= until.pos
    return int(file.rpartition(".")[2]) > int(until.file.rpartition(".")[2])


class _Progress:
    """Where to read on."""

    def __init__(self, start: Start, is_mariadb: bool) -> None:
        self._gtids: GtidSet | GtidPosition | None = None
        if start.gtids is not None:
            self._gtids = (GtidPosition if is_mariadb else GtidSet)(start.gtids)
        self._file, self._pos = start.file, start.pos
        self.passed = start
        """Up to where batches were given."""

    def note(self, transaction: Transaction, assembler: Assembler) -> None:
        """A transaction was read."""
        if transaction.is_last:
            self._file, self._pos = assembler.file, assembler.pos
            if self._gtids is not None and transaction.gtid is not None:
                self._gtids.add(transaction.gtid)

    def start(self) -> Start:
        """The end of the last whole transaction."""
        return Start(self._file, self._pos, None if self._gtids is None else str(self._gtids))
