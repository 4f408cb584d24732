"""The rows that a pass gives to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headgate.arrow.messages import DEAD_LETTER
from headgate.core.limits import BATCH_BYTES
from headgate.pipeline.plan import Emit
from headgate.spark.row_packing import PACK_SCHEMA

WORK_SCHEMAS: dict[Emit, pa.Schema] = {
    "messages": pa.schema([*PACK_SCHEMA, ("dead_letter", DEAD_LETTER)]),
    "tables": pa.schema(
        [
            ("sink", pa.int32()),
            ("step", pa.int32()),
            ("table", pa.string()),
            ("count", pa.int64()),
            ("changes", pa.binary()),
            ("dead_letter", DEAD_LETTER),
        ]
    ),
}
"""A row is messages for a sink, packed changes of a table, or a dead letter."""


def work_rows(emit: Emit, **columns: Any) -> pa.RecordBatch:
    """Rows of a pass; the columns that are not given are null."""
    schema = WORK_SCHEMAS[emit]
    rows = len(next(iter(columns.values())))
    arrays = []
    for each in schema:
        given = columns.get(each.name)
        if given is None:
            arrays.append(pa.nulls(rows, each.type))
        else:
            arrays.append(given if isinstance(given, pa.Array) else pa.array(given, each.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def slices(sizes: list[int]) -> Iterator[slice]:
    """Cut messages into runs that one Arrow batch can hold: no column may grow past 2 GiB.

    >>> list(slices([1, 2])), list(slices([]))
    ([slice(0, 2, None)], [])
    """
    start = total = 0
    for at, size in enumerate(sizes):
        total += size
        if total > BATCH_BYTES and at > start:
            yield slice(start, at)
            start, total = at, size
    if sizes:
        yield slice(start, len(sizes))
