"""Before a job runs: connect, look at a sample, and say what the job would do with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from headgate.arrow.events import most_bytes_of
from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder
from headgate.config.job import Job, Sink
from headgate.core.connectors import Report
from headgate.core.errors import shown
from headgate.core.event import Event
from headgate.core.losses import SENTENCES
from headgate.pipeline.counts import table_name
from headgate.pipeline.engine import with_schema
from headgate.pipeline.row_filter.check import check_conditions
from headgate.pipeline.run import job_session, with_session_settings
from headgate.selection.selection import Selection, SelectionError
from headgate.sinks.base import Target


def checked(job: Job, master: str | None, sample: int) -> dict[str, Any]:
    """What a job would read, detect, route and write."""
    spark = job_session(job, master)
    job = with_session_settings(job, spark)
    check_conditions(spark, job)
    source = job.source.connector
    reads = source.check(spark, job.settings)
    messages = list(source.sample(spark, job.settings, sample))
    decode = decoder(job.source.format, **with_schema(job.source, job.schema).options)
    limit = most_bytes_of(job.source.options)
    selection = Selection(job)
    formats: Counter[str] = Counter()
    dead: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    tables: dict[str, dict[str, Any]] = {}
    events: list[Event] = []
    for key, value, topic in messages:
        for event in decode_message(decode, key, value, topic, limit):
            if event.error:
                dead[": ".join(event.error)] += 1
                continue
            formats[f"{event.format}:{event.dialect}" if event.dialect else str(event.format)] += 1
            try:
                if not selection.wants(event):
                    left_out[table_name(event)] += 1
                    continue
                shaped, topic = selection.shape(event), selection.topic_of(event)
            except SelectionError as error:
                dead[f"{error.code}: {error}"] += 1
                continue
            if event.table is not None:
                told = {"to": table_name(shaped), "topic": topic, "events": 0}
                tables.setdefault(table_name(event), told)["events"] += 1
            events.append(shaped)
    return {
        "job": job.name,
        "reads": reads.facts,
        "sampled": len(messages),
        "formats": dict(formats.most_common()),
        "tables": tables,
        "left_out": dict(left_out),
        "dead": dict(dead.most_common()),
        "writes": [written(spark, job, sink, events) for sink in job.sinks],
    }


def written(spark: SparkSession, job: Job, sink: Sink, events: list[Event]) -> dict[str, Any]:
    """What a sink would get, and what its format cannot carry."""
    encoder = Encoder(sink.format, **sink.encoder_options())
    lost: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    messages = 0
    for event in events:
        outcome = encoder(event)
        lost.update(outcome.lost)
        messages += len(outcome.records)
        if outcome.error:
            refused[": ".join(outcome.error)] += 1
    told: dict[str, Any] = {
        "sink": sink.name,
        "format": sink.format,
        "messages": messages,
        "losses": dict(lost),
        "refused": dict(refused),
    }
    target = Target("", sink.name, sink.options, job.settings)
    return {**told, **sink.connector.check(spark, target).facts}


def described(found: dict[str, Any]) -> Iterator[str]:
    """The findings as lines."""
    yield f"job {found['job']}"
    for line in Report(found["reads"]).lines("reads"):
        yield f"  {line}"
    formats = ", ".join(f"{name} ({n} events)" for name, n in found["formats"].items())
    yield f"  sampled {found['sampled']} messages: {formats or 'no events'}"
    for table, told in sorted(found["tables"].items()):
        to = f" -> {told['to']}" if told["to"] != table else ""
        topic = f", topic {told['topic']}" if told["topic"] else ""
        yield f"  table {shown(table)[1:-1]}{to}{topic}: {told['events']} events"
    for table, n in sorted(found["left_out"].items()):
        yield f"  leaves out {shown(table)[1:-1] or '(no table)'}: {n} events"
    for reason, n in found["dead"].items():
        yield f"  dead letters: {n} x {reason}"
    for told in found["writes"]:
        yield f"  writes {told['messages']} messages to {told['sink']} as {told['format']}"
        for reason, n in told["refused"].items():
            yield f"    refused: {n} x {reason}"
        for code, n in told["losses"].items():
            yield f"    cannot carry {code}: {n} x {SENTENCES[code]}"
