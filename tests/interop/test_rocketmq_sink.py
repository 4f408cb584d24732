"""RocketMQ as a sink: what is read back, with RocketMQ's own consumer, is what went in."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_runs import Bench
from oms_formats import OMS_FORMATS
from packed_steps import step_of
from pyspark.sql import SparkSession
from rocketmq_server import ADMIN, Received, Server
from server_process import free_ports
from ticdc_messages import TSO, ticdc, watermark

from headgate.arrow.headers import to_text
from headgate.config.uris import parse_sink
from headgate.core.batches import SourceRange
from headgate.core.errors import HeadgateError, UsageError
from headgate.sinks.base import Batch, Target


def change(table: str, id: int, step: int, op: str = "INSERT") -> bytes:
    """A change in Canal's words."""
    row = {"id": str(id), "step": str(step)}
    types = {"id": "int", "step": "int"}
    message = {
        "database": "shop",
        "table": table,
        "type": op,
        "isDdl": False,
        "es": 1_700_000_000_000 + step,
    }
    message |= {
        "ts": 1,
        "pkNames": ["id"],
        "data": [row],
        "mysqlType": types,
        "sqlType": {"id": 4, "step": 4},
    }
    return json.dumps(message | {"old": None, "id": step, "sql": ""}).encode()


def ddl(sql: str) -> bytes:
    message = {"database": "shop", "table": "orders", "type": "ALTER", "isDdl": True, "sql": sql}
    return json.dumps(message | {"es": 1_700_000_000_000, "ts": 1, "data": None}).encode()


def changes(rows: int, each: int) -> list[bytes]:
    """Changes of rows of two tables, step by step."""
    return [
        change(table, id, step, "UPDATE" if step else "INSERT")
        for step in range(each)
        for id in range(rows)
        for table in ("orders", "items")
    ]


def received(server: Server, topic: str) -> list[Received]:
    """What a topic holds, without the copies that a broker that answers late gets."""
    first: dict[str, Received] = {}
    for message in server.consume(topic):
        first.setdefault(message.properties["headgate-id"], message)
    return list(first.values())


def by_row(messages: list[Received]) -> dict[tuple[str, str], list[int]]:
    """The steps of each row in the order of its queue; and a row is on one queue."""
    found: dict[tuple[str, str], list[int]] = {}
    queues: dict[tuple[str, str], set[int]] = {}
    for message in messages:
        (row,) = json.loads(message.body)["data"]
        place = (str(message.tags), row["id"])
        found.setdefault(place, []).append(int(row["step"]))
        queues.setdefault(place, set()).add(message.queue)
    assert all(len(each) == 1 for each in queues.values())
    return found


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession) -> Bench:
    return Bench(tmp_path, spark)


def rejected(bench: Bench) -> list[str]:
    """The codes of dead letters."""
    return pq.read_table(bench.root / "state" / "dead-letters")["code"].to_pylist()


def run(bench: Bench, uri: str, **more: Any) -> Any:
    return bench.run(sinks=[{"uri": uri}], **more)


@pytest.mark.parametrize("format", OMS_FORMATS)
def test_every_format_of_oms_comes_back_as_it_went_to_files(
    bench: Bench, rocketmq: Server, format: str
) -> None:
    topic = f"formats-{format.replace(':', '-')}"
    bench.put("a.jsonl", *changes(3, 2), change("orders", 1, 9, "DELETE"))
    uri = f"{rocketmq.uri(topic)}protocol={format}&partition-num=2"
    status = bench.run(sinks=[{"uri": uri}, {"uri": f"file://{bench.root}/out?protocol={format}"}])

    assert 0 == status.totals.dead_letters
    in_files = sorted(bench.messages(), key=lambda m: m["value"])
    in_queues = sorted(received(rocketmq, topic), key=lambda m: m.body)
    assert [m["value"] for m in in_files if m["value"] is not None] == [m.body for m in in_queues]
    assert {"orders", "items"} == {m.tags for m in in_queues}
    assert all(m.keys for m in in_queues)


def test_rows_are_in_order_on_one_queue_by_their_key(bench: Bench, rocketmq: Server) -> None:
    bench.put("a.jsonl", *changes(20, 5))

    run(
        bench, f"{rocketmq.uri('ordered')}protocol=canal-json&partition=primary-key&partition-num=4"
    )

    messages = received(rocketmq, "ordered")
    assert {(t, str(id)): [*range(5)] for t in ("orders", "items") for id in range(20)} == by_row(
        messages
    )
    assert {0, 1, 2, 3} == {m.queue for m in messages}
    assert {str(id) for id in range(20)} == {m.keys for m in messages}


def test_ddl_goes_to_every_queue(bench: Bench, rocketmq: Server) -> None:
    statement = "ALTER TABLE orders ADD COLUMN note TEXT"
    bench.put("a.jsonl", change("orders", 1, 0), ddl(statement), change("orders", 1, 1))

    run(bench, f"{rocketmq.uri('with-ddl')}protocol=open-protocol&partition-num=3")

    messages = received(rocketmq, "with-ddl")
    sent = [m for m in messages if statement.encode() in m.body]
    assert [0, 1, 2] == [m.queue for m in sent]
    assert {"orders"} == {m.tags for m in sent}
    # The key has frames, and is no text.
    assert all(m.properties["headgate-key"].startswith("base64:") for m in messages)
    assert {None} == {m.keys for m in messages}


def test_a_watermark_goes_to_every_queue_behind_the_changes_before_it(
    bench: Bench, rocketmq: Server
) -> None:
    bench.put("a.jsonl", *(ticdc(n, n) for n in range(1, 7)), watermark(6), ticdc(7, 7))

    uri = rocketmq.uri("with-watermarks")
    run(
        bench,
        f"{uri}protocol=canal-json:ticdc&enable-tidb-extension=true"
        "&partition=index-value&partition-num=3",
    )

    queues: dict[int, list[str]] = {}
    for message in received(rocketmq, "with-watermarks"):
        body = json.loads(message.body)
        row = body["data"][0]["id"] if body["data"] else str(body["_tidb"]["watermarkTs"] - TSO)
        queues.setdefault(message.queue, []).append(f"{body['type']} {row}")
    assert [0, 1, 2] == sorted(queues)
    for each in queues.values():
        assert {"INSERT 7"} >= set(each[each.index("TIDB_WATERMARK 6") + 1 :])
    assert {f"INSERT {n}" for n in range(1, 8)} | {"TIDB_WATERMARK 6"} == {
        name for each in queues.values() for name in each
    }


def test_topics_are_created_by_table_and_existing_ones_keep_their_queues(
    bench: Bench, rocketmq: Server
) -> None:
    rocketmq.create_topic("by-orders", 2)
    bench.put("a.jsonl", *changes(8, 1))

    uri = f"rocketmq://{rocketmq.name_server}?topic=by-%7Btable%7D&protocol=canal-json:ticdc"
    run(bench, f"{uri}&partition=index-value&partition-num=4")

    assert [2, 4] == [len(rocketmq.queues(f"by-{t}")) for t in ("orders", "items")]
    assert [8, 8] == [len(received(rocketmq, f"by-{t}")) for t in ("orders", "items")]


def test_a_topic_that_no_name_server_takes_makes_dead_letters(
    bench: Bench, rocketmq: Server
) -> None:
    bench.put("a.jsonl", change("orders", 1, 0), change("or.ders", 2, 0))

    uri = f"rocketmq://{rocketmq.name_server}?topic=dead-%7Btable%7D&protocol=canal-json"
    run(bench, uri)

    assert 1 == len(received(rocketmq, "dead-orders"))
    assert ["refused-topic"] == rejected(bench)


def test_a_message_that_is_too_large_is_a_dead_letter_and_the_largest_is_not(
    bench: Bench, rocketmq: Server
) -> None:
    from headgate.sinks.rocketmq import FRAME, MAX_BYTES

    room = MAX_BYTES - FRAME - 200
    bench.put("a.jsonl", *(wide(id, size) for id, size in enumerate((room, MAX_BYTES, 10))))

    run(bench, f"{rocketmq.uri('large')}protocol=canal-json&partition-num=1")

    assert ["0", "2"] == [m.keys for m in received(rocketmq, "large")]
    assert ["too-large"] == rejected(bench)


def wide(id: int, size: int) -> bytes:
    message = json.loads(change("orders", id, 0))
    message["data"][0]["note"] = ""
    message["mysqlType"]["note"], message["sqlType"]["note"] = "longtext", 2005
    message["data"][0]["note"] = "x" * (size - len(json.dumps(message, separators=(",", ":"))))
    return json.dumps(message).encode()


def batch() -> Batch:
    return Batch(0, SourceRange({"t": {"0": (0, 1)}}), lambda: None)


def write(spark: SparkSession, uri: str, message: dict[str, Any]) -> None:
    sink = parse_sink(f"{uri}protocol=canal-json")
    writer = sink.connector.open(spark, Target("job", sink.name, sink.options, {}))
    topic = str(sink.options["topic"])
    writer.write(batch(), [step_of(spark, [{"topic": topic, **message}])], [topic])


MESSAGE = {"key": b"7", "value": b"{}", "partition": 0, "table": "orders"}


def test_headers_become_properties(spark: SparkSession, rocketmq: Server) -> None:
    headers = to_text([("trace", b"1"), ("DELAY", b"3"), ("bytes", b"\xff")])
    write(spark, rocketmq.uri("headers"), {**MESSAGE, "id": "a", "headers": headers})

    (message,) = rocketmq.consume("headers")
    kept = json.loads(message.properties.pop("headgate-headers"))
    assert ["DELAY", "bytes"] == [header["key"] for header in kept]
    assert {"trace": "1", "headgate-id": "a"} == message.properties
    assert ("7", "orders") == (message.keys, message.tags)


def test_a_large_message_arrives_byte_for_byte(spark: SparkSession, rocketmq: Server) -> None:
    value = Random(5).randbytes(2_000_003)

    write(spark, rocketmq.uri("large-bytes"), {**MESSAGE, "value": value})

    assert [value] == [message.body for message in rocketmq.consume("large-bytes")]


def test_a_long_table_name_and_many_headers_stop_no_job(bench: Bench, rocketmq: Server) -> None:
    many = [{"key": f"H{n}", "value": b""} for n in range(2_000)]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([None, many, many[:500]], kind)
    changes = (change(name, id, 0) for id, name in enumerate(("t" * 40_000, "orders", "orders")))
    bench.put("a.parquet", *changes, headers=headers)

    run(bench, f"{rocketmq.uri('properties')}protocol=canal-json&partition-num=1")

    messages = received(rocketmq, "properties")
    assert [("0", None), ("2", "orders")] == [(m.keys, m.tags) for m in messages]
    kept = json.loads(messages[1].properties["headgate-headers"])
    assert [each["key"] for each in many[:500]] == [each["key"] for each in kept]
    assert ["too-large"] == rejected(bench)


def test_no_secret_is_in_spark_s_plans(spark: SparkSession, rocketmq_acl: Server) -> None:
    topic = rocketmq_acl.create_topic("plans", 1)
    sink = parse_sink(
        f"rocketmq://{':'.join(ADMIN)}@{rocketmq_acl.name_server}/{topic}?protocol=canal-json"
    )
    writer: Any = sink.connector.open(spark, Target("job", sink.name, sink.options, {}))
    frame = step_of(spark, [{**MESSAGE, "topic": topic}])
    seen: list[str] = []
    original = type(frame).mapInArrow

    def looking(self: Any, *given: Any, **named: Any) -> Any:
        found = original(self, *given, **named)
        seen.append(found._jdf.queryExecution().toString())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(frame), "mapInArrow", looking)
        writer.write(batch(), [frame], [topic])

    assert seen
    assert all(ADMIN[1] not in plan for plan in seen)
    assert 1 == len(rocketmq_acl.consume(topic))


# A broker that is not there, for a while or at all


def test_a_broker_killed_in_the_middle_loses_nothing(spark: SparkSession, own: Server) -> None:
    rows, keys = 30_000, 60
    topic = own.create_topic("killed", 3)
    sink = parse_sink(f"{own.uri(topic)}protocol=canal-json&partition-num=3&timeout=1s")
    writer = sink.connector.open(spark, Target("job", sink.name, sink.options, {}))
    frame = step_of(
        spark,
        (
            {
                "key": str(n % keys).encode(),
                "value": b"x" * 500,
                "id": str(n),
                "partition": n % 3,
                "topic": topic,
                "table": "orders",
            }
            for n in range(rows)
        ),
    )
    before: list[int] = []

    def kill() -> None:
        while not before or before[-1] < rows / 20:
            before.append(own.client.max_offset(topic, own.queues(topic)[0]))
        own.kill_broker()
        time.sleep(1)
        own.start_broker()

    killer = threading.Thread(target=kill)
    killer.start()
    writer.write(batch(), [frame], [topic])
    killer.join()

    assert before[-1] < rows / 3, "the broker was killed too late"
    by_key: dict[str, list[int]] = {}
    for message in own.consume(topic):
        by_key.setdefault(str(message.keys), []).append(int(message.properties["headgate-id"]))
    without_copies = {key: list(dict.fromkeys(ids)) for key, ids in by_key.items()}
    assert {str(key): [*range(key, rows, keys)] for key in range(keys)} == without_copies


def test_a_new_topic_waits_for_a_broker_that_is_away(spark: SparkSession, own: Server) -> None:
    sink = parse_sink(f"{own.uri('made-later')}protocol=canal-json&partition-num=1&timeout=1s")
    writer = sink.connector.open(spark, Target("job", sink.name, sink.options, {}))
    own.kill_broker()
    starter = threading.Timer(3, own.start_broker)
    starter.start()
    frame = step_of(spark, [{**MESSAGE, "topic": "made-while-away"}])
    writer.write(batch(), [frame], ["made-while-away"])
    starter.join()

    assert [b"{}"] == [m.body for m in own.consume("made-while-away")]


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    with Server() as found:
        yield found


def check(uri: str, tmp_path: Path, spark: SparkSession) -> Any:
    sink = parse_sink(f"{uri}protocol=canal-json")
    return sink.connector.check(spark, Target("", sink.name, sink.options, {})).facts


def test_check_says_how_many_queues_there_are(
    tmp_path: Path, spark: SparkSession, rocketmq: Server
) -> None:
    rocketmq.create_topic("checked", 5)

    assert {"topics": {"checked": 5}} == check(rocketmq.uri("checked"), tmp_path, spark)
    assert {"topics": {}} == check(rocketmq.uri("not-there-yet"), tmp_path, spark)


def test_check_names_an_address_that_does_not_answer(tmp_path: Path, spark: SparkSession) -> None:
    port = free_ports(1)[0]
    started = time.monotonic()
    with pytest.raises(UsageError, match=f"rocketmq://127.0.0.1:{port}: no answer"):
        check(f"rocketmq://127.0.0.1:{port}/cdc?", tmp_path, spark)
    assert time.monotonic() - started < 10


def test_check_names_a_topic_that_is_missing(
    tmp_path: Path, spark: SparkSession, rocketmq: Server
) -> None:
    with pytest.raises(UsageError, match=r"no topic missing; .*auto-create-topic=true"):
        check(f"{rocketmq.uri('missing')}auto-create-topic=false&", tmp_path, spark)


# Credentials and TLS


def test_credentials_are_needed_and_permissions_are_checked(
    tmp_path: Path, spark: SparkSession, rocketmq_acl: Server
) -> None:
    rocketmq_acl.create_topic("guarded", 2)
    rocketmq_acl.create_topic("denied", 2)
    rocketmq_acl.create_user("reader", "reader-secret", {"guarded": "Pub"})
    server = rocketmq_acl.name_server

    allowed = f"rocketmq://reader:reader-secret@{server}/guarded?partition-num=2&"
    assert {"topics": {"guarded": 2}} == check(allowed, tmp_path, spark)
    write(spark, allowed, MESSAGE)
    assert [b"{}"] == [m.body for m in rocketmq_acl.consume("guarded")]

    for uri in (
        f"rocketmq://reader:reader-secret@{server}/denied?",
        f"rocketmq://reader:wrong-secret@{server}/guarded?",
        f"rocketmq://{server}/guarded?",
    ):
        with pytest.raises(UsageError) as caught:
            check(uri, tmp_path, spark)
        assert "access-key" in str(caught.value)
        assert "secret" not in str(caught.value).replace("secret-key", "")
        assert "\n" not in str(caught.value)


def test_a_batch_that_may_not_be_written_fails_at_once(
    spark: SparkSession, rocketmq_acl: Server
) -> None:
    rocketmq_acl.create_topic("not-for-me", 1)
    rocketmq_acl.create_user("nobody", "nobody-secret", {})
    uri = f"rocketmq://nobody:nobody-secret@{rocketmq_acl.name_server}/not-for-me?partition-num=1&"

    started = time.monotonic()
    with pytest.raises(HeadgateError, match="access-key") as caught:
        write(spark, uri, MESSAGE)
    assert "nobody-secret" not in str(caught.value)
    assert time.monotonic() - started < 30


def test_tls_with_the_servers_authority(spark: SparkSession, rocketmq: Server) -> None:
    uri = f"{rocketmq.uri('by-tls')}ca={rocketmq.ca}&partition-num=1&"
    write(spark, uri, MESSAGE)

    assert [b"{}"] == [m.body for m in rocketmq.consume("by-tls")]


def test_tls_refuses_a_server_of_another_authority(
    tmp_path: Path, spark: SparkSession, rocketmq: Server
) -> None:
    with pytest.raises(UsageError, match="no answer"):
        check(f"{rocketmq.uri('by-tls')}enable-tls=true&timeout=2s&", tmp_path, spark)
