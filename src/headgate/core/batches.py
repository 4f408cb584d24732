"""What a micro-batch holds of its source."""

from __future__ import annotations

import msgspec


class SourceRange(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of its source that a batch holds: the same after a crash, when it is repeated."""

    offsets: dict[str, dict[str, tuple[int | None, int]]] = {}
    """By topic and partition: the first offset, and the one behind the last."""
    files: str | None = None
    """A hash of the names and times of files."""
