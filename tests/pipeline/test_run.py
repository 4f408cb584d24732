"""Jobs on the embedded transport: directories of files in and out."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from job_runs import Bench
from messages import canal, maxwell
from paths import REPRO
from pyspark.sql import SparkSession
from ticdc_messages import TSO, ddl, ticdc, watermark

from headgate.arrow.headers import ID_HEADER
from headgate.core.errors import UsageError
from headgate.core.limits import BATCH_BYTES
from headgate.pipeline.dead_letters import Store
from headgate.pipeline.engine import TooManyInvalid
from headgate.pipeline.status import read as read_status
from headgate.pipeline.work_rows import slices


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession) -> Bench:
    return Bench(tmp_path, spark)


def test_messages_come_out_in_another_format_with_names_to_know_them_by(bench: Bench) -> None:
    bench.put("a.jsonl", canal(), canal(type="DELETE"))

    status = bench.run("debezium&topic=cdc.{table}")

    found = bench.messages()
    assert ["c", "d", None] == [
        m["value"] and json.loads(m["value"])["payload"]["op"] for m in found
    ]
    assert ["cdc.orders"] * 3 == [m["topic"] for m in found]
    names = [{h["key"]: h["value"] for h in m["headers"]}[ID_HEADER] for m in found]
    assert [b"a.jsonl:0", b"a.jsonl:1", b"a.jsonl:1.1"] == names
    assert {"shop.orders": {"insert": 1, "delete": 1}} == status.totals.rows
    assert ("stopped", 2, 0) == (status.state, status.totals.messages, status.totals.dead_letters)


def test_a_second_run_takes_up_where_the_first_ended(bench: Bench) -> None:
    bench.put("a.jsonl", canal())
    bench.run("maxwell")
    bench.put("b.jsonl", canal(data=[{"id": "2", "amount": "2.20", "note": "x"}]))

    status = bench.run("maxwell")

    assert ["1", "2"] == bench.ids()
    assert 2 == status.totals.messages
    nothing_new = bench.run("maxwell")
    assert (status.batch, status.totals) == (nothing_new.batch, nothing_new.totals)


def test_repeats_are_recognised_within_a_batch_and_across_batches(bench: Bench) -> None:
    bench.put("a.jsonl", ticdc(1, 1), ticdc(2, 2), ticdc(1, 1))
    bench.run()
    bench.put("b.jsonl", ticdc(2, 2), ticdc(1, 3, "UPDATE"), ticdc(1, 1), ticdc(3, 4))

    status = bench.run()

    assert ["1", "2", "1", "3"] == bench.ids()
    assert 3 == status.totals.repeated


def test_a_late_row_is_written_though_a_watermark_passed_it(bench: Bench) -> None:
    bench.put("a.jsonl", ticdc(1, 1), ticdc(2, 5), watermark(10))
    bench.run()
    bench.put("b.jsonl", watermark(8), ticdc(9, 6), ticdc(2, 5))

    status = bench.run()

    assert ["1", "2", "9"] == bench.ids()
    assert (1, 1) == (status.totals.late, status.totals.repeated)
    assert [TSO + 10] == [e.commit_ts for e in bench.events() if e.kind == "watermark"]


def test_rows_out_of_order_are_put_in_order(bench: Bench) -> None:
    bench.put("a.jsonl", ticdc(1, 3, "UPDATE"), ticdc(2, 4), ticdc(1, 1), ticdc(1, 2, "UPDATE"))

    bench.run()

    commits = [e.commit_ts - TSO for e in bench.events() if e.after and e.after["id"] == "1"]
    assert [1, 2, 3] == commits


def lanes(*places: tuple[int, int]) -> dict[str, pa.Array]:
    return {
        "topic": pa.array(["cdc"] * len(places)),
        "partition": pa.array([p for p, _ in places], pa.int32()),
        "offset": pa.array([o for _, o in places], pa.int64()),
    }


def test_a_watermark_is_written_when_every_partition_has_passed_it(bench: Bench) -> None:
    bench.put("a.parquet", ticdc(1, 1), watermark(10), ticdc(2, 2), **lanes((0, 0), (0, 1), (1, 0)))
    bench.run()
    assert [] == [e for e in bench.events() if e.kind == "watermark"]
    bench.put("b.parquet", watermark(7), **lanes((1, 1)))

    bench.run()

    assert [TSO + 7] == [e.commit_ts for e in bench.events() if e.kind == "watermark"]
    assert "watermark" == bench.events()[-1].kind


def test_ddl_is_a_barrier_across_partitions(bench: Bench) -> None:
    add = ddl(5, "ALTER TABLE orders ADD COLUMN x INT")
    bench.put(
        "a.parquet",
        ticdc(1, 1), add, ticdc(1, 6, "UPDATE"), ticdc(2, 2), ticdc(3, 7), add, ticdc(4, 8),
        **lanes((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1)),
    )  # fmt: skip

    status = bench.run()

    kinds = [e.kind if e.kind == "ddl" else e.commit_ts - TSO for e in bench.events()]
    at = kinds.index("ddl")
    assert (1, {1, 2}, {6, 7, 8}) == (kinds.count("ddl"), set(kinds[:at]), set(kinds[at + 1 :]))
    assert 1 == status.totals.rows["shop.orders"]["ddl"]


def test_repeated_ddl_is_written_once_and_its_schema_is_remembered(bench: Bench) -> None:
    create = ddl(1, "CREATE TABLE orders (id INT PRIMARY KEY, size ENUM('S','M'))", "CREATE")
    bench.put("a.jsonl", create, create)
    bench.run("maxwell")
    sized = {"data": [{"id": "1", "size": "2"}], "mysqlType": {"id": "int", "size": "enum"}}
    bench.put("b.jsonl", create, ticdc(1, 2, **sized, sqlType={"id": 4, "size": 4}))

    bench.run("maxwell")

    assert ["ddl", "row"] == [e.kind for e in bench.events()]
    assert {"id": "1", "size": "M"} == bench.events()[1].after


def test_a_bad_message_is_parked_and_comes_back(bench: Bench) -> None:
    bench.put("a.jsonl", canal(), b"{", canal(type="DELETE"))
    first = bench.run("maxwell")
    store = Store(str(bench.root / "state" / "dead-letters"))

    (letter,) = store.dead_letters()
    assert (b"{", "malformed-json", "a.jsonl:1") == (
        letter["value"],
        letter["code"],
        letter["place"],
    )
    assert {"": {"malformed-json": 1}} == first.totals.rejected
    assert 2 == len(bench.events())
    kept = [bench.root / "state" / name for name in ("headgate", "query", "dead-letters")]
    kept += (bench.root / "state" / "dead-letters").glob("batch=*")
    assert {0o700} == {path.stat().st_mode & 0o777 for path in kept}
    assert (bench.root / "out").stat().st_mode & 0o077  # as the user's umask says

    assert 1 == store.replay()
    second = bench.run("maxwell")
    assert {"": {"malformed-json": 2}} == second.totals.rejected
    assert 1 == len(list(store.dead_letters()))


def test_a_line_that_was_too_long_to_be_held_stays_a_letter(bench: Bench) -> None:
    long = canal(note="x" * 5_000_000)
    bench.put("a.jsonl", ticdc(1, 1), long, ticdc(2, 2))
    limit = {"max-message-bytes": "1000000"}

    assert 1 == bench.run(source=limit).totals.dead_letters
    store = Store(str(bench.root / "state" / "dead-letters"))
    (letter,) = store.dead_letters()
    assert ("too-large", long[: 64 * 1024]) == (letter["code"], letter["value"])
    assert f"{len(long)} bytes" in letter["message"]

    store.replay()
    assert 2 == bench.run(source=limit).totals.dead_letters
    (again,) = Store(str(bench.root / "state" / "dead-letters")).dead_letters()
    assert letter["message"] == again["message"]
    assert ["1", "2"] == bench.ids()


def test_what_was_fixed_is_processed_when_it_is_replayed(bench: Bench) -> None:
    bench.put("a.jsonl", canal(), canal(table="a.b"))
    route = [{"table": "shop.(.*)", "topic": "x" * 248 + "{table}"}]
    parked = bench.run("maxwell", route=route)
    assert 2 == parked.totals.dead_letters
    Store(str(bench.root / "state" / "dead-letters")).replay()

    bench.run("maxwell", route=[{"table": "shop.(.*)", "topic": "cdc.{table}"}])

    assert ["a.b", "orders"] == sorted(e.table for e in bench.events())
    assert [] == list(Store(str(bench.root / "state" / "dead-letters")).dead_letters())


def test_redacted_letters_keep_coordinates_only(bench: Bench) -> None:
    bench.put("a.jsonl", b'{"secret":"canary"')
    bench.run("maxwell", pipeline={"redact": True})

    (letter,) = Store(str(bench.root / "state" / "dead-letters")).dead_letters()

    assert (None, None, "a.jsonl:0") == (letter["key"], letter["value"], letter["place"])
    with pytest.raises(UsageError, match="holds no messages"):
        Store(str(bench.root / "state" / "dead-letters")).replay()


def test_too_many_bad_messages_stop_the_job_before_anything_is_written(bench: Bench) -> None:
    bench.put("a.jsonl", *[canal()] * 20, *[b"{"] * 11)

    with pytest.raises(TooManyInvalid, match=r"11 of the last 31 messages.*malformed-json"):
        bench.run("maxwell", pipeline={"max_invalid": "10%"})

    assert [] == bench.messages()
    assert "failed" == read_status(str(bench.root / "state")).state
    bench.run("maxwell", pipeline={"max_invalid": "90%"})
    assert ["1"] * 20 == bench.ids()


def test_one_bad_message_among_few_does_not_stop_a_job(bench: Bench) -> None:
    bench.put("a.jsonl", b"{")

    assert 1 == bench.run("maxwell", pipeline={"max_invalid": "1%"}).totals.dead_letters


def test_selection_and_routes(bench: Bench) -> None:
    bench.put(
        "a.jsonl",
        canal(), canal(type="DELETE"), canal(table="tmp_1"), canal(database="other"),
        ddl(1, "ALTER TABLE orders ADD COLUMN x INT"), ddl(2, "DROP TABLE orders", "ERASE"),
    )  # fmt: skip

    status = bench.run(
        "maxwell",
        tables={"include": ["shop.*"], "exclude": ["shop.tmp_*"]},
        filter=[{"table": "shop.orders", "ops": ["insert"], "columns": {"exclude": ["note"]}}],
        ddl={"exclude": ["drop"]},
        route=[{"table": "shop.(.*)", "to": "lake.$1", "topic": "cdc.{database}.{table}"}],
    )

    found = bench.events()
    assert [("row", "lake", "orders"), ("ddl", "lake", "orders")] == [
        (e.kind, e.database, e.table) for e in found
    ]
    assert {"id": "1", "amount": "1.10"} == found[0].after
    assert ["cdc.lake.orders"] * 2 == [m["topic"] for m in bench.messages()]
    assert 4 == status.totals.filtered


def test_row_conditions(bench: Bench) -> None:
    def row(n: int, amount: str) -> bytes:
        return canal(data=[{"id": str(n), "amount": amount, "note": None}])

    bench.put("a.jsonl", row(1, "99.99"), row(2, "100.01"), row(3, "1000"), canal(table="other"))

    status = bench.run("maxwell", filter=[{"table": "shop.orders", "where": "amount > 100"}])

    assert ["2", "3", "1"] == [e.after["id"] for e in bench.events()]
    assert (1, 0) == (status.totals.filtered, status.totals.dead_letters)


def test_a_condition_on_an_unknown_column_parks_the_message(bench: Bench) -> None:
    bench.put("a.jsonl", canal(), canal(table="other"))

    status = bench.run("maxwell", filter=[{"table": "shop.orders", "where": "price > 100"}])

    assert {"shop.orders": {"no-such-column": 1}} == status.totals.rejected
    assert ["other"] == [e.table for e in bench.events()]


def test_a_message_that_one_sink_refuses_goes_to_none(bench: Bench) -> None:
    bench.put("a.jsonl", canal(), maxwell())
    strict = f"file://{bench.root}/out?protocol=canal-json&strict=true"

    status = bench.run(sinks=[{"uri": strict}, {"uri": f"file://{bench.root}/2?protocol=maxwell"}])

    assert {"shop.orders": {"lossy": 1}} == status.totals.rejected
    assert [1, 1] == [len(bench.messages(folder)) for folder in ("out", "2")]
    (letter,) = Store(str(bench.root / "state" / "dead-letters")).dead_letters()
    assert maxwell() == letter["value"]
    assert letter["message"].startswith(strict)


def test_another_jobs_directory_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.put("a.jsonl", canal())
    bench.run("maxwell")
    os.rename(bench.root / "state", bench.root / "old-state")

    with pytest.raises(UsageError, match="another job or from another checkpoint"):
        bench.run("maxwell")

    assert ["1"] == bench.ids()


def test_lines_are_written_where_they_are_asked_for(bench: Bench) -> None:
    bench.put("a.jsonl", canal())

    bench.run("maxwell&as=lines")

    (file,) = (f for f in (bench.root / "out").rglob("*.txt") if f.stat().st_size)
    assert "insert" == json.loads(file.read_text())["type"]


def test_headers_travel_along(bench: Bench) -> None:
    headers = pa.array(
        [[{"key": "trace", "value": b"\x01"}]],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    bench.put("a.parquet", canal(), headers=headers, **lanes((0, 7)))

    bench.run("maxwell")

    (message,) = bench.messages()
    found = {h["key"]: h["value"] for h in message["headers"]}
    assert {"trace": b"\x01", ID_HEADER: b"cdc-0-7"} == found


def test_the_state_of_a_lost_batch_is_missed(bench: Bench) -> None:
    bench.put("a.jsonl", ticdc(1, 1))
    bench.run()
    for file in (bench.root / "state" / "headgate" / "batches").iterdir():
        file.unlink()
    bench.put("b.jsonl", ticdc(2, 2))

    with pytest.raises(UsageError, match="restore the checkpoint"):
        bench.run()


def test_a_checkpoint_without_sparks_part_is_refused(bench: Bench) -> None:
    bench.put("a.jsonl", canal())
    bench.run("maxwell")
    shutil.rmtree(bench.root / "state" / "query")
    bench.put("b.jsonl", canal(table="new"))

    with pytest.raises(UsageError, match="restore the checkpoint"):
        bench.run("maxwell")


def debezium(n: int, file: str, server: int, op: str = "u", **more: Any) -> bytes:
    """A change of row 1 by Debezium; `n` is its value and its place in the file."""
    source = {
        "version": "3.0", "connector": "mysql", "name": "s", "ts_ms": 1_700_000_000_000 + n,
        "db": "shop", "table": "t", "server_id": server, "file": file, "pos": n, "row": 0,
    }  # fmt: skip
    row = {"id": 1, "n": n}
    images = {"before": None if op == "c" else {"id": 1, "n": 0}, "after": row}
    if op == "d":
        images = {"before": row, "after": None}
    told = {**images, "source": source, "op": op, "ts_ms": 1_700_000_000_000 + n, **more}
    return json.dumps(told).encode()


def test_another_servers_binlog_is_no_disorder(bench: Bench) -> None:
    moves = [
        debezium(5, "bin.000123", 1),
        debezium(2, "bin.000004", 2),
        debezium(3, "bin.000001", 2),
    ]
    bench.put("a.jsonl", *moves)

    bench.run("maxwell")

    assert ["5", "2", "3"] == [e.after["n"] for e in bench.events()]


def test_a_tombstone_of_a_repeated_delete_is_a_repeat_in_the_next_batch_too(bench: Bench) -> None:
    life = [debezium(1, "b.1", 1, "d"), None, debezium(2, "b.1", 1, "c")]
    columns = {"key": pa.array([b'{"id":1}'] * 3, pa.binary())}
    bench.put("a.parquet", *life, **columns, **lanes((0, 0), (0, 1), (0, 2)))
    bench.run("debezium")
    one = {"key": pa.array([b'{"id":1}'], pa.binary())}
    bench.put("b.parquet", life[0], **one, **lanes((0, 3)))
    bench.run("debezium")
    two = {"key": pa.array([b'{"id":1}'] * 2, pa.binary())}
    bench.put("c.parquet", *life[1:], **two, **lanes((0, 4), (0, 5)))

    status = bench.run("debezium")

    assert ["row", "tombstone", "row"] == [e.kind for e in bench.events()]
    assert 3 == status.totals.repeated


def test_files_of_one_name_in_two_folders_are_two(bench: Bench) -> None:
    for day in ("1", "2"):
        (bench.root / "in" / day).mkdir()
        statement = canal(
            data=None, type="ALTER", isDdl=True, sql=f"ALTER TABLE t ADD c{day} INT",
            pkNames=None, mysqlType=None, sqlType=None,
        )  # fmt: skip
        bench.put(f"{day}/part-0.jsonl", statement, canal())
    bench.put("x%41 é.jsonl", canal())

    bench.run("maxwell")

    assert ["ddl", "ddl", "row", "row", "row"] == sorted(e.kind for e in bench.events())
    ids = [{h["key"]: h["value"] for h in m["headers"]}[ID_HEADER] for m in bench.messages()]
    assert 5 == len(set(ids))


def test_a_topic_that_is_exported_twice_is_recognised_by_its_offsets(bench: Bench) -> None:
    bench.put("a.parquet", canal(), canal(), **lanes((0, 7), (0, 8)))
    bench.run("maxwell")
    bench.put("b.parquet", canal(), canal(), canal(), **lanes((0, 7), (0, 8), (0, 9)))

    status = bench.run("maxwell")

    assert 3 == len(bench.events())
    assert 2 == status.totals.repeated


def test_ddl_that_was_refused_is_written_when_it_comes_back(bench: Bench) -> None:
    alter = ddl(5, "ALTER TABLE orders ADD COLUMN x INT")
    bench.put("a.jsonl", alter, alter.replace(b"x INT", b"y INT"))
    refused = bench.run("maxwell&strict=true")
    assert 2 == refused.totals.dead_letters
    Store(str(bench.root / "state" / "dead-letters")).replay()

    bench.run("maxwell")

    assert ["x INT", "y INT"] == sorted(str(e.ddl)[-5:] for e in bench.events())


def test_a_row_stays_before_ddl_of_its_own_lane_whatever_its_clock_says(bench: Bench) -> None:
    statement = canal(
        data=None, type="ALTER", isDdl=True, sql="ALTER TABLE orders ADD c INT", pkNames=None,
        mysqlType=None, sqlType=None, es=1_589_373_510_000,
    )  # fmt: skip
    bench.put("a.jsonl", canal(), statement, canal(es=1_589_373_516_000))

    bench.run("maxwell")

    assert ["row", "ddl", "row"] == [e.kind for e in bench.events()]


def test_a_row_that_comes_behind_later_ddl_is_put_before_it(bench: Bench) -> None:
    bench.put("a.jsonl", ddl(5, "ALTER TABLE orders ADD COLUMN x INT"), ticdc(1, 4), ticdc(2, 6))

    bench.run()

    assert ["row", "ddl", "row"] == [e.kind for e in bench.events()]


def test_a_clock_in_the_future_does_not_make_a_job_forget(bench: Bench) -> None:
    bench.put("a.jsonl", ticdc(1, 1, es=4_102_444_800_000), *[ticdc(n, n) for n in range(2, 5)])
    bench.run()
    for n in range(12):  # enough batches that dedup files are merged
        bench.put(f"b{n}.jsonl", ticdc(100 + n, 100 + n))
        bench.run()
    bench.put("c.jsonl", *[ticdc(n, n) for n in range(2, 5)])

    assert 3 == bench.run().totals.repeated


def test_headers_without_names_are_left_out(bench: Bench) -> None:
    type_ = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": None, "value": b"x"}, None, {"key": "a", "value": None}]], type_)
    bench.put("a.parquet", canal(), headers=headers, **lanes((0, 7)))

    bench.run("maxwell")

    (message,) = bench.messages()
    assert ["a", ID_HEADER] == [h["key"] for h in message["headers"]]


def test_messages_too_many_for_one_arrow_batch_keep_their_order(bench: Bench) -> None:
    row = {"id": "1", "amount": "1.10", "note": "x" * (BATCH_BYTES // 5)}
    order = [9, *range(1, 9)]  # out of order, so that they are held and leave all at once
    bench.put("a.jsonl", *[ticdc(n, n, data=[{**row, "id": str(n)}]) for n in order])

    bench.run()

    assert [str(n) for n in range(1, 10)] == bench.ids()


def test_a_run_of_messages_is_no_larger_than_an_arrow_batch_may_be() -> None:
    half = BATCH_BYTES // 2

    assert [slice(0, 2), slice(2, 3), slice(3, 5)] == list(slices([half, half, 2 * half, half, 0]))
    assert [slice(0, 1), slice(1, 2)] == list(slices([BATCH_BYTES + 1, BATCH_BYTES + 1]))
    assert [] == list(slices([]))


def test_what_a_message_does_not_have_stays_null(bench: Bench) -> None:
    bench.put("a.jsonl", canal(), canal(type="DELETE"))
    sinks = [
        {"uri": f"file://{bench.root}/{name}?protocol={name}"}
        for name in ("debezium", "canal-json")
    ]

    bench.run(sinks=sinks)

    keys = [m["key"] is None for m in bench.messages("debezium")]
    values = [m["value"] is None for m in bench.messages("debezium")]
    assert ([False] * 3, [False, False, True]) == (keys, values)
    nulls = [{n for n, v in m.items() if v is None} for m in bench.messages("canal-json")]
    assert [{"key", "partition", "topic"}] * 2 == nulls


def test_tables_of_two_schemas_stay_two_through_a_job(bench: Bench) -> None:
    two = (REPRO / "others" / "pg2schemas.jsonl").read_bytes().splitlines()
    nameless = b'{"op":"c","after":{},"source":{"db":"shop","schema":"public","table":"orders"}}'
    bench.put("a.jsonl", *two, nameless)

    status = bench.run("canal-json&topic=cdc.{table}", filter=[{"table": "public.*"}])

    assert ["cdc.archive.orders", "cdc.public.orders"] == sorted(
        message["topic"] for message in bench.messages()
    )
    assert ["archive.orders", "public.orders"] == sorted(e.table or "" for e in bench.events())
    assert {"shop.archive.orders", "shop.public.orders"} == {*status.totals.rows}
    assert {"shop.public.orders"} == {*status.totals.rejected}
