"""What is counted by table is kept for as long as the job lives, so it must not grow with names."""

import msgspec

from headgate.core.event import Event
from headgate.pipeline.counts import MOST_TABLES, OTHERS, Counts
from headgate.pipeline.plan import PartitionReport, PartitionState, PlannedDdl
from headgate.pipeline.state import State
from headgate.pipeline.status import Status, details, metrics


def report(**tables: dict[str, dict[str, int]]) -> PartitionReport:
    return PartitionReport(PartitionState(("cdc", 0)), Counts(**tables))


def test_a_long_name_is_not_kept_in_state_status_and_metrics() -> None:
    names = ["d." + "x" * 100_000 + end for end in "ab"]
    found = report(
        rows={name: {"insert": 1} for name in names},
        rejected={name: {"route": 2} for name in names},
    )
    drop = Event("ddl", "drop", "d", names[0])
    ddl = PlannedDdl(drop, drop, "id", wanted=True)
    state = State().after(0, [found], [ddl]).after(1, [found], [])
    status = Status("job", totals=state.totals)

    assert 3 == len(state.totals.rows)  # different names stay different
    assert len(msgspec.json.encode(state.totals)) < 2_000
    assert sum(map(len, details(status))) < 2_000
    samples = [sample for family in metrics(status) for sample in family.samples]
    assert max(len(text) for sample in samples for text in sample.labels.values()) <= 256
    assert {2} == {n for name, c in state.totals.rows.items() for op, n in c.items() if op != "ddl"}


def test_tables_beyond_some_thousands_are_counted_as_others() -> None:
    state = State()
    for batch in range(4):
        rows = {f"d.t{batch * 2_000 + n}": {"insert": 1} for n in range(2_000)}
        state = state.after(batch, [report(rows={"d.t0": {"update": 1}} | rows)], [])
    rows = state.totals.rows

    assert MOST_TABLES + 1 == len(rows)
    assert {"insert": 8_000 - MOST_TABLES} == rows[OTHERS]
    assert 3 <= rows["d.t0"]["update"]
    assert 8_000 == sum(counts.get("insert", 0) for counts in rows.values())
