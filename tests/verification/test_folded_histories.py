"""Histories of a server as a log: folded, they are its tables, whatever happened to the messages.

Without Spark: the functions that its workers run, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
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
from mysql_model import DATABASE
from written_dialects import limits_of, written_dialects

from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.codec.sequence import COMMIT
from headgate.config.job import Job
from headgate.core.event import Message
from headgate.landing.types import DEFAULTS, typed
from headgate.pipeline.catalog import catalog_after
from headgate.pipeline.ddl_schedule import merged_ddl
from headgate.pipeline.state import State
from headgate.spark.storage import Storage
from headgate.verification.fold import (
    REMOVE,
    Keyer,
    LogTable,
    fold,
    log_tables,
    types_of,
)
from headgate.verification.lineage import Lineage, Statement
from headgate.verification.log_reading import ARRIVALS, next_plan, statement_of
from headgate.verification.log_worker import SeenTable, WorkerReport, log_function
from headgate.verification.typed_rows import shape_of, table_ids

DIALECTS = {dialect.name: dialect for dialect in written_dialects()}


class Log:
    """The changes of batches, as Spark would keep them."""

    def __init__(self, job: Job, root: Path) -> None:
        self.job, self.storage, self.state = job, Storage(str(root / "known")), State()
        self.changes: list[pa.RecordBatch] = []
        self.statements: list[Statement] = []
        self.seen: list[SeenTable] = []

    def take(self, number: int, messages: Sequence[Message]) -> None:
        """A batch of messages."""
        ordered = sorted(messages, key=lambda each: each.partition or 0)
        batch = pa.RecordBatch.from_pylist([each._asdict() for each in ordered], MESSAGE_SCHEMA)
        plan = replace(self.state.plan(self.storage.uri), emit="tables")
        while True:
            *changes, last = log_function(self.job, plan)([batch])
            report = msgspec.json.decode(last.column("report")[0].as_py(), type=WorkerReport)
            more = next_plan(plan, report.partitions, {})
            if more is None:
                break
            plan = more
        ddl = list(merged_ddl(plan.ddl, report.partitions))
        self.state = self.state.after(number, report.partitions, ddl)
        self.state.catalog = catalog_after(self.storage, self.state.catalog, self.job.source, ddl)
        before = len(self.statements)
        self.changes += (later(each, before, number * ARRIVALS) for each in changes)
        self.seen += (msgspec.structs.replace(t, step=before + t.step) for t in report.tables)
        self.statements += map(statement_of, ddl)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The rows that the log leaves, typed."""
        lineage = Lineage(self.statements)
        tables = log_tables(self.seen, lineage)
        keyer = Keyer(tables, lineage, types_of(self.seen))
        rows = [
            row for each in self.changes for part in keyer.take(each) for row in part.to_pylist()
        ]
        rows.sort(key=sort_key)
        found: dict[str, list[dict[str, Any]]] = {table.name: [] for table in tables}
        names = ("table", "key", "op", "order", "sequence", "time", "arrival", "row")
        for (number, _), changes in groupby(rows, key=lambda row: (row["table"], row["key"])):
            left = fold((tuple(c[n] for n in names) for c in changes), [])
            table = tables[number]
            found[table.name] += typed_rows(table, [msgspec.json.decode(row) for row in left])
        return found


def sort_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """As Spark sorts: of one commit, an upsert is the last."""
    is_upsert = row["order"] == COMMIT and row["op"] != REMOVE
    return row["table"], row["key"], row["sequence"], is_upsert, row["arrival"]


def later(changes: pa.RecordBatch, steps: int, arrivals: int) -> pa.RecordBatch:
    rows = changes.to_pylist()
    moved = [{**r, "step": r["step"] + steps, "arrival": r["arrival"] + arrivals} for r in rows]
    return pa.RecordBatch.from_pylist(moved, changes.schema)


def typed_rows(table: LogTable, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shape = shape_of(table_ids(table.name)[0], table.columns, table.key, DEFAULTS)
    columns = {
        c.name: typed(pa.array([r.get(c.source_name) for r in rows], pa.string()), c.mysql, c.type)
        for c in shape.columns
    }
    assert not any(misfits for _, misfits in columns.values())
    values = {name: column.to_pylist() for name, (column, _) in columns.items()}
    return [{name: values[name][n] for name in values} for n in range(len(rows))]


@pytest.mark.parametrize("name", one_in(4, DIALECTS))
def test_the_log_of_a_history_folded_is_its_tables(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    dialect = DIALECTS[name]
    limits = limits_of(name)

    @settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(limits), st.integers(0, 2**32 - 1), st.sampled_from((1, 3)))
    def check(history: History, seed: int, partitions: int) -> None:
        root = tmp_path_factory.mktemp("job")
        job = job_of(root, dialect.spec, "console:?protocol=maxwell")
        options = {**job.source.options, **dialect.source, "schema": schema_of(history)}
        log = Log(replace(job, source=replace(job.source, options=options)), root)
        units = units_of(history, dialect, partitions if dialect.is_ordered else 1)
        for number, messages in enumerate(cut(delivered(disturbed(units, dialect, seed)), seed)):
            log.take(number, messages)
        found = log.tables()
        for table, rows in expected_tables(history.server).items():
            left = found.pop(f"{DATABASE}.{table}", [])
            assert ([], []) == differences(rows, left), table
        assert not any(found.values()), found.keys()

    check()
