"""Updates that change a key and leave out columns: their values are those of the row they move.

Such an update is a delete of the old key and, right after it, an upsert of the new one at the same
position and arrival. Only what the upsert leaves out is looked for under the old key: in earlier
changes of the batch, or in the landed row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.codec.sequence import supersedes
from headgate.landing.latest import (
    ARRIVAL,
    CombinedChanges,
    Indexes,
    Mask,
    key_codes,
    numpy_of,
    order_of,
)
from headgate.landing.table_rows import DELETE, UPSERT
from headgate.sinks.delta import sql
from headgate.sinks.delta.table import OP, POSITION, LandedTable


def with_moved_values(changes: CombinedChanges, table: LandedTable) -> CombinedChanges:
    """Changes in which updates of a key have the values that they leave out."""
    rows, key = changes.rows, table.shape.key
    moved = key_changes(rows)
    lacking = left_out(changes, moved, table)
    if not lacking:
        return changes
    landed = landed_rows(rows.take(moved - 1), list(lacking), table)
    codes = key_codes(pa.concat_tables([rows.select(key), landed.select(key)]), key)
    order, _ = order_of(rows, codes[: rows.num_rows])
    order = order[np.isin(codes[order], codes[np.concatenate([moved, moved - 1])])]
    positions = [*rows.column(POSITION).to_pylist(), *landed.column(POSITION).to_pylist()]
    unset, absent = dict(changes.unset), dict(changes.absent)
    deletes = numpy_of(rows.column(OP)) == DELETE
    for name, mask in lacking.items():
        at = moved_from(order, codes, positions, deletes, mask, moved)
        type_ = landed.schema.field(name).type
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, type_))
        column = rows.column(name).combine_chunks().cast(type_)
        both = pa.concat_arrays([column, landed.column(name).combine_chunks()])
        values = both.take(pa.array(np.where(at < 0, np.arange(rows.num_rows), at)))
        rows = rows.set_column(rows.column_names.index(name), name, values)
        unset[name] = mask & (at < 0)
        if name in absent:
            absent[name] = absent[name] & (at < 0)
    return CombinedChanges(rows, unset, absent)


def key_changes(rows: pa.Table) -> Indexes:
    """The upserts that are updates of a key: the delete of the old one is right before each."""
    ops = numpy_of(rows.column(OP))
    pairs = np.flatnonzero((ops[1:] == UPSERT) & (ops[:-1] == DELETE)) + 1
    for name in (POSITION, ARRIVAL):
        column = rows.column(name)
        same = pc.equal(column.take(pa.array(pairs)), column.take(pa.array(pairs - 1)))
        pairs = pairs[same.to_numpy().astype(np.bool_)]
    return pairs


def left_out(changes: CombinedChanges, moved: Indexes, table: LandedTable) -> dict[str, Mask]:
    """By column that some of these updates leave out: all changes that do."""
    masks: dict[str, Mask] = {}
    all_changes = np.ones(changes.rows.num_rows, np.bool_)
    for column in table.shape.columns:
        is_there = column.name in changes.rows.column_names
        mask = changes.unset.get(column.name) if is_there else all_changes
        if mask is not None and column.name not in table.shape.key and mask[moved].any():
            masks[column.name] = mask
    return masks


def landed_rows(old: pa.Table, columns: Sequence[str], table: LandedTable) -> pa.Table:
    """The landed rows that may be under the old keys."""
    key = table.shape.key
    ranges = [sql.among(old.column(name), name) for name in key]
    return table.rows([*key, POSITION, *columns], sql.all_of(ranges))


def moved_from(
    order: Indexes,
    codes: Indexes,
    positions: Sequence[str],
    deletes: Mask,
    lacking: Mask,
    moved: Indexes,
) -> Indexes:
    """For each change the row that has its value of a column; -1 but for updates of a key.

    Landed rows are numbered after the changes. A change that is older than the landed row of its
    key counts for nothing.
    """
    landed = {int(code): n for n, code in enumerate(codes[len(deletes) :], len(deletes))}
    current, updates = dict(landed), set(moved.tolist())
    before_delete: dict[int, int] = {}
    origins = np.full(len(deletes), -1, np.int64)
    for index in order.tolist():
        code = int(codes[index])
        if code in landed and not supersedes(positions[index], positions[landed[code]]):
            continue
        if deletes[index]:
            before_delete[index] = current.pop(code, -1)
        elif not lacking[index]:
            current[code] = index
        elif index in updates:
            origins[index] = current[code] = before_delete.get(index - 1, -1)
    return origins
