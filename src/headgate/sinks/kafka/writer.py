"""Batches to Kafka's topics, which are created where that is wanted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headgate.core.errors import UsageError, shown
from headgate.kafka.admin import AT_ONCE, Admin, TopicRefused
from headgate.kafka.client_options import producer_settings
from headgate.sinks.base import Batch, Target, Topics, Writer
from headgate.sinks.kafka import DEFAULT_PARTITIONS, KafkaSink
from headgate.sinks.topics import check_topics, fixed_topics, spread_over

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
OWN_TOPICS = {
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
}
"""Topics that Kafka keeps for itself."""


class KafkaWriter(Writer):
    """Spark's Kafka sink: at least once; the header `headgate-id` tells copies apart."""

    topics: KafkaTopics

    def __init__(self, spark: SparkSession, sink: KafkaSink, target: Target) -> None:
        self.sink = sink
        with Admin(spark._jvm, sink.client, target.name, AT_ONCE) as admin:
            admin.reach()
        self.topics = KafkaTopics(spark, sink, target)
        # A name that cannot be is refused at the start.
        check_topics(target.name, self.topics, fixed_topics(target))

    def options(self) -> dict[str, str]:
        """The options of Spark's sink, for the topics that are known by now."""
        settings = producer_settings(self.sink.client, sum(self.topics.known.values()))
        if settings.get("kafka.acks") in ("0", "1"):
            # Without all acknowledgements, what is sent again could come behind what follows it.
            settings.setdefault("kafka.max.in.flight.requests.per.connection", "1")
        return settings

    def write(self, batch: Batch, steps: Sequence[DataFrame], topics: Iterable[str]) -> None:
        """Write steps one after the other; one is acknowledged before the next begins."""
        check_topics(self.topics.name, self.topics, topics)
        options = self.options()
        for step in steps:
            batch.still_ours()
            step.write.format("kafka").options(**options).save()


class KafkaTopics(Topics):
    """The topics of a sink: how many partitions they have, and new ones where that is wanted."""

    def __init__(self, spark: SparkSession, sink: KafkaSink, target: Target) -> None:
        self.sink, self.name, self.options = sink, target.name, target.options
        self.jvm: Any = spark._jvm
        self.known: dict[str, int] = {}
        """Over how many partitions of a topic rows are spread."""
        self.refused: dict[str, str] = {}
        """Names that cannot be written to, and why."""

    def ensure(self, names: Iterable[str]) -> None:
        """Look at topics, each once, and make those that are not there."""
        wanted = sorted(set(names) - self.known.keys() - self.refused.keys())
        self.refused |= impossible(wanted)  # a broker need not be asked
        wanted = [name for name in wanted if name not in self.refused]
        if not wanted:
            return
        with Admin(self.jvm, self.sink.client, self.name) as admin:
            existing = admin.described(wanted)
            for name in wanted:
                if name in OWN_TOPICS or (name in existing and existing[name].isInternal()):
                    self.refused[name] = "Kafka keeps it for itself"
                elif name in existing:
                    self.known[name] = spread_over(
                        self.name,
                        name,
                        existing[name].partitions().size(),
                        self.options,
                        "partitions",
                        "set partition-num",
                    )
            missing = [n for n in wanted if n not in self.known and n not in self.refused]
            if missing and not self.sink.create_topics:
                self.refused |= colliding(missing, admin.names())
                missing = [name for name in missing if name not in self.refused]
            if missing and not self.sink.create_topics:
                raise UsageError(
                    f"{self.name}: no topic {', '.join(missing)}; create it, or set "
                    "auto-create-topic=true"
                )
            partitions = int(self.options.get("partition_num") or DEFAULT_PARTITIONS)
            for name in missing:
                try:
                    admin.create(name, partitions, self.sink.replication)
                    self.known[name] = partitions
                except TopicRefused as error:
                    self.refused[name] = str(error)


def impossible(names: Iterable[str]) -> dict[str, str]:
    """The names that no topic can have, and why.

    >>> impossible(["..", "c"])
    {'..': 'no topic can have that name'}
    """
    wrong = [name for name in names if not _TOPIC.fullmatch(name) or name in (".", "..")]
    return dict.fromkeys(wrong, "no topic can have that name")


def colliding(names: Iterable[str], existing: Iterable[str]) -> dict[str, str]:
    """The names that no topic can have beside those that there are, and why.

    >>> colliding(["a.b", "c"], ["a_b"])
    {'a.b': "its name collides with the existing topic 'a_b'"}
    """
    alike = {name.replace(".", "_"): name for name in existing}
    others = {name: alike.get(name.replace(".", "_")) for name in names}
    return {
        name: f"its name collides with the existing topic {shown(other)}"
        for name, other in others.items()
        if other is not None and other != name
    }
