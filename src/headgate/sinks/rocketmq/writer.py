"""Steps of a batch to RocketMQ: each is a job of Spark's, whose tasks send rows in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.core.errors import HeadgateError
from headgate.rocketmq import jvm
from headgate.rocketmq.client import client
from headgate.sinks.base import Batch, Target, Writer
from headgate.sinks.rocketmq import RocketMQSink
from headgate.sinks.rocketmq.sender import Sender
from headgate.sinks.rocketmq.topics import RocketMQTopics
from headgate.sinks.topics import check_topics, fixed_topics
from headgate.spark.api import fast_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULT = "sent long, error string"


class WriteError(HeadgateError):
    """A batch was not written; started again, the job writes it again."""


class RocketMQWriter(Writer):
    """Sends from Spark's workers: at least once; the property `headgate-id` tells copies apart."""

    topics: RocketMQTopics

    def __init__(self, spark: SparkSession, sink: RocketMQSink, target: Target) -> None:
        self.sink, self.name = sink, target.name
        self.jars = jvm.shipped(spark)
        self.topics = RocketMQTopics(sink, target.name, target.options)
        # A name that cannot be is refused at the start, and an address where nobody answers.
        if names := fixed_topics(target):
            check_topics(self.name, self.topics, names)
        else:
            client(sink.connection).topics()
        self.topics.retry = sink.connection.retry

    def write(self, batch: Batch, steps: Sequence[DataFrame], topics: Iterable[str]) -> None:
        """Write steps one after the other; one is acknowledged before the next begins."""
        check_topics(self.name, self.topics, topics)
        sender = Sender(self.sink, self.jars, self.topics.queues)

        def send(rows: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            # What fails comes back as a row: an exception would come with a stack of Spark's.
            try:
                with fast_worker():
                    sent, error = sender.send(rows), None
            except HeadgateError as reason:
                sent, error = 0, str(reason)
            yield pa.RecordBatch.from_pydict(
                {"sent": [sent], "error": pa.array([error], pa.string())}
            )

        for step in steps:
            batch.still_ours()
            results = step.mapInArrow(send, RESULT).collect()
            errors = [row.error for row in results if row.error is not None]
            if errors:
                raise WriteError(f"{errors[0]}")
