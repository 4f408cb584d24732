"""Jobs against a real broker."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest
from demo_feed import feed
from dialects import SPECS
from job_runs import once, uri, wait_for
from kafka_broker import Broker
from messages import canal
from pyspark.sql import SparkSession
from ticdc_messages import TSO, ddl, ticdc, watermark

from headgate.arrow.headers import ID_HEADER
from headgate.codec.decoder import decoder
from headgate.config.reader import job_of, load_job
from headgate.core.errors import UsageError
from headgate.core.event import Event
from headgate.pipeline.check import checked, described
from headgate.pipeline.dead_letters import Store
from headgate.pipeline.engine import Engine
from headgate.pipeline.run import lag_of, run
from headgate.pipeline.status import Status
from headgate.pipeline.status import read as read_status
from headgate.sources.kafka.reader import KafkaReader
from headgate.sources.message_files import expand


def test_partitions_starting_positions_and_headers(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("many-a", "many-b"):
        broker.create_topic(name, 2)
        rows = [canal(table=name, data=[{"id": str(n)}]) for n in range(6)]
        broker.produce(name, [(None, row, n % 2, [("h", b"1")]) for n, row in enumerate(rows)])

    once(
        spark, tmp_path, uri(broker, "many-*"),
        uri(broker, "many.{database}.{table}", protocol="debezium", partition_num=3),
    )  # fmt: skip

    for name in ("many-a", "many-b"):
        found = broker.consume(f"many.shop.{name}")
        assert 6 == len(found)
        assert len({r[0] for r in found}) > 1
        assert {("h", b"1")} == {r[4][0] for r in found}
        ids = {dict(r[4])[ID_HEADER].decode() for r in found}
        assert {f"{name}-{p}-{o}" for p in range(2) for o in range(3)} == ids


def test_a_watermark_goes_to_every_partition_once_all_have_passed_it(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("wm", 2)
    broker.produce(topic, [(None, ticdc(1, 1), 0, None), (None, watermark(9), 0, None)])
    sink = uri(
        broker, "wm-out", protocol="canal-json:ticdc", enable_tidb_extension="true",
        partition_num=3, partition="index-value",
    )  # fmt: skip
    once(spark, tmp_path, uri(broker, topic), sink)
    assert [] == watermarks(broker, "wm-out")

    broker.produce(topic, [(None, watermark(5), 1, None)])
    once(spark, tmp_path, uri(broker, topic), sink)

    assert [(p, TSO + 5) for p in range(3)] == watermarks(broker, "wm-out")


def watermarks(broker: Broker, topic: str) -> list[tuple[int, int | None]]:
    decode = decoder("canal-json:ticdc")
    found = [(r[0], e) for r in broker.consume(topic) for e in decode(r[2], r[3], None)]
    return [(partition, e.commit_ts) for partition, e in found if e.kind == "watermark"]


def test_ddl_goes_to_every_partition_of_open_protocol_between_the_rows(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("barrier", 2)
    rows = [(None, ticdc(n, n), n % 2, None) for n in range(1, 9)]
    alter = (None, ddl(10, "ALTER TABLE orders ADD COLUMN x INT"), 0, None)
    later = [(None, ticdc(n, n + 20), n % 2, None) for n in range(11, 19)]
    broker.produce(topic, [*rows, alter, *later])

    once(
        spark, tmp_path, uri(broker, topic),
        uri(broker, "barrier-out", protocol="open-protocol", partition_num=3,
            partition="index-value"),
    )  # fmt: skip

    decode = decoder("open-protocol")
    for partition in range(3):
        found = [
            e for r in broker.consume("barrier-out") if r[0] == partition
            for e in decode(r[2], r[3], None)
        ]  # fmt: skip
        kinds = [e.kind for e in found]
        at = kinds.index("ddl")
        assert 1 == kinds.count("ddl")
        assert all(e.commit_ts < TSO + 10 for e in found[:at])
        assert all(e.commit_ts > TSO + 10 for e in found[at + 1 :])


def test_status_lag_and_metrics_tell_what_is_there(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("lag", 2)
    good = [(None, canal(table=f"t{n % 3}"), n % 2, None) for n in range(30)]
    broker.produce(topic, [*good, (None, b"{", 0, None)])
    source, sink = uri(broker, topic), uri(broker, "lag-out", protocol="maxwell")

    first = once(spark, tmp_path, source, sink)
    assert (31, 1, 0) == (first.totals.messages, first.totals.dead_letters, first.lag_offsets)
    assert {f"shop.t{n}": {"insert": 10} for n in range(3)} == first.totals.rows
    assert first == read_status(str(tmp_path / "state"))

    told = {"pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "t"}
    job = job_of(source, (sink,), {**told, "pipeline.metrics": "127.0.0.1:0"})
    with pytest.raises(UsageError):
        job_of(source, (sink,), {**told, "pipeline.metrics": "nowhere"})
    assert job.metrics is not None


def test_a_batch_that_is_done_is_not_written_again(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    """Where a job was stopped before Spark had noted the batch, it plans that batch again."""
    topic = broker.create_topic("done", 1)
    source, sink = uri(broker, topic), uri(broker, "done-out", protocol="maxwell")
    broker.produce(topic, [(None, canal(id=1), 0, None)])
    once(spark, tmp_path, source, sink)
    for name in ("0", ".0.crc"):
        (tmp_path / "state" / "query" / "commits" / name).unlink()
    broker.produce(topic, [(None, canal(id=2), 0, None)])

    totals = once(spark, tmp_path, source, sink).totals

    assert 2 == totals.messages
    assert 2 == len(broker.consume("done-out"))


def test_a_batch_that_holds_more_when_it_is_planned_again_is_processed(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    """Where what Spark planned was lost, nothing of the topic is."""
    topic = broker.create_topic("lost-plan", 1)
    source, sink = uri(broker, topic), uri(broker, "lost-plan-out", protocol="maxwell")
    broker.produce(topic, [(None, canal(id=1), 0, None)])
    once(spark, tmp_path, source, sink)
    for folder in ("commits", "offsets"):
        for name in ("0", ".0.crc"):
            (tmp_path / "state" / "query" / folder / name).unlink()
    broker.produce(topic, [(None, canal(id=2), 0, None)])

    once(spark, tmp_path, source, sink)

    assert 3 == len(broker.consume("lost-plan-out")), "the first one again, and the second one"


def test_lag_is_asked_of_one_client_until_it_fails(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("one-client", 2)
    changes = [(None, canal(), n % 2, None) for n in range(10)]
    broker.produce(topic, changes)
    source, sink = uri(broker, topic), uri(broker, "one-client-out", protocol="maxwell")
    once(spark, tmp_path, source, sink)
    told = {"pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "t"}
    engine = Engine(spark, job_of(source, (sink,), told))
    reader = engine.reader
    assert isinstance(reader, KafkaReader)

    assert 0 == lag_of(engine)
    client = reader.admin
    broker.produce(topic, changes)
    assert 10 == lag_of(engine)
    assert client is not None
    assert client is reader.admin
    client.client.close()
    assert lag_of(engine) is None
    assert 10 == lag_of(engine)
    assert client is not reader.admin
    engine.close()
    engine.close()


def test_a_running_job_serves_metrics_takes_replays_and_stops_cleanly(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    from server_process import free_ports

    (port,) = free_ports(1)
    topic = broker.create_topic("live", 1)
    broker.produce(topic, [(None, b"{", 0, None), (None, canal(), 0, None)])
    told = {
        "pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "live",
        "pipeline.metrics": f"127.0.0.1:{port}", "pipeline.trigger": "200ms",
    }  # fmt: skip
    job = job_of(uri(broker, topic), (uri(broker, "live-out", protocol="maxwell"),), told)
    running = Thread(target=run, args=(job,), kwargs={"spark": spark})
    running.start()
    try:
        assert "1.0" == metric(port, "headgate_dead_letters_total", "malformed-json")
        store = Store(str(tmp_path / "state" / "dead-letters"))
        assert 1 == store.replay()
        wait_for(lambda: "2.0" == metric(port, "headgate_dead_letters_total", "malformed-json"))
        broker.produce(topic, [(None, canal(table="late"), 0, None)])
        wait_for(lambda: "1.0" == metric(port, "headgate_rows_total", "shop.late"))
        assert "1.0" == metric(port, "headgate_up", "live")
    finally:
        for query in spark.streams.active:
            query.stop()
        running.join(60)
    assert not running.is_alive()
    assert ["orders", "late"] == [json.loads(r[3])["table"] for r in broker.consume("live-out")]


def metric(port: int, name: str, label: str) -> str | None:
    """A figure as Prometheus would scrape it; waits until it is there."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            lines = []
        for line in lines:
            if line.startswith(f"{name}{{") and label in line:
                return line.rpartition(" ")[2]
        time.sleep(0.3)
    return None


def test_check_says_what_the_job_would_do(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("checked", 2)
    broker.produce(topic, [(None, canal(), 0, None), (None, b"{", 1, None)])
    told = {"pipeline.checkpoint": str(tmp_path / "state")}
    job = job_of(uri(broker, topic), (uri(broker, "new", protocol="debezium"),), told)

    lines = list(described(checked(job, None, 100)))

    assert f"  reads topics: {topic} (2 partitions)" in lines
    assert "  sampled 2 messages: canal-json:canal (1 events)" in lines
    assert "  table shop.orders: 1 events" in lines
    assert any("malformed-json" in line for line in lines)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("source", ["kafka", "file"])
def test_check_says_which_tables_would_be_made_and_what_would_not_fit(
    source: str, broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    sql = "CREATE TABLE items (sku VARCHAR(8) PRIMARY KEY, n INT UNSIGNED)"
    statement = canal(isDdl=True, type="CREATE", table="items", sql=sql, data=None, mysqlType=None)
    wrong = canal(data=[{"id": "1", "amount": "1.105", "note": None}])
    messages = [statement, canal(), wrong]
    if source == "kafka":
        topic = broker.create_topic("checked-tables", 1)
        broker.produce(topic, [(None, message, 0, None) for message in messages])
        read = uri(broker, topic)
    else:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "0.jsonl").write_bytes(b"\n".join(messages))
        read = f"file://{tmp_path}/in"
    told = {"pipeline.checkpoint": str(tmp_path / "state")}

    lines = list(described(checked(job_of(read, (f"delta://{tmp_path}/lake",), told), None, 100)))

    assert "    table shop.items, key sku: sku string, n bigint" in lines
    assert "    table shop.orders, key id: id bigint, amount decimal(12,2), note string" in lines
    assert any(line.startswith("    rejected: 1 x misfit: ") for line in lines), lines
    assert not (tmp_path / "lake").exists()
    assert not (tmp_path / "state").exists()


def test_a_topic_that_is_not_there_is_named(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    sink = uri(broker, "not-made", protocol="maxwell", auto_create_topic="false")
    topic = broker.create_topic("source-of-none", 1)
    broker.produce(topic, [(None, canal(), 0, None)])

    with pytest.raises(UsageError, match="no topic not-made"):
        once(spark, tmp_path, uri(broker, topic), sink)


def test_files_and_kafka_at_once(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    topic = broker.create_topic("both", 1)
    broker.produce(topic, [(None, canal(), 0, None)])

    once(
        spark, tmp_path, uri(broker, topic), uri(broker, "both-out", protocol="maxwell"),
        f"file://{tmp_path}/out?protocol=debezium",
    )  # fmt: skip

    (found,) = broker.consume("both-out")
    files = [f for f in expand([str(tmp_path / "out")]) if f.endswith(".parquet")]
    rows = [row for f in files for row in pq.read_table(f).to_pylist()]
    assert "insert" == json.loads(found[3])["type"]
    assert "c" == json.loads(rows[0]["value"])["payload"]["op"]


def test_poison_of_every_format_is_parked_as_it_was_and_replayed(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    whole = [max((m[:2] for m in feed(d)), key=lambda m: len(m[1] or b"")) for d in SPECS]
    broken = [(key, (value or b"")[: len(value or b"") // 2]) for key, value in whole]
    topic = broker.create_topic("poison", 1)
    broker.produce(topic, [(key, value, 0, None) for key, value in [*whole, *broken]])
    sink = uri(broker, "poison-out", protocol="maxwell")

    # A limit below every message's size: all are parked, for one reason or the other.
    first = once(spark, tmp_path, uri(broker, topic, max_message_bytes=64), sink)

    store = Store(str(tmp_path / "state" / "dead-letters"))
    assert len(whole) + len(broken) == first.totals.dead_letters
    letters = {
        (letter["offset"], letter["key"], letter["value"]) for letter in store.dead_letters()
    }
    assert {(n, *message) for n, message in enumerate([*whole, *broken])} == letters

    assert first.totals.dead_letters == store.replay()
    second = once(spark, tmp_path, uri(broker, topic), sink)

    parked = {letter["offset"] for letter in store.dead_letters()}
    assert set(range(len(whole), len(whole) + len(broken))) == parked
    assert sum(n for ops in second.totals.rows.values() for n in ops.values()) >= len(whole)


def test_heartbeats_tell_how_far_the_job_is(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("beats", 1)
    broker.produce(topic, [(None, canal(), 0, None)])
    told = {
        "pipeline.checkpoint": str(tmp_path / "state"), "pipeline.name": "beats",
        "pipeline.heartbeat": "500ms",
    }  # fmt: skip
    sink = uri(broker, "beats-out", protocol="oms-default")
    running = Thread(target=run, args=(job_of(uri(broker, topic), (sink,), told),),
                     kwargs={"spark": spark})  # fmt: skip
    running.start()
    decode = decoder("oms-default")

    def beats() -> list[Event]:
        found = [e for r in broker.consume("beats-out") for e in decode(r[2], r[3], None)]
        return [e for e in found if e.kind == "heartbeat"]

    try:
        wait_for(lambda: read_status_or_none(tmp_path) is not None)
        wait_for(lambda: len(beats()) >= 2)
    finally:
        for query in spark.streams.active:
            query.stop()
        running.join(60)
    # Not the time of writing: rows that wait in the source are newer than this.
    assert {1589373515} == {e.event_time // 1_000_000 for e in beats()}


def read_status_or_none(tmp_path: Path) -> Status | None:
    try:
        status = read_status(str(tmp_path / "state"))
    except UsageError:
        return None
    return status if status.batch >= 0 else None


def test_routed_ddl_and_odd_names(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    topic = broker.create_topic("odd", 1)
    create = ddl(1, "CREATE TABLE orders (id INT)", "CREATE")
    row = ticdc(1, 2, table="order items")
    broker.produce(topic, [(None, create, 0, None), (None, row, 0, None)])
    job = {
        "source": {"uri": uri(broker, topic)},
        "route": [{"table": "shop.(.*)", "topic": "odd.{table}"}],
        "sink": {"uri": uri(broker, "", protocol="open-protocol", partition_num=3)},
        "pipeline": {"checkpoint": f"{tmp_path}/state"},
    }
    (tmp_path / "job.yaml").write_text(json.dumps(job))

    status = run(load_job(str(tmp_path / "job.yaml")), once=True, spark=spark)

    assert 0 == status.totals.dead_letters
    assert ["ddl"] * 3 == kinds_in(broker, "odd.orders")
    assert ["row"] == kinds_in(broker, "odd.order_x20items")


def kinds_in(broker: Broker, topic: str) -> list[str]:
    decode = decoder("open-protocol")
    return [e.kind for r in broker.consume(topic) for e in decode(r[2], r[3], None)]


def test_two_sinks_have_their_own_topics(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("two", 1)
    broker.create_topic("two-narrow", 1)
    broker.produce(topic, [(None, canal(table="order items"), 0, None)])

    once(
        spark, tmp_path, uri(broker, topic), uri(broker, "two-narrow", protocol="maxwell"),
        uri(broker, "two.{table}", protocol="debezium", partition_num=4),
    )  # fmt: skip

    assert [1, 1] == [len(broker.consume(name)) for name in ("two-narrow", "two.order_x20items")]


def test_a_message_too_large_for_kafka_is_parked(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("large", 1, **{"max.message.bytes": "4000000"})
    row = {"id": "1", "amount": "1.10", "note": "x" * 900_000}
    large = canal(data=[{**row, "note": "x" * 700_000}], old=[row], type="UPDATE")
    headers = [("trace", b"x" * 200_000)]
    broker.produce(
        topic,
        [
            (None, large[:900_000], 0, None),
            (None, canal(), 0, None),
            (None, canal(table="headers"), 0, headers),
        ],
    )
    sink = uri(broker, "large-out", protocol="maxwell", max_message_bytes=200_000)

    status = once(spark, tmp_path, uri(broker, topic, max_message_bytes=500_000), sink)

    assert {"": {"too-large": 1}, "shop.headers": {"too-large": 1}} == status.totals.rejected
    assert 1 == len(broker.consume("large-out"))
    again = {"id": "1", "amount": "1.10", "note": "x" * 300_000}
    broker.produce(topic, [(None, canal(data=[again]), 0, None)])
    status = once(spark, tmp_path, uri(broker, topic, max_message_bytes=500_000), sink)
    assert {"too-large": 1} == status.totals.rejected["shop.orders"]


def test_topics_that_messages_name_have_partitions_of_their_own_or_make_dead_letters(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create_topic("named", 1)
    for name, partitions in (("__one", 1), ("__five", 5), ("__a_b", 1)):
        broker.create_topic(name, partitions)
    tables, refused = ["one", "five", "new"], ["a.b", "consumer_offsets", "n" * 250]
    rows = [
        canal(table=table, data=[{"id": str(n), "amount": "1.10", "note": None}])
        for table in [*tables, *refused]
        for n in range(30)
    ]
    create = ddl(1, "CREATE TABLE x (id INT)", "CREATE", table="transaction_state")
    broker.produce(topic, [(None, message, 0, None) for message in [*rows, create]])
    sink = uri(broker, "__{table}", protocol="canal-json", partition="primary-key")

    status = once(spark, tmp_path, uri(broker, topic), sink)

    spread = {name: {record[0] for record in broker.consume(f"__{name}")} for name in tables}
    assert {"one": {0}, "five": {*range(5)}, "new": {*range(3)}} == spread
    dead = {f"shop.{name}": {"refused-topic": 30} for name in refused}
    assert {**dead, "shop.transaction_state": {"refused-topic": 1}} == status.totals.rejected
    letters = Store(str(tmp_path / "state" / "dead-letters")).dead_letters()
    (said,) = {x["message"] for x in letters if x["table"] == "shop.a.b"}
    assert "collides with existing topic: __a_b; send the table to another" in said


def test_long_messages_among_short_ones_arrive_in_order(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    notes = {n: "ä" * 5_000 if n in (25, 37) else f"note {n}" for n in range(40)}
    topic = broker.create_topic("long", 1)
    broker.produce(
        topic,
        (
            (None, canal(data=[{"id": str(n), "amount": "1.10", "note": note}]), 0, None)
            for n, note in notes.items()
        ),
    )

    sink = uri(broker, "long-out", protocol="canal-json")
    status = once(spark, tmp_path, uri(broker, topic), sink, **{"pipeline.max_messages": "10"})

    assert 40 == status.totals.messages
    rows = [json.loads(value)["data"][0] for _, _, _, value, _ in broker.consume("long-out")]
    assert notes == {int(row["id"]): row["note"] for row in rows}
    assert sorted(notes) == [int(row["id"]) for row in rows]
