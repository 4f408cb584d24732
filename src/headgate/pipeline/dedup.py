"""What a change is known by: its place in the source's log, so that a repeat is recognised."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from headgate.core.event import Event, qualified
from headgate.formats import traits_of
from headgate.pipeline.change import Change, Message

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
    find = traits_of(event.format, event.dialect).place
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


def settle(
    changes: Sequence[Change], rejections: MutableMapping[Message, Any], applied: set[bytes]
) -> tuple[list[Change], list[Change]]:
    """The changes that are no repeats, and those of them that are written.

    What is rejected was not applied: when it comes again, that is no repeat. So `applied` has what
    is written, and `rejections` has no repeats of what is written.
    """
    for change in changes:
        if change.id is not None and not change.repeated and change.message in rejections:
            applied.discard(change.id)
    fresh = [change for change in changes if not change.repeated or change.id not in applied]
    for message in rejections.keys() - {change.message for change in fresh}:
        del rejections[message]
    written = [change for change in fresh if change.message not in rejections]
    applied.update(change.id for change in written if change.id is not None)
    return fresh, written


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
