"""How fast Headgate writes and reads RocketMQ, beside RocketMQ's own client in a bare loop."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import messages
from harness import FILES, Bar, Figures, first_line, generated, markdown, take_turns, timed
from kafka_topics import BROKER, Broker, filled, headgate_settings, new_name
from pyspark.sql import SparkSession
from rocketmq_server import Server

from headgate.config.reader import job_of
from headgate.pipeline.run import run
from headgate.rocketmq import jvm
from headgate.spark import jars

SOURCE, TARGET = "canal-json", "debezium"
MOST = 300_000
"""Messages of a run; a broker's disk grows with each."""
QUEUES = 4
BAR = 0.6
COLD = 1
"""Unmeasured rounds before the one that everything has: the JVMs of the workers are new."""
LOOP = Path(__file__).with_name("RocketMQLoop.java")
DIRECTIONS = {
    "out": (f"Kafka to RocketMQ: {SOURCE} → {TARGET}", "batches of 256"),
    "in": (f"RocketMQ to files: {SOURCE} → {TARGET}", "DefaultLitePullConsumer"),
}
LABELS = {"headgate": "headgate run", "bare": "the client in a bare loop"}
HEAD = ["direction", "work", "messages/s", "slowest to fastest", "MB/s", "bar"]


class Loop:
    """RocketMQ's client in a process of its own that stays warm."""

    def __init__(self, server: Server, file: Path, count: int) -> None:
        command = [str(jars.java()), "-Xmx1g", "-cp", ":".join(jvm.client_jars()), str(LOOP)]
        with (FILES / "rocketmq-loop.log").open("w") as log:
            self.process = subprocess.Popen(
                [*command, server.name_server, str(file), str(count)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
            )  # fmt: skip
        self.answer("ready")

    def answer(self, wanted: str | None = None) -> str:
        """The next line that is an answer; the client prints lines of its own too."""
        for line in self.process.stdout or ():
            text = line.strip()
            if text.startswith("failed "):
                raise RuntimeError(text)
            if text == wanted or (wanted is None and text.replace(".", "", 1).isdigit()):
                return text
        raise RuntimeError(f"the loop ended; see {FILES / 'rocketmq-loop.log'}")

    def seconds(self, direction: str, topic: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{direction} {topic}\n")
        self.process.stdin.flush()
        return float(self.answer())

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait(60)


@contextmanager
def loop(server: Server, file: Path, count: int) -> Iterator[Loop]:
    found = Loop(server, file, count)
    try:
        yield found
    finally:
        found.close()


def headgate_seconds(spark: SparkSession, source: str, sink: str, count: int) -> float:
    """The seconds of `headgate run --once` in this warm session; all messages must have gone."""
    job = job_of(source, (sink,), headgate_settings())
    done = []
    taken = timed(lambda: done.append(run(job, once=True, spark=spark)))
    totals = done[0].totals
    if (totals.messages, totals.dead_letters) != (count, 0):
        raise RuntimeError(f"{totals.messages} of {count} messages, {totals.dead_letters} dead")
    return taken


def new_topic(server: Server) -> str:
    name = new_name("bench")
    server.create_topic(name, QUEUES)
    return name


def measure(spark: SparkSession, count: int, rounds: int) -> list[Figures]:
    """Both directions, through one server."""
    count = min(count, MOST)
    file = generated(SOURCE, count)
    size = messages.message_bytes(SOURCE, file, count)
    measured = [Figures(name, count, size) for name, _ in DIRECTIONS.values()]
    print(f"\nRocketMQ: {count:,} messages of {size / count:.0f} bytes", flush=True)
    try:
        with (
            Broker(heap="1g", properties=BROKER) as broker,
            Server(heap="1g") as server,
            loop(server, file, count) as bare,
        ):
            measure_out(spark, broker, server, bare, measured[0], rounds)
            measure_in(spark, server, bare, measured[1], rounds)
    except Exception as error:  # what was measured before must not be lost
        measured[0].remark(f"not measured to the end: {first_line(error)}")
    return measured


def measure_out(
    spark: SparkSession, broker: Broker, server: Server, bare: Loop, figures: Figures, rounds: int
) -> None:
    print(f"\n{figures.name}", flush=True)
    topic = filled(broker, SOURCE, figures.messages)
    source = f"kafka://{broker.bootstrap}/{topic}?protocol={SOURCE}"

    def headgate() -> float:
        sink = f"{server.uri(new_topic(server))}protocol={TARGET}&partition-num={QUEUES}"
        return headgate_seconds(spark, source, sink, figures.messages)

    works = {"headgate": headgate, "bare": lambda: bare.seconds("out", new_topic(server))}
    for _ in range(COLD):
        headgate()
    take_turns(figures, works, {}, rounds, LABELS)


def measure_in(
    spark: SparkSession, server: Server, bare: Loop, figures: Figures, rounds: int
) -> None:
    print(f"\n{figures.name}", flush=True)
    topic, out = new_topic(server), FILES / "rocketmq-out"
    bare.seconds("out", topic)

    def headgate() -> float:
        shutil.rmtree(out, ignore_errors=True)
        source = f"{server.uri(topic)}protocol={SOURCE}"
        sink = f"file://{out}?protocol={TARGET}"
        return headgate_seconds(spark, source, sink, figures.messages)

    works = {"headgate": headgate, "bare": lambda: bare.seconds("in", topic)}
    for _ in range(COLD):
        headgate()
    take_turns(figures, works, {}, rounds, LABELS)
    shutil.rmtree(out, ignore_errors=True)


def bars(figures: Figures) -> list[Bar]:
    return [Bar("headgate", BAR, figures.ratio("headgate", "bare"), "bare")]


def table(results: list[Figures]) -> list[list[str]]:
    lines = []
    for figures in results:
        judged = {bar.work: str(bar) for bar in bars(figures)}
        for work, label in LABELS.items():
            lines.append([figures.name, label, *figures.cells(work), judged.get(work, "")])
    return lines


def section(results: list[Figures], rounds: int) -> list[str]:
    remarks = [f"- {f.name}: {remark}" for f in results for remark in f.remarks]
    parts = [
        "## RocketMQ",
        f"{results[0].messages:,} messages through one name server and one broker on the same "
        f"machine, topics of {QUEUES} queues, median of {rounds} rounds after {COLD + 1} "
        "unmeasured ones. The bare loop is RocketMQ's own client in a warm JVM with one thread, "
        "`bench/RocketMQLoop.java`: it sends the same messages in batches of 256, or counts what "
        "`DefaultLitePullConsumer` gives, and neither decodes nor writes them. Headgate's time is "
        "that of a whole `headgate run --once`, with its start and its checkpoint.",
        markdown(HEAD, table(results)),
    ]
    return [*parts, "\n".join(remarks)] if remarks else parts
