"""The identities of applied changes, by partition, in sorted files that are never changed.

A batch adds a file. Files of similar size are merged, so that there are few, and an identity is
written again only when its file doubles. A lookup touches parts of files, which are mapped and not
read; old identities are dropped file by file. So the cost of a batch depends on its size, and not
on how much is remembered.
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
"""Of more changes than this, a partition forgets the oldest."""
PARTS = 8
"""No file holds more than this fraction of what is remembered, as whole files are dropped."""
MOST_FILES = 32
"""With more files than this, also those that are far apart in time are merged."""
FOLDER = "dedup"
COPY_SECONDS = 86_400.0
"""A machine's copy of a file that was not used for so long is deleted."""
IdColumns = tuple[Any, Any]
"""Identities as two columns of numbers, sorted by the first."""


class IdFile(msgspec.Struct, frozen=True):
    """A file of identities; times are in microseconds."""

    name: str
    ids: int
    since: int
    """When the first of them was written, by the job's clock."""
    arrived: int
    """When the last of them was written."""
    newest: int
    """The newest time of the source's changes by then."""


class DedupStore:
    """The changes of one partition that were applied before, and those of this batch.

    >>> storage = Storage(tempfile.mkdtemp())
    >>> store = DedupStore(storage, ())
    >>> store.add(b"a" * 16, 1_000)
    >>> files = store.write(remember=60.0)
    >>> DedupStore(storage, files).known([b"a" * 16, b"b" * 16, None])
    [True, False, False]
    """

    def __init__(self, storage: Storage, files: Sequence[IdFile]) -> None:
        self.storage, self.files = storage, tuple(files)
        self.newest = max((file.newest for file in files), default=0)
        self.new: set[bytes] = set()
        """Changes of this batch."""
        self.opened: list[IdColumns] | None = None

    def add(self, id_: bytes, at: int | None) -> None:
        """Note that a change was applied, and its time in the source."""
        self.new.add(id_)
        if at is not None and at > self.newest:
            self.newest = at

    def known(self, ids: Sequence[bytes | None]) -> list[bool]:
        """Which of these were applied before this batch."""
        given = [n for n, id_ in enumerate(ids) if id_ is not None]
        known = [False] * len(ids)
        if not given or not self.files:
            return known
        if self.opened is None:
            self.opened = [self.open(file) for file in self.files]
        first, second = id_columns(ids[n] or b"" for n in given)
        order = np.argsort(first)  # neighbours are looked up next to each other
        first, second = first[order], second[order]
        hit = np.zeros(len(given), bool)
        for firsts, seconds in self.opened:
            at: Any = np.searchsorted(firsts, first)
            at[at == len(firsts)] = 0
            # Two identities with the same first number are so rare that missing one of them, and
            # so writing a change twice, is rarer than the failures that this guards against.
            hit |= (firsts[at] == first) & (seconds[at] == second)
        for n in order[hit].tolist():
            known[given[n]] = True
        return known

    def write(self, remember: float) -> tuple[IdFile, ...]:
        """Keep what is new, and forget what is older than so many seconds; the files from now on.

        An identity is old by both clocks: it was written so long ago, and is so far behind the
        newest change. So neither a source's clock that jumps nor a job that was stopped loses any.
        """
        if not self.new:
            return self.files
        now, span = time.time_ns() // 1_000, int(remember * 1_000_000)
        old, source = now - span, self.newest - span
        files = [file for file in self.files if file.arrived >= old or file.newest >= source]
        ids, since = len(self.new), now
        parts = [id_columns(self.new)]
        while files and files[-1].ids <= ids and ids + files[-1].ids <= MOST_IDS // PARTS:
            if files[-1].since < now - span // PARTS and len(files) < MOST_FILES:
                break
            file = files.pop()
            parts.append(self.open(file))
            ids, since = ids + file.ids, min(since, file.since)
        new = IdFile(f"{uuid.uuid4().hex}.ids", ids, since, now, self.newest)
        first, second = (np.concatenate(column) for column in zip(*parts))
        order = np.argsort(first, kind="stable")  # fast on parts that are sorted already
        self.storage.write(f"{FOLDER}/{new.name}", first[order].tobytes() + second[order].tobytes())
        files.append(new)
        while sum(file.ids for file in files) > MOST_IDS and len(files) > 1:
            files.pop(0)
        for file in {*self.files} - {*files}:
            delete_copy(self.storage, file)
        return tuple(files)

    def open(self, file: IdFile) -> IdColumns:
        """The identities of a file, mapped."""
        path = Path(self.storage.path(f"{FOLDER}/{file.name}"))
        if not self.storage.is_local:
            path = copy(self.storage, file)
        if not path.exists() or path.stat().st_size != file.ids * ID_BYTES:
            raise damaged(self.storage, f"{FOLDER}/{file.name}")
        both = np.asarray(np.memmap(path, np.uint64, "r", shape=(2 * file.ids,)))
        return both[: file.ids], both[file.ids :]


def id_columns(ids: Any) -> IdColumns:
    """Identities as two columns of numbers.

    >>> [column.tolist() for column in id_columns([bytes(15) + b"a"])]
    [[0], [6989586621679009792]]
    """
    both = np.frombuffer(b"".join(ids), "<u8").reshape(-1, ID_BYTES // 8)
    return both[:, 0].copy(), both[:, 1].copy()


def copy_path(file: IdFile) -> Path:
    """Where this machine keeps a file that lies on another file system."""
    return Path(tempfile.gettempdir(), f"headgate-dedup-{os.getuid()}", file.name)


def copy(storage: Storage, file: IdFile) -> Path:
    """This machine's copy of a file; it is fetched once, as files are never changed."""
    path = copy_path(file)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if path.parent.stat().st_uid != os.getuid() or path.parent.stat().st_mode & 0o077:
        raise StorageError(f"{path.parent} is open to others; delete it, or set TMPDIR to another")
    if path.exists() and path.stat().st_size == file.ids * ID_BYTES:
        os.utime(path)
    else:
        delete_old_copies(path.parent)
        staged = path.with_suffix(f".{uuid.uuid4().hex}")
        staged.write_bytes(storage.read(f"{FOLDER}/{file.name}") or b"")
        staged.replace(path)
    return path


def delete_old_copies(folder: Path) -> None:
    """Delete copies that were not used for a day: merged files on other machines, ended jobs."""
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > COPY_SECONDS:
                path.unlink()


def delete_copy(storage: Storage, file: IdFile) -> None:
    """Delete this machine's copy of a file that is not used any more."""
    if not storage.is_local:
        with suppress(OSError):
            copy_path(file).unlink(missing_ok=True)
