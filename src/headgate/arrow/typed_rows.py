"""Images of one table as typed Arrow columns; a value that does not fit its type is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa

from headgate.arrow.casts import cast
from headgate.arrow.events import TEXT_MAP, TIME, text_maps
from headgate.core.event import Event, Image

CHANGE_FIELDS = [
    ("_misfits", TEXT_MAP),
    ("_change_type", pa.string()),
    ("_commit_version", pa.int64()),
    ("_commit_timestamp", TIME),
]


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
