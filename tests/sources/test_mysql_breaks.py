"""The connection breaks while a worker reads a range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from binlog_capture import REPLICA, Capture
from msgspec.structs import replace
from source_reading import source_of

from headgate.arrow.records import events_of
from headgate.mysql import snapshot
from headgate.mysql.errors import DisconnectedError
from headgate.sources.mysql.beginning import Beginning, first_offset
from headgate.sources.mysql.capture import capture_of
from headgate.sources.mysql.offsets import STEPS, PendingTable, PlannedChunk
from headgate.sources.mysql.ranges import Range, events_of_range
from headgate.spark.storage import Storage

pytestmark = pytest.mark.slow

DATABASE = "headgate_breaks"


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def chunk_of_table(server: Any, folder: Path, keyed: bool) -> tuple[Any, Range]:
    """A worker's view of the job, and a chunk that is the whole of table t."""
    source = source_of(server, f"{DATABASE}.*")
    start = first_offset(source, Storage(str(folder)))
    start = replace(start, pending=[PendingTable(DATABASE, "t", keyed)])
    end = replace(start, pending=[], chunks=[PlannedChunk(DATABASE, "t")])
    capture = capture_of(source, Beginning(start, REPLICA), start, str(folder), {}, 1)
    return capture, Range("chunk", start, end, STEPS + 1)


def breaking(monkeypatch: pytest.MonkeyPatch, sql: Capture, statement: str) -> None:
    """Rows come ten by ten; the connection breaks behind thirty, while others write."""
    real, broken = snapshot.query_texts, []

    def query_texts(connection: Any, text: str, layout: Any) -> Iterator[pa.Array]:
        width = len(layout.columns)
        for values in real(connection, text, layout):
            for at in range(0, len(values), 10 * width):
                if at == 30 * width and not broken:
                    broken.append(True)
                    sql.run(statement)
                    raise DisconnectedError("broken by the test")
                yield values.slice(at, 10 * width)

    monkeypatch.setattr(snapshot, "query_texts", query_texts)


def test_a_chunk_is_read_on_though_rows_of_it_are_deleted(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = Capture(server, DATABASE)
    sql.run("CREATE TABLE t (v INT, a VARCHAR(9), b INT, PRIMARY KEY (a, b))")
    sql.run("INSERT INTO t VALUES " + ", ".join(f"({n}, 'a{n:02d}', {n})" for n in range(100)))
    capture, part = chunk_of_table(server, tmp_path, keyed=True)
    breaking(monkeypatch, sql, "DELETE FROM t WHERE b BETWEEN 5 AND 19")

    rows = [event for batch in events_of_range(capture, part) for event in events_of(batch)]

    assert [(event.after or {})["v"] for event in rows] == [str(n) for n in range(100)]


def test_a_table_without_a_key_is_an_error(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = Capture(server, DATABASE)
    sql.run("CREATE TABLE t (v INT)")
    sql.run("INSERT INTO t VALUES " + ", ".join(f"({n})" for n in range(100)))
    capture, part = chunk_of_table(server, tmp_path, keyed=False)
    breaking(monkeypatch, sql, "DELETE FROM t WHERE v < 5")

    with pytest.raises(DisconnectedError, match="broken by the test"):
        list(events_of_range(capture, part))
