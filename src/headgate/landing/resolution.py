"""How far changes are complete, and which changes that takes in (`consistency: watermark`).

Producers send it in one of two ways. A watermark means that every change with a commit number up to
it was sent; in a topic of several partitions that is the lowest watermark of all. A transaction's
end means that the changes before it, in a topic of one partition, are a state that the source had.
So changes are ordered by their commit numbers, or else as they arrived.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.codec.sequence import COMMIT, DIGITS
from headgate.landing.changes import SHAPE

POSITION, ARRIVAL = "_position", "_arrival"


class Resolved(NamedTuple):
    """A point of the source's log: all changes up to it are known."""

    order: str
    """The last change that it takes in, as `order_text` has it."""
    timestamp: int
    """A commit number, or the time of a transaction in microseconds since the epoch."""


def watermark_at(commit: int) -> Resolved:
    """The point of a watermark.

    >>> watermark_at(7).order
    '13a991bf00000000000000000007'
    """
    return Resolved(f"{COMMIT}{commit:0{DIGITS}d}", commit)


def order_text(position: str, arrival: str) -> str:
    """What orders a change among others: its commit number, or else its place in the partition.

    >>> order_text(watermark_at(7).order, "00000000000000000009")
    '13a991bf00000000000000000007'
    """
    return position if position.startswith(COMMIT) else arrival


def orders_of(rows: pa.Table) -> pa.ChunkedArray:
    """What orders each of some changes."""
    positions = rows.column(POSITION)
    return pc.if_else(pc.starts_with(positions, COMMIT), positions, rows.column(ARRIVAL))


def span(packed: bytes) -> tuple[str, str]:
    """The first and the last of packed changes, in order."""
    ends = pc.min_max(orders_of(_rows(packed))).as_py()
    return ends["min"], ends["max"]


def between(packed: bytes, after: str, until: str) -> bytes | None:
    """The packed changes that come after a point and not after another; None where there are none.

    All of them are the same bytes again.
    """
    rows = _rows(packed)
    orders = orders_of(rows)
    chosen = rows.filter(pc.and_(pc.greater(orders, after), pc.less_equal(orders, until)))
    if chosen.num_rows in (0, rows.num_rows):
        return packed if chosen.num_rows else None
    out = pa.BufferOutputStream()
    metadata = {SHAPE: rows.schema.metadata[SHAPE]}
    with pa.ipc.new_stream(out, rows.schema.with_metadata(metadata)) as stream:
        stream.write_table(chosen.combine_chunks())
    blob: bytes = out.getvalue().to_pybytes()
    return blob


def _rows(packed: bytes) -> pa.Table:
    with pa.ipc.open_stream(packed) as stream:
        return stream.read_all()
