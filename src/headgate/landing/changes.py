"""Changes of tables as typed columns, packed: what a worker hands to the sinks of tables.

Python goes over each change once; values are typed column by column, for all rows of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import pyarrow as pa

from headgate.arrow.events import TIME
from headgate.core.errors import shown
from headgate.core.event import Event, qualified
from headgate.landing.shape import LandedColumn, TableShape, table_shape
from headgate.landing.table_rows import (
    MISFIT,
    Rejected,
    RowGroup,
    TableRows,
    without_key,
)
from headgate.landing.types import TypePreferences, is_zero_date, typed
from headgate.schema.changes import TableId

SHAPE = b"headgate"
"""Where the schema of packed changes has the shape of their table."""
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Positions are long texts that differ little: packed changes take less than half the room."""
Reason = tuple[str, str]
"""The code of an error and its sentence."""
Key = tuple[str, ...]
_Table = tuple[TableId, Key]
"""A table and its key."""
_NO_TABLE = "no-table", "the row does not tell its table; set it with the source's options"


class Typing(NamedTuple):
    """How a sink wants its values."""

    prefer: TypePreferences
    null_misfits: bool = False
    """Whether a value that does not fit its column becomes NULL; if not, its row is rejected."""
    with_times: bool = False
    """Whether changes have their times and commit numbers."""


class PlacedEvents(NamedTuple):
    """Events, and where each of them belongs."""

    events: Sequence[Event]
    positions: Sequence[str]
    """Of each event, its place in the source's order (codec/sequence.py)."""
    arrivals: Sequence[str]
    """Of each event, its place in the partition it came in."""
    untyped: Sequence[Sequence[str] | None]
    """Of each event, columns whose values are none of their type."""


@dataclass
class RowColumns:
    """Rows that are columns already, and where each of them belongs."""

    groups: Sequence[RowGroup]
    """Rows of one operation with the same columns; each has the numbers of its rows."""
    positions: pa.Array
    arrivals: pa.Array


class Placed(NamedTuple):
    """Where changes belong, by the number of the change."""

    positions: pa.Array
    arrivals: pa.Array
    events: Sequence[Event] = ()
    """For their times, where a sink takes them."""


@dataclass
class TableChanges:
    """The changes of one table."""

    shape: TableShape
    rows: pa.RecordBatch
    events: list[int]
    """The number of the event that each row is of."""

    def pack(self) -> bytes:
        """The changes as an Arrow IPC stream, with the shape of their table."""
        rows = self.rows.replace_schema_metadata({SHAPE: msgspec.json.encode(self.shape)})
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, rows.schema, options=_COMPRESSED) as stream:
            stream.write_batch(rows)
        packed: bytes = out.getvalue().to_pybytes()
        return packed


def unpack(packed: bytes) -> tuple[TableShape, pa.Table]:
    """The shape and the rows of packed changes."""
    with pa.ipc.open_stream(packed) as stream:
        rows = stream.read_all()
    return msgspec.json.decode(rows.schema.metadata[SHAPE], type=TableShape), rows


@dataclass
class Changes:
    """The changes of several tables, and which of their events cannot be landed."""

    tables: list[TableChanges] = field(default_factory=list)
    rejected: dict[int, Reason] = field(default_factory=dict)
    """By the number of the event. Its rows are among those of its table all the same."""
    nulled: set[int] = field(default_factory=set)
    """The numbers of events of which a value became NULL because it does not fit its column."""


def changes_of(given: PlacedEvents, typing: Typing, columns: RowColumns | None = None) -> Changes:
    """The changes of row events, typed, table by table; other events give nothing.

    `columns` are further rows of the same batch. What is told of them has their numbers behind
    those of the events.

    >>> event = Event("row", "insert", "shop", "orders", ("id",), after={"id": "1"})
    >>> found = changes_of(PlacedEvents([event], ["p"], ["a"], [None]), Typing(TypePreferences()))
    >>> found.tables[0].rows.to_pylist()
    [{'_op': 0, '_position': 'p', '_arrival': 'a', 'id': '1'}]
    """
    result = Changes()
    tables: dict[_Table, TableRows] = {}
    by_names: dict[tuple[object, ...], tuple[TableId, TableRows] | None] = {}
    """By the names and the key that an event has; None where these name no table."""
    groups = () if columns is None else columns.groups
    keys = _known_keys(given.events, groups)
    for number, (event, untyped) in enumerate(zip(given.events, given.untyped)):
        if event.kind != "row":
            continue
        names = event.database, event.schema, event.table, event.key
        of_table = by_names.get(names)
        if of_table is None:
            table = None if names in by_names else _table(event, keys)
            if table is None:
                by_names[names] = None
                result.rejected[number] = _NO_TABLE
                continue
            rows = tables.setdefault(table, TableRows(table[1], typing.null_misfits))
            of_table = by_names[names] = table[0], rows
        try:
            of_table[1].add(number, event, untyped)
        except Rejected as error:
            result.rejected[number] = error.code, _of_table(of_table[0], str(error))
    for group in groups:
        key = group.layout.key
        rows = tables.setdefault((group.layout.table, key), TableRows(key, False))
        rows.add_columns(group, len(given.events))
    placed = _placed(given, columns)
    for (table_id, _), rows in tables.items():
        if rows.ops:
            result.tables.append(_typed_table(table_id, rows, placed, typing, result))
            result.nulled |= rows.nulled
    return result


def table_of(event: Event) -> TableId | None:
    """The table of an event; None where it does not tell it.

    >>> table_of(Event("row", "insert", "shop", "orders", schema="public"))
    TableId(database='shop', table='public.orders')
    """
    name = qualified(event.schema, event.table)
    return None if name is None else TableId(event.database, name)


def event_shape(row: Event, prefer: TypePreferences) -> TableShape | None:
    """The shape of a row's table, as far as the row tells; None where it does not tell its table.

    >>> row = Event("row", "insert", "shop", "orders", ("id",), after={"id": "1"})
    >>> event_shape(row, TypePreferences()).columns
    (LandedColumn(name='id', type='string', mysql=None, source=None, ...),)
    """
    table, types = table_of(row), row.types or {}
    image = row.before if row.after is None else row.after
    if table is None or image is None:
        return None
    mysql = {name: types[name].mysql if name in types else None for name in image}
    return table_shape(table, mysql, row.key or (), prefer)


def _table(event: Event, keys: Mapping[TableId, Key]) -> _Table | None:
    """The table of a row event and its key; None where the event does not tell its table."""
    table, key = table_of(event), event.key
    if table is None:
        return None
    return table, keys.get(table, ()) if key is None else key


def _known_keys(events: Sequence[Event], groups: Sequence[RowGroup]) -> dict[TableId, Key]:
    """The keys of tables, for events that do not tell them: those of the table's other rows."""
    if all(event.key is not None for event in events):
        return {}
    keys: dict[TableId, Key] = {}
    for event in events:
        if event.key and (table := table_of(event)) is not None:
            keys.setdefault(table, event.key)
    for group in groups:
        keys.setdefault(group.layout.table, group.layout.key)
    return keys


def _placed(given: PlacedEvents, columns: RowColumns | None) -> Placed:
    """Where the changes of events belong, and behind them those of columns."""
    positions = pa.array(given.positions, pa.string())
    arrivals = pa.array(given.arrivals, pa.string())
    if columns is not None:
        positions = pa.concat_arrays([positions, columns.positions])
        arrivals = pa.concat_arrays([arrivals, columns.arrivals])
    return Placed(positions, arrivals, given.events)


def _typed_table(
    table: TableId, rows: TableRows, placed: Placed, typing: Typing, result: Changes
) -> TableChanges:
    """The rows of a table as typed columns; what does not fit is added to the result."""
    shape, texts = rows.columns(table, typing.prefer)
    owners, numbers = rows.owners, pa.array(rows.owners, pa.int32())
    arrays: dict[str, pa.Array] = {
        "_op": pa.array(rows.ops, pa.int8()),
        "_position": placed.positions.take(numbers),
        "_arrival": placed.arrivals.take(numbers),
    }
    if typing.with_times:
        events = [placed.events[n] for n in owners]
        arrays["_event_time"] = pa.array([e.event_time for e in events], TIME)
        arrays["_commit_ts"] = pa.array([e.commit_ts for e in events], pa.int64())
    absent = rows.absent(shape)
    if absent is not None:
        arrays["_absent"] = absent
    for column, text in zip(shape.columns, texts):
        array, misfits = typed(text, column.mysql, column.type, typing.prefer)
        arrays[column.name] = array
        for row, value in misfits.items():
            if typing.null_misfits and column.name not in shape.key:
                result.nulled.add(owners[row])
            else:
                error = MISFIT, _of_table(table, _misfit(column, value))
                result.rejected.setdefault(owners[row], error)
    for name in shape.key:
        for row in rows.without(arrays.get(name)):
            lacking = without_key(name)
            error = lacking.code, _of_table(table, str(lacking))
            result.rejected.setdefault(owners[row], error)
    batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    return TableChanges(shape, batch, owners)


def _misfit(column: LandedColumn, value: str) -> str:
    """Why a value is rejected; without the value, which errors do not show."""
    remedy = "zero-dates=null or string lands such dates, " if is_zero_date(value) else ""
    return (
        f"column {shown(column.name)}: the value does not fit {column.type}; {remedy}"
        "on-misfit=null lands NULL"
    )


def _of_table(table: TableId, reason: str) -> str:
    """A reason that names its table."""
    return f"{shown('.'.join(name for name in table if name is not None))}: {reason}"
