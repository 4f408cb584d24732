"""Delta tables in S3, with what Spark is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta_lake import LandedLake
from deltalake import QueryBuilder
from packed_changes import ORDERS, delete, orders, upsert
from s3_server import SECRET, S3Server

from headgate.schema.changes import TableId
from headgate.sinks.delta import merge
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.storage import delta_uri, storage_options

ROOT = "s3a://lake/tables"


class RemoteLake(LandedLake):
    """A lake in a bucket."""

    def __init__(self, s3: S3Server) -> None:
        super().__init__(Path("unused"))
        storage = storage_options(ROOT, s3.settings)
        self.lake = Lake(delta_uri(ROOT), "job", DeltaOptions(), storage)

    def names(self, table: TableId) -> dict[int, str]:
        delta = self.lake.location(table).open()
        assert delta is not None
        found = QueryBuilder().register("landed", delta).execute("SELECT id, name FROM landed")
        return {each["id"]: each["name"] for each in pa.table(found).to_pylist()}


def test_tables_in_a_bucket(s3: S3Server) -> None:
    lake = RemoteLake(s3)
    lake.land([upsert(1, 1, "a"), upsert(2, 2, "b")])
    lake.land([upsert(3, 1, "c"), delete(4, 2)])
    lake.land([upsert(3, 2, "late"), upsert(5, 3, "d")])
    lake.land([upsert(9, 9, "again")], batch=2)
    assert {1: "c", 3: "d"} == lake.names(ORDERS)
    assert SECRET not in repr(lake.lake)


def test_two_writers_of_one_batch(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit does not replace another in an object store either."""
    table = TableId("shop", "log")
    lake, keyless = RemoteLake(s3), orders(key=(), table=table)
    lake.land([upsert(1, 1, "x")], shape=keyless, batch=0)
    original, seen = merge.merge_changes, []

    def interrupted(*args: Any) -> Any:
        if not seen:
            seen.append(True)
            lake.land([upsert(2, 2, "y")], shape=keyless, batch=1)
        return original(*args)

    monkeypatch.setattr(merge, "merge_changes", interrupted)
    lake.land([upsert(2, 2, "y")], shape=keyless, batch=1)
    delta = lake.lake.location(table).open()
    assert delta is not None
    assert delta.count() == 2
