"""How many of Kafka's messages Spark hands to a worker at a time.

Spark measures what it has gathered after every message, which costs about what reading one costs.
Where every message is short, it is enough to count them. A long one is then handed over without
its contents, and the pass is run again with measuring.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

MOST_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
UNMEASURED = str(2**31 - 1)
_CONTENTS = ("key", "value", "headers")


def share(spark: SparkSession) -> int:
    """The bytes of a message where as many as Spark hands over are just within its limit."""
    rows = int(str(spark.conf.get(MOST_ROWS)))
    jvm: Any = spark._jvm
    units = jvm.org.apache.spark.network.util.JavaUtils  # for it may be said as 64m
    size: int = units.byteStringAsBytes(spark.conf.get(MOST_BYTES))
    return size // rows if rows > 0 else 0


def shortened(messages: DataFrame, most: int) -> DataFrame:
    """Messages; those longer than `most` bytes without their contents, and without an offset."""
    length = " + ".join(f"coalesce(octet_length({name}), 0)" for name in _CONTENTS)
    emptied = {*_CONTENTS, "offset"}
    return messages.selectExpr(
        *(
            f"CASE WHEN {length} <= {most} THEN {name} END AS {name}" if name in emptied else name
            for name in messages.columns
        )
    )


def has_long(messages: pa.RecordBatch) -> bool:
    """Whether any of Kafka's messages was too long to be handed over with its contents."""
    return bool(messages.column("offset").null_count)


@contextmanager
def unmeasured(spark: SparkSession) -> Iterator[None]:
    """While this lasts, Spark only counts the messages that it gathers for a worker."""
    before = str(spark.conf.get(MOST_BYTES))
    spark.conf.set(MOST_BYTES, UNMEASURED)
    try:
        yield
    finally:
        spark.conf.set(MOST_BYTES, before)
