"""Images of one table as typed Arrow columns; a value that does not fit its type is reported."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow import TEXT_MAP, TIME, text_maps
from headgate.event import Event, Image

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


class Change(NamedTuple):
    """One image of one row, and what happened to it."""

    image: Image
    change_type: str
    commit_ts: int | None
    event_time: int | None


class Table(NamedTuple):
    """Which table's rows are wanted; a database of None means any."""

    database: str | None
    name: str

    def has(self, event: Event) -> bool:
        """Whether an event is a row of this table."""
        return (
            event.kind == "row"
            and event.table == self.name
            and (self.database is None or event.database == self.database)
        )


def changes(events: Iterable[Event], table: Table) -> Iterator[Change]:
    """The images of a table's row events: one for an insert or a delete, two for an update."""
    for event in events:
        if not table.has(event):
            continue
        op, before, after = event.op, event.before, event.after
        if op == "update":
            if before is not None:
                yield Change(before, "update_preimage", event.commit_ts, event.event_time)
            if after is not None:
                yield Change(after, "update_postimage", event.commit_ts, event.event_time)
        elif op == "delete" and before is not None:
            yield Change(before, "delete", event.commit_ts, event.event_time)
        elif after is not None:
            yield Change(after, "insert", event.commit_ts, event.event_time)


def typed_schema(fields: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
    """The schema of typed rows: the table's columns, then what the change says."""
    return pa.schema([*fields, *CHANGE_FIELDS])


def typed_changes(found: list[Change], schema: pa.Schema) -> pa.RecordBatch:
    """Changes as a batch of typed rows."""
    images = [change.image for change in found]

    def texts(name: str) -> pa.Array:
        return pa.array([image.get(name) for image in images], pa.string())

    return typed_batch(
        texts,
        schema,
        [
            pa.array([change.change_type for change in found], pa.string()),
            pa.array([change.commit_ts for change in found], pa.int64()),
            pa.array([change.event_time for change in found], TIME),
        ],
    )


def typed_batch(
    texts: Callable[[str], pa.Array], schema: pa.Schema, change: list[pa.Array]
) -> pa.RecordBatch:
    """Cast each column's canonical texts to its type, collecting what does not fit."""
    columns: list[pa.Array] = []
    misfits: dict[int, Image] = {}
    for field in list(schema)[: -len(CHANGE_FIELDS)]:
        column, wrong = cast(texts(field.name), field.type)
        columns.append(column)
        for row, text in wrong.items():
            misfits.setdefault(row, {})[field.name] = text
    rows = len(change[0])
    reported = (
        text_maps([misfits.get(row) for row in range(rows)]) if misfits else pa.nulls(rows, TEXT_MAP)
    )
    return pa.RecordBatch.from_arrays([*columns, reported, *change], schema=schema)


def cast(texts: pa.Array, type_: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """A text column in another type, and the texts that do not fit it, by row.

    >>> column, misfits = cast(pa.array(["1", "x", None]), pa.int64())
    >>> column.to_pylist(), misfits
    ([1, None, None], {1: 'x'})
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
        return pc.assume_timezone(pc.cast(texts, pa.timestamp("us")), type_.tz)
    return pc.cast(texts, type_)
