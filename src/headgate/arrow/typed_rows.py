"""Images of one table as typed Arrow columns; a value that does not fit its type is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.casts import cast
from headgate.arrow.events import TEXT_MAP, TIME, text_maps
from headgate.codec.sequence import arrival_sequence, arrival_text, ordered_text, sequence
from headgate.core.event import Event, Image

MESSAGE_FIELDS = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
CHANGE_FIELDS = [
    ("_misfits", TEXT_MAP),
    ("_change_type", pa.string()),
    ("_commit_version", pa.int64()),
    ("_commit_timestamp", TIME),
    *((f"_{name}", type_) for name, type_ in MESSAGE_FIELDS),
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
    """Where events came from."""

    messages: pa.RecordBatch
    """`topic`, `partition` and `offset`, as far as they are known."""
    rows: Sequence[int] | None
    """Of each event, the row of its message; None where each message gave one."""
    numbers: Sequence[int] | None
    """The place of each event in its message; None where each message gave one."""

    def columns(self, events: pa.Array) -> list[pa.Array]:
        """`topic`, `partition` and `offset` of some events' messages."""
        rows = events if self.rows is None else pa.array(self.rows, pa.int32()).take(events)
        return [
            self.messages.column(name).take(rows).cast(type_)
            if name in self.messages.schema.names
            else pa.nulls(len(events), type_)
            for name, type_ in MESSAGE_FIELDS
        ]


def source_of(messages: pa.RecordBatch, counts: Sequence[int]) -> Source:
    """Where the events of messages came from; `counts` is how many each message gave.

    >>> source_of(pa.record_batch({"offset": [7, 8]}), [1, 2]).rows
    [0, 1, 1]
    """
    if len(counts) == sum(counts):
        return Source(messages, None, None)
    rows = [row for row, count in enumerate(counts) for _ in range(count)]
    return Source(messages, rows, [n for count in counts for n in range(count)])


class Changes(NamedTuple):
    """Images of a table's rows and what happened to them."""

    images: list[Image]
    change_types: list[str]
    owners: list[int]
    """The number of the event that each image is of."""
    places: list[str | None]
    """Of each event, its place in the source's order; None where there is none."""


def changes(events: Sequence[Event], table: Table, source: Source) -> Changes:
    """The images of a table's row events: one for an insert or a delete, two for an update."""
    result = Changes([], [], [], [None] * len(events))
    images, change_types, owners, places = result
    arrival_of = arrivals(source)
    for number, e in enumerate(events):
        if e.kind != "row" or not table.holds(e):
            continue
        op = e.op
        place = sequence(e) or (arrival_of and arrival_of(number, e))
        places[number] = ordered_text(place) if op == "snapshot" and place else place
        if (op == "update" or op == "delete") and e.before is not None:
            images.append(e.before)
            change_types.append("update_preimage" if op == "update" else "delete")
            owners.append(number)
        if op != "delete" and e.after is not None:
            images.append(e.after)
            change_types.append("update_postimage" if op == "update" else "insert")
            owners.append(number)
    return result


def arrivals(source: Source) -> Callable[[int, Event], str | None] | None:
    """A function that gives an event's place in its partition; None if offsets are not known."""
    messages = source.messages
    names = messages.schema.names
    if "offset" not in names:
        return None
    offsets = messages.column("offset").to_pylist()
    absent = [None] * len(offsets)
    topics, partitions = (
        messages.column(name).to_pylist() if name in names else absent
        for name in ("topic", "partition")
    )

    def arrival(number: int, event: Event) -> str | None:
        row = number if source.rows is None else source.rows[number]
        offset = offsets[row]
        if offset is None:
            return None
        text = arrival_text(offset, source.numbers[number] if source.numbers else 0)
        partition = f"{topics[row]}-{partitions[row]}"
        return arrival_sequence(partition, text, event.op == "snapshot")

    return arrival


def typed_schema(fields: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
    """The schema of typed rows: the table's columns, then those of the change."""
    return pa.schema([*fields, *CHANGE_FIELDS])


def cast_texts(name: str, texts: pa.Array, type_: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """The cast of columns of which nothing but the type is known."""
    return cast(texts, type_)


def typed_changes(
    rows: Changes,
    events: Sequence[Event],
    source: Source,
    schema: pa.Schema,
    cast_column: Cast = cast_texts,
) -> pa.RecordBatch:
    """Changes as a batch of typed rows; a value that does not fit its column is in `_misfits`."""
    columns: list[pa.Array] = []
    misfits: dict[int, Image] = {}
    for field in list(schema)[: -len(CHANGE_FIELDS)]:
        name = field.name  # Arrow makes a new string of it each time
        texts = pa.array([image.get(name) for image in rows.images], pa.string())
        column, wrong = cast_column(name, texts, field.type)
        columns.append(column)
        for row, text in wrong.items():
            misfits.setdefault(row, {})[name] = text
    count = len(rows.images)
    reported = [misfits.get(row) for row in range(count)] if misfits else [None] * count
    change_types, owners = (
        pa.array(rows.change_types, pa.string()),
        pa.array(rows.owners, pa.int32()),
    )
    commits = pa.array([event.commit_ts for event in events], pa.int64())
    times = pa.array([event.event_time for event in events], TIME)
    places = pa.array(rows.places, pa.string())
    columns += [
        text_maps(reported),
        change_types,
        commits.take(owners),
        times.take(owners),
        *source.columns(owners),
        pc.binary_join_element_wise(places.take(owners), step_of(change_types), ""),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def step_of(change_types: pa.Array) -> pa.Array:
    """What orders the images of one change: a preimage or a delete comes before the row after it.

    >>> step_of(pa.array(["update_preimage", "update_postimage"])).to_pylist()
    ['0', '1']
    """
    is_first = pc.is_in(change_types, value_set=pa.array(["delete", "update_preimage"]))
    return pc.if_else(is_first, "0", "1")
