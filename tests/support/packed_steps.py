"""Steps as sinks that take packed rows get them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.spark.row_packing import FLAT_SCHEMA, packed_rows_of


def step_of(spark: SparkSession, messages: Iterable[dict[str, Any]]) -> DataFrame:
    """Messages by the columns of FLAT_SCHEMA; what is not given is null."""
    flat = pa.RecordBatch.from_pylist(list(messages), FLAT_SCHEMA)
    return spark.createDataFrame(pa.Table.from_batches([packed_rows_of(flat)])).coalesce(1)
