"""The sinks of a running job, as the engine sees them: of messages, or of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.core.event import Event
from headgate.landing.resolution import Resolved
from headgate.pipeline.batch_pass import PassResult
from headgate.pipeline.plan import Emit, KnownTopics, PartitionReport, PlannedDdl
from headgate.pipeline.state import State
from headgate.sinks.base import Batch

Merged = dict[str, dict[str, int]]
"""What merges did, by table: how many rows were upserted, and so on."""


class BatchSteps(Protocol):
    """What one batch brings to all sinks, step by step: DDL is a barrier."""

    def add(self, result: PassResult, ddl: Sequence[PlannedDdl], catalog: str | None) -> None:
        """Add the rows of a pass and its DDL; `catalog` is what was known before it."""

    def add_watermark(self, watermark: int, state: State) -> None:
        """Add a watermark at the end, which every partition has passed."""

    def add_transaction_end(self, end: Resolved) -> None:
        """Note where the last whole transaction ends."""
        return None

    def verify(self, batch: Batch) -> None:
        """Refuse a batch that a sink cannot write, before any sink has written."""

    def write(self, batch: Batch) -> Merged:
        """Write the batch to every sink."""


class Targets(Protocol):
    """The sinks of a running job."""

    emit: Emit
    """What a pass makes for them."""

    def new_batch(self) -> BatchSteps:
        """What collects a batch."""

    def known_topics(self) -> tuple[KnownTopics, ...]:
        """What is known of each sink's topics."""

    def met_topics(self, reports: Sequence[PartitionReport], known: Sequence[KnownTopics]) -> bool:
        """Look at topics that a pass met first; whether that makes another pass of it."""

    def heartbeat(self, event: Event, batch: Batch, topics: list[list[str]]) -> None:
        """Tell readers that the job lives."""

    def idle(self, batch: Batch) -> None:
        """Let sinks do what is due while no batch is under way."""
