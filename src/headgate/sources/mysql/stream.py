"""A database's changes as a data source of Spark's.

Spark asks a process of its own where the next batch ends (`latestOffset`). What it is given are
ranges; the workers that process them read from the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader

from headgate.sources.deferred import as_row
from headgate.sources.mysql.capture import Capture
from headgate.sources.mysql.offsets import TOPIC, CaptureOffset, offset_of
from headgate.sources.mysql.planner import Planner
from headgate.sources.mysql.ranges import ranges

NAME = "headgate-mysql"


class RangeReader(DataSourceStreamReader):
    """Plans batches; what it gives Spark are ranges."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.planner: Planner | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Where the first batch begins: the same when it is planned again."""
        return builtins_of(self.capture.start)

    def latestOffset(self) -> dict[str, Any]:
        """Where the next batch ends."""
        if self.planner is None:
            self.planner = Planner(self.capture)
        return builtins_of(self.planner.next())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """What a batch reads."""
        if self.planner is not None:
            self.planner.planned = offset_of(end)
        return ranges(offset_of(start), offset_of(end))

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """A range as a row."""
        yield as_row(partition, TOPIC, partition.number, 0)


def builtins_of(offset: CaptureOffset) -> dict[str, Any]:
    """An offset for Spark."""
    made: dict[str, Any] = msgspec.to_builtins(offset)
    return made
