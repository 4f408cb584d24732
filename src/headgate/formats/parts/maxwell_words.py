"""Words and numbers that Maxwell's decoder and encoder both know."""

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

OWN_NAMES = frozenset({"numbers", "booleans", "nested", "partial"})
"""Names in `extra` that are Headgate's own; an attribute of such a name gets a prefix."""
ATTRIBUTE = "attribute."
