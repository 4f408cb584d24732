"""What workers do: the messages of a task to the shards of their topics.

Messages are collected, then written to all shards at the same time. To one shard goes one request
after the other, and DataHub takes a request as a whole or not at all: so a message that failed is
sent again before anything that follows it in its shard, and what was taken is not sent again. Where
a shard is closed, because it was split or merged, what is left of it goes to the shards that own
its hash keys now, before any message that came later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa

from headgate.core.errors import HeadgateError
from headgate.sinks.datahub import REQUEST_BYTES, REQUEST_RECORDS
from headgate.sinks.datahub.attributes import attributes_of, size_of
from headgate.sinks.datahub.client import (
    CONNECTIONS,
    Client,
    Patience,
    ServiceError,
    retried,
    worker_client,
)
from headgate.sinks.datahub.connection import Connection
from headgate.sinks.datahub.shards import Shards, hash_key

FLUSH_BYTES = 16 << 20
"""How much a task collects before it sends."""
RESULT = pa.schema([("sent", pa.int64()), ("error", pa.string())])
RESULT_DDL = "sent bigint, error string"
Place = tuple[str, str]
"""A topic and a shard."""


class Waiting(NamedTuple):
    """A record that is to be sent."""

    topic: str
    hash_key: int
    record: Any
    size: int


class Sender:
    """Sends the messages of one task."""

    def __init__(
        self, client: Client, project: str, shards: Mapping[str, Shards], seconds: float
    ) -> None:
        self.client, self.project, self.seconds = client, project, seconds
        self.first = dict(shards)
        """The shards as the job knew them when it chose partitions, which are numbers of them."""
        self.current = dict(shards)
        self.waiting: list[Waiting] = []
        self.bytes = self.sent = 0
        self.turns = count()

    def add(
        self,
        topic: str,
        key: bytes | None,
        value: bytes,
        partition: int | None,
        headers: Iterable[tuple[str, bytes | None]],
    ) -> None:
        """Take a message; it is sent with the next flush."""
        attributes = attributes_of(key, headers)
        size = size_of(value, attributes)
        if partition is not None:
            place = self.first[topic].hash_key_of(partition)
        elif key is not None:
            place = hash_key(key)
        else:
            place = self.first[topic].hash_key_of(next(self.turns))
        self.waiting.append(Waiting(topic, place, self.client.record(value, attributes), size))
        self.bytes += size
        if self.bytes >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send all that waits; it is acknowledged when this returns."""
        waiting, self.waiting, self.bytes = self.waiting, [], 0
        patience = Patience(self.seconds)
        while waiting:
            queues: dict[Place, list[Waiting]] = {}
            for each in waiting:
                place = (each.topic, self.current[each.topic].owner(each.hash_key))
                queues.setdefault(place, []).append(each)
            unsent = self.send_all(queues)
            self.sent += len(waiting) - len(unsent)
            if len(unsent) < len(waiting):
                patience = Patience(self.seconds)
            waiting = unsent
            if not waiting:
                return
            if not patience.rest():
                what = ", ".join(sorted({f"topic {self.project}/{each.topic}" for each in waiting}))
                raise ServiceError("closed", what, f"its shards are closed for {self.seconds:g} s")
            for topic in {each.topic for each in waiting}:
                settled = self.client.settled_shards(self.project, topic, self.seconds)
                self.current[topic] = settled

    def send_all(self, queues: Mapping[Place, Sequence[Waiting]]) -> list[Waiting]:
        """Send to all shards at the same time; what is left of those that are closed."""
        if len(queues) == 1:
            ((place, records),) = queues.items()
            return self.send(place, records)
        with ThreadPoolExecutor(min(len(queues), CONNECTIONS)) as pool:
            futures = [pool.submit(self.send, place, each) for place, each in queues.items()]
        return [each for future in futures for each in future.result()]

    def send(self, place: Place, records: Sequence[Waiting]) -> list[Waiting]:
        """Send to one shard, one request after the other; what is left where it is closed."""
        topic, shard = place
        start = 0
        for end in request_ends([each.size for each in records]):
            request = [each.record for each in records[start:end]]
            try:
                retried(partial(self.client.put, self.project, topic, shard, request), self.seconds)
            except ServiceError as error:
                if error.kind == "closed":
                    return list(records[start:])
                raise
            start = end
        return []


def request_ends(sizes: Sequence[int]) -> Iterator[int]:
    """Where each request ends, of records of these sizes.

    >>> list(request_ends([REQUEST_BYTES - 100, 50, 100, 1]))
    [2, 4]
    """
    records = size = 0
    for n, each in enumerate(sizes):
        if records and (size + each > REQUEST_BYTES or records == REQUEST_RECORDS):
            yield n
            records = size = 0
        records, size = records + 1, size + each
    if records:
        yield len(sizes)


def task(
    connection: Connection, project: str, shards: Mapping[str, Shards], seconds: float
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs over each of its partitions of a step.

    It returns one row: how many messages were sent, or why not all of them were.
    """

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sent, error = 0, None
        try:
            sender = Sender(worker_client(connection), project, shards, seconds)
            for batch in batches:
                for message in messages_of(batch):
                    sender.add(*message)
            sender.flush()
            sent = sender.sent
        except HeadgateError as failure:
            error = str(failure)
            for _ in batches:  # Spark waits until all is read
                pass
        yield pa.RecordBatch.from_pylist([{"sent": sent, "error": error}], RESULT)

    return send


def messages_of(
    batch: pa.RecordBatch,
) -> Iterator[tuple[str, bytes | None, bytes, int | None, list[tuple[str, bytes | None]]]]:
    """The messages of a batch of a step: topic, key, value, partition and headers."""
    columns = [batch.column(name).to_pylist() for name in ("topic", "key", "value", "partition")]
    headers = batch.column("headers")
    begins = headers.offsets.to_pylist()
    pairs = headers.values
    names, values = pairs.field("key").to_pylist(), pairs.field("value").to_pylist()
    for n, (topic, key, value, partition) in enumerate(zip(*columns)):
        part = slice(begins[n], begins[n + 1])
        yield topic, key, value or b"", partition, list(zip(names[part], values[part]))
