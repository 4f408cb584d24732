"""DataFrames whose partitions are computed from numbered pieces of work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.spark.api import fast_worker


def from_splits(
    spark: SparkSession, count: int, make: Callable[[int], Iterator[pa.RecordBatch]], schema: Any
) -> DataFrame:
    """A DataFrame of `count` partitions, the n-th of which holds the batches of `make(n)`."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            for batch in batches:
                for index in batch.column("id").to_pylist():
                    yield from make(index)

    return spark.range(0, count, 1, max(count, 1)).mapInArrow(run, schema)
