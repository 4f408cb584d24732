from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import events_of, run, run_process
from messages import canal, maxwell
from pyspark.sql import SparkSession
from s3_server import KEY, SECRET, S3Server

import headgate.cli.main
from headgate.formats import load
from headgate.spark.storage import Storage

CANAL_DIALECTS = ", ".join(sorted(load("canal-json").dialects)).encode()


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    path = tmp_path / "feed.jsonl"
    path.write_bytes(b"\n".join([canal(), b'{"oops', maxwell(), canal(id=8)]) + b"\n")
    return path


def test_decode_prints_one_object_per_event(feed: Path) -> None:
    done = run("decode", str(feed))

    assert 3 == done.returncode
    first, bad, *_ = events_of(done)
    assert {
        "kind": "row",
        "op": "insert",
        "database": "shop",
        "table": "orders",
        "key": ["id"],
        "after": {"id": "1", "amount": "1.10", "note": None},
        "types": {
            "id": {"mysql": "bigint(20)", "jdbc": -5},
            "amount": {"mysql": "decimal(12,2)", "jdbc": 3},
            "note": {"mysql": "varchar(20)", "jdbc": 12},
        },
        "event_time": "2020-05-13T12:38:35.000Z",
        "emit_time": "2020-05-13T12:38:35.477Z",
        "origin": {"format": "canal-json", "dialect": "canal"},
        "extra": {"id": "7"},
    } == first
    assert ("invalid", "malformed-json", "eyJvb3Bz") == (
        bad["kind"],
        bad["error"]["code"],
        bad["raw"],
    )


def test_decode_sums_up_the_dead_letters_on_stderr_and_keeps_them(
    spark: SparkSession, feed: Path, tmp_path: Path
) -> None:
    dead = tmp_path / "dead"
    done = run("decode", str(feed), "--errors", str(dead))

    assert b"1 message could not be decoded" in done.stderr
    assert b"malformed-json" in done.stderr
    (letter,) = pq.read_table(dead).to_pylist()
    assert (b'{"oops', "malformed-json") == (letter["value"], letter["code"])
    again = run("decode", str(dead))
    assert "eyJvb3Bz" == events_of(again)[0]["raw"]


def test_all_good_ends_with_zero(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_bytes(canal())

    assert 0 == run_process("decode", str(path)).returncode


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["decode", "x", "--format", "canal-jso"], b"did you mean 'canal-json'"),
        (["decode", "x", "--format", "canal-json:tidb"], b"known: " + CANAL_DIALECTS),
        (["decode", "nowhere.jsonl"], b"no such file"),
        (["decode", "x", "--option", "timezon=UTC"], b"did you mean 'timezone'"),
        (["decode", "x", "--timezone", "Mars/Olympus"], b"unknown timezone"),
        (["decode", "x", "--option", "strict=perhaps"], b"true or false"),
        (["decode", "x", "--option", "strict"], b"name=value"),
        (["decode"], b"Missing argument"),
        (["decod"], b"No such command"),
    ],
)
def test_a_wrong_call_ends_with_two_and_says_what_is_right(args: list[str], says: bytes) -> None:
    done = run(*args)

    assert 2 == done.returncode
    assert says in done.stderr
    assert b"Traceback" not in done.stderr


def test_out_writes_the_same_events_as_parquet(feed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    assert 3 == run("decode", str(feed), "--out", str(out)).returncode
    kinds = pq.read_table(out).column("kind").to_pylist()
    assert ["row", "invalid", "row", "row"] == kinds
    assert 2 == run("decode", str(feed), "--out", str(out)).returncode  # never among other files


@pytest.mark.spark
def test_spark_prints_what_the_process_prints(feed: Path) -> None:
    here = run_process("decode", str(feed))
    there = run_process("decode", str(feed), "--master", "local[2]")

    assert here.stdout == there.stdout
    assert here.returncode == there.returncode == 3
    assert here.stderr == there.stderr.removeprefix(
        b"WARNING: Using incubator modules: jdk.incubator.vector\n"
    )


def test_a_directory_of_every_kind_of_file_goes_through_spark_in_name_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_bytes(canal(id=1) + b"\r\n" + canal(id=2) + b"\n")
    pretty = json.dumps(json.loads(canal(id=3)), indent=2)
    (tmp_path / "b.json").write_text(pretty)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(canal(id=4)))
    with pa.CompressedOutputStream(str(tmp_path / "d.zst"), "zstd") as file:
        file.write(canal(id=5))
    pq.write_table(pa.table({"value": [canal(id=6)], "topic": ["t"]}), tmp_path / "e.parquet")
    (tmp_path / "_SUCCESS").write_bytes(b"")
    done = run("decode", str(tmp_path))

    assert 0 == done.returncode, done.stderr
    assert ["1", "2", "3", "4", "5", "6"] == [e["extra"]["id"] for e in events_of(done)]
    out = tmp_path.parent / "events"
    assert 0 == run("decode", str(tmp_path), "--out", str(out)).returncode
    assert 6 == pq.read_table(out).num_rows


def test_a_large_file_is_split_without_losing_or_doubling_a_line(tmp_path: Path) -> None:
    from headgate.sources.message_files import Split, read

    path = tmp_path / "lines"
    lines = [b"%d" % i * (i % 7 + 1) for i in range(1, 500)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    size = path.stat().st_size
    cuts = [*range(0, size, 37), size]
    parts = [Split(str(path), a, b) for a, b in pairwise(cuts)]

    found = [v for p in parts for b in read(p) for v in b.column("value").to_pylist()]
    assert lines == found


def test_standard_input(feed: Path) -> None:
    piped = run_process("decode", "-", stdin=feed.read_bytes())

    assert run("decode", str(feed)).stdout == piped.stdout


def test_a_printed_sample_with_comments_and_line_breaks_in_strings(tmp_path: Path) -> None:
    path = tmp_path / "sample.json"
    path.write_text(
        '{\n  "id": 0, // always 0\n  "database": "test",\n  "table": "",\n  "isDdl": true,\n'
        '  "type": "QUERY",\n  "sql": "create table t (\n  id int\n)",\n'
        '  "_tidb": {"commitTs": 163963309467037594,},\n}\n'
    )
    (event,) = events_of(run("decode", str(path)))

    assert ("ddl", "create table t (\n  id int\n)") == (event["kind"], event["ddl"])
    assert 163963309467037594 == event["commit_ts"]


def test_timezone_turns_local_timestamps_into_utc(tmp_path: Path) -> None:
    path = tmp_path / "local.jsonl"
    row = {"data": [{"t": "2024-01-01 08:00:00"}], "mysqlType": {"t": "timestamp"}}
    path.write_bytes(canal(**row))
    (event,) = events_of(run("decode", str(path), "--timezone", "Asia/Shanghai"))

    assert {"t": "2024-01-01 00:00:00"} == event["after"]


def test_strict_refuses_to_guess(tmp_path: Path) -> None:
    path = tmp_path / "ddl.jsonl"
    ddl = {"id": 0, "isDdl": True, "type": "ALTER", "sql": "alter table t add c int"}
    path.write_bytes(canal(**ddl, data=None, mysqlType=None, sqlType=None, pkNames=None))
    (event,) = events_of(run("decode", str(path), "--strict"))

    assert "ambiguous-dialect" == event["error"]["code"]
    assert "tencent or ticdc" in event["error"]["message"]


def test_detect_gives_a_verdict_per_file(feed: Path) -> None:
    done = run("detect", str(feed))

    assert 0 == done.returncode
    assert (
        f"{feed}: canal-json:canal, 4 messages (3 row); "
        "mixed in: 1 maxwell:maxwell, 1 invalid (malformed-json)\n"
    ) == done.stdout.decode()
    verdict = json.loads(run("detect", "--json", str(feed)).stdout)
    assert {"canal-json:canal": 2, "maxwell:maxwell": 1} == verdict["formats"]


def test_detect_counts_tombstones_as_the_topics_own(tmp_path: Path) -> None:
    keys = [b'{"id":1}'] * 3
    source = tmp_path / "topic.parquet"
    pq.write_table(pa.table({"key": keys, "value": [canal(), canal(id=2), None]}), source)
    done = run("detect", str(source))

    assert f"{source}: canal-json:canal, 3 messages (2 row, 1 tombstone)\n" == done.stdout.decode()


def test_formats_lists_every_format_with_its_dialects_and_options() -> None:
    listing = json.loads(run("formats", "--json").stdout)

    assert [
        "canal-json",
        "open-protocol",
        "oms-default",
        "dataworks",
        "shareplex",
        "debezium",
        "debezium-smt",
        "maxwell",
    ] == [f["format"] for f in listing]
    text = run("formats").stdout.decode()
    for f in listing:
        for dialect in f["dialects"]:
            assert f"{f['format']}:{dialect}" in text
        for option in f["options"]:
            assert option["name"] in text


def test_a_reader_that_stops_early_ends_the_command_quietly(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_bytes((canal() + b"\n") * 20_000)
    command = f"{sys.executable} -m headgate decode {path} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)

    assert 1 == len(done.stdout.splitlines())
    assert b"" == done.stderr


def test_a_broken_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(canal() * 100)[:-20])
    done = run("decode", str(path))

    assert 2 == done.returncode
    assert b"x.gz is not whole gzip" in done.stderr


def test_help_names_every_command() -> None:
    text = run_process("--help").stdout.decode()

    assert all(name in text for name in headgate.cli.main.cli.commands)


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["decode", "-"], "standard output"),
        *(
            pytest.param(words, path, marks=pytest.mark.slow)
            for words, path in [
                (["convert", "-", "out.jsonl", "--to", "maxwell"], "out.jsonl"),
                (["convert", "-", "-", "--to", "maxwell"], "standard output"),
                (["convert", "-", "out.parquet", "--to", "maxwell"], "out.parquet"),
                (["decode", "-", "--out", "out"], "out"),
                (["formats"], ""),
            ]
        ),
    ],
)
def test_a_full_disk_is_a_failure_and_not_a_wrong_call(
    words: list[str], path: str, tmp_path: Path
) -> None:
    # A limit for files stands for a disk's end, and /dev/full for that of standard output.
    done = subprocess.run(
        [
            "bash",
            "-c",
            'ulimit -f 1; exec "$0" -m headgate "$@" > /dev/full',
            sys.executable,
            *words,
        ],
        input=b"\n".join(canal(table=hashlib.sha256(b"%d" % n).hexdigest()) for n in range(200)),
        capture_output=True,
        cwd=tmp_path,
    )
    said = done.stderr.decode()
    assert done.returncode == 1, said
    assert said.startswith(f"headgate: cannot write {path}: " if path else "headgate: ")
    assert re.search("No space left on device|File too large", said)
    assert "Traceback" not in said


def test_files_of_an_object_store_are_read_with_the_environments_credentials(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Storage("s3a://lake/cli", s3.settings).write("in.jsonl", canal() + b"\n")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.settings["spark.hadoop.fs.s3a.endpoint"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert events_of(run("decode", "s3a://lake/cli/in.jsonl"))[0]["table"] == "orders"
    local = run("decode", f"file://{write(tmp_path / 'in.jsonl', canal())}")
    assert events_of(local)[0]["table"] == "orders"
    refused = run("convert", "s3a://lake/cli/in.jsonl", "s3a://lake/cli/out", "--to", "maxwell")
    assert refused.returncode == 2
    assert b"headgate run --once" in refused.stderr
    assert run("decode", "s3a://lake/cli/none.jsonl").returncode == 2


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_out_and_errors_are_two_directories(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(canal() + b"\n{")
    out = str(tmp_path / "out")
    done = run("decode", str(tmp_path / "m"), "--out", out, "--errors", out + "/")

    assert 2 == done.returncode
    assert b"same directory" in done.stderr


def test_a_directory_that_cannot_be_made_is_no_stack_trace(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(canal())
    done = run("decode", str(tmp_path / "m"), "--out", str(tmp_path / "m" / "out"))

    assert 2 == done.returncode
    assert done.stderr.startswith(b"headgate: ")
    assert b"Traceback" not in done.stderr
