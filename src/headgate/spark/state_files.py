"""The state files of a job: each has a version, and errors name a file that is damaged."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from headgate.core.errors import UsageError
from headgate.spark.storage import Storage

VERSION = 4
"""The version of all state files: raised with each change after which an old file would mean
something else, or can no longer be read."""
T = TypeVar("T")


class DamagedState(UsageError):
    """A state file cannot be read."""


class _Versioned(msgspec.Struct):
    version: int | None = None


def write_state(storage: Storage, name: str, content: Any) -> None:
    """Write a state file.

    >>> import tempfile
    >>> store = Storage(tempfile.mkdtemp())
    >>> write_state(store, "job.json", {"id": "a"})
    >>> read_state(store, "job.json", dict[str, str | int])
    {'version': 4, 'id': 'a'}
    """
    storage.write_json(name, {"version": VERSION, **msgspec.to_builtins(content)})


def read_state(storage: Storage, name: str, type: type[T]) -> T | None:
    """Read a state file; None if there is none. A damaged file or another version is an error."""
    content = storage.read(name)
    if content is None:
        return None
    try:
        version = msgspec.json.decode(content, type=_Versioned).version
        if version == VERSION:
            return msgspec.json.decode(content, type=type)
    except msgspec.MsgspecError:
        raise damaged(storage, name) from None
    raise UsageError(
        f"{storage.uri}/{name} was written by another version of Headgate: its state has version "
        f"{version or 'none'}, and this one reads {VERSION}; use the version that wrote it, "
        "or start with a new checkpoint and a new target"
    )


def damaged(storage: Storage, name: str) -> DamagedState:
    """The error for a file that cannot be read."""
    return DamagedState(
        f"{storage.uri}/{name} is damaged; restore the checkpoint as a whole, or start with a new "
        "one and a new target"
    )
