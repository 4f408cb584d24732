"""Changes of tables as typed columns: what of an event is landed, and what cannot be."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import FOLDERS, content
from landing_runs import land
from messages import canal

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.schemas import Schemas
from headgate.core.event import ColumnType, Event, Message
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.landing.changes import Changes, PlacedEvents, Typing, changes_of, unpack
from headgate.landing.table_rows import DELETE, TRUNCATE, UPSERT
from headgate.landing.types import TypePreferences
from headgate.schema.changes import TableId

TYPES = {
    "id": ColumnType("bigint"),
    "amount": ColumnType("decimal(12,2)"),
    "at": ColumnType("datetime(6)"),
    "note": ColumnType("varchar(20)"),
}
ROW = {"id": "1", "amount": "1.10", "at": "2024-05-01 08:00:00.5", "note": None}
LANDED = {
    "id": 1,
    "amount": Decimal("1.10"),
    "at": datetime(2024, 5, 1, 8, 0, 0, 500_000),
    "note": None,
}


def row(op: str, before: Any = None, after: Any = None, **more: Any) -> Event:
    given = {"database": "shop", "table": "orders", "key": ("id",), "types": TYPES} | more
    return Event("row", op, before=before, after=after, **given)


def changes(
    *events: Event, typing: Typing | None = None, untyped: list[list[str] | None] | None = None
) -> Changes:
    numbers = [f"{n:03d}" for n in range(len(events))]
    untyped = untyped or [None] * len(events)
    given = PlacedEvents(events, [f"p{n}" for n in numbers], [f"a{n}" for n in numbers], untyped)
    return changes_of(given, typing or Typing(TypePreferences()))


def landed(*events: Event, **more: Any) -> list[dict[str, Any]]:
    """The rows of the one table that events are of, without their places.

    `_absent` is left out where it names nothing.
    """
    found = changes(*events, **more)
    assert {} == found.rejected
    (table,) = found.tables
    return [
        {
            n: v
            for n, v in each.items()
            if n not in ("_position", "_arrival") and (v or n != "_absent")
        }
        for each in table.rows.to_pylist()
    ]


@pytest.mark.parametrize("op", ["insert", "snapshot"])
def test_a_new_row_is_an_upsert_with_exact_types(op: str) -> None:
    assert [{"_op": UPSERT, **LANDED}] == landed(row(op, after=ROW))


def test_changes_travel_with_their_places_and_the_shape_of_their_table() -> None:
    (table,) = changes(row("insert", after=ROW), row("delete", before=ROW)).tables

    shape, rows = unpack(table.pack())

    assert table.shape == shape
    assert TableId("shop", "orders") == shape.table
    assert ("id",) == shape.key
    assert ["bigint", "decimal(12,2)", "timestamp_ntz", "string"] == [c.type for c in shape.columns]
    assert ["p000", "p001"] == rows["_position"].to_pylist()
    assert ["a000", "a001"] == rows["_arrival"].to_pylist()
    assert [UPSERT, DELETE] == rows["_op"].to_pylist()


def test_an_update_is_an_upsert() -> None:
    before = {**ROW, "amount": "0.10"}

    assert [{"_op": UPSERT, **LANDED}] == landed(row("update", before, ROW))
    assert [{"_op": UPSERT, **LANDED}] == landed(row("update", None, ROW))


def test_an_update_of_the_key_is_a_delete_and_an_upsert_at_the_same_place() -> None:
    (table,) = changes(row("update", {**ROW, "id": "9"}, ROW)).tables

    rows = table.rows.to_pylist()
    assert [(DELETE, 9, None), (UPSERT, 1, Decimal("1.10"))] == [
        (each["_op"], each["id"], each["amount"]) for each in rows
    ]
    assert {("p000", "a000")} == {(each["_position"], each["_arrival"]) for each in rows}


def test_a_key_of_which_one_column_changes() -> None:
    old = {"id": "1", "note": "a"}

    types = {name: TYPES[name] for name in old}

    rows = landed(row("update", old, {"id": "1", "note": "b"}, key=("id", "note"), types=types))

    assert [
        {"_op": DELETE, "id": 1, "note": "a"},
        {"_op": UPSERT, "id": 1, "note": "b"},
    ] == rows


def test_an_old_row_that_tells_only_what_changed_changes_no_key() -> None:
    assert [{"_op": UPSERT, **LANDED}] == landed(row("update", {"amount": "0.10"}, ROW))


def test_the_key_of_a_minimal_row_image_is_in_the_old_row() -> None:
    """MySQL's log with binlog_row_image=MINIMAL: the key before, what changed after."""
    rows = landed(row("update", {"id": "1"}, {"amount": "1.10"}))

    (told,) = rows
    assert ["at", "note"] == told.pop("_absent")
    assert {"_op": UPSERT, "id": 1, "amount": Decimal("1.10"), "at": None, "note": None} == told


def test_a_delete_has_the_key_only() -> None:
    assert [{"_op": DELETE, "id": 1}] == landed(row("delete", before=ROW))
    nulls = dict.fromkeys(("amount", "at", "note"))
    assert [{"_op": DELETE, "id": 2, **nulls}, {"_op": UPSERT, **LANDED}] == landed(
        row("delete", before={"id": "2"}), row("insert", after=ROW)
    )


def test_a_table_without_a_key_goes_by_whole_rows() -> None:
    old = {**ROW, "amount": "0.10"}
    keyless: dict[str, Any] = {"key": ()}

    rows = landed(row("update", old, ROW, **keyless), row("delete", before=ROW, **keyless))

    assert [
        {"_op": DELETE, **LANDED, "amount": Decimal("0.10")},
        {"_op": UPSERT, **LANDED},
        {"_op": DELETE, **LANDED},
    ] == rows


def test_a_minimal_update_of_a_table_without_a_key_keeps_what_did_not_change() -> None:
    rows = landed(row("update", ROW, {"amount": "2.20"}, key=()))

    assert [
        {"_op": DELETE, **LANDED},
        {"_op": UPSERT, **LANDED, "amount": Decimal("2.20")},
    ] == rows


def test_an_event_that_does_not_tell_the_key_goes_by_that_of_the_others() -> None:
    rows = landed(row("delete", before=ROW, key=None), row("insert", after=ROW))

    assert [(DELETE, None), (UPSERT, Decimal("1.10"))] == [(r["_op"], r["amount"]) for r in rows]


def test_a_truncation_has_no_row() -> None:
    event = row("truncate")

    assert [{"_op": TRUNCATE}] == landed(event)
    rows = landed(row("insert", after=ROW), event)
    assert {"_op": TRUNCATE, **dict.fromkeys(ROW)} == rows[1]


def test_what_is_no_row_gives_nothing() -> None:
    kinds = ["ddl", "statement", "watermark", "heartbeat", "marker", "tombstone"]

    found = changes(*(Event(kind, None, "shop", "orders") for kind in kinds))

    assert ([], {}) == (found.tables, found.rejected)


def test_columns_that_an_update_does_not_tell_are_named() -> None:
    partial = row("update", {"id": "2"}, {"id": "2", "note": "x"})

    whole, told = landed(row("insert", after=ROW), partial)

    assert "_absent" not in whole
    assert ["amount", "at"] == told["_absent"]
    assert (2, "x", None) == (told["id"], told["note"], told["amount"])


@pytest.mark.parametrize(
    ("folder", "op"),
    [
        ("canal-json/ticdc-only-handle-key", "insert"),
        ("canal-json/ticdc-only-handle-key", "update"),
        ("canal-json/ticdc-claim-check", None),
        ("canal-json/canal-partial-json", None),
    ],
)
def test_rows_that_the_producer_cut_are_rejected(folder: str, op: str | None) -> None:
    (path,) = [each for each in FOLDERS if each.as_posix().endswith(folder)]
    (event,) = decode_message(
        decoder("canal-json"), None, content(path, "value"), None, MAX_MESSAGE_BYTES
    )
    event.op = op or event.op

    found = changes(event, row("insert", after=ROW))

    assert ["incomplete-row"] == [code for code, _ in found.rejected.values()]


def test_a_row_that_lacks_what_its_types_tell_shows_the_whole_table() -> None:
    image = {name: value for name, value in ROW.items() if name != "note"}

    (table,) = changes(row("insert", after=image, extra={"unavailable": '{"note":"…"}'})).tables

    assert list(TYPES) == table.shape.names


def test_values_that_the_source_s_log_did_not_contain_are_named() -> None:
    """Debezium's placeholder: the message's types have the column, the row has not."""
    image = {name: value for name, value in ROW.items() if name != "note"}

    (told,) = landed(row("insert", after=image, extra={"unavailable": '{"note":"…"}'}))

    assert ["note"] == told["_absent"]


def test_an_insert_from_before_a_column_existed_is_a_whole_row() -> None:
    image = {name: value for name, value in ROW.items() if name != "note"}

    rows = landed(row("insert", after=image), row("insert", after=ROW))

    assert ["_op", "id", "amount", "at", "note"] == list(rows[0])


def test_columns_may_come_in_any_order() -> None:
    turned = dict(reversed(ROW.items()))

    rows = landed(row("insert", after=ROW), row("insert", after=turned))

    assert [{"_op": UPSERT, **LANDED}] * 2 == rows


def test_rows_stay_in_the_order_of_their_events() -> None:
    events = [
        row("insert", after=ROW | {"id": str(n)}) if n % 3 else row("delete", before={"id": str(n)})
        for n in range(20)
    ]

    assert list(range(20)) == [each["id"] for each in landed(*events)]


def test_tables_are_kept_apart() -> None:
    found = changes(
        row("insert", after=ROW),
        row("insert", after=ROW, table="b"),
        row("insert", after=ROW, schema="public"),
        row("insert", after={"id": "2"}),
    )

    assert [
        (TableId("shop", "orders"), [1, 2]),
        (TableId("shop", "b"), [1]),
        (TableId("shop", "public.orders"), [1]),
    ] == [(t.shape.table, t.rows["id"].to_pylist()) for t in found.tables]


# Types


def test_a_column_whose_type_nobody_tells_is_a_string() -> None:
    rows = landed(row("insert", after={"id": "1", "x": "1.10"}, types=None))

    assert [{"_op": UPSERT, "id": "1", "x": "1.10"}] == rows


def test_a_type_that_one_event_tells_counts_for_all() -> None:
    rows = landed(row("delete", before={"id": "2"}, types=None), row("insert", after=ROW))

    assert [2, 1] == [each["id"] for each in rows]


def test_types_that_differ_become_the_wider_one() -> None:
    wide = {**TYPES, "id": ColumnType("decimal(20,0)")}

    rows = landed(row("insert", after=ROW), row("insert", after=ROW | {"id": "7" * 20}, types=wide))

    assert [Decimal(1), Decimal("7" * 20)] == [each["id"] for each in rows]


def test_ddl_tells_types_and_key_where_messages_do_not() -> None:
    known = Schemas("CREATE TABLE orders (id INT UNSIGNED PRIMARY KEY, day DATE)")
    event = Event("row", "insert", "shop", "orders", after={"id": "1", "day": "2024-05-01"})

    untyped = known.complete(event)
    (table,) = changes(event, untyped=[untyped]).tables

    assert {"id": "bigint", "day": "date"} == {c.name: c.type for c in table.shape.columns}
    assert ("id",) == table.shape.key


def test_names_that_no_lake_takes_are_landed_under_others() -> None:
    image = {"id": "1", "_position": "x", "unit price": "2"}

    (table,) = changes(row("insert", after=image, types=None)).tables

    assert pa.string() == table.rows.schema.field("_position").type
    assert ["p000"] == table.rows["_position"].to_pylist()
    names = [column.name for column in table.shape.columns]
    assert ["id", "_position", "unit price"] == [c.source_name for c in table.shape.columns]
    assert ["1", "x", "2"] == [table.rows[name][0].as_py() for name in names]


def test_times_and_commits_are_there_if_a_sink_wants_them() -> None:
    event = row("insert", after=ROW, event_time=1_700_000_000_000_000, commit_ts=5)

    (told,) = landed(event, typing=Typing(TypePreferences(), with_times=True))

    assert 1_700_000_000 == told["_event_time"].timestamp()
    assert 5 == told["_commit_ts"]


# What cannot be landed


def rejected(*events: Event, **more: Any) -> dict[int, str]:
    return {number: code for number, (code, _) in changes(*events, **more).rejected.items()}


def test_a_value_that_does_not_fit_its_column_is_a_misfit() -> None:
    events = [row("insert", after=ROW), row("insert", after=ROW | {"amount": "secret"})]

    (code, reason) = changes(*events).rejected[1]

    assert "misfit" == code
    assert "'shop.orders'" in reason
    assert "column 'amount'" in reason
    assert "decimal(12,2)" in reason
    assert "on-misfit=null" in reason
    assert "secret" not in reason


def test_a_misfit_is_null_if_the_sink_says_so() -> None:
    events = [row("insert", after=ROW), row("insert", after=ROW | {"amount": "x"})]

    found = changes(*events, typing=Typing(TypePreferences(), null_misfits=True))

    assert ({}, {1}) == (found.rejected, found.nulled)
    assert [Decimal("1.10"), None] == found.tables[0].rows["amount"].to_pylist()


def test_a_key_is_never_null_because_it_does_not_fit() -> None:
    typing = Typing(TypePreferences(), null_misfits=True)

    assert {0: "misfit"} == rejected(row("insert", after=ROW | {"id": "x"}), typing=typing)
    assert {0: "misfit"} == rejected(row("delete", before=ROW | {"id": "x"}), typing=typing)


def test_a_value_that_is_none_of_the_type_that_ddl_declares_is_a_misfit() -> None:
    event = row("insert", after=ROW | {"amount": "x"})
    nulls = Typing(TypePreferences(), null_misfits=True)

    assert {0: "misfit"} == rejected(event, untyped=[["amount"]])
    found = changes(event, untyped=[["amount"]], typing=nulls)
    assert ({}, {0}) == (found.rejected, found.nulled)
    assert [None] == found.tables[0].rows["amount"].to_pylist()
    assert {0: "misfit"} == rejected(event, untyped=[["id"]], typing=nulls)


def test_a_zero_date_is_a_misfit_whose_sentence_names_the_switch() -> None:
    reason = changes(row("insert", after=ROW | {"at": "0000-00-00 00:00:00"})).rejected[0][1]

    assert "zero-dates=null" in reason


@pytest.mark.parametrize(
    "event",
    [
        row("insert", after=None),
        row("insert", after={}),
        row("update", before=ROW),
        row("delete", before=None),
        row("delete", before={}),
        row("delete", before={"note": "x"}),
        row("insert", after={"note": "x"}),
        row("insert", after=ROW | {"id": None}),
        row("update", None, ROW, key=()),
    ],
)
def test_a_row_that_lacks_what_it_would_be_landed_by_is_rejected(event: Event) -> None:
    assert {1: "incomplete-row"} == rejected(row("insert", after=ROW), event)


def test_a_row_without_a_table_is_rejected() -> None:
    assert {0: "no-table"} == rejected(row("insert", after=ROW, table=None))


CODES = {"misfit", "incomplete-row", "no-table"}


def test_the_rows_of_all_formats_are_landed_or_rejected_with_a_reason() -> None:
    landed_rows = 0
    for folder in FOLDERS:
        key, value = content(folder, "key"), content(folder, "value")
        events = decode_message(decoder("auto"), key, value, "topic", MAX_MESSAGE_BYTES)
        rows = [number for number, event in enumerate(events) if event.kind == "row"]
        found = changes(*events)

        assert {code for code, _ in found.rejected.values()} <= CODES, folder
        told = {number for table in found.tables for number in table.events}
        assert set(rows) == told | found.rejected.keys(), folder
        for table in found.tables:
            shape, unpacked = unpack(table.pack())
            assert (table.shape, table.rows.num_rows) == (shape, unpacked.num_rows)
        landed_rows += len(rows) - len(found.rejected)
    assert landed_rows > 300


def test_columns_that_differ_in_case_only_are_rejected() -> None:
    event = row("insert", after={"id": "1", "ID": "2"}, types=None)

    found = changes(event)

    code, reason = found.rejected[0]
    assert "misfit" == code
    assert "'id' and 'ID' differ in case only" in reason


@pytest.mark.parametrize("told", ["DDL", "a schema file", "nothing"])
def test_decimal_without_digits_has_those_that_are_declared(told: str, tmp_path: Path) -> None:
    """TiCDC sends `decimal`, and no precision."""
    create = "CREATE TABLE orders (id BIGINT PRIMARY KEY, amount DECIMAL(12,2))"
    none = {"data": None, "mysqlType": None, "sqlType": None, "pkNames": None}
    ddl = canal(**none, type="CREATE", isDdl=True, sql=create, _tidb={"commitTs": 1 << 50})
    insert = canal(
        type="INSERT",
        data=[{"id": "1", "amount": "1.10"}],
        mysqlType={"id": "bigint", "amount": "decimal"},
        sqlType={"id": -5, "amount": 3},
        pkNames=["id"],
        _tidb={"commitTs": (1 << 50) + 1},
    )
    values = [ddl, insert] if told == "DDL" else [insert]
    messages = [Message(each, None, "in", 0, n, None) for n, each in enumerate(values)]
    schema = f"USE shop; {create}" if told == "a schema file" else None

    found = land(tmp_path, "canal-json:ticdc", [messages], schema=schema)

    amount: Any = "1.10" if told == "nothing" else Decimal("1.10")
    assert [{"id": 1, "amount": amount}] == found.tables["shop", "orders"]


def test_time_of_a_statement_is_in_the_servers_zone(tmp_path: Path) -> None:
    none = {"data": None, "mysqlType": None, "sqlType": None, "pkNames": None}
    told = {"es": 1_700_000_000_000, "isDdl": True, **none}  # 22:13:20 in UTC
    create = "CREATE TABLE orders (id BIGINT PRIMARY KEY)"
    alter = "ALTER TABLE orders ADD at DATETIME DEFAULT NOW()"
    values = [
        canal(**told, type="CREATE", sql=create, _tidb={"commitTs": 1 << 50}),
        canal(type="INSERT", data=[{"id": "1"}], _tidb={"commitTs": (1 << 50) + 1}),
        canal(**told, type="ALTER", sql=alter, _tidb={"commitTs": (1 << 50) + 2}),
    ]
    messages = [Message(each, None, "in", 0, n, None) for n, each in enumerate(values)]

    found = land(tmp_path, "canal-json:ticdc", [messages], sink={"timezone": "Asia/Shanghai"})

    at = datetime(2023, 11, 15, 6, 13, 20)
    assert [{"id": 1, "at": at}] == found.tables["shop", "orders"]


CREATE = "CREATE TABLE orders (id BIGINT PRIMARY KEY)"


def canal_created(offset: int, es: int) -> Message:
    ddl = {"data": None, "old": None, "mysqlType": None, "sqlType": None, "pkNames": None}
    value = canal(**ddl, type="CREATE", isDdl=True, sql=CREATE, es=es)
    return Message(value, None, "in", 0, offset)


def canal_inserted(offset: int, id: int, es: int) -> Message:
    types = {"mysqlType": {"id": "bigint"}, "sqlType": {"id": -5}}
    return Message(canal(data=[{"id": str(id)}], es=es, **types), None, "in", 1, offset)


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_rows_of_another_partition_survive_the_creation_of_their_table(
    in_one_batch: bool, tmp_path: Path
) -> None:
    """Canal hashes rows over partitions, sends DDL to the first, and tells seconds."""
    rows = [canal_inserted(0, 1, 7_000), canal_inserted(1, 2, 7_000)]
    create = canal_created(0, 7_000)
    batches = [[create, *rows]] if in_one_batch else [rows, [create], [canal_inserted(2, 3, 8_000)]]

    found = land(tmp_path, "canal-json", batches).tables[("shop", "orders")]

    wanted = [1, 2] if in_one_batch else [1, 2, 3]
    assert wanted == sorted(row["id"] for row in found)


def canal_ddl(offset: int, kind: str, sql: str, es: int) -> Message:
    ddl = {"data": None, "old": None, "mysqlType": None, "sqlType": None, "pkNames": None}
    return Message(canal(**ddl, type=kind, isDdl=True, sql=sql, es=es), None, "in", 0, offset)


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_rows_that_came_before_the_creation_of_their_table_keep_their_values(
    deletes: str, tmp_path: Path
) -> None:
    """The table gets the columns of the statement; one that is yet to be added stays."""
    types = {"id": "bigint", "n": "smallint", "note": "varchar(9)"}
    row = canal(data=[{"id": "1", "n": "5", "note": "kept"}], es=7_000, mysqlType=types, sqlType={})
    create = "CREATE TABLE orders (id BIGINT PRIMARY KEY, n TINYINT, extra INT)"
    more = canal(data=[{"id": "1", "n": "6", "extra": "2", "note": "new"}],
                 old=[{"n": "5"}], type="UPDATE", es=9_000, sqlType={},
                 mysqlType=types | {"n": "tinyint", "extra": "int"})  # fmt: skip
    batches = [
        [Message(row, None, "in", 1, 0)],
        [canal_ddl(0, "CREATE", create, 7_000)],
        [canal_ddl(1, "ALTER", "ALTER TABLE orders ADD note VARCHAR(9)", 7_000)],
    ]

    def landed(folder: str, *further: list[Message]) -> list[dict[str, Any]]:
        sink = {"deletes": deletes}
        (tmp_path / folder).mkdir()
        done = land(tmp_path / folder, "canal-json", [*batches, *further], None, sink)
        assert ([], []) == (done.dead_letters, done.parked)
        return [
            {name: row[name] for name in ("id", "n", "extra", "note")}
            for row in done.tables["shop", "orders"]
        ]

    assert [{"id": 1, "n": 5, "extra": None, "note": "kept"}] == landed("created")
    changed = landed("changed", [Message(more, None, "in", 1, 1)])
    assert [{"id": 1, "n": 6, "extra": 2, "note": "new"}] == changed


def canal_row(offset: int, row: dict[str, str], types: dict[str, str], **more: Any) -> Message:
    value = canal(data=[row], mysqlType=types, sqlType={}, es=7_000, **more)
    return Message(value, None, "in", 1, offset)


def landed_rows(done: Any) -> list[dict[str, Any]]:
    rows = done.tables["shop", "orders"]
    return [{name: row[name] for name in row if name[:1] != "_"} for row in rows]


def test_values_that_are_newer_than_the_creation_of_their_table_keep_their_types(
    tmp_path: Path,
) -> None:
    """The statement that widens the columns is yet to come."""
    types = {"id": "bigint", "n": "bigint", "text": "varchar(50)"}
    row = {"id": "1", "n": "3000000000", "text": "x" * 30}
    create = "CREATE TABLE orders (id BIGINT PRIMARY KEY, n INT, text VARCHAR(10))"
    modify = "ALTER TABLE orders MODIFY n BIGINT, MODIFY text VARCHAR(50)"
    ddl = [canal_ddl(0, "CREATE", create, 7_000), canal_ddl(1, "ALTER", modify, 7_000)]

    done = land(tmp_path, "canal-json", [[canal_row(0, row, types)], [ddl[0]], [ddl[1]]])

    assert ([], []) == (done.dead_letters, done.parked)
    assert [{"id": 1, "n": 3_000_000_000, "text": "x" * 30}] == landed_rows(done)


def test_a_large_key_is_found_after_the_creation_of_its_table(tmp_path: Path) -> None:
    """Statistics of Parquet files have it rounded."""
    types, row = {"id": "bigint"}, {"id": "9007199254740993"}
    create = "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY)"
    batches = [
        [canal_row(0, row, types)],
        [canal_ddl(0, "CREATE", create, 7_000)],
        [canal_row(1, row, {"id": "bigint unsigned"}, type="UPDATE", old=[{}])],
    ]

    assert [{"id": 9007199254740993}] == landed_rows(land(tmp_path, "canal-json", batches))


def test_a_column_that_came_with_its_new_name_before_it_is_renamed_parks_its_table(
    tmp_path: Path,
) -> None:
    create = "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)"
    rename = "ALTER TABLE orders CHANGE a b INT"
    batches = [
        [canal_row(0, {"id": "1", "b": "5"}, {"id": "bigint", "b": "int"})],
        [canal_ddl(0, "CREATE", create, 7_000)],
        [canal_ddl(1, "ALTER", rename, 7_000)],
    ]

    done = land(tmp_path, "canal-json", batches)

    assert ["shop.orders"] == done.parked
    assert [5] == [row["b"] for row in done.tables["shop", "orders"]]


def test_rows_between_the_drop_and_the_creation_of_their_table_park_it(tmp_path: Path) -> None:
    """Which rows are of the dropped table nobody can tell: neither is kept or lost in silence."""
    types = {"id": "bigint"}
    batches = [
        [canal_created(0, 7_000)],
        [canal_row(0, {"id": "1"}, types)],
        [canal_ddl(1, "ERASE", "DROP TABLE orders", 8_000)],
        [canal_row(1, {"id": "2"}, types)],
        [canal_created(2, 9_000)],
    ]

    done = land(tmp_path, "canal-json", batches)

    assert ["shop.orders"] == done.parked
    assert [1, 2] == sorted(row["id"] for row in done.tables["shop", "orders"])


def test_a_table_whose_rows_are_all_older_begins_empty_with_the_columns_of_its_creation(
    tmp_path: Path,
) -> None:
    """Its DROP may have been filtered out."""
    none = {"data": None, "mysqlType": None, "sqlType": None, "pkNames": None}
    create = "CREATE TABLE orders (id BIGINT PRIMARY KEY, n INT)"
    values = [
        canal(data=[{"id": "1", "n": "{}", "old": "x"}], sqlType={}, _tidb={"commitTs": 1 << 50},
              mysqlType={"id": "bigint", "n": "json", "old": "text"}),
        canal(**none, isDdl=True, type="CREATE", sql=create, _tidb={"commitTs": (1 << 50) + 1}),
        canal(data=[{"id": "2", "n": "5"}], sqlType={}, _tidb={"commitTs": (1 << 50) + 2},
              mysqlType={"id": "bigint", "n": "int"}),
    ]  # fmt: skip
    batches = [[Message(each, None, "in", 0, n, None)] for n, each in enumerate(values)]

    done = land(tmp_path, "canal-json:ticdc", batches)

    assert ([], []) == (done.dead_letters, done.parked)
    assert [{"id": 2, "n": 5}] == landed_rows(done)


def test_a_table_that_was_dropped_is_empty_when_it_is_created_again(tmp_path: Path) -> None:
    drop = canal(**dict.fromkeys(("data", "old", "mysqlType", "sqlType", "pkNames")),
                 type="ERASE", isDdl=True, sql="DROP TABLE orders", es=8_000)  # fmt: skip
    batches = [
        [canal_created(0, 7_000), canal_inserted(0, 1, 7_000)],
        [Message(drop, None, "in", 0, 1), canal_created(2, 9_000)],
    ]

    assert [] == land(tmp_path, "canal-json", batches).tables[("shop", "orders")]


def test_with_try_evolve_all_rows_around_the_drop_of_their_table_stay(tmp_path: Path) -> None:
    types = {"id": "bigint"}
    batches = [
        [canal_created(0, 7_000), canal_row(0, {"id": "1"}, types)],
        [canal_ddl(1, "ERASE", "DROP TABLE orders", 8_000)],
        [canal_row(1, {"id": "2"}, types)],
        [canal_created(2, 9_000)],
    ]

    done = land(tmp_path, "canal-json", batches, None, {"schema_change": "try_evolve"})

    assert [] == done.parked
    assert [1, 2] == sorted(row["id"] for row in landed_rows(done))


def test_in_a_log_a_column_that_is_renamed_to_one_that_is_there_stops_nothing(
    tmp_path: Path,
) -> None:
    create = "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)"
    rename = "ALTER TABLE orders CHANGE a b INT"
    types = {"id": "bigint", "b": "int"}
    batches = [
        [canal_row(0, {"id": "1", "b": "5"}, types)],
        [canal_ddl(0, "CREATE", create, 7_000)],
        [canal_ddl(1, "ALTER", rename, 7_000)],
        [canal_row(1, {"id": "2", "b": "6"}, types)],
    ]

    done = land(tmp_path, "canal-json", batches, None, {"mode": "log"})

    assert [] == done.parked
    assert [5, 6] == sorted(row["b"] for row in landed_rows(done))
