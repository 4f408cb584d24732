"""Merging into Delta tables: rules of order, deletes, partial images, repeats; without Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta_lake import LandedLake
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_changes import (
    COLUMNS,
    ORDERS,
    Change,
    Model,
    delete,
    orders,
    packed,
    partial,
    truncate,
    upsert,
)

from headgate.codec.sequence import COMMIT, SNAPSHOT
from headgate.landing.table_rows import DELETE, UPSERT
from headgate.schema.changes import TableId
from headgate.sinks.delta import deleted, maintenance, merge
from headgate.sinks.delta.merge import merge_table
from headgate.sinks.delta.table import OwnerError, TableError


def row(id: int, name: str | None = None, n: int | None = None) -> dict[str, Any]:
    return {"id": id, "name": name, "n": n}


# Order


def test_first_batch_makes_the_table(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    merged = lake.land([upsert(1, 1, "a", 1), upsert(2, 2, "b", 2), delete(3, 2)])
    assert [row(1, "a", 1)] == lake.values(ORDERS)
    assert merged.inserted == 1
    assert ["id", "name", "n", "_position"] == [f.name for f in lake.delta(ORDERS).schema().fields]


def test_later_batches_update_insert_and_delete(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a"), upsert(2, 2, "b")])
    merged = lake.land([upsert(3, 1, "c"), delete(4, 2), upsert(5, 3, "d")])
    assert [row(1, "c"), row(3, "d")] == lake.values(ORDERS)
    assert (1, 1, 1) == (merged.inserted, merged.updated, merged.deleted)


def test_older_changes_change_nothing(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(10, 1, "new"), upsert(11, 2, "b")])
    merged = lake.land([upsert(9, 1, "old"), delete(8, 2)])
    assert [row(1, "new"), row(2, "b")] == lake.values(ORDERS)
    assert merged.ignored_old == 1


def test_older_update_after_a_delete_does_not_bring_the_row_back(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a"), upsert(2, 2, "b")])
    lake.land([delete(9, 1), delete(10, 3)])
    merged = lake.land([upsert(5, 1, "late"), upsert(6, 3, "late"), upsert(12, 2, "c")])
    assert [row(2, "c")] == lake.values(ORDERS)
    assert merged.ignored_old == 2
    lake.land([upsert(20, 1, "again")])
    assert [row(1, "again"), row(2, "c")] == lake.values(ORDERS)


def test_delete_and_insert_of_a_key_at_one_position(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a")])
    lake.land([delete(5, 1)])
    lake.land([upsert(5, 1, "b")])
    assert [row(1, "b")] == lake.values(ORDERS)


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_delete_of_a_commit_that_arrives_after_its_upsert(tmp_path: Path, mode: str) -> None:
    lake = LandedLake(tmp_path, deletes=mode)
    lake.land([upsert(1, 1, "a", kind=COMMIT)])
    lake.land([upsert(5, 1, "b", kind=COMMIT)])
    lake.land([delete(5, 1, kind=COMMIT)])
    assert [row(1, "b")] == lake.values(ORDERS)
    assert [None if mode == "hard" else False] == [r.get("_deleted") for r in lake.rows(ORDERS)]
    lake.land([delete(6, 1, kind=COMMIT)])
    assert ([] if mode == "hard" else [True]) == [r.get("_deleted") for r in lake.rows(ORDERS)]


def test_changes_of_a_source_that_replaced_another_are_newer(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(100, 1, "a"), upsert(101, 2, "b"), upsert(102, 3, "c")])
    other = "ffffffff"
    lake.land([upsert(1, 1, "x", kind=other), delete(2, 2, kind=other)])
    assert [row(1, "x"), row(3, "c")] == lake.values(ORDERS)
    lake.land([upsert(103, 3, "d"), upsert(3, 3, "y", kind=other), upsert(50, 3, "back")])
    assert [row(1, "x"), row(3, "back")] == lake.values(ORDERS)


def test_snapshot_row_that_arrives_after_a_change_or_a_delete(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a"), upsert(2, 2, "b")])
    lake.land([delete(3, 2)])
    lake.land([Change(0, 9, row(k, "read"), kind=SNAPSHOT + "-x") for k in (1, 2, 3)])
    assert [row(1, "a"), row(3, "read")] == lake.values(ORDERS)
    lake.land([upsert(1, 3, "changed")])
    assert [row(1, "a"), row(3, "changed")] == lake.values(ORDERS)


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_truncate_removes_rows_before_it(tmp_path: Path, mode: str) -> None:
    lake = LandedLake(tmp_path, deletes=mode)
    lake.land([upsert(1, 1, "a"), upsert(2, 2, "b"), upsert(9, 3, "later")])
    lake.land([truncate(5), upsert(6, 2, "new")])
    lake.land([upsert(4, 1, "late"), upsert(3, 5, "late and new"), upsert(7, 4, "d")])
    live = "_deleted IS NOT TRUE" if mode == "soft" else "TRUE"
    names = f"CASE WHEN {live} THEN name END AS name"
    found = [each["name"] for each in lake.rows(ORDERS, names) if each["name"] is not None]
    assert ["new", "later", "d"] == found


def test_truncate_alone(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a"), upsert(2, 2, "b")])
    merged = lake.land([truncate(5)])
    assert [] == lake.values(ORDERS)
    assert merged.deleted == 2


def test_key_column_in_another_case_is_the_same_column(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1)])
    other = orders({"ID": "bigint", "name": "varchar(20)", "n": "int"}, ["ID"])
    changed = [Change(UPSERT, 2, {"ID": 1, "name": "b", "n": 2}), Change(DELETE, 3, {"ID": 2})]
    lake.land(changed, shape=other)
    assert [row(1, "b", 2)] == lake.values(ORDERS)


# Deletes


def test_soft_deletes_mark_rows(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path, deletes="soft")
    lake.land([upsert(1, 1, "a", 7), upsert(2, 2, "b"), upsert(3, 3, "c"), delete(4, 3)])
    lake.land([delete(5, 1)])
    lake.land([upsert(4, 1, "late")])
    columns = "id, name, _deleted"
    assert [
        {"id": 1, "name": "a", "_deleted": True},
        {"id": 2, "name": "b", "_deleted": False},
        {"id": 3, "name": "c", "_deleted": True},
    ] == lake.rows(ORDERS, columns)
    lake.land([upsert(9, 1, "again")])
    assert {"id": 1, "name": "again", "_deleted": False} == lake.rows(ORDERS, columns)[0]


def test_ignored_deletes(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path, deletes="ignore")
    lake.land([upsert(1, 1, "a"), delete(2, 1)])
    lake.land([delete(3, 1), truncate(4)])
    assert [row(1, "a")] == lake.values(ORDERS)


# Partial images


def test_partial_images_keep_what_is_landed(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1), upsert(2, 2, "b", 2)])
    lake.land([partial(3, 1, n=5), partial(4, 2, name="c"), upsert(5, 3, "d", 3)])
    assert [row(1, "a", 5), row(2, "c", 2), row(3, "d", 3)] == lake.values(ORDERS)


def test_partial_image_after_an_older_complete_one_of_the_same_batch(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(5, 1, "landed", 5)])
    lake.land([upsert(3, 1, "older", 3), partial(7, 1, n=7)])
    assert [row(1, "landed", 7)] == lake.values(ORDERS)


def test_partial_image_of_a_row_that_is_not_there_is_an_error_of_the_table(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1)])
    with pytest.raises(TableError, match=r"'shop.orders' leaves out the column 'name'"):
        lake.land([partial(2, 9, n=5)])
    with pytest.raises(TableError, match="leaves out"):
        lake.land([delete(3, 1), partial(4, 1, n=5)])
    assert [row(1, "a", 1)] == lake.values(ORDERS)


@pytest.mark.parametrize("cut", ["beside a whole row", "in another part", "in a later batch"])
def test_partial_image_of_unknown_columns_is_an_error_however_batches_are_cut(
    tmp_path: Path, cut: str
) -> None:
    """The row alone does not show which columns its table has."""
    lake = LandedLake(tmp_path)
    alone = Change(UPSERT, 2, {"id": 9}, (), partial=True)
    if cut == "in a later batch":
        lake.land([upsert(1, 1, "a", 1)])
    whole = upsert(1, 1, "a", 1)
    parts = {
        "beside a whole row": [[whole, partial(2, 9)]],
        "in another part": [[whole], [alone]],
        "in a later batch": [[alone]],
    }
    with pytest.raises(TableError, match="leaves out"):
        lake.land(*parts[cut])


def test_partial_image_after_an_insert_from_before_a_column_existed(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1)])
    old = Change(UPSERT, 2, {"id": 2, "name": "b"})
    lake.land([old, Change(UPSERT, 3, {"id": 2, "name": "c"}, (), partial=True)])
    assert [row(1, "a", 1), row(2, "c")] == lake.values(ORDERS)


def test_partial_image_of_a_row_that_is_not_there_can_be_landed_with_nulls(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path, on_misfit="null")
    lake.land([partial(2, 9, n=5)])
    assert [row(9, None, 5)] == lake.values(ORDERS)


def moved(at: int, old: int, new: int, **columns: Any) -> list[Change]:
    """An update that changes the key, and has only what it changes."""
    return [delete(at, old, arrival=at), replace(partial(at, new, **columns), arrival=at)]


@pytest.mark.parametrize("cuts", [(), (1,), (3,), (1, 3, 5)])
def test_partial_images_that_change_the_key(tmp_path: Path, cuts: tuple[int, ...]) -> None:
    """The row keeps what they leave out, over several changes of its key, and when read again."""
    swapped = [*moved(5, 1, 9), *moved(6, 2, 1), *moved(7, 9, 2, n=7)]
    changes = [upsert(1, 1, "a", 1), *moved(2, 1, 5), *moved(3, 5, 1, n=3), upsert(4, 2, "b", 4)]
    changes = [replace(change, arrival=change.at) for change in [*changes, *swapped]]
    lake = LandedLake(tmp_path)
    for start, end in zip([0, *cuts], [*cuts, len(changes)]):
        lake.land(changes[start:end])
    assert [row(1, "b", 4), row(2, "a", 7)] == lake.values(ORDERS)
    lake.land(changes[6:])
    lake.land(changes)
    assert [row(1, "b", 4), row(2, "a", 7)] == lake.values(ORDERS)


def test_change_of_a_key_that_has_the_key_only(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1), upsert(1, 2, "b", 2)])
    only = orders({"id": "bigint"})
    update = [delete(2, 1, arrival=9), Change(UPSERT, 2, {"id": 3}, arrival=9)]
    lake.land([*update, Change(UPSERT, 3, {"id": 2})], shape=only)
    assert [row(2, "b", 2), row(3, "a", 1)] == lake.values(ORDERS)


def test_columns_that_no_change_of_a_batch_has_stay_as_they_are(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1)])
    fewer = orders({"id": "bigint", "name": "varchar(20)"})
    lake.land([Change(0, 2, {"id": 1, "name": "b"}), Change(0, 3, {"id": 2})], shape=fewer)
    assert [row(1, "b", 1), row(2)] == lake.values(ORDERS)


# Exactly once


def test_batch_that_is_landed_again_changes_nothing(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a")], batch=3)
    version = lake.delta(ORDERS).version()
    lake.land([upsert(9, 1, "of another attempt")], batch=3)
    lake.land([upsert(9, 1, "of an older batch")], batch=2)
    assert [row(1, "a")] == lake.values(ORDERS)
    assert version == lake.delta(ORDERS).version()


def test_every_commit_names_its_batch(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a")], batch=4)
    lake.land([upsert(2, 1, "b")], batch=5)
    batches = [each.get("headgate.batch") for each in lake.delta(ORDERS).history()]
    assert ["5", "4"] == [batch for batch in batches if batch is not None]


def interrupt(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Let something happen between the look at a table and its commit, once."""
    original, seen = merge.merge_changes, []

    def interrupted(*args: Any) -> Any:
        if not seen:
            seen.append(True)
            meanwhile()
        return original(*args)

    monkeypatch.setattr(merge, "merge_changes", interrupted)


def test_two_writers_of_one_batch_land_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appended rows conflict with nothing but the token."""
    lake, keyless = LandedLake(tmp_path), orders(key=())
    lake.land([upsert(1, 1, "x")], shape=keyless, batch=0)
    interrupt(monkeypatch, lambda: lake.land([upsert(2, 2, "y")], shape=keyless, batch=1))
    lake.land([upsert(2, 2, "y")], shape=keyless, batch=1)
    assert [row(1, "x"), row(2, "y")] == lake.values(ORDERS)


def test_delete_of_a_row_without_a_key_that_is_tried_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an attempt noted that did not get to its commit does not count."""
    lake, keyless = LandedLake(tmp_path), orders(key=())
    lake.land([upsert(1, 1, "x"), upsert(1, 1, "x"), upsert(2, 2, "y")], shape=keyless)
    interrupt(monkeypatch, lambda: lake.delta(ORDERS).update({"name": "'z'"}, predicate="id = 2"))
    gone = Change(DELETE, 3, row(1, "x"))
    lake.land([gone], shape=keyless)
    assert [row(1, "x"), row(2, "z")] == lake.values(ORDERS)
    lake.land([gone, gone], shape=keyless)  # the first of them for the second time
    assert [row(2, "z")] == lake.values(ORDERS)


def test_table_that_somebody_else_changes_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a"), upsert(2, 2, "b")])
    interrupt(monkeypatch, lambda: lake.delta(ORDERS).update({"n": "42"}))
    lake.land([partial(3, 1, name="c")])
    assert [row(1, "c", 42), row(2, "b", 42)] == lake.values(ORDERS)


def test_table_of_another_job_is_refused_unless_adopted(tmp_path: Path) -> None:
    LandedLake(tmp_path, "one").land([upsert(5, 1, "a"), upsert(6, 2, "b")])
    with pytest.raises(OwnerError, match="adopt: true"):
        LandedLake(tmp_path, "two").land([upsert(7, 1, "x")])
    again = LandedLake(tmp_path, "two", adopt=True)
    again.land([upsert(5, 1, "a"), upsert(6, 2, "b"), upsert(7, 1, "c")])
    assert [row(1, "c"), row(2, "b")] == again.values(ORDERS)
    with pytest.raises(OwnerError):
        LandedLake(tmp_path, "one").land([upsert(8, 1, "y")], batch=1)


def test_delta_table_of_somebody_else_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "shop/orders", pa.table({"id": [1]}))
    with pytest.raises(OwnerError, match="has not landed"):
        LandedLake(tmp_path, adopt=True).land([upsert(1, 1)])


def test_two_tables_at_one_path_are_refused(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path, table="{table}")
    lake.land([upsert(1, 1)])
    with pytest.raises(OwnerError, match="tells them apart"):
        lake.land([upsert(1, 1)], shape=orders(table=TableId("archive", "orders")))


# Shapes


def test_columns_that_appear_in_rows_are_added(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1)])
    more = orders({**COLUMNS, "price": "decimal(10,2)", "at": "datetime(6)"})
    new = {**row(2, "b", 2), "price": Decimal("1.50"), "at": datetime(2024, 5, 1, 12)}
    lake.land([Change(0, 2, new)], shape=more)
    assert [{**row(1, "a", 1), "price": None, "at": None}, new] == lake.values(ORDERS)


def test_columns_become_wider(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1)])
    wide = orders({**COLUMNS, "n": "bigint"})
    lake.land([upsert(2, 2, "b", 2**40)], shape=wide)
    lake.land([upsert(3, 3, "c", 3)])
    assert [row(1, "a", 1), row(2, "b", 2**40), row(3, "c", 3)] == lake.values(ORDERS)


def test_column_without_a_type_is_read_in_that_of_the_table(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    lake.land([upsert(1, 1, "a", 1)])
    untyped = orders({**COLUMNS, "n": None})
    lake.land([Change(0, 2, {"id": 1, "name": "b", "n": "7"})], shape=untyped)
    assert [row(1, "b", 7)] == lake.values(ORDERS)
    with pytest.raises(TableError, match="misfit"):
        lake.land([Change(0, 3, {"id": 1, "name": "b", "n": "seven"})], shape=untyped)


def test_new_columns_can_be_ignored(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path, schema_change="ignore")
    lake.land([upsert(1, 1, "a", 1)])
    more = orders({**COLUMNS, "note": "text"})
    lake.land([Change(0, 2, {**row(1, "b", 2), "note": "x"})], shape=more)
    assert [row(1, "b", 2)] == lake.values(ORDERS)


def test_names_of_columns_are_only_names(tmp_path: Path) -> None:
    hostile = [
        'a" OR "1',
        "b`c",
        "d'e",
        "select",
        "f.g",
        "h--",
        "表",
        "_position",
        "T.x",
        "s",
        "_newer",
    ]
    shape = orders({"id": "bigint", **dict.fromkeys(hostile, "varchar(9)")})
    lake = LandedLake(tmp_path)
    names = [column.name for column in shape.columns[1:]]
    lake.land([Change(0, 1, {"id": 1, **dict.fromkeys(names, "x")})], shape=shape)
    lake.land([Change(0, 2, {"id": 1, **dict.fromkeys(names, "y")})], shape=shape)
    lake.land([Change(0, 3, {"id": 1, names[0]: "z"}, tuple(names[1:]))], shape=shape)
    [found] = lake.rows(ORDERS)
    assert ["z"] + ["y"] * (len(names) - 1) == [found[name] for name in names]


@pytest.mark.parametrize(
    ("mysql", "values"),
    [
        ("varchar(50)", ["it's", "\u0000", "", "\\", "表", "x" * 300]),
        ("bigint unsigned", [Decimal(2**64 - 1), Decimal(0)]),
        ("decimal(20,5)", [Decimal("1.50000"), Decimal("-1.50000")]),
        ("date", [date(2024, 5, 1), date(1, 1, 1)]),
        ("datetime(6)", [datetime(2024, 5, 1, 1, 2, 3, 4), datetime(1999, 1, 1)]),
        ("varbinary(9)", [b"", b"\xff\x00", b"'"]),
        ("boolean", [0, 1]),
        ("double", [1.5, -0.25]),
    ],
)
def test_keys_of_every_type(tmp_path: Path, mysql: str, values: list[Any]) -> None:
    shape = orders({"id": mysql, "name": "varchar(9)"})

    def change(at: int, value: Any, name: str) -> Change:
        return Change(0, at, {"id": value, "name": name})

    lake = LandedLake(tmp_path)
    lake.land([change(1, value, "old") for value in values], shape=shape)
    lake.land([change(2, value, "new") for value in values], shape=shape)
    assert ["new"] * len(values) == [each["name"] for each in lake.rows(ORDERS)]
    lake.land([delete(5, values[0])], shape=shape)
    lake.land([change(3, value, "late") for value in values], shape=shape)
    assert ["late"] * (len(values) - 1) == [each["name"] for each in lake.rows(ORDERS)]
    assert values[0] not in [each["id"] for each in lake.rows(ORDERS)]


# Logs


def test_log_has_every_change(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path, mode="log")
    lake.land([upsert(2, 1, "a"), upsert(1, 1, "b"), delete(3, 1)])
    lake.land([upsert(9, 2, "c")], batch=1)
    lake.land([upsert(9, 2, "c")], batch=1)
    found = lake.rows(ORDERS, "_op, id, name", "_position")
    assert [("upsert", "b"), ("upsert", "a"), ("delete", None), ("upsert", "c")] == [
        (each["_op"], each["name"]) for each in found
    ]


# Any history


@st.composite
def disordered(draw: st.DrawFn) -> list[list[Change]]:
    """Batches of changes at different positions, in any order, some of them twice."""
    numbers = draw(st.permutations(range(draw(st.integers(1, 10)))))
    changes: list[Change] = []
    for at in numbers:
        key = draw(st.integers(1, 3))
        kind = draw(st.sampled_from(["upsert"] * 4 + ["delete"] * 3 + ["truncate"]))
        if kind == "upsert":
            changes.append(upsert(at, key, draw(st.sampled_from("abc")), at))
        else:
            changes.append(delete(at, key) if kind == "delete" else truncate(at))
    again = draw(st.lists(st.sampled_from(changes), max_size=3))
    return cut(draw, [*changes, *again])


@st.composite
def replayed(draw: st.DrawFn) -> list[list[Change]]:
    """Batches of changes in their order, partial ones among them; some ranges come twice."""
    changes: list[Change] = []
    present: set[int] = set()
    for at in range(draw(st.integers(1, 10))):
        key = draw(st.integers(1, 3))
        if key in present and draw(st.booleans()):
            changes.append(
                partial(at, key, **draw(st.sampled_from([{"n": at}, {"name": str(at)}])))
            )
        elif key in present and draw(st.booleans()):
            changes.append(delete(at, key))
            present.discard(key)
        else:
            changes.append(upsert(at, key, "full", at))
            present.add(key)
    start = draw(st.integers(0, len(changes)))
    return cut(draw, changes) + [changes[start:]] * draw(st.integers(0, 1))


def cut(draw: st.DrawFn, changes: list[Change]) -> list[list[Change]]:
    places = sorted(draw(st.sets(st.integers(1, max(len(changes) - 1, 1)), max_size=3)))
    ends = zip([0, *places], [*places, len(changes)])
    return [changes[a:b] for a, b in ends if changes[a:b]]


def landed(batches: list[list[Change]]) -> list[dict[str, Any]]:
    """What batches make, each of them landed twice."""
    with tempfile.TemporaryDirectory() as folder:
        lake = LandedLake(Path(folder))
        for number, batch in enumerate(batches):
            if batch:
                for _ in range(2):
                    lake.land(batch, batch=number)
        return lake.values(ORDERS)


@settings(max_examples=examples(60), deadline=None)
@given(disordered())
def test_any_disorder_gives_the_rows_of_the_model(batches: list[list[Change]]) -> None:
    model = Model().apply(change for batch in batches for change in batch)
    assert model.table() == landed(batches)


@settings(max_examples=examples(60), deadline=None)
@given(replayed())
def test_replays_with_partial_images_give_the_rows_of_the_model(
    batches: list[list[Change]],
) -> None:
    in_order = sorted({c.at: c for batch in batches for c in batch}.values(), key=lambda c: c.at)
    assert Model().apply(in_order).table() == landed(batches)


def test_statistics_let_files_be_skipped(tmp_path: Path) -> None:
    """A merge of new keys leaves the files of others alone."""
    lake = LandedLake(tmp_path, optimize="off")
    lake.land([upsert(n, n, "a") for n in range(100)])
    before = set(lake.delta(ORDERS).file_uris())
    lake.land([upsert(200, 500, "b"), upsert(201, 501, "c")])
    assert before <= set(DeltaTable(lake.lake.location(ORDERS).uri).file_uris())


def test_packed_changes_of_several_workers(tmp_path: Path) -> None:
    lake = LandedLake(tmp_path)
    token = lake.lake.merge_token(0, 0)
    merge_table(
        lake.lake, token, [packed([upsert(2, 1, "b")]), packed([upsert(1, 1, "a")], first=9)]
    )
    assert [row(1, "b")] == lake.values(ORDERS)


# Upkeep


def test_upkeep_that_fails_leaves_the_merge_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(maintenance, "LOOK_EVERY", 1)
    lake = LandedLake(tmp_path, mode="log")
    lake.land([upsert(1, 1, "a")])
    lake.land([upsert(2, 2, "b")])
    for file in (tmp_path / "shop/orders").glob("*.parquet"):
        file.unlink()  # so that files cannot be joined
    monkeypatch.setattr(maintenance, "MOST_SMALL_FILES", 1)
    assert 1 == lake.land([upsert(3, 3, "c")]).inserted
    assert "cannot optimize" in caplog.text


def test_small_files_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LOOK_EVERY", 2)
    monkeypatch.setattr(maintenance, "MOST_SMALL_FILES", 3)
    lake = LandedLake(tmp_path)
    for number in range(12):  # new keys are new files
        lake.land([upsert(number, number, "a")])
    assert len(lake.delta(ORDERS).file_uris()) <= 5
    assert list(range(12)) == [each["id"] for each in lake.values(ORDERS)]


def test_files_that_nobody_needs_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "VACUUM_EVERY", 1)
    lake = LandedLake(tmp_path)
    files = tmp_path / "shop/orders"
    for number in range(3):
        lake.land([upsert(number, 1, "a")])
    assert 3 == len(list(files.glob("*.parquet"))), "readers of the last week may need them"

    kept = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    lake.delta(ORDERS).alter.set_table_properties(kept)
    lake.land([upsert(5, 1, "b")])
    assert len(list(files.glob("*.parquet"))) <= 2, "its own, and the one that it replaced just now"
    assert [row(1, "b")] == lake.values(ORDERS)


def test_rows_are_clustered_by_key_when_files_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "TARGET_BYTES", 6000)
    lake = LandedLake(tmp_path)
    for number in range(6):
        lake.land([upsert(number, n * 6 + number, str(n)) for n in range(500)])
    table = lake.lake.opened(ORDERS)
    assert table is not None
    assert maintenance.is_scattered(table)

    monkeypatch.setattr(maintenance, "VACUUM_EVERY", 1)
    lake.land([upsert(10, 3, "new")])
    table = lake.lake.opened(ORDERS)
    assert table is not None
    assert len(table.delta.file_uris()) > 2
    assert not maintenance.is_scattered(table)
    assert list(range(3000)) == [each["id"] for each in lake.values(ORDERS)]

    before = set(table.delta.file_uris())
    lake.land([upsert(11, 5, "newer")])
    assert 1 == len(before - set(lake.delta(ORDERS).file_uris()))


@pytest.mark.parametrize("key", [["id"], ["name"], ["id", "name"], []])
def test_files_with_ranges_of_their_own_are_left_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: list[str]
) -> None:
    monkeypatch.setattr(maintenance, "TARGET_BYTES", 1)
    lake = LandedLake(tmp_path, optimize="off")
    for number in range(4):
        changes = [upsert(number, number * 10 + n, f"{number}{n}") for n in range(9)]
        lake.land(changes, shape=orders(key=key))
    table = lake.lake.opened(ORDERS)
    assert table is not None
    assert not maintenance.is_scattered(table)


def test_changes_newer_than_all_deletes_of_their_kind_do_not_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = "11111111", "99999999"
    lake = LandedLake(tmp_path)
    lake.land([delete(5, 1, kind=one), delete(7, 2, kind=two)])
    lake.land([upsert(4, 1, "late", kind=one), upsert(6, 2, "late", kind=two)])
    with monkeypatch.context() as patch:
        patch.setattr(deleted, "rows_of", lambda *_: pytest.fail("notes are read"))
        lake.land([upsert(6, 3, "a", kind=one), upsert(8, 4, "b", kind=two)])
    lake.land([upsert(4, 1, "late", kind=one), upsert(9, 2, "c", kind=two)])
    assert [row(2, "c"), row(3, "a"), row(4, "b")] == lake.values(ORDERS)


def test_positions_of_deleted_keys_are_forgotten_after_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleted, "TIDY_EVERY", 2)
    lake = LandedLake(tmp_path, remember_deletes="0s")
    for number in range(6):
        lake.land([upsert(10 * number, 1, "a"), delete(10 * number + 1, 1)])
    known = lake.lake.deleted_keys(ORDERS).everything()
    assert known is None or known.num_rows <= 1
    week = LandedLake(tmp_path / "week")
    for number in range(6):
        week.land([upsert(10 * number, 1, "a"), delete(10 * number + 1, 1)])
    remembered = week.lake.deleted_keys(ORDERS).everything()
    assert remembered is not None
    assert remembered.num_rows == 6


def test_values_that_statistics_cannot_tell_are_found(tmp_path: Path) -> None:
    """delta-rs notes ranges of decimals as doubles: a reader must not skip a file for them."""
    shape = orders({"id": "bigint unsigned", "price": "decimal(30,10)"})
    large, price = Decimal(2**64 - 1), Decimal("12345678901234567890.0123456789")
    lake = LandedLake(tmp_path)
    lake.land([Change(0, 1, {"id": Decimal(1), "price": price})], shape=shape)
    lake.land([Change(0, 2, {"id": large, "price": price})], shape=shape)
    lake.land([Change(0, 3, {"id": large, "price": price})], shape=shape)
    found = lake.rows(ORDERS, "id", "id")
    assert [{"id": Decimal(1)}, {"id": large}] == found
    query = QueryBuilder().register("landed", lake.delta(ORDERS))
    for condition in (f"id = {large}", f"price = CAST('{price}' AS DECIMAL(30,10))"):
        assert pa.table(query.execute(f"SELECT id FROM landed WHERE {condition}")).num_rows
