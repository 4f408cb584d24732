"""What a server must be set to and allow, with the statements that repair it."""

from __future__ import annotations

from collections.abc import Sequence
from os import cpu_count
from typing import TYPE_CHECKING, Any

import pymysql

from headgate.core.connectors import Report
from headgate.core.errors import UsageError
from headgate.core.event import Event
from headgate.mysql.connection import Connection, replica_uuid
from headgate.mysql.definitions import base_tables, create_statement
from headgate.mysql.errors import BinlogError
from headgate.mysql.reader import any_table
from headgate.mysql.sql import identifier
from headgate.sources.mysql.offsets import STEPS
from headgate.sources.mysql.tables import no_table

if TYPE_CHECKING:
    from headgate.sources.mysql import MySQLSource

SHORT_RETENTION = 24 * 3600
"""Seconds of binlog: a job that is stopped for longer than it is kept has to begin anew."""


def checked(source: MySQLSource) -> Report:
    """What would be captured; UsageError where that cannot be."""
    with source.login.connected() as connection:
        used, own = replicas_beside(connection, source.options.server_id, ids_of(source))
        wrong = [*missing_settings(connection), *missing_privileges(connection), *used]
        if wrong:
            raise UsageError(f"{source.login.address}: " + "; ".join(wrong))
        tables = source.patterns.found(connection)
        if not tables:
            every = [each for each in base_tables(connection) if any_table(*each)]
            raise no_table(source.patterns, every)
        facts = {
            "server": connection.facts.version,
            "tables": {f"{database}.{table}": _rows(connection, database, table)
                       for database, table in tables},
            "advice": [*advice(connection), *unlocked(connection, tables), *own],
        }  # fmt: skip
    return Report(facts)


def variable(connection: Connection, name: str) -> str | None:
    """A setting of the server; None where it has no such setting."""
    try:
        ((value,),) = connection.query(f"SELECT @@GLOBAL.{name}")
    except pymysql.err.MySQLError:
        return None
    return str(value)


def missing_settings(connection: Connection) -> list[str]:
    """Settings without which nothing can be captured."""
    wrong = []
    if variable(connection, "log_bin") not in ("1", "ON"):
        wrong.append("it writes no binlog: start it with --log-bin, or log_bin in its settings")
    format_ = variable(connection, "binlog_format")
    if format_ is not None and format_.upper() != "ROW":
        wrong.append(f"binlog_format is {format_}: SET GLOBAL binlog_format = 'ROW', and in "
                     "its settings")  # fmt: skip
    return wrong


def missing_privileges(connection: Connection) -> list[str]:
    """What the user may not do, and has to."""
    ((user,),) = connection.query("SELECT CURRENT_USER()")
    name = "@".join(f"'{part}'" for part in str(user).split("@", 1))
    try:
        connection.current_position()
        connection.query("SHOW BINARY LOGS")
    except (pymysql.err.MySQLError, BinlogError):
        client = "BINLOG MONITOR" if connection.facts.is_mariadb else "REPLICATION CLIENT"
        return [f"{name} may not see where the binlog is: GRANT {client} ON *.* TO {name}"]
    grants = " ".join(str(row[0]) for row in connection.query("SHOW GRANTS")).upper()
    if "ALL PRIVILEGES ON *.*" not in grants and "REPLICATION SLAVE" not in grants.replace(
        "REPLICATION REPLICA", "REPLICATION SLAVE"
    ):
        return [f"{name} may not read the binlog: GRANT REPLICATION SLAVE ON *.* TO {name}"]
    return []


def ids_of(source: MySQLSource) -> range:
    """The ids as a replica that a job may use: for looking ahead, the binlog, tables and chunks."""
    first = source.options.server_id or 0
    chunks = source.options.parallel_chunks or 2 * (cpu_count() or 1)
    return range(first, first + STEPS + 2 + chunks)


def replicas_beside(
    connection: Connection, wanted: int | None, ids: range
) -> tuple[list[str], list[str]]:
    """Other replicas with the job's ids, and those that may be the job itself, as sentences."""
    if wanted is None:
        return [], []
    if connection.facts.server_id in ids:
        return [f"server-id {wanted} makes the job a replica with the server's own id, "
                f"{connection.facts.server_id}: choose another, or leave it out"], []  # fmt: skip
    others, own = [], []
    for row in connected_replicas(connection):
        replica = int(row[0])
        if replica not in ids:
            continue
        if connection.facts.is_mariadb or str(row[-1]) == replica_uuid(replica):
            own.append(
                f"a replica with the id {replica} is connected: if it is not this job, choose "
                "another server-id, for the two push each other out"
            )
        else:
            others.append(
                f"a replica with the id {replica} is connected to it, which server-id {wanted} "
                "gives the job too: choose another, or leave it out"
            )
    return others, own


def connected_replicas(connection: Connection) -> list[tuple[Any, ...]]:
    """The replicas of a server, the id first; none where the user may not see them."""
    for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
        try:
            return connection.query(statement)
        except pymysql.err.MySQLError:
            continue
    return []


def advice(connection: Connection) -> list[str]:
    """Settings with which capture is less exact, or ends sooner."""
    lines = []
    image = variable(connection, "binlog_row_image")
    if image is not None and image.upper() != "FULL":
        lines.append(
            f"binlog_row_image is {image}: old rows are incomplete, and so are new ones in message "
            "formats; SET GLOBAL binlog_row_image = 'FULL'"
        )
    metadata = variable(connection, "binlog_row_metadata")
    if (metadata or "").upper() != "FULL":
        lines.append(
            "binlog_row_metadata is not FULL: columns are known from DDL only, since the first "
            "start of the job; SET GLOBAL binlog_row_metadata = 'FULL'"
        )
    seconds = _retention(connection)
    if seconds is not None and 0 < seconds < SHORT_RETENTION:
        lines.append(
            f"the binlog is kept for {seconds / 3600:.1f} h: a job that is stopped for longer has "
            "to begin anew; SET GLOBAL binlog_expire_logs_seconds = 259200"
        )
    return lines


def unlocked(connection: Connection, tables: Sequence[tuple[str, str]]) -> list[str]:
    """Tables whose snapshot needs a lock, where no privilege for that is to be seen."""
    grants = " ".join(str(row[0]) for row in connection.query("SHOW GRANTS")).upper()
    if connection.facts.is_mariadb or "LOCK TABLES" in grants or "ALL PRIVILEGES" in grants:
        return []
    rows = connection.query(
        "SELECT table_schema, table_name FROM information_schema.table_constraints "
        "WHERE constraint_type = 'PRIMARY KEY'"
    )
    keyless = sorted(set(tables) - {(str(database), str(table)) for database, table in rows})
    return [
        f"{database}.{table} has no primary key, so it is locked for a moment when its snapshot "
        f"begins: GRANT LOCK TABLES ON {identifier(database)}.* TO the user"
        for database, table in keyless
    ]


def _retention(connection: Connection) -> float | None:
    seconds = variable(connection, "binlog_expire_logs_seconds")
    if seconds not in (None, "0"):
        return float(seconds or 0)
    days = variable(connection, "expire_logs_days")
    return None if days is None else float(days) * 86_400


def _rows(connection: Connection, database: str, table: str) -> str:
    """About how many rows a table has, by the server's own estimate."""
    rows = connection.query(
        "SELECT table_rows FROM information_schema.tables WHERE table_schema = %s "
        "AND table_name = %s", database, table,
    )  # fmt: skip
    count = rows[0][0] if rows else None
    return "rows not known" if count is None else f"about {count} rows"


def definitions(source: MySQLSource, limit: int) -> list[Event]:
    """The statements that define the tables."""
    events = []
    with source.login.connected() as connection:
        for database, table in source.patterns.found(connection)[:limit]:
            statement = create_statement(connection, database, table)
            if statement is not None:
                events.append(Event("ddl", "create", database, table, ddl=statement))
    return events
