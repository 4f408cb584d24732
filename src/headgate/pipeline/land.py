"""`headgate.land`: a DataFrame of events, landed as a job lands its messages.

A streaming DataFrame is a query whose batches Spark numbers and repeats. Of a batch DataFrame
nothing can be repeated after a crash, so its events are written to the checkpoint first, under the
next number; a call that was cut off is finished by the next one.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.config.job import Job, Source, TableSink
from headgate.config.uris import Given, parse_sink
from headgate.core.connectors import Directory
from headgate.core.errors import UsageError
from headgate.core.scalars import Environment
from headgate.pipeline.counts import Counts, full_name
from headgate.pipeline.engine import Engine
from headgate.pipeline.lease import Lease
from headgate.pipeline.run import with_session_settings
from headgate.sources.events import EventReader, EventSource, placed_events
from headgate.spark.api import event_columns
from headgate.spark.filesystem import directory
from headgate.spark.state_files import read_state, write_state
from headgate.spark.storage import Storage

log = logging.getLogger(__name__)
STATE = "_headgate/land"
"""Where the checkpoint of batch DataFrames is below their tables."""
EVENTS = "events"
"""The folder of a checkpoint for events that are being landed."""
OFFSETS = "offsets"
"""Spark's folder of what its batches hold."""


@dataclass(frozen=True)
class Landed:
    """What became of the events of a batch DataFrame."""

    events: int
    changes: dict[str, dict[str, int]]
    """Events by table and operation that were new, and could be landed."""
    merged: dict[str, dict[str, int]]
    """By table, rows upserted and deleted, and changes ignored because newer ones are landed.
    Changes that wait for a merge (`merge_every`) are not there yet."""
    repeated: int
    """Events that were landed before."""
    rejected: dict[str, dict[str, int]]
    """Dead letters, by table and code."""
    dead_letters: str
    """Where the dead letters are, as Parquet."""
    parked: dict[str, str] = field(default_factory=dict)
    """Tables that cannot follow, and why: their changes are kept (`headgate tables`)."""

    @property
    def rejected_events(self) -> int:
        """How many events became dead letters."""
        return sum(n for codes in self.rejected.values() for n in codes.values())

    def __str__(self) -> str:
        """A line for each table, and one for what was not landed."""
        lines = [f"{self.events} events, {self.repeated} of them landed before"]
        for table, counts in sorted(self.merged.items()):
            lines.append(f"{table}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
        for table, codes in sorted(self.rejected.items()):
            counted = ", ".join(f"{n} x {code}" for code, n in codes.items())
            lines.append(f"dead letters of {table or 'no table'}: {counted}")
        if self.rejected:
            lines.append(f"dead letters are in {self.dead_letters}")
        lines += [f"{table} is parked: {reason}" for table, reason in sorted(self.parked.items())]
        return "\n".join(lines)


class _Kept(msgspec.Struct):
    """Events that are complete in the checkpoint."""

    id: str


def land(
    events: DataFrame,
    target: str,
    *,
    checkpoint: str | None = None,
    dead_letters: str | None = None,
    schema: str | None = None,
    timezone: str = "UTC",
    trigger: str | None = None,
    once: bool = False,
    **options: str | bool | int,
) -> Landed | StreamingQuery:
    """Keep lake tables equal to the source's tables, from events that `headgate.decode` gives.

    `target` and `options` are the URI and the options of a sink of tables (docs/landing.md):
    `table`, `mode`, `deletes`, `schema_change`, `merge_every` and so on. `schema` is CREATE TABLE
    statements for tables whose events have no types or keys.

    A batch DataFrame is landed, and the result says what became of its events; landed again, the
    same events change nothing. Its `checkpoint` is beside the tables unless it is given. Of a
    streaming DataFrame the result is Spark's StreamingQuery; it needs a `checkpoint`, and takes a
    `trigger` such as "10 seconds", or `once` to stop after all that is there now.
    Events that cannot be landed go to `dead_letters`, by default a folder of the checkpoint.

    >>> import tempfile
    >>> from headgate import decode
    >>> message = '{"database":"shop","table":"t","type":"insert","ts":1,"data":{"id":1}}'
    >>> events = decode(spark.createDataFrame([(message,)], "value string").coalesce(1))
    >>> landed = land(events, f"delta://{tempfile.mkdtemp()}")
    >>> landed.changes, landed.rejected
    ({'shop.t': {'insert': 1}}, {})
    """
    event_columns(events)
    sink = _sink(target, options)
    checkpoint = _checkpoint(events, sink, checkpoint)
    spark = events.sparkSession
    decoding = (
        {"timezone": timezone} if schema is None else {"timezone": timezone, "schema": schema}
    )
    job = Job(
        source=Source(EventSource(), options=decoding, name="events"),
        sinks=(),
        table_sinks=(sink,),
        name="land",
        checkpoint=checkpoint,
        dead_letters=_path(dead_letters) if dead_letters else f"{checkpoint}/dead-letters",
    )
    job = with_session_settings(job, spark)
    if events.isStreaming:
        return _stream(job, events, trigger, once)
    if trigger is not None or once:
        raise UsageError("trigger and once are for a streaming DataFrame; this one is landed once")
    return _batch(job, events)


def _sink(target: str, options: Mapping[str, str | bool | int]) -> TableSink:
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
    sink = parse_sink(target, Given(texts), env=Environment(os.environ))
    if not isinstance(sink, TableSink):
        raise UsageError(
            f"{sink.name} takes messages, and no tables; land in delta:///DIR, or write what "
            "headgate.encode returns"
        )
    return sink


def _checkpoint(events: DataFrame, sink: TableSink, given: str | None) -> str:
    if given is not None:
        return _path(given)
    if events.isStreaming:
        raise UsageError(
            "a streaming DataFrame needs a checkpoint, the directory that has its progress: "
            'headgate.land(events, target, checkpoint="/data/checkpoints/lake")'
        )
    place = sink.connector.place(None)
    if not isinstance(place, Directory):
        raise UsageError(f"{sink.name} has no room for progress; give a checkpoint=DIRECTORY")
    return f"{place.path.rstrip('/')}/{STATE}"


def _path(given: str) -> str:
    return directory(given.removeprefix("file://")).rstrip("/")


# Batch


def _batch(job: Job, events: DataFrame) -> Landed:
    spark, kept = events.sparkSession, Storage(f"{job.checkpoint}/{EVENTS}", job.settings)
    with ExitStack() as stack:
        lease = stack.enter_context(Lease(Storage(f"{job.checkpoint}/headgate", job.settings)))
        engine = stack.enter_context(closing(_engine(spark, job, lease)))
        _finish_earlier(engine, kept)
        before, number = engine.state.totals, engine.state.batch + 1
        placed_events(events).write.mode("overwrite").parquet(kept.for_spark(str(number)))
        write_state(kept, f"{number}.json", _Kept(uuid.uuid4().hex))
        try:
            _process(engine, kept, number)
        except BaseException:
            if engine.begun != number:  # nothing of it is landed, and nothing has to be finished
                _forget(kept, number)
            raise
        return _landed(job, before, engine.state.totals)


def _engine(spark: SparkSession, job: Job, lease: Lease) -> Engine:
    """The engine of a checkpoint that does not belong to a query."""
    query = Storage(f"{job.checkpoint}/query", job.settings)
    if query.names(OFFSETS):
        raise UsageError(
            f"{job.checkpoint} is the checkpoint of a streaming DataFrame; give another one"
        )
    if not query.exists("metadata"):
        query.write("metadata", msgspec.json.encode({"id": str(uuid.uuid4())}))
    engine = Engine(spark, job)
    engine.still_ours = lease.check
    return engine


def _finish_earlier(engine: Engine, kept: Storage) -> None:
    """Land events of a call that was cut off; forget those that are landed."""
    for name in kept.names():
        number = name.removesuffix(".json")
        if number == name or not number.isdigit():
            continue
        if int(number) > engine.state.batch:
            log.warning("landing events first of a call of headgate.land that was cut off")
            _process(engine, kept, int(number))
        _forget(kept, int(number))


def _process(engine: Engine, kept: Storage, number: int) -> None:
    marker = read_state(kept, f"{number}.json", _Kept)
    _set_range(engine, EVENTS, marker.id if marker else "")
    engine.process(engine.spark.read.parquet(kept.for_spark(str(number))), number)
    _forget(kept, number)


def _set_range(engine: Engine, kind: str, content: str) -> None:
    """Set what the next batch has."""
    reader = engine.reader
    assert isinstance(reader, EventReader)
    reader.range = [(kind, content)]


def _forget(kept: Storage, number: int) -> None:
    kept.delete(f"{number}.json")
    kept.delete(str(number))


def _landed(job: Job, before: Counts, after: Counts) -> Landed:
    tables = job.table_sinks[0].connector.tables(job.settings)
    landed = Landed(
        after.events - before.events,
        _grown(before.rows, after.rows),
        _grown(before.merged, after.merged),
        after.repeated - before.repeated,
        _grown(before.rejected, after.rejected),
        job.dead_letters,
        {full_name(*each.table): each.reason or "" for each in tables if each.state != "landed"},
    )
    if landed.rejected:
        log.warning(
            "%d events cannot be landed; they are in %s", landed.rejected_events, job.dead_letters
        )
    return landed


def _grown(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """What was counted in between.

    >>> _grown({"d.t": {"insert": 1}}, {"d.t": {"insert": 3, "delete": 0}, "d.u": {"insert": 1}})
    {'d.t': {'insert': 2}, 'd.u': {'insert': 1}}
    """
    grown = {
        table: {
            name: n - before.get(table, {}).get(name, 0)
            for name, n in counts.items()
            if n != before.get(table, {}).get(name, 0)
        }
        for table, counts in after.items()
    }
    return {table: counts for table, counts in grown.items() if counts}


# Streaming


def _stream(job: Job, events: DataFrame, trigger: str | None, once: bool) -> StreamingQuery:
    if trigger is not None and once:
        raise UsageError("once ends with what is there now; leave out trigger")
    with ExitStack() as stack:
        lease = stack.enter_context(Lease(Storage(f"{job.checkpoint}/headgate", job.settings)))
        engine = stack.enter_context(closing(Engine(events.sparkSession, job)))
        engine.still_ours = lease.check
        offsets = Storage(f"{engine.spark_checkpoint.uri}/{OFFSETS}", job.settings)

        def process(batch: DataFrame, number: int) -> None:
            _set_range(engine, OFFSETS, (offsets.read(str(number)) or b"").decode())
            engine.process(placed_events(batch), number)

        writer = events.writeStream.foreachBatch(process)
        if once or trigger is not None:
            when: dict[str, Any] = {"availableNow": True} if once else {"processingTime": trigger}
            writer = writer.trigger(**when)
        checkpoint = engine.spark_checkpoint.for_spark("")
        query = writer.option("checkpointLocation", checkpoint).start()
        resources = stack.pop_all()

    def release() -> None:
        with resources:
            try:
                query.awaitTermination()
            except StreamingQueryException:
                return  # the query raises it for its owner

    threading.Thread(target=release, name="headgate.land", daemon=True).start()
    return query
