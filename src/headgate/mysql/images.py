"""Rows of the binlog as columns of text: where each value is, and what it is.

Rows of one table and of one set of columns are read together, however many events they came in.
`compiled` does the same as this module's plain loops, by machine code; a test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.arrow.events import TEXT_MAP
from headgate.mysql.errors import malformed
from headgate.mysql.events import packed_int
from headgate.mysql.json_binary import dumped, parsed, updated
from headgate.mysql.repetition import repeated
from headgate.mysql.values import Reader

NULL, ABSENT, PARTIAL = -1, -2, 1 << 40
"""Instead of a length: NULL, and a value that the binlog does not have. PARTIAL is added to the
length of a partial JSON update."""
Data = bytes | memoryview
"""The rows of events; those of a large event are not copied."""


class Layout:
    """The columns of one row image, in the order of the table."""

    def __init__(self, columns: Sequence[int], names: Sequence[str], readers: Sequence[Reader]):
        self.columns = tuple(columns)
        self.names = [names[at] for at in columns]
        self.readers = [readers[at] for at in columns]
        self.sizes = [reader.size for reader in self.readers]
        self.null_bytes = (len(self.columns) + 7) // 8

    @cached_property
    def name_array(self) -> pa.Array:
        """The names of the columns."""
        return pa.array(self.names, pa.string())


class Cells(NamedTuple):
    """Where the values of one image are, row by row: arrays of rows times columns."""

    starts: Any
    lengths: Any


class Walked(NamedTuple):
    """The rows of some events: how many each had, and the cells of each image."""

    counts: list[int]
    images: list[Cells]


def walk(
    data: Data, ends: Sequence[int], layouts: Sequence[Layout], json_columns: int | None = None
) -> Walked:
    """Find the values in the rows of events, which end at `ends`.

    `layouts` are the images of a row, in order. `json_columns` is the number of JSON columns in
    events with partial updates; None in others.
    """
    counts: list[int] = []
    spans: list[tuple[list[int], list[int]]] = [([], []) for _ in layouts]
    at = 0
    for end in ends:
        count = 0
        while at < end:
            for image, (layout, (starts, lengths)) in enumerate(zip(layouts, spans)):
                partial = b""
                if json_columns is not None and image == 1:
                    partial, at = _partial_columns(data, at, json_columns)
                at = _walk_image(data, at, layout, starts, lengths)
                if partial:
                    _mark_partial(partial, layout, lengths)
            count += 1
        if at != end:
            raise malformed("the rows of an event do not end where it does")
        counts.append(count)
    rows = sum(counts)
    return Walked(
        counts,
        [
            Cells(
                np.array(starts, np.int64).reshape(rows, len(layout.columns)),
                np.array(lengths, np.int64).reshape(rows, len(layout.columns)),
            )
            for layout, (starts, lengths) in zip(layouts, spans)
        ],
    )


def _walk_image(data: Data, at: int, layout: Layout, starts: list[int], lengths: list[int]) -> int:
    nulls = int.from_bytes(data[at : at + layout.null_bytes], "little")
    at += layout.null_bytes
    for size in layout.sizes:
        if nulls & 1:
            starts.append(0)
            lengths.append(NULL)
        else:
            if size < 0:
                length = int.from_bytes(data[at : at - size], "little")
                at -= size
                size = length
            starts.append(at)
            lengths.append(size)
            at += size
        nulls >>= 1
    return at


def _partial_columns(data: Data, at: int, json_columns: int) -> tuple[bytes, int]:
    """Which JSON columns of a row are partial updates, as bits, and where that ends."""
    options, at = packed_int(data, at)
    if not options & 1:
        return b"", at
    end = at + (json_columns + 7) // 8
    return bytes(data[at:end]), end


def _mark_partial(partial: bytes, layout: Layout, lengths: list[int]) -> None:
    """Mark the partial updates of the row that was added last."""
    bits = int.from_bytes(partial, "little")
    first = len(lengths) - len(layout.columns)
    for at, reader in enumerate(layout.readers):
        if is_json(reader):
            if bits & 1 and lengths[first + at] >= 0:
                lengths[first + at] += PARTIAL
            bits >>= 1


def is_json(reader: Reader) -> bool:
    """Whether a column is MySQL's JSON."""
    return reader.text.__name__ == "json_text"


def completed(after: Cells, after_layout: Layout, before: Cells, before_layout: Layout) -> Cells:
    """The cells of an after image with the columns that only the before image has: they are as
    they were. Columns are those of both images, in the order of the table."""
    places = {column: (after, at) for at, column in enumerate(after_layout.columns)}
    for at, column in enumerate(before_layout.columns):
        places.setdefault(column, (before, at))
    order = [places[column] for column in sorted(places)]
    return Cells(
        np.stack([cells.starts[:, at] for cells, at in order], axis=1),
        np.stack([cells.lengths[:, at] for cells, at in order], axis=1),
    )


def texts(data: Data, cells: Cells, layout: Layout) -> pa.Array:
    """The values of an image as text, row by row."""
    width = len(layout.columns)
    values: list[str | None] = [None] * cells.starts.size
    for at, reader in enumerate(layout.readers):
        values[at::width] = column_texts(data, cells, at, reader)
    return pa.array(values, pa.string())


def column_texts(data: Data, cells: Cells, at: int, reader: Reader) -> list[str | None]:
    """The values of one column."""
    text = reader.text
    try:
        return [
            None if length < 0 else text(bytes(data[start : start + length]))
            for start, length in zip(cells.starts[:, at].tolist(), cells.lengths[:, at].tolist())
        ]
    except UnicodeDecodeError:
        raise malformed("a text is not in the character set of its column") from None


def resolve_partial(
    data: Data, after: Cells, after_layout: Layout, before: Cells, before_layout: Layout
) -> dict[tuple[int, int], str]:
    """The texts of partially updated JSON values, by row and column of the after image.

    They are replaced by NULL in `after`, or by ABSENT where the value before is not known.
    """
    json_texts: dict[tuple[int, int], str] = {}
    for row, at in np.argwhere(after.lengths >= PARTIAL).tolist():
        column = after_layout.columns[at]
        start, length = int(after.starts[row, at]), int(after.lengths[row, at]) - PARTIAL
        old = -1
        if column in before_layout.columns:
            place = before_layout.columns.index(column)
            old, old_start = int(before.lengths[row, place]), int(before.starts[row, place])
        after.lengths[row, at] = ABSENT
        if old >= 0:
            document = parsed(bytes(data[old_start : old_start + old]))
            json_texts[row, at] = dumped(updated(document, bytes(data[start : start + length])))
            after.lengths[row, at] = NULL
    return json_texts


def text_map(layout: Layout, values: pa.Array, absent: Any = None) -> pa.MapArray:
    """Values, row by row, as maps; `absent` tells which have no entry."""
    width = len(layout.columns)
    rows = len(values) // width if width else 0
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    names = repeated(layout.name_array, rows)
    if absent is not None and absent.any():
        present = ~absent.reshape(-1)
        values, names = values.filter(pa.array(present)), names.filter(pa.array(present))
        offsets = np.concatenate([[0], np.cumsum(present)])[offsets].astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), names, values, type=TEXT_MAP)
