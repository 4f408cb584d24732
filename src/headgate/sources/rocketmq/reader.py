"""RocketMQ's topics as a stream, with their lag."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from headgate.arrow.events import most_bytes_of
from headgate.arrow.messages import KAFKA_SCHEMA, Partition
from headgate.core.errors import HeadgateError
from headgate.rocketmq import jvm
from headgate.rocketmq.client import Queue
from headgate.sources.base import Deferred, Files, Origin, Reader
from headgate.sources.deferred import data_source, messages_of
from headgate.sources.rocketmq import RocketMQSource
from headgate.sources.rocketmq.offsets import Offsets, by_partition, from_log, with_new
from headgate.sources.rocketmq.stream import NAME, StreamReader, Subscription, range_reader
from headgate.sources.topics import MOST_MESSAGES, milliseconds
from headgate.spark.checkpoint import last_planned, offsets_of
from headgate.spark.state_files import read_state, write_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE = "start.json"
AVAILABLE_NOW = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
"""Without it a query that is to process what is available now ends after one batch, and be it the
repetition of one that was interrupted."""


class Start(msgspec.Struct):
    """Where the first batch begins."""

    offsets: Offsets


class RocketMQReader(Reader):
    """Reads topics."""

    def __init__(self, spark: SparkSession, source: RocketMQSource, origin: Origin) -> None:
        self.spark, self.source, self.origin = spark, source, origin
        self.client = source.client()
        self.jars = jvm.shipped(spark)
        queues = source.queues()
        source.check_permissions(queues)
        self.start = self.first_offsets(queues)
        self.until = {
            topic: {str(queue): self.client.max_offset(topic, queue) for queue in each}
            for topic, each in queues.items()
        }
        """Where the queues ended when the job started."""
        self.stopped: tuple[int, float] | None = None
        """The batch behind which the query ended with something left to read, and when first."""

    def first_offsets(self, queues: dict[str, list[Queue]]) -> Offsets:
        """Where the first batch begins; kept, so that it begins there when it is repeated."""
        known = read_state(self.origin.state, FILE, Start)
        if known is None:
            offsets = {t: {str(q): self.first_offset(t, q) for q in queues[t]} for t in queues}
            known = Start(with_new({}, offsets))
            write_state(self.origin.state, FILE, known)
        return known.offsets

    def first_offset(self, topic: str, queue: Queue) -> int:
        """Where reading a queue starts."""
        starting = self.source.starting
        if starting == "earliest":
            return self.client.min_offset(topic, queue)
        if starting == "latest":
            return self.client.max_offset(topic, queue)
        return self.client.offset_at(topic, queue, milliseconds(starting))

    def stream(self, limit: int | None) -> DataFrame:
        """A row is a range of a queue."""
        last = last_planned(self.origin.checkpoint)
        subscription = Subscription(
            self.source.connection,
            self.jars,
            self.source.topics,
            self.start,
            self.offsets(last) or self.start,
            MOST_MESSAGES if limit is None else limit,
        )
        self.spark.conf.set(AVAILABLE_NOW, "true")
        self.spark.dataSource.register(data_source(NAME, partial(StreamReader, subscription)))
        return self.spark.readStream.format(NAME).load()

    def messages(self, batch: DataFrame) -> tuple[DataFrame | None, Files]:
        """The messages of a batch's ranges."""
        return messages_of(self.deferred(batch), KAFKA_SCHEMA), []

    def deferred(self, batch: DataFrame) -> Deferred:
        """Ranges, which a worker pulls."""
        most_bytes = most_bytes_of(dict(self.origin.options))
        read = range_reader(self.source.connection, self.jars, self.source.group, most_bytes)
        return Deferred(batch.select(*KAFKA_SCHEMA.names), read)

    def offsets(self, number: int) -> Offsets:
        """Where a batch ends in every queue that was known when Spark planned it."""
        return from_log(offsets_of(self.origin.checkpoint, number))

    def ends(self, number: int) -> dict[Partition, int]:
        """Where a batch ends in every partition."""
        return by_partition(self.offsets(number))

    def lag(self, number: int) -> int | None:
        """How many messages wait; None while a broker does not answer."""
        try:
            return sum(
                max(0, self.client.max_offset(topic, Queue.of(queue)) - offset)
                for topic, queues in self.offsets(number).items()
                for queue, offset in queues.items()
            )
        except HeadgateError:
            return None

    def unread(self, number: int) -> bool:
        """Whether messages that were there when the job started are behind a batch."""
        done = self.offsets(number) or self.start
        waiting = [
            f"{topic} {queue}"
            for topic, queues in self.until.items()
            for queue, end in queues.items()
            if done.get(topic, {}).get(queue, -1) < end
        ]
        if self.stopped is None or self.stopped[0] != number:
            self.stopped = number, time.monotonic()
        elif waiting and time.monotonic() - self.stopped[1] > self.source.connection.retry:
            raise HeadgateError(
                f"{self.source.connection.address}: no broker gives messages that were there when "
                f"the job started ({', '.join(waiting[:5])}); is a broker down?"
            )
        return bool(waiting)
