"""The files in which Spark keeps the progress of a streaming query."""

from __future__ import annotations

from typing import Any

import msgspec

from headgate.spark.state_files import damaged
from headgate.spark.storage import Storage


def query_id(checkpoint: Storage) -> str:
    """Spark's id of the query whose progress a checkpoint keeps."""
    try:
        return str(
            msgspec.json.decode(checkpoint.read("metadata") or b"", type=dict[str, str])["id"]
        )
    except (msgspec.MsgspecError, KeyError):
        raise damaged(checkpoint, "metadata") from None


def check_progress(checkpoint: Storage) -> None:
    """Name the file of Spark's progress that is damaged; Spark would only say that one is."""
    if checkpoint.exists("metadata"):
        query_id(checkpoint)
    for folder in ("offsets", "commits", "sources/0", "sources/1"):
        stems = [n for n in checkpoint.names(folder) if n.removesuffix(".compact").isdigit()]
        for name in sorted(stems, key=lambda n: int(n.removesuffix(".compact")))[-2:]:
            read_log(checkpoint, f"{folder}/{name}")


def read_log(checkpoint: Storage, name: str) -> list[Any]:
    """The entries of a progress file: a version, then JSON, line by line, `-` for nothing.

    A file that does not exist has no entries.
    """
    content = checkpoint.read(name)
    if content is None:
        return []
    version, *lines = content.lstrip(b"\0").split(b"\n")
    try:
        if not version.startswith(b"v"):
            raise ValueError("no version")
        return [None if line == b"-" else msgspec.json.decode(line) for line in lines if line]
    except ValueError:
        raise damaged(checkpoint, name) from None


def offsets_of(checkpoint: Storage, batch: int) -> list[Any]:
    """The end offset of a batch in each source of the query, as that source writes it."""
    return read_log(checkpoint, f"offsets/{batch}")[1:]


def files_read(checkpoint: Storage, batch: int) -> frozenset[str] | None:
    """The files that a query had read after a batch, as its source names them.

    None where its first source is not a directory.
    """
    offset = next(iter(offsets_of(checkpoint, batch)), None)
    if not isinstance(offset, dict) or not isinstance(offset.get("logOffset"), int):
        return None
    entries = [
        entry
        for name in checkpoint.names("sources/0")
        if name.removesuffix(".compact").isdigit()
        for entry in read_log(checkpoint, f"sources/0/{name}")
    ]
    return frozenset(e["path"] for e in entries if e["batchId"] <= offset["logOffset"])


def last_planned(checkpoint: Storage) -> int:
    """The number of the newest batch that Spark has planned, whether it is done or not; or -1.

    >>> import tempfile
    >>> last_planned(Storage(tempfile.mkdtemp()))
    -1
    """
    numbers = [int(name) for name in checkpoint.names("offsets") if name.isdigit()]
    return max(numbers, default=-1)
