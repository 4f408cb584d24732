"""Batches of messages through the compiled loop; templates are learnt on the way."""

from __future__ import annotations

from random import Random
from time import process_time
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.cache import BoundedCache
from headgate.fastpath import kernel
from headgate.fastpath.learner import Learner
from headgate.fastpath.program import SEPARATOR, Program, Skeleton, Spliced, matrix
from headgate.fastpath.templates import Ask, Template, agrees, ask_codecs

ENOUGH = 8
"""The number of similar rows after which a template is learnt..."""
GROWTH = 64
"""...and one more row for each GROWTH templates that are known already."""
PATIENCE = 5.0
"""The seconds per batch for which templates are learnt."""
LOOKS = 20
"""The number of similar rows from which the most ordinary one is chosen."""
AT_ONCE, ROUNDS = 64, 4
"""How many templates are learnt in one round over a batch, and how many rounds there are."""
MOST_TEMPLATES, MOST_OF_SKELETON, MOST_BYTES = 20_000, 4_096, 2**27
MOST_SEEN = 100_000
"""How many kinds of rows are counted before counting restarts."""
WORTH, TRIES, REST = 0.5, 16, 64
"""The share of a batch that must be spliced, unless a template was learnt; for how many batches
splicing is tried below that; and how many batches are then left to the codecs."""
MOST_OUT = 2**31 - 1
"""The maximum size of an Arrow column."""


class Splicer:
    """Splices messages of one format into another, as far as it knows their templates."""

    def __init__(
        self, ask: Ask, reads_key: bool, most_bytes: int, unordered: str | None = None
    ) -> None:
        self.ask, self.reads_key = ask, reads_key
        self.sort_map = MapSorter(unordered) if unordered else None
        self.most = min(most_bytes, 2**31 - 1)
        self.learner = Learner(ask)
        self.program = Program()
        self.per_skeleton: dict[int, int] = {}
        self.rng = Random(11)
        self.seen: dict[int, int] = {}
        """The number of rows of each unknown template so far."""
        self.fruitless = self.resting = 0
        self.wrong = False
        """Whether the codecs ever disagreed: the caller has to stop then."""

    def run(self, keys: pa.Array | None, values: pa.Array) -> Spliced | None:
        """Run the loop over messages; None if nothing was spliced, or it was not tried."""
        if self.wrong:
            return None
        if self.resting:
            self.resting -= 1
            return None
        if self.sort_map is not None:
            values = self.sort_map(values)
        keyed = np.zeros(len(values), np.bool_)
        texts = values
        if self.reads_key and keys is not None and keys.null_count < len(keys):
            keyed = keys.is_valid().to_numpy(zero_copy_only=False)
            texts = joined(keys, values)
        data, offsets = bytes_of(texts)
        spliced = self.program.run(data, offsets, keyed, most=self.most)
        until = process_time() + PATIENCE
        before = len(self.program.templates)
        for round in range(ROUNDS):
            if not self.learn(spliced, data, offsets, keyed, until, round == 0):
                break
            spliced = self.program.run(data, offsets, keyed, most=self.most)
        if spliced.value_ends[-1] >= MOST_OUT or spliced.key_ends[-1] >= MOST_OUT:
            return None
        done = int(np.count_nonzero(spliced.templates >= 0))
        if done >= WORTH * len(values) or len(self.program.templates) > before:
            self.fruitless = 0
        else:
            self.fruitless += 1
            if self.fruitless >= TRIES:
                self.fruitless, self.resting = 0, REST
        if done and not self.agrees_with_codecs(spliced, data, offsets):
            self.wrong = True
            return None
        return spliced if done else None

    def learn(
        self, spliced: Spliced, data: Any, offsets: Any, keyed: Any, until: float, first: bool
    ) -> bool:
        """Learn templates of frequent kinds of rows; whether there is a new one.

        With `first`, these rows are counted: they were not in an earlier round.
        """
        rows = np.flatnonzero(spliced.templates == kernel.NEW)
        known = len(self.program.templates)
        if not len(rows) or known >= MOST_TEMPLATES or self.program.bytes >= MOST_BYTES:
            return False
        enough = ENOUGH + known // GROWTH
        new = False
        hashes = spliced.hashes[rows]
        for place in self.frequent(hashes, enough, first):
            if process_time() < until:
                alike = rows[hashes == hashes[place]][:LOOKS]
                texts = [data[offsets[row] : offsets[row + 1]].tobytes() for row in alike]
                # Little can be learnt from a message with an unusual value.
                text = min(texts, key=oddity)
                if (SEPARATOR in text) == keyed[alike[texts.index(text)]]:
                    new |= self.add_template(text)
        if new:
            self.program.build()
        return new

    def frequent(self, hashes: Any, enough: int, first: bool) -> list[int]:
        """The place of the first row of each frequent kind; at most AT_ONCE."""
        if len(self.seen) > MOST_SEEN:
            self.seen.clear()
        kinds, places, counts = np.unique(hashes, return_index=True, return_counts=True)
        frequent: list[tuple[int, int]] = []
        for kind, place, count in zip(kinds.tolist(), places.tolist(), counts.tolist()):
            total = count if not first else count + self.seen.get(kind, 0)
            total = self.seen[kind] = max(total, self.seen.get(kind, 0))
            if total >= enough:
                frequent.append((-total, place))
        return [place for _, place in sorted(frequent)[:AT_ONCE]]

    def add_template(self, text: bytes) -> bool:
        """Learn the template of one message, or that there is none; whether it is new."""
        starts, ends = self.learner.starts, self.learner.ends
        data = np.frombuffer(text, np.uint8)
        count = kernel.cut(data, 0, len(text), starts, ends)
        skeleton = int(kernel.skeleton_hash(data, 0, len(text), count, starts, ends))
        known = self.program.skeletons.get(skeleton)
        if known is not None and len(known.roles) != count:
            return False
        if self.per_skeleton.get(skeleton, 0) >= MOST_OF_SKELETON:
            return False
        template = self.learner.learn(text, known and known.roles)
        if known is None:
            known = self.program.skeletons[skeleton] = skeleton_of(template, count)
        kernel.cut(data, 0, len(text), starts, ends)  # learning has overwritten both
        roles = np.array([*known.roles, 0], np.uint8)
        h = int(
            kernel.leaf_hash(
                data, count, starts, ends, roles, 0, known.pairs, 0, len(known.pairs), skeleton
            )
        )
        if h in self.program.hashes:
            return False
        self.program.hashes[h] = self.program.add(template)
        self.per_skeleton[skeleton] = self.per_skeleton.get(skeleton, 0) + 1
        return True

    def agrees_with_codecs(self, spliced: Spliced, data: Any, offsets: Any) -> bool:
        """Whether the codecs have the same result for one row, chosen at random."""
        row = self.rng.choice(np.flatnonzero(spliced.templates >= 0))
        template = self.program.templates[spliced.templates[row]]
        records = np.flatnonzero(spliced.rows == row)
        made = [spliced.record(int(n)) for n in records], int(spliced.times[row])
        answer = ask_codecs(self.ask, data[offsets[row] : offsets[row + 1]].tobytes())
        return template is not None and agrees(made, answer, template)


class MapSorter:
    """Sorts one map of each message, where its order differs between messages.

    >>> texts = pa.array([b'{"m":{"a":"x","b":"y"},"n":1}', b'{"m":{"b":"y","a":"x"},"n":2}'])
    >>> MapSorter("m")(texts)[1].as_py()
    b'{"m":{"a":"x","b":"y"},"n":2}'
    """

    def __init__(self, member: str) -> None:
        self.start = f'"{member}":{{'.encode()
        self.maps: BoundedCache[bytes, bytes] = BoundedCache(sorted_map)
        self.needed = False

    def __call__(self, values: pa.Array) -> pa.Array:
        """The messages with the map sorted, once a batch has shown that its order differs."""
        if not self.needed:
            some = [t for t in values[:LOOKS].cast(pa.binary()).to_pylist() if t]
            maps = {sent for t in some if (sent := t[slice(*self.place(t))])}
            self.needed = len({self.maps[sent] for sent in maps}) < len(maps)
        if not self.needed:
            return values
        texts = map(self.with_sorted_map, values.cast(pa.binary()).to_pylist())
        return pa.array(texts, pa.binary(), size=len(values))

    def place(self, text: bytes) -> tuple[int, int]:
        """The start and end of the map; both 0 if there is none."""
        at = text.find(self.start)
        if at < 0:
            return 0, 0
        at += len(self.start) - 1
        return at, text.find(b"}", at) + 1

    def with_sorted_map(self, text: bytes | None) -> bytes | None:
        """One message with the map sorted."""
        if text is None:
            return None
        start, end = self.place(text)
        return text[:start] + self.maps[text[start:end]] + text[end:] if end else text


def sorted_map(sent: bytes) -> bytes:
    """A map of texts with its members sorted; anything else unchanged."""
    try:
        return msgspec.json.encode(_texts.decode(sent), order="sorted")
    except (msgspec.MsgspecError, UnicodeError):
        return sent


_texts = msgspec.json.Decoder(dict[str, str])


def oddity(text: bytes) -> int:
    """How many features a message has that some encoders treat specially."""
    return (not text.isascii()) + (b"__" in text) + any(c in text for c in (b"\\", b"<", b"&"))


def skeleton_of(template: Template | None, count: int) -> Skeleton:
    """The roles and pairs of a skeleton, from its first template."""
    roles = [kernel.FIXED] * count
    if template is None:
        return Skeleton(roles, matrix([], 2))
    for hole, (form, _, q) in template.forms.items():
        roles[hole] = kernel.ZEROS if form == kernel.STAMP and q >= 10 else kernel.HOLE
    return Skeleton(roles, matrix([pair[:2] for pair in template.pairs], 2))


def joined(keys: pa.Array, values: pa.Array) -> pa.Array:
    """Messages with their keys before them, where they have any."""
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
    starts = np.frombuffer(offsets, np.int64 if wide else np.int32)
    at = column.offset
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, "u1")
    return bytes_, starts[at : at + len(column) + 1].astype(np.int64)


def binary_array(data: Any, ends: Any, missing: Any) -> pa.Array:
    """Values that lie one after the other as a column; `missing` says which are null."""
    size = len(ends) - 1
    valid = None
    if missing.any():
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), size, [valid, offsets, pa.py_buffer(data)])


def by_kind(column: pa.Array, kinds: Any) -> pa.Array:
    """A column whose value depends on the kind of a record."""
    if column.null_count == len(column):
        return pa.nulls(len(kinds), column.type)
    return column.take(pa.array(kinds))
