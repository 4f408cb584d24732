"""What a source is.

A source is a frozen dataclass made from a URI, without any connection: `from_uri` reads it, `check`
and `sample` connect for `headgate check`, `open` gives the reader of a running job. A class
subclasses `Source`, which has defaults for all that is optional, and is registered in
sources/__init__.py or by the entry point group `headgate.sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import msgspec
import pyarrow as pa

from headgate.arrow.messages import Partition
from headgate.core.batches import SourceRange
from headgate.core.connectors import Address, Connector, Place, Report
from headgate.core.event import Event
from headgate.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.fastpath.compilation import CompiledAhead

Message = tuple[bytes | None, bytes | None, str | None]
"""Key, value and topic."""
Files = list[tuple[str, str]]
"""Paths of files, each with its time of modification."""


class Deferred(NamedTuple):
    """Rows of which a worker makes messages where it needs them."""

    rows: DataFrame
    read: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    """Gives messages in the columns of KAFKA_SCHEMA."""


@dataclass(frozen=True)
class Origin:
    """What a source knows of its job."""

    name: str
    """The URI without its secrets, for errors."""
    options: Mapping[str, Any]
    """The decoder's options."""
    settings: Mapping[str, str]
    """Spark's."""
    state: Storage
    """Where a source may keep files of its own."""
    checkpoint: Storage
    """Where Spark keeps the progress of the query."""


class Reader(Protocol):
    """Reads the source of a running job, on the driver."""

    def stream(self, limit: int | None) -> DataFrame:
        """The stream that Spark cuts into batches of at most about `limit` messages.

        It has the columns of Spark's Kafka source, and `partition` is not null. A row is a message
        or a place where messages are; `messages` turns either into messages.
        """

    def messages(self, batch: DataFrame) -> tuple[DataFrame | None, Files]:
        """The messages of a batch, each partition in order; and the files they come from."""

    def deferred(self, batch: DataFrame) -> Deferred | None:
        """The same messages for a worker that reads them itself; None where Spark has to.

        They are spared the way from one worker through Spark to the next.
        """
        return None

    def ends(self, number: int) -> dict[Partition, int]:
        """Where a batch ends in every partition, by Spark's progress; nothing without offsets."""
        return {}

    def verify(self, range: SourceRange) -> None:
        """Refuse a batch of a source that is not the one that was read before."""
        return None

    def lag(self, number: int) -> int | None:
        """How many messages wait behind a batch; None where that is not known."""
        return None

    def backlog(self, number: int) -> str | None:
        """What there is to read behind a batch, for people who wait; None where that is not known.

        E.g. `2 partitions, 5,002 messages to read`.
        """
        return None

    def unread(self, number: int) -> bool | None:
        """Whether anything that was there when the job started is behind a batch.

        None where Spark itself can be asked to stop at what is available now.
        """
        return None

    def close(self) -> None:
        """Close what is open."""
        return None


class Source(Connector, Protocol):
    """A source of messages in some format, or of events."""

    gives: ClassVar[Literal["messages", "events"]] = "messages"
    ends: ClassVar[bool] = False
    """Whether it comes to an end; a job stops there."""
    samples_without_spark: ClassVar[bool] = False
    """Whether `check` and `sample` make no use of the session; `headgate init` starts none then."""
    redelivers: ClassVar[bool] = False
    """Whether a message can come again at the same place, as lines of a file that is replaced."""

    @classmethod
    def from_uri(cls, address: Address) -> Self:
        """The source of a URI; UsageError where it is wrong."""

    @property
    def jars(self) -> tuple[str, ...]:
        """What Spark needs: names of spark/jars.py, or Maven coordinates."""
        return ()

    def places(self) -> Sequence[Place]:
        """What is read: a sink that writes there would be read for ever."""
        return ()

    def for_workers(self) -> Self:
        """The source as workers get it: without secrets."""
        return self

    def check(self, spark: SparkSession, settings: Mapping[str, str]) -> Report:
        """Connect, and say what there is to read; UsageError where something is missing."""
        return Report()

    def sample(
        self, spark: SparkSession, settings: Mapping[str, str], limit: int
    ) -> Iterable[Message]:
        """The first messages."""
        return ()

    def sample_events(self, limit: int) -> Iterable[Event]:
        """The first events, of a source that gives events."""
        return ()

    def database(self) -> tuple[str, Sequence[str]] | None:
        """The URI of the database that is read, secrets included, and the tables, as patterns.

        None where messages are read.
        """
        return None

    def compiled(self) -> CompiledAhead | None:
        """What is compiled for reading; a job has it done before its first batch."""
        return None

    def open(self, spark: SparkSession, origin: Origin) -> Reader:
        """The reader of a job that starts."""


def source_range(reader: Reader, number: int, files: Files) -> SourceRange:
    """What of its source a batch holds; `files` are those that its messages come from."""
    before = reader.ends(number - 1)
    offsets: dict[str, dict[str, tuple[int | None, int]]] = {}
    for partition, end in sorted(reader.ends(number).items()):
        start = before.get(partition)
        if start != end:
            offsets.setdefault(str(partition[0]), {})[str(partition[1])] = (start, end)
    digest = blake2b(msgspec.json.encode(files), digest_size=16).hexdigest() if files else None
    return SourceRange(offsets, digest)
