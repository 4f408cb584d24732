"""Transactions on real servers: their order, places, boundaries, and reading on from any."""

from __future__ import annotations

from typing import Any

import pytest
from binlog_capture import REPLICA, Capture

from headgate.arrow.records import events_of
from headgate.core.event import Event
from headgate.formats.places import binlog_place
from headgate.mysql import batches as batches_module
from headgate.mysql import reader, transactions
from headgate.mysql.connection import Start
from headgate.mysql.errors import BinlogError, DisconnectedError, PurgedError
from headgate.mysql.events import HEADER, HEADER_SIZE, TAGGED_GTID
from headgate.schema.known_tables import KnownTables

pytestmark = pytest.mark.slow
TABLES = ("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))", "CREATE TABLE u (id INT, w BLOB)")


def shape(events: list[Event]) -> list[Any]:
    """What an event is, and which row."""
    return [(e.kind, e.op, e.table, (e.after or e.before or {}).get("id")) for e in events]


def test_order_and_places(server: Any, loops: str) -> None:
    """Rows of two tables in one transaction keep their order; each has a place of its own."""
    capture = Capture(server, "headgate_order")
    capture.run(*TABLES)
    start = capture.position()
    capture.run("BEGIN", "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "INSERT INTO u VALUES (1, 'x')",
                "UPDATE t SET v = 'c'", "DELETE FROM u", "COMMIT", "INSERT INTO t VALUES (3, 'd')",
                "TRUNCATE TABLE u")  # fmt: skip
    events = capture.events(start, markers=True)
    assert shape(events) == [
        ("marker", "begin", None, None),
        ("row", "insert", "t", "1"), ("row", "insert", "t", "2"), ("row", "insert", "u", "1"),
        ("row", "update", "t", "1"), ("row", "update", "t", "2"), ("row", "delete", "u", "1"),
        ("marker", "commit", None, None), ("marker", "begin", None, None),
        ("row", "insert", "t", "3"), ("marker", "commit", None, None),
        ("ddl", "truncate", "u", None),
    ]  # fmt: skip
    rows = [event for event in events if event.kind == "row"]
    places = [binlog_place(event) for event in events]
    assert None not in places
    assert len(set(places)) == len(places)
    positions = [event.position or {} for event in rows]
    assert [each["xoffset"] for each in positions] == ["0", "1", "2", "3", "4", "5", "0"]
    assert [each["row"] for each in positions] == ["0", "1", "0", "0", "1", "0", "0"]
    assert len({(each["gtid"], each["xid"]) for each in positions[:6]}) == 1
    assert positions[0]["xid"] != positions[6]["xid"]
    ends = [bool(event.extra and event.extra.get("commit") == "true") for event in rows]
    assert ends == [False] * 5 + [True, True]
    assert events[-1].database == "headgate_order"


def test_reading_on(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From where any batch ends, by file and offset or by GTID, the same events follow."""
    monkeypatch.setattr(reader, "BATCH_TRANSACTIONS", 3)
    capture = Capture(server, "headgate_resume")
    capture.run(*TABLES)
    start = capture.position()
    for number in range(8):
        capture.run(f"INSERT INTO t VALUES ({number}, 'x')")
        if number == 4:
            capture.run("FLUSH BINARY LOGS")
    everything = capture.events(start)
    connection = capture.connect()
    seen = 0
    for batch in reader.read_binlog(connection, start, REPLICA):
        seen += sum(part.num_rows for part in batch.events)
        place = Start(batch.next.file, batch.next.pos)
        assert capture.events(batch.next) == everything[seen:]
        assert capture.events(place) == everything[seen:]
        assert capture.events(start, until=place) == everything[:seen]
    connection.close()
    assert seen == len(everything) == 8


def test_nothing_behind_the_end(server: Any) -> None:
    """Where a new file has just begun, nothing is read that came later."""
    capture = Capture(server, "headgate_end")
    capture.run(*TABLES)
    start = capture.position()
    capture.run("INSERT INTO t VALUES (1, 'x')", "FLUSH BINARY LOGS")
    end = capture.position()
    capture.run("INSERT INTO t VALUES (2, 'y')")
    assert shape(capture.events(start, until=end)) == [("row", "insert", "t", "1")]
    assert shape(capture.events(end)) == [("row", "insert", "t", "2")]
    assert capture.events(end, until=end) == []


def test_waiting(server: Any) -> None:
    """A reader that waits gives a change as soon as it is there."""
    capture = Capture(server, "headgate_waiting")
    capture.run(*TABLES)
    connection = capture.connect()
    batches = reader.read_binlog(connection, capture.position(), REPLICA, wait=True)
    for number in range(3):
        capture.run(f"INSERT INTO t VALUES ({number}, 'x')")
        [part] = next(batch.events for batch in batches if batch.events)
        assert [event.after for event in events_of(part)] == [{"id": str(number), "v": "x"}]
    connection.close()


def test_heartbeats(server: Any) -> None:
    """When nothing happens, a batch without events comes; it stays where the reader was."""
    capture = Capture(server, "headgate_heartbeats")
    connection, start = capture.connect(), capture.position()
    batches = reader.read_binlog(connection, start, REPLICA, wait=True, heartbeat=0.2)
    assert next(batches) == reader.Batch([], start)
    capture.run(*TABLES)
    while not (batch := next(batches)).events:
        assert batch.next == start
    connection.close()


def test_broken_connection(server: Any) -> None:
    """A connection that is gone is an error after which one connects again."""
    capture = Capture(server, "headgate_broken")
    connection = capture.connect()
    ((number,),) = connection.query("SELECT CONNECTION_ID()")
    batches = reader.read_binlog(connection, capture.position(), REPLICA, wait=True, heartbeat=0.2)
    next(batches)
    capture.run(f"KILL {number}")
    with pytest.raises(DisconnectedError):
        list(batches)


def test_compressed(server: Any, loops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed transactions of MySQL, and compressed events of MariaDB; in several chunks."""
    monkeypatch.setattr(batches_module, "CHUNK_BYTES", 10_000)
    capture = Capture(server, "headgate_compressed")
    is_mariadb = server.name == "MariaDB"
    switch = "GLOBAL log_bin_compress" if is_mariadb else "binlog_transaction_compression"
    capture.run(f"SET {switch} = ON")
    try:
        if is_mariadb:  # it counts for new connections
            capture = Capture(server, "headgate_compressed")
        capture.run(*TABLES)
        start = capture.position()
        numbers = ", ".join(f"({number}, REPEAT('abc', 60))" for number in range(1, 501))
        capture.run("BEGIN", f"INSERT INTO t VALUES {numbers}",
                    "UPDATE t SET v = REPEAT('xyz', 60)", "DELETE FROM t WHERE id > 250",
                    "COMMIT")  # fmt: skip
    finally:
        capture.run(f"SET {switch} = OFF")
    rows = [event for event in capture.events(start) if event.kind == "row"]
    assert [event.op for event in rows] == ["insert"] * 500 + ["update"] * 500 + ["delete"] * 250
    assert {event.after["v"] for event in rows[:500] if event.after} == {"abc" * 60}
    assert {event.before["v"] for event in rows[1000:] if event.before} == {"xyz" * 60}
    assert len({binlog_place(event) for event in rows}) == 1250


def test_transaction_in_parts(server: Any, loops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction over the limit comes in parts, and counts its rows through all of them."""
    capture = Capture(server, "headgate_parts")
    capture.run(*TABLES)
    start = capture.position()
    capture.run("BEGIN")
    for number in range(40):
        capture.run(f"INSERT INTO t VALUES ({number}, REPEAT('x', 200))")
    capture.run("COMMIT", "INSERT INTO t VALUES (99, 'y')")
    whole = capture.events(start)
    monkeypatch.setattr(transactions, "MOST_BYTES", 1_000)
    monkeypatch.setattr(reader, "BATCH_BYTES", 1_000)
    monkeypatch.setattr(batches_module, "CHUNK_BYTES", 500)
    connection = capture.connect()
    batches = list(reader.read_binlog(connection, start, REPLICA))
    connection.close()
    assert len(batches) > 5
    assert {batch.next for batch in batches[:-2]} == {start}
    assert not batches[0].is_complete
    parts = [e for batch in batches for part in batch.events for e in events_of(part)]
    assert [e.after for e in parts] == [e.after for e in whole]
    for one, other in zip(parts, whole):
        expected = dict(other.position or {})
        if one.after != whole[-1].after:
            del expected["xid"]
        assert (one.position, one.extra) == (expected, other.extra)


def test_large_row(mysql: Any) -> None:
    """A row of 40 MB, which comes in three packets, and events that fill one to the brim."""
    capture = Capture(mysql, "headgate_large")
    capture.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
    start = capture.position()
    sizes = [40_000_000, 16_777_169, 16_777_170, 16_777_171]
    for number, size in enumerate(sizes):
        capture.run(f"INSERT INTO t VALUES ({number}, REPEAT('x', {size}))")
    capture.run("INSERT INTO t VALUES (9, 'end')")
    rows = capture.events(start)
    assert [len((event.after or {})["v"] or "") for event in rows] == [*sizes, 3]


def test_distributed_transaction(mysql: Any) -> None:
    """Rows of XA come where it is prepared; the markers name it, and whether it was committed."""
    capture = Capture(mysql, "headgate_xa")
    capture.run(*TABLES)
    start = capture.position()
    capture.run("XA START 'a'", "INSERT INTO t VALUES (1, 'x')", "XA END 'a'", "XA PREPARE 'a'",
                "XA COMMIT 'a'")  # fmt: skip
    events = capture.events(start, markers=True)
    assert [(e.kind, e.op, (e.extra or {}).get("xa")) for e in events if e.kind == "marker"] == [
        ("marker", "begin", "X'61',X'',1"), ("marker", "commit", "X'61',X'',1"),
        ("marker", "begin", "X'61',X'',1"), ("marker", "commit", "X'61',X'',1"),
    ]  # fmt: skip
    assert shape(events)[1] == ("row", "insert", "t", "1")


def test_distributed_transaction_that_is_rolled_back(server: Any) -> None:
    """Its rows were read where it was prepared: that is an error, also where reading begins behind
    it. One without rows of the tables, and one that was never prepared, are no matter."""
    capture = Capture(server, "headgate_xa_back")
    capture.run(*TABLES)
    start = capture.position()
    capture.run("XA START 'n'", "INSERT INTO u VALUES (1, 'x')", "XA END 'n'", "XA ROLLBACK 'n'",
                "XA START 'u'", "INSERT INTO u VALUES (1, 'x')", "XA END 'u'", "XA PREPARE 'u'",
                "XA ROLLBACK 'u'", "INSERT INTO t VALUES (1, 'x')")  # fmt: skip
    only_t = {"wanted": lambda database, table: table == "t"}
    assert shape(capture.events(start, **only_t)) == [("row", "insert", "t", "1")]

    capture.run("XA START 'b'", "INSERT INTO t VALUES (2, 'x')", "XA END 'b'", "XA PREPARE 'b'")
    between = capture.position()
    capture.run("XA ROLLBACK 'b'")
    for begin in (start, between):
        with pytest.raises(BinlogError, match="X'62',X'',1 was rolled back after it was prepared"):
            capture.events(begin, **only_t)


def test_a_tagged_transaction_is_refused() -> None:
    """No server at hand writes them: MySQL does from 8.3 on."""
    tagged = HEADER.pack(0, TAGGED_GTID, 1, HEADER_SIZE + 4, 200, 0) + b"tag!"
    with pytest.raises(BinlogError, match="a GTID with a tag, which cannot be read"):
        transactions.Assembler(KnownTables(), reader.any_table, "b.000001", 177).feed(tagged)


def test_statements(server: Any) -> None:
    """The statement of rows, where the server notes it, is an event if it is asked for."""
    capture = Capture(server, "headgate_queries")
    capture.run(*TABLES)
    if server.name == "MySQL":
        capture.run("SET binlog_rows_query_log_events = ON")
    start = capture.position()
    sql = "INSERT INTO t VALUES (1, 'é')"
    capture.run(sql)
    assert [(e.kind, e.ddl) for e in capture.events(start, queries=True)] == [
        ("statement", sql), ("row", None)
    ]  # fmt: skip


def test_unwanted_tables(server: Any) -> None:
    capture = Capture(server, "headgate_wanted")
    capture.run(*TABLES)
    start = capture.position()
    capture.run("INSERT INTO u VALUES (1, 'x')", "INSERT INTO t VALUES (1, 'x')")
    found = capture.events(start, wanted=lambda database, table: table == "t")
    assert shape(found) == [("row", "insert", "t", "1")]


def test_lost_position(server: Any) -> None:
    """A position that the server does not have is an error that says what to do."""
    capture = Capture(server, "headgate_lost")
    with pytest.raises(PurgedError, match="take a new snapshot"):
        capture.events(Start("binlog.999999", 4))
    with pytest.raises(BinlogError, match="binlog"):
        capture.events(Start(capture.position().file, 2**31))


def test_statements_that_are_not_utf8(server: Any) -> None:
    """They are read, with what cannot be read of them replaced."""
    capture = Capture(server, "headgate_bytes")
    start = capture.position()
    capture.run("SET NAMES binary", "CREATE TABLE a (v INT COMMENT 'x')", "SET NAMES utf8mb4")
    with capture.sql.cursor() as cursor:
        cursor.execute(b"CREATE TABLE b /* caf\xe9 */ (v ENUM('x','y') CHARACTER SET binary)")
    capture.run("INSERT INTO b VALUES ('y')")

    a, b, row = capture.events(start)

    assert (a.ddl, b.table, "\ufffd" in (b.ddl or "")) == (
        "CREATE TABLE a (v INT COMMENT 'x')", "b", True,
    )  # fmt: skip
    assert row.after == {"v": "y"}


def test_statements_of_others_are_no_events(server: Any) -> None:
    """Nor are those on accounts, whose passwords they have."""
    capture = Capture(server, "headgate_others")
    capture.run(*TABLES, "CREATE TABLE u2 LIKE u", "DROP DATABASE IF EXISTS headgate_crm",
                "CREATE DATABASE headgate_crm", "CREATE TABLE headgate_crm.t (id INT)")  # fmt: skip
    start = capture.position()
    capture.run(
        "CREATE USER other@localhost IDENTIFIED BY 'hunter2'",
        "SET PASSWORD FOR other@localhost = "
        + ("PASSWORD('hunter3')" if server.name == "MariaDB" else "'hunter3'"),
        "GRANT SELECT ON headgate_others.* TO other@localhost",
        "REVOKE SELECT ON headgate_others.* FROM other@localhost",
        "DROP USER other@localhost",
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO headgate_crm.t VALUES (1)",
        "UPDATE headgate_crm.t SET id = 2",
        "DELETE FROM headgate_crm.t",
        "INSERT INTO t VALUES (1, 'x')",
        "UPDATE t SET v = 'y'",
        "SET SESSION binlog_format = ROW",
        "CREATE TABLE headgate_crm.u (id INT)",
        "ALTER TABLE u ADD y INT",
    )

    def wanted(database: str, table: str) -> bool:
        return database == "headgate_others"

    events = capture.events(start, wanted=wanted, wanted_ddl=wanted)
    assert [(event.kind, event.ddl) for event in events] == [
        ("statement", "INSERT INTO t VALUES (1, 'x')"),
        ("statement", "UPDATE t SET v = 'y'"),
        ("ddl", "ALTER TABLE u ADD y INT"),
    ]
    everything = [event.ddl or "" for event in capture.events(start, wanted=wanted)]
    assert "INSERT INTO headgate_crm.t VALUES (1)" in everything
    assert not [sql for sql in everything if "other" in sql]


def test_a_query_of_a_broken_connection(server: Any) -> None:
    capture = Capture(server, "headgate_broken")
    connection = capture.connect()
    ((number,),) = connection.query("SELECT CONNECTION_ID()")
    capture.run(f"KILL {number}")
    for _ in range(2):
        with pytest.raises(DisconnectedError):
            connection.query("SELECT 1")


def test_a_binlog_that_ends_too_soon(server: Any) -> None:
    """Changes up to the position may be missing: that is no end."""
    capture = Capture(server, "headgate_soon")
    capture.run(*TABLES, "INSERT INTO t VALUES (1, 'x')")
    end = capture.position()
    with pytest.raises(DisconnectedError, match="before the position that is read to"):
        capture.events(until=Start(end.file, end.pos + 1))
