"""Sends the rows of a Spark task: a batch per queue, in the order of the rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import pyarrow as pa

from headgate.arrow.headers import from_text
from headgate.rocketmq import jvm
from headgate.rocketmq.client import Client, Queue, client
from headgate.rocketmq.errors import ClientError
from headgate.rocketmq.layout import message, properties
from headgate.sinks.rocketmq import FRAME, RocketMQSink
from headgate.spark.row_packing import unpack

BATCH_BYTES = 512 << 10
"""Messages of a queue are sent when there are so many bytes of them."""
PENDING_BYTES = 32 << 20
"""Of all queues together no more are kept."""
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds until a batch is sent again; the last one for all further times."""


@dataclass
class Pending:
    """Messages of one queue that are yet to be sent."""

    messages: list[bytes] = field(default_factory=list)
    size: int = 0


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
        pending: dict[tuple[str, Queue], Pending] = {}
        sent = waiting = 0
        for batch in batches:
            for topic, queue, data in self.messages(batch):
                sent += 1
                place = topic, queue
                own = pending.get(place)
                if own is None:
                    own = pending[place] = Pending()
                if own.size + len(data) > self.most and own.messages:
                    self.send_pending(servers, place, own)
                    waiting -= own.size
                    own = pending[place] = Pending()
                own.messages.append(data)
                own.size += len(data)
                waiting += len(data)
                if waiting > PENDING_BYTES:
                    self.send_all(servers, pending)
                    waiting = 0
        self.send_all(servers, pending)
        return sent

    def send_all(self, servers: Client, pending: dict[tuple[str, Queue], Pending]) -> None:
        """Send what is pending, queue by queue."""
        for place, own in pending.items():
            self.send_pending(servers, place, own)
        pending.clear()

    def send_pending(self, servers: Client, place: tuple[str, Queue], own: Pending) -> None:
        """Send messages of a queue, again and again while its broker is busy or away.

        Nothing else of the queue is sent before, so that its order holds.
        """
        data = b"".join(own.messages)
        until = time.monotonic() + self.retry
        tries = 0
        while True:
            try:
                return servers.send(*place, data)
            except ClientError as error:
                pause = PAUSES[min(tries, len(PAUSES) - 1)]
                if not error.passes or time.monotonic() + pause > until:
                    raise
            tries += 1
            time.sleep(pause)
            servers.forget(place[1])

    def messages(self, packed: pa.RecordBatch) -> Iterator[tuple[str, Queue, bytes]]:
        """Where each message goes, and its bytes."""
        for key, value, id_, partition, topic, carried, table in unpack(packed):
            place = place_of(key, table) if partition is None else partition
            queues = self.queues[topic]
            named = properties(key, table, id_, () if carried is None else from_text(carried))
            yield topic, queues[place % len(queues)], message(value, named)


def place_of(key: bytes | None, table: str | None) -> int:
    """A number for a message whose format chose no partition: by its key, or else its table.

    >>> place_of(b"7", "t") == place_of(b"7", "u"), place_of(None, "t") == place_of(None, "u")
    (True, False)
    """
    return crc32((table or "").encode() if key is None else key)
