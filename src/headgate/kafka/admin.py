"""Kafka topics through the client that Spark's connector brings along."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headgate.config.job import Sink
from headgate.core.errors import HeadgateError, UsageError, shown
from headgate.kafka.client_options import COMMITTED, ISOLATION

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
DEFAULT_PARTITIONS = 3
"""Partitions of a topic that is made, where `partition-num` does not say; as TiCDC has it."""
TRIES, PAUSE = 3, 1.0
"""How often a question is asked while brokers do not answer, and the seconds in between."""
INVALID = "InvalidTopicException"
T = TypeVar("T")


OWN_TOPICS = {
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
}
"""Topics that Kafka keeps for itself."""


class Topics:
    """The topics of a sink: how many partitions they have, and new ones where that is wanted."""

    def __init__(self, spark: SparkSession, sink: Sink) -> None:
        self.sink = sink
        self.jvm: Any = spark._jvm
        self.known: dict[str, int] = {}
        """Over how many partitions of a topic rows are spread."""
        self.refused: dict[str, str] = {}
        """Names that cannot be written to, and why."""

    def ensure(self, names: Iterable[str]) -> None:
        """Look at topics, each once, and make those that are not there."""
        wanted = sorted(set(names) - self.known.keys() - self.refused.keys())
        if not wanted:
            return
        with Admin(self.jvm, self.sink.kafka, self.sink.name) as admin:
            found = admin.described(wanted)
            for name in wanted:
                if name in OWN_TOPICS or (name in found and found[name].isInternal()):
                    self.refused[name] = "Kafka keeps it for itself"
                elif name in found:
                    self.known[name] = self.spread(name, found[name].partitions().size())
            missing = [n for n in wanted if n not in self.known and n not in self.refused]
            if missing and not self.sink.create_topics:
                self.refused |= impossible(missing, admin.names())
                missing = [name for name in missing if name not in self.refused]
            if missing and not self.sink.create_topics:
                raise UsageError(
                    f"{self.sink.name}: no topic {', '.join(missing)}; create it, or set "
                    "auto-create-topic=true"
                )
            partitions = int(self.sink.options.get("partition_num") or DEFAULT_PARTITIONS)
            for name in missing:
                try:
                    admin.create(name, partitions, self.sink.replication)
                    self.known[name] = partitions
                except TopicRefused as error:
                    self.refused[name] = str(error)

    def spread(self, name: str, has: int) -> int:
        """Over how many partitions rows are spread of a topic that has so many.

        `partition-num` says so for the one topic that the sink names. Of topics that messages name,
        each has its own number, and it is that of new ones.
        """
        told = self.sink.options.get("partition_num")
        if told is None or name != self.sink.options.get("topic"):
            return has
        if has < int(told):
            raise UsageError(
                f"{self.sink.name}: topic {name} has {has} partitions, fewer than the {told} that "
                "rows are spread over; set partition-num"
            )
        return int(told)

    def check(self, names: Iterable[str]) -> None:
        """Refuse to write to topics that Kafka refuses."""
        self.ensure(names)
        for name in names:
            if name in self.refused:
                raise UsageError(f"{self.sink.name}: topic {shown(name)}: {self.refused[name]}")


class TopicRefused(HeadgateError):
    """Kafka does not take a topic of that name, whoever asks and however often."""


def impossible(names: Iterable[str], existing: Iterable[str]) -> dict[str, str]:
    """The names that no topic can have beside those that there are, and why.

    >>> impossible(["a.b", "c"], ["a_b"])
    {'a.b': "its name collides with the existing topic 'a_b'"}
    """
    found = {}
    alike = {name.replace(".", "_"): name for name in existing}
    for name in names:
        other = alike.get(name.replace(".", "_"))
        if not _TOPIC.fullmatch(name) or name in (".", ".."):
            found[name] = "no topic can have that name"
        elif other is not None and other != name:
            found[name] = f"its name collides with the existing topic {shown(other)}"
    return found


class Admin:
    """Kafka's AdminClient, closed after use; its errors name the sink and no secret.

    A question that fails for a reason that passes (no broker answers, a leader moves) is asked
    again, `tries` times in all.
    """

    def __init__(self, jvm: Any, options: dict[str, str], name: str, tries: int = TRIES) -> None:
        self.jvm, self.name, self.tries = jvm, name, tries
        self.committed = options.get(ISOLATION, COMMITTED) == COMMITTED
        properties = jvm.java.util.Properties()
        for key, value in options.items():
            if key.startswith("kafka."):
                properties.put(key.removeprefix("kafka."), value)
        properties.put("default.api.timeout.ms", "10000")
        properties.put("request.timeout.ms", "8000")
        try:
            self.client = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        except Py4JJavaError as error:
            raise self.refused(error) from None

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close the client; that its JVM is gone must not hide why a run ends."""
        with suppress(Py4JError):
            self.client.close()

    def partitions(self, names: Iterable[str]) -> dict[str, int]:
        """The number of partitions of those topics that there are."""
        return {name: told.partitions().size() for name, told in self.described(names).items()}

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """The ids of those topics that there are; a topic that is made anew has another.

        Brokers before Kafka 2.8 tell none.
        """
        none = self.jvm.org.apache.kafka.common.Uuid.ZERO_UUID.toString()
        found = {name: told.topicId().toString() for name, told in self.described(names).items()}
        return {name: id_ for name, id_ in found.items() if id_ != none}

    def described(self, names: Iterable[str]) -> dict[str, Any]:
        """What Kafka says of those topics that there are."""
        wanted = self.list(names)

        def ask() -> dict[str, Any]:
            futures = self.client.describeTopics(wanted).topicNameValues()
            found = {}
            for name in futures:
                try:
                    found[name] = futures[name].get()
                except Py4JJavaError as error:
                    said = str(error.java_exception)
                    if "UnknownTopicOrPartition" not in said and INVALID not in said:
                        raise
            return found

        return self.asked(ask)

    def names(self) -> list[str]:
        """All topics."""
        return self.asked(lambda: sorted(self.client.listTopics().names().get()))

    def latest(self, lanes: Iterable[tuple[Any, Any]]) -> dict[tuple[Any, Any], int]:
        """The end of each partition: of what a reader gets that reads as the job does."""
        wanted = self.jvm.java.util.HashMap()
        places = {
            self.jvm.org.apache.kafka.common.TopicPartition(topic, number): (topic, number)
            for topic, number in lanes
        }
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        for place in places:
            wanted.put(place, spec)
        levels = self.jvm.org.apache.kafka.common.IsolationLevel
        level = levels.READ_COMMITTED if self.committed else levels.READ_UNCOMMITTED
        options = self.jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        found = self.asked(lambda: self.client.listOffsets(wanted, options).all().get())
        return {lane: found.get(place).offset() for place, lane in places.items()}

    def create(self, name: str, partitions: int, replication: int) -> None:
        """Make a topic; that another did so at the same time is no error.

        TopicRefused, where its name is at fault.
        """
        topic = self.jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, replication)

        def ask() -> None:
            try:
                self.client.createTopics(self.list([topic])).all().get()
            except Py4JJavaError as error:
                said = str(error.java_exception)
                if INVALID in said or "PolicyViolation" in said:
                    raise TopicRefused(shown(reason(error), 300)[1:-1]) from None
                if "TopicExists" not in said:
                    raise

        self.asked(ask)

    def asked(self, ask: Callable[[], T]) -> T:
        """The answer to a question, or what Kafka says against it."""
        for again in range(self.tries - 1, -1, -1):
            try:
                return ask()
            except Py4JJavaError as error:
                if not again or not passes(error):
                    raise self.refused(error) from None
            time.sleep(PAUSE)
        raise AssertionError("a question is asked at least once")

    def list(self, values: Iterable[Any]) -> Any:
        """A Java list."""
        found = self.jvm.java.util.ArrayList()
        for value in values:
            found.add(value)
        return found

    def refused(self, error: Py4JJavaError) -> UsageError:
        """What Kafka said, without the stack."""
        return UsageError(f"{self.name}: Kafka says: {reason(error)}; check the brokers' address")


def reason(error: Py4JJavaError) -> str:
    """What Kafka said, without the stack."""
    said = str(error.java_exception)
    return (said.rpartition("Exception: ")[2] or said).strip()


def passes(error: Py4JJavaError) -> bool:
    """Whether Kafka's error is of those that may be gone when one asks again."""
    cause = error.java_exception.getCause() or error.java_exception
    kind = cause.getClass()
    while kind is not None and kind.getSimpleName() != "RetriableException":
        kind = kind.getSuperclass()
    return kind is not None
