"""What comes back from a cluster, without a cluster."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from messages import canal

from headgate.cli.split_work import Decoding, printed
from headgate.core.errors import UsageError
from headgate.sources.message_files import Split


def test_spark_rows_keep_their_time_in_any_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.cli.on_spark import dead_letter

    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        local = datetime.fromtimestamp(1_700_000_000)  # as Spark hands it over
        letter = dead_letter((None, bytearray(b"{"), "t", 0, 1, local, "malformed-json", "…"))
    finally:
        monkeypatch.undo()
        time.tzset()

    assert 1_700_000_000_000_000 == letter.timestamp
    assert b"{" == letter.value


def test_lines_with_a_long_statement_in_common_are_cut_into_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.cli.on_spark import line_batches

    monkeypatch.setattr("headgate.cli.on_spark.BATCH_BYTES", 5_000_000)
    path = tmp_path / "m.json"
    path.write_bytes(canal(sql="s" * 10_000, data=[{"id": str(i)} for i in range(1_000)]))
    batches = list(line_batches(printed(Split(str(path)), Decoding("auto", {}))))

    assert 1_000 == sum(batch.num_rows for batch in batches)
    assert max(batch.nbytes for batch in batches) < 6_000_000


def test_a_file_without_messages_is_not_left_out() -> None:
    from headgate.cli.on_spark import by_file

    files = ["empty", "a", "a", "none"]
    parts = [(i, Split(file)) for i, file in enumerate(files)]
    rows = [{"split": 1, "n": 5}, {"split": 2, "n": 6}, {"split": 2, "n": 7}]
    found = [(file, [row["n"] for row in own]) for file, own in by_file(files, parts, rows)]

    assert [("empty", []), ("a", [5]), ("a", [6, 7]), ("none", [])] == found


def test_a_worker_that_stops_midway_is_a_usage_error() -> None:
    from pyspark.errors import PythonException

    from headgate.cli.on_spark import by_file, local_rows

    class Broken:
        def toLocalIterator(self, prefetchPartitions: bool) -> Any:
            yield {"split": 0, "n": 1}
            raise PythonException("…\nheadgate.core.errors.UsageError: x.gz is not whole gzip")

    rows = local_rows(Broken())  # type: ignore[arg-type]
    _, own = next(by_file(["x.gz"], [(0, Split("x.gz"))], rows))
    with pytest.raises(UsageError, match=r"^x.gz is not whole gzip$"):
        list(own)
