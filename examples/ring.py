"""One feed converted through every dialect, one after the other, and back to where it began."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import headgate
from examples.shop import DATABASE, SCHEMA, TABLES
from headgate.formats import MODULES, load

START = "canal-json:canal"
TOPIC = "ring.{database}.{table}"
OPTIONS: dict[str, dict[str, Any]] = {"canal-json:ticdc": {"enable_tidb_extension": True}}


class Hop(NamedTuple):
    """One conversion: what it wrote, how many messages, and what they could not carry."""

    to: str
    messages: int
    lost: Counter[str]


def dialects() -> list[str]:
    """Every dialect, from the start round to the start again."""
    specs = [f"{name}:{dialect}" for name in MODULES for dialect in load(name).dialects]
    at = specs.index(START)
    return [*specs[at + 1 :], *specs[:at], START]


def around(messages: DataFrame) -> tuple[list[Hop], DataFrame]:
    """Convert the feed all the way round; the hops, and the messages at the end."""
    hops: list[Hop] = []
    spec = START
    for to in dialects():
        events = decoded(messages, spec)
        options = {"schema": SCHEMA, **OPTIONS.get(to, {})}
        out = headgate.encode(events, to, topic=TOPIC, **options).localCheckpoint()
        without = headgate.dead_letters(events, to, **options)
        codes = out.select(F.explode("losses").alias("code")).unionByName(
            without.where("kind <> 'invalid'").select(F.col("kind").alias("code"))
        )
        counts = codes.groupBy("code").count().collect()
        lost = Counter({row["code"]: row["count"] for row in counts})
        hops.append(Hop(to, out.count(), lost))
        messages, spec = out.drop("losses"), to
    return hops, messages


def decoded(messages: DataFrame, spec: str) -> DataFrame:
    """The events of messages; a bare row of OMS names no table, but its topic does."""
    if spec != "debezium-smt:oms":
        return headgate.decode(messages, spec, schema=SCHEMA)
    parts = [
        headgate.decode(
            messages.where(F.col("topic") == TOPIC.format(database=DATABASE, table=table)),
            spec,
            schema=SCHEMA,
            database=DATABASE,
            table=table,
        )
        for table in TABLES
    ]
    return reduce(DataFrame.unionByName, parts)
