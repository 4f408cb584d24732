"""A pass's messages on their way to the sinks: many of them in one row of Spark's.

Spark takes a row from a worker, holds it, looks at it for tallies and reads it again: that costs
more than the bytes in it. So the bytes of many messages lie one behind the other in one row, with
where each begins, and Spark's own expressions take them apart when they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.arrow.headers import ID_HEADER, TYPE

PACK_BYTES = 256 * 1024
"""Half of what Java's collector takes for a large object where the heap is a gigabyte."""
FLAT_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("id", pa.string()),
        ("partition", pa.int32()),
        ("topic", pa.string()),
        ("headers", pa.string()),
        ("table", pa.string()),
    ]
)
"""A message for a sink. The id is what it is known by; headers are as text, without the id."""
_NUMBERS = pa.list_(pa.int32())
_TEXTS = pa.list_(pa.string())
_BYTES = ("key", "value", "id")
PACK_SCHEMA = pa.schema(
    [
        ("sink", pa.int32()),
        ("step", pa.int32()),
        *((f"{name}_bytes", pa.binary()) for name in _BYTES),
        *((f"{name}_at", _NUMBERS) for name in _BYTES),
        *((f"{name}_missing", pa.list_(pa.bool_())) for name in _BYTES),
        ("partitions", _NUMBERS),
        ("topics", _TEXTS),
        ("topic_at", _NUMBERS),
        ("tables", _TEXTS),
        ("table_at", _NUMBERS),
        ("carried", _TEXTS),
    ]
)
"""Messages of one step for one sink: `at` is where each begins and, last, where they end. What no
message has, or none is missing, is null; so is `topic_at` where all have one topic, and `table_at`.
Spark takes numbers over one by one, so that there are as few lists of them as can be."""
PACKED_COLUMNS = tuple(name for name in PACK_SCHEMA.names if name not in ("sink", "step"))
"""The columns of packed rows for one sink and step."""


def flat_rows(rows: int, **columns: pa.Array) -> pa.RecordBatch:
    """Messages; the columns that are not given are null."""
    arrays = [columns.get(f.name, pa.nulls(rows, f.type)) for f in FLAT_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=FLAT_SCHEMA)


def pack_messages(sink: int, step: int, flat: pa.RecordBatch) -> dict[str, pa.Array]:
    """Messages packed into rows: the columns of PACK_SCHEMA.

    >>> flat = flat_rows(2, value=pa.array([b"ab", None]), topic=pa.array(["t", "t"]))
    >>> packed = pack_messages(0, 1, flat)
    >>> [packed[f"value_{name}"].to_pylist() for name in ("bytes", "at", "missing")]
    [[b'ab'], [[1, 3, 3]], [[False, True]]]
    """
    starts = {name: places(flat.column(name)) for name in _BYTES}
    cuts = cut(starts["value"].astype(np.int64) + starts["key"])
    count = len(cuts) - 1
    columns = {
        "sink": pa.array(np.full(count, sink, np.int32)),
        "step": pa.array(np.full(count, step, np.int32)),
    }
    lists = pa.array(cuts)
    sizes = np.diff(cuts) + 1
    ends = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    each = np.arange(cuts[-1] + count) - np.repeat(np.arange(count), sizes)
    for name in _BYTES:
        column, at = flat.column(name), starts[name]
        buffers = [None, pa.py_buffer(at[cuts]), column.buffers()[2]]
        columns[f"{name}_bytes"] = pa.Array.from_buffers(pa.binary(), count, buffers)
        inside = at[each] - np.repeat(at[cuts[:-1]], sizes) + np.int32(1)
        columns[f"{name}_at"] = pa.ListArray.from_arrays(ends, pa.array(inside))
        if column.null_count:
            columns[f"{name}_missing"] = pa.ListArray.from_arrays(lists, column.is_null())
    for name, given in (
        ("partitions", flat.column("partition")),
        ("carried", flat.column("headers")),
    ):
        if given.null_count < len(given):
            columns[name] = pa.ListArray.from_arrays(lists, given)
    for name in ("topic", "table"):
        column = flat.column(name)
        if column.null_count == len(column):
            continue
        names = column.dictionary_encode()
        columns[f"{name}s"] = pa.array([names.dictionary.to_pylist()] * count, _TEXTS)
        if len(names.dictionary) != 1 or names.null_count:
            columns[f"{name}_at"] = pa.ListArray.from_arrays(lists, names.indices)
    return columns


def places(column: pa.Array) -> Any:
    """Where in its buffer each value of a column begins, and where the last one ends."""
    offsets = column.buffers()[1]
    if offsets is None or not len(column):
        return np.zeros(len(column) + 1, np.int32)
    return np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]


def cut(starts: Any) -> Any:
    """Where packed rows begin, given where messages begin and the last one ends; and the end.

    >>> cut(np.array([0, PACK_BYTES, PACK_BYTES + 1, 2 * PACK_BYTES])).tolist()
    [0, 1, 3]
    """
    number = (starts[:-1] - starts[0]) // PACK_BYTES
    changes = np.flatnonzero(number[1:] != number[:-1]) + 1
    return np.concatenate([[0], changes, [len(number)]]).astype(np.int32)


def packed_rows_of(flat: pa.RecordBatch) -> pa.RecordBatch:
    """Messages as the packed rows that a sink takes."""
    columns = pack_messages(0, 0, flat)
    fields = [PACK_SCHEMA.field(name) for name in PACKED_COLUMNS]
    rows = len(columns["sink"])
    arrays = [columns.get(each.name, pa.nulls(rows, each.type)) for each in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def flat_batches(packed: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The messages of packed rows in their order, on a worker: a batch for each row.

    >>> flat = flat_rows(2, value=pa.array([b"ab", None]), topic=pa.array(["t", "t"]))
    >>> [each.equals(flat) for each in flat_batches(packed_rows_of(flat))]
    [True]
    """
    large = {name: packed.column(f"{name}_bytes") for name in _BYTES}
    small = [name for name in PACKED_COLUMNS if not name.endswith("_bytes")]
    for row in range(packed.num_rows):
        cells = {name: packed.column(name)[row] for name in small}
        rows = len(cells["value_at"]) - 1
        columns = {name: _bytes_column(cells, name, large[name], row) for name in _BYTES}
        for name, lists in (("partition", "partitions"), ("headers", "carried")):
            if cells[lists].is_valid:
                columns[name] = cells[lists].values
        for name in ("topic", "table"):
            if cells[f"{name}s"].is_valid:
                names, at = cells[f"{name}s"].values, cells[f"{name}_at"].values
                columns[name] = pa.repeat(names[0], rows) if at is None else names.take(at)
        yield flat_rows(rows, **columns)


def _bytes_column(
    cells: Mapping[str, pa.Scalar], name: str, packed: pa.Array, row: int
) -> pa.Array:
    """One column of a packed row's messages: a view, as a scalar of Arrow's would be a copy."""
    at = np.asarray(cells[f"{name}_at"].values) + (places(packed)[row] - np.int32(1))
    buffers = [None, pa.py_buffer(at), packed.buffers()[2]]
    missing = cells[f"{name}_missing"].values
    if missing is not None:
        there = ~missing.to_numpy(zero_copy_only=False)
        buffers[0] = pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(FLAT_SCHEMA.field(name).type, len(at) - 1, buffers)


class Unpacking:
    """Takes packed rows apart, in few steps and with columns made once: planning is dear."""

    def __init__(self) -> None:
        self.plain = [F.expr(text) for text in message_columns(with_headers=False)]
        self.with_headers = [F.expr(text) for text in message_columns(with_headers=True)]
        self.packed = [F.col(name) for name in PACKED_COLUMNS]
        self.numbers: dict[tuple[int, int], Column] = {}
        """By sink and step: the number of each message in its packed row."""

    def rows(self, work: DataFrame, sink: int, step: int) -> DataFrame:
        """The packed rows of one sink and step."""
        return work.where(f"sink = {sink} AND step = {step}").select(*self.packed)

    def messages(self, work: DataFrame, sink: int, step: int, with_headers: bool) -> DataFrame:
        """The messages of one sink and step in their order, in the columns that a sink takes.

        `with_headers` says whether any has more headers than its id: to read them is dear.
        """
        if (sink, step) not in self.numbers:
            numbers = "sequence(0, size(value_at) - 2)"
            chosen = f"IF(sink = {sink} AND step = {step}, {numbers}, CAST(array() AS array<int>))"
            self.numbers[sink, step] = F.expr(f"explode({chosen}) AS n")
        each = work.select("*", self.numbers[sink, step])
        return each.select(*(self.with_headers if with_headers else self.plain))


def message_columns(with_headers: bool) -> list[str]:
    """Spark's expressions for the columns of message `n` of a packed row."""
    headers = named = f"array(named_struct('key', '{ID_HEADER}', 'value', {piece('id')}))"
    if with_headers:
        carried = "get(carried, n)"
        both = f"concat(from_json({carried}, '{TYPE}'), {named})"
        headers = f"CASE WHEN {carried} IS NULL THEN {named} ELSE {both} END"
    return [
        f"{piece('key')} AS key",
        f"{piece('value')} AS value",
        "get(partitions, n) AS partition",
        "get(topics, IF(topic_at IS NULL, 0, get(topic_at, n))) AS topic",
        f"{headers} AS headers",
    ]


def piece(name: str) -> str:
    """Spark's expression for the bytes of one message's column."""
    begin = f"get({name}_at, n)"
    substring = f"substring({name}_bytes, {begin}, get({name}_at, n + 1) - {begin})"
    return f"CASE WHEN get({name}_missing, n) THEN NULL ELSE {substring} END"
