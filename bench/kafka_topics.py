"""Topics full of changes, and the two sides that convert them: `headgate run` and Flink SQL."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count as numbers
from pathlib import Path

import messages
from flink import Flink
from harness import CORES, FILES, FLINK_COLUMNS, FLINK_FORMATS, ROOT, timed
from kafka_broker import PROPERTIES, SERVER, Broker, Message, connector_settings
from pyspark.sql import SparkSession

from headgate.core.errors import UsageError
from headgate.spark import jars

__all__ = ["SERVER", "connector_settings"]

TARGET = "debezium"
TABLES_SOURCE, LATENCY_SOURCE = "canal-json", "canal-json:ticdc"
SINK = "schemas-enable=false&decimal-handling-mode=string&tombstones-on-delete=false"
"""As Flink writes debezium-json: no schemas, no tombstones."""
FLINK_CONNECTOR = ["org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"]
"""The newest; there is none named for Flink 2.3."""
PARTITIONS = 2
TABLES = 200
MANY = f"headgate run, {TABLES} tables in the topic"
LABELS = {"headgate": "headgate run", "many": MANY, "flink": "Flink SQL, INSERT INTO … SELECT"}
STATE = FILES / "kafka-state"
STOP = 150
"""Seconds that a job may take to stop."""

LOOK = "log.retention.check.interval.ms"
BROKER = PROPERTIES.replace(f"{LOOK}=10000", f"{LOOK}=500")
"""Emptied topics are to let go of their files at once: else the next run's are in memory that was
never used before, which a virtual machine gets slowly; that was up to a fifth of a run's time."""

# Topics


def change_stream(format: str, count: int) -> Iterator[Message]:
    """The messages of the file benchmarks; those of one order on one partition."""
    number = numbers()
    for chunk in messages.texts(format, count):
        for text in chunk:
            yield None, text.encode(), next(number) // 3 % PARTITIONS, None


def many_tables(count: int) -> Iterator[Message]:
    """The same messages, of many tables in turn; those of one order are of one table."""
    for number, (key, value, partition, headers) in enumerate(change_stream(TABLES_SOURCE, count)):
        table = b'"table":"orders_%d"' % (number // 3 % TABLES)
        yield key, (value or b"").replace(b'"table":"orders"', table), partition, headers


def filled(broker: Broker, format: str, count: int) -> str:
    topic = broker.create_topic(f"source-{format.replace(':', '-')}-{count}", PARTITIONS)
    broker.produce(topic, change_stream(format, count))
    return topic


_numbers = numbers(1)


def new_name(prefix: str) -> str:
    """A name that no topic has had."""
    return f"{prefix}-{next(_numbers)}"


def new_target(broker: Broker) -> str:
    """A new topic that says when each message was appended, in files that can go one by one."""
    name = new_name("target")
    settings = {
        "message_timestamp_type": "LogAppendTime",
        "segment_bytes": str(64 << 20),
        "file_delete_delay_ms": "0",
    }
    broker.create_topic(name, PARTITIONS, **settings)
    return name


@contextmanager
def target(broker: Broker) -> Iterator[str]:
    """A new topic; removed again, for its disk space."""
    name = new_target(broker)
    try:
        yield name
    finally:
        broker.delete_topic(name)


# The two sides


def headgate_uris(broker: Broker, format: str, source: str, to: str) -> tuple[str, str]:
    address = f"kafka://{broker.bootstrap}"
    protocol, _, dialect = format.partition(":")
    extension = "&enable-tidb-extension=true" if dialect == "ticdc" else ""
    from_uri = f"{address}/{source}?protocol={protocol}{extension}"
    return from_uri, f"{address}/{to}?protocol={TARGET}&{SINK}"


def headgate_settings() -> dict[str, str]:
    """State of its own for each run, or the second would find everything done."""
    shutil.rmtree(STATE, ignore_errors=True)
    return {
        "pipeline.name": "bench",
        "pipeline.checkpoint": str(STATE / "checkpoint"),
        "pipeline.dead_letters": str(STATE / "dead"),
    }


def headgate_rate(spark: SparkSession, broker: Broker, format: str, source: str, to: str) -> float:
    """The seconds of `headgate run --once` from one topic to the other, in this warm session."""
    from headgate.config.reader import job_of
    from headgate.pipeline.run import run

    from_uri, to_uri = headgate_uris(broker, format, source, to)
    job = job_of(from_uri, (to_uri,), headgate_settings())
    return timed(lambda: run(job, once=True, spark=spark))


@contextmanager
def headgate_running(broker: Broker, format: str, source: str, to: str) -> Iterator[None]:
    """`headgate run` as a user starts it, until it is told to stop."""
    from_uri, to_uri = headgate_uris(broker, format, source, to)
    settings = [f"--set={name}={value}" for name, value in headgate_settings().items()]
    command = [sys.executable, "-m", "headgate", "run", "--from", from_uri, "--to", to_uri]
    log = FILES / "headgate-run.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, *settings, f"--master=local[{CORES}]"], stdout=out, stderr=out, cwd=ROOT
        )
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"headgate run ended with {process.returncode}; see {log}")
    finally:
        process.terminate()
        try:
            process.wait(timeout=STOP)
        except subprocess.TimeoutExpired:
            process.kill()


def flink_topic(
    flink: Flink, name: str, broker: Broker, topic: str, format: str, columns: str, **more: str
) -> None:
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": broker.bootstrap,
        "format": FLINK_FORMATS[format.partition(":")[0]],
    }
    flink.define_with(name, columns, options | more)


READ_ALL = {"scan.startup.mode": "earliest-offset"}
READ_WHAT_IS_THERE = {**READ_ALL, "scan.bounded.mode": "latest-offset"}
FLINK_INSERT = "INSERT INTO kafka_sink SELECT * FROM kafka_source"


def flink_tables(
    flink: Flink, broker: Broker, format: str, source: str, to: str, reading: dict[str, str]
) -> None:
    flink_topic(flink, "kafka_source", broker, source, format, FLINK_COLUMNS, **reading)
    flink_topic(flink, "kafka_sink", broker, to, TARGET, FLINK_COLUMNS)


def flink_rate(flink: Flink, broker: Broker, format: str, source: str, to: str) -> float:
    """The seconds of the same conversion by Flink's warm process."""
    flink_tables(flink, broker, format, source, to, READ_WHAT_IS_THERE)
    return flink.execute(FLINK_INSERT)


@contextmanager
def flink_running(
    flink: Flink, broker: Broker, format: str, source: str, to: str
) -> Iterator[None]:
    flink_tables(flink, broker, format, source, to, READ_ALL)
    job = flink.begin(FLINK_INSERT)
    try:
        yield
    finally:
        flink.cancel(job)


def flink_jars() -> list[Path]:
    """Flink's Kafka connector; none where it cannot be had, which Flink then says itself."""
    try:
        return jars.resolve(FLINK_CONNECTOR, transitive=False)
    except UsageError as error:
        print(f"Flink's Kafka connector: {error}", flush=True)
        return []
