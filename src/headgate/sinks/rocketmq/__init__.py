"""RocketMQ, through its JVM client in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from headgate.codec.topic_names import checked_topic
from headgate.core.connectors import Address, Place, Report, Topic
from headgate.core.errors import UsageError, shown
from headgate.core.options import option
from headgate.core.reachability import check_servers
from headgate.core.scalars import size, truth
from headgate.rocketmq.client_options import (
    DEFAULT_PORT,
    Connection,
    RocketMQOptions,
    connection_of,
)
from headgate.sinks.base import MessageSink, Target, Writer
from headgate.sinks.topics import fixed_topics, topic_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_QUEUES = 3
"""Queues of a topic that is created, where `partition-num` does not say."""
MESSAGE_BYTES = 1_000_000
"""Rows are joined into messages no longer than this."""
MAX_BYTES = 4 << 20
"""What a broker takes by default (`maxMessageSize`)."""
FRAME = 64 << 10
"""What of that the properties and the frame of a message take at most."""
HEADER_BYTES = 22_000
"""The largest key and headers: properties of a message have 32,767 bytes, a key takes at most 4/3
of its own there, and the tag, the id and what brokers add need some of them."""


@dataclass(frozen=True)
class RocketMQSinkOptions(RocketMQOptions):
    """Parameters of a RocketMQ sink."""

    max_message_bytes: int | None = option(
        None,
        "the brokers' `maxMessageSize`, 4MB if it is not set, and the option of formats that join "
        "rows",
        read=size,
    )
    auto_create_topic: bool = option(True, "whether missing topics are created", read=truth)
    allow_any_format: bool = option(
        False, "whether formats are written that their producers write to Kafka only", read=truth
    )


@dataclass(frozen=True)
class RocketMQSink(MessageSink):
    """Writes to topics: at least once; the property `headgate-id` tells copies apart."""

    name = "rocketmq"
    summary = "topics of RocketMQ, through its JVM client (needs JPype1)"
    promise = "at-least-once"
    authority = "hosts"
    default_port = DEFAULT_PORT
    uses_topics = True
    takes_packed_rows = True
    uses_row_keys = True
    takes_tombstones = False
    Options = RocketMQSinkOptions
    passed_on = frozenset({"max-message-bytes"})
    tolerated = frozenset({"partition-num", "max-batch-size", "enable-tidb-extension"})
    encoder_defaults: ClassVar[Mapping[str, Any]] = {
        "partition_num": DEFAULT_QUEUES,
        "max_message_bytes": MESSAGE_BYTES,
    }

    connection: Connection
    largest: int = MAX_BYTES
    create_topics: bool = True
    any_format: bool = False

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        """The name servers of a URI; the topic, maybe a template, goes to the encoder."""
        own, connection = connection_of(RocketMQSinkOptions, address)
        topic = topic_of(address.path, format_options)
        if topic is not None and "." in checked_topic(topic):
            raise UsageError(
                f"invalid topic name {shown(topic)}; RocketMQ's topics have no points, use _ or -"
            )
        largest = MAX_BYTES if own.max_message_bytes is None else own.max_message_bytes
        if largest < 2 * FRAME:
            raise UsageError(f"max-message-bytes is too small; it is at least {2 * FRAME}")
        return cls(
            connection,
            largest,
            own.auto_create_topic,
            own.allow_any_format,
        )

    @property
    def max_bytes(self) -> int | None:
        """The largest key, value and headers together."""
        return self.largest - FRAME

    @property
    def max_header_bytes(self) -> int | None:
        """The largest key and headers together, which become properties."""
        return HEADER_BYTES

    def place(self, topic: str | None) -> Place | None:
        """A topic, where it is known."""
        if topic is None:
            return None
        return Topic(self.name, frozenset(self.connection.servers), topic)

    def for_workers(self) -> Self:
        """The sink without its credentials."""
        return replace(self, connection=self.connection.without_secrets())

    def reachable(self) -> None:
        """Whether a name server answers."""
        check_servers(self.connection.servers)

    def check(self, spark: SparkSession, target: Target) -> Report:
        """The queues of the topic, if there is one, and whether it may be written."""
        from headgate.sinks.rocketmq.topics import check_topic

        named = next(iter(fixed_topics(target)), None)
        return Report({"topics": check_topic(self, target.name, named)})

    def open(self, spark: SparkSession, target: Target) -> Writer:
        """The writer of a job that starts."""
        from headgate.sinks.rocketmq.writer import RocketMQWriter

        return RocketMQWriter(spark, self, target)
