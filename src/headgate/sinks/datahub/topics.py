"""The topics of a sink on the driver: their type, their shards, and new ones where wanted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from headgate.core.errors import UsageError
from headgate.sinks.base import Target, Topics
from headgate.sinks.datahub import DEFAULT_SHARDS, DataHubSink, is_topic
from headgate.sinks.datahub.client import QUESTION_SECONDS, Client, ServiceError, retried
from headgate.sinks.datahub.shards import Shards

START_SECONDS = 4.0
"""How long a question about a topic is repeated while DataHub does not answer."""
OPENING_SECONDS = 60.0
"""How long the shards of a new topic may take until they are ready."""
FRESH_SECONDS = 10.0
"""How long the shards of a topic are taken to be what they were; workers notice what changes."""
TUPLE = "its record type is TUPLE, and messages need BLOB; create a topic of that type"


class DataHubTopics(Topics):
    """The topics of a sink: a partition is an active shard."""

    def __init__(self, sink: DataHubSink, target: Target) -> None:
        self.sink, self.name = sink, target.name
        self.new_shards = int(target.options.get("partition_num") or DEFAULT_SHARDS)
        self.client = Client(sink.connection, QUESTION_SECONDS)
        self.known: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.shards: dict[str, Shards] = {}
        self.listed: dict[str, float] = {}
        """When the shards of a topic were looked at."""

    def ensure(self, names: Iterable[str]) -> None:
        """Look at topics, and create those that do not exist; at their shards now and then."""
        now = time.monotonic()
        for name in sorted(set(names) - self.refused.keys()):
            if not is_topic(name):
                self.refused[name] = "no topic can have that name"
            elif now - self.listed.get(name, -FRESH_SECONDS) >= FRESH_SECONDS:
                try:
                    self.look_at(name)
                except ServiceError as error:
                    raise UsageError(f"{self.name}: {error}") from None

    def look_at(self, name: str) -> None:
        """Learn the shards of a topic that is there, or is created."""
        project = self.sink.project
        if name not in self.known:
            blobs = retried(lambda: self.client.holds_blobs(project, name), START_SECONDS)
            if blobs is None:
                self.create(name)
            elif not blobs:
                self.refused[name] = TUPLE
                return
        shards = self.client.settled_shards(project, name, OPENING_SECONDS)
        self.shards[name], self.known[name] = shards, len(shards.ids)
        self.listed[name] = time.monotonic()

    def create(self, name: str) -> None:
        """Create a topic, if that is wanted."""
        sink = self.sink
        if not sink.create_topics:
            raise ServiceError("no-topic", f"topic {sink.project}/{name}", "it does not exist")
        new = (sink.project, name, self.new_shards, sink.lifecycle)
        retried(lambda: self.client.create_topic(*new), START_SECONDS)

    def check_project(self) -> None:
        """Refuse an endpoint, an account or a project that is wrong, where no topic is known."""
        try:
            retried(lambda: self.client.check_project(self.sink.project), START_SECONDS)
        except ServiceError as error:
            raise UsageError(f"{self.name}: {error}") from None


def checked_topics(sink: DataHubSink, name: str, topics: Sequence[str]) -> dict[str, int]:
    """The number of active shards of those topics that there are; nothing is created."""
    client = Client(sink.connection, QUESTION_SECONDS)
    counts = {}
    try:
        if not topics:
            client.check_project(sink.project)
        for topic in topics:
            blobs = client.holds_blobs(sink.project, topic)
            if blobs is None and not sink.create_topics:
                raise ServiceError("no-topic", f"topic {sink.project}/{topic}", "it does not exist")
            if blobs is False:
                raise UsageError(f"{name}: topic {topic}: {TUPLE}")
            if blobs:
                shards = client.shards(sink.project, topic)
                counts[topic] = 0 if shards is None else len(shards.ids)
    except ServiceError as error:
        raise UsageError(f"{name}: {error}") from None
    return counts
