"""DDL of a batch: how many passes it costs, and which changes come before it and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from in_process import Sent, batch_of, in_pack, job_of
from producers import ticdc

from headgate.codec.schemas import Schemas
from headgate.config.job import Job
from headgate.core.event import Event
from headgate.pipeline.ddl_schedule import DdlSchedule, lacks_ddl, merged_ddl
from headgate.pipeline.partition_worker import worker_function
from headgate.pipeline.plan import BatchPlan, PartitionReport, PartitionState, PlannedDdl
from headgate.pipeline.work_rows import WORK_SCHEMAS

TO = "kafka://127.0.0.1:9/out?partition-num=1&protocol=canal-json"


def planned(commit: int, id: str | None = None, **more: Any) -> PlannedDdl:
    event = Event("ddl", "alter", "d", "t", ddl=f"ALTER TABLE t ADD c{commit} INT")
    event.commit_ts = commit
    return PlannedDdl(event, event, id or str(commit), True, **more)


def report(*ddl: PlannedDdl, steps: Sequence[int] = (0,)) -> PartitionReport:
    return PartitionReport(PartitionState(("in", 0)), ddl=list(ddl), steps=list(steps))


def on_partition(number: int, messages: list[Sent]) -> pa.RecordBatch:
    batch = batch_of(messages, 0)
    numbers = pa.array([number] * len(messages), pa.int32())
    return batch.set_column(batch.schema.get_field_index("partition"), "partition", numbers)


def passes(job: Job, root: Path, *partitions: list[Sent]) -> list[list[tuple[int, int]]]:
    """The passes over a batch: for each run of messages its step, and how many there are."""
    plan = BatchPlan((root / "known").as_uri())
    batches = [on_partition(number, messages) for number, messages in enumerate(partitions)]
    found: list[list[tuple[int, int]]] = []
    while True:
        contents: list[bytes] = []
        work = worker_function(job, plan, contents.extend)(batches)
        rows = pa.Table.from_batches(work, WORK_SCHEMAS["messages"]).to_pylist()
        reports = [msgspec.json.decode(each, type=PartitionReport) for each in contents]
        found.append([(row["step"], len(list(in_pack(row)))) for row in rows])
        ddl = merged_ddl(plan.ddl, reports)
        if not any(lacks_ddl(each, plan.ddl, ddl) for each in reports):
            return found
        plan = replace(plan, ddl=ddl)


def created(table: str, time: int | None) -> PlannedDdl:
    ddl = f"CREATE TABLE {table} (id INT PRIMARY KEY)"
    event = Event("ddl", "create", "d", table, ddl=ddl, event_time=time)
    return PlannedDdl(event, event, table, True, partition=("in", 0))


@pytest.mark.parametrize(
    ("time", "step"),
    [(None, 2), (6_000_000, 2), (7_000_000, 3), (5_000_000, 0)],
    ids=["without a time", "of the same second", "later", "earlier"],
)
def test_a_row_without_a_known_place_follows_the_creation_of_its_table(
    time: int | None, step: int
) -> None:
    ddl = [created("a", 6_000_000), created("t", 6_000_000), created("z", 6_000_000)]
    schedule = DdlSchedule(ddl, ("in", 1), Schemas(None))

    schedule.pass_until(Event("row", "insert", "d", "t", event_time=time))

    assert step == schedule.step


def test_ddl_of_the_only_partition_costs_no_second_pass(tmp_path: Path) -> None:
    job = job_of(tmp_path, "canal-json", TO)
    messages = [ticdc("insert", 1, 1), ticdc("ddl", 1, 2), ticdc("insert", 2, 3)]

    assert [[(0, 1), (1, 1)]] == passes(job, tmp_path, messages)


def test_ddl_that_every_partition_has_costs_no_second_pass(tmp_path: Path) -> None:
    job = job_of(tmp_path, "canal-json", TO)
    ddl = ticdc("ddl", 1, 5)
    one = [ticdc("insert", 1, 1), ddl, ticdc("insert", 1, 6)]
    other = [ddl, ticdc("insert", 2, 7), ticdc("insert", 3, 8)]

    assert [[(0, 1), (1, 1), (1, 2)]] == passes(job, tmp_path, one, other)


def test_ddl_of_another_partition_is_known_to_the_second_pass(tmp_path: Path) -> None:
    job = job_of(tmp_path, "canal-json", TO)
    one = [ticdc("insert", 1, 1), ticdc("ddl", 1, 5)]
    other = [ticdc("insert", 2, 4), ticdc("insert", 3, 8)]

    first, second = passes(job, tmp_path, one, other)

    assert [(0, 1), (0, 2)] == first
    assert [(0, 1), (0, 1), (1, 1)] == second


def test_ddl_that_was_not_planned_is_put_behind_what_was() -> None:
    schedule = DdlSchedule([planned(1), planned(3)], ("in", 0), Schemas(None))

    schedule.meet(planned(1))
    assert 1 == schedule.step
    schedule.meet(planned(4))
    assert 3 == schedule.step
    schedule.meet(planned(4))  # a repeat in the same batch
    assert 3 == schedule.step


def columns(tables: Schemas) -> list[str]:
    table = tables.table("d", "t")
    return [] if table is None else list(table.types)


def test_tables_of_others_are_not_changed() -> None:
    tables = Schemas("CREATE TABLE d.t (id INT PRIMARY KEY)")
    schedule = DdlSchedule([], ("in", 0), tables)

    schedule.meet(planned(1))

    assert ["id", "c1"] == columns(schedule.tables)
    assert ["id"] == columns(tables)


def test_ddl_of_all_partitions_is_in_the_order_of_the_source() -> None:
    merged = merged_ddl([planned(5)], [report(planned(5), planned(9)), report(planned(2))])

    assert ["2", "5", "9"] == [ddl.id for ddl in merged]


def test_of_copies_one_that_is_taken_counts() -> None:
    copies = [planned(1, rejected=True), planned(1), planned(1, rejected=True)]

    (ddl,) = merged_ddl([], [report(copy) for copy in copies])

    assert not ddl.rejected


@pytest.mark.parametrize(
    ("own", "steps", "lacking"),
    [(["1", "2"], [0], False), (["1"], [0], True), (["2", "1"], [0], True), ([], [], False)],
)
def test_a_partition_lacks_ddl_that_it_did_not_pass(
    own: list[str], steps: list[int], lacking: bool
) -> None:
    known = report(*(planned(int(id)) for id in own), steps=steps)

    assert lacking == lacks_ddl(known, [], [planned(1), planned(2)])
