"""Snapshots of tables on real servers: rows are as the binlog has them, at a position of it."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pymysql
import pytest
from binlog_capture import REPLICA, Capture

from headgate.arrow.records import events_of
from headgate.core.event import Event
from headgate.mysql import query_rows
from headgate.mysql.compilation import ROW_LOOPS
from headgate.mysql.connection import Start
from headgate.mysql.definitions import current_table
from headgate.mysql.login import Login
from headgate.mysql.snapshot import Chunk, next_bound, read_chunk

pytestmark = pytest.mark.slow

Row = tuple[tuple[str, str | None], ...]
COLUMNS = """
    i8 TINYINT, u8 TINYINT UNSIGNED, flag TINYINT(1), zf INT(8) ZEROFILL, i24 MEDIUMINT,
    u64 BIGINT UNSIGNED, de DECIMAL(65,30), dz DECIMAL(9,2) UNSIGNED ZEROFILL, fl FLOAT, db DOUBLE,
    bi BIT(64), b1 BIT(1), da DATE, ti TIME(6), dt DATETIME(3), ts TIMESTAMP(6) NULL, ye YEAR,
    ch CHAR(10), vc VARCHAR(30) CHARACTER SET latin1, tx MEDIUMTEXT, gb VARCHAR(30) CHARACTER SET gbk,
    bn BINARY(6), vb VARBINARY(20), bl LONGBLOB, en ENUM('a','b,c','it''s'), se SET('x','y','z'),
    ge GEOMETRY, gc BIGINT AS (i24 * 2) STORED
"""  # noqa: E501
VALUES = (
    "(-128, 255, 1, 42, -8388608, 18446744073709551615, 12345678901234567890123456789012345."
    "123456789012345678901234567891, 1.5, 1.1, -0.1, b'1000000000000000000000000000000000000000"
    "000000000000000000000001', 1, '0000-00-00', '-838:59:59.000001', '1000-01-01 00:00:00.5', "
    "'2024-02-29 12:00:00.000001', 2022, 'é😀 ', 'naïve', '', '中文', x'0100', x'00ff', '', "
    "'b,c', 'x,z', ST_GeomFromText('POINT(1 2)'))",
    "(0, 0, 0, 0, 0, 0, 0, 0, 16777216, 1e300, 0, 0, '2023-02-31', '838:59:59', "
    "'9999-12-31 23:59:59.999', '1970-01-01 00:00:01', 0, 'x', '', REPEAT('y', 70000), '', "
    "x'', x'', REPEAT('z', 300), 'it''s', '', NULL)",
    "(" + ", ".join(["NULL"] * 27) + ")",
)


def login(server: Any) -> Login:
    return Login("127.0.0.1", server.port, server.user, server.password)


def chunk_rows(server: Any, chunk: Chunk, at: Start) -> list[Event]:
    batches = read_chunk(login(server), chunk, at, REPLICA)
    return [event for batch in batches for event in events_of(batch)]


@pytest.fixture(params=["compiled", "plain"])
def walking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(query_rows, "_compiled", lambda: None)
    else:
        ROW_LOOPS.preparing.join()


def test_every_type_is_as_the_binlog_has_it(server: Any, walking: None) -> None:
    capture = Capture(server, "headgate_snapshot_types")
    capture.run(
        "SET sql_mode = 'ALLOW_INVALID_DATES'",
        f"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, {COLUMNS}, js JSON)",
    )
    names = [line.split()[0] for line in COLUMNS.replace("\n", " ").split(", ")][:-1]
    names = [name for name in ", ".join(names).split(", ") if name not in ("gc",)]
    for values in VALUES:
        capture.run(f"INSERT INTO t ({', '.join(names)}) VALUES {values}")
    capture.run("""UPDATE t SET js = '{"a": [1, 2.50, "é"], "b": null}' WHERE id = 1""")
    written = {e.after["id"]: e for e in capture.rows() if e.after}  # the last of each row
    at = capture.position()

    read = chunk_rows(server, Chunk(capture.database, "t"), at)

    assert [event.op for event in read] == ["snapshot"] * 3
    for event in read:
        assert event.after
        assert event.after == written[event.after["id"] or ""].after
        assert event.types
        assert list(event.types) == list(event.after)
        assert (event.key, event.database, event.table) == (("id",), capture.database, "t")
        assert event.position["file"] == at.file  # type: ignore[index]


def test_a_row_longer_than_a_packet(server: Any, walking: None) -> None:
    capture = Capture(server, "headgate_snapshot_long")
    capture.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
    capture.sql.close()
    server.run("SET GLOBAL max_allowed_packet = 67108864")
    server.run(
        f"INSERT INTO {capture.database}.t VALUES (1, 'a'), (2, REPEAT('x', 40000000)), (3, 'b')"
    )

    read = chunk_rows(server, Chunk(capture.database, "t"), capture.position())

    assert [len((event.after or {})["v"] or "") for event in read] == [1, 40_000_000, 1]


KEYS = {
    "numbers": ("k BIGINT UNSIGNED", [str(n * 7) for n in range(40)]),
    "words": ("k VARCHAR(20) CHARACTER SET latin1", [f"'w{n}é'" for n in range(40)]),
    "bytes": ("k VARBINARY(20)", [f"x'{n * 6:04x}'" for n in range(40)]),
    "times": ("k DATETIME(3)", [f"'2024-01-{n % 28 + 1:02d} 00:00:{n:02d}.5'" for n in range(40)]),
    "labels": ("k ENUM('z','y','x','a','b')", ["'z'", "'a'", "'x'", "'y'", "'b'"]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_chunks_have_every_row_once(server: Any, kind: str) -> None:
    capture = Capture(server, f"headgate_chunks_{kind}")
    column, values = KEYS[kind]
    capture.run(f"CREATE TABLE t ({column}, n INT, PRIMARY KEY (k, n))")
    rows = [f"({value}, {n})" for value in values for n in range(3)]
    capture.run("INSERT INTO t VALUES " + ", ".join(rows))
    connection, at = capture.connect(), capture.position()
    table, _ = current_table(connection, capture.database, "t") or pytest.fail("no table")
    key = [(name, table.columns[name].mysql) for name in table.key]
    read: list[Row] = []
    after, sizes = None, []
    while True:
        until = next_bound(connection, capture.database, "t", key, after, 25)
        events = chunk_rows(server, Chunk(capture.database, "t", after, until), at)
        sizes.append(len(events))
        read += [tuple((event.after or {}).items()) for event in events]
        if until is None:
            break
        after = until

    assert sizes[:-1] == [25] * (len(rows) // 25)
    assert len(read) == len(set(read)) == len(rows)
    assert {tuple((e.after or {}).items()) for e in capture.rows()} == set(read)


@pytest.mark.parametrize("keyed", [True, False])
def test_rows_are_those_of_the_position_while_others_write(server: Any, keyed: bool) -> None:
    """What is read of a table that is written to is its rows at the position, and none else."""
    capture = Capture(server, f"headgate_busy_{keyed}".lower())
    key = ", PRIMARY KEY (id)" if keyed else ""
    capture.run(f"CREATE TABLE t (id INT NOT NULL, v VARCHAR(20){key})")
    capture.run("INSERT INTO t VALUES " + ", ".join(f"({n}, 'first')" for n in range(2000)))
    stop = threading.Event()

    def write(seed: int) -> None:
        numbers = random.Random(seed)
        sql = pymysql.connect(
            host="127.0.0.1", port=server.port, user=server.user, password=server.password,
            database=capture.database, autocommit=True,
        )  # fmt: skip
        with sql, sql.cursor() as cursor:
            while not stop.is_set():
                n, word = numbers.randrange(2500), numbers.randrange(5)
                cursor.execute(
                    numbers.choice(
                        [
                            f"UPDATE t SET v = 'w{word}' WHERE id = {n}",
                            f"INSERT IGNORE INTO t VALUES ({n}, 'i{word}')",
                            f"DELETE FROM t WHERE id = {n} LIMIT 1",
                            f"UPDATE IGNORE t SET id = {numbers.randrange(2500)} WHERE id = {n}",
                        ]
                    )
                )

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for each in writers:
        each.start()
    found = []
    try:
        for _ in range(3):
            at = capture.position()
            found.append((at, chunk_rows(server, Chunk(capture.database, "t"), at)))
        found.append((found[0][0], chunk_rows(server, Chunk(capture.database, "t"), found[0][0])))
    finally:
        stop.set()
        for each in writers:
            each.join()

    for at, events in found:
        rows = Counter(tuple((event.after or {}).items()) for event in events)
        expected = state_at(capture, at)
        if keyed:  # rows that are gone since are left out: that they were deleted follows
            assert not rows - expected
            missing = {dict(row)["id"] for row in expected - rows}
            assert missing <= deleted_since(capture, at)
        else:
            assert rows == expected


def state_at(capture: Capture, at: Start) -> Counter[Row]:
    """The rows of a table by the binlog up to a position."""
    rows: Counter[Row] = Counter()
    for event in capture.events(until=Start(at.file, at.pos)):
        for image, number in ((event.before, -1), (event.after, 1)):
            if event.kind == "row" and image is not None:
                rows[tuple(image.items())] += number
    return +rows


def deleted_since(capture: Capture, at: Start) -> set[str | None]:
    """The keys of rows that were deleted, or got another key, behind a position."""
    events = [event for event in capture.events(at) if event.kind == "row"]
    return {event.before["id"] for event in events if event.before}
