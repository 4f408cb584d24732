"""The rows of a table at a position of the binlog, in ranges of its key, without locks held.

A range is read in a transaction with a consistent snapshot, which sees what was committed up to
some position behind the wanted one. The changes between the two are in the binlog: what they
changed is put back. So a range always has the same rows, whenever it is read, and the changes
behind the position follow on it exactly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.arrow.events import EVENT_SCHEMA, TIME, key_lists, text_maps, type_maps
from headgate.arrow.records import events_of
from headgate.core.event import Event
from headgate.mysql.batches import MEMBERS, position_maps
from headgate.mysql.connection import Connection, Start
from headgate.mysql.corrections import KeyedRows, KeylessRows
from headgate.mysql.definitions import current_table
from headgate.mysql.errors import BinlogError, DisconnectedError
from headgate.mysql.images import Layout, text_map
from headgate.mysql.key_ranges import Bound, KeyColumn, bound_texts, order_by, where
from headgate.mysql.login import Login
from headgate.mysql.query_rows import query_texts, table_layout
from headgate.mysql.reader import reaches, read_binlog
from headgate.mysql.repetition import Repetitions
from headgate.mysql.sql import identifier, literal, table_name
from headgate.schema.known_tables import KnownTables
from headgate.schema.tables import Table

VISIBLE_SECONDS = 60
"""How long the transactions of a position are waited for until a snapshot sees them."""
LOCK_SECONDS = 10
WITHOUT_GTIDS_SECONDS = 1.0
"""Where nothing tells whether the server has finished committing what is in its binlog."""
SESSION = (
    "SET SESSION time_zone = '+00:00', sql_mode = '', "
    "net_write_timeout = 3600, wait_timeout = 86400"
)


@dataclass(frozen=True)
class Chunk:
    """Rows of a table: those with keys behind `after`, up to `until`."""

    database: str
    table: str
    after: Bound | None = None
    until: Bound | None = None


def read_chunk(
    login: Login, chunk: Chunk, at: Start, replica_id: int, known_there: KnownTables | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a chunk as they were at a position, as events.

    `at` has a file only where it is of the server that is asked. `known_there` are the tables as
    they were there, where that is known.
    """
    with login.connected() as connection:
        known = current_table(connection, chunk.database, chunk.table)
        if known is None:  # dropped since; the binlog has that
            return
        table, statement = known
        end = open_snapshot(login, connection, chunk, at, exact=not table.key)
        now = current_table(connection, chunk.database, chunk.table)
        if now is None or now[0] != table:
            raise DisconnectedError(f"table {chunk.database}.{chunk.table} is being altered")
        if known_there is None or known_there.table(chunk.database, chunk.table) is None:
            known_there = KnownTables(f"USE {identifier(chunk.database)};\n{statement};")
        changes = _changes(login, chunk, at, end, known_there, replica_id)
        corrected = KeyedRows(table.key, changes) if table.key else KeylessRows(changes)
        columns = [(name, column.mysql) for name, column in table.columns.items()]
        expressions, layout = table_layout(columns)
        key = [(name, table.columns[name].mysql) for name in table.key]
        sql = f"SELECT {', '.join(expressions)} FROM {table_name(chunk.database, chunk.table)}"
        sql += where(key, chunk.after, chunk.until) + order_by(key)
        maker = _Rows(chunk, table, at, connection.facts.server_id)
        for values in query_texts(connection, sql, layout):
            yield from maker.batch(corrected.apply(values, layout))
        yield from maker.batch(corrected.rest(layout))


def next_bound(
    connection: Connection, database: str, table: str, key: Sequence[KeyColumn],
    after: Bound | None, rows: int,
) -> Bound | None:  # fmt: skip
    """The key of the row that is so many rows behind another; None where there are fewer."""
    bounds = connection.query(
        f"SELECT {bound_texts(key)} FROM {table_name(database, table)}{where(key, after, None)}"
        f"{order_by(key)} LIMIT {rows - 1}, 1"
    )
    return [str(text) for text in bounds[0]] if bounds else None


def open_snapshot(
    login: Login, connection: Connection, chunk: Chunk, at: Start, exact: bool
) -> Start:
    """Begin a transaction that sees all that was committed up to a position.

    Gives a position that has all that it sees; with `exact`, as far as the table is concerned, no
    more than that.
    """
    connection.query(SESSION)
    connection.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    if connection.facts.is_mariadb:
        return _mariadb_snapshot(connection, at)
    _wait_until_visible(connection, at)
    if exact:
        return _locked_snapshot(login, connection, chunk, at)
    connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    return _place(connection, at)


def _mariadb_snapshot(connection: Connection, at: Start) -> Start:
    """MariaDB says where in its binlog a snapshot is."""
    until = time.monotonic() + VISIBLE_SECONDS
    if at.by_gtid:
        connection.query(f"SELECT MASTER_GTID_WAIT({literal(at.gtids or '')}, {VISIBLE_SECONDS})")
    while True:
        connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        status = dict(connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'"))
        file, pos = status["Binlog_snapshot_file"], int(status["Binlog_snapshot_position"])
        if at.by_gtid:
            ((gtids,),) = connection.query(f"SELECT BINLOG_GTID_POS({literal(file)}, {pos})")
            return Start(gtids=gtids)
        if reaches(file, pos, at):
            return Start(file, pos)
        connection.query("ROLLBACK")
        if time.monotonic() > until:
            raise DisconnectedError("the server has not committed what is in its binlog yet")
        time.sleep(0.05)


def _wait_until_visible(connection: Connection, at: Start) -> None:
    """MySQL writes a transaction into its binlog first, and commits it then."""
    if at.gtids:
        ((late,),) = connection.query(
            f"SELECT WAIT_FOR_EXECUTED_GTID_SET({literal(at.gtids)}, {VISIBLE_SECONDS})"
        )
        if late:
            raise DisconnectedError("the server has not committed what is in its binlog yet")
    else:
        time.sleep(WITHOUT_GTIDS_SECONDS)


def _locked_snapshot(login: Login, connection: Connection, chunk: Chunk, at: Start) -> Start:
    """Without a key, where the snapshot is has to be known exactly: nobody writes meanwhile."""
    name = table_name(chunk.database, chunk.table)
    with login.connected() as locking:
        locking.query(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
        try:
            locking.query(f"LOCK TABLES {name} READ")
        except DisconnectedError:
            raise
        except Exception as error:
            raise BinlogError(
                f"table {name} has no primary key, so it is locked for a moment when its snapshot "
                f"begins, and that failed ({error}); GRANT LOCK TABLES ON "
                f"{identifier(chunk.database)}.* TO the user, or give it a primary key"
            ) from None
        connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        end = _place(locking, at)
        locking.query("UNLOCK TABLES")
    return end


def _place(connection: Connection, at: Start) -> Start:
    """Where the binlog ends, as a place of the same kind as another."""
    now = connection.current_position()
    return Start(gtids=now.gtids) if at.by_gtid else Start(now.file, now.pos)


def _changes(
    login: Login, chunk: Chunk, at: Start, end: Start, known: KnownTables, replica_id: int
) -> Iterator[Event]:
    """The changes of a table between two positions."""
    if (at.file, at.pos) == (end.file, end.pos) and at.file:
        return

    def wanted(database: str, table: str) -> bool:
        return (database, table) == (chunk.database, chunk.table)

    with login.connected() as connection:
        start = at if at.by_gtid else Start(at.file, at.pos)
        for batch in read_binlog(connection, start, replica_id, known, wanted, until=end):
            for events in batch.events:
                yield from (event for event in events_of(events) if event.kind == "row")


class _Rows:
    """Makes events of rows."""

    def __init__(self, chunk: Chunk, table: Table, at: Start, server_id: int) -> None:
        texts = {"kind": "row", "op": "snapshot", "database": chunk.database, "table": chunk.table}
        self.place = {"server_id": str(server_id)}
        if at.file:
            self.place |= {"file": at.file, "pos": str(at.pos)}
        self.same = Repetitions({
            **{name: pa.array([text], pa.string()) for name, text in texts.items()},
            "key": key_lists([table.key]),
            "types": type_maps([table.types]),
            "event_time": pa.array([time.time_ns() // 1000], TIME),
            "extra": text_maps([None]),
            MEMBERS: pa.array([*self.place, "row"], pa.string()),
        })  # fmt: skip
        self.number = 1  # behind the statements that define tables, at the same position

    def batch(self, given: tuple[Layout, pa.Array]) -> Iterator[pa.RecordBatch]:
        """The events of some rows, which are behind all that comes before the position."""
        layout, values = given
        rows = len(values) // len(layout.columns)
        if not rows:
            return
        columns = self.same.of(rows)
        counts, firsts = np.array([rows]), np.array([[self.number]])
        columns["after"] = text_map(layout, values)
        columns["position"] = position_maps(
            [*self.place.values()], counts, firsts, columns[MEMBERS]
        )
        self.number += rows
        yield pa.RecordBatch.from_arrays(
            [columns.get(field.name, pa.nulls(rows, field.type)) for field in EVENT_SCHEMA],
            schema=EVENT_SCHEMA,
        )
