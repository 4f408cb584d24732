"""What a table sink knows of each of its tables: landed, or parked until somebody looks at it."""

from __future__ import annotations

import msgspec

from headgate.schema.changes import TableId


class TableState(msgspec.Struct, omit_defaults=True):
    """A landed table, and why it waits, if it does."""

    table: TableId
    state: str = "landed"
    """`landed`, or `parked`: its changes are kept until somebody has seen to it."""
    reason: str | None = None
    remedy: str | None = None
    statements: list[str] = []
    """The statements that were not applied."""
    since: float | None = None
    """When it was parked, in seconds since the epoch."""

    @property
    def name(self) -> str:
        """The table's name as people write it.

        >>> TableState(TableId("shop", "orders")).name
        'shop.orders'
        """
        return ".".join(part for part in self.table if part is not None)
