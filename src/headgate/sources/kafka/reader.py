"""Kafka's topics as a stream, known by their ids, with their lag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import functions as F

from headgate.arrow import headers
from headgate.arrow.messages import KAFKA_SCHEMA, Partition
from headgate.core.batches import SourceRange
from headgate.core.errors import HeadgateError
from headgate.kafka.admin import AT_ONCE, Admin
from headgate.sources.base import Files, Origin, Reader
from headgate.sources.kafka import KafkaSource
from headgate.sources.kafka.topic_ids import TopicIds
from headgate.sources.topics import MOST_MESSAGES, matching, milliseconds
from headgate.spark.checkpoint import offsets_of
from headgate.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


EARLIEST, LATEST = -2, -1
"""In Kafka's JSON of offsets."""


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

    def backlog(self, number: int) -> str | None:
        """The partitions, and how many messages of them wait."""
        with Admin(self.spark._jvm, self.source.client, self.origin.name, AT_ONCE) as admin:
            try:
                topics = admin.partitions(matching(self.source.topics, admin.names()))
                wanted = [(topic, n) for topic, count in topics.items() for n in range(count)]
                ends = admin.latest(wanted)
                done = first_offsets(admin, self.source.starting, ends)
                done |= self.done_after(number) if number >= 0 else {}
            except HeadgateError:
                return None
        waiting = sum(max(0, ends[each] - done[each]) for each in ends)
        each = "1 partition" if len(ends) == 1 else f"{len(ends):,} partitions"
        return f"{each}, {waiting:,} messages to read"

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


def first_offsets(
    admin: Admin, starting: str, ends: Mapping[Partition, int]
) -> dict[Partition, int]:
    """Where a first start begins in each partition."""
    if starting == "latest":
        return dict(ends)
    if starting == "earliest" or starting.startswith("{"):
        first = admin.earliest(ends)
        given = msgspec.json.decode(starting) if starting.startswith("{") else {}
        for topic, offsets in given.items():
            for n, offset in offsets.items():
                partition = (topic, int(n))
                if partition in first and offset != EARLIEST:
                    first[partition] = ends[partition] if offset == LATEST else offset
        return first
    first = admin.earliest(ends, milliseconds(starting))
    return {each: ends[each] if offset < 0 else offset for each, offset in first.items()}


def ends_of(checkpoint: Storage, number: int) -> dict[Partition, int]:
    """The end offsets of a batch, as Spark's Kafka source writes them into its progress."""
    ends: dict[Partition, int] = {}
    for offset in offsets_of(checkpoint, number):
        for topic, partitions in offset.items() if isinstance(offset, dict) else ():
            if isinstance(partitions, dict):
                ends.update({(topic, int(n)): end for n, end in partitions.items()})
    return ends
