"""Kafka's topics as a stream, known by their ids, with their lag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headgate.arrow import headers
from headgate.arrow.messages import KAFKA_SCHEMA, Partition
from headgate.core.batches import SourceRange
from headgate.core.errors import HeadgateError
from headgate.kafka.admin import AT_ONCE, Admin
from headgate.sources.base import Files, Origin, Reader
from headgate.sources.kafka import KafkaSource
from headgate.sources.kafka.topic_ids import TopicIds
from headgate.sources.topics import MOST_MESSAGES
from headgate.spark.checkpoint import offsets_of
from headgate.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class KafkaReader(Reader):
    """Reads topics.

    One client for the lag of the whole run: to open one costs more than to ask it. After an error
    the next question opens a new one, because the brokers may have come back elsewhere.
    """

    def __init__(self, spark: SparkSession, source: KafkaSource, origin: Origin) -> None:
        self.spark, self.source, self.origin = spark, source, origin
        self.topic_ids = TopicIds(spark, source, origin)
        self.admin: Admin | None = None
        self.done: tuple[int, dict[Partition, int]] | None = None
        # Made once: for small batches planning is dear.
        headers_text = F.expr(headers.TO_TEXT).alias("headers")
        self.columns = [
            headers_text if name == "headers" else F.col(name) for name in KAFKA_SCHEMA.names
        ]

    def stream(self, limit: int | None) -> DataFrame:
        """A row is a message."""
        options = self.source.spark_options()
        options["maxOffsetsPerTrigger"] = str(MOST_MESSAGES if limit is None else limit)
        return self.spark.readStream.format("kafka").options(**options).load()

    def messages(self, batch: DataFrame) -> tuple[DataFrame | None, Files]:
        """The rows of a batch, with their headers as text."""
        return batch.select(*self.columns), []

    def ends(self, number: int) -> dict[Partition, int]:
        """Where a batch ends in every partition that Spark knew of when it planned it."""
        return ends_of(self.origin.checkpoint, number)

    def verify(self, range: SourceRange) -> None:
        """Refuse topics that were deleted and created again."""
        self.topic_ids.check(range.offsets)

    def lag(self, number: int) -> int | None:
        """How many messages wait; None while no broker answers."""
        try:
            done = self.done_after(number)
            if self.admin is None:
                name = self.origin.name
                self.admin = Admin(self.spark._jvm, self.source.client, name, AT_ONCE)
            newest = self.admin.latest(list(done))
        except HeadgateError:
            self.close_admin()
            return None
        return sum(max(0, newest[each] - done[each]) for each in done if each in newest)

    def done_after(self, number: int) -> dict[Partition, int]:
        """Where a batch ends in each partition; read once per batch."""
        if self.done is None or self.done[0] != number:
            self.done = (number, self.ends(number))
        return self.done[1]

    def close_admin(self) -> None:
        """Close the client of the lag."""
        admin, self.admin = self.admin, None
        if admin is not None:
            admin.close()

    def close(self) -> None:
        """Close the clients."""
        self.close_admin()
        self.topic_ids.close()


def ends_of(checkpoint: Storage, number: int) -> dict[Partition, int]:
    """The end offsets of a batch, as Spark's Kafka source writes them into its progress."""
    ends: dict[Partition, int] = {}
    for offset in offsets_of(checkpoint, number):
        for topic, partitions in offset.items() if isinstance(offset, dict) else ():
            if isinstance(partitions, dict):
                ends.update({(topic, int(n)): end for n, end in partitions.items()})
    return ends
