"""A change's place in Maxwell's stream."""

from __future__ import annotations

from headgate.core.event import Event
from headgate.formats.base import Place


def transaction_place(event: Event) -> Place | None:
    """The transaction and the row in it; the last row of one has no number.

    >>> transaction_place(Event("row", event_time=5, position={"xid": "77", "xoffset": "0"}))
    ('77', '0', '5')
    """
    position = event.position or {}
    if "xid" not in position or event.event_time is None:
        return None
    last = "xoffset" not in position
    if last and (event.extra or {}).get("commit") != "true":
        return None
    return (position["xid"], position.get("xoffset", "last"), str(event.event_time))
