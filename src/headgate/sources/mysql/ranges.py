"""The events of a batch's ranges, read from the server by the worker that processes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from headgate.arrow.events import EVENT_SCHEMA, to_batch
from headgate.arrow.messages import KAFKA_SCHEMA
from headgate.core.event import Event
from headgate.mysql.connection import Connection, Start
from headgate.mysql.definitions import create_statement
from headgate.mysql.errors import DisconnectedError
from headgate.mysql.login import PAUSES
from headgate.mysql.reader import read_binlog
from headgate.mysql.snapshot import Chunk, read_chunk
from headgate.mysql.transactions import Wanted
from headgate.sources.mysql.capture import Capture
from headgate.sources.mysql.offsets import BINLOG, POS_BITS, STEPS, TOPIC, CaptureOffset
from headgate.sources.mysql.schema_files import read_tables
from headgate.sources.mysql.tables import TablePatterns

PLACED_SCHEMA = pa.schema([*KAFKA_SCHEMA, ("event", pa.struct(list(EVENT_SCHEMA)))])
"""Events with their places, as a pass reads them."""
MOST_BREAKS = 10
"""So often in a row the connection may break without an event."""


@dataclass(frozen=True)
class Range(InputPartition):
    """What a task reads."""

    kind: Literal["binlog", "tables", "chunk"]
    start: CaptureOffset
    end: CaptureOffset
    number: int = 0
    """The partition that its events are of."""


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
    files = values.filter(pc.equal(keys, "file"))
    places = values.filter(pc.equal(keys, "pos"))
    numbers = pc.cast(pc.replace_substring_regex(files, r"^.*\.", ""), pa.int64()).to_numpy(
        zero_copy_only=False
    )
    return pa.array((numbers << POS_BITS) + places.cast(pa.int64()).to_numpy(zero_copy_only=False))


class Given:
    """What was given of a range that is read again after a break.

    A range of the binlog has the same events again. A chunk lacks rows that were deleted meanwhile,
    so its rows are known by their keys.
    """

    def __init__(self, by_key: bool) -> None:
        self.rows = self._passed = 0
        self._by_key = by_key
        self._parts: list[list[pa.Array]] = []
        self._keys: set[tuple[str | None, ...]] = set()

    def again(self) -> None:
        """The range is read from its beginning."""
        self._passed = 0
        for part in self._parts:
            self._keys.update(zip(*(column.to_pylist() for column in part)))
        self._parts = []

    def new(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The events that were not given before; they count as given."""
        if not self._by_key:
            skipped = min(max(0, self.rows - self._passed), events.num_rows)
            self._passed += events.num_rows
            self.rows = max(self.rows, self._passed)
            return events.slice(skipped)
        columns = key_columns(events)
        if self._keys:
            keys = zip(*(column.to_pylist() for column in columns))
            wanted = pa.array([key not in self._keys for key in keys])
            events, columns = events.filter(wanted), [each.filter(wanted) for each in columns]
        self._parts.append(columns)
        self.rows += events.num_rows
        return events


def key_columns(events: pa.RecordBatch) -> list[pa.Array]:
    """The columns of the key of a table's rows, all of which have the same columns."""
    images = events.column("after")
    width = len(images.items) // events.num_rows
    names = images.keys[:width].to_pylist()
    return [
        images.items.take(pa.array(np.arange(names.index(name), len(images.items), width)))
        for name in events.column("key")[0].as_py()
    ]


def events_of_range(capture: Capture, part: Range) -> Iterator[pa.RecordBatch]:
    """The events of a range; while the server is away, it is asked again.

    Reading goes on with what was not given yet.
    """
    is_keyed = part.kind == "chunk" and part_is_keyed(part)
    given, vain = Given(is_keyed), 0
    while True:
        try:
            for events in read_range(capture, part):
                new = given.new(events)
                if new.num_rows:
                    vain = 0
                    yield new
            return
        except DisconnectedError:
            capture.login.retried(lambda: capture.login.connect().close())
            if vain == MOST_BREAKS or (part.kind == "chunk" and given.rows and not is_keyed):
                raise
            time.sleep(PAUSES[min(vain, len(PAUSES) - 1)])
            vain += 1
            given.again()


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
        known = read_tables(capture.storage, part.start.schema)
        yield from read_chunk(login, chunk, at, replica_id, known)
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


def definitions(connection: Connection, at: CaptureOffset) -> Iterator[pa.RecordBatch]:
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
