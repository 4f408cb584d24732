"""The tables of a server as they are now, for reading a binlog that does not name columns."""

from __future__ import annotations

import re

import pymysql

from headgate.mysql.connection import Connection, Start
from headgate.mysql.errors import BinlogError
from headgate.mysql.sql import identifier, table_name
from headgate.mysql.transactions import Wanted
from headgate.schema.known_tables import KnownTables
from headgate.schema.tables import Table

ATTEMPTS = 5
_NO_TABLE = {1146, 1049, 1051}


def current_tables(connection: Connection, wanted: Wanted) -> tuple[Start, KnownTables]:
    """A position in the binlog, and the tables as they are there.

    No lock is taken: if the definitions of tables changed meanwhile, they are read again.
    """
    definitions = _definitions(connection, wanted)
    for _ in range(ATTEMPTS):
        start = connection.current_position()
        again = _definitions(connection, wanted)
        if again == definitions:
            return start, KnownTables("\n".join(definitions))
        definitions = again
    raise BinlogError("the definitions of tables change all the time; try again later")


def _definitions(connection: Connection, wanted: Wanted) -> list[str]:
    """The statements that make the tables."""
    names = base_tables(connection)
    statements = [(d, create_statement(connection, d, t)) for d, t in names if wanted(d, t)]
    return [f"USE {identifier(d)};\n{statement};" for d, statement in statements if statement]


def base_tables(connection: Connection) -> list[tuple[str, str]]:
    """The databases and names of all tables, views left out."""
    rows = connection.query(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"
    )
    return [(database, table) for database, table in rows]


def create_statement(connection: Connection, database: str, table: str) -> str | None:
    """The statement that makes a table; None where there is none."""
    try:
        ((_, statement),) = connection.query(f"SHOW CREATE TABLE {table_name(database, table)}")
    except pymysql.err.MySQLError as error:
        if error.args[:1] and error.args[0] in _NO_TABLE:
            return None
        raise
    # Which changes with every row, and says nothing of the table.
    return re.sub(r" AUTO_INCREMENT=\d+", "", statement)


def current_table(connection: Connection, database: str, table: str) -> tuple[Table, str] | None:
    """A table as it is now, and the statement that makes it; None where there is none."""
    statement = create_statement(connection, database, table)
    if statement is None:
        return None
    known = KnownTables(f"USE {identifier(database)};\n{statement};").table(database, table)
    if known is None:
        raise BinlogError(f"the definition of {table_name(database, table)} is not understood")
    return known, statement
