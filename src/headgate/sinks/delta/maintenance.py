"""Tables that keep themselves fit to be read and merged.

Small files are joined, rows are clustered by key, old files are removed. Within bounds: every so
many versions a table is looked at, and only then, and only if it is worth it, are files written
anew. What a reader of an older version may need is kept for a week.
"""

from __future__ import annotations

import logging
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from headgate.core.errors import reason_of
from headgate.sinks.delta.statistics import writer_properties
from headgate.sinks.delta.table import OP, LandedTable, commit_of

log = logging.getLogger(__name__)
LOOK_EVERY = 20
"""A table is looked at after so many versions."""
VACUUM_EVERY = 200
"""After so many versions, rows are clustered and old files are removed.

Clustering writes the whole table, so that it adds about a hundredth to the cost of merges that do.
"""
SMALL_BYTES = 16 * 1024 * 1024
"""A file below this is small."""
MOST_SMALL_FILES = 12
TARGET_BYTES = 64 * 1024 * 1024
"""How large files become that are joined, or clustered; a smaller table is one file anyhow."""
MOST_CLUSTERED_BYTES = 512 * 1024 * 1024
"""A larger table is not clustered: one task would sort it."""


def maintain(table: LandedTable) -> None:
    """Join small files, cluster rows and remove old files, if it is time to.

    Another writer goes first. Where it fails, the table is as it was, and it is tried again another
    time.
    """
    version = table.delta.version()
    how: dict[str, Any] = {
        "target_size": TARGET_BYTES,
        "max_concurrent_tasks": 1,
        "writer_properties": writer_properties(table.schema, table.large),
        "commit_properties": commit_of(None),
    }
    try:
        if version % VACUUM_EVERY == 0 and is_scattered(table):
            table.delta.optimize.z_order([table.shape.key[0]], **how)
        elif version % LOOK_EVERY == 0 and has_many_small_files(table):
            table.delta.optimize.compact(**how)
        if version % VACUUM_EVERY == 0:
            table.delta.vacuum(dry_run=False, commit_properties=commit_of(None))
    except CommitFailedError:
        return
    except Exception as error:
        log.warning("cannot optimize %s: %s", table.location.uri, reason_of(error))


def has_many_small_files(table: LandedTable) -> bool:
    """Whether joining files is worth it."""
    sizes = pa.table(table.delta.get_add_actions()).column("size_bytes")
    small = pc.sum(pc.less(sizes, SMALL_BYTES)).as_py() or 0
    return bool(small > MOST_SMALL_FILES)


def is_scattered(table: LandedTable) -> bool:
    """Whether files of a table with a key overlap that could each have a range of keys.

    Merges and readers skip files by the range of the key's first column.
    """
    if not table.shape.key or OP in table.schema.names:
        return False
    files = pa.table(table.delta.get_add_actions(flatten=True))
    low, high = (f"{end}.{table.shape.key[0]}" for end in ("min", "max"))
    size = pc.sum(files.column("size_bytes")).as_py() or 0
    if not TARGET_BYTES < size <= MOST_CLUSTERED_BYTES or low not in files.column_names:
        return False
    ranges = files.select([low, high]).drop_null().sort_by(low)
    lows, highs = (ranges.column(name).to_pylist() for name in (low, high))
    overlapping = sum(first < last for first, last in zip(lows[1:], accumulate(highs, max)))
    return bool(overlapping * 2 > files.num_rows)
