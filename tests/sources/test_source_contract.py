"""What every source does: read once, interruptions, hostile names, no network."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from connector_cases import HOSTILE, World, check_unreachable
from connector_cases import SOURCES as CASES
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headgate.config.job import Source
from headgate.config.uris import parse_source
from headgate.core.errors import HeadgateError
from headgate.sources import SOURCES
from headgate.sources.base import Origin, Reader, source_range
from headgate.spark.storage import Storage

READ_SECONDS = 240
VALUES = [b'{"n":1}', b'{"n":2}', b'{"n":3}']

every_source = pytest.mark.parametrize("scheme", SOURCES.names())


def source_of(world: World, scheme: str, name: str) -> Source:
    return parse_source(CASES[scheme].uri(world, name).rstrip("&?"))


def opened(spark: SparkSession, world: World, source: Source) -> Reader:
    state, progress = Storage(f"{world.folder}/state"), Storage(f"{world.folder}/query")
    return source.connector.open(spark, Origin(source.name, source.options, {}, state, progress))


class Stopped(Exception):
    """The job is interrupted."""


class Job:
    """Reads what there is, batch by batch; it may be interrupted in a batch."""

    def __init__(self, spark: SparkSession, world: World, source: Source) -> None:
        self.spark, self.world, self.source = spark, world, source
        self.batches: dict[int, list[bytes]] = {}
        self.ranges: dict[int, Any] = {}

    def run(self, stop: bool = False) -> None:
        reader = opened(self.spark, self.world, self.source)

        def process(batch: DataFrame, number: int) -> None:
            messages, files = reader.messages(batch)
            values = [] if messages is None else values_of(messages)
            held = source_range(reader, number, files)
            reader.verify(held)
            assert self.batches.setdefault(number, values) == values  # repeated, it is the same
            assert self.ranges.setdefault(number, held) == held
            if stop:
                raise Stopped

        stops_itself = reader.unread(-1) is None
        when: dict[str, Any] = {"processingTime": "0 seconds"}
        try:
            query = (
                reader.stream(None)
                .writeStream.option("checkpointLocation", f"{self.world.folder}/query")
                .trigger(**({"availableNow": True} if stops_itself else when))
                .foreachBatch(process)
                .start()
            )
            if not stops_itself:
                until = time.monotonic() + READ_SECONDS
                while not query.exception() and self.is_unread(reader):
                    assert time.monotonic() < until, "what is there was not read"
                    time.sleep(0.2)
                query.stop()
            if error := query.exception():
                raise error
            query.awaitTermination()
        finally:
            reader.close()

    def is_unread(self, reader: Reader) -> bool:
        return bool(reader.unread(max(self.batches, default=-1)))

    def read(self) -> list[bytes]:
        return [value for _, values in sorted(self.batches.items()) for value in values]


def values_of(messages: DataFrame) -> list[bytes]:
    """The values of messages; of events, the text of each row."""
    rows = messages.collect()
    if "event" not in messages.columns:
        return [bytes(row.value) for row in rows]
    return [row.event.after["v"].encode() for row in rows if row.event.kind == "row"]


def test_every_source_is_under_the_contract() -> None:
    assert set(CASES) >= set(SOURCES.names())


@every_source
def test_messages_are_read_once_and_in_order_through_an_interruption(
    spark: SparkSession, world: World, scheme: str
) -> None:
    name, case = f"read-{scheme}", CASES[scheme]
    case.put(world, name, VALUES[:2])
    job = Job(spark, world, source_of(world, scheme, name))

    with pytest.raises(StreamingQueryException):
        job.run(stop=True)
    case.put(world, name, VALUES[2:])
    job.run()

    assert VALUES == job.read()
    if job.source.connector.ends:
        return
    job.run()
    assert VALUES == job.read()


@every_source
def test_the_check_tells_what_there_is_and_reads_a_sample(
    spark: SparkSession, world: World, scheme: str
) -> None:
    name = f"check-{scheme}"
    CASES[scheme].put(world, name, VALUES)
    source = source_of(world, scheme, name)

    assert source.connector.check(spark, {}).facts
    if source.connector.gives == "events":
        assert [event.table for event in source.connector.sample_events(2)] == [name]
        return
    sample = [value for _, value, _ in source.connector.sample(spark, {}, 2)]
    assert sample == ([] if source.connector.ends else VALUES[:2])


@every_source
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_name_is_refused_or_taken_as_it_is(
    spark: SparkSession, world: World, scheme: str, kind: str
) -> None:
    name = f"below/{HOSTILE[kind]}" if SOURCES.load(scheme).authority == "path" else HOSTILE[kind]
    refused, facts = None, {}
    try:
        facts = source_of(world, scheme, name).connector.check(spark, {}).facts
    except HeadgateError as error:
        refused = str(error)
    assert facts or refused
    assert len(refused or "") < 3_000


@pytest.mark.parametrize("scheme", [n for n in SOURCES.names() if CASES[n].unreachable()])
def test_without_a_network_the_address_is_named_within_seconds(
    spark: SparkSession, world: World, scheme: str
) -> None:
    uri = str(CASES[scheme].unreachable())
    source = parse_source(uri.rstrip("&"))

    check_unreachable(
        uri,
        partial(opened, spark, world, source),
        partial(source.connector.check, spark, {}),
    )
