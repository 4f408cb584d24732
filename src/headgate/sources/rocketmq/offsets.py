"""Offsets of a RocketMQ source: by topic and queue, as Spark's checkpoint keeps them.

Messages are known by the number of their partition. Names of queues have no order that lasts, as
brokers come and go, so a queue's number is its place in its topic: a queue that is found later
comes behind those before it, and none is ever taken out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.sql.datasource import InputPartition

from headgate.arrow.messages import Partition
from headgate.core.errors import HeadgateError

Offsets = dict[str, dict[str, int]]
"""By topic and queue (`broker:number`), the offset behind the last message that was read."""


class OffsetsLost(HeadgateError):
    """What the job knows of a queue does not fit what is in it."""


@dataclass(frozen=True)
class Range(InputPartition):
    """Messages of a queue that a batch holds."""

    topic: str
    queue: str
    number: int
    """The partition that the queue is."""
    start: int
    end: int
    """Behind the last message."""


def from_log(entries: list[Any]) -> Offsets:
    """The source's own among the offsets of a batch in Spark's log; nothing if there is none.

    >>> from_log([{"logOffset": 3}, {"cdc": {"broker-a:0": 7}}])
    {'cdc': {'broker-a:0': 7}}
    """
    for entry in entries:
        try:
            return msgspec.convert(entry, Offsets)
        except msgspec.ValidationError:
            continue
    return {}


def by_partition(offsets: Offsets) -> dict[Partition, int]:
    """Offsets by partition.

    >>> by_partition({"cdc": {"broker-a:0": 7, "broker-a:1": 9}})
    {('cdc', 0): 7, ('cdc', 1): 9}
    """
    return {
        (topic, number): offset
        for topic, queues in offsets.items()
        for number, offset in enumerate(queues.values())
    }


def with_new(offsets: Offsets, current: Offsets) -> Offsets:
    """Offsets with the queues that are not in them yet, behind the others.

    >>> with_new({"cdc": {"b:0": 7}}, {"cdc": {"a:0": 0, "b:0": 5}, "new": {"a:0": 0}})
    {'cdc': {'b:0': 7, 'a:0': 0}, 'new': {'a:0': 0}}
    """
    merged = {topic: dict(queues) for topic, queues in offsets.items()}
    for topic in sorted(current):
        own = merged.setdefault(topic, {})
        for queue in sorted(current[topic], key=queue_order):
            own.setdefault(queue, current[topic][queue])
    return merged


def queue_order(queue: str) -> tuple[str, int]:
    """Queues in the order of their numbers, not of their text."""
    broker, _, number = queue.rpartition(":")
    return broker, int(number)


def advanced(offsets: Offsets, ends: Offsets, limit: int) -> Offsets:
    """Offsets after at most about `limit` more messages: of each queue its share of what waits.

    `ends` has the same queues, in the same order.

    >>> advanced({"cdc": {"a:0": 0, "a:1": 50}}, {"cdc": {"a:0": 300, "a:1": 150}}, 100)
    {'cdc': {'a:0': 75, 'a:1': 75}}
    """
    waiting = sum(
        ends[topic][queue] - at for topic, queues in offsets.items() for queue, at in queues.items()
    )
    if waiting <= limit:
        return ends

    def share(at: int, end: int) -> int:
        return -(-(end - at) * limit // waiting)  # rounded up, so that none waits for ever

    return {
        topic: {queue: at + share(at, ends[topic][queue]) for queue, at in queues.items()}
        for topic, queues in offsets.items()
    }


def ranges(start: Offsets, end: Offsets) -> list[Range]:
    """What lies between two offsets, one range for each queue that has anything.

    A queue that only the end has was found there, and is read from that offset on.

    >>> [(r.queue, r.start, r.end) for r in ranges({"t": {"a:0": 1}}, {"t": {"a:0": 3, "a:1": 5}})]
    [('a:0', 1, 3)]
    """
    return [
        Range(topic, queue, number, begin, stop)
        for topic, queues in end.items()
        for number, (queue, stop) in enumerate(queues.items())
        if (begin := start.get(topic, {}).get(queue, stop)) < stop
    ]


def check_end(address: str, topic: str, queue: str, offset: int, end: int) -> None:
    """Refuse a queue that ends before the place up to which it was read."""
    if end < offset:
        raise OffsetsLost(
            f"{address}: queue {queue} of topic {topic} ends at {end}, and the job has read it up "
            f"to {offset}: the topic was deleted and made again, or its broker lost messages; "
            "start with a new checkpoint and a new target, and say with starting from where"
        )


def removed(address: str, part: Range, at: int, least: int) -> OffsetsLost:
    """The error for messages that went before they were read."""
    return OffsetsLost(
        f"{address}: messages {at} to {least - 1} of queue {part.queue} of topic {part.topic} were "
        "removed before they were read (retention: fileReservedTime of the broker); keep messages "
        "longer than the job may be down, and start with a new checkpoint and a new target, saying "
        "with starting from where"
    )
