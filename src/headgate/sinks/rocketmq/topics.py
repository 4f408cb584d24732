"""The topics of a sink: their queues, and new ones where that is wanted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from headgate.core.errors import UsageError, shown
from headgate.rocketmq.client import Client, Queue, client, is_own
from headgate.rocketmq.errors import NO_PERMISSION, ClientError, retried
from headgate.sinks.base import Topics
from headgate.sinks.rocketmq import DEFAULT_QUEUES, RocketMQSink
from headgate.sinks.topics import spread_over

_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,127}", re.ASCII)
IMPOSSIBLE = "a name has letters, digits, _ and -, at most 127"
OWN = "RocketMQ keeps it for itself"
NO_QUEUE = 1 << 20
"""The number of a queue that no topic has."""


class RocketMQTopics(Topics):
    """Looks at topics when they are first written to, and creates those that are missing."""

    def __init__(self, sink: RocketMQSink, name: str, options: Mapping[str, Any]) -> None:
        self.sink, self.name, self.options = sink, name, options
        self.retry = 0.0
        """Seconds for which servers are asked again; a job that starts fails at once."""
        self.known: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.queues: dict[str, list[Queue]] = {}
        """The queues over which rows are spread, by topic: a partition is a place in the list."""

    def ensure(self, names: Iterable[str]) -> None:
        """Look at topics, each once, and create those that do not exist."""
        wanted = sorted(set(names) - self.known.keys() - self.refused.keys())
        self.refused |= impossible(wanted)  # a server need not be asked
        for name in wanted:
            if name not in self.refused:
                self.look_at(name, client(self.sink.connection))

    def look_at(self, name: str, servers: Client) -> None:
        """Find the queues of a topic."""
        queues = retried(lambda: servers.writable(name), self.retry)
        if not queues:
            if not self.sink.create_topics:
                raise missing(self.name, name)
            count = int(self.options.get("partition_num") or DEFAULT_QUEUES)
            retried(lambda: servers.create_topic(name, count), self.retry)
            queues = retried(lambda: servers.writable(name), self.retry)[:count]
        remedy = "set partition-num, or start the brokers that are missing"
        self.queues[name] = queues[
            : spread_over(self.name, name, len(queues), self.options, "queues", remedy)
        ]
        self.known[name] = len(self.queues[name])


def impossible(names: Iterable[str]) -> dict[str, str]:
    """The names that no topic of a user can have, and why.

    >>> impossible(["a.b", "c", "TBW102"])
    {'a.b': 'a name has letters, digits, _ and -, at most 127', 'TBW102': 'RocketMQ keeps it for itself'}
    """  # noqa: E501
    wrong = {name: IMPOSSIBLE for name in names if not _TOPIC.fullmatch(name)}
    return wrong | {name: OWN for name in names if is_own(name)}


def missing(sink: str, topic: str) -> UsageError:
    """The error of a topic that is not there and not to be created."""
    return UsageError(f"{sink}: no topic {topic}; create it, or set auto-create-topic=true")


def check_topic(sink: RocketMQSink, name: str, topic: str | None) -> dict[str, int]:
    """The number of queues of a topic, if it is there, for `headgate check`."""
    servers = client(sink.connection)
    if topic is None:
        servers.topics()
        return {}
    for wrong, why in impossible([topic]).items():
        raise UsageError(f"{name}: topic {shown(wrong)}: {why}")
    queues = servers.writable(topic)
    if not queues:
        if servers.readable(topic):
            raise UsageError(f"{name}: topic {topic} can be read only; have its perm set to 6")
        if not sink.create_topics:
            raise missing(name, topic)
        if not servers.cluster():
            raise UsageError(f"{name}: the name server knows no broker; start one")
        return {}
    check_permission(servers, topic, queues[0])
    return {topic: len(queues)}


def check_permission(servers: Client, topic: str, queue: Queue) -> None:
    """Refuse a topic that the user may not write to.

    Brokers look at permissions first, and then refuse a queue that there is not.
    """
    try:
        servers.send(topic, Queue(queue.broker, NO_QUEUE), b"\0")
    except ClientError as error:
        if error.code in (None, NO_PERMISSION):
            raise
