"""Rows read by the compiled loops of `kernel`, with the same results as `images` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.mysql import float_kernel, kernel, position_kernel, values
from headgate.mysql.errors import malformed
from headgate.mysql.images import Cells, Data, Layout, Walked, column_texts
from headgate.mysql.values import (
    BITS,
    COPY,
    DATE,
    DATETIME,
    DECIMAL,
    ENUM,
    FLOATING,
    PREPARED,
    SET,
    SIGNED,
    TABLE,
    TIME,
    TIMESTAMP,
    UNSIGNED,
    YEAR,
    Reader,
    printed_labels,
)  # fmt: skip

CODES = [
    "PREPARED",
    "SIGNED",
    "UNSIGNED",
    "BITS",
    "DECIMAL",
    "DATE",
    "YEAR",
    "DATETIME",
    "TIME",
    "TIMESTAMP",
    "COPY",
    "TABLE",
    "BASE64",
    "ENUM",
    "SET",
]
assert all(getattr(kernel, name) == getattr(values, name) for name in CODES)
LONGEST = {
    SIGNED: 20, UNSIGNED: 20, BITS: 20, DATE: 12, YEAR: 4, DATETIME: 28, TIME: 20, TIMESTAMP: 28,
    DECIMAL: 70,
}  # fmt: skip
"""The most characters of a value."""


def walk(data: Data, ends: Any, layouts: Sequence[Layout]) -> Walked:
    """Find the values in the rows of events, as `images.walk` does."""
    octets = np.frombuffer(data, np.uint8)
    sizes = np.array([size for layout in layouts for size in layout.sizes], np.int64)
    first, width = len(layouts[0].columns), len(sizes)
    counts = np.zeros(len(ends), np.int64)
    nothing = np.empty((0, width), np.int64)
    rows = kernel.walk_rows(octets, ends, sizes, first, width, counts, nothing, nothing, False)
    if rows < 0:
        raise malformed("the rows of an event do not end where it does")
    starts, lengths = np.zeros((rows, width), np.int64), np.empty((rows, width), np.int64)
    kernel.walk_rows(octets, ends, sizes, first, width, counts, starts, lengths, True)
    images = [Cells(starts[:, :first], lengths[:, :first])]
    if len(layouts) == 2:
        images.append(Cells(starts[:, first:], lengths[:, first:]))
    return Walked(counts.tolist(), images)


class _Program:
    """What the printer does with the columns of a layout."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self.columns = np.zeros((len(readers), 5), np.int64)
        self.prepared: list[int] = []
        texts: list[bytes] = []
        for at, reader in enumerate(readers):
            code, first = reader.code, reader.first
            if code in (PREPARED, FLOATING):
                code, first = PREPARED, len(self.prepared)
                self.prepared.append(at)
            labels = [label.encode() for label in printed_labels(reader)]
            self.columns[at] = code, first, reader.second, len(texts), len(labels)
            texts += labels
        self.labels = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        self.label_ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        self.readers = readers

    def room(self, lengths: Any, prepared: int) -> int:
        """At most so many bytes are printed."""
        rows = len(lengths)
        room = prepared
        for at, reader in enumerate(self.readers):
            if reader.code in LONGEST:
                room += rows * LONGEST[reader.code]
            elif reader.code in (ENUM, SET):
                labels = [len(label.encode()) + 1 for label in reader.labels]
                room += rows * max(20, max(labels) if reader.code == ENUM else sum(labels))
            elif reader.code not in (PREPARED, FLOATING):
                size = int(np.maximum(lengths[:, at], 0).sum())
                room += {COPY: size, TABLE: 3 * size}.get(
                    reader.code, 4 * (size // 3) + rows * (4 * (reader.first // 3) + 8)
                )
        return room


def texts(data: Data, cells: Cells, layout: Layout) -> pa.Array:
    """The values of an image as text, row by row, as `images.texts` gives them."""
    program: _Program | None = getattr(layout, "program", None)
    if program is None:
        program = layout.program = _Program(layout.readers)  # type: ignore[attr-defined]
    rows, width = cells.starts.shape
    ready: list[bytes] = []
    ready_ends = np.zeros((len(program.prepared), rows + 1), np.int64)
    total = 0
    octets = np.frombuffer(data, np.uint8)
    for number, at in enumerate(program.prepared):
        reader, ends = layout.readers[at], ready_ends[number]
        if reader.code == FLOATING:
            floats = np.empty(rows * float_kernel.LONGEST, np.uint8)
            starts, lengths = cells.starts[:, at], cells.lengths[:, at]
            size = float_kernel.put_floats(
                octets, starts, lengths, reader.size, floats, ends, total
            )
            ready.append(floats[:size].tobytes())
        else:
            column = column_texts(data, cells, at, reader)
            encoded = [b"" if text is None else text.encode() for text in column]
            ends[:] = np.cumsum([total, *map(len, encoded)])
            ready += encoded
        total = int(ends[-1])
    out = np.empty(program.room(cells.lengths, total), np.uint8)
    if len(out) > 0x7FFFFFFF:
        raise malformed("the rows of an event have more than 2 GiB of text")
    offsets = np.zeros(rows * width + 1, np.int32)
    valid = np.empty(rows * width, np.bool_)
    prepared = np.frombuffer(b"".join(ready) or b"\0", np.uint8)
    size = kernel.put_rows(
        octets, cells.starts, cells.lengths, program.columns,
        program.label_ends, program.labels, ready_ends, prepared, out, offsets, valid,
    )  # fmt: skip
    bits = None
    if not valid.all():
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    made = pa.StringArray.from_buffers(
        rows * width, pa.py_buffer(offsets), pa.py_buffer(out).slice(0, size), bits
    )
    try:
        made.validate(full=True)
    except pa.ArrowInvalid:
        raise malformed("a text is not in the character set of its column") from None
    return made


def position_texts(made: Sequence[str], counts: Any, firsts: Any) -> pa.Array:
    """The members of positions, as `batches.position_texts` gives them."""
    encoded = [text.encode() for text in made]
    events, members = firsts.shape
    inner = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    fixed = len(made) // events
    ends = inner[np.arange(events)[:, None] * fixed + np.arange(fixed + 1)]
    rows = int(counts.sum())
    room = (
        int(((ends[:, -1] - ends[:, 0]) * counts).sum()) + rows * members * position_kernel.LONGEST
    )
    out, offsets = np.empty(room, np.uint8), np.zeros(rows * (fixed + members) + 1, np.int32)
    texts = np.frombuffer(b"".join(encoded), np.uint8)
    size = position_kernel.put_positions(texts, ends, counts, firsts, out, offsets)
    return pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(out).slice(0, size)
    )
