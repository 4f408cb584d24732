"""How fast Headgate converts topic to topic through a real Kafka broker, beside Flink SQL.

Called as a program, this is the paced producer of the latency measurement, a process of its own:

    python bench/kafka.py BOOTSTRAP TOPIC MESSAGES_PER_SECOND SECONDS
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count as numbers
from pathlib import Path
from statistics import median, quantiles

import messages
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from flink import Flink
from harness import (
    COLUMNS,
    CORES,
    FILES,
    FLINK_COLUMNS,
    FLINK_FORMATS,
    ROOT,
    SAMPLE,
    Bar,
    Figures,
    Row,
    Works,
    collected,
    difference,
    first_line,
    markdown,
    take_turns,
    timed,
    times,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate
from headgate.core.errors import UsageError
from headgate.spark import jars

# Behind bench, because both have a module `messages`.
sys.path.append(str(ROOT / "tests" / "support"))
from kafka_broker import PROPERTIES, SERVER, Broker, Message, connector_settings

__all__ = ["SERVER", "connector_settings"]

SOURCE, TARGET = "canal-json", "debezium"
NAME = f"Kafka: {SOURCE} → {TARGET}"
SINK = "schemas-enable=false&decimal-handling-mode=string&tombstones-on-delete=false"
"""As Flink writes debezium-json: no schemas, no tombstones."""
FLINK_CONNECTOR = ["org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"]
"""The newest; there is none named for Flink 2.3."""
PARTITIONS = 2
BAR = 1.3
TABLES, TABLES_BAR = 200, 0.7
"""A topic with so many tables is converted no more than 30 % slower than one with one."""
MANY = f"headgate run, {TABLES} tables in the topic"
LABELS = {"headgate": "headgate run", "many": MANY, "flink": "Flink SQL, INSERT INTO … SELECT"}
SEEN_AS = {"-U": "-D", "+U": "+I"}
STATE = FILES / "kafka-state"
COLD = 3
"""Unmeasured rounds before the one that everything has: no JVM here is warm, the broker's included,
before some millions of messages have gone through, and a job runs for months."""
MORE = 2
"""Rounds more than others have: with three processes on two cores the times scatter."""

LOOK = "log.retention.check.interval.ms"
BROKER = PROPERTIES.replace(f"{LOOK}=10000", f"{LOOK}=500")
"""Emptied topics are to let go of their files at once: else the next run's are in memory that was
never used before, which a virtual machine gets slowly; that was up to a fifth of a run's time."""

LATENCY_SECONDS, WARM_SECONDS = 80, 50
"""How long messages are sent at the pace, and how many seconds of that do not count: Headgate is a
new process here, and a JVM is slow at first."""
TICK = 0.01
READY, DRAIN = 120, 240
NOTE = re.compile(rb'"note":"(\d+)@(\d+)"')
"""Which message, and when it was sent in microseconds: the row carries it through."""


@dataclass
class Latency:
    """How long messages took at one pace, from being sent to being appended to the target."""

    pace: int
    sent: int
    seconds: float
    """What the producer took to send them: it may not hold the pace."""
    late: dict[int, float]
    """Milliseconds by message, those of the warm-up left out."""
    missing: int

    @property
    def achieved(self) -> float:
        return self.sent / self.seconds

    def cells(self) -> list[str]:
        at = quantiles(self.late.values(), n=100, method="inclusive")
        return [f"{self.achieved:,.0f}", f"{at[49]:,.0f} ms", f"{at[98]:,.0f} ms"]


@dataclass
class KafkaFigures(Figures):
    """What was seen of the conversion, and how long its messages took."""

    latency: dict[str, Latency] = field(default_factory=dict)

    def sustained(self, work: str) -> float | None:
        """Messages a second, without what a job costs before it reads."""
        if not (self.seconds.get(work) and self.startup.get(work)):
            return None
        net = median(self.seconds[work]) - median(self.startup[work])
        return self.messages / net if net > 0 else None


# Topics


def change_stream(count: int) -> Iterator[Message]:
    """The messages of the file benchmarks; those of one order on one partition."""
    number = numbers()
    for chunk in messages.texts(SOURCE, count):
        for text in chunk:
            yield None, text.encode(), next(number) // 3 % PARTITIONS, None


def many_tables(count: int) -> Iterator[Message]:
    """The same messages, of many tables in turn; those of one order are of one table."""
    for number, (key, value, partition, headers) in enumerate(change_stream(count)):
        table = b'"table":"orders_%d"' % (number // 3 % TABLES)
        yield key, (value or b"").replace(b'"table":"orders"', table), partition, headers


def filled(broker: Broker, count: int) -> str:
    topic = broker.create_topic(f"source-{count}", PARTITIONS)
    broker.produce(topic, change_stream(count))
    return topic


_targets = numbers(1)


def new_target(broker: Broker) -> str:
    """A new topic that says when each message was appended, in files that can go one by one."""
    name = f"target-{next(_targets)}"
    told = {
        "message_timestamp_type": "LogAppendTime",
        "segment_bytes": str(64 << 20),
        "file_delete_delay_ms": "0",
    }
    broker.create_topic(name, PARTITIONS, **told)
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


def headgate_uris(broker: Broker, source: str, to: str) -> tuple[str, str]:
    address = f"kafka://{broker.bootstrap}"
    return f"{address}/{source}?protocol={SOURCE}", f"{address}/{to}?protocol={TARGET}&{SINK}"


def headgate_settings() -> dict[str, str]:
    """State of its own for each run, or the second would find everything done."""
    shutil.rmtree(STATE, ignore_errors=True)
    return {
        "pipeline.name": "bench",
        "pipeline.checkpoint": str(STATE / "checkpoint"),
        "pipeline.dead_letters": str(STATE / "dead"),
    }


def headgate_rate(spark: SparkSession, broker: Broker, source: str, to: str) -> float:
    """The seconds of `headgate run --once` from one topic to the other, in this warm session."""
    from headgate.config.reader import job_of
    from headgate.pipeline.run import run

    from_uri, to_uri = headgate_uris(broker, source, to)
    job = job_of(from_uri, (to_uri,), headgate_settings())
    return timed(lambda: run(job, once=True, spark=spark))


@contextmanager
def headgate_running(broker: Broker, source: str, to: str) -> Iterator[None]:
    """`headgate run` as a user starts it, until it is told to stop."""
    from_uri, to_uri = headgate_uris(broker, source, to)
    told = [f"--set={name}={value}" for name, value in headgate_settings().items()]
    command = [sys.executable, "-m", "headgate", "run", "--from", from_uri, "--to", to_uri]
    log = FILES / "headgate-run.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, *told, f"--master=local[{CORES}]"], stdout=out, stderr=out, cwd=ROOT
        )
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"headgate run ended with {process.returncode}; see {log}")
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()


def flink_topic(
    flink: Flink, name: str, broker: Broker, topic: str, format: str, columns: str, **more: str
) -> None:
    told = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": broker.bootstrap,
        "format": FLINK_FORMATS[format],
    }
    flink.define_with(name, columns, told | more)


READ_ALL = {"scan.startup.mode": "earliest-offset"}
READ_WHAT_IS_THERE = {**READ_ALL, "scan.bounded.mode": "latest-offset"}
FLINK_INSERT = "INSERT INTO kafka_sink SELECT * FROM kafka_source"


def flink_tables(
    flink: Flink, broker: Broker, source: str, to: str, reading: dict[str, str]
) -> None:
    flink_topic(flink, "kafka_source", broker, source, SOURCE, FLINK_COLUMNS, **reading)
    flink_topic(flink, "kafka_sink", broker, to, TARGET, FLINK_COLUMNS)


def flink_rate(flink: Flink, broker: Broker, source: str, to: str) -> float:
    """The seconds of the same conversion by Flink's warm process."""
    flink_tables(flink, broker, source, to, READ_WHAT_IS_THERE)
    return flink.execute(FLINK_INSERT)


@contextmanager
def flink_running(flink: Flink, broker: Broker, source: str, to: str) -> Iterator[None]:
    flink_tables(flink, broker, source, to, READ_ALL)
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


# Whether it is right


def read_by_flink(flink: Flink, broker: Broker, topic: str) -> list[Row]:
    """What Headgate wrote, as Flink reads it: a DATETIME of Debezium is milliseconds."""
    columns = FLINK_COLUMNS.replace("created_at TIMESTAMP(3)", "created_at BIGINT")
    flink_topic(flink, "converted", broker, topic, TARGET, columns, **READ_WHAT_IS_THERE)
    created_at = "CAST(TO_TIMESTAMP_LTZ(created_at, 3) AS TIMESTAMP(3))"
    return flink.rows(
        f"SELECT id, customer_id, status, amount, note, {created_at}, weight FROM converted"
    )


def read_by_headgate(spark: SparkSession, broker: Broker, topic: str, **options: str) -> list[Row]:
    read = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    values = read.option("subscribe", topic).load().select("value")
    events = headgate.decode(values, format=TARGET, **options)
    named = events.withColumn("table", F.lit("orders"))  # which Flink does not write
    return collected(headgate.rows(named, "orders", schema=COLUMNS))


def check(
    spark: SparkSession, flink: Flink | None, broker: Broker, figures: Figures, sample: str
) -> None:
    """What each side wrote of the sample, read by the other, is what the messages meant."""
    expected = list(messages.expected_rows(SOURCE, SAMPLE))
    seen = [(SEEN_AS.get(kind, kind), *values) for kind, *values in expected]
    try:
        with target(broker) as to:
            headgate_rate(spark, broker, sample, to)
            if flink:
                rows = read_by_flink(flink, broker, to)
            else:  # Headgate writes a DATETIME as Debezium does, without saying so
                rows = read_by_headgate(spark, broker, to, columns="created_at DATETIME")
            if wrong := difference(rows, expected):
                figures.remark(f"what Headgate wrote differs from the messages: {wrong}")
    except Exception as error:
        figures.remark(f"Headgate's conversion of the sample failed: {first_line(error)}")
    if flink:
        try:
            with target(broker) as to:
                flink_rate(flink, broker, sample, to)
                if wrong := difference(read_by_headgate(spark, broker, to), seen):
                    figures.remark(f"what Flink wrote differs from the messages: {wrong}")
        except Exception as error:
            figures.remark(f"Flink's conversion of the sample failed: {first_line(error)}")


# How long it takes


def paced(bootstrap: str, topic: str, pace: int, seconds: int) -> None:
    """Send at an even pace; each row's note says which message it is and when it was sent."""
    texts = [text for chunk in messages.texts(SOURCE, 30_000) for text in chunk]
    parts = [re.split(r'(?<="note":).*?(?=,"created_at")', text, maxsplit=1) for text in texts]
    ready = [(head.encode(), tail.encode()) for head, tail in parts]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    start, sent, total = time.perf_counter(), 0, pace * seconds
    while sent < total:
        due = min(total, int((time.perf_counter() - start) * pace) + 1)
        for number in range(sent, due):
            head, tail = ready[number % len(ready)]
            note = b'"%d@%d"' % (number, time.time_ns() // 1000)
            send(producer, topic, head + note + tail, number // 3 % PARTITIONS)
        sent = due
        producer.poll(0)
        time.sleep(TICK)
    producer.flush(30)
    print(sent, time.perf_counter() - start)


def send(producer: Producer, topic: str, value: bytes, partition: int) -> None:
    while True:
        try:
            return producer.produce(topic, value, partition=partition)
        except BufferError:
            producer.poll(0.01)


def appended(broker: Broker, topic: str, last: int, wait: float) -> dict[int, tuple[int, int]]:
    """Of each message, when it was sent and when the last of what came of it was appended.

    Microseconds. Waits until message `last` is there, but no longer than that.
    """
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "latency", "log_level": 3}
    )
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    found: dict[int, tuple[int, int]] = {}
    until, idle = time.monotonic() + wait, 0
    try:
        while time.monotonic() < until and (last not in found or idle < 2):
            records = consumer.consume(10_000, timeout=0.5)
            idle = 0 if records else idle + 1
            for record in records:
                if record.error() is None and (note := NOTE.search(record.value() or b"")):
                    number, sent = int(note[1]), int(note[2])
                    when = record.timestamp()[1] * 1000
                    found[number] = (sent, max(when, found.get(number, (0, 0))[1]))
    finally:
        consumer.close()
    return found


Running = Callable[[Broker, str, str], AbstractContextManager[None]]


def latency(broker: Broker, running: Running, pace: int) -> Latency:
    """Run a side beside a producer of that pace, and see when its output arrives."""
    source = broker.create_topic(f"paced-{next(_targets)}", PARTITIONS)
    with target(broker) as to, running(broker, source, to):
        first = next(change_stream(1))[1]
        primer = re.sub(rb'(?<="note":).*?(?=,"created_at")', b'"0@0"', first, count=1)
        broker.produce(source, [(None, primer, 0, None)])
        if not appended(broker, to, 0, READY):
            raise RuntimeError(f"nothing arrived within {READY} s")
        done = subprocess.run(
            [sys.executable, __file__, broker.bootstrap, source, str(pace), str(LATENCY_SECONDS)],
            capture_output=True,
            text=True,
            check=True,
        )
        sent, seconds = done.stdout.split()
        found = appended(broker, to, int(sent) - 1, DRAIN)
    broker.delete_topic(source)
    first_counted = int(int(sent) * WARM_SECONDS / LATENCY_SECONDS)
    late = {n: (then - at) / 1000 for n, (at, then) in found.items() if n >= first_counted}
    missing = int(sent) - sum(1 for at, _ in found.values() if at)
    return Latency(pace, int(sent), float(seconds), late, missing)


def measure_latency(figures: KafkaFigures, broker: Broker, sides: dict[str, Running]) -> None:
    for side, running in sides.items():
        rate = figures.sustained(side) or figures.speed(side)
        if not rate:
            continue
        try:
            seen = latency(broker, running, int(rate / 2))
        except Exception as error:
            figures.remark(f"latency of {LABELS[side]} not measured: {first_line(error)}")
            continue
        if seen.missing:
            figures.remark(
                f"{LABELS[side]}: {seen.missing:,} of {seen.sent:,} messages had not arrived "
                f"{DRAIN} s after the last was sent; the latency is of the others"
            )
        if len(seen.late) < 2:
            continue
        if seen.achieved < 0.95 * seen.pace:
            figures.remark(
                f"{LABELS[side]}: the producer sent {seen.achieved:,.0f} messages/s of the "
                f"{seen.pace:,} wanted"
            )
        figures.latency[side] = seen
        print(f"  latency  {LABELS[side]:31} {' '.join(seen.cells())}", flush=True)


# All of it


def measure(spark: SparkSession, flink: Flink | None, count: int, rounds: int) -> KafkaFigures:
    size = sum(len(value or b"") for _, value, _, _ in change_stream(count))
    figures = KafkaFigures(NAME, count, size)
    print(f"\n{NAME}: {count:,} messages of {size / count:.0f} bytes", flush=True)
    try:
        with Broker(heap="1g", properties=BROKER) as broker:
            measure_with(spark, flink, broker, figures, rounds + MORE)
    except Exception as error:  # what was measured before must not be lost
        figures.remark(f"not measured to the end: {first_line(error)}")
    shutil.rmtree(STATE, ignore_errors=True)
    return figures


def measure_with(
    spark: SparkSession, flink: Flink | None, broker: Broker, figures: KafkaFigures, rounds: int
) -> None:
    source, sample = filled(broker, figures.messages), filled(broker, SAMPLE)
    check(spark, flink, broker, figures, sample)

    def into(rate: Callable[..., float], by: object, topic: str) -> Callable[[], float]:
        to = new_target(broker)

        def run() -> float:
            broker.empty_topic(to, PARTITIONS)
            return rate(by, broker, topic, to)

        return run

    mixed = broker.create_topic("many-tables", PARTITIONS)
    broker.produce(mixed, many_tables(figures.messages))
    works: Works = {
        "headgate": into(headgate_rate, spark, source),
        "many": into(headgate_rate, spark, mixed),
    }
    startups: Works = {"headgate": into(headgate_rate, spark, sample)}
    running: dict[str, Running] = {"headgate": headgate_running}
    if flink:
        works["flink"] = into(flink_rate, flink, source)
        startups["flink"] = into(flink_rate, flink, sample)
        running["flink"] = lambda *told: flink_running(flink, *told)
    for _ in range(COLD):
        take_turns(figures, works, {}, 0, LABELS)
    take_turns(figures, works, startups, rounds, LABELS)
    measure_latency(figures, broker, running)


def bars(figures: KafkaFigures) -> list[Bar]:
    one, many = figures.speed("headgate"), figures.speed("many")
    return [
        Bar("headgate", BAR, figures.net_ratio("headgate"), "flink"),
        Bar("many", TABLES_BAR, many / one if one and many else None, "headgate"),
    ]


HEAD = ["conversion", "by", "messages/s", "slowest to fastest", "MB/s", "start-up", "sustained"]
HEAD += ["of Flink", "bar"]
LATENCY_HEAD = ["conversion", "by", "sent/s", "p50", "p99"]


def table(figures: KafkaFigures) -> list[list[str]]:
    lines = []
    for side, label in LABELS.items():
        sustained = figures.sustained(side)
        startup = figures.startup.get(side)
        of_flink = figures.net_ratio(side) if side == "headgate" else None
        lines.append(
            [
                figures.name,
                label,
                *figures.cells(side),
                f"{median(startup):.2f} s" if startup else "",
                f"{sustained:,.0f}" if sustained else "",
                times(of_flink),
                {"headgate": str(bars(figures)[0]), "many": str(bars(figures)[1])}.get(side, ""),
            ]
        )
    return lines


def latency_table(figures: KafkaFigures) -> list[list[str]]:
    return [[figures.name, LABELS[side], *seen.cells()] for side, seen in figures.latency.items()]


def connector_fact(spark: SparkSession) -> str:
    """The jars that Spark was given, by name: they need not be of the version of Spark."""
    jars = spark.sparkContext.getConf().get("spark.jars", "") or ""
    return ", ".join(Path(jar).stem for jar in jars.split(",") if jar) or "none"


def section(figures: KafkaFigures, rounds: int) -> list[str]:
    parts = [
        "## Kafka to Kafka",
        markdown(HEAD, table(figures)),
    ]
    if figures.remarks:
        parts.append("\n".join(f"- {remark}" for remark in figures.remarks))
    else:
        parts.append(
            f"- What each side wrote of a sample of {SAMPLE} messages was read back, by the other "
            "side where there was one, and gave exactly the rows that the generator meant."
        )
    parts += [
        f"One broker on the same machine, topics of {PARTITIONS} partitions; {figures.messages:,} "
        f"messages converted {COLD + 1} times unmeasured and then {rounds + MORE} times, the two "
        "sides in turn, each work into a topic of its own; the median counts. Headgate is a whole "
        "job (`run` with `once`) in a warm session, with its checkpoints, its ledger against "
        "replays and its dead letters; Flink is `INSERT INTO … SELECT` with its Kafka connector in "
        "a warm process, parallelism 2, without checkpoints, which is in its favour. Both are warm "
        "in the way that a job is which has run for a minute: code compiled, tables known. "
        "**Start-up** is the time of the same job over "
        f"{SAMPLE} messages; **sustained** is the speed without it, and what the bar is about. "
        f"The bar of {TABLES} tables is {TABLES_BAR} of the speed with one. What each side writes "
        "is as above: Flink four short messages for three.",
    ]
    if figures.latency:
        parts += [
            "### Latency",
            markdown(LATENCY_HEAD, latency_table(figures)),
            "Each side at half of its own sustained speed, which a producer in a process of its "
            f"own sends evenly for {LATENCY_SECONDS} s; the first {WARM_SECONDS} s do not count. "
            "Latency is from sending a message to the broker's append of the last of what came of "
            "it, in milliseconds of one clock. Headgate runs as `headgate run`. Producer, broker "
            "and the side measured share the machine's cores.",
        ]
    return parts


if __name__ == "__main__":
    bootstrap, topic, pace, seconds = sys.argv[1:]
    paced(bootstrap, topic, int(pace), int(seconds))
