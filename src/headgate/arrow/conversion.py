"""Conversion of batches of messages from one format into another by the codecs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headgate.arrow.events import decode_columns, decode_parts, most_bytes_of
from headgate.arrow.records import record_batch
from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoded, Encoder
from headgate.core.event import Event

Reason = tuple[str, str]
"""An error's code and sentence."""


@dataclass
class Converted:
    """What became of a batch of messages."""

    records: pa.RecordBatch
    """The messages in the other format, as RECORD_SCHEMA."""
    rejected: pa.RecordBatch
    """The messages, as they came, that could not be converted."""
    reasons: list[Reason]
    """Why, for each of them."""
    losses: Counter[str]
    """How often the target format could not represent what, by code."""


class Converter(Protocol):
    """Converts the messages of a stream, in order."""

    encoder: Encoder
    most_bytes: int
    """The size of the largest message that is read."""

    def convert(self, batch: pa.RecordBatch) -> Iterator[Converted]:
        """Convert a batch with Kafka's columns; in several parts, where it holds many rows."""
        ...


class CodecConverter:
    """Converts messages by decoding and encoding each of them.

    >>> message = b'{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
    >>> converter = CodecConverter("maxwell", {}, "canal-json", {})
    >>> (converted,) = converter.convert(pa.record_batch({"value": [message, b"{"]}))
    >>> converted.records.num_rows, [code for code, _ in converted.reasons]
    (1, ['malformed-json'])
    """

    def __init__(
        self,
        format: str,
        options: Mapping[str, Any],
        target: str,
        target_options: Mapping[str, Any],
        whole_messages: bool = True,
    ) -> None:
        """`whole_messages`: a message of which an event is rejected is not written at all.

        Without it, the other events of the message are written.
        """
        self.whole_messages = whole_messages
        self.format, self.target, self.target_options = format, target, dict(target_options)
        self.options = dict(options)
        if self.options.get("schema") == target_options.get("schema"):
            # The encoder follows the schema as DDL changes it; a decoder keeps the initial one.
            self.options.pop("schema", None)
        self.decode = decoder(format, **self.options)
        self.encoder = Encoder(target, self.options, **target_options)
        self.most_bytes = most_bytes_of(options)
        self.last: pa.RecordBatch | None = None
        """The last message of the batch before."""

    def convert(self, batch: pa.RecordBatch) -> Iterator[Converted]:
        """Convert a batch with Kafka's columns; in several parts, where it holds many rows."""
        for part, events, counts in decode_parts(batch, self.decode, self.most_bytes):
            outcomes = self.encode(part, range(part.num_rows), events, counts)
            yield self.converted(part, events, counts, outcomes)

    def encode(
        self, batch: pa.RecordBatch, rows: Any, events: list[Event], counts: list[int]
    ) -> list[Encoded]:
        """Encode the events of some rows of a batch; `counts` has the number of events per row."""
        encoder = self.encoder
        rows_of_events = np.repeat(rows, counts).tolist()
        outcomes = [
            encoder.tombstone(event, self.delete_before(batch, row))
            if event.kind == "tombstone"
            else encoder(event)
            for event, row in zip(events, rows_of_events)
        ]
        self.last = batch.slice(max(batch.num_rows - 1, 0))
        return outcomes

    def delete_before(self, batch: pa.RecordBatch, row: int) -> Event | None:
        """The delete that a tombstone follows: the message before it, if that has its key."""
        before = batch.slice(row - 1, 1) if row else self.last
        if "key" not in batch.schema.names or before is None or not before.num_rows:
            return None
        key = batch.column("key")[row]
        if not key.is_valid or before.column("key")[0] != key:
            return None
        event = decode_columns(before, self.decode, self.most_bytes)[0][-1]
        return event if event.op == "delete" else None

    def converted(
        self,
        messages: pa.RecordBatch,
        events: list[Event],
        counts: list[int],
        outcomes: list[Encoded],
    ) -> Converted:
        """The result for messages and their encoded events.

        With `whole_messages`, the outcomes of a rejected message lose their records.
        """
        rejected = rejected_messages(counts, outcomes)
        if rejected and self.whole_messages:
            first = [0, *accumulate(counts)]
            for row in rejected:
                span = slice(first[row], first[row + 1])
                outcomes[span] = [without_records(outcome) for outcome in outcomes[span]]
        return Converted(
            record_batch(self.encoder, events, outcomes),
            messages.take(pa.array(list(rejected), pa.int32())),
            list(rejected.values()),
            losses_of(outcomes),
        )


def rejected_messages(counts: list[int], outcomes: list[Encoded]) -> dict[int, Reason]:
    """The messages with an event that was rejected, by number, and why."""
    if not any(outcome.error for outcome in outcomes):
        return {}
    rejected: dict[int, Reason] = {}
    at = 0
    for row, events in enumerate(counts):
        for outcome in outcomes[at : at + events]:
            if outcome.error is not None:
                rejected.setdefault(row, outcome.error)
        at += events
    return rejected


def without_records(outcome: Encoded) -> Encoded:
    """The outcome of an event whose message is rejected; a loss counts if it is the reason."""
    is_lossy = outcome.error is not None and outcome.error[0] == "lossy"
    return Encoded([], outcome.lost if is_lossy else [], outcome.error)


def losses_of(outcomes: Iterable[Encoded]) -> Counter[str]:
    """How often what was lost."""
    losses: Counter[str] = Counter()
    for outcome in outcomes:
        losses.update(outcome.lost)
    return losses
