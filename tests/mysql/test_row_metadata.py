"""Servers whose binlog does not describe columns: MariaDB's default is NO_LOG, MySQL's MINIMAL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from binlog_capture import REPLICA, Capture

from headgate.arrow.records import events_of
from headgate.mysql.definitions import current_tables
from headgate.mysql.errors import SchemaError
from headgate.mysql.login import Login
from headgate.mysql.snapshot import Chunk, read_chunk
from headgate.schema.known_tables import KnownTables

pytestmark = pytest.mark.slow

DATABASE = "headgate_metadata"
COLUMNS = """
    id INT UNSIGNED PRIMARY KEY, de VARCHAR(20), l1 VARCHAR(20) CHARACTER SET latin1,
    gb TEXT CHARACTER SET gbk, co CHAR(20) COLLATE utf8mb4_bin, nc NVARCHAR(20),
    en ENUM('é','ü') CHARACTER SET latin1, se SET('x','ß'), bn BINARY(3), vb VARBINARY(9),
    tb CHAR(3) CHARACTER SET binary, u8 TINYINT UNSIGNED, u64 BIGINT UNSIGNED, js JSON
"""
VALUES = ("(4294967295, 'dé', 'lé', '中文', '😀', 'né', 'ü', 'ß', x'ff0100', x'00ff', 'abc', 255, "
          "18446744073709551615, '[\"é\"]')")  # fmt: skip


@contextmanager
def little_metadata(server: Any) -> Iterator[Any]:
    metadata = "NO_LOG" if server.name == "MariaDB" else "MINIMAL"
    server.run(f"SET GLOBAL binlog_row_metadata = '{metadata}'")
    yield server
    server.run("SET GLOBAL binlog_row_metadata = 'FULL'")


@pytest.fixture
def server(server: Any) -> Iterator[Any]:
    with little_metadata(server):
        yield server


def known_tables(capture: Capture) -> KnownTables:
    connection = capture.connect()
    try:
        return current_tables(connection, lambda database, _: database == DATABASE)[1]
    finally:
        connection.close()


def inserted(capture: Capture, known: KnownTables) -> list[list[str | None]]:
    rows = capture.rows(known=known, wanted=lambda database, _: database == DATABASE)
    return [list((event.after or {}).values()) for event in rows]


@pytest.mark.parametrize("before", [True, False])
def test_character_sets_come_from_definitions(server: Any, before: bool) -> None:
    """Whether the table is there at the start, or is made while the job runs."""
    capture = Capture(server, DATABASE)
    known = known_tables(capture)
    capture.run(f"CREATE TABLE t ({COLUMNS}) DEFAULT CHARSET latin1")
    if before:
        capture.start, known = capture.position(), known_tables(capture)
    capture.run(f"INSERT INTO t VALUES {VALUES}")

    (row,) = inserted(capture, known)

    assert row == ["4294967295", "dé", "lé", "中文", "😀", "né", "ü", "ß", "/wEA", "AP8=", "YWJj",
                   "255", "18446744073709551615", '["é"]']  # fmt: skip


def test_they_follow_alterations(server: Any) -> None:
    capture = Capture(server, DATABASE)
    capture.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9)) CHARSET latin1")
    capture.start, known = capture.position(), known_tables(capture)
    capture.run(
        "INSERT INTO t VALUES (1, 'é')",
        "ALTER TABLE t CONVERT TO CHARACTER SET gbk",
        "INSERT INTO t VALUES (2, '中')",
        "DELETE FROM t WHERE id = 2",
        "ALTER TABLE t DEFAULT CHARSET = utf8mb4",
        "ALTER TABLE t ADD b VARCHAR(9), MODIFY a VARCHAR(10) CHARACTER SET latin1",
        "INSERT INTO t VALUES (3, 'é', '😀')",
    )

    assert inserted(capture, known) == [["1", "é"], ["2", "中"], [], ["3", "é", "😀"]]


def test_where_nothing_tells_it_that_is_an_error(mariadb: Any) -> None:
    """A statement that leaves it to the database's default, which is not in MariaDB's binlog."""
    with little_metadata(mariadb):
        capture = Capture(mariadb, DATABASE)
        known = known_tables(capture)
        capture.run("CREATE TABLE t (a VARCHAR(9))", "INSERT INTO t VALUES ('é')")
        with pytest.raises(SchemaError, match="nothing tells the character set of column 'a'"):
            inserted(capture, known)


def test_a_snapshot_is_put_back_over_an_alteration(server: Any) -> None:
    """The changes between the position and the snapshot have the columns of the position."""
    capture = Capture(server, DATABASE)
    capture.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9)) CHARSET latin1")
    capture.run("INSERT INTO t VALUES (1, 'é'), (2, 'ü')")
    at, known = capture.position(), known_tables(capture)
    capture.run("UPDATE t SET a = 'other' WHERE id = 2", "ALTER TABLE t ADD b INT FIRST")
    login = Login("127.0.0.1", server.port, server.user, server.password)

    batches = list(read_chunk(login, Chunk(DATABASE, "t"), at, REPLICA, known))

    rows = [event.after for batch in batches for event in events_of(batch)]
    assert rows == [{"b": None, "id": "1", "a": "é"}, {"b": None, "id": "2", "a": "ü"}]
