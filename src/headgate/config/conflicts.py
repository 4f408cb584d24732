"""Conflicts within a job: sinks that feed the source, and directories that overlap."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from headgate.config.job import Job, Sink, Source, TableSink
from headgate.core.connectors import Directory, Place, Topic
from headgate.core.errors import UsageError, shown
from headgate.core.names import words
from headgate.formats import registered, resolves
from headgate.selection.filters import check_columns
from headgate.selection.globs import as_glob, overlap
from headgate.selection.routes import split_target
from headgate.sinks import SINKS

Check = tuple[str, Callable[[], None]]
"""A part of the job (`sink 0`, `filter 0`, `route 0`, `pipeline`), and what raises if it is
wrong."""


def check_job(job: Job) -> Iterator[Check]:
    """The checks of a job as a whole."""
    for number, sink in enumerate(job.sinks):
        yield f"sink {number}", partial(_check_topic, job, sink)
    for number, each in enumerate(job.all_sinks):
        yield f"sink {number}", partial(_check_place, job, number, each)
    for number, lake in enumerate(job.table_sinks):
        if lake.connector.waits_for_watermarks:
            yield f"sink {number}", partial(_check_watermarks, job.source)
    routed = [(n, route.topic) for n, route in enumerate(job.routes) if route.topic is not None]
    for number, _ in routed:
        yield f"route {number}", partial(_check_route_topic, job, number)
    yield "pipeline", partial(_check_paths, job)
    for number, filter in enumerate(job.filters):
        yield f"filter {number}", partial(check_columns, filter, job.schema)


def _check_topic(job: Job, sink: Sink) -> None:
    topic = sink.options.get("topic")
    if sink.connector.uses_topics and topic is None and not any(r.topic for r in job.routes):
        raise UsageError(
            f"the sink has no topic; write it in the URI, {SINKS.example(sink.connector.name)}, "
            "or give a route a topic"
        )
    _check_loop(job.source, sink.connector.place(topic))


def _check_place(job: Job, number: int, sink: Sink | TableSink) -> None:
    place = sink.connector.place(None)
    _check_loop(job.source, place)
    for other in job.all_sinks[:number]:
        if _shared_directory(place, other.connector.place(None)):
            raise UsageError("two sinks write into the same directory; give each its own")


def _check_watermarks(source: Source) -> None:
    """Reject a sink that waits for watermarks of a format that has none."""
    if source.format == "auto" or resolves(source.format):
        return
    names = ", ".join(name for name in registered() if resolves(name))
    raise UsageError(
        f"consistency: watermark needs messages that say up to where they are complete "
        f"(watermarks), or where transactions end; those of {source.format} do not. Use "
        f"consistency: batch, or let the producer write one of {names}"
    )


def _check_route_topic(job: Job, number: int) -> None:
    if job.table_sinks:
        raise UsageError("the job lands tables, which have no topics; remove topic from the route")
    route = job.routes[number]
    topics = [route.topic or ""]
    if route.to is not None:
        topics = [_named(topics[0], names) for names in _targets(route.to)]
    for sink in job.sinks:
        if sink.connector.uses_topics:
            for topic in topics:
                _check_loop(job.source, sink.connector.place(topic))


def _targets(to: str) -> list[tuple[str, str | None, str]]:
    """The names that a route can lead to: with one schema, with none, or with any."""
    database, *schema, table = split_target(to)
    return [(database, each, table) for each in schema or (None, "*")]


def _named(topic: str, names: tuple[str, str | None, str]) -> str:
    for word, name in words(topic, *names).items():
        topic = topic.replace(f"{{{word}}}", name or "*")
    return topic


def _check_loop(source: Source, written: Place | None) -> None:
    """Reject a sink that writes what the source reads: the job would read its own output."""
    for read in source.connector.places():
        if _shared_directory(written, read):
            raise UsageError(
                "the sink writes into the directory that the source reads; choose another"
            )
        if (
            isinstance(written, Topic)
            and isinstance(read, Topic)
            and written.system == read.system
            and written.servers & read.servers
            and overlap(read.name, as_glob(written.name))
        ):
            raise UsageError(
                f"the topic {shown(written.name)} is, or can become, one that the source reads "
                f"({shown(read.name)}): the job would read its own output; choose another topic"
            )


def _check_paths(job: Job) -> None:
    for what, path in (("checkpoint", job.checkpoint), ("dead_letters", job.dead_letters)):
        directory = Directory(path)
        if any(_shared_directory(directory, read) for read in job.source.connector.places()):
            raise UsageError(f"{what} overlaps the directory that the source reads; choose another")
        if any(_shared_directory(directory, sink.connector.place(None)) for sink in job.all_sinks):
            raise UsageError(f"{what} overlaps the directory of a sink; choose another")
    if _real(job.checkpoint) == _real(job.dead_letters):
        raise UsageError("checkpoint and dead_letters are the same directory; give each its own")


def _shared_directory(one: Place | None, other: Place | None) -> bool:
    return isinstance(one, Directory) and isinstance(other, Directory) and _overlap(
        one.path, other.path
    )  # fmt: skip


def _overlap(one: str, other: str) -> bool:
    """Whether one directory is the other, or is inside it."""
    first, second = f"{_real(one)}/", f"{_real(other)}/"
    return first.startswith(second) or second.startswith(first)


def _real(path: str) -> str:
    return path.rstrip("/") if "://" in path else os.path.realpath(path).rstrip("/")
