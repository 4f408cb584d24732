"""Files as a stream: their paths first, and their messages when a batch is processed."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow import headers
from headgate.arrow.events import most_bytes_of
from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.sources.base import Files, Origin, Reader
from headgate.sources.message_files import Split, expand, read, splits
from headgate.spark.filesystem import find, for_spark, for_workers, is_remote, local
from headgate.spark.splits import from_splits

MESSAGES_PER_FILE = 10_000
"""A guess, by which a limit of messages becomes one of files."""
ORDERED_SCHEMA = pa.schema([*MESSAGE_SCHEMA, ("part", pa.int32()), ("at", pa.int64())])
"""Messages with their split, and their place in it."""
PATH_COLUMNS = {"value": "path", "timestamp": "modified"}
"""Where a stream in Kafka's columns has a file's path and time."""


class FileReader(Reader):
    """Reads a directory."""

    def __init__(self, spark: SparkSession, path: str, origin: Origin) -> None:
        self.spark, self.path, self.origin = spark, path, origin

    def stream(self, limit: int | None) -> DataFrame:
        """A row is a file: its path is the value, its time the timestamp."""
        return paths_as_messages(path_stream(self.spark, self.path, limit), F.lit(0))

    def backlog(self, number: int) -> str | None:
        """How many files are in a local directory, before the first batch."""
        if number >= 0 or is_remote(self.path) or find(self.path, {}) is None:
            return None
        files = expand([self.path])
        return "1 file to read" if len(files) == 1 else f"{len(files):,} files to read"

    def messages(self, batch: DataFrame) -> tuple[DataFrame | None, Files]:
        """What is in the files of a batch."""
        files = files_of(batch.where("partition IS NOT NULL"))
        root = posixpath.normpath(local(self.path))
        most_bytes = most_bytes_of(dict(self.origin.options))

        def read_split(split: Split, settings: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
            return read(split, most_bytes, settings)

        messages = messages_in(
            batch.sparkSession,
            files,
            self.origin.settings,
            read_split,
            name=lambda path: posixpath.relpath(path, root),
            topic=posixpath.basename(root),
        )
        return messages, files


def path_stream(spark: SparkSession, path: str, limit: int | None, **options: str) -> DataFrame:
    """The files of a directory as they appear: their paths only, no content."""
    schema = "path string, modificationTime timestamp, length bigint, content binary"
    stream = spark.readStream.format("binaryFile").schema(schema)
    # By default a file that is older than a week when it arrives would be passed over in silence.
    stream = stream.option("recursiveFileLookup", "true").option("maxFileAge", "36500d")
    stream = stream.options(**options)
    if limit is not None:
        stream = stream.option("maxFilesPerTrigger", str(max(1, limit // MESSAGES_PER_FILE)))
    return stream.load(for_spark(path)).select("path", F.col("modificationTime").alias("modified"))


def paths_as_messages(paths: DataFrame, partition: Any) -> DataFrame:
    """Paths in the columns of messages."""
    return paths.select(
        F.lit(None).cast("binary").alias("key"),
        F.col("path").cast("binary").alias("value"),
        F.lit(None).cast("string").alias("topic"),
        partition.cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        F.col("modified").alias("timestamp"),
    )


def files_of(rows: DataFrame) -> Files:
    """The files that rows of a stream name, in the order in which they appeared."""
    chosen = rows.selectExpr("CAST(value AS STRING) AS path", "timestamp AS modified").collect()
    ordered = sorted(chosen, key=lambda row: (row.modified, row.path))
    return [(row.path, row.modified.isoformat()) for row in ordered]


def messages_in(
    spark: SparkSession,
    files: Files,
    settings: Mapping[str, str],
    read_split: Callable[[Split, Mapping[str, str]], Iterator[pa.RecordBatch]],
    name: Callable[[str], str],
    topic: str,
) -> DataFrame | None:
    """The messages in files, each partition in order; None if there are none.

    A message without coordinates is known by its file's `name` and its line, and is of `topic`.
    """
    paths = [local(path) for path, _ in files]
    settings = for_workers(paths, settings)
    parts = [split for path in paths for split in splits(path, settings=settings)]
    if not parts:
        return None
    names = [name(part.path) for part in parts]

    def one(index: int) -> Iterator[pa.RecordBatch]:
        at, split = 0, parts[index]
        for batch in read_split(split, settings):
            yield placed(batch, names[index], split.start, topic, index, at)
            at += batch.num_rows

    everything = from_splits(spark, len(parts), one, from_arrow_schema(ORDERED_SCHEMA))
    by_partition = everything.repartition("topic", "partition")
    return by_partition.sortWithinPartitions("topic", "partition", "offset", "part", "at").select(
        *MESSAGE_SCHEMA.names
    )


def placed(
    batch: pa.RecordBatch, name: str, start: int, topic: str, part: int, first: int
) -> pa.RecordBatch:
    """Messages of a file with all columns; those without coordinates get a place."""
    rows = batch.num_rows
    given = {
        column: batch.column(column)
        for column in batch.schema.names
        if batch.column(column).null_count < rows
    }
    if not {"partition", "offset"} <= set(given):
        given.pop("offset", None)
        given.pop("partition", None)
        places = pa.array([f"{name}:{start + first + n}" for n in range(rows)], pa.string())
        given["place"] = pc.coalesce(given["place"], places) if "place" in given else places
    given.setdefault("topic", pa.array([topic] * rows, pa.string()))
    if "headers" in given:
        given["headers"] = headers.texts(given["headers"])
    given["part"] = pa.array([part] * rows, pa.int32())
    given["at"] = pa.array(range(first, first + rows), pa.int64())
    arrays = [
        given[f.name].cast(f.type) if f.name in given else pa.nulls(rows, f.type)
        for f in ORDERED_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ORDERED_SCHEMA)
