"""`headgate.register`: what Spark finds by name, in SQL and in `spark.read`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.events import EVENT_SCHEMA, SOURCE_COLUMNS, decode_batches, most_bytes_of
from headgate.codec.decoder import decoder
from headgate.core.errors import UsageError
from headgate.formats.base import Decode
from headgate.sources.message_files import Split, expand, read, splits
from headgate.spark.api import fast_worker

FUNCTION = "headgate_decode"
EVENTS = from_arrow_schema(EVENT_SCHEMA)


def register(spark: SparkSession) -> None:
    """Let a session know Headgate's names in SQL and in `spark.read`.

    `headgate_decode(TABLE(messages), format)` is `headgate.decode` in SQL; a third argument is a
    map of options:

        headgate.register(spark)
        spark.sql("SELECT * FROM headgate_decode(TABLE(topic), 'auto')")
        spark.sql("SELECT * FROM headgate_decode(TABLE(topic), 'auto', map('strict', 'true'))")

    `headgate` reads files of messages as events, with the options of the format:

        spark.read.format("headgate").option("format", "debezium").load("/data/messages")

    `headgate.mysql`, with headgate[mysql], is a stream of events. Its options are those of a
    `mysql://` source (docs/mysql.md), and `state`: a directory for what it has to remember beside
    the query's checkpoint, which belongs to one query:

        spark.readStream.format("headgate.mysql")
            .option("url", "mysql://cdc:${PASSWORD}@db:3306")
            .option("tables", "shop.*")
            .option("state", "/data/state/shop")
            .load()
    """
    spark.dataSource.register(MessageFiles)
    function: Any = arrow_udtf(DecodeTable, returnType=EVENTS)
    spark.udtf.register(FUNCTION, function)
    if find_spec("pymysql"):
        from headgate.pipeline.data_sources import MySQLEvents

        spark.dataSource.register(MySQLEvents)


class DecodeTable:
    """The rows of a table as messages, decoded."""

    def __init__(self) -> None:
        self.decode: Decode | None = None
        self.limit = 0

    def eval(
        self, messages: pa.RecordBatch, format: pa.Array, options: pa.Array | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The events of some messages."""
        if self.decode is None:
            given = dict(options[0].as_py()) if options is not None else {}
            self.decode, self.limit = decoder(format[0].as_py(), **given), most_bytes_of(given)
        names = messages.schema.names
        if "value" not in names:
            raise UsageError(f"the table has no column 'value' (it has: {', '.join(names)})")
        columns = {n: messages.column(n).cast(t) for n, t in SOURCE_COLUMNS.items() if n in names}
        with fast_worker():
            yield from decode_batches([pa.record_batch(columns)], self.decode, self.limit)


class MessageFiles(DataSource):
    """Files of messages as events."""

    @classmethod
    def name(cls) -> str:
        """The format that it is asked for by."""
        return "headgate"

    def schema(self) -> Any:
        """The columns of events."""
        return EVENTS

    def reader(self, schema: Any) -> DataSourceReader:
        """The reader of a query."""
        return MessageFileReader(dict(self.options))


class SplitPartition(InputPartition):
    """A part of a file."""

    def __init__(self, split: Split) -> None:
        super().__init__(split)
        self.split = split


class MessageFileReader(DataSourceReader):
    """Reads files of messages, as `headgate decode` does."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        self.paths = paths_of(given)
        self.format = given.pop("format", "auto")
        self.options = given
        decoder(self.format, **given)  # reject a wrong name or option here, not on a worker

    def partitions(self) -> Sequence[InputPartition]:
        """What can be read at the same time."""
        slots = os.cpu_count() or 1
        return [SplitPartition(s) for path in expand(self.paths) for s in splits(path, slots)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The events of a part of a file."""
        limit = most_bytes_of(self.options)
        with fast_worker():
            decode = decoder(self.format, **self.options)
            yield from decode_batches(read(partition.split, limit), decode, limit)


def paths_of(options: dict[str, str]) -> list[str]:
    """Take the paths out of options, where Spark puts what `load` is given.

    >>> paths_of({"path": "/in"}), paths_of({"paths": '["/a","/b"]'})
    (['/in'], ['/a', '/b'])
    """
    path, paths = options.pop("path", None), options.pop("paths", None)
    files: list[str] = [path] if path else json.loads(paths or "[]")
    if not files:
        raise UsageError('give a path: spark.read.format("headgate").load("/data/messages")')
    return files
