"""Alibaba Cloud DataHub, topics of the type BLOB, through the vendor's client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from headgate.codec.routing import topic_template
from headgate.core.connectors import Address, Report
from headgate.core.errors import UsageError, shown
from headgate.core.options import build, option
from headgate.core.scalars import duration, size, truth, whole_number
from headgate.sinks.base import MessageSink, Target, Writer
from headgate.sinks.datahub.connection import (
    HTTPS_PORT,
    Connection,
    ConnectionOptions,
    connection_of,
)
from headgate.sinks.topics import fixed_topics, topic_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_SHARDS = 3
"""Shards of a topic that is created, where `partition-num` does not say."""
MESSAGE_BYTES = 1_000_000
"""The largest message unless set otherwise."""
REQUEST_BYTES = 4_000_000
"""What the body of a request may have, before it is compressed."""
REQUEST_RECORDS = 10_000
"""How many records a request may have."""
MOST_MESSAGE_BYTES = REQUEST_BYTES - 4_096
DELIVERY_SECONDS = 120.0
MAX_LIFECYCLE = 7
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
MAX_TOPIC = 128
_PLACE = re.compile(r"\{(database|schema|table)\}")


def _message_bytes(text: str) -> int:
    if not 1 <= size(text) <= MOST_MESSAGE_BYTES:
        raise UsageError(
            f"{shown(text)} is out of range; a request of DataHub takes {MOST_MESSAGE_BYTES} bytes"
        )
    return size(text)


@dataclass(frozen=True)
class DataHubSinkOptions(ConnectionOptions):
    """Parameters of a DataHub sink."""

    max_message_bytes: int = option(
        MESSAGE_BYTES,
        "largest message, such as 2MB, and the option of formats that join rows",
        read=_message_bytes,
    )
    delivery_timeout: float | None = option(
        None,
        "how long a request that fails is repeated until the job stops, such as 5m; if it is not "
        "set: 2m",
        read=duration,
    )
    auto_create_topic: bool = option(True, "whether missing topics are created", read=truth)
    lifecycle: int = option(
        3,
        "days that topics that are created keep a record",
        read=lambda text: whole_number(text, 1, MAX_LIFECYCLE),
    )
    allow_any_format: bool = option(
        False, "whether formats are written that their producers write to Kafka only", read=truth
    )


@dataclass(frozen=True)
class DataHubSink(MessageSink):
    """Writes to topics: at least once; the attribute `headgate-id` tells copies apart."""

    name = "datahub"
    summary = "BLOB topics of Alibaba Cloud DataHub, through the vendor's client"
    promise = "at-least-once"
    authority = "hosts"
    default_port = HTTPS_PORT
    uses_topics = True
    takes_tombstones = False
    Options = DataHubSinkOptions
    passed_on = frozenset({"max-message-bytes"})
    tolerated = frozenset({"partition-num", "max-batch-size", "enable-tidb-extension"})
    encoder_defaults: ClassVar[Mapping[str, Any]] = {
        "partition_num": DEFAULT_SHARDS,
        "max_message_bytes": MESSAGE_BYTES,
    }

    connection: Connection
    project: str
    message_bytes: int = MESSAGE_BYTES
    delivery_seconds: float = DELIVERY_SECONDS
    create_topics: bool = True
    lifecycle: int = 3
    any_format: bool = False

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        """The endpoint and project of a URI; the topic goes to the encoder."""
        own = build(DataHubSinkOptions, address.params)
        project, _, path = address.path.partition("/")
        if not NAME.fullmatch(project) or not 3 <= len(project) <= 32:
            raise UsageError(
                "the URI has no project, whose name is 3 to 32 letters, digits and _; write "
                "datahub://HOST/PROJECT/TOPIC"
            )
        topic = topic_of(path, format_options)
        if topic is not None:
            check_template(topic)
        return cls(
            connection_of(own, address),
            project,
            own.max_message_bytes,
            DELIVERY_SECONDS if own.delivery_timeout is None else own.delivery_timeout,
            own.auto_create_topic,
            own.lifecycle,
            own.allow_any_format,
        )

    @property
    def max_bytes(self) -> int | None:
        """The largest key, value and headers together."""
        return self.message_bytes

    def for_workers(self) -> Self:
        """The sink without the account; workers that send get it with what they run."""
        return replace(self, connection=self.connection.without_secrets())

    def check(self, spark: SparkSession, target: Target) -> Report:
        """The active shards of the topic, if there is one."""
        from headgate.sinks.datahub.topics import checked_topics

        return Report({"topics": checked_topics(self, target.name, fixed_topics(target))})

    def open(self, spark: SparkSession, target: Target) -> Writer:
        """The writer of a job that starts."""
        from headgate.sinks.datahub.writer import DataHubWriter

        return DataHubWriter(self, target)


def is_topic(name: str) -> bool:
    """Whether a topic can have a name.

    >>> is_topic("orders_1"), is_topic("cdc.orders")
    (True, False)
    """
    return bool(NAME.fullmatch(name)) and len(name) <= MAX_TOPIC


def check_template(template: str) -> None:
    """Refuse a template that cannot become the name of a topic.

    >>> check_template("cdc_{database}_{table}")
    """
    topic_template(template)
    if not is_topic(_PLACE.sub("x", template)):
        raise UsageError(
            f"invalid topic name {shown(template)}; use at most {MAX_TOPIC} letters, digits and _, "
            "a letter first, and {database}, {schema} and {table} for the names of the event"
        )
