"""RocketMQ as a data source of Spark's.

Spark asks a process of its own where the queues end (`latestOffset`) and what a batch reads
(`partitions`). What it is given are ranges of queues; the workers that process their messages pull
them.
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
from pyspark.sql.datasource import DataSourceStreamReader

from headgate.core.limits import BATCH_BYTES, SPLICED_ROWS
from headgate.rocketmq import jvm
from headgate.rocketmq.client import Client, Queue, client
from headgate.rocketmq.client_options import Connection
from headgate.rocketmq.errors import ClientError, attempts, retried
from headgate.rocketmq.transfer import Asked, Pulled
from headgate.sources.deferred import as_row
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


@dataclass(frozen=True)
class Subscription:
    """What the processes of Spark need to know of a source."""

    connection: Connection = field(repr=False)
    jars: tuple[str, ...]
    """Of RocketMQ's client: names of files that Spark distributes."""
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


class StreamReader(DataSourceStreamReader):
    """Plans batches, and reads them."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.planned = subscription.planned
        self.queues: Queues = {}
        self.looked = float("-inf")
        self.silent: dict[str, float] = {}
        """Brokers that are registered and do not answer, and since when."""

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
        if time.monotonic() - self.looked >= DISCOVERY_SECONDS:
            look = partial(queues_of, own, subscription.topics)
            self.queues, self.looked = retried(look, own.retry), time.monotonic()
        ends = {topic: dict(offsets) for topic, offsets in self.planned.items()}
        new: Offsets = {}
        for topic, queue, offset in self.answers(own):
            name = str(queue)
            if name in ends.get(topic, {}):
                check_end(own.where, topic, name, self.planned[topic][name], offset)
                ends[topic][name] = offset
            else:
                new.setdefault(topic, {})[name] = offset
        return with_new(advanced(self.planned, ends, subscription.limit), new)

    def answers(self, own: Client) -> Iterator[tuple[str, Queue, int]]:
        """The end of each queue that is known, and the first offset of each that is new.

        Queues of a broker that does not answer are left out, and read on when it is back.
        """
        away: set[str] = set()
        for topic, queues in self.queues.items():
            known = self.planned.get(topic, {})
            for queue in queues:
                if queue.broker in away:
                    continue
                ask = own.max_offset if str(queue) in known else own.min_offset
                try:
                    offset = ask(topic, queue)
                except ClientError as error:
                    since = self.silent.setdefault(queue.broker, time.monotonic())
                    if not error.passes or time.monotonic() - since > own.retry:
                        raise
                    away.add(queue.broker)
                else:
                    self.silent.pop(queue.broker, None)
                    yield topic, queue, offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Range]:
        """What a batch reads, a queue at a time."""
        self.planned = end
        return ranges(start, end)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """A range as a row, with the topic and the partition that it is of."""
        yield as_row(partition, partition.topic, partition.number, partition.start)


def range_reader(
    connection: Connection, jars: Sequence[str], group: str, most_bytes: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What makes messages of ranges, in a worker; those over `most_bytes` are not unpacked."""

    def read(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            for data, number in zip(batch["value"].to_pylist(), batch["partition"].to_pylist()):
                if number is not None:  # else it is the path of a dead letter
                    own = client(connection, jvm.local_jars(jars))
                    part = msgspec.json.decode(data, type=Range)
                    yield from batches_of(own, part, group, most_bytes)

    return read


def queues_of(own: Client, topics: Sequence[str]) -> Queues:
    """The queues of the topics that are meant; a topic that there is not has none."""
    names = matching(topics, own.topics()) if any(map(is_pattern, topics)) else topics
    queues = {name: own.readable(name) for name in names}
    return {name: each for name, each in queues.items() if each}


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
            first = self.answer(at, min(at + MOST_PULLED, end))
            yield first
            until = min(at + SPLICED_ROWS, end)
            size, at = first.next - at, first.next
            for begin, stop, asked in self.pieces(at, until, size):
                pulled = self.answer(begin, stop, asked)
                yield pulled
                while pulled.next < stop:
                    pulled = self.answer(pulled.next, stop)
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

    def answer(self, at: int, end: int, asked: Asked[Pulled] | None = None) -> Pulled:
        """Messages from an offset on, which may have been asked for already."""

        for last in attempts(self.own.retry):
            asked = asked or self.transfer.pull(at, end - at)
            try:
                pulled = asked.result()
                if pulled.status == "found" and pulled.next > at:
                    return pulled
                if pulled.least > at:
                    raise removed(self.where, self.part, at, pulled.least)
            except ClientError as error:
                if last or not error.passes:
                    raise
            asked = None
        raise OffsetsLost(
            f"{self.where}: queue {self.part.queue} of topic {self.part.topic} gives no message "
            f"{at}, and the batch reads up to {self.part.end}; look at the broker's log, and start "
            "the job again"
        )
