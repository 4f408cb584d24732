"""The task: merge the packed changes of one table, exactly once.

A table is looked at, brought to the shape of its changes, and changed in one commit that has the
batch's token. Where another writer committed in between, all of it is done again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from headgate.core.errors import StorageError
from headgate.landing.changes import unpack
from headgate.landing.evolution import follow
from headgate.landing.latest import CombinedChanges, combined, filtered
from headgate.landing.operations import AddColumns, Describe, Rewrite, Warn
from headgate.landing.shape import TableShape, union
from headgate.landing.table_rows import DELETE, UPSERT
from headgate.sinks.delta.fitting import fitted_rows
from headgate.sinks.delta.keyed import merge_by_key
from headgate.sinks.delta.keyless import merge_without_key
from headgate.sinks.delta.lake import Lake, named
from headgate.sinks.delta.maintenance import maintain
from headgate.sinks.delta.operations import change_table
from headgate.sinks.delta.outcome import Merged
from headgate.sinks.delta.statistics import large_columns
from headgate.sinks.delta.table import OP, LandedTable, Token

log = logging.getLogger(__name__)
ATTEMPTS = 8
"""How often a commit is tried against other writers."""
OPERATIONS = pa.array(["upsert", "delete", "truncate"])
"""What operations are called in a log of changes."""


def merge_table(lake: Lake, token: Token, packed: Sequence[bytes]) -> Merged:
    """Merge the packed changes of one table."""
    unpacked = [unpack(each) for each in packed]
    [shape] = union(shape for shape, _ in unpacked)
    for _ in range(ATTEMPTS):
        try:
            table = lake.opened_or_new(shape)
            if table.has(token):
                table.location.keep(table.delta)
                return Merged(version=table.delta.version())
            table = followed(lake, table, shape)
            rows = [fitted_rows(each, of, table.shape, lake.options) for of, each in unpacked]
            changes = combined(rows)
            table = table.note_large(large_columns(changes.rows))
            merged = merge_changes(lake, token, table, changes)
        except CommitFailedError:
            continue
        merged.version = table.delta.version()
        if lake.options.optimize == "auto":
            maintain(table)
        table.location.keep(table.delta)
        return merged
    raise StorageError(
        f"{lake.location(shape.table).uri} is being changed by another writer all the time: "
        f"{ATTEMPTS} commits failed; stop the other one"
    )


def followed(lake: Lake, table: LandedTable, wanted: TableShape) -> LandedTable:
    """The table with all columns that its changes have, wide enough for their values."""
    for operation in follow(table.shape, wanted, lake.rules):
        if isinstance(operation, Warn):
            log.warning("%s: %s", named(wanted.table), operation.reason)
        elif isinstance(operation, AddColumns | Rewrite | Describe):
            change_table(lake, operation, None, {})
            table = table.again()
    [both] = union([table.shape, wanted])  # its key is spelled as the columns are
    if both.key != table.shape.key:
        table.describe(msgspec.structs.replace(table.shape, key=both.key), lake.job)
        table = table.again()
    return table


def merge_changes(lake: Lake, token: Token, table: LandedTable, changes: CombinedChanges) -> Merged:
    """Merge changes into a table that has their columns: one commit."""
    if lake.options.mode == "log":
        return append_log(table, token, changes)
    if lake.options.deletes == "ignore":
        upserts = pc.equal(changes.rows.column(OP), UPSERT)
        changes = filtered(changes, upserts.to_numpy())
    if not changes.rows.num_rows:
        return Merged()
    deleted = lake.deleted_keys(table.shape.table)
    merge = merge_by_key if table.shape.key else merge_without_key
    return merge(table, token, changes, deleted, lake.options)


def append_log(table: LandedTable, token: Token, changes: CombinedChanges) -> Merged:
    """Append every change."""
    table.append(log_rows(changes), token)
    deleted = int(pc.sum(pc.equal(changes.rows.column(OP), DELETE)).as_py() or 0)
    return Merged(inserted=changes.rows.num_rows - deleted, deleted=deleted)


def log_rows(changes: CombinedChanges) -> pa.Table:
    """Changes as a log has them."""
    rows = changes.rows.drop_columns(["_arrival"])
    names = OPERATIONS.take(rows.column(OP).combine_chunks())
    return rows.set_column(rows.column_names.index(OP), OP, names)
