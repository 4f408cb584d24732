"""Sends the rows of a Spark task: a batch per queue, in the order of the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
PACKED_ROWS_AT_ONCE = 16
"""Packed rows whose messages are laid out together, about 4 MB: each row alone costs calls of Arrow
that take longer than its messages."""


class QueueSender:
    """Sends messages to one queue, a batch at a time, so that its order holds."""

    def __init__(self, servers: Client, topic: str, queue: Queue) -> None:
        self.retry = servers.retry
        self.transfer = servers.transfer(topic, queue)
        self.messages: list[memoryview] = []
        """The bytes of those that are yet to be sent."""
        self.size = 0
        self.batch: list[memoryview] = []
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
            self.batch, self.messages, self.size = self.messages, [], 0
            self.asked = self.transfer.send(self.batch)
        return acknowledged

    def acknowledge(self) -> int:
        """Wait until a batch is stored, sent again while its broker is busy or away; its bytes."""
        if self.batch:
            retried(self.stored, self.retry)
        size, self.batch = sum(map(len, self.batch)), []
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
        for flat in (each for batch in batches for each in large_batches(batch)):
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
        topics = flat["topic"].dictionary_encode()
        names, topic = topics.dictionary.to_pylist(), topics.indices.to_numpy()
        queue = partitions(flat) % np.array([len(self.queues[name]) for name in names])[topic]
        order = np.lexsort((queue, topic))  # stable
        messages = frames(flat).take(pa.array(order))
        topic, queue = topic[order], queue[order]
        changes = (np.diff(topic) != 0) | (np.diff(queue) != 0)
        cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(order)]
        for start, end in pairwise(cuts):
            yield names[topic[start]], int(queue[start]), messages[start:end]


def large_batches(packed: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The messages of packed rows in their order, those of several rows in one batch."""
    for first in range(0, packed.num_rows, PACKED_ROWS_AT_ONCE):
        yield pa.concat_batches(flat_batches(packed.slice(first, PACKED_ROWS_AT_ONCE)))


def send_all(senders: Collection[QueueSender]) -> None:
    """Send what is pending, to all queues at once, and see it acknowledged."""
    for each in senders:
        each.send()
    for each in senders:
        each.acknowledge()


def partitions(flat: pa.RecordBatch) -> Any:
    """The partition of each message, or a number by its key, or by its table if it has no key.

    >>> from headgate.spark.row_packing import flat_rows
    >>> flat = flat_rows(2, key=pa.array([b"7", None]), table=pa.array(["t", "t"]))
    >>> partitions(flat).tolist() == [crc32(b"7"), crc32(b"t")]
    True
    """
    chosen = flat["partition"]
    if not chosen.null_count:
        return chosen.to_numpy()
    texts = pc.coalesce(flat["key"], flat["table"].cast(pa.binary()), pa.scalar(b""))
    by_text = np.fromiter(map(crc32, texts.to_numpy(zero_copy_only=False)), np.int64, len(flat))
    return np.where(chosen.is_valid(), chosen.fill_null(0), by_text)
