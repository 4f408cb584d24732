"""Batches to DataHub's topics: the driver's side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headgate.core.errors import HeadgateError
from headgate.sinks.base import Batch, Target, Writer
from headgate.sinks.datahub import DataHubSink
from headgate.sinks.datahub.sender import RESULT_DDL, task
from headgate.sinks.datahub.topics import DataHubTopics
from headgate.sinks.topics import check_topics, fixed_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeliveryError(HeadgateError):
    """DataHub did not take messages; started again, the job repeats the batch."""


class DataHubWriter(Writer):
    """Messages from Spark's tasks to shards: at least once, `headgate-id` tells copies apart."""

    topics: DataHubTopics

    def __init__(self, sink: DataHubSink, target: Target) -> None:
        self.sink, self.name = sink, target.name
        self.topics = DataHubTopics(sink, target)
        # What is wrong is reported at the start.
        if names := fixed_topics(target):
            check_topics(self.name, self.topics, names)
        else:
            self.topics.check_project()

    def write(self, batch: Batch, steps: Sequence[DataFrame], topics: Iterable[str]) -> None:
        """Write steps one after the other; one is acknowledged before the next begins."""
        names = list(topics)
        # Of those that are known, partitions were chosen among the shards as they were then.
        new = [name for name in names if name not in self.topics.shards]
        check_topics(self.name, self.topics, new)
        shards = {name: self.topics.shards[name] for name in names}
        sink = self.sink
        send = task(sink.connection, sink.project, shards, sink.delivery_seconds)
        for step in steps:
            batch.still_ours()
            results = step.mapInArrow(send, RESULT_DDL).collect()
            errors = [row.error for row in results if row.error is not None]
            if errors:
                raise DeliveryError(f"{self.name}: {errors[0]}")
