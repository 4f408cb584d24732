"""How fast Headgate converts topic to topic through a real Kafka broker, beside Flink SQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import messages
from flink import Flink
from harness import (
    COLUMNS,
    FLINK_COLUMNS,
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
    times,
)
from kafka_topics import (
    BROKER,
    LABELS,
    PARTITIONS,
    READ_WHAT_IS_THERE,
    STATE,
    TABLES,
    TABLES_SOURCE,
    TARGET,
    Broker,
    change_stream,
    filled,
    flink_rate,
    flink_topic,
    headgate_rate,
    many_tables,
    new_target,
    target,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate
from headgate.spark import jars

BARS = {"canal-json": 1.15, "canal-json:ticdc": 0.7, "debezium": 0.7, "maxwell": 0.7}
"""The sources, and what share of Flink's speed each must reach. The changes of all but Canal have a
place in the source's log: they are deduplicated."""
TYPED = ("canal-json", "canal-json:ticdc")
"""The sources whose messages tell the types of columns."""
TABLES_BAR = 0.7
"""A topic with many tables is converted no more than 30 % slower than one with one."""


@dataclass
class KafkaFigures(Figures):
    """What was seen of the conversion of a source."""

    source: str = ""


SEEN_AS = {"-U": "-D", "+U": "+I"}
COLD = 3
"""Unmeasured rounds before the one that everything has: no JVM here is warm, the broker's included,
before some millions of messages have gone through, and a job runs for months."""
MORE = 2
"""Rounds more than others have: with three processes on two cores the times scatter."""

# Whether it is right


def read_by_flink(flink: Flink, broker: Broker, topic: str, source: str) -> list[Row]:
    """What Headgate wrote, as Flink reads it.

    A DATETIME of Debezium is milliseconds; where the source does not tell the type, it is the text.
    """
    columns, created_at = FLINK_COLUMNS, "created_at"
    if source in TYPED:
        columns = columns.replace("created_at TIMESTAMP(3)", "created_at BIGINT")
        created_at = "CAST(TO_TIMESTAMP_LTZ(created_at, 3) AS TIMESTAMP(3))"
    flink_topic(flink, "converted", broker, topic, TARGET, columns, **READ_WHAT_IS_THERE)
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
                rows = read_by_flink(flink, broker, to, figures.source)
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
            with Broker(heap="1g", properties=BROKER, jvm_options=()) as broker:
                measure_with(spark, flink, broker, figures, rounds + MORE)
        except Exception as error:  # what was measured before must not be lost
            figures.remark(f"not measured to the end: {first_line(error)}")
    shutil.rmtree(STATE, ignore_errors=True)
    return measured


def measure_with(
    spark: SparkSession, flink: Flink | None, broker: Broker, figures: KafkaFigures, rounds: int
) -> None:
    source = filled(broker, figures.source, figures.messages)
    sample = filled(broker, figures.source, SAMPLE)
    check(spark, flink, broker, figures, sample)
    works = conversions(spark, flink, broker, figures.source, source)
    if figures.source == TABLES_SOURCE:
        mixed = broker.create_topic("many-tables", PARTITIONS)
        broker.produce(mixed, many_tables(figures.messages))
        works["many"] = into(broker, headgate_rate, spark, figures.source, mixed)
    in_turns(figures, works, conversions(spark, flink, broker, figures.source, sample), rounds)


def in_turns(figures: KafkaFigures, works: Works, startups: Works, rounds: int) -> None:
    """The sides in turn, warmed up."""
    for _ in range(COLD):
        take_turns(figures, works, {}, 0, LABELS)
    take_turns(figures, works, startups, rounds, LABELS)


def conversions(
    spark: SparkSession, flink: Flink | None, broker: Broker, format: str, topic: str
) -> Works:
    """The conversion of a topic by each side, into a topic of its own."""
    works: Works = {"headgate": into(broker, headgate_rate, spark, format, topic)}
    if flink:
        works["flink"] = into(broker, flink_rate, flink, format, topic)
    return works


def into(
    broker: Broker, rate: Callable[..., float], by: object, format: str, topic: str
) -> Callable[[], float]:
    to = new_target(broker)

    def run() -> float:
        broker.empty_topic(to, PARTITIONS)
        return rate(by, broker, format, topic, to)

    return run


def bars(figures: KafkaFigures) -> list[Bar]:
    ratio = figures.net_ratio("headgate")
    all_bars = [Bar("headgate", BARS[figures.source], ratio, "flink")]
    if figures.source == TABLES_SOURCE:
        one, many = figures.speed("headgate"), figures.speed("many")
        all_bars.append(Bar("many", TABLES_BAR, many / one if one and many else None, "headgate"))
    return all_bars


HEAD = ["conversion", "by", "messages/s", "slowest to fastest", "MB/s", "start-up", "sustained"]
HEAD += ["of Flink", "bar"]


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


def connector_fact(spark: SparkSession) -> str:
    """The jars of the connector that Spark was given: they need not be of its version."""
    given = spark.sparkContext.getConf().get("spark.jars", "") or ""
    names = {coordinate.split(":")[1] for coordinate in jars.coordinates_of("kafka")}
    paths = [path for path in map(Path, given.split(",")) if jars.artifact(path) in names]
    return ", ".join(path.stem for path in paths) or "none"


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
        "place in a log; those of the other sources are deduplicated, which Flink "
        f"does not do. The bar of {TABLES} tables is {TABLES_BAR} of the speed with one. What each "
        "side writes is as above: Flink four short messages for three.",
    ]
    return parts
