"""Images of one table as typed Arrow columns; a value that does not fit its type is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from headgate.arrow.casts import cast
from headgate.arrow.events import TEXT_MAP, TIME, text_maps
from headgate.codec.sequence import arrival_sequence, arrival_text, ordered_text, sequence
from headgate.core.event import Event, Image

CHANGE_FIELDS = [
    ("_misfits", TEXT_MAP),
    ("_change_type", pa.string()),
    ("_commit_version", pa.int64()),
    ("_commit_timestamp", TIME),
    ("_topic", pa.string()),
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
    ("_sequence", pa.string()),
]
Cast = Callable[[str, pa.Array, pa.DataType], tuple[pa.Array, dict[int, str]]]
"""(a column's name, its canonical texts, its type) to values, and the texts that do not fit."""


class Table(NamedTuple):
    """Which table's rows are wanted; a database of None means any.

    Of a source with schemas, `database` is the schema, or `name` is `schema.table`: rows of two
    schemas are never mixed up.
    """

    database: str | None
    name: str

    def holds(self, event: Event) -> bool:
        """Whether an event is of that table.

        >>> event = Event("row", "insert", "shop", "orders", schema="public")
        >>> Table("public", "orders").holds(event), Table("shop", "orders").holds(event)
        (True, False)
        """
        if self.database is None:
            return event.table == self.name
        if event.schema is None:
            return event.table == self.name and event.database == self.database
        if event.schema == self.database:
            return event.table == self.name
        return event.database == self.database and f"{event.schema}.{event.table}" == self.name


def table_of(name: str) -> Table:
    """The table of a name: `database.table`, or `table` of any database.

    >>> table_of("shop.orders")
    Table(database='shop', name='orders')
    """
    database, dot, table = name.partition(".")
    return Table(database, table) if dot else Table(None, name)


class Source(NamedTuple):
    """Where events came from, event by event; None where that is not known."""

    topics: Sequence[str | None]
    partitions: Sequence[int | None]
    offsets: Sequence[int | None]
    numbers: Sequence[int]
    """The place of each event in its message."""


def source_of(messages: pa.RecordBatch, counts: Sequence[int]) -> Source:
    """Where the events of messages came from; `counts` is how many each message gave.

    >>> source_of(pa.record_batch({"offset": [7, 8]}), [1, 2]).offsets
    [7, 8, 8]
    """
    names = messages.schema.names
    several = len(counts) != sum(counts)
    rows = [row for row, count in enumerate(counts) for _ in range(count)] if several else None

    def column(name: str) -> Sequence[Any]:
        if name not in names:
            return [None] * sum(counts)
        values = messages.column(name).to_pylist()
        return values if rows is None else [values[row] for row in rows]

    numbers = [n for count in counts for n in range(count)] if several else [0] * len(counts)
    return Source(column("topic"), column("partition"), column("offset"), numbers)


class Changes(NamedTuple):
    """Images of a table's rows and what happened to them, column by column."""

    images: list[Image]
    change_types: list[str]
    commits: list[int | None]
    times: list[int | None]
    sequences: list[str | None]
    owners: list[int]
    """The number of the event that each image is of."""


def changes(events: Sequence[Event], table: Table, source: Source) -> Changes:
    """The images of a table's row events: one for an insert or a delete, two for an update."""
    result = Changes([], [], [], [], [], [])
    images, change_types, commits, times, sequences, owners = result
    for number, e in enumerate(events):
        if e.kind != "row" or not table.holds(e):
            continue
        first = "delete" if e.op == "delete" else "update_preimage" if e.op == "update" else None
        place = place_of(e, source, number)
        if first and e.before is not None:
            images.append(e.before)
            change_types.append(first)
            commits.append(e.commit_ts)
            times.append(e.event_time)
            sequences.append(place and place + "0")
            owners.append(number)
        if first != "delete" and e.after is not None:
            images.append(e.after)
            change_types.append("update_postimage" if first else "insert")
            commits.append(e.commit_ts)
            times.append(e.event_time)
            sequences.append(place and place + "1")
            owners.append(number)
    return result


def place_of(event: Event, source: Source, number: int) -> str | None:
    """A change's place in the source's order, or else in its partition, as comparable text."""
    place = sequence(event)
    if place is None:
        offset = source.offsets[number]
        if offset is None:
            return None
        partition = f"{source.topics[number]}-{source.partitions[number]}"
        arrival = arrival_text(offset, source.numbers[number])
        place = arrival_sequence(partition, arrival, event.op == "snapshot")
    return ordered_text(place)


def typed_schema(fields: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
    """The schema of typed rows: the table's columns, then those of the change."""
    return pa.schema([*fields, *CHANGE_FIELDS])


def cast_texts(name: str, texts: pa.Array, type_: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """The cast of columns of which nothing but the type is known."""
    return cast(texts, type_)


def typed_changes(
    rows: Changes, source: Source, schema: pa.Schema, cast_column: Cast = cast_texts
) -> pa.RecordBatch:
    """Changes as a batch of typed rows; a value that does not fit its column is in `_misfits`."""
    columns: list[pa.Array] = []
    misfits: dict[int, Image] = {}
    for field in list(schema)[: -len(CHANGE_FIELDS)]:
        texts = pa.array([image.get(field.name) for image in rows.images], pa.string())
        column, wrong = cast_column(field.name, texts, field.type)
        columns.append(column)
        for row, text in wrong.items():
            misfits.setdefault(row, {})[field.name] = text
    count = len(rows.images)
    reported = [misfits.get(row) for row in range(count)] if misfits else [None] * count
    columns += [
        text_maps(reported),
        pa.array(rows.change_types, pa.string()),
        pa.array(rows.commits, pa.int64()),
        pa.array(rows.times, TIME),
        pa.array([source.topics[n] for n in rows.owners], pa.string()),
        pa.array([source.partitions[n] for n in rows.owners], pa.int32()),
        pa.array([source.offsets[n] for n in rows.owners], pa.int64()),
        pa.array(rows.sequences, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
