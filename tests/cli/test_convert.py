"""`headgate convert` and `headgate.encode` as a user calls them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command_line import run, run_process
from messages import canal, maxwell
from pyspark.sql import DataFrame, SparkSession

import headgate
from headgate.arrow.conversion import Converter
from headgate.cli.on_spark import write_records
from headgate.core.errors import UsageError
from headgate.fastpath.convert import converter

SCHEMA = "CREATE TABLE shop.t (id INT PRIMARY KEY, size ENUM('S','M','L'));\n"
TICDC = (
    b'{"id":0,"database":"shop","table":"t","pkNames":["id"],"isDdl":false,"type":"INSERT",'
    b'"es":1,"ts":2,"sql":"","sqlType":{"id":4,"size":4},"mysqlType":{"id":"int","size":"enum"},'
    b'"old":null,"data":[{"id":"1","size":"2"}]}'
)


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    path = tmp_path / "feed.jsonl"
    path.write_bytes(b"\n".join([canal(), b'{"oops', maxwell(), canal(id=8)]) + b"\n")
    return path


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_convert_writes_lines(feed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = run("convert", "--to", "maxwell", str(feed), str(out), "--errors", str(tmp_path / "e"))

    assert 3 == done.returncode
    assert ["insert", "insert", "insert"] == [m["type"] for m in lines(out)]
    assert {"id": 1, "amount": 1.1, "note": None} == lines(out)[0]["data"]
    assert b"1 message could not be converted" in done.stderr
    assert [b'{"oops'] == pq.read_table(tmp_path / "e").column("value").to_pylist()


def test_convert_prints_to_standard_output(feed: Path) -> None:
    done = run("convert", "--to", "canal-json:tencent", "-", "-", stdin=canal())

    assert 0 == done.returncode
    assert [{"id": 1, "amount": 1.1, "note": None}] == json.loads(done.stdout)["data"]


def test_convert_writes_parquet_with_kafkas_columns(feed: Path, tmp_path: Path) -> None:
    check_parquet(feed, tmp_path / "out.parquet")


def test_a_directory_of_parquet_is_read_by_spark(
    spark: SparkSession, feed: Path, tmp_path: Path
) -> None:
    check_parquet(feed, tmp_path / "out")


def check_parquet(feed: Path, out: Path) -> None:
    run("convert", "--to", "open-protocol", str(feed), str(out), "--option", "partition-num=3")
    table = pq.read_table(out)

    assert ["key", "value", "partition", "topic", "headers"] == table.column_names
    assert table.num_rows > 0
    again = run("decode", str(out), "--format", "open-protocol")
    assert 3 == len(again.stdout.splitlines())


def test_binary_has_no_lines(feed: Path, tmp_path: Path) -> None:
    done = run("convert", "--to", "open-protocol", str(feed), str(tmp_path / "out.jsonl"))

    assert 2 == done.returncode
    assert b"open-protocol is binary" in done.stderr


def test_report_says_what_was_lost_and_how_often(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(TICDC + b"\n" + TICDC + b"\n")
    quiet = run("convert", "--to", "debezium", str(source), "-")
    told = run("convert", "--from", "canal-json:ticdc", "--to", "debezium", str(source), "-",
               "--report")  # fmt: skip

    assert b"cannot represent everything" in quiet.stderr
    counts = {line.split()[1]: line.split()[0] for line in told.stderr.splitlines()[1:]}
    assert b"2" == counts[b"enum-labels"]
    assert b"0" == counts[b"watermark"]  # possible, not met


def test_a_schema_gives_labels(tmp_path: Path) -> None:
    source, schema = tmp_path / "in.jsonl", tmp_path / "shop.sql"
    source.write_bytes(TICDC + b"\n")
    schema.write_text(SCHEMA)
    done = run("convert", "--to", "debezium", str(source), "-", "--schema", str(schema), "--report",
               "--option", "schemas-enable=false")  # fmt: skip

    assert "M" == json.loads(done.stdout)["after"]["size"]
    assert b"enum-labels" not in done.stderr
    decoded = run("decode", str(source), "--schema", str(schema))
    event = json.loads(decoded.stdout)
    assert ("M", "enum('S','M','L')") == (event["after"]["size"], event["types"]["size"]["mysql"])


def test_ddl_in_the_stream_gives_labels(tmp_path: Path) -> None:
    ddl = json.dumps(
        {"id": 0, "database": "shop", "table": "t", "pkNames": None, "isDdl": True,
         "type": "CREATE", "es": 1, "ts": 1, "sql": SCHEMA, "sqlType": None,
         "mysqlType": None, "data": None, "old": None}
    ).encode()  # fmt: skip
    done = run("convert", "--to", "maxwell", "-", "-", stdin=ddl + b"\n" + TICDC + b"\n")

    assert "M" == json.loads(done.stdout.splitlines()[-1])["data"]["size"]


def test_strict_makes_dead_letters_of_what_would_lose(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(TICDC + b"\n")
    dead = tmp_path / "dead"
    done = run("convert", "--to", "debezium", "--strict", str(source), "-", "--errors", str(dead))

    assert (3, b"") == (done.returncode, done.stdout)
    (letter,) = pq.read_table(dead).to_pylist()
    assert (TICDC, "lossy") == (letter["value"], letter["code"])
    assert "labels" in letter["message"]


def test_a_named_source_with_a_schema_is_reported(tmp_path: Path) -> None:
    source, schema = tmp_path / "in.jsonl", tmp_path / "shop.sql"
    source.write_bytes(TICDC + b"\n")
    schema.write_text(SCHEMA)
    done = run("convert", "--from", "canal-json:ticdc", "--to", "maxwell", str(source), "-",
               "--schema", str(schema), "--report")  # fmt: skip

    assert 0 == done.returncode
    assert b"lost in conversion to maxwell (count, code, reason)" in done.stderr
    assert b"enum-labels" not in done.stderr  # the schema has them


def test_a_strict_report_counts_what_was_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(TICDC + b"\n")
    refused = run("convert", "--to", "debezium", "--strict", "--report", str(source), "-")
    damaged = run("convert", "--to", "maxwell", "--report", "-", "-", stdin=b"{")

    assert re.search(rb"1  enum-labels .*\n.*1 message could not be", refused.stderr, re.DOTALL)
    assert b"no loss" not in refused.stderr
    assert b"no loss in the messages that were written" in damaged.stderr


@pytest.mark.parametrize("name", ["out.csv", "out.avro"])
def test_an_output_of_no_known_kind_is_refused(feed: Path, tmp_path: Path, name: str) -> None:
    done = run("convert", "--to", "maxwell", str(feed), str(tmp_path / name))

    assert 2 == done.returncode
    assert b".txt for lines, .parquet, or with a /" in done.stderr
    assert not (tmp_path / name).exists()
    run("convert", "--to", "maxwell", str(feed), f"{tmp_path / name}/")
    assert 3 == pq.read_table(tmp_path / name).num_rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "debezum"], "did you mean 'debezium'"),
        (["--to", "auto"], "must be named"),
        (["--to", "canal-json", "--option", "enable-tidb-extension=true"], "canal-json:ticdc"),
        (["--to", "canal-json", "--option", "topik=x"], "did you mean 'topic'"),
        (["--to", "canal-json", "--option", "topic={db}"], "{database}, {schema} and {table}"),
        (["--to", "canal-json", "--option", "partition=table"], "partition-num"),
    ],
)
def test_wrong_calls_are_refused(feed: Path, arguments: list[str], said: str) -> None:
    done = run("convert", *arguments, str(feed), "-")

    assert 2 == done.returncode
    assert said in done.stderr.decode()


@pytest.mark.spark
def test_spark_writes_what_this_process_writes(feed: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    to = ("convert", "--to", "canal-json:ticdc", "--report")
    one = run_process(*to, str(feed), str(here), "--errors", str(tmp_path / "e1"))
    two = run_process(
        *to, str(feed), str(there), "--errors", str(tmp_path / "e2"), "--master", "local[1]"
    )
    parts = [p for p in there.iterdir() if p.name.startswith("part-")]

    assert here.read_bytes() == b"".join(p.read_bytes() for p in sorted(parts))
    assert one.returncode == two.returncode
    assert one.stderr.splitlines() == [
        line.replace(b"e2", b"e1") for line in two.stderr.splitlines() if b"WARNING" not in line
    ]
    assert pq.read_table(tmp_path / "e1").to_pylist() == pq.read_table(tmp_path / "e2").to_pylist()


def test_what_lines_cannot_hold_is_reported(feed: Path, tmp_path: Path) -> None:
    check_reported(feed, tmp_path)


def test_what_lines_cannot_hold_is_reported_by_spark(
    spark: SparkSession, feed: Path, tmp_path: Path
) -> None:
    check_reported(feed, tmp_path, "--master", "local[2]")


def check_reported(feed: Path, tmp_path: Path, *master: str) -> None:
    feed.write_bytes(canal(type="DELETE") + b"\n")
    out = str(tmp_path / "out.jsonl")
    done = run("convert", "--to", "debezium", str(feed), out, "--report", *master)
    counts = {line.split()[1]: line.split()[0] for line in done.stderr.splitlines()[-8:]}

    assert (b"2", b"1") == (counts[b"message-keys"], counts[b"null-values"])


@pytest.mark.parametrize("keep", [False, True])
def test_spark_converts_once_also_where_there_are_dead_letters(
    spark: SparkSession, feed: Path, tmp_path: Path, keep: bool
) -> None:
    calls, errors = tmp_path / "calls", tmp_path / "errors"

    def make() -> Converter:
        with calls.open("a") as file:
            file.write("read\n")
        return converter("auto", {}, "maxwell", {})

    out = str(tmp_path / "out")
    lost, counts = write_records([str(feed)], None, out, True, str(errors) if keep else None, make)

    assert "read\n" == calls.read_text()
    assert [("malformed-json", 1)] == [(code, n) for (code, _), n in counts.items()]
    assert lost
    assert 3 == spark.read.text(out).count()
    assert not keep or [b'{"oops'] == pq.read_table(errors).column("value").to_pylist()


def test_cached_events_are_not_decoded_again(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(canal())
    events = headgate.decode(spark.read.text(str(source)))
    fresh = headgate.rows(events, "shop.orders", "id BIGINT")
    events.cache().count()
    try:
        source.write_bytes(
            canal(data=[{"id": "2", "amount": "1.10", "note": None}])
        )  # another message, as Kafka would have by now
        assert [2] == [row.id for row in fresh.collect()]
        assert [1] == [
            row.id for row in headgate.rows(events, "shop.orders", "id BIGINT").collect()
        ]
        (record,) = headgate.encode(events, "maxwell").collect()
        assert 1 == json.loads(record.value)["data"]["id"]
    finally:
        events.unpersist()


def messages(spark: SparkSession, *values: bytes) -> DataFrame:
    return spark.createDataFrame([(bytearray(v),) for v in values], "value binary")


def test_encode_gives_kafkas_columns(spark: SparkSession) -> None:
    events = headgate.decode(messages(spark, canal(), b'{"oops'))
    out = headgate.encode(events, "debezium", topic="cdc.{database}.{table}", schemas_enable=False)

    assert ["key", "value", "partition", "topic", "headers", "losses"] == out.columns
    (row,) = out.collect()
    assert ("cdc.shop.orders", b'{"id":1}') == (row.topic, bytes(row.key))
    assert "c" == json.loads(row.value)["op"]


def test_encode_is_the_same_in_one_pass_and_through_the_event_table(spark: SparkSession) -> None:
    events = headgate.decode(messages(spark, canal(), maxwell(), canal(id=8)))
    table = events.where("kind = 'row'")

    for spec in ("canal-json", "maxwell", "debezium", "open-protocol"):
        one = headgate.encode(events, spec).collect()
        other = headgate.encode(table, spec).collect()
        assert one == other


def test_text_is_read_as_its_bytes(spark: SparkSession) -> None:
    sent = [canal(data=[{"id": "1", "name": "北京"}]), canal(type="DELETE"), "ü".encode()]
    bare = headgate.decode(messages(spark, *sent))
    text = headgate.decode(spark.createDataFrame([(s.decode(),) for s in sent], "value string"))

    assert bare.collect() == text.collect()
    assert [None, None, "ü".encode()] == [event.raw for event in text.collect()]
    for spec in ("canal-json", "open-protocol"):
        assert headgate.encode(bare, spec).collect() == headgate.encode(text, spec).collect()


def test_what_encode_leaves_out_is_among_the_dead_letters(spark: SparkSession) -> None:
    events = headgate.decode(messages(spark, canal(), b'{"oops', TICDC))
    told = {"strict": True}
    kept = headgate.encode(events, "maxwell", **told).count()
    dead = headgate.dead_letters(events, "maxwell", **told).collect()

    assert (0, 3) == (kept, len(dead))
    assert {"lossy", "malformed-json"} == {row.error.code for row in dead}
    assert b'{"oops' == next(bytes(row.raw) for row in dead if row.kind == "invalid")


def test_encode_refuses_what_is_no_event_table(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="not an event table"):
        headgate.encode(spark.range(1), "maxwell")


def test_encode_works_on_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes(canal() + b"\n" + maxwell() + b"\n")
    stream = spark.readStream.text(str(tmp_path / "in"))
    out = headgate.encode(headgate.decode(stream), "canal-json:ticdc", enable_tidb_extension=True)
    query = (
        out.selectExpr("CAST(value AS STRING)").writeStream.format("text")
        .option("checkpointLocation", str(tmp_path / "state"))
        .trigger(availableNow=True).start(str(tmp_path / "out"))
    )  # fmt: skip
    query.awaitTermination(60)

    found = spark.read.text(str(tmp_path / "out")).collect()
    assert ["shop", "shop"] == [json.loads(row.value)["database"] for row in found]


def test_losses_tells_of_a_pair_before_any_run() -> None:
    found = {loss.code for loss in headgate.losses("canal-json:ticdc", "debezium")}

    assert {"watermark", "enum-labels", "zero-dates"} <= found
    assert "enum-labels" not in {
        loss.code for loss in headgate.losses("canal-json:ticdc", "debezium", schema=True)
    }
