"""How fast Headgate converts topic to topic through a real Kafka broker, beside Flink SQL.

Called as a program, this is the paced producer of the latency measurement, a process of its own:

    python bench/kafka.py BOOTSTRAP TOPIC FORMAT MESSAGES_PER_SECOND SECONDS
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

TARGET = "debezium"
BARS = {"canal-json": 1.15, "canal-json:ticdc": 0.7, "debezium": 0.7, "maxwell": 0.7}
"""The sources, and what share of Flink's speed each must reach. The changes of all but Canal have a
place in the source's log: they are deduplicated, and none is spliced."""
TABLES_SOURCE, LATENCY_SOURCE = "canal-json", "canal-json:ticdc"
SINK = "schemas-enable=false&decimal-handling-mode=string&tombstones-on-delete=false"
"""As Flink writes debezium-json: no schemas, no tombstones."""
FLINK_CONNECTOR = ["org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"]
"""The newest; there is none named for Flink 2.3."""
PARTITIONS = 2
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

SLOW_PACE = 1_000
LATENCY_BARS = {"slow": (500, 1_500), "half": (2_000, 4_000)}
"""Milliseconds, p50 and p99: at SLOW_PACE, and at half of the sustained speed."""
FIRST_BAR = 15.0
"""Seconds from the command to the first message, where the class archive is there."""
LATENCY_SECONDS, WARM_SECONDS = 80, 50
"""How long messages are sent at the pace, and how many seconds of that do not count: Headgate is a
new process here, and a JVM is slow at first."""
TICK = 0.01
READY, DRAIN, STOP = 120, 240, 150
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
    first: float
    """Seconds from the command to the first message that came out."""

    @property
    def achieved(self) -> float:
        return self.sent / self.seconds

    def at(self, percent: int) -> float:
        return quantiles(self.late.values(), n=100, method="inclusive")[percent - 1]

    def cells(self) -> list[str]:
        late = [f"{self.at(percent):,.0f} ms" for percent in (50, 99)]
        return [f"{self.achieved:,.0f}", *late, f"{self.first:.1f} s"]


@dataclass
class LatencyBar:
    """What a time may be at most; None when it was not measured."""

    work: str
    name: str
    wanted: float
    reached: float | None
    unit: str

    @property
    def holds(self) -> bool:
        return self.reached is not None and self.reached <= self.wanted

    def __str__(self) -> str:
        name = f"{self.name} ≤ {self.wanted:,.0f} {self.unit}"
        if self.reached is None:
            return f"not measured: {name}"
        return f"{'holds' if self.holds else 'MISSED'}: {name}"


@dataclass
class KafkaFigures(Figures):
    """What was seen of the conversion, and how long its messages took."""

    source: str = ""
    latency: dict[tuple[str, str], Latency] = field(default_factory=dict)
    """By side and pace."""

    def sustained(self, work: str) -> float | None:
        """Messages a second, without what a job costs before it reads."""
        if not (self.seconds.get(work) and self.startup.get(work)):
            return None
        net = median(self.seconds[work]) - median(self.startup[work])
        return self.messages / net if net > 0 else None


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
            process.wait(timeout=STOP)
        except subprocess.TimeoutExpired:
            process.kill()


def flink_topic(
    flink: Flink, name: str, broker: Broker, topic: str, format: str, columns: str, **more: str
) -> None:
    told = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": broker.bootstrap,
        "format": FLINK_FORMATS[format.partition(":")[0]],
    }
    flink.define_with(name, columns, told | more)


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
    spark: SparkSession, flink: Flink | None, broker: Broker, figures: KafkaFigures, sample: str
) -> None:
    """What each side wrote of the sample, read by the other, is what the messages meant."""
    expected = list(messages.expected_rows(figures.source, SAMPLE))
    seen = [(SEEN_AS.get(kind, kind), *values) for kind, *values in expected]
    try:
        with target(broker) as to:
            headgate_rate(spark, broker, figures.source, sample, to)
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
                flink_rate(flink, broker, figures.source, sample, to)
                if wrong := difference(read_by_headgate(spark, broker, to), seen):
                    figures.remark(f"what Flink wrote differs from the messages: {wrong}")
        except Exception as error:
            figures.remark(f"Flink's conversion of the sample failed: {first_line(error)}")


# How long it takes


VARYING = re.compile(
    rb'(?<="note":)(?:"(?:[^"\\]|\\.)*"|null)(?=,"created_at":"\d)|(?<="commitTs":)\d+'
)
"""The notes in a message's rows, not in its types, and behind them TiCDC's number of the commit."""


def stamped(pieces: list[bytes], number: int, sent: int, commit: int | None) -> bytes:
    """A message that carries its number and when it was sent, in microseconds."""
    note = b'"%d@%d"' % (number, sent)
    if commit is None:
        return note.join(pieces)
    return b"%b%d%b" % (note.join(pieces[:-1]), commit, pieces[-1])


def paced(bootstrap: str, topic: str, format: str, pace: int, seconds: int) -> None:
    """Send at an even pace; each row's note says which message it is and when it was sent."""
    texts = [text for chunk in messages.texts(format, 30_000) for text in chunk]
    ready = [VARYING.split(text.encode()) for text in texts]
    first_commit = time.time_ns() // 10**6 << 18
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    start, sent, total = time.perf_counter(), 0, pace * seconds
    while sent < total:
        due = min(total, int((time.perf_counter() - start) * pace) + 1)
        now = time.time_ns() // 1000
        for number in range(sent, due):
            commit = first_commit + number if format == LATENCY_SOURCE else None
            value = stamped(ready[number % len(ready)], number, now, commit)
            send(producer, topic, value, number // 3 % PARTITIONS)
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


Running = Callable[[Broker, str, str, str], AbstractContextManager[None]]


def latency(broker: Broker, running: Running, format: str, pace: int) -> Latency:
    """Run a side beside a producer of that pace, and see when its output arrives."""
    source = broker.create_topic(f"paced-{next(_targets)}", PARTITIONS)
    pieces = VARYING.split(next(change_stream(format, 1))[1] or b"")
    primer = stamped(pieces, 0, 0, 1 if format == LATENCY_SOURCE else None)
    broker.produce(source, [(None, primer, 0, None)])
    began = time.time()
    with target(broker) as to, running(broker, format, source, to):
        if not (primed := appended(broker, to, 0, READY)):
            raise RuntimeError(f"nothing arrived within {READY} s")
        told = [broker.bootstrap, source, format, str(pace), str(LATENCY_SECONDS)]
        done = subprocess.run(
            [sys.executable, __file__, *told], capture_output=True, text=True, check=True
        )
        sent, seconds = done.stdout.split()
        found = appended(broker, to, int(sent) - 1, DRAIN)
    broker.delete_topic(source)
    first_counted = int(int(sent) * WARM_SECONDS / LATENCY_SECONDS)
    late = {n: (then - at) / 1000 for n, (at, then) in found.items() if n >= first_counted}
    missing = int(sent) - sum(1 for at, _ in found.values() if at)
    first = primed[0][1] / 1e6 - began
    return Latency(pace, int(sent), float(seconds), late, missing, first)


def measure_latency(figures: KafkaFigures, broker: Broker, sides: dict[str, Running]) -> None:
    for side, running in sides.items():
        rate = figures.sustained(side) or figures.speed(side)
        paces = {"slow": SLOW_PACE, **({"half": int(rate / 2)} if rate else {})}
        for name, pace in paces.items():
            try:
                seen = latency(broker, running, figures.source, pace)
            except Exception as error:
                figures.remark(f"latency of {LABELS[side]} not measured: {first_line(error)}")
                continue
            remark_pace(figures, side, seen)
            if len(seen.late) < 2:
                continue
            figures.latency[side, name] = seen
            print(f"  latency  {LABELS[side]:31} {' '.join(seen.cells())}", flush=True)


def remark_pace(figures: KafkaFigures, side: str, seen: Latency) -> None:
    """Say where messages are missing, or were not sent as fast as they should have been."""
    if seen.missing:
        figures.remark(
            f"{LABELS[side]}: {seen.missing:,} of {seen.sent:,} messages had not arrived "
            f"{DRAIN} s after the last was sent; the latency is of the others"
        )
    if seen.achieved < 0.95 * seen.pace:
        figures.remark(
            f"{LABELS[side]}: the producer sent {seen.achieved:,.0f} messages/s of the "
            f"{seen.pace:,} wanted"
        )


# All of it


def measure(
    spark: SparkSession, flink: Flink | None, count: int, rounds: int
) -> list[KafkaFigures]:
    """Every source in turn, through one broker."""
    measured: list[KafkaFigures] = []
    for source in BARS:
        size = sum(len(value or b"") for _, value, _, _ in change_stream(source, count))
        figures = KafkaFigures(f"Kafka: {source} → {TARGET}", count, size, source=source)
        measured.append(figures)
        print(f"\n{figures.name}: {count:,} messages of {size / count:.0f} bytes", flush=True)
        try:
            with Broker(heap="1g", properties=BROKER) as broker:
                measure_with(spark, flink, broker, figures, rounds + MORE)
        except Exception as error:  # what was measured before must not be lost
            figures.remark(f"not measured to the end: {first_line(error)}")
    shutil.rmtree(STATE, ignore_errors=True)
    return measured


def measure_with(
    spark: SparkSession, flink: Flink | None, broker: Broker, figures: KafkaFigures, rounds: int
) -> None:
    format = figures.source
    source, sample = filled(broker, format, figures.messages), filled(broker, format, SAMPLE)
    check(spark, flink, broker, figures, sample)

    def into(rate: Callable[..., float], by: object, topic: str) -> Callable[[], float]:
        to = new_target(broker)

        def run() -> float:
            broker.empty_topic(to, PARTITIONS)
            return rate(by, broker, format, topic, to)

        return run

    works: Works = {"headgate": into(headgate_rate, spark, source)}
    if format == TABLES_SOURCE:
        mixed = broker.create_topic("many-tables", PARTITIONS)
        broker.produce(mixed, many_tables(figures.messages))
        works["many"] = into(headgate_rate, spark, mixed)
    startups: Works = {"headgate": into(headgate_rate, spark, sample)}
    running: dict[str, Running] = {"headgate": headgate_running}
    if flink:
        works["flink"] = into(flink_rate, flink, source)
        startups["flink"] = into(flink_rate, flink, sample)
        running["flink"] = lambda *told: flink_running(flink, *told)
    for _ in range(COLD):
        take_turns(figures, works, {}, 0, LABELS)
    take_turns(figures, works, startups, rounds, LABELS)
    if format == LATENCY_SOURCE:
        measure_latency(figures, broker, running)


def bars(figures: KafkaFigures) -> list[Bar | LatencyBar]:
    ratio = figures.net_ratio("headgate")
    found: list[Bar | LatencyBar] = [Bar("headgate", BARS[figures.source], ratio, "flink")]
    if figures.source == TABLES_SOURCE:
        one, many = figures.speed("headgate"), figures.speed("many")
        found.append(Bar("many", TABLES_BAR, many / one if one and many else None, "headgate"))
    if figures.source == LATENCY_SOURCE:
        for pace in LATENCY_BARS:
            found += latency_bars(pace, figures.latency.get(("headgate", pace)))
    return found


def latency_bars(pace: str, seen: Latency | None) -> list[LatencyBar]:
    """What Headgate must hold at a pace; the first message is that of the second start."""
    at = "1,000/s" if pace == "slow" else "half speed"
    p50, p99 = LATENCY_BARS[pace]
    found = [
        LatencyBar(pace, f"p50 at {at}", p50, seen and seen.at(50), "ms"),
        LatencyBar(pace, f"p99 at {at}", p99, seen and seen.at(99), "ms"),
    ]
    if pace == "half":
        found.append(LatencyBar(pace, "first message", FIRST_BAR, seen and seen.first, "s"))
    return found


HEAD = ["conversion", "by", "messages/s", "slowest to fastest", "MB/s", "start-up", "sustained"]
HEAD += ["of Flink", "bar"]
LATENCY_HEAD = ["conversion", "by", "sent/s", "p50", "p99", "first message", "bar"]


def table(figures: KafkaFigures) -> list[list[str]]:
    judged = {bar.work: str(bar) for bar in bars(figures)}
    lines = []
    for side, label in LABELS.items():
        if side == "many" and figures.source != TABLES_SOURCE:
            continue
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
                judged.get(side, ""),
            ]
        )
    return lines


def latency_table(figures: KafkaFigures) -> list[list[str]]:
    lines = []
    for (side, pace), seen in figures.latency.items():
        judged = latency_bars(pace, seen) if side == "headgate" else []
        lines.append([figures.name, LABELS[side], *seen.cells(), "; ".join(map(str, judged))])
    return lines


def connector_fact(spark: SparkSession) -> str:
    """The jars that Spark was given, by name: they need not be of the version of Spark."""
    jars = spark.sparkContext.getConf().get("spark.jars", "") or ""
    return ", ".join(Path(jar).stem for jar in jars.split(",") if jar) or "none"


def section(topics: list[KafkaFigures], rounds: int) -> list[str]:
    lines = [line for figures in topics for line in table(figures)]
    parts = ["## Kafka to Kafka", markdown(HEAD, lines)]
    remarks = [f"- {f.name}: {remark}" for f in topics for remark in f.remarks]
    if remarks:
        parts.append("\n".join(remarks))
    else:
        parts.append(
            f"- What each side wrote of a sample of {SAMPLE} messages was read back, by the other "
            "side where there was one, and gave exactly the rows that the generator meant."
        )
    parts += [
        f"One broker on the same machine, topics of {PARTITIONS} partitions; "
        f"{topics[0].messages:,} messages converted {COLD + 1} times unmeasured and then "
        f"{rounds + MORE} times, the two sides in turn, each work into a topic of its own; the "
        "median counts. Headgate is a whole job (`run` with `once`) in a warm session, with its "
        "checkpoints, its deduplication and its dead letters; Flink is `INSERT INTO … SELECT` with "
        "its Kafka connector in a warm process, parallelism 2, without checkpoints, which is in "
        "its favour. Both are warm in the way that a job is which has run for a minute: code "
        f"compiled, tables known. **Start-up** is the time of the same job over {SAMPLE} messages; "
        "**sustained** is the speed without it, and what the bar is about. Canal's changes have no "
        "place in a log, and are spliced; those of the other sources are deduplicated, which Flink "
        f"does not do. The bar of {TABLES} tables is {TABLES_BAR} of the speed with one. What each "
        "side writes is as above: Flink four short messages for three.",
    ]
    if late := [line for figures in topics for line in latency_table(figures)]:
        parts += [
            "### Latency",
            markdown(LATENCY_HEAD, late),
            f"Each side at {SLOW_PACE:,} messages/s and at half of its own sustained speed, which "
            f"a producer in a process of its own sends evenly for {LATENCY_SECONDS} s; the first "
            f"{WARM_SECONDS} s do not count. Latency is from sending a message to the broker's "
            "append of the last of what came of it, in milliseconds of one clock. Headgate runs as "
            "`headgate run`; its **first message** is timed from the command, and judged at the "
            "second start, when the class archive is there. Producer, broker and the side measured "
            "share the machine's cores.",
        ]
    return parts


if __name__ == "__main__":
    bootstrap, topic, format, pace, seconds = sys.argv[1:]
    paced(bootstrap, topic, format, int(pace), int(seconds))
