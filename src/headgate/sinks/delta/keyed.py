"""Merging changes into a table with a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.codec.sequence import COMMIT, KIND, SNAPSHOT
from headgate.core.errors import shown
from headgate.landing.latest import CombinedChanges, Gap, Latest, Mask, key_codes, latest, numpy_of
from headgate.landing.table_rows import DELETE, TRUNCATE, UPSERT
from headgate.sinks.delta import sql
from headgate.sinks.delta.deleted import DeletedKeys, key_texts
from headgate.sinks.delta.key_changes import with_moved_values
from headgate.sinks.delta.lake import named
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.outcome import Merged
from headgate.sinks.delta.table import DELETED, OP, POSITION, LandedTable, TableError, Token

NEWER = "_newer"
"""A column of what is merged: whether a row is newer than any landed one."""


class FinalRows(NamedTuple):
    """What changes make of a table's rows, before anything is written."""

    rows: pa.Table
    """One for each key, with `_op`, `_position` and the columns that the changes have."""
    last: Latest
    ignored: int
    """Changes that are older than what is remembered of deleted keys."""


def merge_by_key(
    table: LandedTable,
    token: Token,
    changes: CombinedChanges,
    deleted: DeletedKeys,
    options: DeltaOptions,
) -> Merged:
    """Merge changes of a table with a key: one commit."""
    soft = options.deletes == "soft"
    rows, last, ignored = final_rows(table, changes, deleted, options)
    remember(last, () if soft else table.shape.key, deleted)
    merged = write(table, token, rows, last, soft=soft)
    merged.ignored_old += ignored
    return merged


def final_rows(
    table: LandedTable, changes: CombinedChanges, deleted: DeletedKeys, options: DeltaOptions
) -> FinalRows:
    """The last state of each key that has changes, completed by what is landed."""
    key, soft = table.shape.key, options.deletes == "soft"
    check_key(changes.rows, table)
    changes = with_unknown(changes, table)
    last = latest(with_moved_values(changes, table), key, keep_deleted=soft)
    outdated = outdated_upserts(last.rows, key, deleted)
    ignored = int(outdated.sum())
    last = some_of(last, ~outdated) if ignored else last
    rows = completed(last, table, null_missing=options.on_misfit == "null")
    if soft or DELETED in table.schema.names:
        rows = rows.append_column(DELETED, pc.equal(rows.column(OP), DELETE))
    if soft:  # a row stays, with its mark
        upserts = pa.array(np.full(rows.num_rows, UPSERT), pa.int8())
        rows = rows.set_column(rows.column_names.index(OP), OP, upserts)
    return FinalRows(rows, last, ignored)


def check_key(changes: pa.Table, table: LandedTable) -> None:
    """Refuse changes that do not have the key."""
    rows = changes.filter(pc.not_equal(changes.column(OP), TRUNCATE))
    for name in table.shape.key:
        if rows.num_rows and (name not in rows.column_names or rows.column(name).null_count):
            raise TableError(
                f"rows of {shown(named(table.shape.table))} have no {shown(name)}, a column of "
                "its key",
                "land the table anew, if its key has changed",
            )


def with_unknown(changes: CombinedChanges, table: LandedTable) -> CombinedChanges:
    """Changes with what partial ones leave out, also of columns that only the table has.

    One of those is enough to find out whether their rows are landed.
    """
    partial = changes.partial
    if partial is None or not partial.any():
        return changes
    rows, unset, absent = changes.rows, dict(changes.unset), dict(changes.absent)
    here = {column.name for column in table.shape.columns if not column.dropped}
    here.difference_update(table.shape.key)
    for name in here.intersection(unset):
        absent[name] = absent.get(name, False) | (partial & unset[name])
    elsewhere = here.difference(rows.column_names)
    if elsewhere:
        name = min(elsewhere)
        rows = rows.append_column(name, pa.nulls(rows.num_rows, table.schema.field(name).type))
        unset[name], absent[name] = np.ones(rows.num_rows, np.bool_), partial
    return replace(changes, rows=rows, unset=unset, absent=absent, partial=None)


def outdated_upserts(rows: pa.Table, key: Sequence[str], deleted: DeletedKeys) -> Mask:
    """The upserts that are older than what is remembered of deleted keys."""
    upserts = numpy_of(rows.column(OP)) == UPSERT
    outdated = np.zeros(rows.num_rows, np.bool_)
    if upserts.any():
        outdated[upserts] = deleted.outdated(rows.filter(pa.array(upserts)), key)
    return outdated


def remember(last: Latest, key: Sequence[str], deleted: DeletedKeys) -> None:
    """Note the positions of deletes, unless their rows stay (no key), and of TRUNCATE."""
    keys = positions = pa.array([], pa.string())
    if key:
        gone = last.rows.filter(pc.equal(last.rows.column(OP), DELETE))
        keys, positions = key_texts(gone, key), gone.column(POSITION).combine_chunks()
    if last.truncated is not None:
        keys = pa.concat_arrays([keys, pa.nulls(1, pa.string())])
        positions = pa.concat_arrays([positions, pa.array([last.truncated])])
    if len(keys):
        deleted.remember(keys, positions)


def some_of(last: Latest, kept: Mask) -> Latest:
    """Some of the changes."""
    chosen = pa.array(kept)
    gaps = {
        name: Gap(gap.rows[kept], gap.known_at.filter(chosen), gap.required[kept])
        for name, gap in last.gaps.items()
    }
    newer = None if last.newer is None else last.newer[kept]
    return replace(last, rows=last.rows.filter(chosen).combine_chunks(), gaps=gaps, newer=newer)


def completed(last: Latest, table: LandedTable, *, null_missing: bool) -> pa.Table:
    """The rows with the values that only landed rows have."""
    rows, key = last.rows, table.shape.key
    gaps = {name: gap for name, gap in last.gaps.items() if gap.rows.any()}
    if not gaps:
        return rows
    landed = landed_rows(last, table, gaps)
    codes = key_codes(pa.concat_tables([rows.select(key), landed.select(key)]), key)
    at = np.full(int(codes.max()) + 1, -1, np.int64)
    at[codes[rows.num_rows :]] = np.arange(landed.num_rows)
    places = at[codes[: rows.num_rows]]
    indexes = pa.array(places, mask=places < 0)
    positions = landed.column(POSITION).combine_chunks().take(indexes)
    for name, gap in gaps.items():
        landed_counts = gap.rows & (places >= 0) & is_later(positions, gap.known_at)
        if (gap.required & ~landed_counts).any() and not null_missing:
            raise TableError(
                f"a change of {shown(named(table.shape.table))} leaves out the column "
                f"{shown(name)}, and its row is not landed",
                "read the table from its beginning or land a snapshot first, or choose "
                "on_misfit: null, which lands NULL there",
            )
        values = landed.column(name).combine_chunks().take(indexes)
        column = rows.column(name).combine_chunks().cast(values.type)
        number = rows.column_names.index(name)
        rows = rows.set_column(number, name, pc.if_else(pa.array(landed_counts), values, column))
    return rows


def landed_rows(last: Latest, table: LandedTable, gaps: dict[str, Gap]) -> pa.Table:
    """The landed rows that may complete changes."""
    key = table.shape.key
    wanted = np.logical_or.reduce([gap.rows for gap in gaps.values()])
    chosen = last.rows.filter(pa.array(wanted))
    conditions = [sql.among(chosen.column(name), name) for name in key]
    if last.truncated is not None:
        conditions.append(f"NOT {before(last.truncated)}")
    return table.rows([*key, POSITION, *gaps], sql.all_of(conditions))


def is_later(landed: pa.Array, known: pa.Array) -> Mask:
    """Whether landed rows are later than changes of the batch, by positions of both."""
    same_kind = pc.equal(
        pc.utf8_slice_codeunits(landed, 0, KIND), pc.utf8_slice_codeunits(known, 0, KIND)
    )
    later = pc.fill_null(pc.and_(same_kind, pc.greater(landed, known)), False)
    result: Mask = pc.or_(pc.is_null(known), later).to_numpy(zero_copy_only=False)
    return result


def before(position: str, table: str | None = None) -> str:
    """The condition of rows that TRUNCATE at a position removes."""
    column = sql.quoted(POSITION, table)
    kind = sql.text(position[:KIND])
    return f"(substr({column}, 1, {KIND}) <> {kind} OR {column} <= {sql.text(position)})"


def older(position: str) -> str:
    """The condition of rows that are known to be older than a position."""
    column, kind = sql.quoted(POSITION), sql.text(position[:KIND])
    return f"(substr({column}, 1, {KIND}) = {kind} AND {column} <= {sql.text(position)})"


def write(table: LandedTable, token: Token, rows: pa.Table, last: Latest, *, soft: bool) -> Merged:
    """Merge rows into a table: one commit."""
    upserts = int(pc.sum(pc.equal(rows.column(OP), UPSERT)).as_py() or 0)
    if not table.has_rows:
        if upserts:
            table.append(rows.filter(pc.equal(rows.column(OP), UPSERT)).drop_columns([OP]), token)
        return Merged(inserted=upserts)
    if not rows.num_rows and last.truncated is None:
        return Merged()
    key = table.shape.key
    is_newer = sql.supersedes("s._position", "t._position", snapshots=any_starts(rows, SNAPSHOT))
    if any_starts(rows, COMMIT):
        is_newer = f"({is_newer} AND NOT {of_same_commit(soft=soft)})"
    if last.newer is not None:
        rows = rows.append_column(NEWER, pa.array(last.newer))
        is_newer = f"(s.{NEWER} = true OR {is_newer})"
    conditions: list[str | None] = [
        f"{sql.quoted(name, 't')} = {sql.quoted(name, 's')}" for name in key
    ]
    if last.truncated is None:
        conditions.append(sql.range_of(rows.column(key[0]), key[0], "t"))
    columns = [name for name in rows.column_names if name not in (OP, NEWER)]
    values = {sql.quoted(name): sql.quoted(name, "s") for name in columns}
    changed = {
        sql.quoted(name): value for name, value in zip(columns, values.values()) if name not in key
    }
    merger = (
        table.merger(rows, sql.all_of(conditions) or "TRUE", token)
        .when_matched_update(changed, f"s._op = {UPSERT} AND {is_newer}")
        .when_not_matched_insert(values, f"s._op = {UPSERT}")
    )
    if not soft:
        merger.when_matched_delete(f"s._op = {DELETE} AND {is_newer}")
    if last.truncated is not None:
        gone = before(last.truncated, "t")
        if soft:
            marks = {DELETED: "true", POSITION: sql.text(last.truncated)}
            merger.when_not_matched_by_source_update(marks, gone)
        else:
            merger.when_not_matched_by_source_delete(gone)
    metrics = merger.execute()
    inserted, updated = metrics["num_target_rows_inserted"], metrics["num_target_rows_updated"]
    ignored = max(upserts - inserted - updated, 0)
    return Merged(inserted, updated, metrics["num_target_rows_deleted"], ignored)


def of_same_commit(*, soft: bool) -> str:
    """The condition of deletes that the landed row's upsert has followed in its commit."""
    is_delete = f"s.{DELETED} = true" if soft else f"s.{OP} = {DELETE}"
    kind = f"substr(s.{POSITION}, 1, {KIND}) = {sql.text(COMMIT)}"
    return f"({is_delete} AND {kind} AND s.{POSITION} = t.{POSITION})"


def any_starts(rows: pa.Table, kind: str) -> bool:
    """Whether any position is of a kind."""
    return bool(pc.any(pc.starts_with(rows.column(POSITION), kind)).as_py())
