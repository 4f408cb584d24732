"""The types of a table's columns, from what its messages and the DDL among them give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.typed_rows import MESSAGE_FIELDS, Table
from headgate.codec.schemas import Schemas
from headgate.core.errors import UsageError, shown
from headgate.core.event import Event
from headgate.landing.shape import LandedColumn, TableShape, table_shape, union
from headgate.schema.changes import TableId
from headgate.schema.known_tables import LearntTable
from headgate.spark.api import fast_worker
from headgate.spark.reading import Events, reading

SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("content", pa.binary()),
        *MESSAGE_FIELDS,
        ("number", pa.int32()),
    ]
)
"""`columns`: names and types that rows have; `ddl`: an event; `table`: a name that occurs. A DDL
event has its place."""
Columns = dict[str, str | None]
"""MySQL types by column; None where a message does not give it."""
SHOWN_TABLES = 5


class RowTypes(NamedTuple):
    """What is known of a table's columns."""

    columns: tuple[LandedColumn, ...]
    learnt: list[LearntTable]
    """The tables that DDL defines: its rows are completed with their types."""


def observed(events: DataFrame, table: Table, name: str) -> RowTypes:
    """The columns of a table: all that its rows and its DDL have, in types that hold all values."""
    read = reading(events, F.col("kind").isin("row", "ddl"), lean=False)
    decode = read.events

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            yield from observations(decode(batches), table)

    rows = read.df.mapInArrow(run, from_arrow_schema(SCHEMA)).collect()
    ddl, columns, others = (
        [row for row in rows if row.kind == kind] for kind in ("ddl", "columns", "table")
    )
    file = Schemas(read.options.get("schema"), read.options)
    known = file.copy()
    shapes: list[TableShape] = []
    for event in in_order(ddl):
        known.learn(event)
        shapes[:0] = defined(known, table)
    sent = [msgspec.json.decode(row.content, type=Columns) for row in columns]
    shapes += [shape_of(each) for each in sorted(sent, key=len, reverse=True)]
    if not shapes:
        raise nothing_found(name, sorted({bytes(row.content).decode() for row in others}))
    return RowTypes(union(shapes)[0].columns, known.learnt(file))


def observations(parts: Events, table: Table) -> Iterator[pa.RecordBatch]:
    """What a task's events give, each thing once; DDL each time."""
    seen: set[tuple[str, bytes]] = set()
    for events, source in parts:
        new: dict[int, tuple[str, bytes]] = {}
        for number, event in enumerate(events):
            what = observation(event, table)
            if what is not None and (what not in seen or what[0] == "ddl"):
                seen.add(what)
                new[number] = what
        if new:
            numbers = [source.numbers[n] if source.numbers else 0 for n in new]
            arrays = [
                pa.array(column, field.type) for column, field in zip(zip(*new.values()), SCHEMA)
            ]
            arrays += [*source.columns([*new]), pa.array(numbers, pa.int32())]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def observation(event: Event, table: Table) -> tuple[str, bytes] | None:
    """What one event gives."""
    if event.kind == "ddl":
        return "ddl", msgspec.msgpack.encode(event)
    if event.kind != "row":
        return None
    if not table.holds(event):
        parts = filter(None, (event.database, event.schema, event.table))
        return "table", ".".join(parts).encode()
    image, types = {**(event.before or {}), **(event.after or {})}, event.types or {}
    columns = {name: types[name].mysql if name in types else None for name in image}
    return "columns", msgspec.json.encode(columns)


def in_order(rows: Sequence[Any]) -> Iterator[Event]:
    """DDL events in their order; one that was sent to several partitions comes once."""
    placed = [(msgspec.msgpack.decode(row.content, type=Event), row) for row in rows]
    placed.sort(
        key=lambda each: (
            each[0].commit_ts or 0,
            each[1].topic or "",
            each[1].partition or 0,
            each[1].offset or 0,
            each[1].number,
        )
    )
    seen = set()
    for event, _ in placed:
        same = event.commit_ts, event.event_time, event.database, event.ddl
        if same not in seen:
            seen.add(same)
            yield event


def defined(known: Schemas, table: Table) -> list[TableShape]:
    """The table as DDL has defined it by now."""
    shapes = []
    for database, name in known.names():
        if table.holds(Event("row", database=database, table=name)):
            columns = known.table(database, name)
            assert columns is not None
            shapes.append(shape_of({n: c.mysql for n, c in columns.columns.items()}))
    return shapes


def shape_of(columns: Columns) -> TableShape:
    """The shape of rows that have these columns."""
    return table_shape(TableId(None, "rows"), columns)


def nothing_found(name: str, others: Sequence[str]) -> UsageError:
    """The error of a table that does not occur."""
    some = ", ".join(map(shown, others[:SHOWN_TABLES])) + (" …" if others[SHOWN_TABLES:] else "")
    return UsageError(
        f"no message has rows or DDL of {shown(name)}, so that its columns are not known; check "
        f"the name (there are: {some or 'no tables'}), or give the columns"
    )
