"""Kafka topics through the client that Spark's connector brings along."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from headgate.core.errors import HeadgateError, Unreachable, UsageError, shown
from headgate.kafka.client_options import COMMITTED, ISOLATION

PAUSE = 1.0
"""Seconds between two tries of a question."""
INVALID = "InvalidTopicException"
NO_ID = "A" * 22
"""The id of a topic that has none: zeros, in base64."""
T = TypeVar("T")


class Patience(NamedTuple):
    """How often a question is asked while brokers do not answer, and how long each try may take."""

    tries: int
    question_ms: int
    request_ms: int


PATIENT = Patience(3, 10_000, 8_000)
"""While a job runs: brokers restart, and leaders move."""
AT_ONCE = Patience(1, 7_000, 5_000)
"""At the start, where a user waits to learn that the address is wrong."""


class TopicRefused(HeadgateError):
    """Kafka does not take a topic of that name, whoever asks and however often."""


class Admin:
    """Kafka's AdminClient, closed after use; its errors name the sink and no secret.

    A question that fails for a reason that passes (no broker answers, a leader moves) is asked
    again, as often as `patience` says.
    """

    def __init__(
        self, jvm: Any, options: dict[str, str], name: str, patience: Patience = PATIENT
    ) -> None:
        self.jvm, self.name, self.patience = jvm, name, patience
        self.committed = options.get(ISOLATION, COMMITTED) == COMMITTED
        properties = jvm.java.util.Properties()
        for key, value in options.items():
            if key.startswith("kafka."):
                properties.put(key.removeprefix("kafka."), value)
        properties.put("default.api.timeout.ms", str(patience.question_ms))
        properties.put("request.timeout.ms", str(patience.request_ms))
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

    def reach(self) -> None:
        """Fail if no broker answers."""
        self.retried(lambda: self.client.describeCluster().nodes().get())

    def partitions(self, names: Iterable[str]) -> dict[str, int]:
        """The number of partitions of those topics that there are."""
        return {
            name: description.partitions().size()
            for name, description in self.described(names).items()
        }

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """The ids of those topics that there are; a topic that is made anew has another.

        Brokers before Kafka 2.8 tell none.
        """
        ids = {
            name: description.topicId().toString()
            for name, description in self.described(names).items()
        }
        return {name: id_ for name, id_ in ids.items() if id_ != NO_ID}

    def described(self, names: Iterable[str]) -> dict[str, Any]:
        """What Kafka says of those topics that there are."""
        wanted = list(names)

        def ask() -> dict[str, Any]:
            futures = self.client.describeTopics(self.list(wanted)).topicNameValues()
            described = {}
            for name in wanted:  # each step through a map of Java's would be several calls
                try:
                    described[name] = futures.get(name).get()
                except Py4JJavaError as error:
                    message = str(error.java_exception)
                    if "UnknownTopicOrPartition" not in message and INVALID not in message:
                        raise
            return described

        return self.retried(ask)

    def names(self) -> list[str]:
        """All topics."""
        return self.retried(lambda: sorted(self.client.listTopics().names().get()))

    def latest(self, partitions: Iterable[tuple[Any, Any]]) -> dict[tuple[Any, Any], int]:
        """The end of each partition: of what a reader gets that reads as the job does."""
        return self.offsets(partitions, self.jvm.org.apache.kafka.clients.admin.OffsetSpec.latest())

    def earliest(
        self, partitions: Iterable[tuple[Any, Any]], time: int | None = None
    ) -> dict[tuple[Any, Any], int]:
        """The first offset of each partition, or of those from a time on; -1 where there is none.

        The time is in milliseconds since 1970.
        """
        specs = self.jvm.org.apache.kafka.clients.admin.OffsetSpec
        spec = specs.earliest() if time is None else specs.forTimestamp(time)
        return self.offsets(partitions, spec)

    def offsets(
        self, partitions: Iterable[tuple[Any, Any]], spec: Any
    ) -> dict[tuple[Any, Any], int]:
        """An offset of each partition: the one that `spec`, an OffsetSpec of Java's, names."""
        wanted = self.jvm.java.util.HashMap()
        places = {
            self.jvm.org.apache.kafka.common.TopicPartition(topic, number): (topic, number)
            for topic, number in partitions
        }
        for place in places:
            wanted.put(place, spec)
        levels = self.jvm.org.apache.kafka.common.IsolationLevel
        level = levels.READ_COMMITTED if self.committed else levels.READ_UNCOMMITTED
        options = self.jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        ends = self.retried(lambda: self.client.listOffsets(wanted, options).all().get())
        return {partition: ends.get(place).offset() for place, partition in places.items()}

    def create(self, name: str, partitions: int, replication: int) -> None:
        """Make a topic; that another did so at the same time is no error.

        TopicRefused, where its name is at fault.
        """
        topic = self.jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, replication)

        def ask() -> None:
            try:
                self.client.createTopics(self.list([topic])).all().get()
            except Py4JJavaError as error:
                message = str(error.java_exception)
                if INVALID in message or "PolicyViolation" in message:
                    raise TopicRefused(shown(reason(error), 300)[1:-1]) from None
                if "TopicExists" not in message:
                    raise

        self.retried(ask)

    def retried(self, ask: Callable[[], T]) -> T:
        """The answer to a question, which is asked again while brokers do not answer."""
        for again in range(self.patience.tries - 1, -1, -1):
            try:
                return ask()
            except Py4JJavaError as error:
                if not again or not passes(error):
                    raise self.refused(error) from None
            time.sleep(PAUSE)
        raise AssertionError("a question is asked at least once")

    def list(self, values: Iterable[Any]) -> Any:
        """A Java list."""
        listed = self.jvm.java.util.ArrayList()
        for value in values:
            listed.add(value)
        return listed

    def refused(self, error: Py4JJavaError) -> UsageError:
        """The reason that Kafka gave, without the stack."""
        kind = Unreachable if passes(error) else UsageError
        return kind(f"{self.name}: Kafka says: {reason(error)}; check the brokers' address")


def reason(error: Py4JJavaError) -> str:
    """The reason that Kafka gave, without the stack."""
    message = str(error.java_exception)
    return (message.rpartition("Exception: ")[2] or message).strip()


def passes(error: Py4JJavaError) -> bool:
    """Whether Kafka's error is of those that may be gone when one asks again."""
    cause = error.java_exception.getCause() or error.java_exception
    kind = cause.getClass()
    while kind is not None and kind.getSimpleName() != "RetriableException":
        kind = kind.getSuperclass()
    return kind is not None
