"""RocketMQ as a data source of Spark's.

Spark asks a process of its own where the queues end (`latestOffset`) and what a batch reads
(`partitions`), and has its workers read it (`read`). All of them get the connection with the class
of the source, not with Spark's options, which plans and logs show.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.messages import KAFKA_SCHEMA
from headgate.core.limits import BATCH_BYTES, SPLICED_ROWS
from headgate.rocketmq import jvm
from headgate.rocketmq.client import Client, Pulled, Queue, client
from headgate.rocketmq.client_options import Connection
from headgate.rocketmq.errors import retried
from headgate.sources.rocketmq.offsets import (
    Offsets,
    OffsetsLost,
    Range,
    advanced,
    check_end,
    ranges,
    removed,
    with_new,
)
from headgate.sources.rocketmq.store_layout import Stored, as_columns, messages_in
from headgate.sources.topics import is_pattern, matching
from headgate.spark.api import fast_worker

Queues = dict[str, list[Queue]]
NAME = "headgate-rocketmq"
DISCOVERY_SECONDS = 5.0
"""How often topics and queues are looked for that were not there before."""
PULLED = 1_024
"""Messages that a broker is asked for at once; it has a limit of its own."""
PATIENCE, PAUSE = 100, 0.1
"""How often a broker may have nothing of a range that it said it has, and the seconds between."""


@dataclass(frozen=True)
class Subscription:
    """What the processes of Spark need to know of a source."""

    connection: Connection = field(repr=False)
    jars: tuple[str, ...]
    """Of RocketMQ's client: names of files that Spark distributes."""
    group: str
    topics: tuple[str, ...]
    start: Offsets
    """Where the first batch begins."""
    planned: Offsets
    """Where the last batch ends that Spark had planned when the query started."""
    limit: int
    """Most messages of a batch, or about so many."""
    most_bytes: int
    """The largest message that is unpacked."""

    def client(self) -> Client:
        """The client of this process."""
        return client(self.connection, jvm.local_jars(self.jars))


def data_source(subscription: Subscription) -> type[DataSource]:
    """The data source of a subscription, to be registered with a session.

    It is made here, because Spark sends a class that it cannot import with all that it refers to.
    """

    class RocketMQDataSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> Any:
            return from_arrow_schema(KAFKA_SCHEMA)

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return StreamReader(subscription)

    return RocketMQDataSource


class StreamReader(DataSourceStreamReader):
    """Plans batches, and reads them."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.planned = subscription.planned
        self.queues: Queues = {}
        self.looked = float("-inf")

    def initialOffset(self) -> Offsets:
        """Where the first batch begins: the same when it is planned again."""
        return self.subscription.start

    def latestOffset(self) -> Offsets:
        """Where the next batch ends.

        A queue that is new is in it with its first offset only: so the log of offsets has the
        place from which the batch after that reads it, also where it is planned again.
        """
        subscription = self.subscription
        own = subscription.client()
        now = time.monotonic()
        if now - self.looked >= DISCOVERY_SECONDS:
            self.queues, self.looked = found_queues(own, subscription.topics), now
        ends = ends_of(own, self.planned, self.queues)
        new = beginnings(own, self.planned, self.queues)
        return with_new(advanced(self.planned, ends, subscription.limit), new)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Range]:
        """What a batch reads, a queue at a time."""
        self.planned = end
        return ranges(start, end)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The messages of a queue, in a worker."""
        subscription = self.subscription
        with fast_worker():
            own = subscription.client()
            yield from batches_of(own, partition, subscription.group, subscription.most_bytes)


def found_queues(own: Client, topics: Sequence[str]) -> Queues:
    """The queues of the topics that are meant; a topic that there is not has none."""
    names = list(topics)
    if any(map(is_pattern, topics)):
        names = matching(topics, retried(own.topics))
    queues = {name: retried(partial(own.readable, name)) for name in names}
    return {name: each for name, each in queues.items() if each}


def beginnings(own: Client, known: Offsets, queues: Queues) -> Offsets:
    """The first offsets of queues that are not known yet."""
    return {
        topic: {
            str(queue): retried(partial(own.min_offset, topic, queue))
            for queue in each
            if str(queue) not in known.get(topic, {})
        }
        for topic, each in queues.items()
    }


def ends_of(own: Client, offsets: Offsets, queues: Queues) -> Offsets:
    """Where those queues end of which there are offsets.

    A queue that no broker has is not read on: its broker may be down, and comes back.
    """
    ends: Offsets = {}
    for topic, known in offsets.items():
        there = {str(queue): queue for queue in queues.get(topic, ())}
        ends[topic] = dict(known)
        for name in known.keys() & there.keys():
            end = retried(partial(own.max_offset, topic, there[name]))
            check_end(own.where, topic, name, known[name], end)
            ends[topic][name] = end
    return ends


def batches_of(own: Client, part: Range, group: str, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The messages of a range in order."""
    waiting: list[Stored] = []
    at, size = part.start, 0
    for pulled in answers(own, part, group):
        for message in messages_in(pulled.data, most_bytes):
            if message.offset >= part.end:
                break
            if message.offset > at:  # brokers pass over what is being removed
                raise removed(own.where, part, at, message.offset)
            waiting.append(message)
            at, size = at + 1, size + len(message.body)
        if len(waiting) >= SPLICED_ROWS or size >= BATCH_BYTES:
            yield as_columns(waiting, part.topic, part.number)
            waiting, size = [], 0
    if waiting:
        yield as_columns(waiting, part.topic, part.number)


def answers(own: Client, part: Range, group: str) -> Iterator[Pulled]:
    """What the broker gives for a range; while one answer is used, the next is on its way."""
    queue = Queue.of(part.queue)

    def pull(at: int) -> Pulled:
        most = min(PULLED, part.end - at)
        for _ in range(PATIENCE):
            pulled = retried(lambda: own.pull(part.topic, queue, at, most, group))
            if pulled.status == "found":
                return pulled
            if pulled.least > at:
                raise removed(own.where, part, at, pulled.least)
            time.sleep(PAUSE)
        raise OffsetsLost(
            f"{own.where}: queue {part.queue} of topic {part.topic} gives no message {at}, and the "
            f"batch reads up to {part.end}; look at the broker's log, and start the job again"
        )

    with ThreadPoolExecutor(1) as background:
        following: Future[Pulled] | None = background.submit(pull, part.start)
        while following is not None:
            pulled = following.result()
            following = background.submit(pull, pulled.next) if pulled.next < part.end else None
            yield pulled
