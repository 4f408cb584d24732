"""The tables of a server as they are now, for reading a binlog that does not name columns."""

from __future__ import annotations

from headgate.mysql.connection import Connection, Start
from headgate.mysql.errors import BinlogError
from headgate.mysql.transactions import Wanted
from headgate.schema.known_tables import KnownTables

ATTEMPTS = 5


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
    names = connection.query(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"
    )
    statements = []
    for database, table in names:
        if wanted(database, table):
            where = f"{_quoted(database)}.{_quoted(table)}"
            ((_, statement),) = connection.query(f"SHOW CREATE TABLE {where}")
            statements.append(f"USE {_quoted(database)};\n{statement};")
    return statements


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
