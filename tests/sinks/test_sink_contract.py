"""What every sink of messages does: a batch twice, interruptions, hostile names, no network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from connector_cases import HOSTILE, World, check_unreachable
from connector_cases import SINKS as CASES
from packed_steps import step_of
from pyspark.sql import DataFrame, SparkSession

from headgate.arrow.headers import TYPE
from headgate.config.job import Sink
from headgate.config.uris import parse_sink
from headgate.core.batches import SourceRange
from headgate.core.errors import HeadgateError
from headgate.sinks import SINKS
from headgate.sinks.base import Batch, Target, Writer

COLUMNS = f"key binary, value binary, partition int, topic string, headers {TYPE}"
STEPS = [[b"1", b"2"], [b"3"]]
VALUES = [value for step in STEPS for value in step]

NAMES = [name for name in SINKS.names() if SINKS.load(name).takes == "messages"]
every_sink = pytest.mark.parametrize("scheme", NAMES)


class Stopped(Exception):
    """The job is interrupted."""


def sink_of(world: World, scheme: str, name: str) -> Sink:
    return parse_sink(f"{CASES[scheme].uri(world, name)}protocol=debezium")


def opened(spark: SparkSession, sink: Sink) -> Writer:
    return sink.connector.open(spark, Target("job", sink.name, sink.options, {}))


def steps(spark: SparkSession, sink: Sink) -> list[DataFrame]:
    topic = sink.options.get("topic")
    if sink.connector.takes_packed_rows:
        return [step_of(spark, [{"value": v, "topic": topic} for v in values]) for values in STEPS]
    return [
        spark.createDataFrame([(None, v, None, topic, None) for v in values], COLUMNS).coalesce(1)
        for values in STEPS
    ]


def batch(number: int = 0, stop_at: int | None = None) -> Batch:
    """A batch whose job loses its lease at the n-th time that it is asked."""
    calls: Iterator[int] = iter(range(100))

    def still_ours() -> None:
        if next(calls) == stop_at:
            raise Stopped

    return Batch(number, SourceRange({"t": {"0": (number, number + 1)}}), still_ours)


def once_each(values: list[bytes]) -> list[bytes]:
    return list(dict.fromkeys(values))


def check_written(world: World, scheme: str, name: str) -> None:
    written = CASES[scheme].written(world, name)
    if SINKS.load(scheme).promise == "exactly-once":
        assert VALUES == written
    assert VALUES == once_each(written)


def test_every_sink_is_under_the_contract() -> None:
    assert set(CASES) >= set(NAMES)


@every_sink
def test_the_same_batch_twice(spark: SparkSession, world: World, scheme: str) -> None:
    name = f"twice-{scheme}"
    sink = sink_of(world, scheme, name)
    topics = [sink.options["topic"]] if "topic" in sink.options else []
    for again in range(2):
        writer = opened(spark, sink)  # as the job is started again
        for _ in range(2 - again):
            writer.verify(batch())
            writer.write(batch(), steps(spark, sink), topics)

    check_written(world, scheme, name)


@every_sink
def test_interrupted_between_any_two_calls_and_repeated(
    spark: SparkSession, world: World, scheme: str
) -> None:
    for stop_at in range(4):
        name = f"stopped-{scheme}-{stop_at}"
        world.printed.clear()
        sink = sink_of(world, scheme, name)
        topics = [sink.options["topic"]] if "topic" in sink.options else []
        opened(spark, sink)
        opened(spark, sink).verify(batch())
        try:
            opened(spark, sink).write(batch(stop_at=stop_at), steps(spark, sink), topics)
            stopped = False
        except Stopped:
            stopped = True

        writer = opened(spark, sink)
        writer.verify(batch())
        writer.write(batch(), steps(spark, sink), topics)

        check_written(world, scheme, name)
        if not stopped:
            return
    raise AssertionError("a batch of two steps asks more than four times whose it is")


@every_sink
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_name_is_refused_or_taken_as_it_is(
    spark: SparkSession, world: World, scheme: str, kind: str
) -> None:
    name = f"below/{HOSTILE[kind]}" if SINKS.load(scheme).authority == "path" else HOSTILE[kind]
    refused = None
    try:
        sink = sink_of(world, scheme, name)
        topics = [sink.options["topic"]] if "topic" in sink.options else []
        opened(spark, sink).write(batch(), steps(spark, sink), topics)
    except HeadgateError as error:
        refused = str(error)
    if refused is None:
        check_written(world, scheme, name)
    else:
        assert len(refused) < 3_000


@pytest.mark.parametrize("scheme", [n for n in NAMES if SINKS.load(n).uses_topics])
def test_topics_with_hostile_names_are_refused_one_by_one(
    spark: SparkSession, world: World, scheme: str
) -> None:
    writer = opened(spark, sink_of(world, scheme, "hostile-topics"))
    assert writer.topics is not None

    writer.topics.ensure([*HOSTILE.values(), "hostile_topics_good"])

    assert set(HOSTILE.values()) == set(writer.topics.refused)
    assert "hostile_topics_good" in writer.topics.known


@pytest.mark.parametrize("scheme", [n for n in NAMES if CASES[n].unreachable()])
def test_without_a_network_the_address_is_named_within_seconds(
    spark: SparkSession, scheme: str
) -> None:
    uri = str(CASES[scheme].unreachable())
    sink = parse_sink(f"{uri}protocol=debezium")
    routed = {**sink.options, "topic": "cdc.{table}"}  # known when there are events only

    check_unreachable(
        uri,
        partial(sink.connector.check, spark, Target("job", sink.name, sink.options, {})),
        partial(sink.connector.open, spark, Target("job", sink.name, sink.options, {})),
        partial(sink.connector.open, spark, Target("job", sink.name, routed, {})),
    )
