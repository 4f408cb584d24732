"""TiCDC's handling of keys, which is the same in all of its formats."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from headgate.core.cache import PerTypeMap
from headgate.core.column_flags import HANDLE, UNIQUE
from headgate.core.event import Event, Types


def flagged(types: Types | None, flags: int) -> list[str]:
    """The columns that have at least one of these flags."""
    return [name for name, column in (types or {}).items() if (column.flags or 0) & flags]


_handles = PerTypeMap(lambda types: flagged(types, HANDLE))
_uniques = PerTypeMap(lambda types: flagged(types, HANDLE | UNIQUE))


def handle_key(event: Event) -> Sequence[str]:
    """The columns that identify a row in TiCDC: the primary key, else those flagged as handle.

    >>> from headgate.core.event import ColumnType
    >>> handle_key(Event("row", key=(), types={"u": ColumnType("int", None, 19)}))
    ['u']
    """
    return event.key or _handles(event.types)


def changes_key(event: Event) -> bool:
    """Whether an update changes a column of the primary key or of a unique key.

    >>> row = {"id": "1"}
    >>> changes_key(Event("row", "update", key=("id",), before=row, after={"id": "2"}))
    True
    """
    before, after = event.before, event.after
    if event.op != "update" or not before or not after:
        return False
    names = (*(event.key or ()), *_uniques(event.types))
    return any(before[n] != after[n] for n in names if n in before and n in after)


def split_update(event: Event) -> tuple[Event, Event]:
    """Split an update as TiCDC does: a delete followed by an insert."""
    return replace(event, op="delete", after=None), replace(event, op="insert", before=None)
