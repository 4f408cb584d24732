"""A pass gives the same whether it takes the short cut or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from messages import canal, maxwell

from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.config.job import Job
from headgate.config.reader import load_job
from headgate.fastpath import convert, splicer
from headgate.pipeline.partition_worker import worker_function
from headgate.pipeline.plan import BatchPlan, PartitionReport
from headgate.pipeline.work_rows import WORK_SCHEMAS

TIME = 1_700_000_000_000


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splice from the first message on, anew in each test."""
    convert.compiling().join()
    monkeypatch.setattr(convert, "WARM", 0)
    monkeypatch.setattr(splicer, "ENOUGH", 2)
    monkeypatch.setattr(convert, "_splicers", {})


def change(n: int, **more: Any) -> bytes:
    """A change of row `n` by Canal, which tells no place in the log."""
    row = {"id": str(n), "amount": f"{n}.10", "note": f"note {n}"}
    told = {"data": [row], "es": TIME + n, "ts": TIME + n + 7, "id": n + 1}
    return canal(**(told | more))


def job(tmp_path: Path, *sinks: str, splice: bool, **told: Any) -> Job:
    switch = f"&splice={str(splice).lower()}"
    written = {
        "source": {"uri": "kafka://127.0.0.1:9/in?protocol=canal-json"},
        "sink": [{"uri": sink + switch} for sink in sinks],
        "pipeline": {"name": "t", "checkpoint": str(tmp_path / "state")},
        **told,
    }
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(written))
    return load_job(str(path))


def batch(messages: list[bytes | None], first: int = 0, **columns: Any) -> pa.RecordBatch:
    rows = len(messages)
    given = {
        "value": pa.array(messages, pa.binary()),
        "topic": pa.array(["in"] * rows),
        "partition": pa.array([0] * rows, pa.int32()),
        "offset": pa.array(range(first, first + rows), pa.int64()),
        **columns,
    }
    arrays = [
        given[f.name].cast(f.type) if f.name in given else pa.nulls(rows, f.type)
        for f in MESSAGE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=MESSAGE_SCHEMA)


def passed(
    job: Job, tmp_path: Path, *batches: pa.RecordBatch, **known: Any
) -> tuple[list[dict[str, Any]], PartitionReport]:
    """The messages and dead letters of a pass in their order, and its report."""
    plan = BatchPlan((tmp_path / "known").as_uri(), **known)
    contents: list[bytes] = []
    rows = worker_function(job, plan, contents.extend)(batches)
    found = pa.Table.from_batches(rows, WORK_SCHEMAS["messages"]).to_pylist()
    (content,) = contents
    report = msgspec.json.decode(content, type=PartitionReport)
    report.state.applied = ()
    messages = [message for row in found for message in in_pack(row)]
    return messages + [row["dead_letter"] for row in found if row["dead_letter"]], report


def in_pack(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages of a row, as Spark takes it apart."""
    for n in range(len(row["value_at"] or (0,)) - 1):
        message = {"sink": row["sink"], "step": row["step"]}
        for name in ("key", "value", "id"):
            start, end = row[f"{name}_at"][n : n + 2]
            missing = row[f"{name}_missing"] and row[f"{name}_missing"][n]
            message[name] = None if missing else row[f"{name}_bytes"][start - 1 : end - 1]
        message["topic"] = row["topics"][row["topic_at"][n] if row["topic_at"] else 0]
        message["partition"] = row["partitions"] and row["partitions"][n]
        message["headers"] = row["carried"] and row["carried"][n]
        yield message


KAFKA = "kafka://127.0.0.1:9/out?protocol=debezium&partition-num=3"
LINES = "kafka://127.0.0.1:9/too?protocol=maxwell&partition-num=3&partition=table"


def both(
    tmp_path: Path, batches: list[pa.RecordBatch], *sinks: str, **told: Any
) -> tuple[list[dict[str, Any]], PartitionReport]:
    """What the long way gives, which the short cut gives too."""
    known = told.pop("known", {})
    long = passed(job(tmp_path, *sinks, splice=False, **told), tmp_path, *batches, **known)
    short = passed(job(tmp_path, *sinks, splice=True, **told), tmp_path, *batches, **known)
    assert long == short
    return short


def spliced_rows() -> int:
    """Of how many templates this process knows."""
    return sum(len(each.program.templates) for each in convert._splicers.values())


def test_the_short_cut_gives_what_the_long_way_gives(tmp_path: Path) -> None:
    changes = [change(n, type=("INSERT", "DELETE")[n % 2]) for n in range(200)]
    rows, report = both(tmp_path, [batch(changes), batch(changes, 200)], KAFKA)
    assert 600 == len(rows)  # a tombstone behind each delete
    assert b"in-0-1" == rows[1]["id"]
    assert b"in-0-1.1" == rows[2]["id"]
    assert {"insert": 200, "delete": 200} == report.counts.rows["shop.orders"]
    assert (TIME + 199) * 1000 == report.state.newest
    assert 2 == spliced_rows()


def test_every_sink_gets_its_own(tmp_path: Path) -> None:
    rows, report = both(tmp_path, [batch([change(n) for n in range(50)])], KAFKA, LINES)
    assert [50, 50] == [sum(row.get("sink") == sink for row in rows) for sink in (0, 1)]
    assert [["out"], ["too"]] == report.topics


def test_messages_of_other_kinds_stay_in_their_places(tmp_path: Path) -> None:
    messages: list[bytes | None] = [change(n) for n in range(60)]
    messages[20] = b"{"
    messages[30] = change(30, data=[{"id": "30", "amount": "1e3", "note": "\u0001"}])
    messages[40] = change(40, data=[{"id": "40", "amount": "1.10"}, {"id": "41", "amount": "2.10"}])
    messages[50] = maxwell(database="shop", table="t")
    rows, report = both(tmp_path, [batch(messages)], KAFKA)
    written = [row["id"].decode() for row in rows if "id" in row]
    assert 59 == len(written)
    assert sorted(written, key=lambda n: [int(p) for p in n.split("-")[2].split(".")]) == written
    assert 2 == sum(n for codes in report.counts.rejected.values() for n in codes.values())


def test_ddl_is_followed(tmp_path: Path) -> None:
    ddl = canal(
        data=None, type="ALTER", isDdl=True, sql="ALTER TABLE orders ADD c INT", es=TIME,
        pkNames=None, mysqlType=None, sqlType=None,
    )  # fmt: skip
    messages = [change(n) for n in range(40)]
    batches = [batch(messages), batch([*messages[:20], ddl, *messages[20:]], 40)]
    rows, report = both(tmp_path, [*batches, batch(messages, 81)], KAFKA)
    assert 120 == len(rows)
    assert 1 == len(report.ddl)


def test_selection_and_routes_are_followed(tmp_path: Path) -> None:
    messages = [change(n, table=("orders", "tmp_1", "items")[n % 3]) for n in range(90)]
    told = {
        "tables": {"include": ["shop.*"], "exclude": ["shop.tmp_*"]},
        "filter": [{"table": "shop.orders", "columns": {"exclude": ["note"]}}],
        "route": [{"table": "shop.(.*)", "to": "lake.$1", "topic": "cdc.{table}"}],
    }
    rows, report = both(tmp_path, [batch(messages)], KAFKA, **told)
    assert {"lake.orders": {"insert": 30}, "lake.items": {"insert": 30}} == report.counts.rows
    assert 30 == report.counts.filtered
    assert [["cdc.items", "cdc.orders"]] == report.topics
    assert not any(b"note" in row["value"] for row in rows if row["topic"] == "cdc.orders")


def test_headers_and_places_in_the_log_go_the_long_way(tmp_path: Path) -> None:
    messages = [change(n, gtid=f"uuid:{n}") for n in range(40)]
    both(tmp_path, [batch(messages)], KAFKA)
    messages = [change(n) for n in range(40)]
    headers = pa.array(['[{"key":"trace","value":"AQ=="}]'] * 40)
    both(tmp_path, [batch(messages, headers=headers)], KAFKA)
    tidb = [change(n, _tidb={"commitTs": n + 1}) for n in range(40)]
    _, report = both(tmp_path, [batch(tidb), batch(tidb, 40)], KAFKA)
    assert 40 == report.counts.repeated


def test_a_message_that_is_too_large_is_a_letter(tmp_path: Path) -> None:
    messages = [change(n) for n in range(40)]
    messages[7] = change(7, data=[{"id": "7", "amount": "7.10", "note": "x" * 30_000}])
    sink = f"{KAFKA}&max-message-bytes=20000"
    _, report = both(tmp_path, [batch(messages)], sink)
    assert {"too-large": 1} == report.counts.rejected["shop.orders"]


def test_a_change_beyond_the_clock_says_no_time(tmp_path: Path) -> None:
    messages = [change(n, es=9_000_000_000_000 if n == 3 else TIME + n) for n in range(40)]
    _, report = both(tmp_path, [batch(messages)], KAFKA)
    assert (TIME + 39) * 1000 == report.state.newest


def test_a_disagreement_is_a_fact_of_the_pass_not_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = job(tmp_path, KAFKA, splice=True)
    _, report = passed(told, tmp_path, batch([change(n) for n in range(50)]))
    assert not report.fastpath_wrong
    with monkeypatch.context() as patched:
        patched.setattr(splicer, "agrees", lambda *_: False)
        passed(told, tmp_path, batch([change(n) for n in range(50)]))
    messages, report = passed(told, tmp_path, batch([change(n) for n in range(50)]))
    assert (50, True) == (len(messages), report.fastpath_wrong)  # for good, in this process
