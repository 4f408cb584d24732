"""Jobs that write to DataHub: every format, faults, what `headgate check` says."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from datahub_changes import CHANGES, ROWS, amounts, changes, expected, put_files, sink_uri
from datahub_server import ACCESS_ID, ACCESS_KEY, PROJECT, READ_ONLY, DataHubServer, Fault
from job_runs import Bench
from messages import canal
from oms_formats import OMS_FORMATS
from pyspark.sql import SparkSession
from ticdc_messages import TSO, ddl, ticdc, watermark

from headgate.arrow.headers import ID_HEADER
from headgate.cli.main import cli
from headgate.config.uris import parse_sink
from headgate.core.errors import HeadgateError, UsageError
from headgate.formats import load, registered
from headgate.sinks.base import Target
from headgate.sinks.datahub import DataHubSink
from headgate.sinks.datahub.sender import RESULT_DDL, task
from headgate.sinks.datahub.topics import DataHubTopics

FEATURED = ["debezium", "canal-json:ticdc", "open-protocol"]
"""Formats with keys, with rules for partitions, and whose rows are joined into messages."""


@pytest.fixture
def server(datahub: DataHubServer) -> DataHubServer:
    """The server of all tests, told nothing."""
    datahub.faults, datahub.token = iter(()), None
    return datahub


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession) -> Bench:
    return Bench(tmp_path, spark)


def test_the_list_of_formats_is_the_vendors() -> None:
    """Every dialect of OMS's but those that it writes to Kafka only."""
    oms = {
        f"{name}:{dialect}"
        for name in registered()
        for dialect, about in load(name).dialects.items()
        if "OceanBase" in about + load(name).summary
        if (encoding := load(name).encoding) and not encoding.kafka_only
    }
    assert {s if ":" in s else f"{s}:{next(iter(load(s).dialects))}" for s in OMS_FORMATS} == oms


def test_every_format_arrives_as_it_is_written_to_files(
    server: DataHubServer, bench: Bench
) -> None:
    """Values, ids and, within a shard, order are those of a sink of files beside it."""
    messages = [*changes(), ddl(CHANGES + 1, "ALTER TABLE shop.orders ADD c int")]
    bench.put("a.parquet", *messages, headers=headers(len(messages)))
    sinks = []
    for n, spec in enumerate((*OMS_FORMATS, *FEATURED)):
        server.create_topic(f"format_{n}", shards=3)
        sinks += [
            {"uri": f"{server.uri(f'format_{n}')}protocol={spec}"},
            {"uri": f"file://{bench.root}/out-{n}?protocol={spec}&partition-num=3"},
        ]

    bench.run(sinks=sinks)

    for n, spec in enumerate((*OMS_FORMATS, *FEATURED)):
        files = [row for row in bench.messages(f"out-{n}") if row["value"] is not None]
        written = {id_of(row): row["value"] for row in files}
        order = {name: place for place, name in enumerate(written)}
        arrived = server.records(f"format_{n}")
        assert written == {r.attributes[ID_HEADER]: r.value for r in arrived}, spec
        assert len(written) == len(arrived), spec
        for records in server.by_shard(f"format_{n}").values():
            places = [order[r.attributes[ID_HEADER]] for r in records]
            assert sorted(places) == places, spec
        if spec != "open-protocol":  # whose messages have rows of several
            rows = [r for r in arrived if "." not in r.attributes[ID_HEADER]]
            assert "t-7" in {r.attributes.get("trace") for r in rows}, spec


def headers(count: int) -> pa.Array:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.array([[{"key": "trace", "value": b"t-%d" % n}] for n in range(count)], kind)


def id_of(row: dict[str, Any]) -> str:
    return {h["key"]: h["value"] for h in row["headers"]}[ID_HEADER].decode()


def test_a_key_stays_on_its_shard_and_its_changes_in_order(
    server: DataHubServer, bench: Bench
) -> None:
    server.create_topic("keys", shards=4)
    messages = changes()
    bench.put("a.jsonl", *messages)

    bench.run(sinks=[{"uri": sink_uri(server, "keys")}])

    by_shard = [records for records in server.by_shard("keys").values() if records]
    assert len(by_shard) > 1
    rows = [amounts(records) for records in by_shard]
    assert sum(map(len, rows)) == ROWS  # none is on two
    assert expected(messages) == {row: found for each in rows for row, found in each.items()}


def test_ddl_that_a_format_broadcasts_reaches_every_active_shard(
    server: DataHubServer, bench: Bench
) -> None:
    server.create_topic("broadcast", shards=2)
    server.split("broadcast", "0")
    bench.put("a.jsonl", ticdc(1, 1), ddl(2, "ALTER TABLE shop.orders ADD c int"))

    bench.run(sinks=[{"uri": sink_uri(server, "broadcast", "open-protocol")}])

    got = {n: [b"ALTER" in r.value for r in each].count(True)
           for n, each in server.by_shard("broadcast").items()}  # fmt: skip
    assert {"0": 0, "1": 1, "2": 1, "3": 1} == got


def test_a_watermark_reaches_every_active_shard_behind_the_changes_before_it(
    server: DataHubServer, bench: Bench
) -> None:
    server.create_topic("watermarks", shards=3)
    bench.put("a.jsonl", *(ticdc(n, n) for n in range(1, 7)), watermark(6), ticdc(7, 7))

    format = "canal-json:ticdc&enable-tidb-extension=true&partition=index-value"
    bench.run(sinks=[{"uri": sink_uri(server, "watermarks", format)}])

    for records in server.by_shard("watermarks").values():
        bodies = [json.loads(record.value) for record in records]
        (at,) = [n for n, body in enumerate(bodies) if body["type"] == "TIDB_WATERMARK"]
        assert TSO + 6 == bodies[at]["_tidb"]["watermarkTs"]
        assert all(body["_tidb"]["commitTs"] > TSO + 6 for body in bodies[at + 1 :])
    assert 3 == len(server.by_shard("watermarks"))
    assert 7 + 3 == len(server.records("watermarks"))


def faults(seed: int) -> Iterator[Fault | None]:
    """Half of all requests meet something."""
    chance = random.Random(seed)
    kinds: list[Fault] = ["throttle", "error", "gateway", "half", "lost"]
    yield None
    yield "split"
    while True:
        yield chance.choice(kinds) if chance.random() < 0.5 else None


def test_faults_and_a_split_in_the_middle_of_a_job_lose_nothing_and_keep_the_order(
    server: DataHubServer, bench: Bench
) -> None:
    server.create_topic("troubled", shards=3)
    messages = changes(1_000)
    put_files(bench.root / "in", messages, 5)
    server.faults = faults(7)

    bench.run(sinks=[{"uri": sink_uri(server, "troubled")}], pipeline={"max_messages": 10_000})

    assert len(server.active("troubled")) == 4
    assert expected(messages) == amounts(server.records("troubled"))


def test_a_message_that_is_too_large_is_a_dead_letter(server: DataHubServer, bench: Bench) -> None:
    server.create_topic("sizes")
    large = canal(data=[{"id": "2", "amount": "1.10", "note": "n" * 20_000}])
    bench.put("a.jsonl", canal(), large)

    uri = f"{sink_uri(server, 'sizes')}&max-message-bytes=10000"
    status = bench.run(sinks=[{"uri": uri}])

    assert 1 == len(server.values("sizes"))
    assert [{"too-large": 1}] == list(status.totals.rejected.values())


def test_topics_by_table_are_created_and_names_that_cannot_be_are_dead_letters(
    server: DataHubServer, bench: Bench
) -> None:
    bench.put("a.jsonl", *(canal(table=table) for table in ("orders", "items", "no-name", "items")))
    uri = sink_uri(server, "by_table_{table}")

    status = bench.run(sinks=[{"uri": f"{uri}&partition-num=2"}])

    made = {n: len(t.shards) for n, t in server.topics.items() if n.startswith("by_table_")}
    assert {"by_table_items": 2, "by_table_orders": 2} == made
    assert 1 == len(server.values("by_table_orders"))
    assert 2 == len(server.values("by_table_items"))
    assert [{"refused-topic": 1}] == list(status.totals.rejected.values())


def test_an_account_that_may_not_write_stops_the_job_in_one_line_and_the_batch_is_repeated(
    server: DataHubServer, bench: Bench
) -> None:
    server.create_topic("locked", shards=2)
    bench.put("a.jsonl", *changes(40))
    uri = sink_uri(server, "locked")

    with pytest.raises(HeadgateError) as caught:
        bench.run(sinks=[{"uri": uri.replace(ACCESS_ID, READ_ONLY)}])
    assert re.fullmatch(
        r"datahub://\S+: shard \d of topic cdc_project/locked: DataHub says NoPermission; check .*",
        str(caught.value),
    )
    assert [] == server.values("locked")

    bench.run(sinks=[{"uri": uri}])
    assert expected(changes(40)) == amounts(server.records("locked"))


def test_a_format_that_oms_does_not_write_to_it_is_refused_unless_allowed(
    server: DataHubServer,
) -> None:
    for spec in ("maxwell", "maxwell:oms"):
        with pytest.raises(UsageError, match=r"write it to Kafka only.*allow-any-format=true"):
            parse_sink(f"{server.uri('t')}protocol={spec}")
        parse_sink(f"{server.uri('t')}protocol={spec}&allow-any-format=true")


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("datahub://h/project", "no account; add access-id"),
        ("datahub://h/project/a-b?access-id=a&access-key=b", "invalid topic name 'a-b'"),
        ("datahub://h/1p/t?access-id=a&access-key=b", "the URI has no project"),
        ("datahub://h,i/project/t?access-id=a&access-key=b", "DataHub has one endpoint"),
        ("datahub://a:b@h/project/t?access-id=a", "both before @ and in access-id"),
        ("datahub://a:b@h/project/t?ca=none.pem", "the file of ca cannot be read"),
        ("datahub://a:b@h/project/t?ca=x&enable-tls=false", "enable-tls is false, but ca"),
        ("datahub://a:b@h/project/t?lifecycle=8", "lifecycle: 8 is out of range"),
        ("datahub://a:b@h/project/t?max-message-bytes=4MB", "is out of range; a request"),
        ("datahub://a:b@h/project/t?compression=zstd", "unknown compression 'zstd'"),
        ("datahub://a:b@h/project/t?topic=u", "both in the path and in topic="),
    ],
)
def test_a_wrong_uri_is_refused_with_a_remedy(uri: str, reason: str) -> None:
    joined = f"{uri}{'&' if '?' in uri else '?'}protocol=debezium"
    with pytest.raises(UsageError, match=re.escape(reason)):
        parse_sink(joined)


def test_the_endpoint_is_https_unless_the_uri_says_otherwise() -> None:
    def endpoint(uri: str) -> str:
        connector = parse_sink(f"{uri}protocol=debezium").connector
        assert isinstance(connector, DataHubSink)
        return connector.connection.endpoint

    assert "https://dh.example.com:443" == endpoint("datahub://a:b@dh.example.com/project/t?")
    assert "http://h:80" == endpoint("datahub://a:b@h/project/t?enable-tls=false&")
    assert "http://h:8080" == endpoint("datahub://a:b@h:8080/project/t?enable-tls=false&")


# Secrets


def test_the_plan_of_what_workers_run_shows_no_secret(
    server: DataHubServer, spark: SparkSession
) -> None:
    server.create_topic("plans")
    sink = parse_sink(sink_uri(server, "plans"))
    connector = sink.connector
    assert isinstance(connector, DataHubSink)
    topics = DataHubTopics(connector, Target("job", sink.name, sink.options, {}))
    topics.ensure(["plans"])
    run = task(connector.connection, PROJECT, topics.shards, 1)

    frame: Any = spark.range(1).mapInArrow(run, RESULT_DDL)

    assert ACCESS_KEY not in frame._jdf.queryExecution().toString()
    assert ACCESS_KEY not in frame._jdf.queryExecution().logical().toJSON()
    assert ACCESS_KEY not in f"{sink} {connector} {connector.connection}"


# The command line


def check(source: Path, uri: str) -> str:
    """What `headgate check` says of a sink that is not as it should be."""
    result = CliRunner().invoke(cli, ["check", "--from", f"file://{source}", "--to", uri])
    assert isinstance(result.exception, HeadgateError), result.output
    said = str(result.exception)
    assert "\n" not in said
    assert ACCESS_KEY not in said
    return said


def test_check_says_in_one_line_what_is_missing(
    server: DataHubServer, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_bytes(canal() + b"\n")
    server.create_topic("right", shards=2)
    server.create_topic("typed", record_type="TUPLE")
    no_such = server.uri("right").replace(f":{server.port}/", ":9/")

    result = CliRunner().invoke(
        cli, ["check", "--json", "--from", f"file://{tmp_path}", "--to", sink_uri(server, "right")]
    )
    (writes,) = json.loads(result.stdout)["writes"]
    assert {"right": 2} == writes["topics"]
    assert "does not exist; create the project" in check(
        tmp_path, f"{server.uri('right', project='other')}protocol=debezium"
    )
    assert "topic cdc_project/none: it does not exist" in check(
        tmp_path, f"{server.uri('none')}auto-create-topic=false&protocol=debezium"
    )
    assert "record type is TUPLE" in check(tmp_path, sink_uri(server, "typed"))
    assert "says Unauthorized; check access-id" in check(
        tmp_path, f"{server.uri('right', key='wrong')}protocol=debezium"
    )
    assert "127.0.0.1:9 cannot be reached: Connection refused" in check(
        tmp_path, f"{no_such}protocol=debezium"
    )
