"""Shapes of landed tables: names that a lake takes, types that hold all rows, differences."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.landing.shape import (
    RESERVED,
    LandedColumn,
    TableShape,
    difference,
    landed_name,
    landed_names,
    table_shape,
    union,
)
from headgate.landing.types import TypePreferences
from headgate.schema.changes import TableId

ORDERS = TableId("shop", "orders")
FORBIDDEN = set(" ,;{}()\n\t=.`\"'\\/")
"""What Delta refuses in a name without column mapping, and what breaks SQL and paths."""


# Names


@pytest.mark.parametrize(
    ("name", "landed"),
    [
        ("id", "id"),
        ("Unit_Price2", "Unit_Price2"),
        ("价格", "价格"),
        ("ชื่อ", "ชื่อ"),
        ("größe", "größe"),
        ("_id", "_id"),
        ("pos_x_min", "pos_x_min"),
        ("cpu_x86", "cpu_x86"),
        ("size_x1080", "size_x1080"),
        ("a-b$c#d@e", "a-b$c#d@e"),
        ("unit price", "unit_x0020_price"),
        ("a.b", "a_x002e_b"),
        ("`x`", "_x0060_x_x0060_"),
        ("价格(元)", "价格_x0028_元_x0029_"),
        ("a,b;{}=\n\t", "a_x002c_b_x003b__x007b__x007d__x003d__x000a__x0009_"),
        ("a_x0020_b", "a_x005f_x0020_b"),
        ("\u202ebidi", "_x202e_bidi"),
        ("", "_empty"),
        ("_empty", "_x005f_empty"),
        ("_position", "_x005f_position"),
        ("_OP", "_x005f_OP"),
        ("_deleted", "_x005f_deleted"),
        ("_commit_version", "_x005f_commit_version"),
    ],
)
def test_the_name_of_a_column_in_the_lake(name: str, landed: str) -> None:
    assert landed == landed_name(name)


hostile = st.one_of(
    st.text("_xX02 5fF.é", max_size=20),
    st.text(max_size=12),
    st.sampled_from(["_empty", *sorted(RESERVED)]),
)


@given(st.lists(hostile, unique=True))
def test_landed_names_are_safe_and_each_its_own(names: list[str]) -> None:
    landed = landed_names(names)

    assert names == list(landed)
    assert len({name.lower() for name in names}) == len({n.lower() for n in landed.values()})
    for source, name in landed.items():
        assert name
        assert not FORBIDDEN & set(name)
        assert name.isprintable()
        assert name.lower() not in RESERVED
        assert name != "_empty" or source == ""


@given(st.lists(hostile, unique=True))
def test_different_names_land_under_different_names(names: list[str]) -> None:
    assert len(names) == len({landed_name(name) for name in names})


# Shapes


def test_a_shape_has_types_names_and_key_of_the_lake() -> None:
    types = {"order id": "bigint unsigned", "Paid": "tinyint(1)", "note": None}

    shape = table_shape(ORDERS, types, ["ORDER ID"], TypePreferences(tinyint1="boolean"))

    assert ("order_x0020_id",) == shape.key
    assert (
        LandedColumn("order_x0020_id", "decimal(20,0)", "bigint unsigned", "order id"),
        LandedColumn("Paid", "boolean", "tinyint(1)"),
        LandedColumn("note", "string"),
    ) == shape.columns
    assert ["order id", "Paid", "note"] == [column.source_name for column in shape.columns]
    assert [False, False, True] == [column.is_untyped for column in shape.columns]


def test_a_shape_travels_as_json() -> None:
    shape = table_shape(ORDERS, {"a b": "int", "c": None}, ["a b"])

    assert shape == msgspec.json.decode(msgspec.json.encode(shape), type=TableShape)


def test_a_union_has_all_columns_in_types_that_hold_all_rows() -> None:
    items = TableId("shop", "items")
    shapes = [
        table_shape(ORDERS, {"id": "int", "price": "decimal(10,2)", "note": None}),
        table_shape(items, {"id": "int"}, ["id"]),
        table_shape(ORDERS, {"ID": "bigint", "price": "decimal(10,4)", "note": "json"}, ["ID"]),
        table_shape(ORDERS, {"id": None, "day": "date", "price": "int"}),
    ]

    merged, other = union(shapes)

    assert shapes[1] == other
    assert ORDERS == merged.table
    assert [
        ("id", "bigint", "bigint"),
        ("price", "decimal(14,4)", "int"),
        ("note", "string", "json"),
        ("day", "date", "date"),
    ] == [(column.name, column.type, column.mysql) for column in merged.columns]
    assert ("id",) == merged.key


def test_a_union_of_types_that_no_type_holds_keeps_the_first() -> None:
    shapes = [table_shape(ORDERS, {"a": "blob"}), table_shape(ORDERS, {"a": "int"})]

    assert [shapes[0]] == union(shapes)


def difference_of(landed: str | None, wanted: str | None) -> tuple[list[object], ...]:
    found = difference(table_shape(ORDERS, {"a": landed}), table_shape(ORDERS, {"A": wanted}))
    return (
        [(column.name, column.type) for column in found.new],
        [(column.name, column.type, column.mysql) for column in found.widened],
        [(column.name, column.type) for column in found.untyped],
        [(known.type, column.type) for known, column in found.incompatible],
    )


@pytest.mark.parametrize(
    ("landed", "wanted", "expected"),
    [
        ("int", "int(11)", ([], [], [], [])),
        ("bigint", "int", ([], [], [], [])),
        ("int", "bigint", ([], [("a", "bigint", "bigint")], [], [])),
        ("int", "decimal(5,2)", ([], [("a", "decimal(12,2)", "decimal(5,2)")], [], [])),
        ("date", "datetime", ([], [("a", "timestamp_ntz", "datetime")], [], [])),
        ("int", "varchar(9)", ([], [("a", "string", "varchar(9)")], [], [])),
        ("varchar(9)", "int", ([], [], [], [])),
        ("int", None, ([], [], [("a", "int")], [])),
        (None, "int", ([], [], [], [])),
        (None, "blob", ([], [], [], [])),
        ("text", "blob", ([], [], [], [("string", "binary")])),
        ("datetime", "timestamp", ([], [], [], [("timestamp_ntz", "timestamp")])),
    ],
)
def test_what_a_landed_column_lacks(
    landed: str | None, wanted: str | None, expected: tuple[list[object], ...]
) -> None:
    assert expected == difference_of(landed, wanted)


def test_a_column_that_is_not_landed_yet_is_new() -> None:
    landed = table_shape(ORDERS, {"id": "int", "old": "int"})
    wanted = table_shape(ORDERS, {"ID": "int", "new one": "json"})

    found = difference(landed, wanted)

    assert (LandedColumn("new_x0020_one", "string", "json", "new one"),) == found.new
    assert not found.widened
    assert not found.incompatible
