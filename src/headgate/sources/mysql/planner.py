"""Where batches end.

A batch is a range of the binlog, or the definitions of tables, or chunks of their rows at the
position where the binlog was left: never both, so that what a batch has comes behind all that the
batches before have.
"""

from __future__ import annotations

from msgspec.structs import replace

from headgate.mysql.definitions import current_table
from headgate.mysql.errors import DisconnectedError
from headgate.mysql.snapshot import next_bound
from headgate.sources.mysql.binlog_scan import BinlogScan
from headgate.sources.mysql.capture import Capture
from headgate.sources.mysql.offsets import CaptureOffset, PendingTable, PlannedChunk
from headgate.sources.mysql.schema_files import read_tables, write_tables


class Planner:
    """Decides where batches end."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.planned = capture.planned
        self.scan = BinlogScan(capture.login, capture.replica_id, capture.heartbeat)
        self.is_open = False

    def next(self) -> CaptureOffset:
        """Where the next batch ends: where the last one does, if there is nothing new."""
        return self.capture.login.retried(self._next)

    def _next(self) -> CaptureOffset:
        planned = self.planned
        is_waiting = bool(planned.new or planned.pending)
        if is_waiting and not planned.is_snapshot:
            return self._snapshot(planned)
        try:
            offset = self._binlog(planned)
        except DisconnectedError:
            self.is_open = False
            raise
        return self._snapshot(planned) if offset == planned and is_waiting else offset

    def _binlog(self, planned: CaptureOffset) -> CaptureOffset:
        scan, storage = self.scan, self.capture.storage
        if not self.is_open:
            known = read_tables(storage, planned.schema)
            with self.capture.login.connected() as connection:
                start = planned.start(connection.facts.server_id)
            scan.open(start, known)
            self.is_open = True
        end = scan.advance(self.capture.batch_bytes)
        if (end.file, end.pos) == (planned.file, planned.pos) or not end.file:
            return planned
        schema = planned.schema
        if scan.had_ddl:
            schema = write_tables(storage, scan.assembler.known, end)
        assert scan.connection is not None
        return replace(
            planned, file=end.file, pos=end.pos, gtids=end.gtids, schema=schema, chunks=[],
            defined=[], server_id=scan.connection.facts.server_id,
        )  # fmt: skip

    def _snapshot(self, planned: CaptureOffset) -> CaptureOffset:
        """Define tables; or read some more chunks."""
        first = planned.first_chunk + len(planned.chunks)
        with self.capture.login.connected() as connection:
            if planned.new:
                tables = [(d, t, current_table(connection, d, t)) for d, t in planned.new]
                pending = [
                    PendingTable(d, t, bool(known[0].key)) for d, t, known in tables if known
                ]
                return replace(
                    planned, new=[], defined=[[each.database, each.table] for each in pending],
                    pending=[*planned.pending, *pending], chunks=[], step=planned.step + 1,
                    first_chunk=first,
                )  # fmt: skip
            chunks: list[PlannedChunk] = []
            pending = list(planned.pending)
            while pending and len(chunks) < self.capture.parallel_chunks:
                table = pending.pop(0)
                known = current_table(connection, table.database, table.table)
                if known is None:
                    continue
                bound = None
                if table.keyed:
                    columns = known[0].columns
                    key = [(name, columns[name].mysql) for name in known[0].key]
                    bound = next_bound(
                        connection, table.database, table.table, key, table.after,
                        self.capture.chunk_rows,
                    )  # fmt: skip
                chunks.append(PlannedChunk(table.database, table.table, table.after, bound))
                if bound is not None:
                    pending.insert(0, replace(table, after=bound))
        return replace(planned, pending=pending, chunks=chunks, defined=[],
                       step=planned.step + 1, first_chunk=first)  # fmt: skip
