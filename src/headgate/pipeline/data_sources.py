"""Events of a database as a data source of Spark's.

spark.readStream.format("headgate.mysql").option("url", …).option("state", …).load()
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.events import EVENT_SCHEMA
from headgate.config.uris import Given, parse_source
from headgate.core.errors import UsageError
from headgate.core.scalars import Environment
from headgate.sources.mysql import MySQLSource
from headgate.sources.mysql.beginning import Beginning, beginning_of, with_new_tables
from headgate.sources.mysql.capture import Capture, capture_of
from headgate.sources.mysql.offsets import CaptureOffset, offset_of
from headgate.sources.mysql.planner import Planner
from headgate.sources.mysql.ranges import events_of_range, ranges
from headgate.sources.mysql.stream import builtins_of
from headgate.spark.api import fast_worker
from headgate.spark.filesystem import directory
from headgate.spark.state_files import read_state, write_state
from headgate.spark.storage import Storage

PLANNED = "planned.json"


class MySQLEvents(DataSource):
    """Tables of MySQL or MariaDB as a stream of events."""

    @classmethod
    def name(cls) -> str:
        """The format that it is asked for by."""
        return "headgate.mysql"

    def schema(self) -> Any:
        """The columns of events."""
        return from_arrow_schema(EVENT_SCHEMA)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """The reader of a query."""
        return EventStreamReader(dict(self.options))


class EventStreamReader(DataSourceStreamReader):
    """Plans batches, and reads them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        url, state = given.pop("url", None), given.pop("state", None)
        if url is None or state is None:
            raise UsageError(
                'headgate.mysql needs .option("url", "mysql://USER:PASSWORD@HOST:PORT"), '
                '.option("tables", "DATABASE.TABLE") and .option("state", DIRECTORY)'
            )
        connector = parse_source(url, Given(given), env=Environment(os.environ)).connector
        if not isinstance(connector, MySQLSource):
            raise UsageError("the url of headgate.mysql begins with mysql://")
        self.source, self.state = connector, directory(state)
        self.planner: Planner | None = None

    @cached_property
    def beginning(self) -> Beginning:
        """Where the first batch begins."""
        return beginning_of(self.source, Storage(self.state))

    def capture(self, planned: CaptureOffset) -> Capture:
        """What reading takes."""
        return capture_of(self.source, self.beginning, planned, self.state, {}, os.cpu_count() or 1)

    def initialOffset(self) -> dict[str, Any]:
        """Where the first batch begins: the same when it is planned again."""
        return builtins_of(self.beginning.start)

    def latestOffset(self) -> dict[str, Any]:
        """Where the next batch ends."""
        if self.planner is None:
            planned = read_state(Storage(self.state), PLANNED, CaptureOffset)
            with self.source.login.connected() as connection:
                tables = self.source.patterns.found(connection)
            last = with_new_tables(planned or self.beginning.start, tables)
            self.planner = Planner(self.capture(last))
        return builtins_of(self.planner.next())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """What a batch reads. Spark has noted its end by now, so that the next one begins there."""
        last = offset_of(end)
        write_state(Storage(self.state), PLANNED, last)
        if self.planner is not None:
            self.planner.planned = last
        return ranges(offset_of(start), last)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The events of a range."""
        with fast_worker():
            yield from events_of_range(self.capture(partition.end), partition)
