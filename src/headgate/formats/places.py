"""Places of changes in the source's log, and ends of transactions, as several formats have them."""

from __future__ import annotations

from headgate.core.event import Event
from headgate.formats.base import Place


def is_commit_marker(event: Event) -> bool:
    """Whether an event is the marker of a transaction's end.

    >>> is_commit_marker(Event("marker", "commit")), is_commit_marker(Event("marker", "begin"))
    (True, False)
    """
    return event.kind == "marker" and event.op == "commit"


def commit_place(event: Event) -> Place | None:
    """One change per row and commit, so the commit's number and the key make a place.

    >>> commit_place(Event("row", "insert", key=("id",), commit_ts=7))
    ('7',)
    """
    if event.commit_ts is None or (event.kind == "row" and not event.key):
        return None
    return (str(event.commit_ts),)


def binlog_place(event: Event) -> Place | None:
    """The event in the binlog, and the row in the event. All of a snapshot is at one place.

    >>> position = {"server_id": "1", "file": "bin.000009", "pos": "4", "row": "0"}
    >>> binlog_place(Event("row", "insert", position=position))
    ('1', 'bin.000009', '4', '0')
    """
    if event.commit_ts is not None:
        return commit_place(event)
    position = event.position or {}
    if "file" not in position or "pos" not in position:
        return None
    if event.op == "snapshot" and not event.key:
        return None
    if event.kind == "row" and event.op != "snapshot" and "row" not in position:
        return None
    return tuple(position.get(name, "") for name in ("server_id", "file", "pos", "row"))
