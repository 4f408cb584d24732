"""A change on its way through a pass, and the messages that it came in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.messages import Partition
from headgate.codec.encoder import Encoded
from headgate.codec.event_lines import line
from headgate.core.event import Event

KEEP, DROP, UNKNOWN_SIGNATURE = "keep", "drop", "unknown-signature"
"""Verdicts of a row condition (row_filter.py); any other is the code and reason of a rejection."""


class MessageBatch:
    """Messages of one partition.

    >>> rows = pa.RecordBatch.from_pydict({"offset": [7, 8], "headers": pa.nulls(2, pa.string())})
    >>> MessageBatch(("orders", 0), rows).places
    ['orders-0-7', 'orders-0-8']
    """

    def __init__(self, partition: Partition, rows: pa.RecordBatch, first: int = 0) -> None:
        self.partition, self.rows = partition, rows
        self.first = first
        """The number of the first message, for those that have no offset."""
        headers = rows.column("headers")
        self.headers = None if headers.null_count == len(headers) else headers.to_pylist()
        """The headers of each message as text; None where no message has any."""

    def offsets(self) -> pa.Array:
        """Topic, partition and offset of each message as one text."""
        return offset_names(self.partition, self.rows)

    @cached_property
    def numbers(self) -> list[int]:
        """What orders the messages of a partition: their offsets, or as they were read."""
        offsets = self.rows.column("offset")
        if offsets.null_count:
            return list(range(self.first, self.first + self.rows.num_rows))
        return list(offsets.to_pylist())

    @cached_property
    def partition_name(self) -> str:
        """Topic and partition as one text."""
        topic, number = self.partition
        return f"{topic}-{'' if number is None else number}"

    def first_event(self, row: int) -> int:
        """The number of a message's first event among all that the message gave."""
        return 0

    def content(self, row: int) -> dict[str, Any]:
        """A message as a dead letter has it, by the names of its columns."""
        content: dict[str, Any] = self.rows.slice(row, 1).to_pylist()[0]
        return content

    @cached_property
    def places(self) -> list[str]:
        """What identifies each message: its place in a file, or its topic, partition and offset."""
        if "place" in self.rows.schema.names and self.rows.column("place").null_count == 0:
            return list(self.rows.column("place").to_pylist())
        return list(self.offsets().to_pylist())


class EventBatch(MessageBatch):
    """Events of one partition that were decoded before: each counts as a message."""

    def __init__(
        self, partition: Partition, rows: pa.RecordBatch, events: Sequence[Event], first: int
    ) -> None:
        super().__init__(partition, rows, first)
        self.events = events

    @property
    def has_offsets(self) -> bool:
        """Whether the events know their places in a topic."""
        return not self.rows.column("offset").null_count

    def first_event(self, row: int) -> int:
        """The number that the event had in its message, if others came with it."""
        number = (self.events[row].position or {}).get("row", "")
        return int(number) if number.isdecimal() and len(number) < 10 else 0

    def content(self, row: int) -> dict[str, Any]:
        """The message, if the event has it, else the event as JSON."""
        content = super().content(row)
        if content["value"] is None and content["key"] is None:
            content["value"] = line(self.events[row])
        return content

    @cached_property
    def places(self) -> list[str]:
        """What identifies each event: its topic, partition and offset, or its number."""
        if self.has_offsets:
            return super().places
        return [f"event {number}" for number in self.numbers]


def offset_names(partition: Partition, rows: pa.RecordBatch) -> pa.Array:
    """Topic, partition and offset of each message as one text."""
    topic, number = partition
    offsets = rows.column("offset").cast(pa.string())
    return pc.binary_join_element_wise(f"{topic}-{number}-", offsets, "")


Message = tuple[MessageBatch, int]
"""A message: its batch, and its row there."""


class Change(msgspec.Struct, gc=False):
    """An event, and what a pass finds out about it."""

    event: Event
    messages: MessageBatch
    row: int
    """The number of its message."""
    id: bytes | None
    """What a repeat of it is recognised by."""
    name: str
    """What it is known by to a reader of its message."""
    number: int = 0
    """Which of its message's events it is."""
    verdict: str = KEEP
    """What the job's row conditions decide about it."""
    delete: Event | None = None
    """The delete of a tombstone."""
    repeated: bool = False
    """Whether it came before in this batch: a repeat, unless the first one is rejected."""
    topic: str | None = None
    """Where a route sends it."""
    untyped: list[str] | None = None
    """Columns whose values do not match their type; None where the table is not known."""
    encoded: list[Encoded] = []
    """Its messages, by sink."""

    @property
    def message(self) -> Message:
        """The message that it came in."""
        return self.messages, self.row

    @property
    def headers(self) -> str | None:
        """The headers that it came with, as text."""
        headers = self.messages.headers
        return None if headers is None else headers[self.row]
