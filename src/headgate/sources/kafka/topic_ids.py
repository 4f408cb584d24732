"""The topics of a job's source, known by their ids: one that was made anew is another topic.

Its offsets begin at 0 again. Where it has more messages than the old one had, Spark would read on
at the old place, and pass over the first ones without a word.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from pyspark.sql import SparkSession

from headgate.core.errors import UsageError, shown
from headgate.kafka.admin import AT_ONCE, Admin
from headgate.sources.base import Origin
from headgate.sources.kafka import KafkaSource
from headgate.sources.topics import is_pattern, matching, no_topic
from headgate.spark.state_files import read_state, write_state

FILE = "topics.json"


class Known(msgspec.Struct):
    """The topics that were read, with their ids."""

    topics: dict[str, str] = {}


class TopicIds:
    """Compares the topics of a source with those that the job knows."""

    def __init__(self, spark: SparkSession, source: KafkaSource, origin: Origin) -> None:
        self.name, self.storage = origin.name, origin.state
        # Asked once at first: Spark would try for minutes before it says that nobody answers.
        with Admin(spark._jvm, source.client, self.name, AT_ONCE) as admin:
            there = admin.names()
        missing = [t for t in source.topics if not is_pattern(t) and t not in there]
        if missing:
            raise UsageError(f"{self.name}: {no_topic(missing, there)}")
        names = matching(source.topics, there)
        self.admin = Admin(spark._jvm, source.client, self.name)
        self.known = (read_state(self.storage, FILE, Known) or Known()).topics
        self.check(names)

    def check(self, names: Iterable[str]) -> None:
        """Refuse topics that are not those of that name which the job has read; note new ones."""
        ids = self.admin.ids(names)
        for name, id_ in ids.items():
            if self.known.get(name, id_) != id_:
                raise UsageError(
                    f"{self.name}: topic {shown(name)} was deleted and made again since the "
                    "job last read it, and what the job knows of its offsets is of the old one; "
                    "start with a new checkpoint and a new target, and say with starting from where"
                )
        if ids.keys() - self.known.keys():
            self.known = {**self.known, **ids}
            write_state(self.storage, FILE, Known(self.known))

    def close(self) -> None:
        """Close the client."""
        self.admin.close()
