"""A database's tables and changes as a stream of events."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headgate.arrow.messages import KAFKA_SCHEMA, Partition
from headgate.core.errors import HeadgateError
from headgate.mysql.connection import ServerFacts, Start
from headgate.mysql.gtids import gtids_of
from headgate.mysql.reader import reaches
from headgate.sources.base import Deferred, Files, Origin, Reader
from headgate.sources.deferred import data_source, messages_of
from headgate.sources.mysql import MySQLSource
from headgate.sources.mysql.beginning import beginning_of, with_new_tables
from headgate.sources.mysql.capture import Capture, capture_of
from headgate.sources.mysql.offsets import CaptureOffset, ends_of, offset_of
from headgate.sources.mysql.ranges import PLACED_SCHEMA, range_reader
from headgate.sources.mysql.stream import NAME, RangeReader
from headgate.spark.checkpoint import last_planned, offsets_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class MySQLReader(Reader):
    """Reads tables and their changes."""

    def __init__(self, spark: SparkSession, source: MySQLSource, origin: Origin) -> None:
        self.spark, self.source, self.origin = spark, source, origin
        self.beginning = beginning_of(source, origin.state)
        with source.login.connected() as connection:
            self.until = connection.current_position()
            """Where the binlog ended when the job started."""
            self.server = connection.facts
            self.tables = source.patterns.found(connection)
        self.reading: Capture | None = None

    def capture(self, limit: int | None) -> Capture:
        """What Spark's processes need to know."""
        planned = self.offset(last_planned(self.origin.checkpoint)) or self.beginning.start
        return capture_of(
            self.source,
            self.beginning,
            with_new_tables(planned, self.tables),
            self.origin.state.uri,
            self.origin.settings,
            self.spark.sparkContext.defaultParallelism,
            limit,
        )

    def stream(self, limit: int | None) -> DataFrame:
        """A row is a range of the binlog, or of a table."""
        self.reading = self.capture(limit)
        self.spark.dataSource.register(data_source(NAME, partial(RangeReader, self.reading)))
        return self.spark.readStream.format(NAME).load()

    def messages(self, batch: DataFrame) -> tuple[DataFrame | None, Files]:
        """The events of a batch's ranges."""
        return messages_of(self.deferred(batch), PLACED_SCHEMA), []

    def deferred(self, batch: DataFrame) -> Deferred:
        """Ranges, which a worker reads."""
        capture = self.reading or self.capture(None)
        return Deferred(batch.select(*KAFKA_SCHEMA.names), range_reader(capture))

    def offset(self, number: int) -> CaptureOffset | None:
        """Where a batch ends."""
        for builtins in offsets_of(self.origin.checkpoint, number):
            if isinstance(builtins, dict) and "server_id" in builtins:
                return offset_of(builtins)
        return None

    def ends(self, number: int) -> dict[Partition, int]:
        """Where a batch ends, as numbers."""
        offset = self.offset(number)
        return {} if offset is None else ends_of(offset)

    def lag(self, number: int) -> int | None:
        """Nothing, or not known: nobody counts what is in a binlog."""
        offset = self.offset(number)
        if offset is None or offset.new or offset.pending:
            return None
        try:
            with self.source.login.connected() as connection:
                now = connection.current_position()
            return 0 if is_done(offset, now, self.server) else None
        except HeadgateError:
            return None

    def unread(self, number: int) -> bool:
        """Whether anything that was there when the job started is behind a batch."""
        offset = self.offset(number) or self.beginning.start
        return bool(offset.new or offset.pending) or not is_done(offset, self.until, self.server)


def is_done(offset: CaptureOffset, until: Start, server: ServerFacts) -> bool:
    """Whether a position of a server's binlog is passed; an offset of another's is compared by its
    transactions."""
    at = offset.start(server.server_id)
    if at.file:
        return reaches(at.file, at.pos, until)
    read, there = (gtids_of(each.gtids or "", server.is_mariadb) for each in (at, until))
    return read.covers(there)  # type: ignore[arg-type]
