"""RocketMQ as a data source of Spark's.

Spark asks a process of its own where the queues end (`latestOffset`) and what a batch reads
(`partitions`). What it is given are ranges of queues; the workers that process their messages pull
them. All of them get the connection with a class or a function, not with Spark's options, which
plans and logs show.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.messages import KAFKA_SCHEMA
from headgate.core.limits import BATCH_BYTES, SPLICED_ROWS
from headgate.rocketmq import jvm
from headgate.rocketmq.client import Client, Queue, client
from headgate.rocketmq.client_options import Connection
from headgate.rocketmq.errors import ClientError, retried
from headgate.rocketmq.transfer import Asked, Pulled
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
from headgate.sources.rocketmq.store_layout import as_columns, messages_in
from headgate.sources.topics import is_pattern, matching

Queues = dict[str, list[Queue]]
NAME = "headgate-rocketmq"
DISCOVERY_SECONDS = 5.0
"""How often topics and queues are looked for that were not there before."""
MOST_PULLED = 1_024
"""Messages that a broker is asked for at once; it has a limit of its own, by default 32."""
UNDER_WAY = 16
"""Pulls of a queue that are under way at a time."""
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
        """A range as a row, with the topic and the partition that it is of."""
        row = {
            "topic": partition.topic,
            "partition": partition.number,
            "offset": partition.start,
            "value": msgspec.json.encode(partition),
        }
        yield pa.RecordBatch.from_pylist([row], KAFKA_SCHEMA)


def range_reader(
    connection: Connection, jars: Sequence[str], group: str, most_bytes: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What makes messages of ranges, in a worker; those over `most_bytes` are not unpacked."""

    def read(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            for part, number in zip(batch["value"].to_pylist(), batch["partition"].to_pylist()):
                if number is not None:  # else it is the path of a dead letter
                    own = client(connection, jvm.local_jars(jars))
                    found = msgspec.json.decode(part, type=Range)
                    yield from batches_of(own, found, group, most_bytes)

    return read


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
    answers: list[bytes] = []
    start, size = part.start, 0
    for pulled in Pulls(own, part, group).answers():
        answers.append(pulled.data)
        size += len(pulled.data)
        rows = pulled.next - start
        if rows >= SPLICED_ROWS or size >= BATCH_BYTES or pulled.next >= part.end:
            messages = messages_in(b"".join(answers))
            check_offsets(own.where, part, start, rows, messages.offsets)
            yield from as_columns(messages, part.topic, part.number, most_bytes)
            start, size, answers = pulled.next, 0, []


def check_offsets(where: str, part: Range, start: int, rows: int, offsets: Any) -> None:
    """Refuse messages among which one is missing: brokers pass over what is being removed."""
    if np.array_equal(offsets, np.arange(start, start + rows)):
        return
    for at, offset in enumerate((*offsets.tolist(), start + rows), start):
        if offset != at:
            raise removed(where, part, at, offset)


class Pulls:
    """Pulls a range of a queue: while one answer is used, others are on their way."""

    def __init__(self, own: Client, part: Range, group: str) -> None:
        self.own, self.where, self.part = own, own.where, part
        self.transfer = own.transfer(part.topic, Queue.of(part.queue), group)

    def answers(self) -> Iterator[Pulled]:
        """What the broker gives for the range, in order.

        How many messages it gives at once is its own affair, and depends on their sizes and on
        whether it has to read them from its disk. So the first answer is waited for, and the rest
        is asked for in pieces as large as that; and so again for each batch of rows.
        """
        at, end = self.part.start, self.part.end
        while at < end:
            first = self.found(at, min(at + MOST_PULLED, end))
            yield first
            until = min(at + SPLICED_ROWS, end)
            size, at = first.next - at, first.next
            for begin, stop, asked in self.pieces(at, until, size):
                pulled = self.found(begin, stop, asked)
                yield pulled
                while pulled.next < stop:
                    pulled = self.found(pulled.next, stop)
                    yield pulled
            at = until

    def pieces(self, at: int, end: int, size: int) -> Iterator[tuple[int, int, Asked[Pulled]]]:
        """A range in pieces, some of them asked for in advance."""
        under_way: deque[tuple[int, int, Asked[Pulled]]] = deque()
        for begin in range(at, end, size):
            stop = min(begin + size, end)
            under_way.append((begin, stop, self.transfer.pull(begin, stop - begin)))
            if len(under_way) >= UNDER_WAY:
                yield under_way.popleft()
        yield from under_way

    def found(self, at: int, end: int, asked: Asked[Pulled] | None = None) -> Pulled:
        """Messages from an offset on, which may have been asked for already."""

        def again() -> Pulled:
            return self.transfer.pull(at, end - at).result()

        for _ in range(PATIENCE):
            try:
                pulled = again() if asked is None else asked.result()
            except ClientError as error:
                if not error.passes:
                    raise
                self.own.forget(self.transfer.queue)
                pulled = retried(again)
            if pulled.status == "found" and pulled.next > at:
                return pulled
            if pulled.least > at:
                raise removed(self.where, self.part, at, pulled.least)
            asked = None
            time.sleep(PAUSE)
        raise OffsetsLost(
            f"{self.where}: queue {self.part.queue} of topic {self.part.topic} gives no message "
            f"{at}, and the batch reads up to {self.part.end}; look at the broker's log, and start "
            "the job again"
        )
