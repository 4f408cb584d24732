"""The console: values as lines on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from headgate.core.connectors import Address
from headgate.sinks.base import Batch, MessageSink, Target, Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ConsoleSink(MessageSink):
    """Prints messages."""

    name = "console"
    summary = "values as lines on standard output"
    promise = "at-least-once"

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        """The console."""
        return cls()

    @property
    def text_only(self) -> str | None:
        """A console takes text."""
        return "a console"

    def open(self, spark: SparkSession, target: Target) -> Writer:
        """The writer of a job that starts."""
        return ConsoleWriter()


class ConsoleWriter(Writer):
    """Prints batches."""

    def write(self, batch: Batch, steps: Sequence[DataFrame], topics: Iterable[str]) -> None:
        """Print a batch."""
        batch.still_ours()
        out: Any = sys.stdout.buffer
        for step in steps:
            for row in step.select("value").toLocalIterator():
                out.write((b"null" if row.value is None else bytes(row.value)) + b"\n")
        out.flush()
