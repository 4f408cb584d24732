"""The files of a job's state: each tells the version of its shape; one that is no good is named."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from headgate.core.errors import UsageError
from headgate.spark.storage import Storage

VERSION = 2
"""Of everything that a job keeps: raised with each change after which an old file means another
thing, or can no longer be read."""
T = TypeVar("T")


class DamagedState(UsageError):
    """A file of state cannot be read."""


class _Versioned(msgspec.Struct):
    version: int | None = None


def write_state(storage: Storage, name: str, content: Any) -> None:
    """Write a file of state.

    >>> import tempfile
    >>> store = Storage(tempfile.mkdtemp())
    >>> write_state(store, "job.json", {"id": "a"})
    >>> read_state(store, "job.json", dict[str, str | int])
    {'version': 2, 'id': 'a'}
    """
    storage.write_json(name, {"version": VERSION, **msgspec.to_builtins(content)})


def read_state(storage: Storage, name: str, type: type[T]) -> T | None:
    """Read a file of state; None if there is none. Damage and another version are refused."""
    found = storage.read(name)
    if found is None:
        return None
    try:
        version = msgspec.json.decode(found, type=_Versioned).version
        if version == VERSION:
            return msgspec.json.decode(found, type=type)
    except msgspec.MsgspecError:
        raise damaged(storage, name) from None
    raise UsageError(
        f"{storage.uri}/{name} is of another version of Headgate: its state has version "
        f"{version or 'none'}, and this one reads {VERSION}; go on with the version that wrote it, "
        "or start with a new checkpoint and a new target"
    )


def damaged(storage: Storage, name: str) -> DamagedState:
    """The error for a file that cannot be read."""
    return DamagedState(
        f"{storage.uri}/{name} is damaged; restore the checkpoint as a whole, or start with a new "
        "one and a new target"
    )
