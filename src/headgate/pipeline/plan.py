"""The input of a pass over a batch (`BatchPlan`), and its reports (`PartitionReport`).

The messages of a partition are in order, and a repeat of a change comes in the partition of the
change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from headgate.arrow.messages import Partition
from headgate.core.event import Event
from headgate.landing.resolution import Resolved
from headgate.landing.shape import TableShape
from headgate.pipeline.counts import Counts
from headgate.pipeline.dedup_store import IdFile
from headgate.pipeline.tombstones import Deleted

Emit = Literal["messages", "tables"]
"""What a pass gives for the sinks: messages in their formats, or typed changes of tables."""
Shapes = dict[int, list[TableShape]]
"""The shapes of tables by step: before the first DDL is 0."""


class PlannedDdl(msgspec.Struct):
    """A DDL event of a batch."""

    event: Event
    """As it is to be written."""
    source: Event
    """As it was decoded."""
    id: str
    wanted: bool
    """Whether it is to be written, and not only to be learnt from."""
    topic: str | None = None
    """Where a route sends it."""
    partition: Partition | None = None
    """Where it was read."""
    position: str = ""
    """Its place in the source's order, or else in its partition (codec/sequence.py)."""
    rejected: bool = False
    """Whether it became a dead letter, and so was not applied."""
    order: str = ""
    """What orders it among changes that wait for a watermark (landing/resolution.py)."""


class PartitionState(msgspec.Struct):
    """What is known of a partition from one batch to the next."""

    partition: Partition
    applied: tuple[IdFile, ...] = ()
    """The files of the changes that were applied before (dedup_store.py)."""
    watermark: int | None = None
    newest: int | None = None
    """The newest time of a change, in microseconds."""
    last_delete: Deleted | None = None
    """The last change, if it was a delete whose tombstone may follow."""
    committed: Resolved | None = None
    """Where its last transaction ends, if its messages have that and the job needs it."""


@dataclass(frozen=True)
class KnownTopics:
    """What is known of the topics of a sink."""

    partitions: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Topics that Kafka does not take, and why."""


@dataclass(frozen=True)
class BatchPlan:
    """What a pass has to know of the job so far, and of its batch."""

    state_uri: str
    partitions: dict[Partition, PartitionState] = field(default_factory=dict)
    by_place: bool = False
    """Whether messages can come again at the same place: from files and the inbox, not Kafka."""
    catalog: str | None = None
    """The file of the tables that DDL of earlier batches defined (catalog.py)."""
    ddl: tuple[PlannedDdl, ...] = ()
    """DDL of this batch in its order."""
    disordered: frozenset[Partition] = frozenset()
    """Partitions whose changes have to be sorted by their commits."""
    topics: tuple[KnownTopics, ...] = ()
    """By sink."""
    emit: Emit = "messages"
    job_id: str = ""
    """Whose order it is where changes have no position in the source's log."""
    first: int = 0
    """What messages of a partition are numbered from that have no offsets."""


class PartitionReport(msgspec.Struct):
    """What a pass did with the messages of one partition."""

    state: PartitionState
    """What is known of the partition from now on."""
    counts: Counts = msgspec.field(default_factory=Counts)
    ddl: list[PlannedDdl] = []
    disordered: bool = False
    unplaced: bool = False
    """Whether there are changes that neither the source's log nor an offset gives an order."""
    topics: list[list[str]] = []
    """By sink, where messages go."""
    steps: list[int] = []
    """Between which DDL there are messages: before the first is 0."""
    shapes: list[Shapes] = []
    """By sink, the shapes of the tables that have changes, as far as the changes have them."""
    with_headers: bool = False
    """Whether any message has more headers than its id."""
    rejection: tuple[str, str] | None = None
    """Code and reason of the first dead letter."""
    signatures: list[tuple[int, str]] = []
    """Types of a row condition's columns that the pass had no expression for."""
    fastpath_wrong: bool = False
    """Whether the fast path and the codecs disagree: nothing of the batch may be written."""
