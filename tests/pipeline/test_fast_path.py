"""A pass gives the same whether it takes the short cut or not."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import canal, maxwell
from splicing import splice_at_once

from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.config.job import Job
from headgate.config.reader import load_job
from headgate.core.event import Event
from headgate.fastpath import convert, splicer
from headgate.pipeline.catalog import catalog_after
from headgate.pipeline.dedup_store import DedupStore, IdFile
from headgate.pipeline.partition_worker import worker_function
from headgate.pipeline.plan import BatchPlan, PartitionReport, PlannedDdl
from headgate.pipeline.work_rows import WORK_SCHEMAS
from headgate.sinks.kafka import KafkaSink
from headgate.spark.storage import Storage

TIME = 1_700_000_000_000


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splice from the first message on, anew in each test."""
    splice_at_once(monkeypatch)


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
    storage = Storage(plan.state_uri)
    ids = [id_columns_of(storage, file) for file in report.state.applied]
    report.state.applied = ()
    messages = [message for row in found for message in in_pack(row)]
    dead_letters = [row["dead_letter"] for row in found if row["dead_letter"]]
    return [*messages, *dead_letters, *ids], report


def id_columns_of(storage: Storage, file: IdFile) -> dict[str, Any]:
    """The identities in a file, and how new it is."""
    columns = [column.tolist() for column in DedupStore(storage, ()).open(file)]
    return {"ids": sorted(zip(*columns)), "newest": file.newest}


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
        message["table"] = (
            row["tables"] and row["tables"][row["table_at"][n] if row["table_at"] else 0]
        )
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
    messages, report = short
    return [message for message in messages if "newest" not in message], report


def spliced_rows() -> int:
    """How many templates this process knows."""
    return sum(
        template is not None
        for each in convert._splicers.values()
        for template in each.program.templates
    )


def test_the_short_cut_gives_what_the_long_way_gives(tmp_path: Path) -> None:
    changes = [change(n, type=("INSERT", "DELETE")[n % 2]) for n in range(200)]
    rows, report = both(tmp_path, [batch(changes), batch(changes, 200)], KAFKA)
    assert 600 == len(rows)  # a tombstone behind each delete
    assert b"in-0-1" == rows[1]["id"]
    assert b"in-0-1.1" == rows[2]["id"]
    assert {"insert": 200, "delete": 200} == report.counts.rows["shop.orders"]
    assert (TIME + 199) * 1000 == report.state.newest
    assert 2 == spliced_rows()


def test_a_sink_gets_the_tables_and_row_keys_that_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaSink, "takes_packed_rows", True)
    monkeypatch.setattr(KafkaSink, "uses_row_keys", True)
    changes = [change(n, table=("orders", "items")[n % 2]) for n in range(60)]

    rows, _ = both(tmp_path, [batch(changes)], "kafka://127.0.0.1:9/out?protocol=oms-default")

    expected = [(str(n).encode(), ("orders", "items")[n % 2]) for n in range(60)]
    assert expected == [(row["key"], row["table"]) for row in rows]
    templates = [t for each in convert._splicers.values() for t in each.program.templates]
    assert "orders" in {t.answer.records[0].table for t in templates if t}


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


TRACE = '[{"key":"trace","value":"AQ=="}]'
ID = '{"key":"headgate-id","value":"QQ=="}'


def test_headers_are_carried_along_without_the_id_of_an_earlier_job(tmp_path: Path) -> None:
    values = [change(n) for n in range(40)]
    given = [TRACE, None, f"[{ID}]", f"{TRACE[:-1]},{ID}]"] * 10
    messages, report = both(tmp_path, [batch(values, headers=pa.array(given))], KAFKA, LINES)

    assert spliced_rows()
    assert report.with_headers
    for sink in (0, 1):
        carried = [m["headers"] for m in messages if m["sink"] == sink]
        assert [TRACE, None, None, TRACE] * 10 == carried


def test_messages_with_ids_only_have_no_headers(tmp_path: Path) -> None:
    values = [change(n) for n in range(40)]
    _, report = both(tmp_path, [batch(values, headers=pa.array([f"[{ID}]"] * 40))], KAFKA)

    assert spliced_rows()
    assert not report.with_headers


def test_headers_count_where_a_message_is_too_large(tmp_path: Path) -> None:
    values = [change(n) for n in range(40)]
    large = json.dumps([{"key": "trace", "value": "A" * 3_000_000}])
    headers = pa.array([None] * 39 + [large])
    messages, report = both(tmp_path, [batch(values, headers=headers)], KAFKA)

    assert {"shop.orders": {"too-large": 1}} == report.counts.rejected
    assert 39 == len([message for message in messages if "sink" in message])


def committed(n: int, commit: int, **more: Any) -> bytes:
    """A change of row `n` by TiCDC, with its place in the log."""
    return change(n, **({"_tidb": {"commitTs": commit}, "id": 0} | more))


def watermark(commit: int) -> bytes:
    return canal(
        type="TIDB_WATERMARK", data=None, _tidb={"watermarkTs": commit}, pkNames=None,
        mysqlType=None, sqlType=None, database="", table="", id=0,
    )  # fmt: skip


TICDC = {"source": {"uri": "kafka://127.0.0.1:9/in?protocol=canal-json&enable-tidb-extension=true"}}
START = 449_000_000_000_000_000


def test_changes_with_a_place_in_the_log_are_spliced_and_identified(tmp_path: Path) -> None:
    changes = [
        committed(
            n, START + n, type=("INSERT", "DELETE")[n % 2], table=("orders", "items")[n // 9 % 2]
        )
        for n in range(200)
    ]
    rows, report = both(tmp_path, [batch(changes)], KAFKA, **TICDC)
    assert 4 == spliced_rows()
    assert 300 == len(rows)
    assert 200 == len({row["id"].partition(b".")[0] for row in rows})
    assert 32 == len(rows[0]["id"])
    assert (0, False) == (report.counts.repeated, report.disordered)


def test_repeats_are_dropped_whichever_way_they_come(tmp_path: Path) -> None:
    changes = [committed(n, START + n) for n in range(60)]
    _, report = both(tmp_path, [batch(changes), batch(changes, 60)], KAFKA, **TICDC)
    assert 60 == report.counts.repeated
    again = [*changes[:40], *changes[30:], committed(99, START + 99)]
    rows, report = both(tmp_path, [batch(again)], KAFKA, **TICDC)
    assert (10, 61) == (report.counts.repeated, len(rows))


def test_what_earlier_batches_applied_is_known(tmp_path: Path) -> None:
    changes = [committed(n, START + n) for n in range(60)]
    plan = BatchPlan((tmp_path / "known").as_uri())
    contents: list[bytes] = []
    told = job(tmp_path, KAFKA, splice=True, **TICDC)
    list(worker_function(told, plan, contents.extend)([batch(changes)]))
    state = msgspec.json.decode(contents[0], type=PartitionReport).state
    more = [*changes[50:], *(committed(n, START + n) for n in range(60, 100))]
    known = {"partitions": {("in", 0): state}}
    rows, report = both(tmp_path, [batch(more, 60)], KAFKA, known=known, **TICDC)
    assert (10, 40) == (report.counts.repeated, len(rows))


def test_disorder_and_lateness_are_noticed(tmp_path: Path) -> None:
    changes = [committed(n, START + n) for n in range(40)]
    _, report = both(tmp_path, [batch(changes[20:] + changes[:20])], KAFKA, **TICDC)
    assert report.disordered
    late = [*changes[:20], watermark(START + 25), *changes[20:]]
    _, report = both(tmp_path, [batch(late)], KAFKA, **TICDC)
    assert (6, 1, False) == (report.counts.late, report.counts.watermarks, report.disordered)


@given(st.data())
@settings(max_examples=examples(25), deadline=None)
def test_any_stream_gives_the_same_both_ways(data: st.DataObject) -> None:
    """Repeats, disorder, watermarks, tables and odd values, cut anywhere."""
    commits = data.draw(st.lists(st.integers(0, 400), min_size=60, max_size=120))
    if data.draw(st.booleans()):
        commits.sort()
    if data.draw(st.booleans()):
        commits = list(dict.fromkeys(commits))
    odd = data.draw(st.sets(st.integers(0, len(commits)), max_size=3))
    messages: list[bytes | None] = []
    for place, commit in enumerate(commits):
        table = ("orders", "items")[commit % 3 // 2]
        row = {"id": str(commit // 2), "amount": f"{commit}.10", "note": f"note {commit}"}
        more: dict[str, Any] = {"table": table, "type": ("INSERT", "DELETE")[commit % 2]}
        if place in odd:
            messages += [watermark(START + commit - 5), b"{"]
            row["amount"] = "1e3"
        messages.append(committed(0, START + commit, data=[row], **more))
    cut = data.draw(st.integers(0, len(messages)))
    batches = [batch(messages[:cut]), batch(messages[cut:], cut)]
    with tempfile.TemporaryDirectory() as folder:
        both(Path(folder), [each for each in batches if each.num_rows], KAFKA, **TICDC)


def test_places_in_a_binlog_and_tombstones(tmp_path: Path) -> None:
    def sent(n: int) -> bytes:
        row = {"id": n // 2, "note": f"note {n}"}
        source = {
            "connector": "mysql", "db": "shop", "table": "orders", "server_id": 1, "row": 0,
            "file": "bin.000009", "pos": 1000 + 10 * n, "ts_ms": TIME + n, "name": "s",
        }  # fmt: skip
        images = {"before": row, "after": None} if n % 2 else {"before": None, "after": row}
        op = "d" if n % 2 else "c"
        return json.dumps({**images, "source": source, "op": op, "ts_ms": TIME + n}).encode()

    values: list[bytes | None] = [sent(n) for n in range(80)]
    keys = [json.dumps({"id": n // 2}).encode() for n in range(80)]
    source = {"source": {"uri": "kafka://127.0.0.1:9/in?protocol=debezium"}}
    first, last = batch(values, key=pa.array(keys)), batch([None], 80, key=pa.array(keys[-1:]))
    _, report = both(tmp_path, [first, last], LINES, **source)
    assert {"insert": 40, "delete": 40} == report.counts.rows["shop.orders"]
    assert spliced_rows()
    _, report = both(tmp_path, [first, last, batch(values[-1:], 81, key=pa.array(keys[-1:])), last],
                     KAFKA, **source)  # fmt: skip
    assert 2 == report.counts.repeated


def test_rows_of_maxwell_by_their_transaction(tmp_path: Path) -> None:
    messages = [
        maxwell(data={"id": n, "note": f"note {n}"}, ts=TIME // 1000 + n, xid=500 + n)
        for n in range(60)
    ]
    source = {"source": {"uri": "kafka://127.0.0.1:9/in?protocol=maxwell"}}
    rows, report = both(tmp_path, [batch(messages), batch(messages[:5], 60)], KAFKA, **source)
    assert (60, 5) == (len(rows), report.counts.repeated)
    assert spliced_rows()


def test_a_key_that_ddl_tells_is_not_part_of_the_identity(tmp_path: Path) -> None:
    messages = [
        maxwell(data={"id": n, "note": f"note {n}"}, ts=TIME // 1000 + n, xid=500 + n)
        for n in range(60)
    ]
    told = {"source": {"uri": "kafka://127.0.0.1:9/in?protocol=maxwell"}}
    statement = "CREATE TABLE shop.orders (id INT PRIMARY KEY, note TEXT)"
    created = Event("ddl", "create", "shop", "orders", ddl=statement)
    storage = Storage((tmp_path / "known").as_uri())
    source = job(tmp_path, KAFKA, splice=True, **told).source
    catalog = catalog_after(storage, None, source, [PlannedDdl(created, created, "a", True)])
    rows, _ = both(tmp_path, [batch(messages)], KAFKA, known={"catalog": catalog}, **told)
    assert 60 == len(rows)
    assert spliced_rows()


def test_a_message_that_is_too_large_is_a_dead_letter(tmp_path: Path) -> None:
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
