"""The job model: its source, its sinks, its rules, and how it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headgate.codec.encoder import target
from headgate.config.values import endpoint, job_name, positive_duration, read_schema
from headgate.core.keys import Key, key, keys
from headgate.core.options import names
from headgate.core.scalars import duration, share
from headgate.selection.selection import Rules
from headgate.sinks import base as sinks
from headgate.sources import base as sources
from headgate.sources.topics import MOST_MESSAGES


@dataclass(frozen=True)
class Source:
    """Where messages come from, and how they are decoded."""

    connector: sources.Source
    format: str = "auto"
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    """Options of the decoder."""
    name: str = ""
    """The URI without its secrets: how the source is called in logs and errors."""


@dataclass(frozen=True)
class Sink:
    """Where messages go, and in which format."""

    connector: sinks.MessageSink
    name: str
    """The URI without its secrets: how the sink is called in logs and errors."""
    format: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    """Options of the encoder; `topic` is among them unless a route gives it."""

    def encoder_options(self) -> dict[str, Any]:
        """All options of the encoder: the job's, and what the sink sets otherwise."""
        known = names(target(self.format)[2].options)
        defaults = self.connector.encoder_defaults
        return {n: v for n, v in defaults.items() if n in known} | self.options


@dataclass(frozen=True)
class TableSink:
    """Where tables are landed."""

    connector: sinks.TableSink
    name: str
    """The URI without its secrets: how the sink is called in logs and errors."""


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """How a job runs: the keys of the section `pipeline`."""

    name: str = key("the job's name", read=job_name, default_text="the name of the file")
    checkpoint: str = key(
        "where its progress is kept: one directory per job",
        path=True,
        default_text="`./state/NAME`",
    )
    dead_letters: str = key(
        "where messages go that could not be processed",
        path=True,
        default_text="`CHECKPOINT/dead-letters`",
    )
    trigger: float = key(
        "time from one micro-batch to the next: `500ms`, `5s`, `2m`, `1h`", "0s", read=duration
    )
    heartbeat: float | None = key("time between heartbeats", None, read=positive_duration)
    max_invalid: float | None = key(
        "share of dead letters at which the job stops: `1%`, `0.01`",
        None,
        read=share,
        default_text="no limit",
    )
    max_messages: int | None = key(
        "most messages of one micro-batch; a file of a directory counts as 10,000",
        None,
        default_text=f"{MOST_MESSAGES:,} from Kafka and RocketMQ, else no limit",
    )
    remember: float = key(
        "how long replays are recognised: by the time since they were applied, and in the "
        "source's time",
        "1d",
        read=positive_duration,
    )
    redact: bool = key("keep dead letters without their values", False)
    schema: str | None = key(
        "a file of `CREATE TABLE` statements", None, path=True, read=read_schema
    )
    metrics: str | None = key(
        "`HOST:PORT` of the Prometheus endpoint; a port alone is on 127.0.0.1", None, read=endpoint
    )
    settings: dict[str, str] = key(
        "Spark's settings, `spark.…: value`", dict, name="spark", open=True, secret=True
    )


@dataclass(frozen=True, kw_only=True)
class Job(Rules, Pipeline):
    """A whole job, every value checked."""

    source: Source = key(
        "where messages come from", open=True, missing="the job has no source; add source: {uri: …}"
    )
    sinks: tuple[Sink, ...] = key(
        "where messages go, or where tables are landed",
        name="sink",
        open=True,
        missing="the job has no sink; add sink: {uri: …}",
    )
    table_sinks: tuple[TableSink, ...] = ()
    """Where tables are landed; a job has such sinks or those of messages."""

    @property
    def all_sinks(self) -> tuple[Sink | TableSink, ...]:
        """The sinks of either kind."""
        return (*self.sinks, *self.table_sinks)


def sections() -> dict[str, Key]:
    """The sections of a job file.

    >>> list(sections())
    ['source', 'tables', 'filter', 'ddl', 'route', 'sink', 'pipeline']
    """
    declared = keys(Job)
    named = {name: declared[name] for name in ("source", *keys(Rules), "sink")}
    return named | {"pipeline": Key("pipeline", "pipeline", "how the job runs", Pipeline)}
