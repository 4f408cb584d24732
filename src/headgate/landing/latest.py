"""The last change of each key: all that a merge needs of many changes of one table.

Which of two changes is newer is decided by their positions (`codec.sequence.supersedes`), and by
arrival where these are equal; of one commit's changes an upsert follows a delete. Columns that a
change does not have (a partial image) are those of the change before it. All of this works on whole
columns; only where positions of a key are of several kinds, as when a source has been replaced, are
its changes taken one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.codec.sequence import COMMIT, KIND, SNAPSHOT, supersedes
from headgate.landing.table_rows import DELETE, TRUNCATE, UPSERT

OP, POSITION, ARRIVAL, ABSENT = "_op", "_position", "_arrival", "_absent"

Indexes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CombinedChanges:
    """Changes of one table as they came, and what some of them do not have."""

    rows: pa.Table
    """`_op`, `_position`, `_arrival` and the columns of the table."""
    unset: dict[str, Mask] = field(default_factory=dict)
    """By column: the changes that leave it as it is."""
    absent: dict[str, Mask] = field(default_factory=dict)
    """Of these the changes that leave it out of a row that has it: only the landed row has the
    value. Elsewhere the column did not exist for the change, and a new row has null."""
    partial: Mask | None = None
    """The changes that may lack columns of which they do not know."""


@dataclass(frozen=True)
class Gap:
    """A column that the last change of some keys leaves as it is."""

    rows: Mask
    """The rows whose last change does not have it; an earlier change may."""
    known_at: pa.Array
    """Where their value comes from: the position of an earlier change. A landed row that is newer
    has the right one, and any landed row where this is null."""
    required: Mask
    """Rows that have a value which no change has: without a landed row they cannot be landed."""


@dataclass(frozen=True)
class Latest:
    """One change for each key."""

    rows: pa.Table
    """`_op` (0 upsert, 1 delete), `_position` and the columns of the table."""
    gaps: dict[str, Gap] = field(default_factory=dict)
    """Columns whose values may have to be those of landed rows."""
    newer: Mask | None = None
    """Rows that are newer than any landed row, because the source was replaced in between."""
    truncated: str | None = None
    """The position of the newest TRUNCATE: landed rows before it are gone."""


def combined(tables: Sequence[pa.Table]) -> CombinedChanges:
    """Several tables of changes as one.

    >>> one = pa.table({"_op": [0], "_position": ["o1"], "_arrival": ["1"], "id": [1], "n": [5]})
    >>> other = pa.table({"_op": [0], "_position": ["o2"], "_arrival": ["2"], "id": [1]})
    >>> combined([one, other]).unset
    {'n': array([False,  True])}
    """
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    unset: dict[str, Mask] = {}
    for name in names:
        lacks = [name not in table.column_names for table in tables]
        if name != ABSENT and any(lacks):
            unset[name] = np.repeat(lacks, [table.num_rows for table in tables])
    rows = pa.concat_tables(
        [table.replace_schema_metadata() for table in tables], promote_options="permissive"
    ).combine_chunks()
    absent: dict[str, Mask] = {}
    partial: Mask | None = None
    if ABSENT in rows.column_names:
        absent = absent_columns(rows.column(ABSENT))
        partial = pc.is_valid(rows.column(ABSENT)).to_numpy()
        rows = rows.drop_columns([ABSENT])
        for name, mask in absent.items():
            unset[name] = unset[name] | mask if name in unset else mask
            if name not in rows.column_names:  # no change has it
                rows = rows.append_column(name, pa.nulls(rows.num_rows))
    return CombinedChanges(rows, unset, absent, partial)


def absent_columns(lists: pa.ChunkedArray) -> dict[str, Mask]:
    """By column, the rows whose list names it."""
    parents = numpy_of(pc.list_parent_indices(lists))
    encoded = pc.list_flatten(lists).combine_chunks().dictionary_encode()
    codes = numpy_of(encoded.indices)
    masks: dict[str, Mask] = {}
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        mask = np.zeros(len(lists), np.bool_)
        mask[parents[codes == code]] = True
        masks[name] = mask
    return masks


def latest(changes: CombinedChanges, key: Sequence[str], *, keep_deleted: bool = False) -> Latest:
    """The last change of each key.

    With `keep_deleted` a delete leaves the other columns as they are (soft deletes); else what
    follows a delete is a new row.

    >>> rows = pa.table({"_op": [0, 1, 0], "_position": ["00000000" + n for n in "132"],
    ...                  "_arrival": ["1", "2", "3"], "id": [1, 1, 1], "n": [5, None, 6]})
    >>> latest(CombinedChanges(rows), ["id"]).rows.to_pylist()
    [{'_op': 1, '_position': '000000003', 'id': 1, 'n': None}]
    """
    changes, truncated = after_truncates(changes)
    rows = changes.rows
    for name in key:  # TRUNCATE has none
        if name not in rows.column_names and not rows.num_rows:
            rows = rows.append_column(name, pa.nulls(0))
    codes = key_codes(rows, key)
    order, replaced = order_of(rows, codes)
    last = last_of_each(codes, order)
    winners = np.sort(last[last >= 0])
    taken = {OP: rows.column(OP).take(winners), POSITION: rows.column(POSITION).take(winners)}
    gaps: dict[str, Gap] = {}
    deleted = numpy_of(rows.column(OP)) == DELETE
    for name in rows.column_names:
        if name in (OP, POSITION, ARRIVAL):
            continue
        lacking = changes.unset.get(name)
        if keep_deleted and name not in key:
            lacking = deleted if lacking is None else lacking | deleted
        if lacking is None or not lacking[winners].any():
            taken[name] = rows.column(name).take(winners)
            continue
        has = ~lacking if keep_deleted else ~lacking | deleted
        known = last_of_each(codes, order[has[order]])[codes[winners]]
        unknown = (known < 0) | deleted[known]  # a delete leaves no values for what follows it
        taken[name] = rows.column(name).take(pa.array(known, mask=unknown))
        required = np.zeros(len(winners), np.bool_)
        if name in changes.absent:
            left_out = np.zeros(len(last), np.bool_)
            left_out[codes[changes.absent[name]]] = True
            describes = has | ~(changes.absent[name] | deleted)  # a whole row had no such column
            described = last_of_each(codes, order[describes[order]])[codes[winners]]
            required = left_out[codes[winners]] & ((described < 0) | deleted[described])
            required &= ~deleted[winners]
        known_at = rows.column(POSITION).take(pa.array(known, mask=known < 0)).combine_chunks()
        gaps[name] = Gap(lacking[winners] & (keep_deleted | ~deleted[winners]), known_at, required)
    newer = None if replaced is None else replaced[codes[winners]]
    return Latest(pa.table(taken), gaps, newer, truncated)


def after_truncates(changes: CombinedChanges) -> tuple[CombinedChanges, str | None]:
    """The changes that no TRUNCATE among them removes, and the position of the newest."""
    ops = numpy_of(changes.rows.column(OP))
    if not (ops == TRUNCATE).any():
        return changes, None
    positions = changes.rows.column(POSITION).to_pylist()
    arrivals = changes.rows.column(ARRIVAL).to_pylist()
    kept = ops != TRUNCATE
    newest = -1

    def is_before(one: int, other: int) -> bool:
        if arrivals[one] <= arrivals[other]:
            return supersedes(positions[other], positions[one])
        return not supersedes(positions[one], positions[other])

    for index in np.flatnonzero(ops == TRUNCATE).tolist():
        if newest < 0 or is_before(newest, index):
            newest = index
        for other in np.flatnonzero(kept).tolist():
            kept[other] = not is_before(other, index)
    return filtered(changes, kept), positions[newest]


def filtered(changes: CombinedChanges, kept: Mask) -> CombinedChanges:
    """Some of the changes."""
    return CombinedChanges(
        changes.rows.filter(pa.array(kept)).combine_chunks(),
        {name: mask[kept] for name, mask in changes.unset.items()},
        {name: mask[kept] for name, mask in changes.absent.items()},
        None if changes.partial is None else changes.partial[kept],
    )


def key_codes(rows: pa.Table, key: Sequence[str]) -> Indexes:
    """A number for each row; rows with equal keys, and only they, have the same.

    >>> key_codes(pa.table({"a": [1, 1, 2, 1], "b": ["x", "y", "x", "x"]}), ["a", "b"]).tolist()
    [0, 1, 2, 0]
    """
    codes = np.zeros(rows.num_rows, np.int64)
    for number, name in enumerate(key):
        column = rows.column(name).combine_chunks()
        encoded = column.dictionary_encode(null_encoding="encode")
        part = numpy_of(encoded.indices).astype(np.int64)
        if number:
            pairs = pa.array(codes * len(encoded.dictionary) + part)
            part = numpy_of(pairs.dictionary_encode().indices).astype(np.int64)
        codes = part
    return codes


def order_of(rows: pa.Table, codes: Indexes) -> tuple[Indexes, Mask | None]:
    """The changes of each key in their order, and the keys whose source was replaced in between.

    What does not count at all is left out: a snapshot's row after a change of another kind.
    """
    by, keys = rows.select([POSITION, ARRIVAL]), [POSITION, ARRIVAL]
    if DELETE in rows.column(OP).unique().to_pylist():
        of_commit = pc.starts_with(rows.column(POSITION), COMMIT)
        is_last = pc.and_(of_commit, pc.equal(rows.column(OP), UPSERT)).cast(pa.int8())
        by, keys = by.append_column("last", is_last), [POSITION, "last", ARRIVAL]
    ascending = [(name, "ascending") for name in keys]
    order = numpy_of(pc.sort_indices(by, ascending)).astype(np.int64)
    prefixes = pc.utf8_slice_codeunits(rows.column(POSITION), 0, KIND).combine_chunks()
    kinds = numpy_of(prefixes.dictionary_encode().indices)
    if not kinds.any():
        return order, None
    some_kind = np.zeros(int(codes.max()) + 1, kinds.dtype)
    some_kind[codes] = kinds
    mixed = np.zeros(len(some_kind), np.bool_)
    mixed[codes[kinds != some_kind[codes]]] = True
    if not mixed.any():
        return order, None
    applied, replaced = one_by_one(rows, codes, np.flatnonzero(mixed[codes]), len(mixed))
    return np.concatenate([order[~mixed[codes[order]]], applied]), replaced


def one_by_one(rows: pa.Table, codes: Indexes, chosen: Indexes, keys: int) -> tuple[Indexes, Mask]:
    """Changes that supersede those of their key that arrived before, in order of arrival.

    Also the keys where one has followed another whose position does not compare with its own.
    """
    some = rows.select([POSITION, ARRIVAL]).take(chosen)
    by_arrival = numpy_of(pc.sort_indices(some, [(ARRIVAL, "ascending"), (POSITION, "ascending")]))
    positions = some.column(POSITION).to_pylist()
    deletes = numpy_of(rows.column(OP).take(chosen)) == DELETE
    current: dict[int, str] = {}
    applied: list[int] = []
    replaced = np.zeros(keys, np.bool_)
    for index in by_arrival.tolist():
        code, position = int(codes[chosen[index]]), positions[index]
        before = current.get(code)
        if before is not None:
            of_commit = position == before and position.startswith(COMMIT)
            if not supersedes(position, before) or (of_commit and deletes[index]):
                continue
            kinds = {before[:KIND], position[:KIND]}
            replaced[code] |= len(kinds) == 2 and SNAPSHOT not in kinds
        current[code] = position
        applied.append(int(chosen[index]))
    return np.array(applied, np.int64), replaced


def last_of_each(codes: Indexes, order: Indexes) -> Indexes:
    """For each key the index of its last row in an order of rows; -1 where it has none."""
    last = np.full(int(codes.max()) + 1 if len(codes) else 0, -1, np.int64)
    last[codes[order]] = order  # of several values for one place the last one stays
    return last


def numpy_of(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A column of numbers without nulls."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return numbers
