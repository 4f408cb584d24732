"""A pass for sinks of tables: messages in, packed changes of each table out, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from in_process import Sent, batch_of, job_of
from memory_tables import Store, registered_store
from messages import canal, maxwell
from producers import TSO, debezium
from ticdc_messages import ddl, ticdc, watermark

from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.codec.sequence import supersedes
from headgate.config.job import Job
from headgate.landing import changes as landing
from headgate.landing.changes import unpack
from headgate.landing.table_rows import DELETE, TRUNCATE, UPSERT
from headgate.pipeline.balance import check_balance
from headgate.pipeline.counts import Counts
from headgate.pipeline.engine import with_schema
from headgate.pipeline.partition_worker import worker_function
from headgate.pipeline.plan import BatchPlan, PartitionReport
from headgate.pipeline.state import State
from headgate.pipeline.work_rows import WORK_SCHEMAS


@pytest.fixture(autouse=True)
def store() -> Iterator[Store]:
    with registered_store() as found:
        yield found


class Passed:
    """What a pass gave."""

    def __init__(self, job: Job, root: Path, batch: pa.RecordBatch, **plan: Any) -> None:
        reports: list[bytes] = []
        given = BatchPlan((root / "known").as_uri(), emit="tables", **plan)
        batches = list(worker_function(job, given, reports.extend)([batch]))
        table = pa.Table.from_batches(batches, WORK_SCHEMAS["tables"])
        self.work = [row for row in table.to_pylist() if row["dead_letter"] is None]
        self.dead = [row["dead_letter"] for row in table.to_pylist() if row["dead_letter"]]
        decode = msgspec.json.Decoder(PartitionReport).decode
        self.reports = [decode(each) for each in reports]
        state = State().after(0, self.reports, [d for r in self.reports for d in r.ddl])
        check_balance(0, Counts(), state.totals)
        self.totals = state.totals

    def rows(self, table: str = "shop.orders", step: int | None = None) -> list[dict[str, Any]]:
        """The changes of a table."""
        return [
            row
            for work in self.work
            if json.loads(work["table"]) == table.split(".") and step in (None, work["step"])
            for row in unpack(work["changes"])[1].to_pylist()
        ]


def passed(root: Path, *messages: bytes | Sent, sink: str = "memory:", **told: Any) -> Passed:
    job = job_of(root, told.pop("source", "canal-json"), sink, **told)
    sent = [each if isinstance(each, Sent) else Sent(each) for each in messages]
    return Passed(job, root, batch_of(sent, 7))


def test_changes_of_each_table_are_packed(tmp_path: Path) -> None:
    other = ticdc(5, 2, table="people")

    found = passed(tmp_path, ticdc(1, 1), other, ticdc(1, 3, "UPDATE"), ticdc(1, 4, "DELETE"))

    orders, _ = found.work
    assert (0, 0, '["shop","orders"]', 3) == tuple(
        orders[name] for name in ("sink", "step", "table", "count")
    )
    rows = found.rows()
    assert [UPSERT, UPSERT, DELETE] == [row["_op"] for row in rows]
    assert [Decimal("1.10"), Decimal("3.10"), None] == [row["amount"] for row in rows]
    assert [5] == [row["id"] for row in found.rows("shop.people")]
    assert {
        "shop.orders": {"insert": 1, "update": 1, "delete": 1},
        "shop.people": {"insert": 1},
    } == found.totals.rows


def test_positions_are_those_of_the_source_and_arrivals_those_of_the_partition(
    tmp_path: Path,
) -> None:
    first, second = passed(tmp_path, ticdc(1, 9), ticdc(2, 10)).rows()

    assert f"{TSO + 9:020d}" == first["_position"][8:]
    assert supersedes(second["_position"], first["_position"])
    assert f"{7:020d}{0:010d}" == first["_arrival"]


def test_without_a_position_the_partition_s_order_counts(tmp_path: Path) -> None:
    two = [{"id": "1", "amount": "1.10", "note": None}, {"id": "1", "amount": "2.20", "note": None}]

    first, second, third = passed(tmp_path, canal(), canal(data=two)).rows()

    assert f"{8:020d}{1:010d}" == third["_position"][8:]
    assert first["_position"] < second["_position"] < third["_position"]
    assert 1 == len({row["_position"][:8] for row in (first, second, third)})


def test_messages_of_files_are_ordered_as_they_are_read(tmp_path: Path) -> None:
    job = job_of(tmp_path, "canal-json", "memory:")
    rows = [{"value": canal(), "topic": "in", "place": f"a.jsonl:{n}"} for n in range(3)]
    batch = pa.RecordBatch.from_pylist(rows, MESSAGE_SCHEMA)

    earlier = Passed(job, tmp_path, batch, by_place=True, first=2 * 10**10).rows()
    later = Passed(job, tmp_path, batch, by_place=True, first=4 * 10**10).rows()

    positions = [row["_position"] for row in (*earlier, *later)]
    assert sorted(set(positions)) == positions


def test_a_snapshot_row_that_comes_late_does_not_win(tmp_path: Path) -> None:
    change = debezium("update", 1, 900)
    message = json.loads(debezium("insert", 1, 4).value or b"")
    message["op"] = "r"
    message["source"] |= {"snapshot": "true", "server_id": 0}
    snapshot = Sent(json.dumps(message).encode(), change.key)

    changed, read = passed(tmp_path, change, snapshot, source="debezium").rows("shop.t")

    assert not supersedes(read["_position"], changed["_position"])
    assert supersedes(changed["_position"], read["_position"])


def test_ddl_is_a_barrier_and_types_the_rows_after_it(tmp_path: Path) -> None:
    create = "CREATE TABLE orders (id INT PRIMARY KEY, note TEXT, paid TINYINT(1))"
    alter = "ALTER TABLE orders ADD COLUMN at DATETIME"
    table = {"type": "table-create", "database": "shop", "table": "orders", "ts": 1589373515}

    found = passed(
        tmp_path,
        maxwell(data={"id": 1, "note": "a"}),
        json.dumps(table | {"sql": create}).encode(),
        maxwell(data={"id": 2, "note": "b", "paid": 1}, xid=2),
        json.dumps(table | {"type": "table-alter", "sql": alter}).encode(),
        maxwell(data={"id": 3, "note": "b", "paid": 1, "at": "2024-05-01 08:00:00"}, xid=3),
        source="maxwell",
        sink="memory:?tinyint1=boolean",
    )

    assert ["1"] == [row["id"] for row in found.rows(step=0)]
    assert [(2, True)] == [(row["id"], row["paid"]) for row in found.rows(step=1)]
    assert [2024] == [row["at"].year for row in found.rows(step=2)]
    (report,) = found.reports
    (shapes,) = report.shapes
    assert [0, 1, 2] == sorted(shapes)
    types = {c.name: c.type for c in shapes[2][0].columns}
    assert {"id": "int", "note": "string", "paid": "boolean", "at": "timestamp_ntz"} == types
    assert [(), ("id",)] == [shapes[step][0].key for step in (0, 1)]
    positions = [each.position for each in report.ddl]
    assert [f"{offset:020d}{0:010d}" for offset in (8, 10)] == [p[8:] for p in positions]


def test_a_schema_file_types_what_messages_do_not(tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text(
        "CREATE TABLE shop.orders (id BIGINT UNSIGNED PRIMARY KEY, note DATE)"
    )
    pipeline = {"schema": "shop.sql", "checkpoint": str(tmp_path / "state")}
    job = job_of(tmp_path, "maxwell", "memory:", pipeline=pipeline)
    job = replace(job, source=with_schema(job.source, job.schema))
    message = maxwell(data={"id": 2**64 - 1, "note": "2024-05-01"})

    (row,) = Passed(job, tmp_path, batch_of([Sent(message)], 0)).rows()

    assert (Decimal(2**64 - 1), "2024-05-01") == (row["id"], str(row["note"]))


def test_the_key_of_ddl_decides_whether_an_update_moves_a_row(tmp_path: Path) -> None:
    create = ddl(1, "CREATE TABLE orders (id INT, amount DECIMAL(12,2) PRIMARY KEY, note TEXT)")

    found = passed(tmp_path, create, ticdc(1, 2, "UPDATE"))  # its message says that id is the key

    rows = [(row["_op"], row["amount"]) for row in found.rows()]
    assert [(DELETE, Decimal("0.10")), (UPSERT, Decimal("2.10"))] == rows


def test_routes_rename_and_filters_select(tmp_path: Path) -> None:
    found = passed(
        tmp_path,
        ticdc(1, 1),
        ticdc(2, 2, table="logs"),
        route=[{"table": "shop.(.*)", "to": "lake.$1"}],
        tables={"exclude": ["shop.logs"]},
        filter=[{"table": "shop.orders", "columns": {"exclude": ["note"]}}],
    )

    (row,) = found.rows("lake.orders")
    assert {"id": 1, "amount": Decimal("1.10")} == {
        name: value for name, value in row.items() if name[0] != "_"
    }
    assert ({"lake.orders": {"insert": 1}}, 1) == (found.totals.rows, found.totals.filtered)


def test_a_misfit_is_a_dead_letter_with_its_bytes(tmp_path: Path) -> None:
    bad = ticdc(2, 2, data=[{"id": "2", "amount": "1.105", "note": None, "odd": "1"}])

    found = passed(tmp_path, ticdc(1, 1), bad, ticdc(3, 3))

    (dead,) = found.dead
    assert (bad, "misfit", "shop.orders", 8) == tuple(
        dead[name] for name in ("value", "code", "table", "offset")
    )
    assert [1, 3] == [row["id"] for row in found.rows()]
    assert {"shop.orders": {"misfit": 1}} == found.totals.rejected
    (shape,) = found.reports[0].shapes[0][0]
    assert ["id", "amount", "note"] == [c.name for c in shape.columns]  # not the odd one's


def test_of_a_message_of_which_one_row_is_a_misfit_none_is_landed(tmp_path: Path) -> None:
    rows = [{"id": str(n), "amount": n * "9", "note": None} for n in (1, 20, 2)]

    found = passed(tmp_path, canal(data=rows), canal())

    assert [1] == [row["id"] for row in found.rows()]
    assert [("misfit", 1)] == [(dead["code"], len(found.dead)) for dead in found.dead]
    assert 3 == found.totals.rejected_events


def test_a_misfit_is_landed_as_null_and_counted_if_the_sink_says_so(tmp_path: Path) -> None:
    bad = ticdc(2, 2, data=[{"id": "2", "amount": "x", "note": "n"}])

    found = passed(tmp_path, ticdc(1, 1), bad, sink="memory:?on-misfit=null")

    assert [Decimal("1.10"), None] == [row["amount"] for row in found.rows()]
    assert ({"misfit-null": 1}, []) == (found.totals.losses, found.dead)


def test_a_misfit_that_comes_again_is_no_repeat(tmp_path: Path) -> None:
    bad = ticdc(2, 2, data=[{"id": "2", "amount": "x", "note": None}])

    found = passed(tmp_path, bad, bad, ticdc(2, 2))

    assert [Decimal("2.10")] == [row["amount"] for row in found.rows()]
    assert (0, 2) == (found.totals.repeated, len(found.dead))


def test_repeats_are_not_packed(tmp_path: Path) -> None:
    found = passed(tmp_path, ticdc(1, 1), ticdc(1, 1), ticdc(2, 2, table="people"))

    assert [1] == [row["id"] for row in found.rows()]
    assert [1, 1] == [work["count"] for work in found.work]
    assert 1 == found.totals.repeated


def test_what_is_no_row_stays_in_balance(tmp_path: Path) -> None:
    found = passed(
        tmp_path,
        debezium("insert", 1, 1),
        debezium("heartbeat", 0, 2),
        debezium("delete", 1, 3),
        debezium("tombstone", 1, 4),
        debezium("ddl", 0, 5),
        Sent(b"{"),
        source="debezium",
    )

    assert [UPSERT, DELETE] == [row["_op"] for row in found.rows("shop.t")]
    assert ["malformed-json"] == [dead["code"] for dead in found.dead]
    assert 6 == found.totals.events


def test_watermarks_are_kept_and_truncations_landed(tmp_path: Path) -> None:
    found = passed(tmp_path, watermark(5), ddl(6, "TRUNCATE TABLE orders", "TRUNCATE"))

    assert TSO + 5 == found.reports[0].state.watermark
    assert ["TRUNCATE TABLE orders"] == [each.event.ddl for each in found.reports[0].ddl]
    message = json.loads(debezium("insert", 1, 4).value or b"")
    truncate = Sent(json.dumps(message | {"op": "t", "after": None}).encode())
    (row,) = passed(tmp_path, truncate, source="debezium").rows("shop.t")
    assert TRUNCATE == row["_op"]


def test_changes_out_of_order_are_landed_once_with_their_positions(tmp_path: Path) -> None:
    job = job_of(tmp_path, "canal-json", "memory:")
    sent = [Sent(ticdc(1, ts, "UPDATE")) for ts in (3, 2, 4)]

    found = Passed(job, tmp_path, batch_of(sent, 0), disordered=frozenset({("in", 0)}))

    positions = [row["_position"] for row in found.rows()]
    assert sorted(positions) == positions
    assert [f"{n:020d}{0:010d}" for n in (1, 0, 2)] == [row["_arrival"] for row in found.rows()]


def test_each_sink_gets_values_as_it_wants_them(tmp_path: Path) -> None:
    job = job_of(tmp_path, "canal-json", "memory:?zero-dates=null", "memory:?zero-dates=string")
    day = canal(data=[{"id": "1", "day": "0000-00-00"}], mysqlType={"id": "bigint", "day": "date"})

    found = Passed(job, tmp_path, batch_of([Sent(day)], 0))

    assert [(0, None), (1, "0000-00-00")] == [
        (work["sink"], unpack(work["changes"])[1]["day"][0].as_py()) for work in found.work
    ]
    assert [["bigint", "date"], ["bigint", "string"]] == [
        [column.type for column in shapes[0][0].columns] for shapes in found.reports[0].shapes
    ]


def test_a_defect_makes_dead_letters_only_of_what_it_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = landing.typed

    def broken(texts: pa.Array, *more: Any) -> Any:
        if "13" in texts.to_pylist():
            raise ZeroDivisionError("secret")
        return real(texts, *more)

    monkeypatch.setattr(landing, "typed", broken)

    found = passed(tmp_path, ticdc(1, 1), ticdc(13, 2), ticdc(3, 3))

    assert [1, 3] == [row["id"] for row in found.rows()]
    (dead,) = found.dead
    assert "internal-error" == dead["code"]
    assert "secret" not in dead["message"]
