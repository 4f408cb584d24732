"""A delete and its tombstone are two messages of one change: both are written, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec
import pyarrow as pa

from headgate.core.event import Event
from headgate.pipeline.dedup import ID_BYTES


class Deleted(msgspec.Struct):
    """A delete whose tombstone may follow."""

    key: bytes
    """The key of its message, as it was sent."""
    event: Event
    """The delete, as it was decoded."""
    verdict: str
    """What the job's row conditions decide about it."""
    id: bytes | None = None
    """The identity of the delete."""

    def tombstone_id(self) -> bytes | None:
        """The identity of its tombstone, by which a repeat of it is recognised.

        >>> len(Deleted(b"k", Event("row", "delete"), "keep", b"id").tombstone_id())
        16
        """
        if self.id is None:
            return None
        return blake2b(self.id + b"tombstone", digest_size=ID_BYTES).digest()


class TombstonePairs:
    """Finds the delete of each tombstone of a partition: the change before it, with the same key.

    >>> pairs = TombstonePairs(None)
    >>> events = [Event("row", "delete"), Event("tombstone")]
    >>> keys = pa.array([b"1", b"1"])
    >>> pairs.take(events, [0, 1], keys, [None, None], ["keep", "keep"])[1].key
    b'1'
    """

    def __init__(self, last: Deleted | None) -> None:
        self.last = last
        """The change that came last, if it was a delete."""

    def take(
        self,
        events: Sequence[Event],
        rows: Sequence[int],
        keys: pa.Array,
        ids: Sequence[bytes | None],
        verdicts: Sequence[str],
    ) -> dict[int, Deleted]:
        """The deletes of the tombstones among events, by the tombstone's number.

        `rows` has the number of each event's message.
        """
        deletes: dict[int, Deleted] = {}
        if keys.null_count == len(keys):  # no tombstone has a delete
            if any(event.kind == "row" for event in events):
                self.last = None
            return deletes
        for n, event in enumerate(events):
            if event.kind == "row":
                self.last = None
                if event.op == "delete":
                    key = keys[rows[n]].as_py()
                    if key is not None:
                        self.last = Deleted(key, event, verdicts[n], ids[n])
            elif event.kind == "tombstone":
                last = self.last
                if last is not None and keys[rows[n]].as_py() == last.key:
                    deletes[n] = last
        return deletes
