"""The messages of a batch in the layout that brokers take (rocketmq/layout.py), by column.

One by one in Python, they would cost more than to send them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.headers import from_text
from headgate.rocketmq.layout import OVERHEAD, PLAIN, message, properties, tag_property
from headgate.spark.row_packing import places

_HEAD = np.dtype([("size", ">i4"), ("set by brokers", "V12"), ("body", ">i4")])
_TAIL = np.dtype(">i2")


def frames(flat: pa.RecordBatch) -> pa.Array:
    r"""The messages of a batch in FLAT_SCHEMA as bytes.

    >>> from headgate.spark.row_packing import flat_rows
    >>> frames(flat_rows(1, value=pa.array([b"ab"]), table=pa.array(["t"])))[0].as_py().hex(" ", -4)
    '0000001f 00000000 00000000 00000000 00000002 61620007 54414753 017402'
    """
    key, id_, body = flat["key"], flat["id"].cast(pa.binary()), flat["value"]
    if flat["headers"].null_count < len(flat) or not (is_plain(key) and is_plain(id_)):
        return one_by_one(flat)
    named = joined(
        *((b"KEYS\1", key, b"\2") if not key.null_count else ()),
        tags(flat["table"]),
        *((b"headgate-id\1", id_, b"\2") if not id_.null_count else ()),
    )
    head, tail = np.zeros(len(flat), _HEAD), pc.binary_length(named).to_numpy().astype(_TAIL)
    head["body"] = pc.binary_length(body).to_numpy()
    head["size"] = head["body"] + tail + OVERHEAD
    return joined(as_bytes(head), body, as_bytes(tail), named)


def joined(*parts: pa.Array | bytes) -> pa.Array:
    """Each row's bytes of all parts one behind the other; a part of bytes is the same for all."""
    return pc.binary_join_element_wise(*parts, b"")


def as_bytes(numbers: Any) -> pa.Array:
    """Numbers as the bytes that they have in memory."""
    at = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(numbers.itemsize)
    buffers = [None, pa.py_buffer(at), pa.py_buffer(numbers)]
    return pa.Array.from_buffers(pa.binary(), len(numbers), buffers)


def tags(tables: pa.Array) -> pa.Array:
    """The properties of tables' names."""
    names = tables.dictionary_encode()
    each = [b"" if name is None else tag_property(name) for name in names.dictionary.to_pylist()]
    return pa.array([*each, b""], pa.binary()).take(names.indices.fill_null(len(each)))


def is_plain(column: pa.Array) -> bool:
    """Whether each row has text of ASCII that can be a property as it is, or none has anything.

    >>> is_plain(pa.array([b"a", b"b"])), is_plain(pa.array([b"a", b""]))
    (True, False)
    """
    if column.null_count:
        return bool(column.null_count == len(column))
    at = places(column)
    if not len(column) or (at[:-1] == at[1:]).any():
        return False
    return PLAIN.fullmatch(memoryview(column.buffers()[2])[at[0] : at[-1]]) is not None


def one_by_one(flat: pa.RecordBatch) -> pa.Array:
    """The messages of any batch."""
    columns = (flat[name].to_pylist() for name in ("key", "table", "id", "headers", "value"))
    messages = (
        message(value, properties(key, table, id_ and id_.encode(), from_text(headers)))
        for key, table, id_, headers, value in zip(*columns)
    )
    return pa.array(messages, pa.binary(), size=len(flat))


def pieces(data: pa.Array, most: int) -> Iterator[memoryview]:
    """The bytes of rows one behind the other, in pieces of at most so many; a row is never cut.

    >>> [bytes(piece) for piece in pieces(pa.array([b"ab", b"c", b"defg", b"h"]), 3)]
    [b'abc', b'defg', b'h']
    """
    at, begin = places(data), 0
    bytes_of_all = memoryview(data.buffers()[2])
    while begin < len(data):
        end = max(begin + 1, int(np.searchsorted(at, at[begin] + most, "right")) - 1)
        yield bytes_of_all[at[begin] : at[end]]
        begin = end
