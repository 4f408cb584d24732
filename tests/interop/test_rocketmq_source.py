"""What a RocketMQ source gives, read from a real server."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from job_runs import wait_for
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from rocketmq_server import ADMIN, BROKER_CONF, Sent, Server
from server_process import free_ports

from headgate.config.uris import parse_source
from headgate.core.errors import UsageError, reason_of
from headgate.core.limits import SPLICED_ROWS
from headgate.rocketmq.client import client
from headgate.rocketmq.layout import message
from headgate.sources.base import Origin, Reader
from headgate.sources.rocketmq.offsets import Range
from headgate.sources.rocketmq.stream import batches_of
from headgate.spark.storage import Storage

SHORT_LIVED = """mappedFileSizeCommitLog=1048576
mappedFileSizeConsumeQueue=2000
fileReservedTime=0
cleanResourceInterval=1000
"""
"""Settings of a broker that removes messages when it is asked to, file by small file."""
Row = tuple[str, int, int, bytes]
"""Topic, partition, offset, value."""


class Query:
    """A stream from a source; after each run, the rows of all batches."""

    def __init__(self, spark: SparkSession, folder: Path, uri: str) -> None:
        self.spark, self.folder, self.uri = spark, folder, uri
        self.batches: dict[int, list[Any]] = {}
        self.plans: set[str] = set()

    def open(self) -> Reader:
        source = parse_source(self.uri)
        state, progress = Storage(f"{self.folder}/state"), Storage(f"{self.folder}/query")
        return source.connector.open(
            self.spark, Origin(source.name, source.options, {}, state, progress)
        )

    def start(self, limit: int | None = None, fails_in: int | None = None, **trigger: Any) -> Any:
        """Start the query; in one of its batches it may fail after having read it."""
        self.reader = self.open()

        def process(batch: DataFrame, number: int) -> None:
            messages, _ = self.reader.messages(batch)
            assert messages is not None
            rows = messages.collect()
            self.plans.add(batch._jdf.queryExecution().toString())
            assert self.batches.setdefault(number, rows) == rows  # repeated, it is the same
            if number == fails_in:
                raise InterruptedError

        writer = self.reader.stream(limit).writeStream.foreachBatch(process)
        writer = writer.option("checkpointLocation", f"{self.folder}/query")
        return writer.trigger(**(trigger or {"availableNow": True})).start()

    def run(self, limit: int | None = None, fails_in: int | None = None) -> list[Row]:
        self.start(limit, fails_in).awaitTermination()
        return self.rows()

    def all(self) -> list[Any]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]

    def rows(self) -> list[Row]:
        return [(r.topic, r.partition, r.offset, bytes(r.value)) for r in self.all()]

    def values(self) -> list[bytes]:
        return sorted(bytes(row.value) for row in self.all())


def sent(numbers: range, queues: int = 1, **more: Any) -> list[Sent]:
    return [Sent(b"%04d" % n, n % queues, **more) for n in numbers]


def numbered(numbers: range) -> list[bytes]:
    return [b"%04d" % n for n in numbers]


@pytest.fixture(scope="module")
def acl() -> Iterator[Server]:
    """A server that knows its users."""
    with Server(acl=True) as found:
        yield found


@pytest.fixture
def topic(rocketmq: Server, request: pytest.FixtureRequest) -> str:
    """A topic of two queues with the name of the test."""
    name = request.node.name.replace("[", "-").replace("]", "")[:60]
    rocketmq.create_topic(name, 2)
    return str(name)


def test_messages_arrive_once_in_order_with_keys_tags_and_properties(
    rocketmq: Server, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    rocketmq.produce(
        topic,
        [Sent(b"%04d" % n, n % 2, tags=f"t{n}", keys=f"k{n}", properties=(("trace", f"é{n}"),))
         for n in range(200)],
    )  # fmt: skip
    before = time.time() - 60
    query = Query(spark, tmp_path, rocketmq.uri(topic))

    rows = query.run()

    assert [(topic, n % 2, n // 2, b"%04d" % n) for n in range(200)] == sorted(
        rows, key=lambda row: (row[2], row[1])
    )
    for partition in range(2):
        offsets = [offset for _, number, offset, _ in rows if number == partition]
        assert [*range(100)] == offsets
    for row in query.all():
        n = int(row.value)
        assert f"k{n}".encode() == bytes(row.key)
        headers = {h["key"]: h["value"] for h in json.loads(row.headers)}
        assert {"TAGS", "trace"} == set(headers)
        assert before < row.timestamp.replace(tzinfo=UTC).timestamp() < time.time() + 60


def test_messages_without_keys_and_large_compressed_ones_arrive_as_they_were_sent(
    rocketmq: Server, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    large = b"".join(b"%08d" % n for n in range(100_000))  # clients compress from 4 KiB on
    rocketmq.produce(topic, [Sent(large), Sent(b"\xff\x00")])
    query = Query(spark, tmp_path, rocketmq.uri(topic))

    assert [large, b"\xff\x00"] == [value for _, _, _, value in query.run()]
    assert [(None, None)] * 2 == [(row.key, row.headers) for row in query.all()]


def test_a_long_queue_is_read_in_order_whatever_a_broker_gives_at_once(
    rocketmq: Server, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    """It gives 32 messages, and fewer where they are large."""
    chance = random.Random(7)
    numbers = range(2 * SPLICED_ROWS + 700)
    sizes = [60_000 if n % 5_000 < 12 else 20 for n in numbers]
    bodies = [b"%06d" % n + chance.randbytes(size) for n, size in zip(numbers, sizes)]
    queue = rocketmq.queues(topic)[1]
    for start in range(0, len(bodies), 500):
        sent = [message(body, b"") for body in bodies[start : start + 500]]
        rocketmq.client.send(topic, queue, b"".join(sent))
    query = Query(spark, tmp_path, rocketmq.uri(topic))

    assert [(topic, 1, n, bodies[n]) for n in numbers] == query.run()


@pytest.mark.parametrize("starting", ["earliest", "latest", "time"])
def test_the_first_start_begins_where_it_is_told(
    rocketmq: Server, spark: SparkSession, tmp_path: Path, topic: str, starting: str
) -> None:
    rocketmq.produce(topic, sent(range(10), 2))
    time.sleep(1.5)
    between = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    time.sleep(1.5)
    rocketmq.produce(topic, sent(range(10, 20), 2))
    where = between if starting == "time" else starting
    query = Query(spark, tmp_path, f"{rocketmq.uri(topic)}starting={where}")

    query.run()
    first = {"earliest": 0, "latest": 20, "time": 10}[starting]
    assert numbered(range(first, 20)) == query.values()

    rocketmq.produce(topic, sent(range(20, 30), 2))
    query.run()
    assert numbered(range(first, 30)) == query.values()


def test_an_interrupted_batch_is_read_again_with_the_same_messages_from_latest_too(
    rocketmq: Server, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    rocketmq.produce(topic, sent(range(10), 2))
    query = Query(spark, tmp_path, f"{rocketmq.uri(topic)}starting=latest")
    query.open()  # the place is kept from here on, and nothing is read yet
    rocketmq.produce(topic, sent(range(10, 20), 2))
    with pytest.raises(StreamingQueryException):
        query.run(fails_in=0)
    first = dict(query.batches)
    rocketmq.produce(topic, sent(range(20, 30), 2))

    query.run()

    assert first[0] == query.batches[0]
    assert numbered(range(10, 30)) == query.values()


def test_batches_have_about_as_many_messages_as_the_limit_says(
    rocketmq: Server, spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    rocketmq.produce(topic, [Sent(b"%04d" % n, int(n < 20)) for n in range(200)])
    query = Query(spark, tmp_path, rocketmq.uri(topic))
    running = query.start(limit=50, processingTime="0 seconds")
    wait_for(lambda: len(query.all()) == 200)
    running.stop()

    sizes = [len(rows) for rows in query.batches.values() if rows]
    assert max(sizes) <= 52
    assert all(any(row.partition == 1 for row in query.batches[n]) for n in (0, 1, 2))
    assert numbered(range(200)) == query.values()


@pytest.fixture
def running(rocketmq: Server, spark: SparkSession, tmp_path: Path, topic: str) -> Iterator[Query]:
    """A query over the topic and all whose names start as its does."""
    query = Query(spark, tmp_path, rocketmq.uri(f"{topic}*"))
    handle = query.start(processingTime="100 milliseconds")
    yield query
    handle.stop()


def test_topics_and_queues_are_found_while_the_job_runs_and_keep_their_partitions(
    rocketmq: Server, spark: SparkSession, tmp_path: Path, topic: str, running: Query
) -> None:
    rocketmq.produce(topic, sent(range(10), 2))
    wait_for(lambda: len(running.all()) == 10)

    rocketmq.create_topic(f"{topic}-new", 1)
    rocketmq.produce(f"{topic}-new", sent(range(10, 20)))
    rocketmq.create_topic(topic, 4)
    rocketmq.produce(topic, sent(range(20, 40), 4))
    wait_for(lambda: len(running.all()) == 40)

    assert numbered(range(40)) == running.values()
    own = [row for row in running.rows() if row[0] == topic]
    for partition in range(4):
        offsets = [offset for _, number, offset, _ in own if number == partition]
        assert [*range(len(offsets))] == offsets


def test_messages_that_retention_removed_before_they_were_read_are_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    with Server(broker=BROKER_CONF + SHORT_LIVED) as server:
        server.create_topic("removed", 1)
        server.produce("removed", [Sent(b"%04d" % n) for n in range(10)])
        query = Query(spark, tmp_path, server.uri("removed"))
        query.run()
        server.produce("removed", [Sent(b"x" * 2_000) for _ in range(3_000)])
        client = server.client
        client.api.deleteExpiredCommitLog(client.cluster()["broker-a"], 5_000)
        (queue,) = client.readable("removed")
        wait_for(lambda: client.min_offset("removed", queue) > 10)

        with pytest.raises(StreamingQueryException) as caught:
            query.run()

    reason = reason_of(caught.value)
    assert server.name_server in reason
    assert "messages 10 to " in reason
    assert "of topic removed were removed before they were read" in reason
    assert "start with a new checkpoint" in reason


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server that tests may kill."""
    with Server() as found:
        yield found


def test_a_broker_that_comes_back_at_another_address_is_read_on(
    spark: SparkSession, tmp_path: Path, mortal: Server
) -> None:
    mortal.create_topic("back", 2)
    mortal.produce("back", sent(range(10), 2))
    query = Query(spark, tmp_path, mortal.uri("back"))
    handle = query.start(processingTime="100 milliseconds")
    wait_for(lambda: len(query.all()) == 10)
    assert 0 == query.reader.lag(last_number(query))
    mortal.kill_broker()
    assert query.reader.lag(last_number(query)) is None
    time.sleep(8)
    assert handle.exception() is None
    mortal.port = free_ports(1)[0]
    mortal.configure()
    mortal.start_broker()
    mortal.produce("back", sent(range(10, 20), 2))
    wait_for(lambda: handle.exception() is not None or len(query.all()) == 20)
    handle.stop()

    assert numbered(range(20)) == query.values()
    assert 0 == query.reader.lag(last_number(query))


def last_number(query: Query) -> int:
    return max(query.batches)


def test_a_batch_waits_for_a_broker_that_goes_while_it_is_read(mortal: Server) -> None:
    mortal.create_topic("middle", 1)
    mortal.produce("middle", sent(range(400)))
    uri = f"{mortal.uri('middle')}timeout=1s&retry=60s"
    own = client(parse_source(uri).connector.connection)
    batches = batches_of(own, Range("middle", "broker-a:0", 0, 0, 400), "headgate", 1_000_000)
    mortal.kill_broker()
    starter = threading.Timer(4, mortal.start_broker)
    starter.start()
    values = [value for each in batches for value in each["value"].to_pylist()]
    starter.join()

    assert numbered(range(400)) == values


def test_waiting_for_a_broker_ends_after_retry(mortal: Server) -> None:
    mortal.create_topic("gone", 1)
    mortal.produce("gone", sent(range(10)))
    uri = f"{mortal.uri('gone')}timeout=1s&retry=2s"
    own = client(parse_source(uri).connector.connection)
    batches = batches_of(own, Range("gone", "broker-a:0", 0, 0, 10), "headgate", 1_000_000)
    mortal.kill_broker()
    started = time.monotonic()
    with pytest.raises(UsageError, match="broker-a"):
        next(batches)
    waited = time.monotonic() - started
    mortal.start_broker()

    assert 1 < waited < 20


def test_a_topic_that_was_made_again_is_an_error(
    spark: SparkSession, tmp_path: Path, mortal: Server
) -> None:
    mortal.create_topic("again", 2)
    mortal.produce("again", sent(range(10), 2))
    query = Query(spark, tmp_path, mortal.uri("again"))
    query.run()
    mortal.kill_broker()
    shutil.rmtree(mortal.folder / "store")
    mortal.start_broker()
    mortal.create_topic("again", 2)
    mortal.produce("again", sent(range(2), 2))

    with pytest.raises(StreamingQueryException) as caught:
        query.run()

    assert "the topic was deleted and made again" in reason_of(caught.value)


def test_the_secret_key_is_in_no_plan_no_checkpoint_and_no_error(
    acl: Server, spark: SparkSession, tmp_path: Path
) -> None:
    acl.create_topic("secret", 1)
    acl.produce("secret", sent(range(5)))
    user, password = ADMIN
    host = acl.name_server
    query = Query(spark, tmp_path, f"rocketmq://{user}:{password}@{host}/secret")

    query.run()

    assert numbered(range(5)) == query.values()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if password.encode() in path.read_bytes()]
    assert query.plans
    assert not [plan for plan in query.plans if password in plan]
    with pytest.raises(UsageError) as caught:
        parse_source(f"rocketmq://{user}:wrong{password}@{host}/secret").connector.check(spark, {})
    assert host in str(caught.value)
    assert password not in str(caught.value)


def test_checks_say_in_one_line_what_is_missing(
    rocketmq: Server, acl: Server, spark: SparkSession, topic: str
) -> None:
    found = parse_source(rocketmq.uri(f"{topic}*")).connector.check(spark, {})
    assert {"topics": {topic: 2}} == found.facts

    def refused(uri: str) -> str:
        with pytest.raises(UsageError) as caught:
            parse_source(uri).connector.check(spark, {})
        assert "\n" not in str(caught.value)
        return str(caught.value)

    missing = refused(rocketmq.uri("no-such-topic"))
    assert "no topic matches no-such-topic; there are: " in missing
    assert rocketmq.name_server in missing
    acl.create_topic("forbidden", 1)
    acl.create_user("nobody", "nobody-secret", {})
    forbidden = refused(f"rocketmq://nobody:nobody-secret@{acl.name_server}/forbidden")
    assert acl.name_server in forbidden
    assert "forbidden" in forbidden
    assert "access-key" in forbidden
