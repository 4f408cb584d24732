"""The inbox of a job: a folder of its state from which dead letters come back into the stream."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.sources.base import Files
from headgate.sources.files.reader import PATH_COLUMNS, files_of, messages_in, path_stream
from headgate.sources.message_files import Split, rows_at_once
from headgate.spark.filesystem import file_system

INBOX = "inbox"


def with_inbox(stream: DataFrame, inbox: str) -> DataFrame:
    """A source's stream and the files of the inbox.

    Among messages a file is a row without a partition, whose value is its path: columns of its own
    would be carried along with every message.
    """
    files = path_stream(stream.sparkSession, inbox, None, cleanSource="delete")
    columns = [
        F.col(PATH_COLUMNS[f.name]).cast(f.dataType).alias(f.name)
        if f.name in PATH_COLUMNS
        else F.lit(None).cast(f.dataType).alias(f.name)
        for f in stream.schema.fields
    ]
    return stream.union(files.select(*columns))


def inbox_messages(batch: DataFrame, settings: Mapping[str, str]) -> tuple[DataFrame | None, Files]:
    """The dead letters of a batch that come back, and the files they come from."""
    files = files_of(batch.where("partition IS NULL"))
    messages = messages_in(
        batch.sparkSession, files, settings, _dead_letters, posixpath.basename, INBOX
    )
    return messages, files


def _dead_letters(split: Split, settings: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """The dead letters in a file, with their places."""
    system, path = file_system(split.path, settings)
    file = pq.ParquetFile(path, filesystem=system)
    yield from file.iter_batches(rows_at_once(file))
