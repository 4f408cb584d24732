"""What a change is known by: its place in the source's log, so that a repeat is recognised."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import msgspec

from headgate.core.event import Event, qualified

Place = tuple[str, ...]
Order = tuple[str, tuple[int, ...]]
"""A kind of order and a place in it; only places of one kind compare."""

ID_BYTES = 16
_packed = msgspec.msgpack.Encoder(enc_hook=str).encode


def identity(event: Event) -> bytes | None:
    """Sixteen bytes that a change and its copies have, and no other; None where it has no place.

    Losing a change is worse than writing it twice: what could be two changes is not called one.
    A table without a key may hold equal rows, so its rows are known by nothing but a place of
    their own.

    >>> first = Event("row", "insert", "d", "t", ("id",), after={"id": "1"}, commit_ts=7)
    >>> first.format, first.dialect = "canal-json", "ticdc"
    >>> len(identity(first)), identity(Event("row", "insert", "d", "t", after={"id": "1"}))
    (16, None)
    """
    find = PLACES.get(event.format or "")
    place = None if find is None else find(event)
    if place is None:
        return None
    if event.kind == "ddl":
        content: list[object] = [event.ddl]
    elif event.kind == "row":
        content = [_key_values(event)]
    else:
        return None
    table = qualified(event.schema, event.table)
    told = (event.kind, event.op, event.database, table, place, content)
    return blake2b(_packed(told), digest_size=ID_BYTES).digest()


def commit_time(commit_ts: int) -> int:
    """The time of a commit number of TiDB, in microseconds since the epoch.

    >>> commit_time(449_000_000_000_000_000)
    1712799072265000
    """
    return (commit_ts >> 18) * 1_000


def placed_identity(place: str, number: int) -> bytes:
    """What a change is known by that came at a place of a file, as a number of its message.

    >>> placed_identity("a.jsonl:1", 0) == placed_identity("a.jsonl:1", 1)
    False
    """
    return blake2b(_packed(("place", place, number)), digest_size=ID_BYTES).digest()


def _key_values(event: Event) -> list[str | None] | None:
    """The key of the row before and after, as far as it is known."""
    if not event.key:
        return None
    images = (event.before, event.after)
    return [image.get(name) for image in images if image for name in event.key]


def _commit(event: Event) -> Place | None:
    """TiCDC: one change per row and commit, so the commit and the key make a place."""
    if event.commit_ts is None or (event.kind == "row" and not event.key):
        return None
    return (str(event.commit_ts),)


def _sequence(event: Event) -> Place | None:
    """OMS: a sequence number, and the change itself, should two of a row ever share a number."""
    place = _commit(event)
    if place is None or event.kind != "row":
        return place
    return (*place, _packed((event.before, event.after)).hex())


def _canal_commit(event: Event) -> Place | None:
    return _commit(event) if event.dialect == "ticdc" else None


def _binlog(event: Event) -> Place | None:
    """Debezium: the event in the binlog, and the row in the event. A snapshot is at one place."""
    if event.commit_ts is not None:
        return _commit(event)  # TiCDC's
    position = event.position or {}
    if "file" not in position or "pos" not in position:
        return None
    if event.op == "snapshot" and not event.key:
        return None
    if event.kind == "row" and event.op != "snapshot" and "row" not in position:
        return None
    return tuple(position.get(name, "") for name in ("server_id", "file", "pos", "row"))


def _transaction(event: Event) -> Place | None:
    """Maxwell: the transaction and the row in it; the last row of one has no number."""
    if event.dialect == "ticdc":
        return _commit(event)
    position = event.position or {}
    if "xid" not in position or event.event_time is None:
        return None
    if event.dialect == "oms":
        return None
    last = "xoffset" not in position
    if last and (event.extra or {}).get("commit") != "true":
        return None
    return (position["xid"], position.get("xoffset", "last"), str(event.event_time))


PLACES: dict[str, Callable[[Event], Place | None]] = {
    "canal-json": _canal_commit,
    "open-protocol": _commit,
    "oms-default": _sequence,
    "debezium": _binlog,
    "debezium-smt": _binlog,
    "maxwell": _transaction,
}
"""By format: a change's place in the source's log; a format that has none is not here."""


def order(event: Event) -> Order | None:
    """A change's place in the source's order; numbers compare as numbers.

    >>> event = Event("row", "insert", "d", "t", position={"file": "bin.000009", "pos": "4"})
    >>> order(event)
    ('binlog  bin', (9, 4, 0))
    """
    if event.commit_ts is not None:
        return ("commit", (event.commit_ts,))
    position = event.position
    if position is None:
        return None
    file, _, number = position.get("file", "").rpartition(".")
    place = (number, position.get("pos", ""), position.get("row", "0"))
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in place):
        return None
    # Another server counts its files anew.
    return (f"binlog {position.get('server_id', '')} {file}", tuple(map(int, place)))


def comes_before(earlier: Event, later: Event) -> bool | None:
    """Whether one change came before another in the source; None where that is not known.

    >>> comes_before(Event("ddl", commit_ts=9), Event("row", commit_ts=10))
    True
    """
    one, other = order(earlier), order(later)
    if one is not None and other is not None and one[0] == other[0]:
        return one[1] < other[1]
    if earlier.event_time is None or later.event_time is None:
        return None
    return None if earlier.event_time == later.event_time else earlier.event_time < later.event_time
