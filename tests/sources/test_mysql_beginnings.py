"""Where a capture begins: at a position, a time, after transactions; and where it goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from binlog_capture import Capture
from mysql_replica import Replica
from mysql_server import MySQL
from source_reading import Reading, source_of

from headgate.core.errors import UsageError

pytestmark = pytest.mark.slow

DATABASE = "headgate_beginning"


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture
def capture(server: Any) -> Capture:
    capture = Capture(server, DATABASE)
    capture.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1, 'a')"
    )
    return capture


def starting(server: Any, where: str) -> Any:
    return source_of(server, f"{DATABASE}.*", starting=where)


def test_at_a_position(server: Any, capture: Capture, tmp_path: Path) -> None:
    place = capture.position()
    capture.run("INSERT INTO t VALUES (2, 'b')", "FLUSH LOGS", "INSERT INTO t VALUES (3, 'c')")
    reading, source = Reading(tmp_path), starting(server, f"{place.file}:{place.pos}")

    assert ["2", "3"] == reading.ids(source)
    capture.run("INSERT INTO t VALUES (4, 'd')")
    assert ["4"] == reading.ids(source)


def test_a_position_that_is_not_there_says_which_are(
    server: Any, capture: Capture, tmp_path: Path
) -> None:
    with pytest.raises(
        UsageError, match=r"the server has no binlog binlog.999999; there are binlog"
    ):
        Reading(tmp_path).ids(starting(server, "binlog.999999:4"))


def test_at_a_time(server: Any, capture: Capture, tmp_path: Path) -> None:
    """The binlog's times are whole seconds."""
    capture.run("FLUSH LOGS", "INSERT INTO t VALUES (2, 'b')")
    time.sleep(2.1)
    ((moment,),) = capture.query("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ')")
    capture.run("INSERT INTO t VALUES (3, 'c')", "FLUSH LOGS", "INSERT INTO t VALUES (4, 'd')")

    assert ["3", "4"] == Reading(tmp_path / "a").ids(starting(server, moment))
    assert [] == Reading(tmp_path / "b").ids(starting(server, "2099-01-01T00:00:00Z"))


def test_after_transactions(server: Any, capture: Capture, tmp_path: Path) -> None:
    done = capture.position().gtids
    capture.run("INSERT INTO t VALUES (2, 'b')", "FLUSH LOGS", "INSERT INTO t VALUES (3, 'c')")
    source = starting(server, f"gtid:{done}")
    reading = Reading(tmp_path)

    assert ["2", "3"] == reading.ids(source)
    capture.run("UPDATE t SET v = 'x' WHERE id = 2")
    assert ["2"] == reading.ids(source)
    assert [] == reading.ids(source)


def test_after_all_transactions(server: Any, capture: Capture, tmp_path: Path) -> None:
    """Nothing is read before there is something."""
    reading, source = Reading(tmp_path), starting(server, f"gtid:{capture.position().gtids}")

    assert [] == reading.ids(source)
    capture.run("INSERT INTO t VALUES (9, 'z')")
    assert ["9"] == reading.ids(source)


def test_transactions_that_are_none(server: Any, capture: Capture, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"no GTID set of {server.name}; write it as gtid:"):
        Reading(tmp_path).ids(starting(server, "gtid:latest"))


@pytest.fixture
def replica(mysql: MySQL) -> Iterator[Replica]:
    """A replica of the server, from now on."""
    with Replica().start() as server:
        server.follow(mysql)
        yield server


def test_goes_on_with_a_replica_that_was_promoted(
    mysql: MySQL, replica: Replica, tmp_path: Path
) -> None:
    """The same state, and another server under the address: its files have other names and places,
    what it has of the old one is not read again."""
    capture = Capture(mysql, DATABASE)
    capture.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1, 'a')"
    )
    reading = Reading(tmp_path)
    assert ["1"] == reading.ids(starting(mysql, "initial"))
    capture.run("INSERT INTO t VALUES (2, 'b')", "FLUSH LOGS", "INSERT INTO t VALUES (3, 'c')")
    assert ["2", "3"] == reading.ids(starting(mysql, "initial"))
    capture.run("INSERT INTO t VALUES (4, 'unread')")
    replica.promote(mysql)

    assert ["4"] == reading.ids(starting(replica, "initial"))
    assert [] == reading.ids(starting(replica, "initial"))
    replica.run(
        f"ALTER TABLE {DATABASE}.t ADD w INT", f"INSERT INTO {DATABASE}.t VALUES (5, 'e', 5)"
    )
    events = reading.events(starting(replica, "initial"))

    assert ["ddl", "row"] == [event.kind for event in events]
    assert {"id": "5", "v": "e", "w": "5"} == events[1].after
    assert reading.at is not None
    assert 13 == reading.at.server_id
