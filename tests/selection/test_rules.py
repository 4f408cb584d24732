"""Every rule decides alone; the selection only puts them together."""

from __future__ import annotations

import pytest

from headgate.core.errors import UsageError
from headgate.core.event import Event
from headgate.core.keys import KeyedError
from headgate.selection.columns import Columns, Projection
from headgate.selection.filters import Filter, TableFilter, Transform
from headgate.selection.globs import TableGlob, TableNames
from headgate.selection.routes import FlinkRoute, Route, Router
from headgate.selection.statements import Ddl, rename_statement
from headgate.selection.tables import Tables, TableSelector


@pytest.mark.parametrize(
    ("pattern", "names", "expected"),
    [
        ("shop.*", ("shop", None, "orders"), True),
        ("shop.*", ("shop", None, None), True),
        ("shop.orders", ("shop", None, None), None),
        ("shop.orders", (None, None, "orders"), None),
        ("shop.orders", ("crm", None, None), False),
        ("shop.orders", ("shop", "public", "orders"), True),
        ("public.orders", ("shop", "public", "orders"), True),
        ("shop.public.*", ("shop", "public", "orders"), True),
        ("shop.public.*", ("shop", "other", "orders"), False),
        ("shop.public.*", (None, "public", "orders"), None),
    ],
)
def test_a_table_pattern_matches_or_does_not_or_cannot_tell(
    pattern: str, names: TableNames, expected: bool | None
) -> None:
    assert expected is TableGlob(pattern).matches(names)


@pytest.mark.parametrize(
    ("tables", "all_tables"),
    [
        (Tables(), True),
        (Tables(("a.b", "*.*")), True),
        (Tables(("a.*",)), False),
        (Tables(exclude=("a.b",)), False),
    ],
)
def test_whether_all_tables_are_selected(tables: Tables, all_tables: bool) -> None:
    assert all_tables == TableSelector(tables).selects_all


def test_ddl_by_operation() -> None:
    assert Ddl().selects_all
    assert [True, False, False] == [Ddl(("create",)).selects(op) for op in ("create", "drop", None)]
    assert [True, False] == [Ddl(exclude=("drop",)).selects(op) for op in ("create", "drop")]
    assert not Ddl(()).selects("create")
    with pytest.raises(KeyedError, match="drop is both included and excluded") as caught:
        Ddl(("create", "drop"), ("drop",))
    assert "exclude" == caught.value.key


def test_a_filter_that_keeps_all_has_no_projection() -> None:
    assert Filter("a.b").keeps_all
    assert TableFilter(Filter("a.b", ("insert",))).projection is None
    assert not Filter("a.b", columns=Columns(exclude=("x",))).keeps_all


def test_a_projection_removes_columns_from_both_images() -> None:
    event = Event("row", "update", "a", "b", before={"id": "1", "X": "2"}, after={"id": "1"})

    kept = Projection(Columns(exclude=("x",)), "a.b").apply(event)
    assert ({"id": "1"}, {"id": "1"}) == (kept.before, kept.after)


@pytest.mark.parametrize(
    ("table", "to", "topic"),
    [("a.b", None, None), ("ab", "c.d", None), ("a.b", "c", None), ("a.b", None, "$1")],
)
def test_a_wrong_route_cannot_be_made(table: str, to: str | None, topic: str | None) -> None:
    with pytest.raises(UsageError):
        Route(table, to, topic)


def test_flink_cdcs_words_stand_for_ours() -> None:
    assert (
        Filter("a.*", None, "x > 1", Columns(("x", "y")))
        == Transform("a.*", "x > 1", "x, y").as_rule()
    )
    assert Route("a\\.(.*)", "ods.t_$1") == FlinkRoute("a\\..*", "ods.t_<>", None, "<>").as_rule()


def test_a_router_gives_new_names() -> None:
    router = Router(Route("shop.(.*)", "lake.$1"))

    match = router.match("shop", None, "orders")
    assert match is not None
    assert ("lake", None, "orders") == router.new_names(("shop", None, "orders"), match)
    assert router.match("crm", None, "orders") is None


def test_a_statement_under_new_names() -> None:
    event = Event("ddl", "drop", "shop", "t", ddl="DROP TABLE t")

    changed = rename_statement(event, ("lake", None, "t2"), lambda name: ("lake", "t2"))
    assert ("lake", "t2") == (changed.database, changed.table)
    assert changed.ddl is not None
    assert "t2" in changed.ddl
    assert rename_statement(event, None, lambda name: name) is event
