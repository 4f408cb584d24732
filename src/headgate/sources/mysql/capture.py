"""What the processes of Spark need to know of a database that is captured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.mysql.login import Login
from headgate.sources.mysql import MySQLSource
from headgate.sources.mysql.beginning import Beginning
from headgate.sources.mysql.offsets import CaptureOffset
from headgate.sources.mysql.tables import TablePatterns
from headgate.spark.storage import Storage

BYTES_PER_CHANGE = 200
"""What a change is taken to have, where a batch is limited by their number."""


@dataclass(frozen=True)
class Capture:
    """What the processes of Spark need to know of a source."""

    login: Login = field(repr=False)
    patterns: TablePatterns
    replica_id: int
    """For looking ahead; reading has the next one."""
    state: str
    """Where the job's state is."""
    settings: dict[str, str] = field(repr=False)
    chunk_rows: int
    parallel_chunks: int
    batch_bytes: int
    heartbeat: float
    start: CaptureOffset
    planned: CaptureOffset
    """Where the last batch ends that Spark had planned when the query started."""

    @property
    def storage(self) -> Storage:
        """The job's state."""
        return Storage(self.state, self.settings)


def capture_of(
    source: MySQLSource,
    beginning: Beginning,
    planned: CaptureOffset,
    state: str,
    settings: Mapping[str, str],
    cores: int,
    limit: int | None = None,
) -> Capture:
    """What the processes of Spark need to know of a source; a batch has about `limit` changes."""
    options = source.options
    most = options.max_batch_bytes
    return Capture(
        login=source.login,
        patterns=source.patterns,
        replica_id=options.server_id or beginning.replica_id,
        state=state,
        settings=dict(settings),
        chunk_rows=options.chunk_rows,
        parallel_chunks=options.parallel_chunks or 2 * cores,
        batch_bytes=most if limit is None else min(most, limit * BYTES_PER_CHANGE),
        heartbeat=options.heartbeat,
        start=beginning.start,
        planned=planned,
    )
