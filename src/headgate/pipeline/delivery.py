"""Encoded messages on their way to a sink: fitted to what it takes, or kept from it."""

from __future__ import annotations

from headgate.arrow.headers import from_text, header_bytes, to_text
from headgate.codec.encoder import Encoded, Encoder
from headgate.config.job import Sink
from headgate.core.errors import shown
from headgate.core.event import Event, Record
from headgate.core.losses import kind_of
from headgate.pipeline.change import Change

BETWEEN_VALUES = ","
"""Separates the values of a row key of several columns."""


class Fitting:
    """Fits the messages of a format to their sink."""

    def __init__(self, sink: Sink, encoder: Encoder) -> None:
        connector = sink.connector
        self.takes_packed_rows = connector.takes_packed_rows
        # A message of several rows has no row's key.
        self.uses_row_keys = connector.uses_row_keys and encoder.packer is None
        self.fits = not (self.takes_packed_rows or self.uses_row_keys)
        """Whether the sink takes messages as they are."""

    def __call__(self, event: Event, outcome: Encoded) -> None:
        """Change what became of an event as the sink needs it."""
        if self.fits:
            return
        for record in outcome.records:
            if self.takes_packed_rows:
                record.table = event.table
            if self.uses_row_keys and record.key is None:
                record.key = row_key(event)


def row_key(event: Event) -> bytes | None:
    """The values of a row's primary key as text; None where it is not known.

    >>> row_key(Event("row", "insert", "d", "t", ("a", "b"), after={"a": "1", "b": "x"}))
    b'1,x'
    """
    image = event.before if event.after is None else event.after
    if not event.key or not image:
        return None
    values = [image.get(name) for name in event.key]
    texts = [value for value in values if value is not None]
    return BETWEEN_VALUES.join(texts).encode() if len(texts) == len(values) else None


class DeliveryCheck:
    """Finds what keeps messages from a sink.

    There is no topic for it, or one that the sink refuses, or the message is too large.
    """

    def __init__(self, sink: Sink, refused: dict[str, str], is_named: bool) -> None:
        self.name = f"{sink.name}: " if is_named else ""
        """Of several sinks, which one it is."""
        connector = sink.connector
        self.uses_topics, self.max_bytes = connector.uses_topics, connector.max_bytes
        self.max_header_bytes = connector.max_header_bytes
        self.refused = refused

    def __call__(self, change: Change, outcome: Encoded) -> tuple[str, str] | None:
        """The code and reason for which a change cannot be written."""
        error = outcome.error
        if error is None and self.uses_topics:
            error = self.without_topic(change, outcome)
        if error is None:
            error = self.too_large(change, outcome.records)
        if error is None or change.event.error is not None:
            return error
        code, reason = error
        return code, f"{self.name}{reason}"

    def without_topic(self, change: Change, outcome: Encoded) -> tuple[str, str] | None:
        """Whether there is no topic that takes a message."""
        records = outcome.records
        if not records:
            return None
        topic = records[0].topic if change.topic is None else change.topic
        if topic is None:
            if change.event.kind in ("row", "ddl"):
                reason = "no route names a topic for it; add one, or give the sink a topic"
                return "no-topic", reason
            # A marker, heartbeat or tombstone of no table: there is nowhere to send it.
            outcome.records, outcome.lost = [], [kind_of(change.event)]
            return None
        if topic in self.refused:
            return (
                "refused-topic",
                f"the sink does not take the topic {shown(topic)}: {self.refused[topic]}; send the "
                "table to another one by a route, or by the sink's topic",
            )
        return None

    def too_large(self, change: Change, records: list[Record]) -> tuple[str, str] | None:
        """Whether a message is larger than the sink takes, or its key and headers are."""
        if self.max_bytes is None and self.max_header_bytes is None:
            return None
        carried = from_text(change.headers)
        for record in records:
            headers = (*carried, *(record.headers or ()))
            key = len(record.key or b"")
            if self.max_header_bytes is not None:
                text = to_text(headers) or ""
                if key + len(text.encode()) > self.max_header_bytes:
                    return (
                        "too-large",
                        "the message's key and its headers as JSON would be larger than the "
                        f"{self.max_header_bytes} bytes that the sink takes; shorten them",
                    )
            size = key + header_bytes(headers) + len(record.value or b"")
            if self.max_bytes is not None and size > self.max_bytes:
                return (
                    "too-large",
                    f"the message would be larger than the {self.max_bytes} bytes that the sink "
                    "takes, its headers included; set max-message-bytes there and on the broker",
                )
        return None
