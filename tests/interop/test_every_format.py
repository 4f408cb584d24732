"""Every format through a real broker and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from demo_feed import feed
from dialects import SPECS
from job_runs import once, uri
from kafka_broker import Broker
from pyspark.sql import SparkSession

from headgate.codec.decoder import decode_message, decoder
from headgate.core.event import Event

TYPED = {"debezium:oms": {"schemas_enable": "true"}}
"""What a format must be told so that its messages say their types, as those of the feed do."""


def events(dialect: str, records: list[Any]) -> list[Event]:
    decode = decoder(dialect)
    found = [e for r in records for e in decode_message(decode, r[2], r[3], None, 1 << 24)]
    return [e for e in found if e.kind in ("row", "ddl")]


@pytest.mark.parametrize("dialect", SPECS)
def test_every_format_through_kafka_and_back(
    dialect: str, broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic(f"feed-{dialect.replace(':', '-')}", 1)
    sent = feed(dialect)
    broker.produce(topic, sent)

    status = once(
        spark, tmp_path, uri(broker, topic, protocol=dialect),
        uri(broker, f"{topic}-out", protocol=dialect, partition_num=2, **TYPED.get(dialect, {})),
    )  # fmt: skip

    decode = decoder(dialect)
    told = [e for m in sent for e in decode_message(decode, m[0], m[1], None, 1 << 24)]
    wanted = [e for e in told if e.kind in ("row", "ddl")]
    found = events(dialect, broker.consume(f"{topic}-out"))
    assert rows_of(wanted) == rows_of(found)
    assert len(sent) == status.totals.messages
    assert sum(e.kind == "invalid" for e in told) == status.totals.dead_letters


def rows_of(found: list[Event]) -> dict[Any, list[Any]]:
    """What happened to each row, in order; a DDL statement that went to all partitions once."""
    rows: dict[Any, list[Any]] = {}
    for event in found:
        image = event.after or event.before or {}
        name = (event.database, event.table, image.get("id"))
        change = (event.op, event.before, event.after, event.ddl)
        if event.kind == "row" or change not in rows.get(name, ()):
            rows.setdefault(name, []).append(change)
    return rows
