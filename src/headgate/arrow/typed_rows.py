"""Images of one table as typed Arrow columns; a value that does not fit its type is reported."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.events import TEXT_MAP, TIME, text_maps
from headgate.core.event import Event, Image
from headgate.core.values import YEAR_ONE

CHANGE_FIELDS = [
    ("_misfits", TEXT_MAP),
    ("_change_type", pa.string()),
    ("_commit_version", pa.int64()),
    ("_commit_timestamp", TIME),
]
SIMPLE_TYPES = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": TIME,
    "timestamp_ntz": pa.timestamp("us"),
}


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


class Changes(NamedTuple):
    """Images of a table's rows and what happened to them, column by column."""

    images: list[Image]
    change_types: list[str]
    commits: list[int | None]
    times: list[int | None]


def changes(events: Iterable[Event], table: Table) -> Changes:
    """The images of a table's row events: one for an insert or a delete, two for an update."""
    result = Changes([], [], [], [])
    images, change_types, commits, times = result
    for e in events:
        if e.kind != "row" or not table.holds(e):
            continue
        first = "delete" if e.op == "delete" else "update_preimage" if e.op == "update" else None
        if first and e.before is not None:
            images.append(e.before)
            change_types.append(first)
            commits.append(e.commit_ts)
            times.append(e.event_time)
        if first != "delete" and e.after is not None:
            images.append(e.after)
            change_types.append("update_postimage" if first else "insert")
            commits.append(e.commit_ts)
            times.append(e.event_time)
    return result


def typed_schema(fields: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
    """The schema of typed rows: the table's columns, then those of the change."""
    return pa.schema([*fields, *CHANGE_FIELDS])


def typed_changes(rows: Changes, schema: pa.Schema) -> pa.RecordBatch:
    """Changes as a batch of typed rows."""

    def texts(name: str) -> pa.Array:
        return pa.array([image.get(name) for image in rows.images], pa.string())

    return typed_batch(
        texts,
        schema,
        [
            pa.array(rows.change_types, pa.string()),
            pa.array(rows.commits, pa.int64()),
            pa.array(rows.times, TIME),
        ],
    )


def typed_batch(
    texts: Callable[[str], pa.Array], schema: pa.Schema, change: list[pa.Array]
) -> pa.RecordBatch:
    """Cast each column's canonical texts to its type, collecting the invalid ones."""
    columns: list[pa.Array] = []
    misfits: dict[int, Image] = {}
    for field in list(schema)[: -len(CHANGE_FIELDS)]:
        column, wrong = cast(texts(field.name), field.type)
        columns.append(column)
        for row, text in wrong.items():
            misfits.setdefault(row, {})[field.name] = text
    rows = len(change[0])
    reported = (
        text_maps([misfits.get(row) for row in range(rows)])
        if misfits
        else pa.nulls(rows, TEXT_MAP)
    )
    return pa.RecordBatch.from_arrays([*columns, reported, *change], schema=schema)


def cast(texts: pa.Array, type_: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """A text column in another type, and the texts that do not fit it, by row.

    What Arrow accepts but MySQL never writes is a misfit too: `0x10`, `inf`, the year 0.

    >>> column, misfits = cast(pa.array(["1", "x", None, "0x10"]), pa.int64())
    >>> column.to_pylist(), misfits
    ([1, None, None, None], {1: 'x', 3: '0x10'})
    """
    try:
        return _cast(texts, type_), {}
    except (pa.ArrowException, Base64Error, ValueError):
        pass
    column: list[Any] = []
    wrong: dict[int, str] = {}
    for row, text in enumerate(texts):
        try:
            column.append(_cast(pa.array([text.as_py()], pa.string()), type_)[0].as_py())
        except (pa.ArrowException, Base64Error, ValueError):
            column.append(None)
            wrong[row] = text.as_py()
    return pa.array(column, type_), wrong


def _cast(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_string(type_):
        return texts
    if pa.types.is_binary(type_):
        return pa.array([t and b64decode(t, validate=True) for t in texts.to_pylist()], type_)
    if pa.types.is_timestamp(type_) and type_.tz:
        column = pc.assume_timezone(pc.cast(texts, pa.timestamp("us")), type_.tz)
    else:
        column = pc.cast(texts, type_)
    if not _sound(texts, column):
        raise ValueError("Arrow accepted an invalid value")
    return column


def _sound(texts: pa.Array, column: pa.Array) -> bool:
    type_ = column.type
    if pa.types.is_integer(type_):
        data = texts.buffers()[2]
        text = b"" if data is None else data.to_pybytes()
        return b"x" not in text and b"X" not in text
    if pa.types.is_floating(type_):
        return pc.all(pc.is_finite(column)).as_py() is not False
    if pa.types.is_timestamp(type_):
        first = pc.min(column.cast(pa.int64())).as_py()
        return first is None or first >= YEAR_ONE
    if pa.types.is_date32(type_):
        first = pc.min(column.cast(pa.int32())).as_py()
        return first is None or first >= YEAR_ONE // 86_400_000_000
    return True
