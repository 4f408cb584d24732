"""Sends the rows of a Spark task: a batch per queue, in the order of the rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from zlib import crc32

import pyarrow as pa

from headgate.rocketmq import jvm
from headgate.rocketmq.client import Client, Queue, client
from headgate.rocketmq.errors import ClientError
from headgate.rocketmq.layout import Headers, message, properties
from headgate.sinks.rocketmq import FRAME, RocketMQSink

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
        """Send all rows and see each acknowledged; their number."""
        servers = client(self.connection, jvm.local_jars(self.jars))
        pending: dict[tuple[str, Queue], Pending] = {}
        rows = waiting = 0
        for batch in batches:
            rows += batch.num_rows
            for topic, queue, data in self.messages(batch):
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
        return rows

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

    def messages(self, batch: pa.RecordBatch) -> Iterator[tuple[str, Queue, bytes]]:
        """Where each row goes, and its message."""
        names = batch.schema.names
        tables = batch.column("table").to_pylist() if "table" in names else repeat(None)
        for key, value, partition, topic, table, headers in zip(
            batch.column("key").to_pylist(),
            batch.column("value").to_pylist(),
            batch.column("partition").to_pylist(),
            batch.column("topic").to_pylist(),
            tables,
            header_lists(batch.column("headers")),
        ):
            queues = self.queues[topic]
            queue = queues[place_of(partition, key, table) % len(queues)]
            yield topic, queue, message(value, properties(key, table, headers))


def place_of(partition: int | None, key: bytes | None, table: str | None) -> int:
    """The partition of a message; where the format chose none, by its key, or else its table.

    >>> place_of(4, b"7", "t"), place_of(None, b"7", "t") == place_of(None, b"7", "u")
    (4, True)
    """
    if partition is not None:
        return partition
    return crc32((table or "").encode() if key is None else key)


def header_lists(column: pa.Array) -> Iterable[Headers]:
    """The headers of each row.

    >>> rows = [[("a", b"1"), ("b", None)], None, [("a", b"2")]]
    >>> pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    >>> [list(found) for found in header_lists(pa.array(rows, pairs))]
    [[('a', b'1'), ('b', None)], [], [('a', b'2')]]
    """
    if column.null_count == len(column):
        return [()] * len(column)
    values = column.flatten()
    pairs = list(zip(values.field(0).to_pylist(), values.field(1).to_pylist()))
    lengths = column.value_lengths().fill_null(0).to_pylist()
    if len(pairs) == len(lengths) and 0 not in lengths:  # one each, the id
        return [(pair,) for pair in pairs]
    found, at = [], 0
    for length in lengths:
        found.append(pairs[at : at + length])
        at += length
    return found
