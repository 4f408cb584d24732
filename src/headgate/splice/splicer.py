"""Batches of messages through the compiled loop: templates are learnt as they are met."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.splice import kernel
from headgate.splice.program import Program, Spliced
from headgate.splice.templates import SEPARATOR, Ask, Learner, agree, asked

ENOUGH = 8
"""So many rows of a batch must look alike for a template to be learnt."""
AT_ONCE, ROUNDS = 64, 4
"""How many templates are learnt of one look at a batch, and how often it is looked at."""
MOST_TEMPLATES, MOST_OF_SKELETON = 20_000, 4_096
WORTH = 0.5
"""What share of a batch must be spliced for the next one to be tried."""
REST = 20
"""How many batches are left to the codecs when it is less."""

log = logging.getLogger("headgate.splice")


class Splicer:
    """Splices messages of one format into another, as far as it knows their templates."""

    def __init__(self, ask: Ask, reads_key: bool, most_bytes: int) -> None:
        self.ask, self.reads_key = ask, reads_key
        self.most = min(most_bytes, 2**31 - 1)
        self.learner = Learner(ask)
        self.program = Program()
        self.per_skeleton: dict[int, int] = {}
        self.rng = Random(11)
        self.resting = 0
        self.wrong = False

    def run(self, keys: pa.Array | None, values: pa.Array) -> Spliced | None:
        """What the loop makes of messages; None if it is not worth trying."""
        if self.wrong:
            return None
        if self.resting:
            self.resting -= 1
            return None
        texts = joined(keys, values) if self.reads_key and keys is not None else values
        data, offsets = bytes_of(texts)
        spliced = self.program.run(data, offsets, most=self.most)
        for _ in range(ROUNDS):
            if not self.learn(spliced, data, offsets):
                break
            spliced = self.program.run(data, offsets, most=self.most)
        done = int(np.count_nonzero(spliced.templates >= 0))
        if done < WORTH * len(values):
            self.resting = REST
        if done and not self.is_right(spliced, data, offsets):
            self.wrong = True
            log.error(
                "splicing and the codecs disagree; the codecs' answer is used from here on. "
                "Please report this with an example of the topic's messages"
            )
            return None
        return spliced if done else None

    def learn(self, spliced: Spliced, data: Any, offsets: Any) -> bool:
        """Learn templates of rows that are many; whether there is anything new."""
        rows = np.flatnonzero(spliced.templates == kernel.NEW)
        if len(rows) < ENOUGH or len(self.program.templates) >= MOST_TEMPLATES:
            return False
        _, first, counts = np.unique(spliced.hashes[rows], return_index=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:AT_ONCE]
        new = False
        for n in order:
            if counts[n] >= ENOUGH:
                row = rows[first[n]]
                new |= self.take_in(data[offsets[row] : offsets[row + 1]].tobytes())
        if new:
            self.program.build()
        return new

    def take_in(self, text: bytes) -> bool:
        """Learn the template of one message, or that there is none; whether that is new."""
        starts, ends = self.learner.starts, self.learner.ends
        data = np.frombuffer(text, np.uint8)
        count = kernel.cut(data, 0, len(text), starts, ends)
        skeleton = int(kernel.skeleton_hash(data, 0, len(text), count, starts, ends))
        roles = self.program.skeletons.get(skeleton)
        if roles is not None and len(roles) != count:
            return False
        if self.per_skeleton.get(skeleton, 0) >= MOST_OF_SKELETON:
            return False
        template = self.learner.learn(text, roles)
        if roles is None:
            holes = set(template.holes) if template is not None else set()
            roles = self.program.skeletons[skeleton] = [i in holes for i in range(count)]
        kernel.cut(data, 0, len(text), starts, ends)  # learning has used the room
        told = np.array([*roles, False], np.uint8)
        h = int(kernel.leaf_hash(data, count, starts, ends, told, 0, skeleton))
        if h in self.program.hashes:
            return False
        self.program.hashes[h] = self.program.add(template)
        self.per_skeleton[skeleton] = self.per_skeleton.get(skeleton, 0) + 1
        return True

    def is_right(self, spliced: Spliced, data: Any, offsets: Any) -> bool:
        """Whether the codecs say the same of one row, chosen at random."""
        row = self.rng.choice(np.flatnonzero(spliced.templates >= 0))
        template = self.program.templates[spliced.templates[row]]
        records = np.flatnonzero(spliced.rows == row)
        made = [spliced.record(int(n)) for n in records], int(spliced.times[row])
        answer = asked(self.ask, data[offsets[row] : offsets[row + 1]].tobytes())
        return template is not None and agree(made, answer, template)


def joined(keys: pa.Array, values: pa.Array) -> pa.Array:
    """Messages with their keys before them, where they have any."""
    if keys.null_count == len(keys):
        return values
    keys, values = (column.cast(pa.binary()) for column in (keys, values))
    both = pc.binary_join_element_wise(keys, values, SEPARATOR)
    # A null key gives null: then the value alone. A null value stays one, and is not spliced.
    return pc.if_else(pc.is_null(keys), values, both)


def bytes_of(column: pa.Array) -> tuple[Any, Any]:
    """The bytes of a column and where each value begins; a null has none."""
    if column.null_count:
        column = pc.fill_null(column.cast(pa.binary()), b"")
    _, offsets, data = column.buffers()
    wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    found = np.frombuffer(offsets, np.int64 if wide else np.int32)
    at = column.offset
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, "u1")
    return bytes_, found[at : at + len(column) + 1].astype(np.int64)


def binary_array(data: Any, ends: Any, missing: Any) -> pa.Array:
    """Values that lie one after the other as a column; `missing` says which are null."""
    size = len(ends) - 1
    valid = None
    if missing.any():
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), size, [valid, offsets, pa.py_buffer(data)])


def by_kind(column: pa.Array, kinds: Any) -> pa.Array:
    """A column of what records of a kind have in common."""
    if column.null_count == len(column):
        return pa.nulls(len(kinds), column.type)
    return column.take(pa.array(kinds))
