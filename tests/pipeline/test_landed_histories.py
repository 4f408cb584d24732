"""Histories of a server through the passes of a job: their changes, folded, are its tables.

Without Spark and without a lake: what sinks get must be enough to keep tables equal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from disturbances import cut, delivered, disturbed
from effort import examples, one_in
from emission import schema_of, units_of
from histories import History, histories
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_process import job_of
from lake_values import differences, expected_tables
from memory_tables import fold, registered_store
from mysql_model import DATABASE
from splicing import splice_at_once
from written_dialects import Dialect, limits_of, written_dialects

from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.config.job import Job
from headgate.core.event import Message
from headgate.fastpath.convert import has_templates
from headgate.landing.changes import unpack
from headgate.landing.shape import TableShape
from headgate.landing.table_rows import DELETE, TRUNCATE
from headgate.pipeline.balance import check_balance
from headgate.pipeline.partition_worker import worker_function
from headgate.pipeline.plan import PartitionReport
from headgate.pipeline.state import State
from headgate.pipeline.work_rows import WORK_SCHEMAS

DIALECTS = {dialect.name: dialect for dialect in written_dialects()}


class Lake:
    """Tables that packed changes were folded into."""

    def __init__(self) -> None:
        self.keyed: dict[str, dict[Any, dict[str, Any]]] = {}
        self.keyless: dict[str, Counter[Any]] = {}

    def take(self, packed: bytes) -> None:
        """Fold packed changes."""
        shape, rows = unpack(packed)
        for change in rows.to_pylist():
            if shape.key:
                fold(self.keyed.setdefault(shape.table.table, {}), shape, change)
            else:
                self.take_whole_row(shape, change)

    def take_whole_row(self, shape: TableShape, change: dict[str, Any]) -> None:
        rows = self.keyless.setdefault(shape.table.table, Counter())
        if change["_op"] == TRUNCATE:
            rows.clear()
        else:
            row = tuple((column.name, change[column.name]) for column in shape.columns)
            rows[row] += -1 if change["_op"] == DELETE else 1

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table."""
        for row in self.keyed.get(table, {}).values():
            if not row["_deleted"]:
                yield {n: v for n, v in row.items() if n not in ("_position", "_deleted")}
        for whole, count in self.keyless.get(table, Counter()).items():
            assert count >= 0
            yield from [dict(whole)] * count


def run(job: Job, root: Path, batches: Sequence[Sequence[Message]]) -> Lake:
    """The batches of a job, pass by pass."""
    lake, state = Lake(), State()
    decode = msgspec.json.Decoder(PartitionReport).decode
    for number, messages in enumerate(batches):
        ordered = sorted(messages, key=lambda each: each.partition or 0)
        rows = [each._asdict() for each in ordered]
        batch = pa.RecordBatch.from_pylist(rows, MESSAGE_SCHEMA)
        plan = replace(state.plan((root / "known").as_uri()), emit="tables", job_id="j")
        while True:
            reports: list[bytes] = []
            work = list(worker_function(job, plan, reports.extend)([batch]))
            found = [decode(each) for each in reports]
            disordered = frozenset(each.state.partition for each in found if each.disordered)
            if disordered <= plan.disordered:
                break
            plan = replace(plan, disordered=plan.disordered | disordered)
        table = pa.Table.from_batches(work, WORK_SCHEMAS["tables"]).to_pylist()
        assert [] == [each["dead_letter"] for each in table if each["dead_letter"]]
        for each in table:
            assert DATABASE == json.loads(each["table"])[0]
            lake.take(each["changes"])
        before, state = state, state.after(number, found, ())
        check_balance(number, before.totals, state.totals)
    return lake


def spliced_dialects() -> list[str]:
    """Those whose messages can be spliced."""
    return [name for name in DIALECTS if has_templates(DIALECTS[name].spec, {})]


def job_for(root: Path, dialect: Dialect, history: History) -> Job:
    job = job_of(root, dialect.spec, "memory:")
    options = {**job.source.options, **dialect.source, "schema": schema_of(history)}
    return replace(job, source=replace(job.source, options=options))


@pytest.mark.parametrize("name", one_in(4, DIALECTS))
def test_the_changes_of_a_history_folded_are_its_tables(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_histories(DIALECTS[name], tmp_path_factory, examples(20))


@pytest.mark.parametrize("name", one_in(4, spliced_dialects()))
def test_spliced_changes_of_a_history_are_its_tables(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    splice_at_once(monkeypatch)

    check_histories(DIALECTS[name], tmp_path_factory, examples(10))


def check_histories(dialect: Dialect, tmp_path_factory: pytest.TempPathFactory, count: int) -> None:
    """Histories in a dialect, disturbed and cut into batches, land as the server's tables."""
    limits = replace(limits_of(dialect.name), ddl=False)

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(limits), st.integers(0, 2**32 - 1), st.sampled_from((1, 3)))
    def check(history: History, seed: int, partitions: int) -> None:
        root = tmp_path_factory.mktemp("job")
        units = units_of(history, dialect, partitions if dialect.is_ordered else 1)
        messages = delivered(disturbed(units, dialect, seed))
        with registered_store():
            lake = run(job_for(root, dialect, history), root, cut(messages, seed))
        for table, rows in expected_tables(history.server).items():
            assert ([], []) == differences(rows, list(lake.rows(table))), table

    check()
