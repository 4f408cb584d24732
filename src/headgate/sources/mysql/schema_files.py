"""The tables as they are at a position of the binlog, in a file of the job's state.

A server that does not write `binlog_row_metadata=FULL` does not name the columns of rows. So the
definitions of tables are kept from the first position on, and follow the DDL of the binlog.
"""

from __future__ import annotations

import msgspec

from headgate.core.errors import HeadgateError
from headgate.mysql.connection import Start
from headgate.schema.known_tables import KnownTables, LearntTable
from headgate.spark.state_files import read_state, write_state
from headgate.spark.storage import Storage

FOLDER = "mysql-tables"


class _Tables(msgspec.Struct):
    learnt: list[LearntTable]


def write_tables(storage: Storage, known: KnownTables, at: Start) -> str:
    """Keep the tables of a position; returns the name of the file."""
    name = f"{FOLDER}/{at.file or 'gtids'}.{at.pos}.json"
    storage.make_folder(FOLDER)
    write_state(storage, name, _Tables(known.learnt(KnownTables())))
    return name


def read_tables(storage: Storage, name: str) -> KnownTables:
    """The tables of a file."""
    tables = read_state(storage, name, _Tables)
    if tables is None:
        raise HeadgateError(
            f"{storage.uri}/{name} is missing, which has the columns of the tables; restore the "
            "checkpoint as a whole, or start with a new one"
        )
    return KnownTables().with_learnt(tables.learnt)
