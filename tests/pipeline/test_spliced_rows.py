"""A pass for sinks of tables gives the same rows whether it splices them or decodes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import Sent, batch_of, job_of
from memory_tables import registered_store
from messages import canal, maxwell
from splicing import splice_at_once
from ticdc_messages import TSO, ticdc, watermark

from headgate.fastpath import compilation
from headgate.landing.changes import unpack
from headgate.pipeline import fast_path
from headgate.pipeline.partition_worker import worker_function
from headgate.pipeline.plan import BatchPlan, PartitionReport
from headgate.pipeline.table_output import TableOutput
from headgate.pipeline.work_rows import WORK_SCHEMAS

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Splice from the first message on, anew in each test."""
    splice_at_once(monkeypatch)
    with registered_store():
        yield


def passed(
    root: Path, messages: list[bytes | Sent], source: str, sink: str, **sections: Any
) -> tuple[dict[str, list[dict[str, Any]]], list[Any], PartitionReport]:
    """The rows of a pass by table, in the order of their messages, dead letters and report."""
    job = job_of(root, source, sink, **sections)
    plan = BatchPlan((root / "known").as_uri(), emit="tables")
    reports: list[bytes] = []
    sent = [each if isinstance(each, Sent) else Sent(each) for each in messages]
    batches = list(worker_function(job, plan, reports.extend)([batch_of(sent, 7)]))
    work = pa.Table.from_batches(batches, WORK_SCHEMAS["tables"]).to_pylist()
    tables: dict[str, list[dict[str, Any]]] = {}
    for row in work:
        if row["dead_letter"] is None:
            tables.setdefault(row["table"], []).extend(unpack(row["changes"])[1].to_pylist())
    for rows in tables.values():
        rows.sort(key=lambda row: (row["_arrival"], -row["_op"]))
    # Tables in any order: which dead letter is the first is open.
    dead = sorted((r["dead_letter"] for r in work if r["dead_letter"]), key=lambda d: d["offset"])
    report = msgspec.json.decode(reports[0], type=PartitionReport)
    report.state.applied = ()  # names of files
    report.rejection = None
    # Producers that mix the orders of columns leave open which of them a table has.
    report.shapes = [
        {step: sorted((s.table, s.key, sorted(map(repr, s.columns))) for s in shapes)}
        for steps in report.shapes
        for step, shapes in steps.items()
    ]
    return tables, dead, report


def both(
    root: Path, messages: list[Any], source: str = "canal-json", sink: str = "memory:", **more: Any
) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """The rows that both ways give, and how many of them were spliced."""
    with mock.patch.object(compilation.SPLICING, "is_ready", return_value=False):
        decoded = passed(root, messages, source, sink, **more)
    taken: list[int] = []
    accepts = TableOutput.accepts

    def counted(output: TableOutput, spliced: Any, messages: Any) -> bool:
        accepted = accepts(output, spliced, messages)
        taken.append(messages.rows.num_rows - spliced.rest.num_rows if accepted else 0)
        return accepted

    with mock.patch.object(TableOutput, "accepts", counted):
        spliced = passed(root, messages, source, sink, **more)
    assert decoded[0] == spliced[0]
    assert decoded[1] == spliced[1]
    for name in PartitionReport.__struct_fields__:
        assert getattr(decoded[2], name) == getattr(spliced[2], name), name
    return spliced[0], sum(taken)


def test_changes_of_ticdc_are_spliced(tmp_path: Path) -> None:
    ops = ("INSERT", "UPDATE", "DELETE")
    messages = [ticdc(n, n, ops[n % 3], table=("orders", "items")[n % 2]) for n in range(300)]

    tables, spliced = both(tmp_path, [*messages, watermark(300)])

    assert 300 == spliced
    assert {'["shop","items"]': 150, '["shop","orders"]': 150} == {
        table: len(rows) for table, rows in tables.items()
    }
    last = tables['["shop","items"]'][-1]
    assert (f"{TSO + 299:020d}", 299) == (last["_position"][8:], last["id"])


def test_changes_without_a_position_are_spliced(tmp_path: Path) -> None:
    notes = ("note {}", "é {}", 'with "quotes" {}\n')  # escapes are decoded
    rows = [{"id": str(n), "amount": f"{n}.10", "note": notes[n % 3].format(n)} for n in range(201)]

    tables, spliced = both(tmp_path, [canal(data=[row]) for row in rows])

    assert 134 == spliced
    assert [row["note"] for row in rows] == [r["note"] for r in tables['["shop","orders"]']]


def test_splicing_can_be_turned_off(tmp_path: Path) -> None:
    job = job_of(tmp_path, "canal-json", f"delta://{tmp_path}/lake?splice=false")
    [sink] = job.table_sinks

    assert not fast_path.lands_by_row(sink.connector)


def test_positions_of_a_binlog_are_decoded(tmp_path: Path) -> None:
    messages = [
        maxwell(data={"id": n}, xid=n, position=f"bin.000001:{n}", primary_key=[n],
                primary_key_columns=["id"])
        for n in range(50)
    ]  # fmt: skip

    _, spliced = both(tmp_path, messages, "maxwell")

    assert 0 == spliced


def test_an_update_of_the_key_is_of_two_rows(tmp_path: Path) -> None:
    messages = [ticdc(n, n, "UPDATE") for n in range(60)]
    row = {"id": "7", "amount": "1.10", "note": None}
    moved = ticdc(7, 61, "UPDATE", data=[{**row, "id": "1007"}], old=[row])

    tables, _ = both(tmp_path, [*messages, moved])

    last = tables['["shop","orders"]'][-2:]
    assert [(1, 7), (0, 1007)] == [(row["_op"], row["id"]) for row in last]


def test_a_value_that_does_not_fit_is_a_dead_letter_either_way(tmp_path: Path) -> None:
    messages = [ticdc(n, n) for n in range(60)]
    wrong = ticdc(60, 60, data=[{"id": "60", "amount": "12345678901234.10", "note": None}])

    tables, _ = both(tmp_path, [*messages, wrong])

    assert 60 == len(tables['["shop","orders"]'])


def orders(count: int, **more: Any) -> list[bytes]:
    """Inserts that look alike, by Canal."""
    rows = [{"id": str(n), "amount": f"{n}.10", "note": "a"} for n in range(count)]
    return [canal(data=[row], **more) for row in rows]


OTHERS = {
    "without a key": canal(type="UPDATE", pkNames=None, old=[{"amount": "0.10"}]),
    "a delete without a key": canal(type="DELETE", pkNames=None),
    "without types": canal(mysqlType=None, sqlType=None),
    "without types, a misfit": canal(
        mysqlType=None, sqlType=None, data=[{"id": "9", "amount": "abc", "note": None}]
    ),
    "a further column": canal(
        data=[{"id": "9", "amount": "1.10", "note": None, "more": "x"}],
        mysqlType={
            "id": "bigint",
            "amount": "decimal(12,2)",
            "note": "varchar(20)",
            "more": "text",
        },
    ),
    "fewer columns": canal(type="UPDATE", data=[{"id": "9"}], old=[{"id": "9"}]),
    "no columns": canal(type="UPDATE", data=[{}], old=[{"id": "1"}]),
    "several rows": canal(data=[{"id": n, "amount": "1", "note": None} for n in "56"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_rows_beside_spliced_ones_are_of_the_same_table(tmp_path: Path, name: str) -> None:
    _, spliced = both(tmp_path, [*orders(40), OTHERS[name]])

    assert spliced


def test_updates_without_a_row_are_rejected_either_way(tmp_path: Path) -> None:
    rows = [{"id": str(n)} for n in range(40)]

    tables, _ = both(tmp_path, [canal(type="UPDATE", data=[{}], old=[row]) for row in rows])

    assert {} == tables


def test_values_that_the_log_did_not_contain_keep_theirs(tmp_path: Path) -> None:
    def wrote(n: int, op: str, c: str) -> Sent:
        source = {"connector": "postgresql", "db": "shop", "schema": "s", "table": "t", "ts_ms": n}
        row = {"id": n, "a": n, "c": c}
        envelope = {"before": None, "after": row, "source": source, "op": op, "ts_ms": n}
        return Sent(json.dumps(envelope).encode(), json.dumps({"id": n}).encode())

    inserts = [wrote(n, "c", f"x{n}") for n in range(40)]
    partial = wrote(50, "u", "__debezium_unavailable_value")

    tables, spliced = both(tmp_path, [*inserts, partial], "debezium")

    assert spliced
    [rows] = tables.values()
    assert ["c"] == rows[-1]["_absent"]


def test_a_position_that_looks_like_none_at_first(tmp_path: Path) -> None:
    places = [*(f"binlog:{1000 + n}" for n in range(40)), "bin.000001:1234"]
    messages = [
        maxwell(data={"id": n}, xid=n, position=place, primary_key=[n], primary_key_columns=["id"])
        for n, place in enumerate(places)
    ]

    both(tmp_path, messages, "maxwell")


texts = st.text(max_size=8) | st.sampled_from(["a", "é😀", "\\", "\u2028", "\x00", '"', "1.5e3"])
rows = st.fixed_dictionaries(
    {
        "id": st.integers(0, 9).map(str),
        "amount": st.sampled_from(["0.00", "-1.10", "99.99", None, "1e2", "x"]),
    },
    optional={"note": texts | st.none(), "more": texts},
)
changes = st.builds(
    lambda row, old, op, table, ts, again, partial, untold: [
        ticdc(
            1, ts, op, table=table, data=[row],
            old=[{"amount": old["amount"]} if partial else old] if op == "UPDATE" else None,
            **untold,
        )
    ] * (1 + again),
    rows, rows, st.sampled_from(["INSERT", "UPDATE", "DELETE"]),
    st.sampled_from(["orders", "items"]), st.integers(0, 20), st.booleans(), st.booleans(),
    st.sampled_from([{}, {}, {"pkNames": None}, {"mysqlType": None, "sqlType": None}]),
)  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(changes | st.just([watermark(5)]) | st.just([b"no JSON"]), max_size=30), st.data())
def test_any_stream_gives_the_same_rows(stream: list[list[bytes]], data: st.DataObject) -> None:
    ordinary = [ticdc(n, 30 + n, op) for op in ("INSERT", "UPDATE", "DELETE") for n in range(4)]
    messages = [*ordinary, *(message for several in stream for message in several)]
    sink = data.draw(st.sampled_from(["memory:", "memory:?on-misfit=null"]))
    with tempfile.TemporaryDirectory() as folder:
        both(Path(folder), data.draw(st.permutations(messages)), sink=sink)


def test_a_route_and_a_filter_are_followed(tmp_path: Path) -> None:
    messages = [ticdc(n, n, table=("orders", "items")[n % 2]) for n in range(100)]
    sections = {
        "filter": [{"table": "shop.orders", "columns": {"exclude": ["amount"]}}],
        "route": [{"table": "shop.orders", "to": "lake.renamed"}],
    }

    tables, spliced = both(tmp_path, messages, **sections)

    assert 100 == spliced
    assert {'["shop","items"]', '["lake","renamed"]'} == set(tables)
    assert "amount" not in tables['["lake","renamed"]'][0]
