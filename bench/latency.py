"""How long a message takes from topic to topic, by `headgate run` and by Flink SQL.

A producer in a process of its own (PacedProducer.java) sends at an even pace.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import messages
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from flink import Flink
from harness import FILES, SAMPLE, first_line, markdown
from kafka import COLD, KafkaFigures, conversions, in_turns
from kafka_topics import (
    BROKER,
    LABELS,
    PARTITIONS,
    TARGET,
    Broker,
    change_stream,
    filled,
    flink_running,
    headgate_running,
    new_name,
    target,
)
from kafka_topics import LATENCY_SOURCE as SOURCE
from pyspark.sql import SparkSession

from headgate.spark import jars

SLOW_PACE = 1_000
ROUNDS = 2
"""Measured rounds of the sustained speed."""
LATENCY_BARS = {"slow": (500, 1_500), "half": (2_000, 4_000)}
"""Milliseconds, p50 and p99: at SLOW_PACE, and at half of the sustained speed."""
FIRST_BAR = 15.0
"""Seconds from the command to the first message, where the class archive is there."""
LATENCY_SECONDS, WARM_SECONDS = 80, 50
"""How long messages are sent at the pace, and how many seconds of that do not count: Headgate is a
new process here, and a JVM is slow at first."""
PRODUCER = Path(__file__).with_name("PacedProducer.java")
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
class LatencyFigures(KafkaFigures):
    """How fast each side is, and how long its messages took."""

    latency: dict[tuple[str, str], Latency] = field(default_factory=dict)
    """By side and pace."""


VARYING = re.compile(
    rb'(?<="note":)(?:"(?:[^"\\]|\\.)*"|null)(?=,"created_at":"\d)|(?<="commitTs":)\d+'
)
"""The notes in a message's rows, not in its types, and behind them TiCDC's number of the commit."""


def marked(text: bytes) -> bytes:
    """A message with a byte 1 for its number and time, and a byte 2 for its commit."""
    return VARYING.sub(lambda match: b"\2" if match[0].isdigit() else b'"\1"', text)


def stamped(text: bytes, number: int, sent: int, commit: int) -> bytes:
    """A message that carries its number, when it was sent in microseconds, and its commit."""
    return text.replace(b"\1", b"%d@%d" % (number, sent)).replace(b"\2", b"%d" % commit)


def paced(broker: Broker, topic: str, format: str, pace: int) -> tuple[int, float]:
    """Send at an even pace; each row's note says which message it is and when it was sent.

    How many were sent, and in how many seconds. The producer is Java's: one in Python would take
    as much of a processor as what is measured.
    """
    texts = [text.encode() for chunk in messages.texts(format, 30_000) for text in chunk]
    file = FILES / "paced.jsonl"
    file.write_bytes(b"\n".join(map(marked, texts)))
    clients = [*jars.checked(jars.CONNECTORS["kafka"]), *jars.SPARK_JARS.glob("slf4j-api-*.jar")]
    command = [str(jars.java()), "-Xmx512m", "-cp", ":".join(map(str, clients)), str(PRODUCER)]
    args = [broker.bootstrap, topic, str(file), str(PARTITIONS), str(pace), str(LATENCY_SECONDS)]
    done = subprocess.run([*command, *args], capture_output=True, text=True, check=True)
    sent, seconds = done.stdout.split()[-2:]
    return int(sent), float(seconds)


def appended(broker: Broker, topic: str, last: int, wait: float) -> dict[int, tuple[int, int]]:
    """Of each message, when it was sent and when the last of what came of it was appended.

    Microseconds. Waits until message `last` is there, but no longer than that.
    """
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "latency", "log_level": 3}
    )
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    arrivals: dict[int, tuple[int, int]] = {}
    until, idle = time.monotonic() + wait, 0
    try:
        while time.monotonic() < until and (last not in arrivals or idle < 2):
            records = consumer.consume(10_000, timeout=0.5)
            idle = 0 if records else idle + 1
            for record in records:
                if record.error() is None and (note := NOTE.search(record.value() or b"")):
                    number, sent = int(note[1]), int(note[2])
                    when = record.timestamp()[1] * 1000
                    arrivals[number] = (sent, max(when, arrivals.get(number, (0, 0))[1]))
    finally:
        consumer.close()
    return arrivals


Running = Callable[[Broker, str, str, str], AbstractContextManager[None]]


def latency(broker: Broker, running: Running, format: str, pace: int) -> Latency:
    """Run a side beside a producer of that pace, and see when its output arrives."""
    source = broker.create_topic(new_name("paced"), PARTITIONS)
    primer = stamped(marked(next(change_stream(format, 1))[1] or b""), 0, 0, 1)
    broker.produce(source, [(None, primer, 0, None)])
    began = time.time()
    with target(broker) as to, running(broker, format, source, to):
        if not (primed := appended(broker, to, 0, READY)):
            raise RuntimeError(f"nothing arrived within {READY} s")
        sent, seconds = paced(broker, source, format, pace)
        arrivals = appended(broker, to, sent - 1, DRAIN)
    broker.delete_topic(source)
    first_counted = int(sent * WARM_SECONDS / LATENCY_SECONDS)
    late = {n: (then - at) / 1000 for n, (at, then) in arrivals.items() if n >= first_counted}
    missing = sent - sum(1 for at, _ in arrivals.values() if at)
    first = primed[0][1] / 1e6 - began
    return Latency(pace, sent, seconds, late, missing, first)


def measure(spark: SparkSession, flink: Flink | None, count: int) -> list[LatencyFigures]:
    """First the sustained speed of each side, then how long its messages take at two paces."""
    figures = LatencyFigures(f"{SOURCE} → {TARGET}", count, 0, source=SOURCE)
    print(f"\nLatency, {figures.name}", flush=True)
    try:
        with Broker(heap="1g", properties=BROKER, jvm_options=()) as broker:
            topics = [filled(broker, SOURCE, size) for size in (count, SAMPLE)]
            works, startups = (conversions(spark, flink, broker, SOURCE, t) for t in topics)
            in_turns(figures, works, startups, ROUNDS)
            sides: dict[str, Running] = {"headgate": headgate_running}
            if flink:
                sides["flink"] = lambda *args: flink_running(flink, *args)
            measure_sides(figures, broker, sides)
    except Exception as error:  # what was measured before must not be lost
        figures.remark(f"not measured to the end: {first_line(error)}")
    return [figures]


def measure_sides(figures: LatencyFigures, broker: Broker, sides: dict[str, Running]) -> None:
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


def remark_pace(figures: LatencyFigures, side: str, seen: Latency) -> None:
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


def latency_bars(pace: str, seen: Latency | None) -> list[LatencyBar]:
    """What Headgate must hold at a pace; the first message is that of the second start."""
    at = "1,000/s" if pace == "slow" else "half speed"
    p50, p99 = LATENCY_BARS[pace]
    bars = [
        LatencyBar(pace, f"p50 at {at}", p50, seen and seen.at(50), "ms"),
        LatencyBar(pace, f"p99 at {at}", p99, seen and seen.at(99), "ms"),
    ]
    if pace == "half":
        bars.append(LatencyBar(pace, "first message", FIRST_BAR, seen and seen.first, "s"))
    return bars


def bars(figures: LatencyFigures) -> list[LatencyBar]:
    return [
        bar
        for pace in LATENCY_BARS
        for bar in latency_bars(pace, figures.latency.get(("headgate", pace)))
    ]


HEAD = ["conversion", "by", "sent/s", "p50", "p99", "first message", "bar"]


def table(results: list[LatencyFigures]) -> list[list[str]]:
    lines = []
    for figures in results:
        for (side, pace), seen in figures.latency.items():
            judged = latency_bars(pace, seen) if side == "headgate" else []
            lines.append([figures.name, LABELS[side], *seen.cells(), "; ".join(map(str, judged))])
    return lines


def section(results: list[LatencyFigures], rounds: int) -> list[str]:
    sustained = [
        f"{LABELS[side]} {speed:,.0f} messages/s"
        for side in ("headgate", "flink")
        if (speed := results[0].sustained(side))
    ]
    remarks = [f"- {f.name}: {remark}" for f in results for remark in f.remarks]
    return [
        "## Latency",
        markdown(HEAD, table(results)),
        *(["\n".join(remarks)] if remarks else []),
        f"Topic to topic, each side at {SLOW_PACE:,} messages/s and at half of its own sustained "
        f"speed as it was in this run ({', '.join(sustained)}; {ROUNDS} rounds after {COLD + 1}), "
        "which a producer in a process of its own sends evenly for "
        f"{LATENCY_SECONDS} s; the first {WARM_SECONDS} s do not count. Latency is from sending a "
        "message to the broker's append of the last of what came of it, in milliseconds of one "
        "clock. Headgate runs as `headgate run`; its **first message** is timed from the command, "
        "and judged at the second start, when the class archive is there. Producer, broker and the "
        "side measured share the machine's cores.",
    ]
