"""Tables that keep themselves fit to be read and merged: small files are joined, old ones removed.

Within bounds: every so many versions a table is looked at, and only then, and only if it has many
small files, are these written anew. What a reader of an older version may need is kept for a week.
"""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from headgate.core.errors import reason_of
from headgate.sinks.delta.statistics import writer_properties
from headgate.sinks.delta.table import LandedTable, commit_of

log = logging.getLogger(__name__)
LOOK_EVERY = 20
"""A table is looked at after so many versions."""
VACUUM_EVERY = 200
"""Files that no version of the last week has are removed after so many versions."""
SMALL_BYTES = 16 * 1024 * 1024
"""A file below this is small."""
MOST_SMALL_FILES = 12
TARGET_BYTES = 64 * 1024 * 1024
"""How large files become that are joined."""


def maintain(table: LandedTable) -> None:
    """Join small files and remove old ones, if it is time to; another writer goes first.

    Where it fails, the table is as it was, and it is tried again another time.
    """
    version = table.delta.version()
    try:
        if version % LOOK_EVERY == 0 and has_many_small_files(table):
            table.delta.optimize.compact(
                target_size=TARGET_BYTES,
                max_concurrent_tasks=1,
                writer_properties=writer_properties(table.schema, table.large),
                commit_properties=commit_of(None),
            )
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
