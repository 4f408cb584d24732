"""Files: a directory on a file system that Spark reaches, read as files appear in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from headgate.core.connectors import Address, Directory, Place, Report
from headgate.core.options import build
from headgate.core.reachability import check_readable
from headgate.sources.base import Message, Origin, Reader, Source
from headgate.sources.message_files import expand, read, splits
from headgate.sources.starting import FromBeginning
from headgate.spark.filesystem import directory, is_remote, jars_for, local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class FileSource(Source):
    """Reads the messages in files, in the order in which the files appear."""

    name = "file"
    summary = "a directory of JSON lines, Parquet and other files, local or on S3, HDFS, GCS, Azure"
    samples_without_spark = True
    authority = "path"
    redelivers = True
    Options = FromBeginning

    path: str = field(repr=False)

    @classmethod
    def from_uri(cls, address: Address) -> Self:
        """The directory of a URI."""
        build(FromBeginning, address.params)
        return cls(directory(address.path, address.base))

    @property
    def jars(self) -> tuple[str, ...]:
        """Those of the file system."""
        return jars_for(self.path)

    def places(self) -> Sequence[Place]:
        """The directory."""
        return [Directory(self.path)]

    def reachable(self) -> None:
        """Whether a local directory is there."""
        if not is_remote(self.path):
            check_readable(local(self.path))

    def check(self, spark: SparkSession, settings: Mapping[str, str]) -> Report:
        """How many files there are."""
        return Report({"files": len(expand([self.path], settings))})

    def sample(
        self, spark: SparkSession, settings: Mapping[str, str], limit: int
    ) -> Iterable[Message]:
        """The messages of the first files."""
        files = expand([self.path], settings)
        parts = (split for file in files for split in splits(file, settings=settings))
        messages = (m for part in parts for m in _messages(read(part, settings=settings)))
        return islice(messages, limit)

    def open(self, spark: SparkSession, origin: Origin) -> Reader:
        """The reader of a job that starts."""
        from headgate.sources.files.reader import FileReader

        return FileReader(spark, self.path, origin)


def _messages(batches: Any) -> Iterator[Message]:
    for batch in batches:
        for row in batch.to_pylist():
            yield row.get("key"), row.get("value"), row.get("topic")
