"""Words and numbers that Maxwell's decoder and encoder share."""

from __future__ import annotations

ROW_OPS = {
    "insert": "insert",
    "update": "update",
    "delete": "delete",
    "bootstrap-insert": "snapshot",
}
MARKER_OPS = {"bootstrap-start": "snapshot_begin", "bootstrap-complete": "snapshot_end"}

FULL_SYNC_TS = 1_600_000_000
"""What OMS writes as `ts` of every row of a full synchronization: not a time."""


def is_tso(ts: int) -> bool:
    """Whether `ts` is a TiDB commit timestamp, larger than any time in seconds or milliseconds.

    >>> is_tso(462238520974811087), is_tso(1763300006000)
    (True, False)
    """
    return 10**17 <= ts < 10**18  # as commit timestamps, the years 1982 to 2090


OWN_NAMES = frozenset({"numbers", "booleans", "nested", "partial"})
"""Names in `extra` that are Headgate's own; an attribute of such a name gets a prefix."""
ATTRIBUTE = "attribute."
