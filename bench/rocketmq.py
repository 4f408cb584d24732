"""How fast Headgate writes and reads RocketMQ, beside RocketMQ's own client in a bare loop."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import messages
from harness import (
    FILES,
    SAMPLE,
    Bar,
    Figures,
    Works,
    first_line,
    generated,
    markdown,
    take_turns,
    timed,
    times,
)
from kafka_topics import BROKER, PARTITIONS, SINK, Broker, filled, headgate_settings, new_name
from pyspark.sql import SparkSession
from rocketmq_server import Server

from headgate.config.reader import job_of
from headgate.pipeline.run import run
from headgate.rocketmq import jvm
from headgate.sources.rocketmq.store_layout import messages_in
from headgate.spark import jars

SOURCE, TARGET = "canal-json", "debezium"
WRITTEN = f"protocol={TARGET}&{SINK}"
QUEUES = 4
BAR = 0.6
COLD = 3
"""Unmeasured rounds before the one that everything has, as for Kafka: until then Spark's JVM spends
more time on compiling than on messages."""
LOOP = Path(__file__).with_name("RocketMQLoop.java")
OUT, IN = f"Kafka to RocketMQ: {SOURCE} → {TARGET}", f"RocketMQ to files: {SOURCE} → {TARGET}"
LABELS = {"headgate": "headgate run", "bare": "the client in a bare loop"}
HEAD = ["direction", "work", "messages/s", "slowest to fastest", "MB/s", "start-up", "sustained"]
HEAD += ["of the loop", "bar"]


@dataclass
class RocketMQFigures(Figures):
    """What was seen of a direction."""

    written: float = 0
    """Mean bytes of the messages that Headgate wrote to RocketMQ."""


class Loop:
    """RocketMQ's client in a process of its own that stays warm."""

    def __init__(self, server: Server, file: Path, count: int) -> None:
        command = [str(jars.java()), "-Xmx4g", "-cp", ":".join(jvm.client_jars()), str(LOOP)]
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

    def seconds(self, direction: str, topic: str, count: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{direction} {topic} {count}\n")
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


def messages_stored(server: Server, topic: str) -> int:
    """How many messages were ever written to a topic."""
    server.wait_for_queues()
    own = server.client
    return sum(own.max_offset(topic, queue) for queue in own.readable(topic))


def mean_bytes(server: Server, topic: str) -> float:
    """Of the first messages of each queue."""
    own = server.client
    answers = [own.pull(topic, queue, 0).data for queue in own.readable(topic)]
    bodies = messages_in(b"".join(answers)).bodies.to_pylist()
    return sum(map(len, bodies)) / len(bodies)


def measure(spark: SparkSession, count: int, rounds: int) -> list[RocketMQFigures]:
    """Both directions, through one server."""
    file = generated(SOURCE, count)
    size = messages.message_bytes(SOURCE, file, count)
    measured = [RocketMQFigures(name, count, size) for name in (OUT, IN)]
    print(f"\nRocketMQ: {count:,} messages of {size / count:.0f} bytes", flush=True)
    try:
        with (
            Broker(heap="1g", properties=BROKER, jvm_options=()) as broker,
            Server(heap="1g", jvm_options=()) as server,
            loop(server, file, count) as bare,
        ):
            measure_in(spark, server, bare, measured[1], rounds)
            measure_out(spark, broker, server, bare, measured[0], rounds)
    except Exception as error:  # what was measured before must not be lost
        measured[0].remark(f"not measured to the end: {first_line(error)}")
    return measured


def measure_out(
    spark: SparkSession,
    broker: Broker,
    server: Server,
    bare: Loop,
    figures: RocketMQFigures,
    rounds: int,
) -> None:
    """From a topic of Kafka into one topic, whose tables a job knows that has run for a while."""
    print(f"\n{figures.name}", flush=True)

    def works(count: int) -> Works:
        source = f"kafka://{broker.bootstrap}/{filled(broker, SOURCE, count)}?protocol={SOURCE}"
        topic = new_topic(server)
        sink = f"{server.uri(topic)}{WRITTEN}&partition-num={QUEUES}"

        def headgate() -> float:
            before = messages_stored(server, topic)
            taken = headgate_seconds(spark, source, sink, count)
            written = messages_stored(server, topic) - before
            if written != count:
                raise RuntimeError(f"{written} of {count} messages are in the topic")
            figures.written = mean_bytes(server, topic)
            return taken

        def bare_loop() -> float:
            if not loaded:
                loaded.append(bare.seconds("load", topic, figures.messages))
            return bare.seconds("out", new_topic(server), count)

        return {"headgate": headgate, "bare": bare_loop}

    loaded: list[float] = []  # once, after the first job: both sides send the same messages
    in_turns(figures, works(figures.messages), works(SAMPLE), rounds)


def measure_in(
    spark: SparkSession, server: Server, bare: Loop, figures: Figures, rounds: int
) -> None:
    """From the same topic each time into new files."""
    print(f"\n{figures.name}", flush=True)
    out = FILES / "rocketmq-out"

    def works(count: int) -> Works:
        topic = new_topic(server)
        bare.seconds("out", topic, count)

        def headgate() -> float:
            shutil.rmtree(out, ignore_errors=True)
            source = f"{server.uri(topic)}protocol={SOURCE}"
            sink = f"file://{out}?as=lines&{WRITTEN}"
            taken = headgate_seconds(spark, source, sink, count)
            written = spark.read.text(str(out)).count()
            if written != count:
                raise RuntimeError(f"{written} of {count} messages are in the files")
            return taken

        return {"headgate": headgate, "bare": lambda: bare.seconds("in", topic, count)}

    small = works(SAMPLE)  # first: what was written last is in the broker's memory
    in_turns(figures, works(figures.messages), small, rounds)
    shutil.rmtree(out, ignore_errors=True)


def in_turns(figures: Figures, works: Works, startups: Works, rounds: int) -> None:
    for _ in range(COLD):
        take_turns(figures, works, {}, 0, LABELS)
    take_turns(figures, works, startups, rounds, LABELS)


def bars(figures: Figures) -> list[Bar]:
    return [Bar("headgate", BAR, figures.net_ratio("headgate", "bare"), "bare")]


def table(results: list[RocketMQFigures]) -> list[list[str]]:
    lines = []
    for figures in results:
        judged = {bar.work: str(bar) for bar in bars(figures)}
        for work, label in LABELS.items():
            startup, sustained = figures.startup.get(work), figures.sustained(work)
            lines.append(
                [
                    figures.name,
                    label,
                    *figures.cells(work),
                    f"{median(startup):.2f} s" if startup else "",
                    f"{sustained:,.0f}" if sustained else "",
                    times(figures.net_ratio(work, "bare")) if work == "headgate" else "",
                    judged.get(work, ""),
                ]
            )
    return lines


def section(results: list[RocketMQFigures], rounds: int) -> list[str]:
    remarks = [f"- {f.name}: {remark}" for f in results for remark in f.remarks]
    parts = [
        "## RocketMQ",
        markdown(HEAD, table(results)),
        f"{results[0].messages:,} messages through one name server and one broker with its default "
        f"limits on the same machine, topics of {QUEUES} queues, for Headgate one "
        f"for all rounds, as for a job that has run for a while; each work {COLD + 1} times "
        f"unmeasured and then {rounds} times, the two in turn; the median counts.",
        "The bare loop is RocketMQ's own client and nothing else, `bench/RocketMQLoop.java`, in a "
        "warm JVM: `DefaultMQProducer` sends the same messages that Headgate writes, with their "
        "tags, keys and properties, in batches of 256 from one "
        "thread, one batch after the other; `DefaultLitePullConsumer` reads those of the source "
        "with its default of 20 threads, and their bytes are counted. It neither decodes nor "
        "converts nor writes anything, and keeps no checkpoint. Headgate is a whole job (`run` "
        "with `once`) in a warm session, with checkpoint, dead letters and `headgate-id`: it reads "
        f"{SOURCE} from Kafka "
        f"({PARTITIONS} partitions) and sends {TARGET} to RocketMQ, "
        f"{results[0].written:.0f} bytes each, or reads {SOURCE} from RocketMQ and writes {TARGET} "
        "as lines of files. Its time is from the start of the job to its end, and "
        "speeds and MB are of the messages read.",
        f"**Start-up** is the time of the same work over {SAMPLE} messages: for Headgate that of a "
        "query, with Spark's process that plans what is read and the JVM in it; for the loop that "
        "of its consumer. **Sustained** is the speed without it, and what the bar is about: at "
        f"least {BAR} of the loop's. `messages/s` is with it, on both sides.",
    ]
    return [*parts, "\n".join(remarks)] if remarks else parts
