"""Operations of DDL on landed tables: each once, whatever is repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from delta_lake import LandedLake
from packed_changes import COLUMNS, ORDERS, Change, orders, position, upsert

from headgate.landing.conversion import NotConvertible
from headgate.landing.operations import (
    AddColumns,
    ColumnSource,
    CreateLanded,
    Describe,
    Empty,
    MoveTable,
    Rewrite,
)
from headgate.schema.changes import TableId
from headgate.sinks.delta.operations import change_table
from headgate.sinks.delta.table import LandedTable

OLD = TableId("shop", "orders_old")


def kept(columns: dict[str, str]) -> dict[str, ColumnSource]:
    return {name: ColumnSource((mysql,), name) for name, mysql in columns.items()}


def carried_out(lake: LandedLake, *operations: Any, batch: int = 50) -> None:
    """Carry operations out twice, as after a crash."""
    token = lake.lake.ddl_token(batch, 0)
    versions = {}
    for table in (ORDERS, OLD):
        landed = LandedTable.open(lake.lake.location(table))
        if landed is not None:
            versions[lake.lake.path(table)] = landed.delta.version()
    for _ in range(2):
        for operation in operations:
            change_table(lake.lake, operation, token, versions)


def test_created_table_is_empty_and_has_its_columns(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    carried_out(lake, CreateLanded(ORDERS, orders(), position(5)), batch=0)
    assert [] == lake.values(ORDERS)
    lake.land([upsert(3, 1, "of the table before"), upsert(6, 2, "b")], batch=1)
    assert [{"id": 2, "name": "b", "n": None}] == lake.values(ORDERS)


def test_added_columns_are_null(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a")])
    shape = orders({**COLUMNS, "note": "text", "at": "datetime"})
    carried_out(lake, AddColumns(ORDERS, shape.columns[3:], shape))
    assert [{"id": 1, "name": "a", "n": None, "note": None, "at": None}] == lake.values(ORDERS)


def test_rewritten_columns(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 7), upsert(2, 2, "b")])
    shape = orders({"id": "bigint", "title": "varchar(20)", "n": "bigint", "m": "int"})
    select = {
        "id": ColumnSource(("bigint",), "id"),
        "title": ColumnSource(("varchar(20)",), "name"),
        "n": ColumnSource(("int", "bigint"), "n"),
        "m": ColumnSource(("int",), text="5"),
    }
    carried_out(lake, Rewrite(ORDERS, shape, select))
    assert [
        {"id": 1, "title": "a", "n": 7, "m": 5},
        {"id": 2, "title": "b", "n": None, "m": 5},
    ] == lake.values(ORDERS)
    new = {"id": 2, "title": "c", "n": 2**40, "m": None}
    lake.land([Change(0, 3, new), upsert(0, 1, "x")][:1], shape=shape, batch=60)
    assert new == lake.values(ORDERS)[1]


def test_value_that_does_not_fit_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "x", 7)])
    shape = orders({"id": "bigint", "name": "varbinary(20)"})
    select = {
        "id": ColumnSource(("bigint",), "id"),
        "name": ColumnSource(("varchar(20)", "varbinary(20)"), "name"),
    }
    token = lake.lake.ddl_token(50, 0)
    with pytest.raises(NotConvertible, match="column 'name'"):
        change_table(lake.lake, Rewrite(ORDERS, shape, select), token, {})
    assert [{"id": 1, "name": "x", "n": 7}] == lake.values(ORDERS)


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_emptied_table(tmp_path: Path, mode: str) -> None:
    lake = LandedLake(tmp_path, deletes=mode)
    lake.land([upsert(1, 1, "a"), upsert(9, 2, "later")])
    carried_out(lake, Empty(ORDERS, orders(), position(5)))
    lake.land([upsert(2, 1, "late"), upsert(10, 3, "new")], batch=60)
    live = [each["id"] for each in lake.rows(ORDERS) if not each.get("_deleted")]
    assert [2, 3] == live


def test_tables_that_are_swapped(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "first")])
    lake.land([upsert(2, 2, "second")], shape=orders(table=OLD), batch=1)
    carried_out(
        lake,
        MoveTable(ORDERS, OLD, orders(table=OLD), kept(COLUMNS)),
        MoveTable(OLD, ORDERS, orders(), kept(COLUMNS)),
    )
    assert [2] == [each["id"] for each in lake.values(ORDERS)]
    assert [1] == [each["id"] for each in lake.values(OLD)]


def test_moved_table_remembers_its_deletes(tmp_path: Path) -> None:
    from packed_changes import delete

    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a"), upsert(2, 2, "b")])
    lake.land([delete(9, 1)])
    moved = orders(table=OLD)
    carried_out(lake, MoveTable(ORDERS, OLD, moved, kept(COLUMNS)))
    lake.land([upsert(5, 1, "late")], shape=moved, batch=60)
    assert [2] == [each["id"] for each in lake.values(OLD)]


def test_described_key(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a")])
    carried_out(lake, Describe(ORDERS, orders(key=("id", "name"))))
    landed = LandedTable.open(lake.lake.location(ORDERS))
    assert landed is not None
    assert landed.shape.key == ("id", "name")
