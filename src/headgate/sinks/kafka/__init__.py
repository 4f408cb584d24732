"""Kafka, through Spark's connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from headgate.codec.topic_names import checked_topic
from headgate.core.connectors import Address, Place, Report, Topic
from headgate.core.errors import UsageError, unknown_name
from headgate.core.options import option
from headgate.core.reachability import check_servers
from headgate.core.scalars import size, truth, whole_number
from headgate.kafka.client_options import (
    COMPRESSIONS,
    DEFAULT_PORT,
    JARS,
    PREFIX,
    REQUEST_SIZE,
    UNSUPPORTED,
    KafkaOptions,
    client_settings,
    largest_message,
    servers_of,
)
from headgate.sinks.base import MessageSink, Target, Writer
from headgate.sinks.topics import fixed_topics, topic_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_PARTITIONS = 3
"""Partitions of a topic that is created, where `partition-num` does not say; as TiCDC has it."""
MESSAGE_BYTES = 1_000_000
"""Rows are joined into messages no longer than this: what a broker takes by default."""
ACKS = {"0": "0", "1": "1", "-1": "all", "all": "all"}


def _acks(text: str) -> str:
    if text not in ACKS:
        raise UsageError(f"required-acks cannot be {text!r}; it is -1, 0 or 1")
    return ACKS[text]


def _compression(text: str) -> str:
    if text.lower() not in COMPRESSIONS:
        raise unknown_name("compression", text.lower(), COMPRESSIONS)
    return text.lower()


@dataclass(frozen=True)
class KafkaSinkOptions(KafkaOptions):
    """Parameters of a Kafka sink; TiCDC's names and defaults."""

    required_acks: str | None = option(
        None, "`acks`; with 0 or 1 a broker's failure loses messages", ("-1", "0", "1"), read=_acks
    )
    compression: str | None = option(
        None,
        "`compression.type` of batches; of values: large-message-handle-compression",
        COMPRESSIONS,
        read=_compression,
    )
    max_message_bytes: int | None = option(
        None,
        "`max.request.size`, such as 10MB, and the option of formats that join rows",
        read=size,
    )
    auto_create_topic: bool = option(True, "whether missing topics are created", read=truth)
    replication_factor: int = option(
        1, "replicas of topics that are created", read=lambda text: whole_number(text, 1, 32767)
    )


@dataclass(frozen=True)
class KafkaSink(MessageSink):
    """Writes to topics: at least once; the header `headgate-id` tells copies apart."""

    name = "kafka"
    summary = "topics of Kafka, through Spark's connector"
    promise = "at-least-once"
    authority = "hosts"
    default_port = DEFAULT_PORT
    uses_topics = True
    Options = KafkaSinkOptions
    settings_prefix = PREFIX
    unsupported = UNSUPPORTED
    passed_on = frozenset({"max-message-bytes"})
    tolerated = frozenset({"partition-num", "max-batch-size", "enable-tidb-extension"})
    encoder_defaults: ClassVar[Mapping[str, Any]] = {
        "partition_num": DEFAULT_PARTITIONS,
        "max_message_bytes": MESSAGE_BYTES,
    }

    client: dict[str, str] = field(repr=False)
    """Settings of Kafka's client, secrets among them."""
    create_topics: bool = True
    replication: int = 1

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        """The brokers of a URI; the topic goes to the encoder, which may make it of the event."""
        own, client = client_settings(KafkaSinkOptions, address)
        topic = topic_of(address.path, format_options)
        if topic is not None:
            checked_topic(topic)
        if own.required_acks is not None:
            client["kafka.acks"] = own.required_acks
        if own.compression is not None:
            client["kafka.compression.type"] = own.compression
        if own.max_message_bytes is not None:
            client[REQUEST_SIZE] = str(own.max_message_bytes)
        return cls(client, own.auto_create_topic, own.replication_factor)

    @property
    def max_bytes(self) -> int | None:
        """The largest key and value together."""
        return largest_message(self.client)

    @property
    def jars(self) -> tuple[str, ...]:
        """Spark's connector."""
        return JARS

    def place(self, topic: str | None) -> Place | None:
        """A topic, where it is known."""
        return None if topic is None else Topic(self.name, servers_of(self.client), topic)

    def for_workers(self) -> Self:
        """The sink without its client's settings, except the limit of a message."""
        return replace(self, client={n: v for n, v in self.client.items() if n == REQUEST_SIZE})

    def reachable(self) -> None:
        """Whether a broker answers."""
        check_servers(servers_of(self.client))

    def check(self, spark: SparkSession, target: Target) -> Report:
        """The partitions of the topic, if there is one."""
        from headgate.kafka.admin import AT_ONCE, Admin

        with Admin(spark._jvm, self.client, target.name, AT_ONCE) as admin:
            admin.reach()
            return Report({"topics": admin.partitions(fixed_topics(target))})

    def open(self, spark: SparkSession, target: Target) -> Writer:
        """The writer of a job that starts."""
        from headgate.sinks.kafka.writer import KafkaWriter

        return KafkaWriter(spark, self, target)
