"""Standard input: kept in a file first, so that no message is lost, and then read from there."""

from __future__ import annotations

import shutil
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Self

from headgate.core.connectors import Address, Report
from headgate.core.options import build
from headgate.sources.base import Origin, Reader, Source
from headgate.sources.starting import FromBeginning
from headgate.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "stdin"


@dataclass(frozen=True)
class StdinSource(Source):
    """Reads standard input to its end."""

    name = "stdin"
    summary = "standard input; the job stops at its end"
    ends = True
    redelivers = True
    Options = FromBeginning

    @classmethod
    def from_uri(cls, address: Address) -> Self:
        """Standard input."""
        build(FromBeginning, address.params)
        return cls()

    def check(self, spark: SparkSession, settings: Mapping[str, str]) -> Report:
        """Nothing is read before the job runs."""
        return Report({"standard input": None})

    def open(self, spark: SparkSession, origin: Origin) -> Reader:
        """The reader of a job that starts: of the files that standard input was copied to."""
        from headgate.sources.files.reader import FileReader

        spool(origin.state, sys.stdin.buffer)
        return FileReader(spark, origin.state.for_spark(FOLDER), origin)


def spool(state: Storage, stream: IO[bytes]) -> None:
    """Copy a stream into a file that appears as a whole."""
    state.make_folder(FOLDER)
    staged, name = f"{FOLDER}/_{uuid.uuid4().hex}", f"{FOLDER}/{time.time_ns()}.jsonl"
    with state.naming("write", staged), state.create(staged) as file:
        shutil.copyfileobj(stream, file)
    state.move(staged, name)
