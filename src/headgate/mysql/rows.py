"""Rows events: which rows of which table, and their images as Arrow maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.arrow.events import TEXT_MAP
from headgate.core.values import names_json
from headgate.mysql.columns import ResolvedTable
from headgate.mysql.compilation import ROW_LOOPS
from headgate.mysql.errors import malformed
from headgate.mysql.events import HEADER_SIZE, packed_int, uncompressed
from headgate.mysql.images import (
    ABSENT,
    Cells,
    Data,
    Layout,
    Walked,
    completed,
    is_json,
    resolve_partial,
    text_map,
    texts,
    walk,
)
from headgate.mysql.values import reader

INSERT, UPDATE, DELETE = "insert", "update", "delete"


class RowsType(NamedTuple):
    """What a type of rows event says."""

    op: str
    has_extra: bool
    """Whether it is of the second version, which has room for more."""
    compressed: bool = False
    partial: bool = False


ROWS_TYPES = {
    23: RowsType(INSERT, False), 24: RowsType(UPDATE, False), 25: RowsType(DELETE, False),
    30: RowsType(INSERT, True), 31: RowsType(UPDATE, True), 32: RowsType(DELETE, True),
    39: RowsType(UPDATE, True, partial=True),
    166: RowsType(INSERT, False, True), 167: RowsType(UPDATE, False, True),
    168: RowsType(DELETE, False, True), 169: RowsType(INSERT, True, True),
    170: RowsType(UPDATE, True, True), 171: RowsType(DELETE, True, True),
}  # fmt: skip


class TableReader:
    """Reads the rows of a table as long as its columns stay the same."""

    def __init__(self, database: str, table: str, resolved: ResolvedTable) -> None:
        self.database, self.table = database, table
        self.key = resolved.key
        self.types = resolved.table.types
        self.names = [column.name for column in resolved.columns]
        self._readers = [reader(column) for column in resolved.columns]
        self.json_columns = sum(map(is_json, self._readers))
        self._layouts: dict[bytes, Layout] = {}
        self._groups: dict[tuple[RowsType, bytes], RowGroup] = {}

    def group(self, kind: RowsType, present: bytes) -> RowGroup:
        """What rows of a kind of event are; `present` are the bitmaps of their images."""
        group = self._groups.get((kind, present))
        if group is None:
            before, after = (b"", present) if kind.op == INSERT else (present, b"")
            if kind.op == UPDATE:
                half = len(present) // 2
                before, after = present[:half], present[half:]
            group = RowGroup(self, kind.op, before, after, kind.partial)
            self._groups[kind, present] = group
        return group

    def layout(self, present: bytes) -> Layout:
        """The columns of an image, from a bitmap."""
        layout = self._layouts.get(present)
        if layout is None:
            bits = int.from_bytes(present, "little")
            columns = [at for at in range(len(self.names)) if bits >> at & 1]
            layout = self._layouts[present] = Layout(columns, self.names, self._readers)
        return layout

    def union(self, one: Layout, other: Layout) -> Layout:
        """The columns of either of two images."""
        bits = sum(1 << at for at in {*one.columns, *other.columns})
        return self.layout(bits.to_bytes((len(self.names) + 7) // 8, "little"))


@dataclass(frozen=True, eq=False)
class RowGroup:
    """What rows have in common that are read together."""

    table: TableReader
    op: str
    before: bytes
    """The bitmap of the columns in the before image; empty where there is none."""
    after: bytes
    partial: bool


class RowsEvent(NamedTuple):
    """A rows event: what its rows are, and their bytes."""

    group: RowGroup
    data: Data


def table_id(event: bytes) -> int:
    """The number of the table of a rows event."""
    return int.from_bytes(event[HEADER_SIZE : HEADER_SIZE + 6], "little")


def read_rows(event: bytes, kind: RowsType, table: TableReader) -> RowsEvent:
    """Read a rows event up to its rows."""
    at = HEADER_SIZE + 8
    if kind.has_extra:
        at += int.from_bytes(event[at : at + 2], "little")
    width, at = packed_int(event, at)
    if width != len(table.names):
        raise malformed("a rows event has another number of columns than its table map")
    end = at + (width + 7) // 8 * (2 if kind.op == UPDATE else 1)
    data: Data = memoryview(event)[end:]
    if kind.compressed:
        data = uncompressed(bytes(data))
    return RowsEvent(table.group(kind, event[at:end]), data)


class Images(NamedTuple):
    """The rows of a group: how many each event had, and their images."""

    counts: Sequence[int]
    before: pa.Array
    after: pa.Array
    unavailable: str | None
    """The columns that the binlog does not have, as a JSON object."""


def read_images(group: RowGroup, parts: Sequence[Data]) -> Images:
    """The rows of events of one group."""
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    table = group.table
    layouts = [table.layout(present) for present in (group.before, group.after) if present]
    compiled = _compiled()
    json_columns = table.json_columns if group.partial else None
    if compiled is None or group.partial:
        walked = walk(data, ends.tolist(), layouts, json_columns)
    else:
        walked = compiled.walk(data, ends, layouts)
    return _images(group, data, layouts, walked)


def _images(group: RowGroup, data: Data, layouts: list[Layout], walked: Walked) -> Images:
    print_texts: Any = texts if _compiled() is None else _compiled().texts
    rows = sum(walked.counts)
    before = after = pa.nulls(rows, TEXT_MAP)
    cells = walked.images
    if group.op != INSERT:
        before = text_map(layouts[0], print_texts(data, cells[0], layouts[0]))
    if group.op != DELETE:
        layout, own = layouts[-1], cells[-1]
        partial: dict[tuple[int, int], str] = {}
        if group.op == UPDATE:
            if group.partial:
                partial = resolve_partial(data, own, layout, cells[0], layouts[0])
            own, layout, partial = _completed(group, own, cells[0], layouts, partial)
        values = print_texts(data, own, layout)
        if partial:
            values = _with_texts(values, partial, len(layout.columns))
        after = text_map(layout, values, own.lengths == ABSENT if group.partial else None)
        missing = [n for n in group.table.names if n not in layout.names]
    else:
        missing = [n for n in group.table.names if n not in layouts[0].names]
    unavailable = None
    if missing:
        unavailable = "{" + ",".join(f"{names_json((n,))[1:-1]}:null" for n in missing) + "}"
    return Images(walked.counts, before, after, unavailable)


def _completed(
    group: RowGroup,
    after: Cells,
    before: Cells,
    layouts: list[Layout],
    partial: dict[tuple[int, int], str],
) -> tuple[Cells, Layout, dict[tuple[int, int], str]]:
    """The after image of an update with the columns that only the before image has."""
    if set(layouts[0].columns) <= set(layouts[1].columns):
        return after, layouts[1], partial
    layout = group.table.union(*layouts)
    place = {column: at for at, column in enumerate(layout.columns)}
    moved = {(row, place[layouts[1].columns[at]]): text for (row, at), text in partial.items()}
    return completed(after, layouts[1], before, layouts[0]), layout, moved


def _with_texts(values: pa.Array, texts: dict[tuple[int, int], str], width: int) -> pa.Array:
    cells = values.to_pylist()
    for (row, at), text in texts.items():
        cells[row * width + at] = text
    return pa.array(cells, pa.string())


def _compiled() -> Any:
    """The compiled loops; None without Numba, and until they are compiled."""
    return import_module("headgate.mysql.compiled") if ROW_LOOPS.is_ready() else None
