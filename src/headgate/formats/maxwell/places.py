"""A change's place in Maxwell's stream, and where transactions end there."""

from __future__ import annotations

from headgate.core.event import Event
from headgate.formats.base import Place


def is_commit(event: Event) -> bool:
    """Whether an event is the last row of its transaction.

    >>> is_commit(Event("row", "insert", extra={"commit": "true"}))
    True
    """
    return event.extra is not None and event.extra.get("commit") == "true"


def transaction_place(event: Event) -> Place | None:
    """The transaction and the row in it; the last row of one has no number.

    >>> transaction_place(Event("row", event_time=5, position={"xid": "77", "xoffset": "0"}))
    ('77', '0', '5')
    """
    position = event.position or {}
    if "xid" not in position or event.event_time is None:
        return None
    last = "xoffset" not in position
    if last and not is_commit(event):
        return None
    return (position["xid"], position.get("xoffset", "last"), str(event.event_time))
