"""How far a capture is: in the binlog, and in the snapshots of its tables."""

from __future__ import annotations

from typing import Any

import msgspec

from headgate.arrow.messages import Partition
from headgate.core.errors import UsageError
from headgate.mysql.connection import Start
from headgate.mysql.key_ranges import Bound

TOPIC = "mysql"
BINLOG, STEPS = 0, 1
"""Numbers of partitions: changes of the binlog; statements that define tables, and snapshot rows,
of which each chunk of a batch has a number of its own from there on."""
POS_BITS = 40


class PendingTable(msgspec.Struct, frozen=True):
    """A table whose rows are still to be read."""

    database: str
    table: str
    keyed: bool
    after: Bound | None = None
    """The key of the last row that was read."""


class PlannedChunk(msgspec.Struct, frozen=True):
    """Rows of a table that a batch reads."""

    database: str
    table: str
    after: Bound | None = None
    until: Bound | None = None


class CaptureOffset(msgspec.Struct, frozen=True):
    """Where a batch ends; and what it read beside the binlog."""

    file: str
    """Empty where it began with a set of transactions, until others were read."""
    pos: int
    gtids: str | None
    server_id: int
    """The server whose file it is."""
    schema: str
    """The file of the job's state that has the tables as they are there."""
    tables: list[str]
    """All tables that are captured, as far as they were found when a job started."""
    new: list[list[str]] = []
    """Tables that are not defined yet: neither their rows nor their changes are read."""
    pending: list[PendingTable] = []
    chunks: list[PlannedChunk] = []
    """What the batch that ends here reads of snapshots."""
    defined: list[list[str]] = []
    """The tables that the batch that ends here defines."""
    step: int = 0
    """How many batches were of snapshots."""
    first_chunk: int = 0
    """The number of the first of its chunks, among all chunks."""

    def start(self, server_id: int) -> Start:
        """The place in the binlog of a server; UsageError where it cannot be found there."""
        if server_id == self.server_id:
            return Start(self.file, self.pos, self.gtids)
        if not self.gtids:
            raise UsageError(
                f"the job is at {self.file}:{self.pos} of the server with the server_id "
                f"{self.server_id}, and this one has {server_id}; without GTIDs nothing tells "
                "where that is in its binlog. Point the job to the old server; or, if it is the "
                "same one and its server_id was changed, set it back; or begin with a new "
                "checkpoint and a new target"
            )
        return Start(gtids=self.gtids)

    @property
    def is_snapshot(self) -> bool:
        """Whether the batch that ends here reads of snapshots."""
        return bool(self.chunks or self.defined)


def offset_of(builtins: Any) -> CaptureOffset:
    """An offset as Spark keeps it."""
    return msgspec.convert(builtins, CaptureOffset)


def place_number(file: str, pos: int) -> int:
    """A place in the binlog as a number.

    >>> place_number("binlog.000002", 4) - place_number("binlog.000001", 4) == 1 << POS_BITS
    True
    """
    return (int(file.rpartition(".")[2] or 0) << POS_BITS) + pos


def ends_of(offset: CaptureOffset) -> dict[Partition, int]:
    """Where a batch ends, as numbers."""
    return {
        (TOPIC, BINLOG): place_number(offset.file, offset.pos),
        (TOPIC, STEPS): offset.step,
    }
