"""TiCDC Open Protocol as it is written: frames, members, types, flags, values, batches, losses."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import canal, maxwell

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.packing import packed
from headgate.core.errors import UsageError
from headgate.core.event import ColumnType, Event, Image, Types

TSO = 415508878783938562
TIME = (TSO >> 18) * 1_000
TYPES: Types = {"id": ColumnType("int"), "name": ColumnType("varchar")}
ROW: Image = {"id": "1", "name": "a"}
NO_LOSS: list[str] = []


def change(op: str = "insert", **parts: Any) -> Event:
    images = {"delete": {"before": ROW}}.get(op, {"after": ROW})
    told = {"database": "test", "table": "t1", "key": ("id",), "types": TYPES, "commit_ts": TSO}
    return Event("row", op, **(told | images | parts))


def one(event: Event, spec: str = "open-protocol:classic", **options: Any) -> tuple[bytes, bytes]:
    """Key and value of an event's only message, out of their frames."""
    (record,) = Encoder(spec, **options)(event).records
    key, value = record.key or b"", record.value or b""
    assert bytes([0, 0, 0, 0, 0, 0, 0, 1]) + len(key[16:]).to_bytes(8, "big") == key[:16]
    assert len(value[8:]).to_bytes(8, "big") == value[:8]
    return key[16:], value[8:]


def lost(event: Event, spec: str = "open-protocol:classic", **options: Any) -> list[str]:
    return Encoder(spec, **options)(event).lost


def column(
    mysql: str | None, value: str | None, spec: str = "open-protocol:new", **options: Any
) -> str:
    """The object of one nullable column."""
    event = change(key=(), types={"c": ColumnType(mysql)}, after={"c": value})
    text = one(event, spec, **options)[1].decode()
    assert text.startswith('{"u":{"c":')
    assert text.endswith("}}")
    return text.removeprefix('{"u":{"c":').removesuffix("}}")


def again(event: Event, spec: str = "open-protocol:new", **options: Any) -> Event:
    (record,) = Encoder(spec, **options)(event).records
    (event,) = decoder(spec)(record.key, record.value, None)
    return event


def test_a_row_is_framed_key_and_value() -> None:
    (record,) = Encoder("open-protocol:classic")(change()).records

    assert (
        b"\0" * 7
        + b"\1"
        + b"\0" * 7
        + b"\x37"
        + (b'{"ts":415508878783938562,"scm":"test","tbl":"t1","t":1}')
        == record.key
    )
    assert (
        b"\0" * 7
        + b"\x49"
        + (b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"name":{"t":15,"f":64,"v":"a"}}}')
        == record.value
    )


def test_update_has_u_then_p_and_delete_has_d() -> None:
    old = {"id": "1", "name": None}

    assert (
        b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"name":{"t":15,"f":64,"v":"a"}},'
        b'"p":{"id":{"t":3,"h":true,"f":11,"v":1},"name":{"t":15,"f":64,"v":null}}}'
    ) == one(change("update", before=old))[1]
    assert (
        b'{"d":{"id":{"t":3,"h":true,"f":11,"v":1},"name":{"t":15,"f":64,"v":"a"}}}'
        == one(change("delete"))[1]
    )


def test_classic_sorts_columns_by_their_bytes_and_new_keeps_the_tables_order() -> None:
    row = dict.fromkeys(("b", "a", "B", "é", "z"), "1")
    event = change(key=(), after=row, types=dict.fromkeys(row, ColumnType("int")))

    assert ["B", "a", "b", "z", "é"] == list(again(event, "open-protocol:classic").after or {})
    assert list(row) == list(again(event, "open-protocol:new").after or {})


def test_new_takes_the_tables_order_from_a_schema() -> None:
    schema = "CREATE TABLE test.t1 (z INT PRIMARY KEY, a VARCHAR(9) NOT NULL)"
    event = change(types=None, key=None, after={"a": "x", "z": "1"})

    assert (
        b'{"u":{"z":{"t":3,"h":true,"f":11,"v":1},"a":{"t":15,"f":0,"v":"x"}}}'
        == one(event, "open-protocol:new", schema=schema)[1]
    )


def test_a_name_that_is_not_there_is_left_out_or_empty() -> None:
    event = Event("ddl", "query", "test", ddl="CREATE DATABASE `test`", commit_ts=TSO)

    assert b'{"ts":415508878783938562,"scm":"test","t":2}' == one(event)[0]
    assert (
        b'{"ts":415508878783938562,"scm":"test","tbl":"","t":2}'
        == one(event, "open-protocol:new")[0]
    )


def test_members_of_the_key_come_in_each_producers_order() -> None:
    own = {"rid": "1", "ptn": "77", "onlyHandleKey": "true", "claimCheckLocation": "s3://b/1"}
    event = change(format="open-protocol", extra=own)

    assert (
        b'{"ts":415508878783938562,"scm":"test","tbl":"t1","rid":1,"ptn":77,"t":1,"ohk":true,'
        b'"ccl":"s3://b/1"}'
    ) == one(event)[0]
    own.pop("onlyHandleKey")
    assert (
        b'{"ts":415508878783938562,"scm":"test","tbl":"t1","t":1,"ohk":true,"ohk":false,'
        b'"ccl":"s3://b/1","ptn":77}'
    ) == one(event, "open-protocol:new")[0]
    assert ["extra"] == lost(event, "open-protocol:new")  # it has no rid


def test_numbers_of_the_key_that_are_none_are_not_written() -> None:
    event = change(format="open-protocol", extra={"rid": '1,"t":3', "ptn": "007"})

    assert b'{"ts":415508878783938562,"scm":"test","tbl":"t1","t":1}' == one(event)[0]


def test_a_watermark_has_a_frame_of_length_zero() -> None:
    (record,) = Encoder("open-protocol")(Event("watermark", commit_ts=TSO)).records

    assert b'{"ts":415508878783938562,"t":3}' == (record.key or b"")[16:]
    assert bytes(8) == record.value


def test_ddl_has_the_statement_and_tidbs_number() -> None:
    event = Event("ddl", "alter", "test", "t1", ddl="ALTER TABLE t1 ADD c INT", commit_ts=TSO)

    assert b'{"q":"ALTER TABLE t1 ADD c INT","t":5}' == one(event)[1]
    event.format, event.extra = "open-protocol", {"ddlType": "61"}
    assert b'{"q":"ALTER TABLE t1 ADD c INT","t":61}' == one(event)[1]
    event.extra = {"ddlType": '1,"x":2'}
    assert b'{"q":"ALTER TABLE t1 ADD c INT","t":5}' == one(event)[1]


@pytest.mark.parametrize(
    ("code", "statement"),
    [
        (1, "create schema if not exists x"),
        (2, "DROP DATABASE x"),
        (26, "ALTER DATABASE x CHARACTER SET utf8mb4"),
        (3, "/* why */ CREATE TEMPORARY TABLE t (a int)"),
        (3, "-- why\nCREATE TABLE IF NOT EXISTS `index` LIKE t"),
        (4, "DROP TABLE a, b"),
        (11, "TRUNCATE t"),
        (14, "RENAME TABLE a TO b, c TO d"),
        (7, "CREATE UNIQUE INDEX i ON t (a)"),
        (8, "DROP INDEX i ON t"),
        (21, "CREATE OR REPLACE DEFINER=`u`@`%` SQL SECURITY DEFINER VIEW v AS SELECT 1"),
        (24, "DROP VIEW v"),
        (34, "CREATE SEQUENCE s"),
        (0, "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @a = 1"),
        (5, "ALTER TABLE `d`.`t` ADD COLUMN (`a` int)"),
        (5, "ALTER TABLE t ADD unique_id DECIMAL(10,2) DEFAULT '1,2' COMMENT 'a, b'"),
        (6, "alter table t drop `index`"),
        (6, "ALTER TABLE t DROP COLUMN a"),
        (12, "ALTER TABLE t MODIFY a BIGINT"),
        (12, "ALTER TABLE t CHANGE a b BIGINT"),
        (12, "ALTER TABLE t RENAME COLUMN a TO b"),
        (14, "ALTER TABLE t RENAME TO u"),
        (18, "ALTER TABLE t RENAME INDEX a TO b"),
        (7, "ALTER TABLE t ADD UNIQUE KEY u (a)"),
        (7, "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)"),
        (32, "ALTER TABLE t ADD CONSTRAINT PRIMARY KEY (a)"),
        (33, "ALTER TABLE t DROP PRIMARY KEY"),
        (9, "ALTER TABLE t ADD CONSTRAINT `f` FOREIGN KEY (a) REFERENCES p (b)"),
        (10, "ALTER TABLE t DROP FOREIGN KEY f"),
        (13, "ALTER TABLE t AUTO_INCREMENT = 5"),
        (15, "ALTER TABLE t ALTER a SET DEFAULT 5"),
        (17, "ALTER TABLE t COMMENT = 'x'"),
        (19, "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (5))"),
        (20, "ALTER TABLE t DROP PARTITION p"),
        (20, "ALTER TABLE t DROP PARTITION p0, p1"),
        (22, "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4"),
        (23, "ALTER TABLE t TRUNCATE PARTITION p"),
        (23, "ALTER TABLE t TRUNCATE PARTITION `p0`, `p1`, p2"),
        (64, "ALTER TABLE t REORGANIZE PARTITION p0,p1 INTO (PARTITION p VALUES LESS THAN (5))"),
        (5, "ALTER TABLE t ADD COLUMN a INT, ALGORITHM=INPLACE, LOCK=NONE"),
        (7, "ALTER TABLE t LOCK = SHARED, ADD INDEX i (a, b)"),
        (0, "ALTER TABLE t ALGORITHM=INSTANT"),
        (61, "ALTER TABLE t ADD a INT, DROP b"),
        (61, "ALTER TABLE t ADD a INT, DROP b, ALGORITHM=INPLACE"),
        (61, "ALTER TABLE t ADD (a DECIMAL(10,2), b INT)"),
        (5, "ALTER TABLE t ADD (a DECIMAL(10,2))"),
        (0, ""),
    ],
)
def test_ddl_numbers_are_read_from_the_statement(code: int, statement: str) -> None:
    assert code == ddl_code(statement)


def ddl_code(statement: str, op: str | None = None) -> int:
    """The number that is written with a statement."""
    event = Event("ddl", op, "test", "t1", ddl=statement, commit_ts=TSO)
    return int(json.loads(one(event)[1])["t"])


def test_what_is_no_table_is_not_numbered_as_one() -> None:
    assert 0 == ddl_code("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "create")
    assert 0 == ddl_code("ALTER VIEW v AS SELECT 1", "alter")
    assert 61 == ddl_code("ALTER TABLE t ENGINE = InnoDB", "alter")


@pytest.mark.slow
def test_reading_a_hostile_statement_takes_no_time() -> None:
    for part in ("'", '"', "`", "/*", "(", "\\'", "''", "-- ", "a,", "ADD(a"):
        ddl_code("ALTER TABLE t ADD " + part * 200_000)


def test_a_truncated_table_is_ddl() -> None:
    event = change("truncate", after=None)

    assert b'{"q":"TRUNCATE TABLE `test`.`t1`","t":11}' == one(event)[1]
    assert ["truncate"] == lost(event)


@pytest.mark.parametrize(
    ("mysql", "value", "text"),
    [
        ("tinyint(1)", "1", '{"t":1,"f":65,"v":1}'),
        ("tinyint unsigned", "255", '{"t":1,"f":193,"v":255}'),
        ("smallint", "-32768", '{"t":2,"f":65,"v":-32768}'),
        ("mediumint(9)", "8388607", '{"t":9,"f":65,"v":8388607}'),
        ("int(11)", "0", '{"t":3,"f":65,"v":0}'),
        ("int(10) unsigned zerofill", "7", '{"t":3,"f":193,"v":7}'),
        ("bigint", "-9223372036854775808", '{"t":8,"f":65,"v":-9223372036854775808}'),
        ("bigint(20) unsigned", "18446744073709551615", '{"t":8,"f":193,"v":18446744073709551615}'),
        ("float", "1e-7", '{"t":4,"f":65,"v":1e-7}'),
        ("double", "-0", '{"t":5,"f":65,"v":-0}'),
        ("double", "1.10", '{"t":5,"f":65,"v":1.10}'),
        ("decimal(12,2)", "129012.10", '{"t":246,"f":65,"v":"129012.10"}'),
        ("decimal(12,2) unsigned", "0.10", '{"t":246,"f":193,"v":"0.10"}'),
        ("timestamp(2)", "2020-01-01 00:00:00.50", '{"t":7,"f":65,"v":"2020-01-01 00:00:00.50"}'),
        ("date", "0000-00-00", '{"t":10,"f":65,"v":"0000-00-00"}'),
        ("time(6)", "-838:59:59.000000", '{"t":11,"f":65,"v":"-838:59:59.000000"}'),
        ("datetime", "0000-00-00 00:00:00", '{"t":12,"f":65,"v":"0000-00-00 00:00:00"}'),
        ("year(4)", "2022", '{"t":13,"f":193,"v":2022}'),
        ("year", "0000", '{"t":13,"f":193,"v":0}'),
        ("bit(64)", "18446744073709551615", '{"t":16,"f":193,"v":18446744073709551615}'),
        ("enum('a','it''s')", "it's", '{"t":247,"f":64,"v":2}'),
        ("enum('a','b')", "", '{"t":247,"f":64,"v":0}'),
        ("set('a','b','c')", "a,c", '{"t":248,"f":64,"v":5}'),
        ("set('a')", "", '{"t":248,"f":64,"v":0}'),
        ("json", '{"a": "<b>"}', '{"t":245,"f":65,"v":"{\\"a\\": \\"<b>\\"}"}'),
        ("vector(3)", "[1,2,3]", '{"t":225,"f":65,"v":"[1,2,3]"}'),
        ("char(4)", "测试", '{"t":254,"f":64,"v":"测试"}'),
        ("varchar(9)", '🙂"\\/\x01\x7f\n', '{"t":15,"f":64,"v":"🙂\\"\\\\/\\u0001\x7f\\n"}'),
        ("tinytext", "a", '{"t":249,"f":64,"v":"YQ=="}'),
        ("mediumtext", "", '{"t":250,"f":64,"v":""}'),
        ("longtext", "测试text", '{"t":251,"f":64,"v":"5rWL6K+VdGV4dA=="}'),
        ("text", "<", '{"t":252,"f":64,"v":"PA=="}'),
        ("tinyblob", "/wA=", '{"t":249,"f":65,"v":"/wA="}'),
        ("mediumblob", "/wA=", '{"t":250,"f":65,"v":"/wA="}'),
        ("longblob", "", '{"t":251,"f":65,"v":""}'),
        ("blob", "/wA=", '{"t":252,"f":65,"v":"/wA="}'),
        ("binary(2)", "/wA=", '{"t":254,"f":65,"v":"\\\\xff\\\\x00"}'),
        ("varbinary(9)", "iVBORw0KGgo=", '{"t":15,"f":65,"v":"\\\\x89PNG\\\\r\\\\n\\\\x1a\\\\n"}'),
        ("point", "AAAA", '{"t":255,"f":65,"v":"AAAA"}'),
    ],
)  # fmt: skip
def test_types_flags_and_values(mysql: str, value: str, text: str) -> None:
    event = change(key=(), types={"c": ColumnType(mysql)}, after={"c": value})
    details = ["type-details"] if "(" in mysql else []

    assert text == column(mysql, value)
    assert details == lost(event)
    head = text.partition('"v":')[0]
    assert f'{head}"v":null}}' == column(mysql, None)


def test_a_key_of_several_columns_has_the_flag_of_composite_indexes() -> None:
    types = {"a": ColumnType("int"), "b": ColumnType("varchar(9)")}
    event = change(key=("a", "b"), types=types, after={"a": "1", "b": "x"})

    assert (
        b'{"u":{"a":{"t":3,"h":true,"f":43,"v":1},"b":{"t":15,"h":true,"f":42,"v":"x"}}}'
        == one(event)[1]
    )


def test_flags_of_the_source_are_kept() -> None:
    types = {"id": ColumnType("int", None, 19), "name": ColumnType("varchar", None, 5)}

    assert (
        b'{"u":{"id":{"t":3,"h":true,"f":19,"v":1},"name":{"t":15,"f":5,"v":"\\\\xff"}}}'
        == one(change(types=types, after={"id": "1", "name": "/w=="}))[1]
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\a\b\f\n\r\t\v", r"\a\b\f\n\r\t\v"),
        (b"\x00\x1f\x7f", r"\x00\x1f\x7f"),
        (b"\\\"'", "\\\\\\\"'"),
        ("测试 é🙂\ufffd".encode(), "测试 é🙂\ufffd"),
        ("\u0085\u00a0\u200b\u2028\ufeff\U0001d173".encode(),
         r"\u0085\u00a0\u200b\u2028\ufeff\U0001d173"),
        (b"\xff\xe6\xb5x\xed\xa0\x80\xf0\x9f", r"\xff\xe6\xb5x\xed\xa0\x80\xf0\x9f"),
    ],
)  # fmt: skip
def test_binary_is_quoted_as_go_does(data: bytes, text: str) -> None:
    written = json.loads(column("varbinary(99)", b64encode(data).decode()))

    assert text == written["v"]


@given(st.binary() | st.text().map(str.encode))
def test_quoted_bytes_come_back(data: bytes) -> None:
    event = change(types={"c": ColumnType("varbinary(99)")}, after={"c": b64encode(data).decode()})

    assert event.after == again(event).after


def test_escapes_are_those_of_each_producers_json_writer() -> None:
    text = "<&>\u2028\b\f"

    assert '{"t":15,"f":64,"v":"\\u003c\\u0026\\u003e\\u2028\\b\\f"}' == column(
        "varchar(9)", text, "open-protocol:classic"
    )
    assert '{"t":15,"f":64,"v":"<&>\u2028\\u0008\\u000c"}' == column("varchar(9)", text)


def test_names_are_escaped_like_values() -> None:
    event = change(database='a"<', table="b\n", key=(), after={'c"': None}, types=None)
    key, value = one(event)

    assert b'{"ts":415508878783938562,"scm":"a\\"\\u003c","tbl":"b\\n","t":1}' == key
    assert b'{"u":{"c\\"":{"t":15,"f":64,"v":null}}}' == value


def test_timestamps_are_local_to_the_server() -> None:
    assert '{"t":7,"f":65,"v":"2020-01-01 08:00:00.50"}' == column(
        "timestamp", "2020-01-01 00:00:00.50", timezone="Asia/Shanghai"
    )


@pytest.mark.parametrize(
    ("mysql", "value", "text"),
    [
        ("int", '1},"x":{', '{"t":3,"f":65,"v":"1},\\"x\\":{"}'),
        ("int", "007", '{"t":3,"f":65,"v":"007"}'),
        ("int", "", '{"t":3,"f":65,"v":""}'),
        ("bigint", "1" * 5000, '{"t":8,"f":65,"v":"' + "1" * 5000 + '"}'),
        ("double", "NaN", '{"t":5,"f":65,"v":"NaN"}'),
        ("bit", "0x1", '{"t":16,"f":193,"v":"0x1"}'),
        ("year", "00xx", '{"t":13,"f":193,"v":"00xx"}'),
        ("blob", "no base64", '{"t":252,"f":65,"v":"bm8gYmFzZTY0"}'),
        ("varbinary", 'no "base64', '{"t":15,"f":65,"v":"no \\\\\\"base64"}'),
    ],
)
def test_what_does_not_fit_its_type_is_text_and_can_be_read(
    mysql: str, value: str, text: str
) -> None:
    event = change(key=(), types={"c": ColumnType(mysql)}, after={"c": value})

    assert text == column(mysql, value)
    assert ["misfit"] == lost(event)
    assert ["c"] == list(again(event).after or {})


def test_the_year_0_comes_back_in_four_digits() -> None:
    event = change(key=(), types={"y": ColumnType("year")}, after={"y": "0000"})

    assert b'"v":0}' in one(event)[1]
    assert {"y": "0000"} == again(event).after


def test_enum_without_labels_stays_what_it_is() -> None:
    event = change(key=(), types={"c": ColumnType("enum")}, after={"c": "small"})

    assert '{"t":247,"f":64,"v":"small"}' == column("enum", "small")
    assert ["enum-labels"] == lost(event)
    assert {"c": "small"} == again(event).after


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        ("numbers", "-5", '{"t":8,"f":65,"v":-5}'),
        ("numbers", "18446744073709551615", '{"t":8,"f":193,"v":18446744073709551615}'),
        ("numbers", "18446744073709551616", '{"t":246,"f":65,"v":"18446744073709551616"}'),
        ("numbers", "1.10", '{"t":246,"f":65,"v":"1.10"}'),
        ("numbers", "1.5e300", '{"t":5,"f":65,"v":1.5e300}'),
        ("numbers", "-0", '{"t":246,"f":65,"v":"-0"}'),
        ("numbers", "1,2", '{"t":15,"f":64,"v":"1,2"}'),
        ("numbers", None, '{"t":15,"f":64,"v":null}'),
        ("booleans", "1", '{"t":1,"f":65,"v":1}'),
        ("booleans", "yes", '{"t":15,"f":64,"v":"yes"}'),
        ("nested", '{"a":1}', '{"t":245,"f":65,"v":"{\\"a\\":1}"}'),
        ("none", "5", '{"t":15,"f":64,"v":"5"}'),
    ],
)  # fmt: skip
def test_types_that_are_not_known_are_guessed_and_counted(
    hint: str, value: str | None, text: str
) -> None:
    event = change(key=(), types=None, after={"c": value}, extra={hint: '["c"]'})

    assert b'{"u":{"c":' + text.encode() + b"}}" == one(event)[1]
    assert "types-guessed" in lost(event)
    assert {"c": value} == again(event).after


def test_a_key_that_is_not_known_is_counted() -> None:
    assert ["key-unknown"] == lost(
        change(key=None, types={"id": ColumnType("int")}, after={"id": "1"})
    )
    assert ["key"] == lost(change(types={"a": ColumnType("int")}, after={"a": "1"}))


def test_time_stands_for_a_commit_number_that_is_not_known() -> None:
    types = {"id": ColumnType("int")}
    event = change(commit_ts=None, event_time=TIME + 5, types=types, after={"id": "1"})

    assert ["event-time-micros", "commit-ts-unknown"] == lost(event)
    assert (TIME, (TIME // 1_000) << 18) == (again(event).event_time, again(event).commit_ts)
    event.event_time = None
    assert [] == lost(event)
    assert b'{"ts":0,"scm":"test","tbl":"t1","t":1}' == one(event)[0]
    assert (None, None) == (again(event).event_time, again(event).commit_ts)
    event.event_time = -1_000
    assert ["commit-ts-unknown", "event-time"] == lost(event)


def test_without_a_commit_number_the_place_in_the_binlog_keeps_the_order() -> None:
    """Files, positions in them, rows of an event; the time is lost, and said to be."""
    places = [("b.000009", 4, 0), ("b.000009", 900, 0), ("b.000009", 900, 1),
              ("b.000009", 920, 0), ("b.000009", 2**33, 9_000), ("b.000010", 4, 0)]  # fmt: skip
    events = [
        change(commit_ts=None, event_time=TIME, types={"id": ColumnType("int")}, after={"id": "1"},
               position={"file": file, "pos": str(pos), "row": str(row)})
        for file, pos, row in places
    ]  # fmt: skip
    numbers = [again(event).commit_ts or 0 for event in events]

    assert sorted(set(numbers)) == numbers
    assert ["position", "commit-ts-place", "event-time"] == lost(events[0])
    events[0].position = {"file": "b.000009", "pos": str(2**40), "row": "0"}
    assert ["position", "commit-ts-unknown"] == lost(events[0])


def test_a_time_that_the_commit_number_does_not_hold_is_counted() -> None:
    types = {"id": ColumnType("int")}

    assert NO_LOSS == lost(change(event_time=TIME, types=types, after={"id": "1"}))
    assert ["event-time"] == lost(change(event_time=TIME + 1_000, types=types, after={"id": "1"}))


def test_an_unknown_old_row_is_written_as_if_nothing_changed() -> None:
    event = change("update", types={"id": ColumnType("int")}, after={"id": "1"})
    one_column = b'{"id":{"t":3,"h":true,"f":11,"v":1}}'

    assert b'{"u":' + one_column + b',"p":' + one_column + b"}" == one(event)[1]
    assert ["before-unknown"] == lost(event)


def test_a_deleted_row_that_is_not_known_is_refused() -> None:
    outcome = Encoder("open-protocol")(change("delete", before=None, types=None))

    assert ([], "malformed-event") == (outcome.records, (outcome.error or ("",))[0])


def test_only_updated_columns() -> None:
    old = {"id": "1", "name": "b"}
    options = {"only_output_updated_columns": True}
    u = b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"name":{"t":15,"f":64,"v":"a"}}'

    for spec in ("open-protocol:classic", "open-protocol:new"):
        assert (
            u + b',"p":{"name":{"t":15,"f":64,"v":"b"}}}'
            == one(change("update", before=old), spec, **options)[1]
        )
    same = change("update", before=ROW)
    assert u + b',"p":{}}' == one(same, "open-protocol:new", **options)[1]
    assert u + b"}" == one(same, "open-protocol:classic", **options)[1]
    assert "before" in lost(same, **options)


def test_only_handle_key_columns_of_a_delete() -> None:
    options = {"delete_only_output_handle_key_columns": True}

    assert ["deleted-row"] == lost(change("delete"), **options)
    assert NO_LOSS == lost(change("delete", key=()), **options)
    assert NO_LOSS == lost(change("delete", before={"id": "1"}), **options)

    assert b'{"d":{"id":{"t":3,"h":true,"f":11,"v":1}}}' == one(change("delete"), **options)[1]
    assert (
        b'{"d":{"id":{"t":3,"f":65,"v":1},"name":{"t":15,"f":64,"v":"a"}}}'
        == one(change("delete", key=()), **options)[1]
    )


@pytest.mark.parametrize("spec", ["open-protocol:classic", "open-protocol:new"])
def test_an_update_of_the_key_is_a_delete_and_an_insert(spec: str) -> None:
    encode = Encoder(spec)
    event = change("update", before=ROW, after=ROW | {"id": "2"})
    halves = [change("delete"), change(after=ROW | {"id": "2"})]

    assert [r for half in halves for r in encode(half).records] == encode(event).records
    assert ["key-change"] == lost(event, spec)
    raw = {"output_raw_change_event": True}
    assert b'"p":{"id":{"t":3,"h":true,"f":11,"v":1}' in one(event, spec, **raw)[1]
    assert NO_LOSS == lost(event, spec, **raw)


def test_without_old_values_an_update_cannot_be_told_from_an_insert() -> None:
    event = change("update", before=ROW)

    assert one(change())[1] == one(event, output_old_value=False)[1]
    assert "before" in lost(event, output_old_value=False)
    assert "insert" in lost(change(), output_old_value=False)


@pytest.mark.parametrize("compression", ["lz4", "snappy"])
def test_bodies_are_compressed_one_by_one_and_empty_ones_never(compression: str) -> None:
    encoder = Encoder("open-protocol", compression=compression)
    decode = decoder("open-protocol", compression=compression)
    rows = [change(format="open-protocol"), change("delete", format="open-protocol")]
    (message,) = joined(encoder, rows)
    (watermark,) = encoder(Event("watermark", commit_ts=TSO)).records

    assert ["insert", "delete"] == [e.op for e in decode(message.key, message.value, None)]
    assert bytes(8) == watermark.value


def joined(encoder: Encoder, events: list[Event]) -> list[Any]:
    return packed(encoder, events, map(encoder, events))[0]


def counts(events: list[Event], **options: Any) -> list[int]:
    messages = joined(Encoder("open-protocol", **options), events)
    decode = decoder("open-protocol")
    return [len(decode(m.key, m.value, None)) for m in messages]


def test_rows_of_a_table_are_joined_up_to_the_batch_size() -> None:
    assert [16, 4] == counts([change()] * 20)
    assert [3, 3, 1] == counts([change()] * 7, max_batch_size=3)
    other, ddl = change(table="t2"), Event("ddl", "drop", "test", "t1", ddl="DROP TABLE t1")
    assert [2, 1, 1, 1] == counts([change(), change(), other, ddl, change()])


def test_rows_are_joined_up_to_the_message_size() -> None:
    (record,) = Encoder("open-protocol")(change()).records
    row = len(record.key or b"") - 8 + len(record.value or b"")
    two = 8 + 2 * row + 36

    assert [2, 1] == counts([change()] * 3, max_message_bytes=two)
    assert [1, 1, 1] == counts([change()] * 3, max_message_bytes=two - 1)
    assert [1, 1] == counts([change()] * 2, max_message_bytes=1)  # Kafka has the last word


def test_a_batch_has_the_version_once() -> None:
    encoder = Encoder("open-protocol")
    (record,) = encoder(change()).records
    (message,) = joined(encoder, [change(), change()])
    assert record.key
    assert record.value

    assert record.key + record.key[8:] == message.key
    assert record.value * 2 == message.value


def test_ddl_and_watermarks_go_to_every_partition() -> None:
    encoder = Encoder("open-protocol", partition_num=3, topic="cdc")
    for event in (
        Event("ddl", "drop", "test", "t1", ddl="DROP TABLE t1", commit_ts=TSO),
        Event("watermark", commit_ts=TSO),
    ):
        assert [0, 1, 2] == [r.partition for r in encoder(event).records]
    assert 1 == len(encoder(change()).records)


def test_a_batch_of_no_rows_is_refused() -> None:
    with pytest.raises(UsageError, match="max-batch-size"):
        Encoder("open-protocol", max_batch_size=0)


def test_canals_row_goes_out_with_its_types_and_key() -> None:
    (event,) = decoder("canal-json")(None, canal(), None)
    key, value = one(event, "open-protocol:new")

    assert b'{"ts":%d,"scm":"shop","tbl":"orders","t":1}' % (1589373515000 << 18) == key
    assert (
        b'{"u":{"id":{"t":8,"h":true,"f":11,"v":1},"amount":{"t":246,"f":65,"v":"1.10"},'
        b'"note":{"t":15,"f":64,"v":null}}}'
    ) == value
    assert {"emit-time", "type-details", "extra", "commit-ts-unknown"} == set(lost(event))


def test_maxwells_row_goes_out_with_guessed_types() -> None:
    (event,) = decoder("maxwell")(None, maxwell(), None)

    assert event.after == again(event).after
    assert {"types-guessed"} <= set(lost(event))


def test_a_row_that_was_cut_down_elsewhere_says_so() -> None:
    event = change(format="canal-json", dialect="ticdc", extra={"claimCheckLocation": "s3://b/1"})

    assert b'"tbl":"t1","t":1,"ohk":true}' in one(event, "open-protocol:new")[0]
    assert "incomplete" not in lost(event)
    assert "incomplete" in lost(change(format="maxwell", extra={"partial": "true"}))


def test_kinds_without_a_message_are_left_out() -> None:
    for event, code in (
        (Event("heartbeat"), "heartbeat"),
        (Event("marker", "begin"), "transaction"),
        (Event("marker", "empty", format="maxwell"), "empty"),
        (Event("statement", "insert", ddl="INSERT"), "statement"),
        (Event("tombstone", format="debezium"), "tombstone"),
    ):
        assert ([], [code]) == (Encoder("open-protocol")(event).records, lost(event))


def test_hostile_extras_of_the_own_format_do_no_harm() -> None:
    extra = {"t": '{"c":999}', "h": "no", "base64": "{", "unnamedOld": '{"a":', "rid": "x"}
    event = change(
        "update", format="open-protocol", key=(), types={"c": ColumnType("int")},
        after={"c": "1"}, extra=extra,
    )  # fmt: skip

    for spec in ("open-protocol:classic", "open-protocol:new"):
        assert {"c": "1"} == again(event, spec).after


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BASE64 = st.binary(max_size=12).map(lambda b: b64encode(b).decode())


def whole(low: int, high: int) -> Any:
    return st.integers(low, high).map(str)


VALUES: dict[str, Any] = {
    "tinyint": whole(-128, 127),
    "smallint": whole(-(2**15), 2**15 - 1),
    "mediumint": whole(-(2**23), 2**23 - 1),
    "int": whole(-(2**31), 2**31 - 1),
    "int unsigned": whole(0, 2**32 - 1),
    "bigint": whole(-(2**63), 2**63 - 1),
    "bigint unsigned": whole(0, 2**64 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    "double": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "decimal": st.decimals(places=4, allow_nan=False, allow_infinity=False).map("{:f}".format),
    "timestamp": st.datetimes().map(lambda d: f"{d:%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0")),
    "date": st.dates().map(str),
    "time": st.sampled_from(["-838:59:59", "00:00:00.000", "12:34:56.789012"]),
    "datetime": st.sampled_from(["0000-00-00 00:00:00", "2020-02-29 12:00:00.5"]),
    "year": whole(1901, 2155),
    "bit": whole(0, 2**64 - 1),
    "enum": whole(0, 65535),
    "set": whole(0, 2**64 - 1),
    "json": TEXT,
    "vector": TEXT,
    "char": TEXT,
    "varchar": TEXT,
    "tinytext": TEXT,
    "text": TEXT,
    "mediumtext": TEXT,
    "longtext": TEXT,
    "binary": BASE64,
    "varbinary": BASE64,
    "tinyblob": BASE64,
    "blob": BASE64,
    "mediumblob": BASE64,
    "longblob": BASE64,
}
ROWS = st.fixed_dictionaries({name: st.none() | value for name, value in VALUES.items()})


@settings(deadline=None, max_examples=examples(150))
@given(ROWS, ROWS, st.sampled_from(["insert", "update", "delete"]), st.booleans(), st.booleans())
def test_every_row_comes_back(one: Image, other: Image, op: str, new: bool, partial: bool) -> None:
    before, after = one if op != "insert" else None, other if op != "delete" else None
    types = {name: ColumnType(name) for name in VALUES}
    event = change(
        op, key=("int",), types=types, before=before, after=after, format="canal-json",
        dialect="ticdc",
    )  # fmt: skip
    spec = "open-protocol:new" if new else "open-protocol:classic"
    options = {"only_output_updated_columns": partial and new, "output_raw_change_event": True}
    encoded = Encoder(spec, **options)(event)
    (record,) = encoded.records
    (found,) = decoder(spec)(record.key, record.value, None)

    assert NO_LOSS == encoded.lost
    assert (op, before, after) == (found.op, found.before, found.after)
    assert {n: t.mysql for n, t in types.items()} == {
        n: t.mysql for n, t in (found.types or {}).items()
    }
    assert ("int",) == found.key
