"""Sends the rows of a Spark task: a batch per queue, in the order of the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from headgate.rocketmq import jvm
from headgate.rocketmq.client import Client, Queue, client
from headgate.rocketmq.errors import retried
from headgate.rocketmq.transfer import Asked
from headgate.sinks.rocketmq import FRAME, RocketMQSink
from headgate.sinks.rocketmq.frames import frames, pieces
from headgate.spark.row_packing import flat_batches

BATCH_BYTES = 512 << 10
"""Messages of a queue are sent when there are so many bytes of them."""
PENDING_BYTES = 32 << 20
"""Of all queues together no more are kept until brokers have acknowledged them."""


class QueueSender:
    """Sends messages to one queue, a batch at a time, so that its order holds."""

    def __init__(self, servers: Client, topic: str, queue: Queue) -> None:
        self.retry = servers.retry
        self.transfer = servers.transfer(topic, queue)
        self.messages: list[memoryview] = []
        """The bytes of those that are yet to be sent."""
        self.size = 0
        self.batch = b""
        """What was sent, and is not acknowledged."""
        self.asked: Asked[None] | None = None

    def add(self, messages: memoryview) -> None:
        """Have messages sent with the next batch."""
        self.messages.append(messages)
        self.size += len(messages)

    def send(self) -> int:
        """Send what there is once the batch before is acknowledged; returns the bytes of that."""
        acknowledged = self.acknowledge()
        if self.messages:
            self.batch, self.messages, self.size = b"".join(self.messages), [], 0
            self.asked = self.transfer.send(self.batch)
        return acknowledged

    def acknowledge(self) -> int:
        """Wait until a batch is stored, sent again while its broker is busy or away; its bytes."""
        if self.batch:
            retried(self.stored, self.retry)
        size, self.batch = len(self.batch), b""
        return size

    def stored(self) -> None:
        """See the batch stored; it is sent again where it was seen not to be."""
        asked, self.asked = self.asked or self.transfer.send(self.batch), None
        asked.result()


class Sender:
    """Sends rows; it is made on the driver, and travels to the workers with its credentials."""

    def __init__(
        self, sink: RocketMQSink, jars: Sequence[str], queues: Mapping[str, list[Queue]]
    ) -> None:
        self.connection = sink.connection
        self.most = min(BATCH_BYTES, sink.largest - FRAME)
        self.jars, self.queues = jars, dict(queues)

    def send(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Send all messages and see each acknowledged; their number."""
        servers = client(self.connection, jvm.local_jars(self.jars))
        senders: dict[tuple[str, int], QueueSender] = {}
        sent = pending = 0
        for flat in (each for batch in batches for each in flat_batches(batch)):
            for topic, number, messages in self.by_queue(flat):
                sent += len(messages)
                own = senders.get((topic, number))
                if own is None:
                    queue = self.queues[topic][number]
                    own = senders[topic, number] = QueueSender(servers, topic, queue)
                for piece in pieces(messages, self.most):
                    if own.size + len(piece) > self.most:
                        pending -= own.send()
                    own.add(piece)
                    pending += len(piece)
                if pending > PENDING_BYTES:
                    send_all(senders.values())
                    pending = 0
        send_all(senders.values())
        return sent

    def by_queue(self, flat: pa.RecordBatch) -> Iterator[tuple[str, int, pa.Array]]:
        """The messages for each topic and number of a queue, as bytes in their order."""
        messages, numbers = frames(flat), partitions(flat)
        topics = flat["topic"].dictionary_encode()
        indices = topics.indices.to_numpy()
        for n, topic in enumerate(topics.dictionary.to_pylist()):
            own = np.flatnonzero(indices == n)
            queues = numbers[own] % len(self.queues[topic])
            for queue in np.unique(queues):
                yield topic, int(queue), messages.take(pa.array(own[queues == queue]))


def send_all(senders: Collection[QueueSender]) -> None:
    """Send what is pending, to all queues at once, and see it acknowledged."""
    for each in senders:
        each.send()
    for each in senders:
        each.acknowledge()


def partitions(flat: pa.RecordBatch) -> Any:
    """The partition of each message, or a number by its key, or by its table if it has no key."""
    chosen = flat["partition"]
    if not chosen.null_count:
        return chosen.to_numpy()
    columns = (flat[name].to_pylist() for name in ("partition", "key", "table"))
    return np.array([place_of(k, t) if p is None else p for p, k, t in zip(*columns)], np.int64)


def place_of(key: bytes | None, table: str | None) -> int:
    """A number for a message whose format chose no partition: by its key, or else its table.

    >>> place_of(b"7", "t") == place_of(b"7", "u"), place_of(None, "t") == place_of(None, "u")
    (True, False)
    """
    return crc32((table or "").encode() if key is None else key)
