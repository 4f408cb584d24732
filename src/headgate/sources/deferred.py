"""Sources whose messages are read by the workers that process them.

What Spark's stream has are ranges of the source, a row each. They are read where their messages
are needed, so that these go from no worker through Spark to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.messages import KAFKA_SCHEMA
from headgate.sources.base import Deferred
from headgate.spark.api import fast_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def data_source(named: str, reader: Callable[[], DataSourceStreamReader]) -> type[DataSource]:
    """A data source of ranges, to be registered with a session.

    The class is made here, because Spark sends a class that it cannot import with all that it
    refers to. So the workers get a password with it, and not with Spark's options, which plans and
    logs show.
    """

    class RangeSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return named

        def schema(self) -> Any:
            return from_arrow_schema(KAFKA_SCHEMA)

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return reader()

    return RangeSource


def as_row(range: Any, topic: str, partition: int, offset: int) -> pa.RecordBatch:
    """A range as a row, with the place that it is of."""
    row = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "value": msgspec.json.encode(range),
    }
    return pa.RecordBatch.from_pylist([row], KAFKA_SCHEMA)


def messages_of(deferred: Deferred, schema: pa.Schema) -> DataFrame:
    """The messages of ranges, where Spark has to have them."""
    rows, read = deferred

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            yield from read(batches)

    return rows.mapInArrow(run, from_arrow_schema(schema))
