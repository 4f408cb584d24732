"""The check of landing: a history goes through a job, and the tables are held against it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from disturbances import cut, delivered, disturbed
from emission import schema_of, units_of
from histories import History
from hypothesis import strategies as st
from lake_values import differences, expected_columns, expected_tables
from landing_runs import Landed, land
from mysql_model import DATABASE
from written_dialects import Dialect, written_dialects

DIALECTS = {dialect.name: dialect for dialect in written_dialects()}
RULES = (None, "index-value", "ts")
"""How TiCDC spreads changes over partitions; by `ts` a key's changes are on several."""


class Delivery(NamedTuple):
    """How messages arrive, and what happens to the job."""

    disturbance: int | None = None
    """Seeds; None: nothing happens."""
    cuts: int = 0
    killed: int | None = None
    partitions: int = 1
    rule: str | None = None
    deletes: str = "hard"


def deliveries() -> st.SearchStrategy[Delivery]:
    """Ways in which messages arrive."""
    seeds = st.none() | st.integers(0, 2**32 - 1)
    return st.builds(
        Delivery,
        disturbance=seeds,
        cuts=st.integers(0, 2**16),
        killed=seeds,
        partitions=st.integers(1, 3),
        rule=st.sampled_from(RULES),
        deletes=st.sampled_from(("hard", "hard", "soft")),
    )


def landed_history(dialect: Dialect, history: History, delivery: Delivery, root: Path) -> Landed:
    """What a job lands of a history."""
    ordered = dialect.is_ordered
    units = units_of(
        history,
        dialect,
        delivery.partitions if ordered else 1,
        delivery.rule if dialect.is_netted else None,
    )
    if delivery.disturbance is not None:
        units = disturbed(units, dialect, delivery.disturbance)
    sink = {"drop_table": "drop", "drop_column": "drop", "deletes": delivery.deletes}
    return land(
        root,
        dialect.spec,
        cut(delivered(units), delivery.cuts),
        dialect.source,
        sink,
        schema_of(history),
        delivery.killed,
    )


def check(dialect: Dialect, history: History, delivery: Delivery) -> None:
    """Land a history, and compare."""
    root = Path(tempfile.mkdtemp(prefix="landed-"))
    try:
        found = landed_history(dialect, history, delivery, root)
    finally:
        shutil.rmtree(root)
    wrong = wrong_tables(history, found)
    assert not found.dead_letters, found.dead_letters
    assert not found.parked, found.parked
    assert not wrong, wrong


def wrong_tables(history: History, found: Landed) -> dict[str, Any]:
    """By table, the rows that are missing and those that are too many, and wrong columns."""
    wrong: dict[str, Any] = {}
    tables = {name[1]: rows for name, rows in found.tables.items()}
    for name, wanted in expected_tables(history.server).items():
        if name not in tables:
            if wanted:
                wrong[name] = f"not landed, of {len(wanted)} rows"
            continue
        columns = expected_columns(history.server.tables[name])
        landed = found.columns[DATABASE, name]
        missing, surplus = differences(wanted, tables[name])
        if columns != landed:
            wrong[name] = {"columns": columns, "landed columns": landed}
        elif missing or surplus:
            wrong[name] = {"missing": missing, "surplus": surplus}
    for name, rows in tables.items():
        if name not in history.server.tables:
            wrong[name] = f"is not on the server, and has {len(rows)} rows"
    return wrong
