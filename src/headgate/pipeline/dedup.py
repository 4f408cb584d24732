"""Deduplication: a change is identified by its place in the source's log."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from headgate.core.event import Event, qualified
from headgate.formats import traits_of
from headgate.pipeline.change import Change, Message

ID_BYTES = 16
_json = msgspec.json.Encoder(enc_hook=str).encode


def identity(event: Event) -> bytes | None:
    """Sixteen bytes that identify a change and its repeats; None where it has no place of its own.

    Losing a change is worse than writing it twice: what could be two changes is not called one.
    A table without a key may hold equal rows, so its rows are identified only by a place of their
    own.

    >>> first = Event("row", "insert", "d", "t", ("id",), after={"id": "1"}, commit_ts=7)
    >>> first.format, first.dialect = "canal-json", "ticdc"
    >>> len(identity(first)), identity(Event("row", "insert", "d", "t", after={"id": "1"}))
    (16, None)
    """
    text = identity_text(event)
    return None if text is None else digest(text)


def digest(text: bytes | memoryview) -> bytes:
    """The identity of a change, of what makes it up."""
    return blake2b(text, digest_size=ID_BYTES).digest()


def identity_text(event: Event) -> bytes | None:
    """What makes up the identity of a change: its place in the log, its table and its key.

    It is JSON, in which the values of the message stand as they are, so that the fast path can
    splice it as it splices messages.

    >>> event = Event("row", "insert", "d", "t", ("id",), after={"id": "1"}, commit_ts=7)
    >>> event.format, event.dialect = "canal-json", "ticdc"
    >>> identity_text(event)
    b'["row","insert","d","t",["7"],["1"]]'
    """
    find = traits_of(event.format, event.dialect).place
    place = None if find is None else find(event)
    if place is None:
        return None
    kind, key = event.kind, event.key
    content: list[object] | None = None
    if kind == "ddl":
        content = [event.ddl]
    elif kind != "row":
        return None
    elif key:  # of the row before and after, as far as it is known
        content = []
        for image in (event.before, event.after):
            if image:
                for name in key:
                    content.append(image.get(name))
    table = event.table if event.schema is None else qualified(event.schema, event.table)
    return _json((kind, event.op, event.database, table, place, content))


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


def placed_identity(place: str, number: int) -> bytes:
    """The identity of a change by the place of its message, and its number in that message.

    >>> placed_identity("a.jsonl:1", 0) == placed_identity("a.jsonl:1", 1)
    False
    """
    return digest(_json(("place", place, number)))
