"""A DataFrame of events as the source of a job: what `headgate.land` reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.core.connectors import Address
from headgate.core.errors import UsageError
from headgate.core.options import NoOptions
from headgate.sources.base import Files, Origin, Reader, Source
from headgate.spark.api import event_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class EventSource(Source):
    """Events that a program has decoded; no URI names them."""

    name = "events"
    summary = "a DataFrame of events"
    gives = "events"
    Options = NoOptions

    @classmethod
    def from_uri(cls, address: Address) -> Self:
        """There is none."""
        raise UsageError("a DataFrame of events has no URI; use headgate.land")

    def open(self, spark: SparkSession, origin: Origin) -> EventReader:
        """The reader of a job that starts."""
        return EventReader()


class EventReader(Reader):
    """Brings events into their order."""

    def __init__(self) -> None:
        self.range: Files = []
        """What the next batch contains, by which a repeat of it is recognised."""

    def stream(self, limit: int | None) -> DataFrame:
        """There is none: whoever has the DataFrame starts its query."""
        raise NotImplementedError

    def messages(self, batch: DataFrame) -> tuple[DataFrame, Files]:
        """Events as `placed_events` gives them, each partition in order."""
        by_partition = batch.repartition("topic", "partition")
        ordered = by_partition.sortWithinPartitions("topic", "partition", "offset", "row", "at")
        return ordered.drop("row", "at"), self.range


def placed_events(events: DataFrame) -> DataFrame:
    """Events with their places: in their topic, or else in the DataFrame.

    Events without offsets are of a partition of their own for each partition of the DataFrame, and
    in the order of its rows.
    """
    names = event_columns(events)
    origin, offset = F.col("origin"), F.col("origin.offset")
    in_topic = F.coalesce(origin.partition, F.lit(0))
    return events.select(
        F.col("raw_key").alias("key"),
        F.col("raw").alias("value"),
        origin.topic.alias("topic"),
        F.when(offset.isNull(), F.spark_partition_id()).otherwise(in_topic).alias("partition"),
        offset.alias("offset"),
        origin.timestamp.alias("timestamp"),
        F.lit(None).cast("string").alias("headers"),
        F.struct(*names).alias("event"),
        F.expr("try_cast(position['row'] AS int)").alias("row"),
        F.monotonically_increasing_id().alias("at"),
    )
