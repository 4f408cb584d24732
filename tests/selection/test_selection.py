"""Which events a job takes, what is left of them, and what they are called."""

from __future__ import annotations

import pickle
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.config.reader import job_of
from headgate.core.event import ColumnType, Event
from headgate.schema.table_names import rename_tables
from headgate.selection.columns import Columns
from headgate.selection.filters import Filter
from headgate.selection.regexes import split_regex
from headgate.selection.routes import Route, safe
from headgate.selection.selection import Rules, Selection, SelectionError
from headgate.selection.statements import Ddl
from headgate.selection.tables import Tables

ALL, ANY_DDL = Tables(), Ddl()


def selection(tables=ALL, filters=(), ddl=ANY_DDL, routes=()) -> Selection:
    return Selection(Rules(tables, filters, ddl, routes))


def row(name: str = "shop.orders", op: str = "insert", **members) -> Event:
    database, table = name.split(".")
    return Event("row", op, database, table, **members)


def ddl(statement: str, op: str = "alter", table: str | None = "orders", **members) -> Event:
    return Event("ddl", op, "shop", table, ddl=statement, **members)


# wants


@pytest.mark.parametrize(
    ("include", "exclude", "name", "expected"),
    [
        (("*.*",), (), "shop.orders", True),
        (("shop.*",), (), "shop.orders", True),
        (("shop.*",), (), "shop2.orders", False),
        (("shop.*",), (), "Shop.orders", False),
        (("shop.order?",), (), "shop.orders", True),
        (("shop.order?",), (), "shop.order", False),
        (("sh*p.*_log",), (), "shoop.a_log", True),
        (("a.*", "shop.orders"), (), "shop.orders", True),
        (("a.*", "shop.orders"), (), "shop.orders2", False),
        (("shop.*",), ("shop.tmp_*",), "shop.tmp_1", False),
        (("shop.*",), ("*.tmp_*",), "shop.tmp_1", False),
        (("shop.*",), ("shop.tmp_*",), "shop.orders", True),
    ],
)
def test_tables(include, exclude, name, expected):
    chosen = selection(Tables(include, exclude))
    database, table = name.split(".")

    assert expected == chosen.wants(row(name))
    assert expected == chosen.wants(Event("ddl", "alter", database, table, ddl="ALTER …"))


def test_names_are_matched_whole_whatever_they_hold():
    chosen = selection(Tables(("shop.a*",)))

    assert chosen.wants(Event("row", "insert", "shop", "a\n.b"))
    assert not chosen.wants(Event("row", "insert", "shop", "b\na"))
    assert not chosen.wants(Event("row", "insert", "shop\n", "a"))


@pytest.mark.parametrize("kind", ["watermark", "heartbeat", "invalid", "marker", "tombstone"])
def test_what_has_no_table_always_passes(kind):
    chosen = selection(Tables(("a.b",)), (Filter("a.b", ("insert",)),), Ddl(()))

    assert chosen.wants(Event(kind))


def test_what_has_a_table_passes_with_it():
    chosen = selection(Tables(("a.b",)), (Filter("a.b", ("insert",)),))

    assert not chosen.wants(Event("marker", "snapshot_begin", "a", "x"))
    assert chosen.wants(Event("marker", "snapshot_begin", "a", "b"))
    assert not chosen.wants(Event("tombstone", None, "a", "x"))
    assert not chosen.wants(Event("tombstone", None, "a", "b"))  # deletes are not taken
    assert selection(Tables(("a.b",))).wants(Event("tombstone", None, "a", "b"))
    assert chosen.wants(Event("invalid", None, "a", "x"))


def test_operations():
    chosen = selection(filters=(Filter("shop.orders", ("insert", "update")), Filter("shop.*")))
    ops = ["insert", "update", "delete", "snapshot", "truncate"]

    assert [True, True, False, False, False] == [chosen.wants(row(op=op)) for op in ops]
    assert [True] * 5 == [chosen.wants(row("shop.other", op)) for op in ops]


def test_the_first_filter_counts():
    chosen = selection(filters=(Filter("shop.*", ("insert",)), Filter("shop.orders", ("delete",))))

    assert (True, False) == (chosen.wants(row(op="insert")), chosen.wants(row(op="delete")))


def test_ddl_operations():
    chosen = selection(ddl=Ddl(("create", "alter"), ("drop",)))
    ops = ["create", "alter", "drop", "rename", "truncate", "create_index", "query"]
    assert [True, True, *[False] * 5] == [chosen.wants(ddl("", op)) for op in ops]
    assert chosen.wants(row())

    chosen = selection(ddl=Ddl(None, ("drop",)))
    assert [True, True, False, True] == [chosen.wants(ddl("", op)) for op in ops[:4]]
    assert not selection(ddl=Ddl(())).wants(ddl("", "create"))


def test_ddl_of_a_database_passes_if_a_table_of_it_could():
    chosen = selection(Tables(("shop.orders", "crm.*"), ("crm.*", "shop.tmp_*")))

    def wanted(database):
        return chosen.wants(Event("ddl", "query", database, ddl="DROP DATABASE x"))

    assert (True, False, False, True) == (
        wanted("shop"),
        wanted("crm"),
        wanted("other"),
        wanted(None),
    )


def test_a_row_that_does_not_tell_what_decides_is_parked():
    chosen = selection(Tables(("shop.*",)))
    with pytest.raises(SelectionError) as caught:
        chosen.wants(Event("row", "insert", None, "orders"))
    assert "no-table" == caught.value.code
    assert chosen.wants(Event("row", "insert", "shop"))
    assert not chosen.wants(Event("row", "insert", "crm"))
    chosen = selection(filters=(Filter("shop.orders", columns=Columns(exclude=("note",))),))
    with pytest.raises(SelectionError):
        chosen.wants(Event("row", "insert"))
    assert selection().wants(Event("row", "insert"))


def test_the_text_of_dml_passes_only_where_nothing_is_taken_from_rows():
    statement = Event("statement", "insert", "shop", "orders", ddl="INSERT …")
    somewhere = Event("statement", "insert", ddl="INSERT …")

    assert (True, True) == (selection().wants(statement), selection().wants(somewhere))
    chosen = selection(filters=(Filter("shop.orders", columns=Columns(exclude=("note",))),))
    assert (False, False) == (chosen.wants(statement), chosen.wants(somewhere))
    assert chosen.wants(Event("statement", "insert", "shop", "other", ddl="INSERT …"))


# shape: columns


def test_excluded_columns_go_from_everything():
    types = {"id": ColumnType("int"), "Note": ColumnType("text"), "n": ColumnType("int")}
    event = row(
        op="update",
        key=("id",),
        before={"id": "1", "Note": "a", "n": "1"},
        after={"id": "1", "Note": "b", "n": "2"},
        types=types,
        extra={"numbers": '["id","Note"]', "nested": '["Note"]', "h": '{"Note":true,"id":true}',
               "query": "UPDATE … 'b'", "sql": "x", "unnamedOld": "{}", "xid": "5"},
    )  # fmt: skip
    untouched = msgspec.structs.replace(event)
    chosen = selection(filters=(Filter("shop.orders", columns=Columns(exclude=("note",))),))

    found = chosen.shape(event)
    assert {"id": "1", "n": "1"} == found.before
    assert {"id": "1", "n": "2"} == found.after
    assert {"id": ColumnType("int"), "n": ColumnType("int")} == found.types
    assert {"numbers": '["id"]', "h": '{"id":true}', "xid": "5"} == found.extra
    assert untouched == event
    # Encoders know type maps by identity.
    assert found.types is chosen.shape(event).types


def test_included_columns_and_patterns():
    event = row(after={"id": "1", "a1": "x", "a2": "y", "b": None})
    chosen = selection(filters=(Filter("*.*", columns=Columns(("id", "a*"), ("A2",))),))

    assert {"id": "1", "a1": "x"} == chosen.shape(event).after
    assert (None, None) == (chosen.shape(event).before, chosen.shape(event).extra)


def test_rows_without_a_table_are_cut_too():
    chosen = selection(filters=(Filter("*.*", columns=Columns(exclude=("note",))),))

    assert {"id": "1"} == chosen.shape(Event("row", "insert", after={"id": "1", "note": "x"})).after


@pytest.mark.parametrize(
    "event",
    [
        row(key=("ID",), after={"ID": "1", "n": "2"}),
        row(key=(), after={"id": "1"}, types={"id": ColumnType("int", None, 2)}),
    ],
)
def test_a_column_of_the_key_is_not_cut(event):
    for filter in (
        Filter("shop.orders", columns=Columns(exclude=("id",))),
        Filter("shop.orders", columns=Columns(include=("n",))),
    ):
        with pytest.raises(SelectionError) as caught:
            selection(filters=(filter,)).shape(event)
        assert "key-column" == caught.value.code
        assert "keep the primary key" in str(caught.value)
        assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))


def test_ddl_keeps_its_columns():
    event = ddl("ALTER TABLE orders ADD note TEXT", types={"note": ColumnType("text")})
    chosen = selection(filters=(Filter("shop.orders", columns=Columns(exclude=("note",))),))

    assert event is chosen.shape(event)


# shape: names


def test_routes_rename():
    chosen = selection(
        routes=(
            Route("shop.(.*)_(\\d+)", "lake.$1", None),
            Route("(.*).(.*)", "$1_raw.t_$2"),
        )
    )

    def names(name):
        event = chosen.shape(row(name))
        return event.database, event.table

    assert ("lake", "orders") == names("shop.orders_12")
    assert ("shop_raw", "t_orders") == names("shop.orders")
    assert ("shop2_raw", "t_orders_12") == names("shop2.orders_12")


def test_the_dot_between_database_and_table_is_a_dot():
    chosen = selection(routes=(Route("shop.(.*)", "lake.$1"),))

    assert "shop2" == chosen.shape(row("shop2.orders")).database
    event = Event("row", "insert", "shop", "a.b")
    assert ("lake", "a.b") == (chosen.shape(event).database, chosen.shape(event).table)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("shop.orders", ("shop", "orders")),
        ("shop\\.orders", ("shop", "orders")),
        ("(a.b|c).(.*)", ("(a.b|c)", "(.*)")),
        ("[.].x", ("[.]", "x")),
        ("[].].x", ("[].]", "x")),
        ("[^].].x", ("[^].]", "x")),
        ("[\\].].x", ("[\\].]", "x")),
        (".*.x", (".*", "x")),
        (".*\\..*", (".*", ".*")),
        ("a.b.c", ("a", "b.c")),
    ],
)
def test_split_regex(pattern, expected):
    assert expected == split_regex(pattern)


def test_what_is_not_routed_is_the_same_event():
    chosen = selection(routes=(Route("shop.orders", "lake.orders"),))

    for event in (row("shop.other"), Event("watermark"), Event("invalid", None, "shop", "orders")):
        assert event is chosen.shape(event)
    assert "lake" == chosen.shape(Event("tombstone", None, "shop", "orders")).database
    assert "lake" == chosen.shape(Event("marker", "snapshot_end", "shop", "orders")).database


def test_an_empty_name_is_refused():
    chosen = selection(routes=(Route("shop.orders_?(.*)", "lake.$1"),))

    assert "x" == chosen.shape(row("shop.orders_x")).table
    with pytest.raises(SelectionError) as caught:
        chosen.shape(row("shop.orders"))
    assert "route" == caught.value.code
    with pytest.raises(SelectionError):
        selection(routes=(Route("a.(b)?.*", "c.$1", "t"),)).topic_of(row("a.x"))


def test_columns_are_cut_by_the_old_name():
    chosen = selection(
        filters=(Filter("shop.orders", columns=Columns(exclude=("note",))),),
        routes=(Route("shop.(.*)", "lake.$1"),),
    )

    event = chosen.shape(row(after={"id": "1", "note": "x"}))
    assert ("lake", {"id": "1"}) == (event.database, event.after)


# DDL


NEW = {("shop", "orders"): ("lake", "o`rders"), ("shop", "items"): ("lake", "items")}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE orders ADD x INT", "ALTER TABLE `o``rders` ADD x INT"),
        ("alter  table `shop`.`orders` add x int", "alter  table `lake`.`o``rders` add x int"),
        ("ALTER TABLE shop . orders DROP x", "ALTER TABLE `lake`.`o``rders` DROP x"),
        ('ALTER TABLE "shop"."orders" DROP x', 'ALTER TABLE "lake"."o`rders" DROP x'),
        ("ALTER TABLE other.t ADD x INT", "ALTER TABLE other.t ADD x INT"),
        ("ALTER TABLE t ADD x INT", "ALTER TABLE `shop`.`t` ADD x INT"),
        (
            "/* orders */ ALTER TABLE orders COMMENT 'orders' -- orders",
            "/* orders */ ALTER TABLE `o``rders` COMMENT 'orders' -- orders",
        ),
        ("ALTER TABLE orders RENAME TO items", "ALTER TABLE `o``rders` RENAME TO `items`"),
        ("ALTER TABLE orders ADD x INT, RENAME items", "ALTER TABLE `o``rders` ADD x INT, RENAME `items`"),  # noqa: E501
        ("ALTER TABLE orders RENAME COLUMN orders TO x", "ALTER TABLE `o``rders` RENAME COLUMN orders TO x"),  # noqa: E501
        ("ALTER TABLE orders RENAME INDEX orders TO x", "ALTER TABLE `o``rders` RENAME INDEX orders TO x"),  # noqa: E501
        (
            "ALTER TABLE t.x EXCHANGE PARTITION p WITH TABLE orders",
            "ALTER TABLE t.x EXCHANGE PARTITION p WITH TABLE `o``rders`",
        ),
        (
            "CREATE TABLE IF NOT EXISTS orders (orders INT COMMENT 'it''s \\' orders')",
            "CREATE TABLE IF NOT EXISTS `o``rders` (orders INT COMMENT 'it''s \\' orders')",
        ),
        ("CREATE TABLE x.y (i INT REFERENCES orders (i))", "CREATE TABLE x.y (i INT REFERENCES `o``rders` (i))"),  # noqa: E501
        ("CREATE TABLE orders LIKE shop.items", "CREATE TABLE `o``rders` LIKE `lake`.`items`"),
        ("CREATE TABLE orders (LIKE items)", "CREATE TABLE `o``rders` (LIKE `items`)"),
        (
            "CREATE TABLE orders (id INT) /*!50100 PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (5))*/",  # noqa: E501
            "CREATE TABLE `o``rders` (id INT) /*!50100 PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (5))*/",  # noqa: E501
        ),
        ("CREATE UNIQUE INDEX orders ON orders (id)", "CREATE UNIQUE INDEX orders ON `o``rders` (id)"),  # noqa: E501
        ("DROP INDEX i ON shop.orders", "DROP INDEX i ON `lake`.`o``rders`"),
        ("DROP TABLE IF EXISTS orders, x.y, items", "DROP TABLE IF EXISTS `o``rders`, x.y, `items`"),  # noqa: E501
        ("TRUNCATE orders", "TRUNCATE `o``rders`"),
        ("TRUNCATE TABLE orders;", "TRUNCATE TABLE `o``rders`;"),
        ("RENAME TABLE orders TO items, a.b TO shop.orders", "RENAME TABLE `o``rders` TO `items`, a.b TO `lake`.`o``rders`"),  # noqa: E501
        ("TRUNCATE orders; TRUNCATE items", "TRUNCATE `o``rders`; TRUNCATE `items`"),
        ("CREATE TABLE orders AS SELECT * FROM items", None),
        ("CREATE TABLE orders (id INT) UNION=(items, orders)", None),
        ("CREATE VIEW orders AS SELECT 1", None),
        ("CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW SET x = 1", None),
        ("ALTER DATABASE shop CHARACTER SET utf8", None),
        ("TRUNCATE orders; GRANT ALL ON orders TO x", None),
        ("ALTER TABLE orders COMMENT 'open", None),
        ("ALTER TABLE `orders ADD x INT", None),
        ("ALTER TABLE", None),
        ("RENAME TABLE orders", None),
        ("garbage", None),
        ("", ""),
    ],
)  # fmt: skip
def test_names_in_statements(sql, expected):
    assert expected == rename_tables(sql, "shop", "lake", lambda name: NEW.get(name, name))


@given(st.text(alphabet="`'\"\\/*!-#; \n().,aé$ALTERBCONDP", max_size=60))
def test_any_text_is_renamed_or_left(sql):
    same = rename_tables(sql, "shop", "shop", lambda name: name)

    assert same in (None, sql)


def test_ddl_is_renamed_with_its_text():
    chosen = selection(routes=(Route("shop.(.*)", "lake.$1"),))

    event = chosen.shape(ddl("RENAME TABLE orders TO crm.x", "rename"))
    assert ("lake", "orders") == (event.database, event.table)
    assert "RENAME TABLE `orders` TO crm.x" == event.ddl
    left = chosen.shape(ddl("CREATE VIEW orders AS SELECT 1", "query"))
    assert ("lake", "CREATE VIEW orders AS SELECT 1") == (left.database, left.ddl)
    several = chosen.shape(ddl("DROP TABLE orders, items", "drop", table=None))
    assert ("shop", None) == (several.database, several.table)
    assert "DROP TABLE `lake`.`orders`, `lake`.`items`" == several.ddl


def test_definitions_beside_a_statement_are_renamed_or_left_out():
    chosen = selection(routes=(Route("shop.(.*)", "lake.$1"),))
    statement = "ALTER TABLE orders ADD x INT"
    named = {
        "def": '{"database":"shop","table":"orders","columns":[]}',
        "old": '{"database":"shop","table":"other"}',
        "type": "ALTER",
    }
    event = ddl(statement, format="maxwell", extra=named)
    other = ddl(statement, format="debezium", extra={"tableChanges": "[]", "type": "ALTER"})

    expected = '{"database":"lake","table":"orders","columns":[]}'
    assert {"def": expected, "type": "ALTER"} == chosen.shape(event).extra
    assert {"type": "ALTER"} == chosen.shape(other).extra
    assert "tableChanges" in other.extra


# topic_of, condition_of


def test_topics():
    chosen = selection(
        routes=(
            Route("shop.(.*)_log", topic="logs"),
            Route("shop.(.*)", "lake.$1", "cdc.{database}.{table}"),
            Route("(.*).(.*)", topic="{schema}-$2"),
        )
    )

    assert "logs" == chosen.topic_of(row("shop.a_log"))
    assert "cdc.lake.orders" == chosen.topic_of(row("shop.orders"))
    assert "crm-t" == chosen.topic_of(row("crm.t"))
    assert "cdc.lake.orders" == chosen.topic_of(ddl("ALTER TABLE orders DROP x"))
    assert None is chosen.topic_of(Event("watermark"))
    assert None is chosen.topic_of(Event("ddl", "query", "shop"))
    assert None is selection().topic_of(row())


def test_names_from_messages_are_made_safe_for_topics():
    chosen = selection(routes=(Route("(.*).(.*)", topic="t.{table}"),))

    assert "t.a_x20b_x2f" == chosen.topic_of(Event("row", "insert", "d", "a b/"))
    assert "t._xed_xb0_x80" == chosen.topic_of(Event("row", "insert", "d", "\udc00"))
    with pytest.raises(SelectionError) as caught:
        chosen.topic_of(Event("row", "insert", "d", "x" * 248))
    assert "route" == caught.value.code
    dots = selection(routes=(Route("(.*).(.*)", topic="{table}"),))
    with pytest.raises(SelectionError):
        dots.topic_of(Event("row", "insert", "d", ".."))


@given(st.lists(st.text(alphabet="_x0a9 é.-", max_size=8), min_size=2, max_size=2, unique=True))
def test_different_names_stay_different(names):
    first, second = map(safe, names)

    assert first != second
    assert all(c.isascii() and (c.isalnum() or c in "._-") for c in first + second)


def test_conditions():
    chosen = selection(
        filters=(
            Filter("shop.items", ("insert",)),
            Filter("shop.*", where="amount > 100"),
            Filter("*.*", where="true"),
        )
    )

    assert (1, None, 2) == (
        chosen.condition_of(row()),
        chosen.condition_of(row("shop.items")),
        chosen.condition_of(row("crm.t")),
    )
    assert None is chosen.condition_of(ddl("x"))
    assert None is chosen.condition_of(row(op="truncate"))
    assert None is selection().condition_of(row())


# On workers


def test_it_pickles_without_the_jobs_secrets():
    job = job_of(
        "kafka://me:c4n4ry@h/in",
        ["kafka://h/out?protocol=maxwell"],
        {"route.0.table": "shop.(.*)", "route.0.to": "lake.$1", "tables.include": "shop.*"},
    )
    chosen = Selection(job)
    chosen.wants(row())
    pickled = pickle.dumps(chosen)

    assert b"c4n4ry" not in pickled
    copy = pickle.loads(pickled)
    assert ("lake", False) == (copy.shape(row()).database, copy.wants(row("crm.t")))


def test_it_is_fast():
    event = row(key=("id",), after={"id": "1", "note": "x"}, types={"id": ColumnType("int")})
    idle = selection()
    busy = selection(
        Tables(("shop.*",), ("shop.tmp_*",)),
        (Filter("shop.orders", ("insert",), columns=Columns(exclude=("note",))),),
        Ddl(("create",)),
        (Route("shop.(.*)", "lake.$1", "cdc.{table}"),),
    )

    def rate(chosen):
        start = time.process_time()
        for _ in range(20_000):
            chosen.wants(event)
            chosen.topic_of(event)
            chosen.condition_of(event)
            chosen.shape(event)
        return 20_000 / (time.process_time() - start)

    assert max(rate(idle) for _ in range(3)) > 200_000
    assert max(rate(busy) for _ in range(3)) > 30_000


def test_names_without_end_do_not_fill_the_memory():
    chosen = selection(Tables(("shop.*",)))
    for number in range(300):
        chosen.wants(Event("row", "insert", "shop", f"{number}" * 100_000))

    assert chosen._decisions.bytes < 40 * 1024 * 1024


def test_a_route_matches_names_with_a_line_feed() -> None:
    chosen = selection(routes=(Route(r"sh[^x]p\.(.*)", "lake.$1", "cdc.{table}"),))
    event = Event("row", "insert", "sh\np", "a\nb\n")

    assert ("lake", "a\nb\n") == (chosen.shape(event).database, chosen.shape(event).table)
    assert "cdc.a_x0ab_x0a" == chosen.topic_of(event)
    assert chosen.shape(Event("row", "insert", "shop\n", "a")).database == "shop\n"
