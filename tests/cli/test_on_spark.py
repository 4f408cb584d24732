"""What comes back from a cluster, without a cluster."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from headgate.arrow.typed_rows import TIME
from headgate.core.errors import UsageError
from headgate.sources.message_files import Split


def test_spark_rows_keep_their_time_in_any_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.cli.on_spark import batches_of

    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        row = {"t": datetime.fromtimestamp(1_700_000_000)}  # as Spark hands it over
        (batch,) = batches_of([row], pa.schema([("t", TIME)]))
    finally:
        monkeypatch.undo()
        time.tzset()

    assert [1_700_000_000_000_000] == batch.column("t").cast(pa.int64()).to_pylist()


def test_a_file_without_messages_is_not_left_out() -> None:
    from headgate.cli.on_spark import by_file

    files = ["empty", "a", "a", "none"]
    parts = [(i, Split(file)) for i, file in enumerate(files)]
    rows = [{"split": 1, "n": 5}, {"split": 2, "n": 6}, {"split": 2, "n": 7}]
    found = [
        (file, [n for batch in batches for n in batch.column("n").to_pylist()])
        for file, batches in by_file(files, parts, rows, pa.schema([("n", pa.int64())]))
    ]

    assert [("empty", []), ("a", [5]), ("a", [6, 7]), ("none", [])] == found


def test_a_worker_that_stops_midway_is_a_usage_error() -> None:
    from pyspark.errors import PythonException

    from headgate.cli.on_spark import by_file, local_rows

    class Broken:
        def toLocalIterator(self, prefetchPartitions: bool) -> Any:
            yield {"split": 0, "n": 1}
            raise PythonException("…\nheadgate.core.errors.UsageError: x.gz is not whole gzip")

    files, schema = ["x.gz"], pa.schema([("n", pa.int64())])
    rows = local_rows(Broken())  # type: ignore[arg-type]
    _, batches = next(by_file(files, [(0, Split("x.gz"))], rows, schema))
    with pytest.raises(UsageError, match=r"^x.gz is not whole gzip$"):
        list(batches)
