"""Kafka, through Spark's connector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import msgspec

from headgate.core.connectors import Address, Place, Report, Topic
from headgate.core.errors import UsageError
from headgate.core.options import option
from headgate.core.reachability import check_servers
from headgate.kafka.client_options import (
    DEFAULT_PORT,
    JARS,
    PREFIX,
    READING,
    SERVERS,
    UNSUPPORTED,
    KafkaOptions,
    client_settings,
    servers_of,
)
from headgate.sources.base import Message, Origin, Reader, Source
from headgate.sources.topics import (
    TOPICS_HELP,
    is_pattern,
    matching,
    milliseconds,
    no_topic,
    pattern,
    starting_position,
    topics_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _starting(text: str) -> str:
    """Where reading starts the first time."""
    if not text.startswith("{"):
        return starting_position(text)
    try:
        msgspec.json.decode(text, type=dict[str, dict[str, int]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise UsageError(
            """starting is no JSON of offsets; write it as {"topic":{"0":42,"1":-2}}"""
        ) from None
    return text


@dataclass(frozen=True)
class KafkaSourceOptions(KafkaOptions):
    """Parameters of a Kafka source."""

    topics: str | None = option(None, TOPICS_HELP)
    starting: str = option(
        "earliest",
        "where the first start begins: earliest, latest, a time (2024-05-01T08:00:00Z; UTC if it "
        "has no zone), or Kafka's JSON of offsets",
        read=_starting,
    )
    compression: str | None = option(
        None, "ignored; the client finds out how batches are compressed", private=True
    )


@dataclass(frozen=True)
class KafkaSource(Source):
    """Reads topics from the checkpoint's offsets on."""

    name = "kafka"
    summary = "topics of Kafka, through Spark's connector"
    authority = "hosts"
    default_port = DEFAULT_PORT
    Options = KafkaSourceOptions
    settings_prefix = PREFIX
    unsupported = UNSUPPORTED
    tolerated = frozenset(
        {
            "required-acks",
            "auto-create-topic",
            "replication-factor",
            "partition-num",
            "max-batch-size",
            "enable-tidb-extension",
        }
    )

    topics: tuple[str, ...] = field(repr=False)
    """One with `*` or `?` is a pattern."""
    starting: str
    """`earliest`, `latest`, a time as ISO text, or Kafka's JSON of offsets."""
    client: dict[str, str] = field(repr=False)
    """Settings of Kafka's client, secrets among them."""

    @classmethod
    def from_uri(cls, address: Address) -> Self:
        """The brokers and topics of a URI."""
        own, client = client_settings(KafkaSourceOptions, address)
        topics = topics_of(address.path, own.topics, "kafka://HOST:PORT/TOPIC")
        return cls(topics, own.starting, client)

    @property
    def jars(self) -> tuple[str, ...]:
        """Spark's connector."""
        return JARS

    def places(self) -> Sequence[Place]:
        """The topics."""
        servers = servers_of(self.client)
        return [Topic(self.name, servers, topic) for topic in self.topics]

    def for_workers(self) -> Self:
        """The source without its client's settings."""
        return replace(self, client={})

    def reachable(self) -> None:
        """Whether a broker answers."""
        check_servers(servers_of(self.client))

    def check(self, spark: SparkSession, settings: Mapping[str, str]) -> Report:
        """The topics and their partitions."""
        from headgate.kafka.admin import AT_ONCE, Admin

        with Admin(spark._jvm, self.client, self._brokers(), AT_ONCE) as admin:
            return Report({"topics": admin.partitions(self._matching(admin))})

    def sample(
        self, spark: SparkSession, settings: Mapping[str, str], limit: int
    ) -> Iterable[Message]:
        """The oldest messages."""
        from headgate.kafka.admin import Admin

        with Admin(spark._jvm, self.client, self._brokers()) as admin:
            topics = self._matching(admin)
        options = replace(self, topics=tuple(topics)).spark_options()
        options["startingOffsets"] = "earliest"
        rows = spark.read.format("kafka").options(**options).load().limit(limit)
        chosen = rows.select("key", "value", "topic").toLocalIterator()
        return ((_bytes(key), _bytes(value), topic) for key, value, topic in chosen)

    def _brokers(self) -> str:
        return f"kafka://{self.client[SERVERS]}"

    def _matching(self, admin: Any) -> list[str]:
        names = admin.names()
        topics = matching(self.topics, names)
        if not topics:
            raise UsageError(f"{self._brokers()}: {no_topic(self.topics, names)}")
        return topics

    def open(self, spark: SparkSession, origin: Origin) -> Reader:
        """The reader of a job that starts."""
        from headgate.sources.kafka.reader import KafkaReader

        return KafkaReader(spark, self, origin)

    def spark_options(self) -> dict[str, str]:
        """The options of Spark's connector."""
        options = {
            "failOnDataLoss": "true", **READING, **self.client, **starting_options(self.starting)
        }  # fmt: skip
        options["includeHeaders"] = "true"
        if any(map(is_pattern, self.topics)):
            options["subscribePattern"] = "|".join(map(pattern, self.topics))
        else:
            options["subscribe"] = ",".join(self.topics)
        return options


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def starting_options(where: str) -> dict[str, str]:
    """Where a first start begins, as options of Spark's connector.

    >>> starting_options("2024-05-01T00:00:00+00:00")
    {'startingTimestamp': '1714521600000', 'startingOffsetsByTimestampStrategy': 'latest'}
    """
    if where in ("earliest", "latest") or where.startswith("{"):
        return {"startingOffsets": where}
    return {
        "startingTimestamp": str(milliseconds(where)),
        "startingOffsetsByTimestampStrategy": "latest",
    }
