"""`consistency: watermark`: whatever arrives when, tables have states that the server had.

Histories of a server are written with watermarks on each partition, shuffled, cut into batches, and
their job is killed now and then. After every batch all tables together are what the server had at
the watermark that was published, and at the end they are its tables.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from disturbances import cut, delivered, disturbed
from effort import examples
from emission import schema_of, units_of
from histories import History, histories
from hypothesis import HealthCheck, given, settings
from landing_checks import DIALECTS, Delivery, deliveries, wrong_tables
from landing_runs import Landed, land
from watermarks import commits_of, with_watermarks
from written_dialects import Dialect, limits_of

from headgate.formats import traits_of

WITH_WATERMARKS = [
    name
    for name, dialect in DIALECTS.items()
    if dialect.is_netted and traits_of(*dialect.spec.split(":")).watermarks
]


@pytest.mark.parametrize("name", WITH_WATERMARKS)
def test_tables_are_always_a_state_of_the_server(name: str) -> None:
    limits = replace(limits_of(name), steps=20)

    @settings(
        max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck),
        database=None,
    )  # fmt: skip
    @given(histories(limits), deliveries())
    def run(history: History, delivery: Delivery) -> None:
        check(DIALECTS[name], history, delivery)

    run()


def check(dialect: Dialect, history: History, delivery: Delivery) -> None:
    """Land a history batch by batch, and look at the tables after each."""
    commits = commits_of(history, dialect)
    if not commits:
        return
    units = units_of(history, dialect, delivery.partitions, delivery.rule)
    if delivery.disturbance is not None:
        units = disturbed(units, dialect, delivery.disturbance)
    units = with_watermarks(units, commits, dialect, delivery.partitions, delivery.cuts)
    root = Path(tempfile.mkdtemp(prefix="consistent-"))
    watermarks: list[int] = []

    def look(found: Landed) -> None:
        watermark = published(root)
        watermarks.append(watermark)
        if watermark:
            at = history.server.after(commits.index(watermark))
            assert not wrong_tables(History(at, ""), found), watermark
        else:
            assert not found.tables

    try:
        found = land(
            root,
            dialect.spec,
            cut(delivered(units), delivery.cuts),
            dialect.source,
            {"drop_table": "drop", "drop_column": "drop", "consistency": "watermark"},
            schema_of(history),
            delivery.killed,
            delivery.partitions,
            look,
        )
        assert not found.dead_letters
        assert not found.parked
        assert sorted(watermarks) == watermarks
        assert commits[-1] == watermarks[-1]
        assert not left(root)
    finally:
        shutil.rmtree(root)


def published(root: Path) -> int:
    """The watermark that the job has published; 0 where there is none."""
    files = list((root / "lake/_headgate/jobs").glob("*.json"))
    [state] = [json.loads(file.read_text()) for file in files] or [{}]
    return int((state.get("published") or {}).get("timestamp", 0))


def left(root: Path) -> Sequence[Path]:
    """What still waits."""
    notes = root / "lake/_headgate"
    return [*notes.glob("changes/unresolved/*/*"), *notes.glob("statements/*/*")]
