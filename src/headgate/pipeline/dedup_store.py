"""What was applied: the identities of changes, by lane, in sorted files that are never changed.

A batch adds a file. Files of like size are merged, so that there are few, and an identity is
written again only as often as its file doubles. Looking up touches parts of files, which are
mapped and not read; what is old goes as a whole file. So a batch costs what it holds, and not
what is remembered.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headgate.core.errors import StorageError
from headgate.pipeline.dedup import ID_BYTES
from headgate.spark.state_files import damaged
from headgate.spark.storage import Storage

MOST_IDS = 5_000_000
"""Of more changes than this, a lane forgets the oldest."""
PARTS = 8
"""No file holds more than this part of what is remembered, as files are forgotten whole."""
MOST_RUNS = 32
"""With more files than this, also those that came long after each other become one."""
FOLDER = "ledger"
COPY_SECONDS = 86_400.0
"""A machine's copy of a file that was not used for so long is deleted."""
Halves = tuple[Any, Any]
"""Identities as two columns of numbers, sorted by the first."""


class Run(msgspec.Struct, frozen=True):
    """A file of identities; times are in microseconds."""

    name: str
    ids: int
    since: int
    """When the first of them came, by the clock of who wrote it."""
    arrived: int
    """When the last of them came."""
    newest: int
    """The newest time that the source had told by then."""


class Ledger:
    """The changes of one lane that were applied before, and those of this batch.

    >>> store = Storage(tempfile.mkdtemp())
    >>> ledger = Ledger(store, ())
    >>> ledger.add(b"a" * 16, 1_000)
    >>> runs = ledger.write(remember=60.0)
    >>> Ledger(store, runs).known([b"a" * 16, b"b" * 16, None])
    [True, False, False]
    """

    def __init__(self, storage: Storage, runs: Sequence[Run]) -> None:
        self.storage, self.runs = storage, tuple(runs)
        self.newest = max((run.newest for run in runs), default=0)
        self.fresh: set[bytes] = set()
        """Changes of this batch."""
        self.opened: list[Halves] | None = None

    def add(self, id_: bytes, at: int | None) -> None:
        """Note that a change was applied, and its time in the source."""
        self.fresh.add(id_)
        self.newest = max(self.newest, at or 0)

    def known(self, ids: Sequence[bytes | None]) -> list[bool]:
        """Which of these were applied before this batch."""
        asked = [n for n, id_ in enumerate(ids) if id_ is not None]
        found = [False] * len(ids)
        if not asked or not self.runs:
            return found
        if self.opened is None:
            self.opened = [self.open(run) for run in self.runs]
        first, second = halves(ids[n] or b"" for n in asked)
        order = np.argsort(first)  # neighbours are looked for next to each other
        first, second = first[order], second[order]
        hit = np.zeros(len(asked), bool)
        for firsts, seconds in self.opened:
            at: Any = np.searchsorted(firsts, first)
            at[at == len(firsts)] = 0
            # Two that share a first half are so rare that missing one of them, and so writing a
            # change twice, is rarer than the failures that this guards against.
            hit |= (firsts[at] == first) & (seconds[at] == second)
        for n in order[hit].tolist():
            found[asked[n]] = True
        return found

    def write(self, remember: float) -> tuple[Run, ...]:
        """Keep what is new, and forget what is older than so many seconds; the files from now on.

        What is old has come so long ago, and is so far behind the newest in the source: neither a
        source's clock that jumps nor a job that stood still makes a ledger forget.
        """
        if not self.fresh:
            return self.runs
        now, span = time.time_ns() // 1_000, int(remember * 1_000_000)
        old, source = now - span, self.newest - span
        kept = [run for run in self.runs if run.arrived >= old or run.newest >= source]
        ids, since = len(self.fresh), now
        parts = [halves(self.fresh)]
        while kept and kept[-1].ids <= ids and ids + kept[-1].ids <= MOST_IDS // PARTS:
            if kept[-1].since < now - span // PARTS and len(kept) < MOST_RUNS:
                break
            run = kept.pop()
            parts.append(self.open(run))
            ids, since = ids + run.ids, min(since, run.since)
        new = Run(f"{uuid.uuid4().hex}.ids", ids, since, now, self.newest)
        first, second = (np.concatenate(column) for column in zip(*parts))
        order = np.argsort(first, kind="stable")  # which merges what is sorted already
        self.storage.write(f"{FOLDER}/{new.name}", first[order].tobytes() + second[order].tobytes())
        kept.append(new)
        while sum(run.ids for run in kept) > MOST_IDS and len(kept) > 1:
            kept.pop(0)
        for run in {*self.runs} - {*kept}:
            forget_copy(self.storage, run)
        return tuple(kept)

    def open(self, run: Run) -> Halves:
        """The identities of a file, mapped."""
        path = Path(self.storage.path(f"{FOLDER}/{run.name}"))
        if not self.storage.is_local:
            path = copy(self.storage, run)
        if not path.exists() or path.stat().st_size != run.ids * ID_BYTES:
            raise damaged(self.storage, f"{FOLDER}/{run.name}")
        both = np.asarray(np.memmap(path, np.uint64, "r", shape=(2 * run.ids,)))
        return both[: run.ids], both[run.ids :]


def halves(ids: Any) -> Halves:
    """Identities as two columns of numbers.

    >>> [column.tolist() for column in halves([bytes(15) + b"a"])]
    [[0], [6989586621679009792]]
    """
    both = np.frombuffer(b"".join(ids), "<u8").reshape(-1, ID_BYTES // 8)
    return both[:, 0].copy(), both[:, 1].copy()


def copy_path(run: Run) -> Path:
    """Where this machine keeps a file that lies on another file system."""
    return Path(tempfile.gettempdir(), f"headgate-ledger-{os.getuid()}", run.name)


def copy(storage: Storage, run: Run) -> Path:
    """This machine's copy of a file; it is fetched once, as files are never changed."""
    path = copy_path(run)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if path.parent.stat().st_uid != os.getuid() or path.parent.stat().st_mode & 0o077:
        raise StorageError(f"{path.parent} is open to others; delete it, or set TMPDIR to another")
    if path.exists() and path.stat().st_size == run.ids * ID_BYTES:
        os.utime(path)
    else:
        forget_old_copies(path.parent)
        staged = path.with_suffix(f".{uuid.uuid4().hex}")
        staged.write_bytes(storage.read(f"{FOLDER}/{run.name}") or b"")
        staged.replace(path)
    return path


def forget_old_copies(folder: Path) -> None:
    """Delete copies that were not used for a day: merged files on other machines, ended jobs."""
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > COPY_SECONDS:
                path.unlink()


def forget_copy(storage: Storage, run: Run) -> None:
    """Delete this machine's copy of a file that is not used any more."""
    if not storage.is_local:
        with suppress(OSError):
            copy_path(run).unlink(missing_ok=True)
