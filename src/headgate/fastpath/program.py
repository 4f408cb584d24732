"""Templates laid out for the compiled loop, and its results for many messages at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.arrow.records import headers
from headgate.fastpath import kernel
from headgate.fastpath.kernel import LITERAL

if TYPE_CHECKING:
    from headgate.fastpath.templates import Template, WrittenRecord

ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
ROOM = 64
"""By how many bytes a converted value can be longer than the value itself."""
NONE = np.frombuffer(b"\0", np.uint8)
NO_TEMPLATE = (0, 0, 0, 0, 0, 0, -1, -1, 0, 0, -1, 0, 0)
SEPARATOR = b"\0"
"""Between key and value of a message; no JSON has it."""


class Skeleton(NamedTuple):
    """What messages of the same names and structure have in common."""

    roles: Sequence[int]
    """For each leaf: whether it is a hole (kernel.FIXED, HOLE, ZEROS)."""
    pairs: Any
    """The leaves of one column in both images of a row."""


class Columns(NamedTuple):
    """What all records of one kind have in common, by its number."""

    no_value: Any
    no_key: Any
    partition: pa.Array
    topic: pa.Array
    headers: pa.Array
    losses: pa.Array
    sink: Any
    table: pa.Array


def columns_of(made: Sequence[WrittenRecord]) -> Columns:
    """The columns of what templates fix."""
    return Columns(
        np.array([each.value is None for each in made], bool),
        np.array([each.key is None for each in made], bool),
        pa.array([each.partition for each in made], pa.int32()),
        pa.array([each.topic for each in made], pa.string()),
        headers([each.headers for each in made]),
        pa.array([each.losses for each in made], pa.list_(pa.string())),
        np.array([each.sink for each in made], np.int32),
        pa.array([each.table for each in made], pa.string()),
    )


class Spliced(NamedTuple):
    """The results of the loop for a batch."""

    templates: Any
    """For each row: its template, or why it has none (NEW, SLOW)."""
    hashes: Any
    times: Any
    rows: Any
    """For each record: its source row."""
    kinds: Any
    """For each record: its number among the records of all templates."""
    values: Any
    value_ends: Any
    keys: Any
    key_ends: Any
    made: Sequence[WrittenRecord]
    columns: Columns

    def record(self, n: int) -> WrittenRecord:
        """One record as the codecs would give it."""
        fixed = self.made[self.kinds[n]]
        value = self.values[self.value_ends[n] : self.value_ends[n + 1]].tobytes()
        key = self.keys[self.key_ends[n] : self.key_ends[n + 1]].tobytes()
        record: WrittenRecord = fixed._replace(
            value=None if fixed.value is None else value, key=None if fixed.key is None else key
        )
        return record


def matrix(rows: Sequence[Sequence[int]], width: int) -> Any:
    """Rows of whole numbers."""
    return np.array(rows, np.int64).reshape(-1, width)


class Program:
    """Templates as the compiled loop reads them, one behind the other in its arrays."""

    def __init__(self, templates: Sequence[Template | None] = ()) -> None:
        self.templates: list[Template | None] = []
        self.skeletons: dict[int, Skeleton] = {}
        self.hashes: dict[int, int] = {}
        self.made: list[WrittenRecord] = []
        self.rows, self.leaves, self.pairs = Stack(13), Stack(6), Stack(3)
        self.records, self.ops = Stack(4), Stack(3)
        self.samples, self.literals = bytearray(), bytearray()
        for template in templates:
            self.add(template)
        self.build()

    @property
    def bytes(self) -> int:
        """The size of the texts of all templates."""
        return len(self.samples) + len(self.literals)

    def add(self, template: Template | None) -> int:
        """Add a template, or that there is none; `build` makes it known to the loop."""
        self.templates.append(template)
        self.rows.add([NO_TEMPLATE if template is None else self.lay(template)])
        return len(self.templates) - 1

    def lay(self, template: Template) -> tuple[int, ...]:
        """Lay a template out behind the others; where all of it is."""
        start, literal = len(self.samples), len(self.literals)
        self.samples += template.text
        self.literals += template.literals
        leaves = self.leaves.add(
            (i, start + template.leaves[i].start, start + template.leaves[i].end,
             *template.forms[i])
            for i in template.holes
        )  # fmt: skip
        pairs = self.pairs.add(template.pairs)
        records, copies = [], 0
        for pieces in zip(template.values, template.keys):
            places: list[int] = []
            for each in pieces:
                places += self.ops.add(
                    (op, a + literal if op == LITERAL else a, b) for op, a, b in each
                )
                copies += len(each)
            records.append(places)
        self.made += template.answer.records
        return (
            *leaves, start, len(self.samples), *pairs, *self.records.add(records),
            len(template.literals) + ROOM * copies, copies,
            template.time_leaf, template.time_factor, int(SEPARATOR in template.text),
        )  # fmt: skip

    def template_counts(self, spliced: Spliced) -> list[tuple[Template, int]]:
        """The templates that were used, with the number of rows."""
        used = spliced.templates[spliced.templates >= 0]
        numbers, counts = np.unique(used, return_counts=True)
        known = ((self.templates[n], int(count)) for n, count in zip(numbers, counts))
        return [(template, count) for template, count in known if template is not None]

    def build(self) -> None:
        """Make the arrays of the loop."""
        self.columns = columns_of(self.made)
        known = [*self.skeletons.values()]
        roles = [role for each in known for role in each.roles]
        leaf_ends = np.cumsum([0, *(len(each.roles) for each in known)])
        pair_ends = np.cumsum([0, *(len(each.pairs) for each in known)])
        ranges = [leaf_ends[:-1], leaf_ends[1:], pair_ends[:-1], pair_ends[1:]]
        self.arrays = (
            *table({h: n for n, h in enumerate(self.skeletons)}),
            np.stack(ranges, axis=1).astype(np.int64),
            np.array([*roles, 0], np.uint8),
            np.concatenate([each.pairs for each in known]) if known else matrix([], 2),
            *table(self.hashes),
            self.rows.array(),
            np.full(len(self.templates) + 1, -1, np.int64),  # which template came after which
            self.leaves.array(), frozen(self.samples), self.pairs.array(),
            self.records.array(), self.ops.array(), frozen(self.literals), ALPHABET,
        )  # fmt: skip

    def run(
        self, data: Any, offsets: Any, keyed: Any = None, only: bool = False, most: int = 2**31
    ) -> Spliced:
        """Run the loop over messages; `keyed`: which of them begin with their key.

        With `only`, all messages are compared with the one template.
        """
        rows = len(offsets) - 1
        data = data.view()
        data.setflags(write=False)  # a loop over writeable bytes would be compiled beside this
        if keyed is None:
            keyed = np.zeros(rows, np.bool_)
        templates = np.full(rows, kernel.SLOW, np.int32)
        hashes, times = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        size = 2 * int(offsets[-1] - offsets[0]) + 100_000
        values, keys = np.empty(size, np.uint8), np.empty(size // 8 + 100_000, np.uint8)
        records = 2 * rows + 16
        value_ends, key_ends = np.zeros(records + 1, np.int64), np.zeros(records + 1, np.int64)
        record_rows, kinds = np.empty(records, np.int32), np.empty(records, np.int32)
        counts = np.zeros(3, np.int64)
        starts, ends = (np.zeros(kernel.MOST_LEAVES, np.int64) for _ in range(2))
        row = 0
        while True:
            row = kernel.splice(
                data, offsets, keyed, row, most, only, *self.arrays, templates, hashes, times,
                values, value_ends, keys, key_ends, record_rows, kinds, counts, starts, ends,
            )  # fmt: skip
            if row == rows:
                break
            values, keys = larger(values), larger(keys)
            value_ends, key_ends = larger(value_ends), larger(key_ends)
            record_rows, kinds = larger(record_rows), larger(kinds)
        n = int(counts[0])
        return Spliced(
            templates, hashes, times, record_rows[:n], kinds[:n],
            values[: counts[1]], value_ends[: n + 1], keys[: counts[2]], key_ends[: n + 1],
            self.made, self.columns,
        )  # fmt: skip


def larger(array: Any) -> Any:
    """The same with twice the room, and then some."""
    return np.concatenate([array, np.empty(len(array) + 1_000, array.dtype)])


class Stack:
    """Rows of whole numbers that are only ever added to."""

    def __init__(self, width: int) -> None:
        self.width, self.size = width, 0
        self.done = matrix([], width)
        self.new: list[Sequence[int]] = []

    def add(self, rows: Iterable[Sequence[int]]) -> tuple[int, int]:
        """Add rows; where they begin and end."""
        start = self.size
        self.new += rows
        self.size = len(self.done) + len(self.new)
        return start, self.size

    def array(self) -> Any:
        """All rows."""
        if self.new:
            self.done = np.concatenate([self.done, matrix(self.new, self.width)])
            self.new = []
        return self.done


def frozen(text: bytearray) -> Any:
    """Bytes as an array."""
    return np.frombuffer(bytes(text), np.uint8) if text else NONE


def table(entries: dict[int, int]) -> tuple[Any, Any]:
    """A hash table for the loop: at most half full, -1 where nothing is."""
    size = 16
    while size < 2 * len(entries):
        size *= 2
    keys, values = np.zeros(size, np.int64), np.full(size, -1, np.int32)
    for h, value in entries.items():
        at = (h ^ (h >> 29)) & (size - 1)
        while values[at] >= 0:
            at = (at + 1) & (size - 1)
        keys[at], values[at] = h, value
    return keys, values
