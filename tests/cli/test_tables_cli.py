"""`headgate tables`: what a user sees of landed and parked tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.core.errors import UsageError
from headgate.schema.changes import TableId
from headgate.sinks.delta.state import LakeState
from headgate.spark.storage import Storage


@pytest.fixture
def lake(tmp_path: Path) -> LakeState:
    """A lake with one landed and one parked table, and a job file beside it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "job.yaml").write_text(
        f"source: {{uri: 'file://{tmp_path}/in', format: canal-json}}\n"
        f"sink: [{{uri: 'delta://{tmp_path}/lake'}}]\n"
        "pipeline: {name: shop, checkpoint: ./state}\n"
    )
    state = LakeState(Storage(f"{tmp_path}/lake/_headgate"), "job")
    state.met([TableId("shop", "items")])
    state.park(
        TableId("shop", "orders"),
        "the statement is not understood",
        "make the table anew",
        "ALTER TABLE orders FROBNICATE",
    )
    return state


def run(*args: str) -> str:
    return CliRunner().invoke(cli, ["tables", *args], catch_exceptions=False).output


def test_tables_are_listed_with_why_one_waits(lake: LakeState, tmp_path: Path) -> None:
    items, orders, statement = run(str(tmp_path / "job.yaml")).splitlines()
    assert items == "shop.items: landed"
    assert orders.startswith("shop.orders: parked since 20")
    assert orders.endswith(": the statement is not understood; make the table anew")
    assert statement == "  ALTER TABLE orders FROBNICATE"
    assert '"state":"parked"' in run(str(tmp_path / "job.yaml"), "--json")


def test_parked_table_is_resumed_by_its_name(lake: LakeState, tmp_path: Path) -> None:
    job = str(tmp_path / "job.yaml")
    assert run("resume", job, "shop.orders") == "shop.orders: goes on with the job's next batch\n"
    assert list(lake.to_resume().values()) == [TableId("shop", "orders")]


def test_table_that_is_not_parked_is_named(lake: LakeState, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'shop.items' is no parked table.*parked: shop.orders"):
        run("resume", str(tmp_path / "job.yaml"), "shop.items")
    assert lake.to_resume() == {}
