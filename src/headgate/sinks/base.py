"""What a sink is.

A sink is a frozen dataclass made from a URI, without any connection: `from_uri` reads it, `check`
connects for `headgate check`, `open` gives the writer of a running job. A class subclasses
`MessageSink` or `TableSink`, which have defaults for all that is optional, and is registered in
sinks/__init__.py or by the entry point group `headgate.sinks`.

    @dataclass(frozen=True)
    class JournalSink(MessageSink):
        name = "journal"
        summary = "values in the system's journal"
        promise = "at-least-once"

        @classmethod
        def from_uri(cls, address, format_options):
            return cls()

        def open(self, spark, target):
            return JournalWriter()          # with write(batch, steps, topics)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self

from headgate.core.batches import SourceRange
from headgate.core.connectors import Address, Connector, Place, Report
from headgate.core.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from headgate.landing.resolution import Resolved
    from headgate.landing.shape import TableShape
    from headgate.landing.table_state import TableState
    from headgate.landing.types import TypePreferences
    from headgate.schema.changes import SchemaChange, TableId

Promise = Literal["exactly-once", "at-least-once"]


@dataclass(frozen=True)
class Batch:
    """A batch to be written."""

    number: int
    source: SourceRange
    """What it holds of its source."""
    still_ours: Callable[[], None]
    """Refuses to go on where another instance of the job has taken over."""


@dataclass(frozen=True)
class Target:
    """What a sink knows of its job."""

    job_id: str
    name: str
    """The URI without its secrets, for errors."""
    options: Mapping[str, Any]
    """The encoder's options, `topic` and `partition_num` among them."""
    settings: Mapping[str, str]
    """Spark's."""


class Topics(Protocol):
    """The topics of a sink, as far as they are known."""

    known: dict[str, int]
    """Over how many partitions of a topic rows are spread."""
    refused: dict[str, str]
    """Names that cannot be written to, and why."""

    def ensure(self, names: Iterable[str]) -> None:
        """Look at topics, each once, and create those that do not exist."""


class Writer(Protocol):
    """Writes the batches of a running job, on the driver."""

    topics: Topics | None = None

    def verify(self, batch: Batch) -> None:
        """Refuse a batch that does not follow what was written before; called for all sinks first.

        It must change nothing: another sink may refuse the batch.
        """
        return None

    def write(self, batch: Batch, steps: Sequence[DataFrame], topics: Iterable[str]) -> None:
        """Write the messages of a batch, step by step: one is durable before the next begins.

        A step has the columns key, value, partition, topic and headers; that of a sink with
        `takes_packed_rows` has packed rows. After a crash the same batch is written again; what
        that means is the sink's promise.
        """


class Sink(Connector, Protocol):
    """What all sinks have."""

    promise: ClassVar[Promise]

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        """The sink of a URI; UsageError where it is wrong.

        `format_options` are the parameters of the format; a sink may add to them.
        """

    @property
    def jars(self) -> tuple[str, ...]:
        """What Spark needs: names of spark/jars.py, or Maven coordinates."""
        return ()

    def place(self, topic: str | None) -> Place | None:
        """What is written to: a source that reads it would read for ever."""
        return None

    def check(self, spark: SparkSession, target: Target) -> Report:
        """Connect, and say what there is; UsageError where something is missing."""
        return Report()


class MessageSink(Sink, Protocol):
    """A sink of messages, encoded in a format."""

    takes: ClassVar[Literal["messages"]] = "messages"
    uses_topics: ClassVar[bool] = False
    """Whether each message goes to a topic, and one without a topic cannot be written."""
    takes_heartbeats: ClassVar[bool] = True
    takes_tombstones: ClassVar[bool] = True
    """Whether messages without a value are written; where not, they are counted as a loss."""
    takes_packed_rows: ClassVar[bool] = False
    """Whether steps are packed rows, many messages each, which Python workers take apart
    (row_packing.unpack): faster where Python writes them. Each message has its table's name."""
    uses_row_keys: ClassVar[bool] = False
    """Whether a row's message has the row's key as its key, where the format gives it none."""
    passed_on: ClassVar[frozenset[str]] = frozenset()
    """Options of its own that the format gets too, if it has them."""
    encoder_defaults: ClassVar[Mapping[str, Any]] = {}
    """Options of the encoder unless the job sets them, if the format has them."""

    @property
    def text_only(self) -> str | None:
        """What of the sink takes text only, and no binary format; e.g. "a console"."""
        return None

    @property
    def any_format(self) -> bool:
        """Whether it takes formats whose producers write to Kafka only (`Encoding.kafka_only`)."""
        return True

    @property
    def max_bytes(self) -> int | None:
        """The largest message, key and value and headers together."""
        return None

    @property
    def max_header_bytes(self) -> int | None:
        """The largest key and headers together; headers count as their text (to_text)."""
        return None

    def for_workers(self) -> Self:
        """The sink as workers get it: without secrets."""
        return self

    def open(self, spark: SparkSession, target: Target) -> Writer:
        """The writer of a job that starts."""


class Statement(NamedTuple):
    """A DDL statement, and what it does."""

    changes: Sequence[SchemaChange]
    """In order; of tables under the names that the job gives them."""
    text: str
    position: str
    """Its place in the source's order, as `_position` of changes."""
    shapes: Mapping[TableId, TableShape]
    """The tables that it names as they are after it, as far as they are known. A column that is not
    there is one that the job leaves out."""
    time: datetime | None = None
    """When it ran."""
    table: TableId | None = None
    """The table that its event names; the statement may name others."""
    database: str | None = None
    is_snapshot: bool = False
    """Whether it describes a table of a snapshot, and nobody ran it."""
    left_out: frozenset[TableId] = frozenset()
    """Tables that it names and the job does not land."""
    resolved: Resolved | None = None
    """The point of the source's log at which it is, for sinks that wait for watermarks."""


class TableMerge(NamedTuple):
    """What a merge did to one table."""

    upserted: int = 0
    deleted: int = 0
    ignored: int = 0
    """Changes that were older than what was landed, or than another of the same row."""


class MergeReport(NamedTuple):
    """What a merge did."""

    tables: Mapping[TableId, TableMerge]


class TableWriter(Protocol):
    """Lands the batches of a running job, on the driver.

    After a crash the same batch comes again, with the same steps: what was landed before is left
    as it is.
    """

    def verify(self, batch: Batch) -> None:
        """Refuse a batch that does not follow what was landed before; called for all sinks first.

        It must change nothing: another sink may refuse the batch.
        """
        return None

    def merge(
        self, batch: Batch, step: int, changes: DataFrame, shapes: Sequence[TableShape]
    ) -> MergeReport:
        """Merge the changes of a step into all of their tables.

        A row of `changes` has packed changes of one table (landing/changes.py) in `changes`, how
        many they are in `count`, and their table as JSON in `table`. A table may have many rows.
        `shapes` has every table once.
        """

    def apply(self, batch: Batch, step: int, statement: Statement) -> None:
        """Apply the statement that follows the changes of a step."""

    def finish(self, batch: Batch, resolved: Resolved | None) -> MergeReport | None:
        """The batch is complete; up to `resolved` all changes of the source are known.

        What was merged and not reported yet is the result.
        """
        return None

    def idle(self, batch: Batch) -> None:
        """Do what is due while no batch is under way; `batch` is the last one that is complete."""
        return None


class TableSink(Sink, Protocol):
    """A sink of tables that follow the source's: rows are merged, schema changes applied."""

    takes: ClassVar[Literal["tables"]] = "tables"

    @property
    def types(self) -> TypePreferences:
        """The lake types that columns get, where there is a choice."""

    @property
    def on_misfit(self) -> Literal["reject", "null"]:
        """What happens to a row with a value that does not fit its column."""
        return "reject"

    @property
    def waits_for_watermarks(self) -> bool:
        """Whether tables only have states that the source had, as watermarks or the ends of
        transactions tell them."""
        return False

    @property
    def takes_times(self) -> bool:
        """Whether changes have the columns `_event_time` and `_commit_ts`."""
        return False

    @property
    def may_splice(self) -> bool:
        """Whether rows may be spliced: the fast path."""
        return True

    def for_workers(self) -> Self:
        """The sink as workers get it: without secrets."""
        return self

    def tables(self, settings: Mapping[str, str]) -> Sequence[TableState]:
        """The tables that jobs have landed; `settings` are Spark's."""
        return ()

    def resume(self, settings: Mapping[str, str], table: TableId) -> None:
        """Let a parked table go on with the job's next batch."""

    def read(self, spark: SparkSession, settings: Mapping[str, str]) -> DataFrame:
        """The landed table whose URI this is, with the changes that wait to be merged."""
        raise UsageError(f"tables of {self.name} are read with its own connector")

    def open(self, spark: SparkSession, target: Target) -> TableWriter:
        """The writer of a job that starts."""
