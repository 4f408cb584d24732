"""Landed rows as lines of JSON, which the fast path can splice, and the changes that they are.

Only a change whose row is known from its own message has such a text: of a table with a key, and of
a format with commit numbers or without positions. All others are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from headgate.codec.sequence import COMMIT, DIGITS, FIRST_ROW, SNAPSHOT, kind_of
from headgate.core.event import Event, Image
from headgate.landing.changes import RowColumns, table_of
from headgate.landing.table_rows import (
    DELETE,
    UPSERT,
    Rejected,
    RowGroup,
    RowLayout,
    check_case,
    check_whole,
    is_partial,
    types_of,
)

_json = msgspec.json.Encoder(enc_hook=str).encode
MOST_BYTES = 2**31 - 2
"""Of rows that Arrow reads at once."""
MOST_CELLS = 4_000_000
"""The same: all rows have the columns of the widest table then."""


def row_text(event: Event) -> tuple[RowLayout, bytes] | None:
    """The layout of a change's row and the row as a line of JSON; None where it has to be decoded.

    The key of the old row is in it as well: where it differs, the change is of two rows.

    >>> event = Event("row", "update", "d", "t", ("id",), {"id": "1"}, {"id": "1", "v": None})
    >>> layout, text = row_text(event)
    >>> layout.names, text
    (('id', 'v'), b'{"0":"1","1":null,"k0":"1"}\\n')
    """
    table, key = table_of(event), event.key
    if table is None or not key or event.op == "truncate":
        return None
    if event.commit_ts is None and (event.position or {}).get("file") is not None:
        return None
    before, after = event.before or {}, event.after or {}
    op, image, old_key = UPSERT, after, dict[str, str | None]()
    if event.op == "delete":
        op, image = DELETE, {name: before.get(name) for name in key}
    elif not after:
        return None
    elif event.op == "update":
        image = {n: before[n] for n in key if n in before and n not in after} | after
        old_key = {f"k{n}": before[name] for n, name in enumerate(key) if name in before}
    if None in old_key.values() or any(image.get(name) is None for name in key):
        return None
    try:
        if op == UPSERT:
            check_whole(event)
        check_case(image)
    except Rejected:
        return None
    values: Image = {str(n): value for n, value in enumerate(image.values())} | old_key
    types, is_snapshot = types_of(event.types), event.op == "snapshot"
    layout = RowLayout(table, key, op, tuple(image), types, is_partial(event), is_snapshot)
    return layout, _json(values) + b"\n"


@dataclass
class RowTexts:
    """Rows as lines of JSON, and where each of them belongs."""

    layouts: Sequence[RowLayout]
    kinds: Any
    """The number of each row's layout."""
    texts: pa.Array
    commits: pa.Array
    """The commit number of each row as text; empty where its format has none."""
    offsets: pa.Array
    """Of each row's message in its partition."""
    origin: str
    """The job and the partition."""

    @property
    def arrivals(self) -> pa.Array:
        """Of each row, its place in the partition it came in."""
        numbers = pc.utf8_lpad(self.offsets.cast(pa.string()), DIGITS, "0")
        return pc.binary_join_element_wise(numbers, FIRST_ROW, "")

    @property
    def positions(self) -> pa.Array:
        """Of each row, its place in the source's order (codec/sequence.py)."""
        arrival = kind_of(f"arrival {self.origin}")
        kinds = [SNAPSHOT if layout.snapshot else arrival for layout in self.layouts]
        kind_by_row = pa.array(kinds, pa.string()).take(pa.array(self.kinds))
        by_arrival = pc.binary_join_element_wise(kind_by_row, self.arrivals, "")
        numbers = pc.utf8_lpad(self.commits, DIGITS, "0")
        by_commit = pc.binary_join_element_wise(COMMIT, numbers, "")
        return pc.if_else(pc.equal(self.commits, ""), by_arrival, by_commit)

    def columns(self) -> dict[str, pa.Array] | None:
        """The members of all rows as columns of text; None where Arrow cannot read them."""
        names = [
            *map(str, range(max(len(layout.names) for layout in self.layouts))),
            *(f"k{n}" for n in range(max(len(layout.key) for layout in self.layouts))),
        ]
        lines = b"".join(self.texts.to_pylist())
        if len(lines) > MOST_BYTES or len(names) * len(self.texts) > MOST_CELLS:
            return None
        reading = pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        schema = pa.schema([(name, pa.string()) for name in names])
        parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
        try:
            rows = pa.json.read_json(pa.BufferReader(lines), reading, parsing).combine_chunks()
        except pa.ArrowException:
            return None
        if rows.num_rows != len(self.texts):
            return None
        return {name: rows.column(name).chunk(0) for name in names}

    def groups(self) -> Iterator[tuple[RowLayout, Any]]:
        """The numbers of the rows of each layout."""
        order = np.argsort(self.kinds, kind="stable")
        starts = np.searchsorted(self.kinds[order], np.arange(len(self.layouts) + 1))
        for number, layout in enumerate(self.layouts):
            yield layout, order[starts[number] : starts[number + 1]]


def row_columns(given: RowTexts) -> RowColumns | None:
    """The rows as columns; None where they have to be decoded, as a change that is of two rows.

    >>> event = Event("row", "insert", "d", "t", ("id",), after={"id": "1"}, commit_ts=7)
    >>> layout, text = row_text(event)
    >>> texts = pa.array([text], pa.binary())
    >>> given = RowTexts([layout], np.zeros(1, int), texts, pa.array(["7"]), pa.array([3]), "in-0")
    >>> rows = row_columns(given)
    >>> rows.positions.to_pylist(), rows.groups[0].columns[0].to_pylist()
    (['13a991bf00000000000000000007'], ['1'])
    """
    columns = given.columns()
    if columns is None or pc.any(pc.starts_with(given.commits, "-")).as_py():
        return None
    groups = []
    for layout, numbers in given.groups():
        rows = pa.array(numbers)
        values = [columns[str(n)].take(rows) for n in range(len(layout.names))]
        if changes_key(layout, values, columns, rows):
            return None
        groups.append(RowGroup(layout, values, numbers))
    return RowColumns(groups, given.positions, given.arrivals)


def changes_key(
    layout: RowLayout, values: Sequence[pa.Array], columns: Mapping[str, pa.Array], rows: pa.Array
) -> bool:
    """Whether any of some updates gives its row another key."""
    for n, name in enumerate(layout.key):
        old = columns[f"k{n}"].take(rows)
        if pc.any(pc.not_equal(old, values[layout.names.index(name)])).as_py():
            return True
    return False
