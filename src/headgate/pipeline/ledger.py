"""What was applied: the identities of changes, by lane, in sorted files that are never changed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headgate.pipeline.identity import ID_BYTES
from headgate.pipeline.storage import Storage

MOST_FILES = 8
"""With more files than this, a lane's ledger becomes one file again."""
MOST_IDS = 5_000_000
"""Of more changes than this, a lane forgets the oldest."""
FOLDER = "ledger"
_ID = f"S{ID_BYTES}"


class Ledger:
    """The changes of one lane that were applied before, and those of this batch.

    >>> import tempfile
    >>> store = Storage(tempfile.mkdtemp())
    >>> ledger = Ledger(store, ())
    >>> ledger.fresh[b"a" * 16] = 1_000
    >>> files = ledger.write(horizon=0)
    >>> Ledger(store, files).known([b"a" * 16, b"b" * 16, None])
    [True, False, False]
    """

    def __init__(self, storage: Storage, files: Sequence[str]) -> None:
        self.storage, self.files = storage, tuple(files)
        self.parts = [_columns(storage.read_table(f"{FOLDER}/{name}")) for name in files]
        self.fresh: dict[bytes, int] = {}
        """Changes of this batch, with their times."""

    def known(self, ids: Sequence[bytes | None]) -> list[bool]:
        """Which of these were applied before this batch."""
        asked = [n for n, id_ in enumerate(ids) if id_ is not None]
        found = [False] * len(ids)
        if not asked or not self.parts:
            return found
        wanted = np.array([ids[n] for n in asked], _ID)
        hit = np.zeros(len(asked), bool)
        for sorted_ids, _ in self.parts:
            if not len(sorted_ids):
                continue
            at = np.searchsorted(sorted_ids, wanted)
            at[at == len(sorted_ids)] = 0
            hit |= sorted_ids[at] == wanted
        for n, known in zip(asked, hit.tolist()):
            found[n] = known
        return found

    def write(self, horizon: int) -> tuple[str, ...]:
        """Keep what is new; the files to read from now on. What is before the horizon may go."""
        if not self.fresh:
            return self.files
        new = (np.array(list(self.fresh), _ID), np.array(list(self.fresh.values()), "i8"))
        merge = len(self.files) >= MOST_FILES
        ids, at = (np.concatenate(c) for c in zip(*[*(self.parts if merge else ()), new]))
        if merge:
            kept = at >= horizon
            ids, at = ids[kept], at[kept]
            if len(at) > MOST_IDS:
                newest = np.argpartition(at, len(at) - MOST_IDS)[-MOST_IDS:]
                ids, at = ids[newest], at[newest]
        by_id = np.argsort(ids)
        name = f"{uuid.uuid4().hex}.arrow"
        self.storage.write_table(f"{FOLDER}/{name}", _table(ids[by_id], at[by_id]))
        return (name,) if merge else (*self.files, name)


def _table(ids: np.ndarray, at: np.ndarray) -> pa.Table:
    type_ = pa.binary(ID_BYTES)
    column = pa.FixedSizeBinaryArray.from_buffers(
        type_, len(ids), [None, pa.py_buffer(np.ascontiguousarray(ids))]
    )
    return pa.table({"id": column, "at": pa.array(at)})


def _columns(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    ids = table.column("id").combine_chunks()
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.chunk(0)
    raw = np.frombuffer(ids.buffers()[1], _ID, len(ids), ids.offset * ID_BYTES)
    return raw, table.column("at").to_numpy()
