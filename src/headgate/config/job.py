"""What a job is: its source, its sinks, what it selects, and how it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headgate.selection.selection import Rules


@dataclass(frozen=True)
class Source:
    """Where messages come from, and how they are read."""

    kind: str
    """`kafka`, `file` or `stdin`."""
    format: str = "auto"
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    """Options of the decoder."""
    topics: tuple[str, ...] = field(default=(), repr=False)
    """Kafka topics; one with `*` or `?` is a pattern."""
    path: str | None = field(default=None, repr=False)
    starting: str = "earliest"
    """`earliest`, `latest`, a time as ISO text, or Kafka's JSON of offsets."""
    kafka: dict[str, str] = field(default_factory=dict, repr=False)
    """Options of Kafka's client, `kafka.bootstrap.servers` among them. They may hold secrets."""
    name: str = ""
    """The URI without its secrets: how the source is called in logs and errors."""


@dataclass(frozen=True)
class Sink:
    """Where messages go, and in which format."""

    kind: str
    """`kafka`, `file` or `console`."""
    name: str
    """The URI without its secrets: how the sink is called in logs and errors."""
    format: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    """Options of the encoder; for Kafka, `topic` is among them unless a route gives it.

    A Kafka sink may have `partition` without `partition_num`: the broker says how many there are.
    """
    path: str | None = field(default=None, repr=False)
    lines: bool = False
    """Whether a file sink writes lines of text, and not Parquet with Kafka's columns."""
    kafka: dict[str, str] = field(default_factory=dict, repr=False)
    create_topics: bool = True
    replication: int = 1


@dataclass(frozen=True, kw_only=True)
class Job(Rules):
    """A whole job, every value checked."""

    name: str
    source: Source
    sinks: tuple[Sink, ...]
    checkpoint: str
    dead_letters: str
    schema: str | None = None
    """The text of a file of CREATE TABLE statements."""
    trigger: float = 0.0
    """Seconds from one batch to the next."""
    heartbeat: float | None = None
    max_invalid: float | None = None
    """The largest share of messages that may be dead letters, e.g. 0.01."""
    max_messages: int | None = None
    """Most messages of one batch."""
    remember: float = 86_400.0
    """Seconds for which applied changes are remembered, by the job's clock and the source's."""
    redact: bool = False
    """Whether dead letters are kept without their values."""
    metrics: str | None = None
    """`host:port` of the Prometheus endpoint."""
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    """Spark settings."""
