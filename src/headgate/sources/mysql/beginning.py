"""Where a capture begins the first time."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from headgate.core.errors import UsageError
from headgate.mysql.connection import Connection, Start
from headgate.mysql.definitions import base_tables, current_tables
from headgate.mysql.events import HEADER
from headgate.mysql.gtids import gtids_of
from headgate.mysql.reader import any_table
from headgate.sources.mysql.offsets import CaptureOffset
from headgate.sources.mysql.schema_files import write_tables
from headgate.sources.mysql.tables import no_table
from headgate.sources.topics import milliseconds
from headgate.spark.state_files import read_state, write_state
from headgate.spark.storage import Storage

if TYPE_CHECKING:
    from headgate.sources.mysql import MySQLSource

FILE, GTID = "mysql.json", "gtid:"
GTID_SETS = {
    "MySQL": (
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:[0-9]+(-[0-9]+)?)+",
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77",
    ),
    "MariaDB": (r"[0-9]+-[0-9]+-[0-9]+", "0-1-77"),
}
"""Parts of sets, and examples. What has tags (MySQL 8.3) cannot be read."""
PROBE_ID = 2**31 - 7
"""The server id of a moment's look at the binlog."""


class Beginning(msgspec.Struct):
    """Where the first batch begins, and as which replica."""

    start: CaptureOffset
    replica_id: int


def beginning_of(source: MySQLSource, state: Storage) -> Beginning:
    """Where the first batch begins; kept, so that it begins there when it is repeated."""
    known = read_state(state, FILE, Beginning)
    if known is None:
        replica_id = source.options.server_id or random.randrange(2**30, 2**31)
        known = Beginning(first_offset(source, state), replica_id)
        write_state(state, FILE, known)
    return known


def with_new_tables(planned: CaptureOffset, found: Iterable[tuple[str, str]]) -> CaptureOffset:
    """An offset to which tables are added that were not captured before."""
    new = [[database, table] for database, table in found
           if f"{database}.{table}" not in planned.tables]  # fmt: skip
    if not new:
        return planned
    names = [f"{database}.{table}" for database, table in new]
    return msgspec.structs.replace(
        planned, tables=[*planned.tables, *names], new=[*planned.new, *new]
    )


def first_offset(source: MySQLSource, state: Storage) -> CaptureOffset:
    """The position, and the tables as they are there; their rows too, if `initial`."""
    with source.login.connected() as connection:
        tables = source.patterns.found(connection)
        if not tables:
            every = [each for each in base_tables(connection) if any_table(*each)]
            raise no_table(source.patterns, every)
        start, known = current_tables(connection, source.patterns.match)
        server_id = connection.facts.server_id
        starting = source.options.starting
        if starting not in ("initial", "latest"):
            start = _position(source, connection, starting, start)
    new = [[database, table] for database, table in tables] if starting == "initial" else []
    return CaptureOffset(
        start.file, start.pos, start.gtids, server_id, write_tables(state, known, start),
        [f"{database}.{table}" for database, table in tables], new,
    )  # fmt: skip


def _position(source: MySQLSource, connection: Connection, starting: str, now: Start) -> Start:
    logs = [(row[0], int(row[1])) for row in connection.query("SHOW BINARY LOGS")]
    if starting == "earliest":
        return Start(logs[0][0], 4)
    if starting.startswith(GTID):
        return Start(gtids=_gtids(connection, starting.removeprefix(GTID)))
    file, _, pos = starting.rpartition(":")
    if pos.isdigit() and file in dict(logs):
        return Start(file, int(pos))
    if pos.isdigit() and file.rpartition(".")[2].isdigit():
        raise UsageError(
            f"the server has no binlog {file}; there are {logs[0][0]} to {logs[-1][0]}"
        )
    moment = milliseconds(starting) // 1000
    chosen = logs[0][0]
    for name, _ in logs:  # the last file that begins before then
        if _began(source, name) >= moment:
            break
        chosen = name
    return _first_since(source, chosen, moment, now)


def _gtids(connection: Connection, text: str) -> str:
    """The transactions that count as read: MySQL's set, or the latest of each domain of MariaDB."""
    kind = "MariaDB" if connection.facts.is_mariadb else "MySQL"
    pattern, example = GTID_SETS[kind]
    parts = "".join(text.split()).split(",")
    if not all(re.fullmatch(pattern, part, re.IGNORECASE) for part in parts):
        raise UsageError(f"starting is no GTID set of {kind}; write it as gtid:{example}")
    return str(gtids_of(text, connection.facts.is_mariadb))


def _began(source: MySQLSource, file: str) -> int:
    """When a file of the binlog begins."""
    with source.login.connected() as connection:
        for event in connection.binlog(Start(file, 4), PROBE_ID, wait=False):
            time = int(HEADER.unpack_from(event)[0])
            if time:
                return time
    return 0


def _first_since(source: MySQLSource, file: str, moment: int, now: Start) -> Start:
    """Where the first transaction begins that is not before a time."""
    from headgate.mysql.transactions import Assembler
    from headgate.schema.known_tables import KnownTables

    with source.login.connected() as connection:
        assembler = Assembler(KnownTables(), lambda _d, _t: False, file, 4, reads_rows=False)
        for event in connection.binlog(Start(file, 4), PROBE_ID, wait=False):
            transaction = assembler.feed(event)
            if transaction is not None and transaction.time >= moment:
                return Start(transaction.file, transaction.begin)
    return now
