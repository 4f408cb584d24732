"""Merging changes into a table without a key: rows are matched as a whole, and counted.

A landed row has the position of its insert. A delete takes one equal row away. Which inserts and
deletes have met is remembered beside the positions of deleted keys, so that a range that is read
again changes nothing: `-ROW` at the position of a delete, `+ROW` at that of the insert it undid.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.codec.sequence import supersedes
from headgate.core.errors import shown
from headgate.landing.latest import CombinedChanges, after_truncates
from headgate.landing.table_rows import DELETE, UPSERT
from headgate.sinks.delta import sql
from headgate.sinks.delta.deleted import DeletedKeys, digests, key_texts
from headgate.sinks.delta.keyed import before
from headgate.sinks.delta.lake import named
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.outcome import Merged
from headgate.sinks.delta.table import DELETED, OP, POSITION, LandedTable, TableError, Token

GONE = "_gone"
"""A column of what is merged: whether a row is taken away."""
COPY = "+"
"""What follows the position of an equal row of the same position, with its number."""


@dataclass
class Plan:
    """What changes do to the rows of a table."""

    inserts: dict[int, str] = field(default_factory=dict)
    """Numbers of changes whose rows are added, and their positions."""
    removals: list[tuple[str, str]] = field(default_factory=list)
    """Landed rows that are taken away: their names and positions."""
    met: list[tuple[str, str]] = field(default_factory=list)
    """What is to be remembered."""
    repeated: int = 0
    unmatched: int = 0
    """Deletes of rows that are not there."""


class FinalRows(NamedTuple):
    """What changes make of a table's rows, before anything is written."""

    added: pa.Table
    removed: pa.Table
    truncated: str | None
    """The position of a TRUNCATE: rows before it are gone."""
    plan: Plan


def merge_without_key(
    table: LandedTable,
    token: Token,
    changes: CombinedChanges,
    deleted: DeletedKeys,
    options: DeltaOptions,
) -> Merged:
    """Merge changes of a table without a key: one commit."""
    added, removed, truncated, plan = final_rows(table, token, changes, deleted)
    if plan.met or truncated is not None:
        noted = [*plan.met, *([(None, truncated)] if truncated is not None else [])]
        deleted.remember(
            pa.array([name for name, _ in noted], pa.string()),
            pa.array([position for _, position in noted], pa.string()),
            token,
        )
    write(table, token, added, removed, truncated, soft=options.deletes == "soft")
    return Merged(added.num_rows, 0, removed.num_rows, plan.repeated + plan.unmatched)


def final_rows(
    table: LandedTable, token: Token, changes: CombinedChanges, deleted: DeletedKeys
) -> FinalRows:
    """The rows that changes add and take away."""
    if changes.absent:
        raise TableError(
            f"{shown(named(table.shape.table))} has no key, and a change leaves out columns, so "
            "that its row cannot be found",
            "give the table a key, or let the producer send complete rows",
        )
    changes, truncated = after_truncates(changes)
    rows, columns = in_order(changes.rows, table), [c.name for c in table.shape.columns]
    names = digests(key_texts(rows, columns))
    ops, positions = rows.column(OP).to_pylist(), rows.column(POSITION).to_pylist()
    landed = candidates(table, rows, truncated)
    landed_names = digests(key_texts(landed, columns))
    places = list(zip(landed_names, landed.column(POSITION).to_pylist()))
    known = deleted.known(rows.column(POSITION).combine_chunks()) if rows.num_rows else None
    plan = planned(zip(ops, names, positions), places, outdated(known, token))
    added = rows.take(pa.array(list(plan.inserts), pa.int64())).select(columns)
    added = added.append_column(POSITION, pa.array(list(plan.inserts.values()), pa.string()))
    numbers = {place: number for number, place in enumerate(places)}
    removed = landed.take(pa.array([numbers[place] for place in plan.removals], pa.int64()))
    if DELETED in table.schema.names:
        added = added.append_column(DELETED, pa.array(np.zeros(added.num_rows, np.bool_)))
        removed = removed.append_column(DELETED, pa.array(np.ones(removed.num_rows, np.bool_)))
    return FinalRows(added, removed, truncated, plan)


def in_order(rows: pa.Table, table: LandedTable) -> pa.Table:
    """Changes in their order, with all columns of the table."""
    for column in table.shape.columns:
        if column.name not in rows.column_names:
            type_ = table.schema.field(column.name).type
            rows = rows.append_column(column.name, pa.nulls(rows.num_rows, type_))
    kinds = pc.count_distinct(pc.utf8_slice_codeunits(rows.column(POSITION), 0, 8)).as_py()
    order = [(POSITION, "ascending"), ("_arrival", "ascending")]
    return rows.sort_by(order if kinds <= 1 else order[::-1]).combine_chunks()


def candidates(table: LandedTable, rows: pa.Table, truncated: str | None) -> pa.Table:
    """The landed rows that changes may be about: of the same positions, or like deleted rows."""
    columns = [*(column.name for column in table.shape.columns), POSITION]
    conditions = []
    if rows.num_rows:
        ends = pc.min_max(rows.column(POSITION)).as_py()
        low, high = sql.text(ends["min"]), sql.text(ends["max"] + "~")
        conditions.append(f"({POSITION} >= {low} AND {POSITION} <= {high})")
    gone = rows.filter(pc.equal(rows.column(OP), DELETE))
    if gone.num_rows:
        ranges = [sql.range_of(gone.column(name), name) for name in columns[:-1]]
        conditions.append(f"({sql.all_of(ranges) or 'TRUE'})")
    if not conditions:
        return table.schema.empty_table().select(columns)
    condition = f"({' OR '.join(conditions)})"
    if DELETED in table.schema.names:
        condition += f" AND {DELETED} IS NOT TRUE"
    if truncated is not None:
        condition += f" AND NOT {before(truncated)}"
    return table.rows(columns, condition)


@dataclass
class Outdated:
    """What was done to rows before."""

    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    truncated: list[str] = field(default_factory=list)


def outdated(known: pa.Table | None, token: Token) -> Outdated:
    """What was done before the commit of a token, which is not there yet.

    Notes of that commit, or of a later one, are of attempts that did not get to it. Of several
    attempts at one commit the last counts.
    """
    result = Outdated()
    if known is None:
        return result
    times = known["_at"].cast(pa.int64()).to_pylist()
    commits = list(zip(known["_app"].to_pylist(), known["_version"].to_pylist()))
    last: dict[tuple[str | None, int | None], int] = {}
    for commit, at in zip(commits, times):
        last[commit] = max(at, last.get(commit, at))
    notes = zip(known["_key"].to_pylist(), known["_position"].to_pylist(), times, commits)
    for name, position, at, (app, version) in notes:
        is_open = app == token.app and version >= token.version
        if name is None:
            result.truncated.append(position)
        elif at == last[app, version] and not is_open:
            result.met[name, position] += 1
    return result


def planned(
    changes: Iterable[tuple[int, str, str]],
    landed: Iterable[tuple[str, str]],
    known: Outdated,
) -> Plan:
    """What to do for changes in their order: operation, name of the row, position.

    >>> plan = planned([(0, "r", "o1"), (0, "r", "o2"), (1, "r", "o3")], [("r", "o0")], Outdated())
    >>> plan.inserts, plan.removals
    ({0: 'o1', 1: 'o2'}, [('r', 'o0')])
    """
    plan = Plan()
    there: dict[str, list[tuple[str, int | None]]] = defaultdict(list)
    copies: Counter[tuple[str, str]] = Counter()
    for name, position in sorted(landed, key=lambda place: place[1]):
        there[name].append((position, None))
        copies[name, position.partition(COPY)[0]] += 1
    landed_copies, seen = copies.copy(), Counter[tuple[str, str]]()
    for number, (op, name, position) in enumerate(changes):
        is_insert = op == UPSERT
        sign = "+" if is_insert else "-"
        seen[sign + name, position] += 1
        if seen[sign + name, position] <= known.met[sign + name, position] or not all(
            supersedes(position, each) for each in known.truncated
        ):
            plan.repeated += 1
        elif is_insert:
            undone = known.met[sign + name, position]
            if seen[sign + name, position] - undone <= landed_copies[name, position]:
                plan.repeated += 1
                continue
            copy = copies[name, position]
            copies[name, position] += 1
            place = f"{position}{COPY}{copy:04d}" if copy else position
            there[name].append((place, number))
            plan.inserts[number] = place
        else:
            remove_one(plan, there[name], name, position)
    return plan


def remove_one(plan: Plan, there: list[tuple[str, int | None]], name: str, position: str) -> None:
    """Take away one row that was there before the delete."""
    older = (i for i, (at, _) in enumerate(there) if supersedes(position, at.partition(COPY)[0]))
    index = next(older, None)
    if index is None:
        plan.unmatched += 1
        return
    place, number = there.pop(index)
    if number is None:
        plan.removals.append((name, place))
    else:
        del plan.inserts[number]
    plan.met += [("-" + name, position), ("+" + name, place.partition(COPY)[0])]


def write(
    table: LandedTable,
    token: Token,
    added: pa.Table,
    removed: pa.Table,
    truncated: str | None,
    *,
    soft: bool,
) -> None:
    """Add and take away rows: one commit."""
    if not removed.num_rows and (truncated is None or not table.has_rows):
        if added.num_rows:
            table.append(added, token)
        return
    marks = {False: added, True: removed}
    rows = pa.concat_tables(
        [each.append_column(GONE, pa.array([gone] * each.num_rows, pa.bool_()))
         for gone, each in marks.items()]
    )  # fmt: skip
    names: list[Any] = [name for name in added.column_names if name not in (GONE, DELETED)]
    same = [f"({sql.quoted(n, 't')} IS NOT DISTINCT FROM {sql.quoted(n, 's')})" for n in names]
    same[names.index(POSITION)] = f"t.{POSITION} = s.{POSITION}"
    merger = table.merger(rows, " AND ".join(same), token).when_not_matched_insert(
        {sql.quoted(name): sql.quoted(name, "s") for name in added.column_names},
        f"s.{GONE} = false",
    )
    if soft:
        merger.when_matched_update({DELETED: "true"}, f"s.{GONE} = true")
    else:
        merger.when_matched_delete(f"s.{GONE} = true")
    if truncated is not None:
        gone = before(truncated, "t")
        if soft:
            merger.when_not_matched_by_source_update({DELETED: "true"}, gone)
        else:
            merger.when_not_matched_by_source_delete(gone)
    merger.execute()
