"""Values of every type on real servers: the text of the binlog is that of the server's SELECT."""

from __future__ import annotations

import random
import struct
from itertools import islice
from typing import Any

import pytest
from binlog_capture import Capture

from headgate.core.event import Event
from headgate.mysql.definitions import current_tables
from headgate.mysql.errors import SchemaError
from headgate.schema.known_tables import KnownTables

pytestmark = pytest.mark.slow


def selected(capture: Capture, table: str, columns: dict[str, str]) -> list[dict[str, str | None]]:
    """The rows of a table, by expressions of the server's, as the text that it sends."""
    listed = ", ".join(columns.values())
    readers, capture.sql.decoders = capture.sql.decoders, {}
    rows = capture.query(f"SELECT {listed} FROM {table} ORDER BY id")
    capture.sql.decoders = readers
    return [dict(zip(columns, row)) for row in rows]


def images(events: list[Event], *names: str) -> list[dict[str, str | None]]:
    return [{name: (event.after or {})[name] for name in names} for event in events]


def random_numbers(source: random.Random, code: str, count: int) -> list[str]:
    """Numbers of any bits, but the largest, NaN and the infinities."""
    largest = 1e308 if code == "<d" else 1e38
    drawn = (struct.unpack(code, source.randbytes(struct.calcsize(code)))[0] for _ in iter(int, 1))
    return [repr(n) for n in islice((n for n in drawn if abs(n) < largest), count)]


def test_doubles(server: Any, loops: str) -> None:
    """The server prints the fewest digits of a DOUBLE, and so do we."""
    capture = Capture(server, "headgate_doubles")
    capture.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, d DOUBLE)")
    numbers = random.Random(5)
    texts = [
        "0",
        "-0.0",
        "1e15",
        "1e14",
        "123456789012345678",
        "1e-15",
        "1e-16",
        "0.1",
        "1e300",
        "-1.5e-7",
        "100000",
        "4.9e-324",
        "1.7976931348623157e308",
        "9007199254740993",
        "1642252100461880.8",
        "-3042309839446002.5",
    ]
    texts += [repr(numbers.uniform(-1e6, 1e6)) for _ in range(300)]
    texts += [repr(numbers.uniform(1e14, 1e17)) for _ in range(100)]
    texts += [repr(round(numbers.uniform(-1e6, 1e6), 2)) for _ in range(300)]
    texts += random_numbers(numbers, "<d", 900)
    capture.run("INSERT INTO t (d) VALUES " + ", ".join(f"({text})" for text in texts))
    found = images(capture.rows(), "d")
    assert len(found) == len(texts)
    assert found == selected(capture, "t", {"d": "d"})


def test_floats_come_back(server: Any, loops: str) -> None:
    """A FLOAT's digits give the same FLOAT; the server's own SELECT shows only six of them."""
    capture = Capture(server, "headgate_floats")
    capture.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, f FLOAT)")
    numbers = random.Random(6)
    texts = ["0", "1.1", "16777216", "3.4028232e38", "1e-45", "0.3", "-7.25"]
    texts += random_numbers(numbers, "<f", 800)
    capture.run("INSERT INTO t (f) VALUES " + ", ".join(f"({text})" for text in texts))
    found = images(capture.rows(), "f")
    assert [each["f"] for each in found[:7]] == [
        "0", "1.1", "16777216", "3.4028233e38", "1e-45", "0.3", "-7.25"
    ]  # fmt: skip
    capture.run(
        "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, f FLOAT)",
        "INSERT INTO u (f) VALUES " + ", ".join(f"({each['f']})" for each in found),
    )
    same = "SELECT COUNT(*) FROM t JOIN u USING (id) WHERE t.f = u.f"
    assert capture.query(same) == [(len(texts),)]


DOCUMENTS = r"""
JSON_OBJECT('int', 1, 'neg', -1, 'u64', 18446744073709551615, 'i64', -9223372036854775808)
JSON_ARRAY(1.5, CAST(1 AS DECIMAL(10,3)), 1e0, 1e100, 0.1e0, 1e15, 123456.789e0)
JSON_OBJECT('d', CAST('2024-02-29' AS DATE), 't', CAST('-12:34:56.789' AS TIME(6)))
JSON_OBJECT('dt', CAST('2024-02-29 01:02:03.4' AS DATETIME(6)), 'z', CAST('0000-01-01' AS DATE))
JSON_ARRAY(TRUE, FALSE, NULL, '', 'é😀', CONCAT('q"b\\', CHAR(1), CHAR(9), CHAR(10), '/'))
JSON_OBJECT('', 1, 'a b', 2, 'bb', 3, 'aa', JSON_OBJECT('x', JSON_ARRAY()), 'é', JSON_OBJECT())
JSON_OBJECT('bin', CAST(x'00ff10' AS BINARY), 'bit', b'1')
JSON_ARRAY(REPEAT('x', 200), REPEAT('y', 70000), 70000, -40000, 3000000000)
JSON_OBJECT('small', REPEAT('z', 66000), 'a', 40000, 'b', -40000, 'c', 4000000000)
CAST('"text"' AS JSON)
CAST('3' AS JSON)
CAST('null' AS JSON)
CAST('[[[[1]]]]' AS JSON)
JSON_QUOTE('plain')
"""


def test_json(mysql: Any, loops: str) -> None:
    """Binary JSON is the text that MySQL prints."""
    capture = Capture(mysql, "headgate_json")
    capture.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, j JSON)")
    for document in DOCUMENTS.strip().splitlines():
        capture.run(f"INSERT INTO t (j) VALUES ({document})")
    found = images(capture.rows(), "j")
    assert len(found) == 14
    assert found == selected(capture, "t", {"j": "CAST(j AS CHAR)"})


UPDATES = (
    "JSON_SET(j, '$.a', 2)", "JSON_SET(j, '$.new', CAST('{\"k\": [1, 2]}' AS JSON))",
    "JSON_REMOVE(j, '$.b')", "JSON_REPLACE(j, '$.list[1]', 'changed')",
    "JSON_SET(j, '$.list[0]', JSON_OBJECT('deep', 1), '$.\"odd key\"', 'v', '$.a', NULL)",
    "JSON_REMOVE(j, '$.list[0]')", "JSON_SET(j, '$.o.p.q', 7.5)", "JSON_SET(j, '$.z', 1, '$.y', 2)",
)  # fmt: skip


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_partial_json(mysql: Any, loops: str, image: str) -> None:
    """Partial updates are applied to the value before; without it the column is absent."""
    capture = Capture(mysql, f"headgate_partial_{image.lower()}")
    capture.run(
        "SET binlog_row_value_options = 'PARTIAL_JSON'", f"SET binlog_row_image = '{image}'",
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON, k JSON, v INT)",
        """INSERT INTO t SELECT n, JSON_OBJECT('a', 1, 'b', REPEAT('x', 300), 'list',
        JSON_ARRAY(1, 'two', 3), 'odd key', 1, 'o', JSON_OBJECT('p', JSON_OBJECT('q', 1))), '[1]', 0
        FROM (SELECT 1 n UNION SELECT 2 UNION SELECT 3) x""",
    )  # fmt: skip
    start = capture.position()
    truth = []
    for update in UPDATES:
        capture.run(f"UPDATE t SET j = {update}, v = v + 1")
        truth += selected(capture, "t", {"id": "CAST(id AS CHAR)", "j": "CAST(j AS CHAR)"})
    updates = [event for event in capture.events(start) if event.kind == "row"]
    assert len(updates) == len(truth) == 24
    if image == "FULL":
        assert images(updates, "id", "j") == truth
    else:
        assert [(event.after or {})["id"] for event in updates] == [row["id"] for row in truth]
        whole = [
            (event.after["j"], row["j"])
            for event, row in zip(updates, truth)
            if event.after is not None and "j" in event.after
        ]
        assert all(decoded == row for decoded, row in whole)
        assert len(whole) < len(updates)


ROWS_OF_IMAGES = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20) DEFAULT 'd', c TEXT)",
    "INSERT INTO t (id, a, b, c) VALUES (1, 1, 'x', 'long'), (2, NULL, NULL, NULL)",
    "UPDATE t SET a = 5 WHERE id = 1",
    "UPDATE t SET c = 'longer' WHERE id = 2",
    "DELETE FROM t WHERE id = 1",
)


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_row_images(server: Any, loops: str, image: str) -> None:
    """A column that the binlog does not have is absent, and named; NULL is NULL. What an update
    did not change is in its after image where the before image has it."""
    capture = Capture(server, f"headgate_images_{image.lower()}")
    capture.run(f"SET binlog_row_image = '{image}'", *ROWS_OF_IMAGES)
    one, two, first, second, gone = capture.rows()
    assert one.after == {"id": "1", "a": "1", "b": "x", "c": "long"}
    assert two.after == {"id": "2", "a": None, "b": None, "c": None}
    if image == "MINIMAL":
        assert (first.before, first.after) == ({"id": "1"}, {"id": "1", "a": "5"})
        assert (first.extra or {})["unavailable"] == '{"b":null,"c":null}'
        assert (second.before, second.after) == ({"id": "2"}, {"id": "2", "c": "longer"})
        assert gone.before == {"id": "1"}
    else:
        assert first.before == {"id": "1", "a": "1", "b": "x"}
        assert first.after == {"id": "1", "a": "5", "b": "x"}
        assert second.after == {"id": "2", "a": None, "b": None, "c": "longer"}
        assert gone.before == {"id": "1", "a": "5", "b": "x"}


MARIADB_TYPES = """CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, u UUID, i4 INET4, i6 INET6,
    vc VARCHAR(2000) COMPRESSED, bc BLOB COMPRESSED, tc TEXT CHARACTER SET latin1 COMPRESSED)"""


def test_types_of_mariadb(mariadb: Any, loops: str) -> None:
    """UUID, INET4 and INET6 are BINARY in the binlog; the table's definition tells what they are.
    Compressed columns are what was put into them."""
    capture = Capture(mariadb, "headgate_types")
    capture.run(MARIADB_TYPES)
    for uuid, four, six in (
        ("123e4567-e89b-12d3-a456-426655440000", "1.2.3.4", "::"),
        ("00000000-0000-0000-0000-000000000000", "0.0.0.0", "::ffff:1.2.3.4"),
        ("018f3f3e-7b1c-7def-8abc-0123456789ab", "255.255.255.0", "2001:db8::ff00:42:8329"),
        ("f47ac10b-58cc-4372-a567-0e02b2c3d400", "10.0.0.1", "fe80::1"),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", "127.0.0.1", "::1.2.3.4"),
        ("1ec9414c-232a-6b00-b3c8-9e6bdeced846", "8.8.8.8", "1:0:0:2::3"),
    ):
        capture.run(
            f"INSERT INTO t (u, i4, i6, vc, bc, tc) VALUES ('{uuid}', '{four}', '{six}', "
            f"REPEAT('{uuid}é', 20), REPEAT('{four}', 300), REPEAT('é{six}', 100))",
            f"INSERT INTO t (u, vc, bc, tc) VALUES ('{uuid}', 'short', '', 'é')",
        )
    names = {"u": "CAST(u AS CHAR)", "i4": "CAST(i4 AS CHAR)", "i6": "CAST(i6 AS CHAR)", "vc": "vc",
             "bc": "REPLACE(TO_BASE64(bc), '\\n', '')", "tc": "tc"}  # fmt: skip
    found = images(capture.rows(), *names)
    assert len(found) == 12
    assert found == selected(capture, "t", names)


def test_without_metadata(mysql: Any, loops: str) -> None:
    """With binlog_row_metadata=MINIMAL names, labels and keys are those that DDL told, in order."""
    capture = Capture(mysql, "headgate_history")
    known = KnownTables("CREATE TABLE headgate_history.old (a INT, e ENUM('x','y'))")
    capture.run("CREATE TABLE old (a INT, e ENUM('x','y'))")
    start = capture.position()
    capture.run("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    try:
        capture.run(
            "INSERT INTO old VALUES (1, 'y')",
            "ALTER TABLE old RENAME COLUMN a TO b, ADD COLUMN (s SET('p','q'), u INT UNSIGNED)",
            "INSERT INTO old VALUES (2, 'x', 'p,q', 4294967295)",
            "RENAME TABLE old TO new",
            "ALTER TABLE new ADD PRIMARY KEY (b)",
            "INSERT INTO new VALUES (3, NULL, '', 0)",
        )
    finally:
        capture.run("SET GLOBAL binlog_row_metadata = 'FULL'")
    rows = [event for event in capture.events(start, known=known) if event.kind == "row"]
    assert [(event.table, event.key, event.after) for event in rows] == [
        ("old", (), {"a": "1", "e": "y"}),
        ("old", (), {"b": "2", "e": "x", "s": "p,q", "u": "4294967295"}),
        ("new", ("b",), {"b": "3", "e": None, "s": "", "u": "0"}),
    ]


def test_tables_as_they_are(mysql: Any, loops: str) -> None:
    """The tables of the server, and a position where they are like that."""
    capture = Capture(mysql, "headgate_definitions")
    capture.run("CREATE TABLE `odd``name` (a INT UNSIGNED PRIMARY KEY, e ENUM('x','it''s'))",
                "SET GLOBAL binlog_row_metadata = 'MINIMAL'")  # fmt: skip
    try:
        connection = capture.connect()
        start, known = current_tables(connection, lambda database, _: database == capture.database)
        connection.close()
        capture.run("INSERT INTO `odd``name` VALUES (4294967295, 'it''s')")
    finally:
        capture.run("SET GLOBAL binlog_row_metadata = 'FULL'")
    (event,) = [event for event in capture.events(start, known=known) if event.kind == "row"]
    assert (event.table, event.key) == ("odd`name", ("a",))
    assert event.after == {"a": "4294967295", "e": "it's"}


def test_nothing_tells_the_columns(mysql: Any) -> None:
    """Without names in the binlog, and without definitions, reading stops and says what to do."""
    capture = Capture(mysql, "headgate_unknown")
    capture.run("CREATE TABLE t (a INT)", "SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    start = capture.position()
    try:
        capture.run("INSERT INTO t VALUES (1)")
    finally:
        capture.run("SET GLOBAL binlog_row_metadata = 'FULL'")
    with pytest.raises(SchemaError, match="SET GLOBAL binlog_row_metadata = 'FULL'"):
        capture.events(start)


def test_unsigned_behind_a_year(server: Any, loops: str) -> None:
    """Which columns are unsigned is told for numbers only: YEAR may be one of them, or not."""
    capture = Capture(server, "headgate_signs")
    capture.run(
        "CREATE TABLE t (y YEAR, u INT UNSIGNED, s INT, d DECIMAL(5,2) UNSIGNED, b BIT(3), "
        "g GEOMETRY, n TINYINT, m TINYINT UNSIGNED)",
        "INSERT INTO t VALUES (2024, 4294967295, -1, 1.5, 5, NULL, -128, 255)",
    )
    (event,) = capture.rows(known=KnownTables())
    assert event.after == {"y": "2024", "u": "4294967295", "s": "-1", "d": "1.50", "b": "5",
                           "g": None, "n": "-128", "m": "255"}  # fmt: skip
