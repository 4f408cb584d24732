"""Landed tables as tests see them: through delta-rs' own SQL, which knows nothing of Headgate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from packed_changes import Change, packed

from headgate.landing.shape import TableShape
from headgate.schema.changes import TableId
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.merge import merge_table
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.outcome import Merged


class LandedLake:
    """A lake in a folder, and a job that lands batches in it."""

    def __init__(self, folder: Path, job: str = "job", **options: Any) -> None:
        self.lake = Lake(str(folder), job, DeltaOptions(**options))
        self.batch = 0

    def land(
        self, *parts: Sequence[Change], shape: TableShape | None = None, batch: int | None = None
    ) -> Merged:
        """Land a batch of one table; each part was packed by another worker."""
        number = self.batch if batch is None else batch
        self.batch = max(self.batch, number + 1)
        token = self.lake.merge_token(number, 0)
        blobs = [packed(part, shape, first=number * 1000) for part in parts]
        return merge_table(self.lake, token, blobs)

    def delta(self, table: TableId) -> DeltaTable:
        return DeltaTable(self.lake.location(table).uri)

    def rows(self, table: TableId, columns: str = "*", order: str = "id") -> list[dict[str, Any]]:
        """What a reader sees."""
        builder = QueryBuilder().register("landed", self.delta(table))
        found = builder.execute(f"SELECT {columns} FROM landed ORDER BY {order}")
        rows: list[dict[str, Any]] = pa.table(found).to_pylist()
        return rows

    def values(self, table: TableId) -> list[dict[str, Any]]:
        """The rows without Headgate's columns."""
        return [
            {name: value for name, value in row.items() if not name.startswith("_")}
            for row in self.rows(table)
        ]
