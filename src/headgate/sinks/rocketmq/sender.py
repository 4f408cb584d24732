"""Sends the rows of a Spark task: a batch per queue, in the order of the rows."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from zlib import crc32

import pyarrow as pa

from headgate.arrow.headers import from_text
from headgate.rocketmq import jvm
from headgate.rocketmq.client import Client, Queue, client
from headgate.rocketmq.errors import ClientError
from headgate.rocketmq.layout import message, properties
from headgate.rocketmq.transfer import Asked
from headgate.sinks.rocketmq import FRAME, RocketMQSink
from headgate.spark.row_packing import unpack

BATCH_BYTES = 512 << 10
"""Messages of a queue are sent when there are so many bytes of them."""
PENDING_BYTES = 32 << 20
"""Of all queues together no more are kept until brokers have acknowledged them."""
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds until a batch is sent again; the last one for all further times."""


class QueueSender:
    """Sends messages to one queue, a batch at a time, so that its order holds."""

    def __init__(self, servers: Client, topic: str, queue: Queue, retry: float) -> None:
        self.servers, self.queue, self.retry = servers, queue, retry
        self.transfer = servers.transfer(topic, queue)
        self.messages: list[bytes] = []
        """Those that are yet to be sent."""
        self.size = 0
        self.batch = b""
        """What was sent, and is not acknowledged."""
        self.asked: Asked[None] | None = None

    def send(self) -> int:
        """Send what there is once the batch before is acknowledged; returns the bytes of that."""
        acknowledged = self.acknowledge()
        if self.messages:
            self.batch, self.messages, self.size = b"".join(self.messages), [], 0
            self.asked = self.transfer.send(self.batch)
        return acknowledged

    def acknowledge(self) -> int:
        """Wait until a batch is stored, sent again while its broker is busy or away; its bytes."""
        until, tries = time.monotonic() + self.retry, 0
        while self.asked is not None:
            try:
                self.asked.result()
                self.asked = None
            except ClientError as error:
                pause = PAUSES[min(tries, len(PAUSES) - 1)]
                if not error.passes or time.monotonic() + pause > until:
                    raise
                tries += 1
                time.sleep(pause)
                self.servers.forget(self.queue)
                self.asked = self.transfer.send(self.batch)
        size, self.batch = len(self.batch), b""
        return size


class Sender:
    """Sends rows; it is made on the driver, and travels to the workers with its credentials."""

    def __init__(
        self, sink: RocketMQSink, jars: Sequence[str], queues: Mapping[str, list[Queue]]
    ) -> None:
        self.connection, self.retry = sink.connection, sink.retry
        self.most = min(BATCH_BYTES, sink.largest - FRAME)
        self.jars, self.queues = jars, dict(queues)

    def send(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Send all messages and see each acknowledged; their number."""
        servers = client(self.connection, jvm.local_jars(self.jars))
        senders: dict[tuple[str, int], QueueSender] = {}
        sent = pending = 0
        for batch in batches:
            for place, data in self.messages(batch):
                sent += 1
                own = senders.get(place)
                if own is None:
                    topic, number = place
                    queue = self.queues[topic][number]
                    own = senders[place] = QueueSender(servers, topic, queue, self.retry)
                if own.size + len(data) > self.most:
                    pending -= own.send()
                own.messages.append(data)
                own.size += len(data)
                pending += len(data)
                if pending > PENDING_BYTES:
                    send_all(senders.values())
                    pending = 0
        send_all(senders.values())
        return sent

    def messages(self, packed: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], bytes]]:
        """The topic of each message and the number of its queue; and its bytes."""
        counts = {topic: len(queues) for topic, queues in self.queues.items()}
        for key, value, id_, partition, topic, carried, table in unpack(packed):
            place = place_of(key, table) if partition is None else partition
            named = properties(key, table, id_, () if carried is None else from_text(carried))
            yield (topic, place % counts[topic]), message(value, named)


def send_all(senders: Collection[QueueSender]) -> None:
    """Send what is pending, to all queues at once, and see it acknowledged."""
    for each in senders:
        each.send()
    for each in senders:
        each.acknowledge()


def place_of(key: bytes | None, table: str | None) -> int:
    """A number for a message whose format chose no partition: by its key, or else its table.

    >>> place_of(b"7", "t") == place_of(b"7", "u"), place_of(None, "t") == place_of(None, "u")
    (True, False)
    """
    return crc32((table or "").encode() if key is None else key)
