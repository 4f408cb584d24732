"""A change's place in OMS's stream."""

from __future__ import annotations

import msgspec

from headgate.core.event import Event
from headgate.formats.base import Place
from headgate.formats.places import commit_place

_packed = msgspec.msgpack.Encoder(enc_hook=str).encode


def sequence_place(event: Event) -> Place | None:
    """The sequence number, and the change itself in case two changes of a row share a number."""
    place = commit_place(event)
    if place is None or event.kind != "row":
        return place
    return (*place, _packed((event.before, event.after)).hex())
