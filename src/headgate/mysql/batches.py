"""Transactions as Arrow batches of events.

Rows of one table are read together, and put back into the order of the binlog at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.arrow.events import (
    EVENT_SCHEMA,
    TEXT_MAP,
    TIME,
    key_lists,
    text_maps,
    to_batch,
    type_maps,
)
from headgate.core.event import Event
from headgate.mysql.compilation import ROW_LOOPS
from headgate.mysql.repetition import Repetitions
from headgate.mysql.rows import Images, RowGroup, read_images
from headgate.mysql.transactions import PlacedRows, Transaction, constants

ROW_MEMBERS = ("row", "xoffset")
"""The members of a position that differ from row to row of an event."""


MEMBERS = "members"
"""The names of a position's members, among the columns that rows share."""
KEPT_GROUPS = 4
"""So many groups of rows keep the columns that they share."""
CHUNK_BYTES = 2 * 1024 * 1024
"""So many bytes of rows are read together; as events they take about seven times as much, more if
rows are short."""
Numbers = dict[int, tuple[int, int]]
"""By an entry's order: the number of its first row at its position, and in its transaction."""


class _Entry(NamedTuple):
    """A rows event of a chunk."""

    order: int
    """Its place among the items of the chunk."""
    placed: PlacedRows
    transaction: Transaction
    is_last: bool
    """Whether its last row is the last of its transaction."""


class BatchMaker:
    """Makes batches of transactions; it counts the rows of one that comes in parts."""

    def __init__(self, markers: bool = False) -> None:
        """With `markers` a transaction's beginning and end are events too."""
        self._markers = markers
        self._before: tuple[str, int] | None = None
        """The position of the rows before."""
        self._row = self._counted = 0
        self._shared: dict[tuple[RowGroup, tuple[str, ...]], Repetitions] = {}

    def make(self, transactions: Iterable[Transaction]) -> Iterator[list[pa.RecordBatch]]:
        """The events of transactions, in order, in chunks of a bounded size."""
        entries: list[_Entry] = []
        others: list[tuple[int, Event]] = []
        size = 0
        for item, transaction, is_last in self._items(transactions):
            order = len(entries) + len(others)
            if isinstance(item, Event):
                others.append((order, item))
            else:
                entries.append(_Entry(order, item, transaction, is_last))
                size += len(item.rows.data)
            if size >= CHUNK_BYTES:
                yield self._made(entries, others)
                entries, others, size = [], [], 0
        if entries or others:
            yield self._made(entries, others)

    def _items(
        self, transactions: Iterable[Transaction]
    ) -> Iterator[tuple[PlacedRows | Event, Transaction, bool]]:
        """Rows and events, and which rows are the last of their transaction."""
        for each in transactions:
            last = _last_rows(each) if each.is_last else None
            has_markers = self._markers and each.has_boundaries
            if has_markers and each.is_first:
                yield marker(each, "begin", each.begin), each, False
            for item in each.items:
                yield item, each, item is last
            if has_markers and each.is_last:
                yield marker(each, each.outcome, each.last), each, False

    def _made(
        self, entries: Sequence[_Entry], others: Sequence[tuple[int, Event]]
    ) -> list[pa.RecordBatch]:
        groups: dict[tuple[RowGroup, tuple[str, ...]], list[_Entry]] = {}
        for entry in entries:
            key = (entry.placed.rows.group, _members(entry.transaction))
            groups.setdefault(key, []).append(entry)
        images = {key: read_images(key[0], [entry.placed.rows.data for entry in group])
                  for key, group in groups.items()}  # fmt: skip
        numbers = self._numbers(entries, groups, images)
        batches = [
            _batch(self._shared_of(key), group, images[key], numbers)
            for key, group in groups.items()
        ]
        orders = [
            np.repeat([entry.order for entry in group], images[key].counts)
            for key, group in groups.items()
        ]
        if others:
            batches.append(to_batch([event for _, event in others]))
            orders.append(np.array([at for at, _ in others]))
        kept = [at for at, order in enumerate(orders) if len(order)]
        return _in_order([batches[at] for at in kept], [orders[at] for at in kept])

    def _shared_of(self, key: tuple[RowGroup, tuple[str, ...]]) -> Repetitions:
        """What the rows of a group share, kept for the next chunk."""
        if key not in self._shared:
            if len(self._shared) >= KEPT_GROUPS:
                self._shared.clear()
            self._shared[key] = _shared_columns(*key)
        return self._shared[key]

    def _numbers(
        self, entries: Sequence[_Entry], groups: dict[Any, list[_Entry]], images: dict[Any, Images]
    ) -> Numbers:
        counts = {
            entry.order: count
            for key, group in groups.items()
            for entry, count in zip(group, images[key].counts)
        }
        numbers: Numbers = {}
        for entry in entries:
            transaction, position = entry.transaction, (entry.transaction.file, entry.placed.pos)
            if position != self._before:
                self._row, self._before = 0, position
            if not transaction.is_counted:
                transaction.is_counted = True
                self._counted = 0 if transaction.is_first else self._counted
            numbers[entry.order] = (self._row, self._counted)
            self._row += counts[entry.order]
            self._counted += counts[entry.order]
        return numbers


def marker(transaction: Transaction, op: str, pos: int) -> Event:
    """The beginning or the end of a transaction."""
    position = {"file": transaction.file, "pos": str(pos), **constants(transaction)}
    extra = None if transaction.xa is None else {"xa": transaction.xa}
    return Event("marker", op, position=position, event_time=transaction.time * 1_000_000,
                 extra=extra)  # fmt: skip


def _last_rows(transaction: Transaction) -> PlacedRows | None:
    for item in reversed(transaction.items):
        if isinstance(item, PlacedRows):
            return item
    return None


def _members(transaction: Transaction) -> tuple[str, ...]:
    """The names of the members of a position."""
    return ("file", "pos", *constants(transaction), *ROW_MEMBERS)


def _shared_columns(group: RowGroup, members: Sequence[str]) -> Repetitions:
    """What all rows of a group have, and the names of the members of their positions."""
    table = group.table
    texts = {"kind": "row", "op": group.op, "database": table.database, "table": table.table}
    return Repetitions({
        **{name: pa.array([text], pa.string()) for name, text in texts.items()},
        "key": pa.nulls(1, pa.list_(pa.string())) if table.key is None else key_lists([table.key]),
        "types": type_maps([table.types]),
        MEMBERS: pa.array(members, pa.string()),
    })  # fmt: skip


def _batch(
    shared: Repetitions, entries: Sequence[_Entry], images: Images, numbers: Numbers
) -> pa.RecordBatch:
    """The rows of one group."""
    counts = np.array(images.counts, np.int64)
    rows = int(counts.sum())
    same = shared.of(rows)
    times = np.repeat([entry.placed.time * 1_000_000 for entry in entries], counts)
    columns = same | {
        "before": images.before,
        "after": images.after,
        "event_time": pa.array(times, TIME),
        "position": _positions(entries, same[MEMBERS], counts, numbers),
        "extra": _extras(entries, images, counts),
    }
    return pa.RecordBatch.from_arrays(
        [columns.get(field.name, pa.nulls(rows, field.type)) for field in EVENT_SCHEMA],
        schema=EVENT_SCHEMA,
    )


def _positions(
    entries: Sequence[_Entry], members: pa.Array, counts: Any, numbers: Numbers
) -> pa.Array:
    """Where rows are; `members` are the names of all members, row by row."""
    made: list[str] = []
    shared: dict[int, list[str]] = {}
    for entry in entries:
        transaction = entry.transaction
        texts = shared.get(id(transaction))
        if texts is None:
            texts = shared[id(transaction)] = [*constants(transaction).values()]
        made += (transaction.file, str(entry.placed.pos), *texts)
    firsts = np.array([numbers[entry.order] for entry in entries], np.int64).reshape(-1, 2)
    return position_maps(made, counts, firsts, members)


def position_maps(made: Sequence[str], counts: Any, firsts: Any, members: pa.Array) -> pa.Array:
    """The positions of rows; `members` are their names, row by row, the other arguments those of
    `position_texts`."""
    print_positions = position_texts
    if ROW_LOOPS.is_ready():
        print_positions = import_module("headgate.mysql.compiled").position_texts
    values, rows = print_positions(made, counts, firsts), int(counts.sum())
    width = len(members) // max(rows, 1)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width)
    return pa.MapArray.from_arrays(offsets, members, values, type=TEXT_MAP)


def position_texts(made: Sequence[str], counts: Any, firsts: Any) -> pa.Array:
    """The members of each row's position: the texts that were made for its event, then numbers
    that count rows from the first ones of the event on.

    >>> position_texts(["a", "b"], np.array([2, 1]), np.array([[0], [5]])).to_pylist()
    ['a', '0', 'a', '1', 'b', '5']
    """
    rows, fixed = int(counts.sum()), len(made) // len(counts)
    indexes = np.empty((rows, fixed + firsts.shape[1]), np.int64)
    of_event = np.repeat(np.arange(len(counts)) * fixed, counts)
    indexes[:, :fixed] = of_event[:, None] + np.arange(fixed)
    within = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
    texts = list(made)
    for at in range(firsts.shape[1] if rows else 0):
        row_numbers = np.repeat(firsts[:, at], counts) + within
        lowest = int(row_numbers.min())
        indexes[:, fixed + at] = row_numbers - lowest + len(texts)
        texts += map(str, range(lowest, int(row_numbers.max()) + 1))
    return pa.array(texts, pa.string()).take(pa.array(indexes.reshape(-1)))


def _extras(entries: Sequence[_Entry], images: Images, counts: Any) -> pa.Array:
    """What is missing, and which row is the last of its transaction."""
    extra: dict[str, str | None] = {}
    if images.unavailable is not None:
        extra["unavailable"] = images.unavailable
    last = np.repeat([entry.is_last for entry in entries], counts)
    ends = np.cumsum(counts)
    indexes = np.zeros(len(last), np.int32)
    indexes[ends[counts > 0] - 1] = last[ends[counts > 0] - 1]
    return text_maps([extra or None, {**extra, "commit": "true"}]).take(pa.array(indexes))


def _in_order(batches: list[pa.RecordBatch], orders: list[Any]) -> list[pa.RecordBatch]:
    """Batches in the order of the binlog: one after the other, or mixed in one."""
    parts = sorted(zip(orders, batches), key=lambda part: part[0][0])
    if all(one[0][-1] < next_one[0][0] for one, next_one in pairwise(parts)):
        return [batch for _, batch in parts]
    order = np.concatenate(orders)
    joined = pa.concat_batches(batches)
    return [joined.take(pa.array(np.argsort(order, kind="stable")))]
