"""RocketMQ, through its Java client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Self

from headgate.core.connectors import Address, Place, Report, Topic
from headgate.core.errors import UsageError
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.core.options import option
from headgate.core.reachability import check_servers
from headgate.rocketmq.client_options import (
    DEFAULT_PORT,
    Connection,
    RocketMQOptions,
    connection_of,
)
from headgate.sources.base import Message, Origin, Reader, Source
from headgate.sources.topics import (
    TOPICS_HELP,
    is_pattern,
    no_topic,
    starting_position,
    topics_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.rocketmq.client import Client, Queue

EXAMPLE, GROUP = "rocketmq://HOST:PORT/TOPIC", "headgate"


@dataclass(frozen=True)
class RocketMQSourceOptions(RocketMQOptions):
    """Parameters of a RocketMQ source."""

    topics: str | None = option(None, TOPICS_HELP)
    group: str = option(
        GROUP, "the group by whose name brokers know the job; positions are the checkpoint's"
    )
    starting: str = option(
        "earliest",
        "where the first start begins: earliest, latest, or a time (2024-05-01T08:00:00Z; UTC if "
        "it has no zone)",
        read=starting_position,
    )


@dataclass(frozen=True)
class RocketMQSource(Source):
    """Reads topics from the checkpoint's offsets on."""

    name = "rocketmq"
    summary = "topics of RocketMQ, through its Java client"
    samples_without_spark = True
    authority = "hosts"
    default_port = DEFAULT_PORT
    Options = RocketMQSourceOptions
    tolerated = frozenset(
        {
            "partition-num",
            "auto-create-topic",
            "enable-tidb-extension",
            "allow-any-format",
        }
    )

    topics: tuple[str, ...] = field(repr=False)
    """One with `*` or `?` is a pattern."""
    starting: str
    """`earliest`, `latest`, or a time as ISO text."""
    group: str
    connection: Connection = field(repr=False)

    @classmethod
    def from_uri(cls, address: Address) -> Self:
        """The name servers and topics of a URI."""
        own, connection = connection_of(RocketMQSourceOptions, address)
        topics = topics_of(address.path, own.topics, EXAMPLE)
        return cls(topics, own.starting, own.group, connection)

    def places(self) -> Sequence[Place]:
        """The topics."""
        servers = frozenset(self.connection.servers)
        return [Topic(self.name, servers, topic) for topic in self.topics]

    def for_workers(self) -> Self:
        """The source without the secret key."""
        return replace(self, connection=self.connection.without_secrets())

    def reachable(self) -> None:
        """Whether a name server answers."""
        check_servers(self.connection.servers)

    def check(self, spark: SparkSession, settings: Mapping[str, str]) -> Report:
        """The topics and their queues."""
        queues = self.queues()
        if not queues:
            raise self.missing(self.topics)
        self.check_permissions(queues)
        return Report({"topics": {topic: len(each) for topic, each in queues.items()}})

    def sample(
        self, spark: SparkSession, settings: Mapping[str, str], limit: int
    ) -> Iterable[Message]:
        """The oldest messages of each queue."""
        return islice(self._oldest(limit), limit)

    def _oldest(self, limit: int) -> Iterator[Message]:
        from headgate.sources.rocketmq.offsets import Range
        from headgate.sources.rocketmq.stream import batches_of

        own = self.client()
        for topic, queues in self.queues().items():
            for queue in queues:
                start = own.min_offset(topic, queue)
                end = min(own.max_offset(topic, queue), start + limit)
                part = Range(topic, str(queue), 0, start, end)
                batches = batches_of(own, part, self.group, MAX_MESSAGE_BYTES)
                for batch in batches if start < end else ():
                    for row in batch.select(["key", "value", "topic"]).to_pylist():
                        yield row["key"], row["value"], row["topic"]

    def open(self, spark: SparkSession, origin: Origin) -> Reader:
        """The reader of a job that starts."""
        from headgate.sources.rocketmq.reader import RocketMQReader

        return RocketMQReader(spark, self, origin)

    def client(self) -> Client:
        """The client of this process, which is the driver's."""
        from headgate.rocketmq.client import client

        return client(self.connection)

    def queues(self) -> dict[str, list[Queue]]:
        """The queues of the topics that are meant; UsageError where one that is named is missing.

        Of a pattern there may be none yet.
        """
        from headgate.sources.rocketmq.stream import queues_of

        queues = queues_of(self.client(), self.topics)
        for topic in self.topics:
            if topic not in queues and not is_pattern(topic):
                raise self.missing([topic])
        return queues

    def check_permissions(self, queues: dict[str, list[Queue]]) -> None:
        """Refuse topics that may not be read: name servers tell everybody of them."""
        own = self.client()
        for topic, each in queues.items():
            own.pull(topic, each[0], own.max_offset(topic, each[0]), 1, self.group)

    def missing(self, topics: Sequence[str]) -> UsageError:
        """The error for topics that there are not."""
        return UsageError(f"{self.connection.address}: {no_topic(topics, self.client().topics())}")
