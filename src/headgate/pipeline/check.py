"""`headgate check`: connect, decode a sample, and report what the job would do with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from headgate.arrow.events import most_bytes_of
from headgate.codec.decoder import decode_message
from headgate.codec.encoder import Encoder
from headgate.codec.schemas import Schemas
from headgate.config.job import Job, Sink, TableSink
from headgate.core.connectors import Report
from headgate.core.errors import shown
from headgate.core.event import Event
from headgate.core.losses import SENTENCES
from headgate.landing.changes import PlacedEvents, changes_of, event_shape
from headgate.landing.shape import union
from headgate.pipeline.catalog import file_tables
from headgate.pipeline.codecs import job_decoder
from headgate.pipeline.counts import full_name, table_name
from headgate.pipeline.engine import with_schema
from headgate.pipeline.preflight import check_before_start
from headgate.pipeline.row_filter.check import check_conditions
from headgate.pipeline.run import job_session, with_session_settings
from headgate.pipeline.table_output import NULLED, typing_of
from headgate.pipeline.table_targets import named, table_row
from headgate.schema.ddl import event_changes
from headgate.selection.selection import Selection, SelectionError
from headgate.sinks.base import Target

OWN = ("sink", "format", "messages", "tables", "losses", "rejected")
"""Of what is said of a sink, that which the sink has not found itself."""


@dataclass
class Sample:
    """What a job would do with some messages."""

    formats: Counter[str] = field(default_factory=Counter)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    filtered: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    """The events that would be written, under their new names."""
    untyped: list[list[str] | None] = field(default_factory=list)
    """Of each, columns whose values are not of their type."""
    defined: list[Event] = field(default_factory=list)
    """Tables as DDL leaves them, each as a row with all columns."""

    def define(self, ddl: Event, selection: Selection, tables: Schemas) -> None:
        """Add the tables that a statement names."""
        for name in (name for change in event_changes(ddl) for name in named(change)):
            row = table_row(tables, name)
            try:
                if row is not None and selection.wants(row):
                    self.defined.append(selection.shape(row))
            except SelectionError:  # which its rows meet too
                continue

    def add(self, event: Event, selection: Selection, untyped: list[str] | None = None) -> None:
        """Select and route one event."""
        if event.error:
            self.rejected[": ".join(event.error)] += 1
            return
        dialect = f":{event.dialect}" if event.dialect else ""
        self.formats[f"{event.format}{dialect}"] += 1
        try:
            if not selection.wants(event):
                self.filtered[table_name(event)] += 1
                return
            shaped, topic = selection.shape(event), selection.topic_of(event)
        except SelectionError as error:
            self.rejected[f"{error.code}: {error}"] += 1
            return
        if event.table is not None:
            target = {"to": table_name(shaped), "topic": topic, "events": 0}
            self.tables.setdefault(table_name(event), target)["events"] += 1
        self.events.append(shaped)
        self.untyped.append(untyped)


def checked(
    job: Job, master: str | None, sample: int, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """What a job would read, detect, route and write; `say` is called with what is being done."""
    say(f"looking for {', '.join(each.name for each in (job.source, *job.all_sinks))}")
    check_before_start(job, master, writes=False)
    spark = job_session(job, master, say=say)
    job = with_session_settings(job, spark)
    check_conditions(spark, job)
    say(f"connecting to {job.source.name}")
    source = job.source.connector
    reads = source.check(spark, job.settings)
    messages = list(source.sample(spark, job.settings, sample))
    source_with_schema = with_schema(job.source, job.schema)
    decode, tables = job_decoder(source_with_schema), file_tables(source_with_schema).copy()
    limit = most_bytes_of(job.source.options)
    selection, sampled = Selection(job), Sample()
    decoded = (
        event
        for key, value, topic in messages
        for event in decode_message(decode, key, value, topic, limit)
    )
    for event in source.sample_events(sample) if source.gives == "events" else decoded:
        tables.learn(event)
        if event.kind == "ddl":
            sampled.define(event, selection, tables)
        sampled.add(event, selection, tables.complete(event))
    return {
        "job": job.name,
        "reads": reads.facts,
        "sampled": len(messages),
        "formats": dict(sampled.formats.most_common()),
        "tables": sampled.tables,
        "filtered": dict(sampled.filtered),
        "rejected": dict(sampled.rejected.most_common()),
        "writes": [
            *(written(spark, job, sink, sampled.events) for sink in job.sinks),
            *(landed(spark, job, sink, sampled) for sink in job.table_sinks),
        ],
    }


def written(spark: SparkSession, job: Job, sink: Sink, events: list[Event]) -> dict[str, Any]:
    """What a sink would get, and what its format cannot represent."""
    encoder = Encoder(sink.format, **sink.encoder_options())
    encoder.writes_tombstones = sink.connector.takes_tombstones
    losses: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    messages = 0
    for event in events:
        outcome = encoder(event)
        losses.update(outcome.lost)
        messages += len(outcome.records)
        if outcome.error:
            rejected[": ".join(outcome.error)] += 1
    target = Target("", sink.name, sink.options, job.settings)
    return {
        "sink": sink.name,
        "format": sink.format,
        "messages": messages,
        "losses": dict(losses),
        "rejected": dict(rejected),
        **sink.connector.check(spark, target).facts,
    }


def landed(spark: SparkSession, job: Job, sink: TableSink, sample: Sample) -> dict[str, Any]:
    """The tables that a sink would make, and what would not fit them."""
    places = [""] * len(sample.events)
    given = PlacedEvents(sample.events, places, places, sample.untyped)
    changes = changes_of(given, typing_of(sink.connector))
    defined = [event_shape(row, sink.connector.types) for row in sample.defined]
    shapes = union([*filter(None, defined), *(table.shape for table in changes.tables)])
    target = Target("", sink.name, {}, job.settings)
    return {
        "sink": sink.name,
        "tables": {
            full_name(*shape.table): {
                "columns": {column.name: column.type for column in shape.columns},
                "key": list(shape.key),
            }
            for shape in shapes
        },
        "losses": {NULLED: len(changes.nulled)} if changes.nulled else {},
        "rejected": dict(Counter(": ".join(error) for error in changes.rejected.values())),
        **sink.connector.check(spark, target).facts,
    }


def described(report: dict[str, Any]) -> Iterator[str]:
    """The report as lines."""
    yield f"job {report['job']}"
    for line in Report(report["reads"]).lines("reads"):
        yield f"  {line}"
    formats = ", ".join(f"{name} ({n} events)" for name, n in report["formats"].items())
    yield f"  sampled {report['sampled']} messages: {formats or 'no events'}"
    for table, target in sorted(report["tables"].items()):
        to = f" -> {target['to']}" if target["to"] != table else ""
        topic = f", topic {target['topic']}" if target["topic"] else ""
        yield f"  table {shown(table)[1:-1]}{to}{topic}: {target['events']} events"
    for table, n in sorted(report["filtered"].items()):
        yield f"  filtered {shown(table)[1:-1] or '(no table)'}: {n} events"
    for reason, n in report["rejected"].items():
        yield f"  dead letters: {n} x {reason}"
    for sink in report["writes"]:
        if "tables" in sink:
            yield f"  lands {len(sink['tables'])} tables in {sink['sink']}"
        else:
            yield f"  writes {sink['messages']} messages to {sink['sink']} as {sink['format']}"
        for table, shape in sink.get("tables", {}).items():
            columns = ", ".join(f"{name} {type_}" for name, type_ in shape["columns"].items())
            key = f"key {', '.join(shape['key'])}" if shape["key"] else "without a key"
            yield f"    table {shown(table)[1:-1]}, {key}: {columns}"
        facts = {name: fact for name, fact in sink.items() if name not in OWN and fact != {}}
        for line in Report(facts).lines("finds"):
            yield f"    {line}"
        for reason, n in sink["rejected"].items():
            yield f"    rejected: {n} x {reason}"
        for code, n in sink["losses"].items():
            yield f"    loss {code}: {n} x {SENTENCES[code]}"
