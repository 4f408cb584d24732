"""What `headgate init` sees of a source: its topics, and what its first messages are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import click

from headgate.arrow.events import most_bytes_of
from headgate.cli.job_file import Looked
from headgate.codec.decoder import decode_message, decoder
from headgate.config.job import Source
from headgate.config.uris import parse_source
from headgate.core.errors import UsageError
from headgate.core.event import Event

SAMPLE = 1_000
TABLES = 20
"""Most tables that are listed."""


def look(uri: str, choose: Callable[[list[str]], str]) -> Looked:
    """Connect to a source and read some of it; `choose` is asked for a topic if it names none."""
    try:
        source = parse_source(uri)
    except UsageError:
        before, question, query = uri.partition("?")
        if before.rstrip("/").count("/") != 2:  # SCHEME://HOSTS, and no more
            raise
        pattern = f"{before.rstrip('/')}/*{question}{query}"
        source = parse_source(pattern)
        spark = session_for(source)
        topics = source.connector.check(spark, {}).facts.get("topics", {})
        uri = f"{before.rstrip('/')}/{choose(sorted(topics))}{question}{query}"
        source = parse_source(uri)
    return looked_at(uri, source, session_for(source))


def session_for(source: Source) -> Any:
    """The session that a source is sampled with; None where it needs none."""
    click.echo(f"headgate: looking at {source.name}", err=True)
    try:
        source.connector.reachable()
    except UsageError as error:
        raise type(error)(f"{source.name}: {error}") from None
    if source.connector.samples_without_spark:
        return None
    from headgate.spark import jars
    from headgate.spark.logs import temporary_log
    from headgate.spark.session import session

    click.echo("headgate: starting Spark", err=True)
    return session(settings=jars.settings(*source.connector.jars), log=temporary_log())


def looked_at(uri: str, source: Source, spark: Any) -> Looked:
    """What there is, and what the first messages are."""
    connector = source.connector
    reads = tuple(connector.check(spark, {}).lines("reads"))
    messages = 0

    def events() -> Iterator[Event]:
        nonlocal messages
        if connector.gives == "events":
            yield from connector.sample_events(SAMPLE)
            return
        decode, most = decoder(source.format, **source.options), most_bytes_of(source.options)
        for key, value, topic in islice(connector.sample(spark, {}, SAMPLE), SAMPLE):
            messages += 1
            yield from decode_message(decode, key, value, topic, most)

    formats: Counter[str] = Counter()
    tables: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    for event in events():
        if event.error is not None:
            rejected[": ".join(event.error)] += 1
            continue
        if event.format is not None:
            formats[":".join(filter(None, (event.format, event.dialect)))] += 1
        if event.table is not None:
            tables[".".join(filter(None, (event.database, event.schema, event.table)))] += 1
    return Looked(
        uri,
        reads,
        messages,
        dict(formats.most_common()),
        dict(tables.most_common(TABLES)),
        dict(rejected.most_common(5)),
    )
