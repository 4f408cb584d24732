"""Files: a directory on a file system that Spark reaches, with a folder per batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from headgate.core.connectors import Address
from headgate.core.errors import unknown_name
from headgate.core.options import build, option
from headgate.sinks.base import MessageSink, Target, Writer
from headgate.sinks.directory import DirectorySink
from headgate.spark.filesystem import directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS = ("lines", "parquet")


def _form(text: str) -> str:
    if text not in FORMS:
        raise unknown_name("form", text, FORMS)
    return text


@dataclass(frozen=True)
class FileSinkOptions:
    """Parameters of a file sink."""

    as_: str = option(
        "parquet",
        "files of text, one value per line, or Parquet with key, value, topic, partition, headers",
        FORMS,
        read=_form,
    )


@dataclass(frozen=True)
class FileSink(DirectorySink, MessageSink):
    """Writes each batch as a folder that appears as a whole."""

    name = "file"
    summary = "a directory of Parquet or text files, local or on S3, HDFS, GCS or Azure"
    promise = "exactly-once"
    authority = "path"
    takes_heartbeats = False
    Options = FileSinkOptions

    path: str = field(repr=False)
    lines: bool = False

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        """The directory of a URI."""
        options = build(FileSinkOptions, address.params)
        return cls(directory(address.path, address.base), options.as_ == "lines")

    @property
    def text_only(self) -> str | None:
        """A file of lines takes text."""
        return "as=lines" if self.lines else None

    def open(self, spark: SparkSession, target: Target) -> Writer:
        """The writer of a job that starts."""
        from headgate.sinks.files.writer import FileWriter, Owner
        from headgate.spark.storage import Storage

        storage = Storage(self.path, target.settings, private=False)
        return FileWriter(storage, Owner(target.job_id), self.lines)
