"""A database's changes as a data source of Spark's.

Spark asks a process of its own where the next batch ends (`latestOffset`). A batch is a range of
the binlog, or the definitions of tables, or chunks of their rows at the position where the binlog
was left: never both, so that what a batch has comes behind all that the batches before have.
What Spark is given are ranges; the workers that process them read from the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.events import EVENT_SCHEMA, to_batch
from headgate.arrow.messages import KAFKA_SCHEMA
from headgate.core.event import Event
from headgate.mysql.connection import Start
from headgate.mysql.definitions import create_statement, current_table
from headgate.mysql.errors import DisconnectedError
from headgate.mysql.login import Login
from headgate.mysql.reader import read_binlog
from headgate.mysql.snapshot import Chunk, next_bound, read_chunk
from headgate.mysql.transactions import Wanted
from headgate.sources.mysql.binlog_scan import BinlogScan
from headgate.sources.mysql.offsets import (
    BINLOG,
    POS_BITS,
    STEPS,
    TOPIC,
    CaptureOffset,
    PendingTable,
    PlannedChunk,
    offset_of,
)
from headgate.sources.mysql.schema_files import read_tables, write_tables
from headgate.sources.mysql.tables import TablePatterns
from headgate.spark.storage import Storage

NAME = "headgate-mysql"
PLACED_SCHEMA = pa.schema([*KAFKA_SCHEMA, ("event", pa.struct(list(EVENT_SCHEMA)))])
"""Events with their places, as a pass reads them."""


@dataclass(frozen=True)
class Capture:
    """What the processes of Spark need to know of a source."""

    login: Login = field(repr=False)
    patterns: TablePatterns
    replica_id: int
    """For looking ahead; reading has the next one."""
    state: str
    """Where the job's state is."""
    settings: dict[str, str] = field(repr=False)
    chunk_rows: int
    parallel_chunks: int
    batch_bytes: int
    heartbeat: float
    start: CaptureOffset
    planned: CaptureOffset
    """Where the last batch ends that Spark had planned when the query started."""

    @property
    def storage(self) -> Storage:
        """The job's state."""
        return Storage(self.state, self.settings)


@dataclass(frozen=True)
class Range(InputPartition):
    """What a task reads."""

    kind: Literal["binlog", "tables", "chunk"]
    start: CaptureOffset
    end: CaptureOffset
    number: int = 0
    """The partition that its events are of."""


def data_source(capture: Capture) -> type[DataSource]:
    """The data source of a capture, to be registered with a session.

    It is made here, because Spark sends a class that it cannot import with all that it refers to.
    """

    class MySQLDataSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> Any:
            return from_arrow_schema(KAFKA_SCHEMA)

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return RangeReader(capture)

    return MySQLDataSource


class Planner:
    """Decides where batches end."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.planned = capture.planned
        self.scan = BinlogScan(capture.login, capture.replica_id, capture.heartbeat)
        self.is_open = False

    def next(self) -> CaptureOffset:
        """Where the next batch ends: where the last one does, if there is nothing new."""
        return self.capture.login.retried(self._next)

    def _next(self) -> CaptureOffset:
        planned = self.planned
        is_waiting = bool(planned.new or planned.pending)
        if is_waiting and not planned.is_snapshot:
            return self._snapshot(planned)
        try:
            offset = self._binlog(planned)
        except DisconnectedError:
            self.is_open = False
            raise
        return self._snapshot(planned) if offset == planned and is_waiting else offset

    def _binlog(self, planned: CaptureOffset) -> CaptureOffset:
        scan, storage = self.scan, self.capture.storage
        if not self.is_open:
            known = read_tables(storage, planned.schema)
            with self.capture.login.connected() as connection:
                start = planned.start(connection.facts.server_id)
            scan.open(start, known)
            self.is_open = True
        end = scan.advance(self.capture.batch_bytes)
        if (end.file, end.pos) == (planned.file, planned.pos) or not end.file:
            return planned
        schema = planned.schema
        if scan.had_ddl:
            schema = write_tables(storage, scan.assembler.known, end)
        assert scan.connection is not None
        return replace(
            planned, file=end.file, pos=end.pos, gtids=end.gtids, schema=schema, chunks=[],
            defined=[], server_id=scan.connection.facts.server_id,
        )  # fmt: skip

    def _snapshot(self, planned: CaptureOffset) -> CaptureOffset:
        """Define tables; or read some more chunks."""
        first = planned.first_chunk + len(planned.chunks)
        with self.capture.login.connected() as connection:
            if planned.new:
                tables = [(d, t, current_table(connection, d, t)) for d, t in planned.new]
                pending = [
                    PendingTable(d, t, bool(known[0].key)) for d, t, known in tables if known
                ]
                return replace(
                    planned, new=[], defined=[[each.database, each.table] for each in pending],
                    pending=[*planned.pending, *pending], chunks=[], step=planned.step + 1,
                    first_chunk=first,
                )  # fmt: skip
            chunks: list[PlannedChunk] = []
            pending = list(planned.pending)
            while pending and len(chunks) < self.capture.parallel_chunks:
                table = pending.pop(0)
                known = current_table(connection, table.database, table.table)
                if known is None:
                    continue
                bound = None
                if table.keyed:
                    columns = known[0].columns
                    key = [(name, columns[name].mysql) for name in known[0].key]
                    bound = next_bound(
                        connection, table.database, table.table, key, table.after,
                        self.capture.chunk_rows,
                    )  # fmt: skip
                chunks.append(PlannedChunk(table.database, table.table, table.after, bound))
                if bound is not None:
                    pending.insert(0, replace(table, after=bound))
        return replace(planned, pending=pending, chunks=chunks, defined=[],
                       step=planned.step + 1, first_chunk=first)  # fmt: skip


class RangeReader(DataSourceStreamReader):
    """Plans batches; what it gives Spark are ranges."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.planner: Planner | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Where the first batch begins: the same when it is planned again."""
        return builtins_of(self.capture.start)

    def latestOffset(self) -> dict[str, Any]:
        """Where the next batch ends."""
        if self.planner is None:
            self.planner = Planner(self.capture)
        return builtins_of(self.planner.next())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """What a batch reads."""
        if self.planner is not None:
            self.planner.planned = offset_of(end)
        return ranges(offset_of(start), offset_of(end))

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """A range as a row."""
        row = {
            "topic": TOPIC,
            "partition": partition.number,
            "offset": 0,
            "value": msgspec.json.encode(partition),
        }
        yield pa.RecordBatch.from_pylist([row], KAFKA_SCHEMA)


def builtins_of(offset: CaptureOffset) -> dict[str, Any]:
    """An offset for Spark."""
    made: dict[str, Any] = msgspec.to_builtins(offset)
    return made


def ranges(start: CaptureOffset, end: CaptureOffset) -> list[Range]:
    """What is between two offsets."""
    made = []
    if (start.file, start.pos) != (end.file, end.pos):
        made.append(Range("binlog", start, end, BINLOG))
    elif end.defined:
        made.append(Range("tables", start, end, STEPS))
    made += [Range("chunk", start, end, STEPS + 1 + n) for n in range(len(end.chunks))]
    return made


def range_reader(
    capture: Capture,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What makes events of ranges, in a worker."""

    def read(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            for data, number in zip(batch["value"].to_pylist(), batch["partition"].to_pylist()):
                if number is not None:  # else it is the path of a dead letter
                    yield from placed_events(capture, msgspec.json.decode(data, type=Range))

    return read


def placed_events(capture: Capture, part: Range) -> Iterator[pa.RecordBatch]:
    """The events of a range, with their places."""
    first = part.end.step << POS_BITS
    if part.kind == "chunk":
        number = part.number - STEPS - 1
        first = (part.end.first_chunk + number) << POS_BITS
    for events in events_of_range(capture, part):
        if part.kind == "binlog":
            offsets = binlog_offsets(events)
        else:
            offsets = pa.array(np.arange(first, first + events.num_rows))
            first += events.num_rows
        rows = events.num_rows
        columns: dict[str, Any] = {
            "topic": pa.repeat(pa.scalar(TOPIC), rows),
            "partition": pa.repeat(pa.scalar(part.number, pa.int32()), rows),
            "offset": offsets,
            "event": pa.StructArray.from_arrays(events.columns, fields=list(EVENT_SCHEMA)),
        }
        yield pa.RecordBatch.from_arrays(
            [columns.get(each.name, pa.nulls(rows, each.type)) for each in PLACED_SCHEMA],
            schema=PLACED_SCHEMA,
        )


def binlog_offsets(events: pa.RecordBatch) -> pa.Array:
    """The places of events in the binlog, as numbers; rows of an event share one."""
    positions = events.column("position")
    keys, values = positions.keys, positions.items
    files = values.filter(pa.compute.equal(keys, "file"))
    places = values.filter(pa.compute.equal(keys, "pos"))
    numbers = pa.compute.cast(
        pa.compute.replace_substring_regex(files, r"^.*\.", ""), pa.int64()
    ).to_numpy(zero_copy_only=False)
    return pa.array((numbers << POS_BITS) + places.cast(pa.int64()).to_numpy(zero_copy_only=False))


def events_of_range(capture: Capture, part: Range) -> Iterator[pa.RecordBatch]:
    """The events of a range; while the server is away, it is asked again.

    Reading goes on with the first event that was not given yet: a range always has the same events.
    """
    given = 0
    while True:
        passed = 0
        try:
            for events in read_range(capture, part):
                skipped = min(max(0, given - passed), events.num_rows)
                passed += events.num_rows
                if skipped < events.num_rows:
                    yield events.slice(skipped)
                given = max(given, passed)
            return
        except DisconnectedError:
            capture.login.retried(lambda: capture.login.connect().close())
            if part.kind == "chunk" and given and not part_is_keyed(part):
                raise


def part_is_keyed(part: Range) -> bool:
    """Whether the rows of a chunk have an order."""
    chunk = part.end.chunks[part.number - STEPS - 1]
    table = (chunk.database, chunk.table)
    return all(each.keyed for each in part.start.pending if (each.database, each.table) == table)


def read_range(capture: Capture, part: Range) -> Iterator[pa.RecordBatch]:
    """The events of a range."""
    login, replica_id = capture.login, capture.replica_id + 1 + part.number
    if part.kind == "chunk":
        planned = part.end.chunks[part.number - STEPS - 1]
        chunk = Chunk(planned.database, planned.table, planned.after, planned.until)
        with login.connected() as connection:
            at = part.end.start(connection.facts.server_id)
        yield from read_chunk(login, chunk, at, replica_id)
        return
    with login.connected() as connection:
        if part.kind == "tables":
            yield from definitions(connection, part.end)
            return
        own = connection.facts.server_id
        start, until = part.start.start(own), part.end.start(own)
        if start.by_gtid and until.file:  # the server was another one when the batch began
            until = Start(gtids=until.gtids)
        known = read_tables(capture.storage, part.start.schema)
        batches = read_binlog(
            connection,
            start,
            replica_id,
            known,
            wanted_rows(capture.patterns, part.start),
            until=until,
            wanted_ddl=wanted_ddl(capture.patterns, part.start),
        )
        for batch in batches:
            yield from batch.events


def wanted_ddl(patterns: TablePatterns, at: CaptureOffset) -> Wanted:
    """Whether the DDL of a table is read: not before the table is defined."""
    later = {(each[0], each[1]) for each in at.new}
    return lambda database, table: (
        (database, table) not in later and patterns.match(database, table)
    )


def wanted_rows(patterns: TablePatterns, at: CaptureOffset) -> Wanted:
    """Whether the changes of a table are read.

    Not before some of its rows have been, for the rest has them; of a table without a key, not
    before all have been.
    """
    is_defined = wanted_ddl(patterns, at)
    later = {
        (each.database, each.table)
        for each in at.pending
        if each.after is None  # so it stays without a key
    }
    return lambda database, table: (database, table) not in later and is_defined(database, table)


def definitions(connection: Any, at: CaptureOffset) -> Iterator[pa.RecordBatch]:
    """The tables that are captured from now on, as statements."""
    events = []
    for database, table in at.defined:
        statement = create_statement(connection, database, table)
        if statement is not None:
            position = {"file": at.file, "pos": str(at.pos), "row": "0"}
            position["server_id"] = str(at.server_id)
            events.append(Event("ddl", "create", database, table, ddl=statement, position=position))
    if events:
        yield to_batch(events)
