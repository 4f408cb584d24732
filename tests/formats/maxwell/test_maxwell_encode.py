"""Maxwell's messages as they are written: Maxwell's own bytes, OMS's, and what neither carries."""

from __future__ import annotations

import base64
import json
import re
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoded, Encoder
from headgate.codec.loss_samples import losses
from headgate.core.errors import UsageError
from headgate.core.event import ColumnType, Event, Image, Types
from headgate.formats.encoding import java_notation

AT = 1_449_786_310_000_000
INSERT = Event(
    "row",
    "insert",
    "shop",
    "t",
    key=("Id",),
    after={"Id": "1", "name": "Lem"},
    types={"Id": ColumnType("int"), "name": ColumnType("varchar(20)")},
    event_time=AT,
)
HEAD = '{"database":"shop","table":"t",'


def changed(event: Event = INSERT, **members: Any) -> Event:
    return msgspec.structs.replace(event, **members)


def write(event: Event, spec: str = "maxwell", **options: Any) -> Encoded:
    return Encoder(spec, **options)(event)


def text(event: Event, spec: str = "maxwell", **options: Any) -> str:
    [record] = write(event, spec, **options).records
    assert record.value is not None
    return record.value.decode()


def lost(event: Event, spec: str = "maxwell", **options: Any) -> list[str]:
    return write(event, spec, **options).lost


def typed(columns: dict[str, tuple[str, str | None]], **members: Any) -> Event:
    return changed(
        key=None,
        after={n: value for n, (_, value) in columns.items()},
        types={n: ColumnType(mysql) for n, (mysql, _) in columns.items()},
        **members,
    )


def value_of(mysql: str, value: str | None, spec: str = "maxwell", **options: Any) -> str:
    """How one value of a type is written."""
    written = text(typed({"c": (mysql, value)}), spec, **options)
    return written.partition('"data":{"c":')[2].partition("}")[0].partition('},"old"')[0]


def read(message: str | bytes, spec: str = "maxwell", key: bytes | None = None, **o: Any) -> Event:
    value = message.encode() if isinstance(message, str) else message
    [event] = decoder(spec, **o)(key, value, None)
    return event


# Rows


def test_insert() -> None:
    expected = HEAD + (
        '"type":"insert","ts":1449786310,"primary_key_columns":["Id"],"data":{"Id":1,"name":"Lem"}}'
    )

    [record] = write(INSERT).records
    assert (expected, b'{"database":"shop","table":"t","pk.id":1}') == (
        (record.value or b"").decode(),
        record.key,
    )
    assert ["types"] == lost(INSERT)


def test_update_has_what_changed_and_delete_has_the_row() -> None:
    before: Image = {"Id": "1", "name": None}
    update = changed(op="update", before=before)
    delete = changed(op="delete", before=before, after=None)

    assert text(update).endswith('"data":{"Id":1,"name":"Lem"},"old":{"name":null}}')
    assert text(delete).startswith(HEAD + '"type":"delete","ts":1449786310,')
    assert text(delete).endswith('"data":{"Id":1,"name":null}}')
    assert b'"pk.id":1' in (write(delete).records[0].key or b"")


def test_an_update_of_the_key_has_the_new_one_in_the_kafka_key() -> None:
    update = changed(op="update", before={"Id": "2", "name": "Lem"})

    assert text(update).endswith('"data":{"Id":1,"name":"Lem"},"old":{"Id":2}}')
    assert b'{"database":"shop","table":"t","pk.id":1}' == write(update).records[0].key


def test_an_update_whose_row_before_is_unknown_has_no_old_and_loses_nothing() -> None:
    update = changed(op="update")

    assert '"old"' not in text(update)
    assert ["types"] == lost(update)
    assert read(text(update)).before is None


def test_an_update_that_changes_nothing_cannot_say_so() -> None:
    update = changed(op="update", before=INSERT.after)

    assert '"old"' not in text(update)
    assert ["types", "before"] == lost(update)


def test_a_row_before_that_lacks_columns_is_said_to_be_incomplete() -> None:
    update = changed(op="update", before={"Id": "2"})

    assert ["types", "incomplete"] == lost(update)


def test_every_member_in_maxwells_order() -> None:
    message = (
        HEAD + '"query":"insert","type":"insert","ts":1449786310,"xid":940752,"xoffset":3,'
        '"commit":true,"position":"mysql-bin.000003:4567","gtid":"3e11:23","server_id":23042,'
        '"thread_id":108,"schema_id":5,"push_ts":1449786310.123456,"comment":"c","region":"eu",'
        '"numbers":{"a": 1.10},"primary_key":[1],"primary_key_columns":["id"],"data":{"id":1}}'
    )

    assert message == text(read(message))
    assert [] == lost(read(message))


def test_members_can_be_left_out_as_by_maxwells_defaults() -> None:
    full = read(
        HEAD + '"query":"insert","type":"insert","ts":1449786310,"xid":940752,"xoffset":3,'
        '"position":"mysql-bin.000003:4567","gtid":"3e11:23","server_id":23042,"thread_id":108,'
        '"schema_id":5,"push_ts":1449786310.123456,"primary_key":[1],'
        '"primary_key_columns":["id"],"data":{"id":1}}'
    )
    off = [
        "binlog_position", "gtid_position", "xoffset", "server_id", "thread_id", "schema_id",
        "push_timestamp", "row_query", "primary_keys", "primary_key_columns",
    ]  # fmt: skip
    options = {f"output_{name}": False for name in off}

    assert HEAD + '"type":"insert","ts":1449786310,"xid":940752,"data":{"id":1}}' == text(
        full, **options
    )
    assert ["emit-time", "position", "extra"] == lost(full, **options)
    assert HEAD + '"type":"insert","ts":1449786310,"data":{"id":1}}' == text(
        full, **options, output_commit_info=False
    )


def test_gtid_can_be_null_as_on_a_server_without_gtids() -> None:
    assert '"ts":1449786310,"gtid":null,"primary' in text(INSERT, output_gtid_position=True)


def test_a_time_that_is_not_known_is_not_written() -> None:
    assert text(changed(event_time=None)).startswith(HEAD + '"type":"insert","primary')


def test_times_are_whole_seconds_and_push_ts_has_microseconds() -> None:
    event = changed(event_time=AT + 999_999, emit_time=AT + 120_000)

    assert '"ts":1449786310,"push_ts":1449786310.12,' in text(event)
    assert ["types", "event-time-millis"] == lost(event)
    assert AT + 120_000 == read(text(event)).emit_time


@pytest.mark.parametrize("micros", [0, 1, 10, 120, 1_000, 500_000, 999_999])
def test_push_ts_is_read_back_to_the_microsecond(micros: int) -> None:
    event = read(text(changed(emit_time=AT + micros)))

    assert (AT + micros, None) == (event.emit_time, (event.extra or {}).get("push_ts"))


def test_a_position_that_maxwell_has_no_form_for_is_counted() -> None:
    assert ["types", "position"] == lost(changed(position={"xid": "1002_7"}))
    assert ["types", "position"] == lost(changed(position={"pos": "7"}))
    assert ["types", "position"] == lost(changed(position={"lsn": "7"}))
    assert '"xid"' not in text(changed(position={"xid": "1002_7"}))


def test_snapshot_and_its_markers() -> None:
    begin = Event("marker", "snapshot_begin", "shop", "t", event_time=AT)

    assert HEAD + '"type":"bootstrap-start","ts":1449786310,"data":{}}' == text(begin)
    assert '"type":"bootstrap-complete"' in text(changed(begin, op="snapshot_end"))
    assert '"type":"bootstrap-insert"' in text(changed(op="snapshot"))
    assert ["transaction"] == lost(Event("marker", "begin"))


def test_timestamps_of_a_bootstrap_are_local() -> None:
    row = typed({"at": ("timestamp(2)", "2020-01-01 00:00:00.50")}, op="snapshot")

    assert '{"at":"2020-01-01 08:00:00.50"}' in text(row, timezone="Asia/Shanghai")
    assert '{"at":"2020-01-01 00:00:00.50"}' in text(
        changed(row, op="insert"), timezone="Asia/Shanghai"
    )


@pytest.mark.parametrize(
    ("utc", "local", "counted"),
    [
        ("2023-10-29 00:30:00.5", "2023-10-29 02:30:00.50", True),
        ("2023-10-29 01:30:00", "2023-10-29 02:30:00.00", True),
        ("2023-10-29 02:00:00", "2023-10-29 03:00:00.00", False),
        ("2023-03-26 01:00:00", "2023-03-26 03:00:00.00", False),
        ("0000-00-00 00:00:00", "0000-00-00 00:00:00.00", False),
    ],
)
def test_a_local_time_that_comes_twice_is_counted(utc: str, local: str, counted: bool) -> None:
    row = typed({"at": ("timestamp(2)", utc)}, op="snapshot")

    assert f'{{"at":"{local}"}}' in text(row, timezone="Europe/Berlin")
    assert ["types"] + ["repeated-hour"] * counted == lost(row, timezone="Europe/Berlin")
    assert ["types"] == lost(row)
    assert ["types"] == lost(changed(row, op="insert"), timezone="Europe/Berlin")


@pytest.mark.parametrize("spec", ["canal-json:canal", "canal-json:ticdc", "open-protocol"])
def test_a_local_time_that_comes_twice_is_counted_in_every_format(spec: str) -> None:
    row = typed({"at": ("timestamp", "2023-10-29 01:30:00")})

    assert b"2023-10-29 02:30:00" in (
        write(row, spec, timezone="Europe/Berlin").records[0].value or b""
    )
    assert "repeated-hour" in lost(row, spec, timezone="Europe/Berlin")
    assert "repeated-hour" not in lost(row, spec)


# Keys


def test_kafka_key_as_array() -> None:
    event = changed(key=("name", "Id"))
    [record] = write(event, kafka_key_format="array").records

    assert b'["shop","t",[{"name":"Lem"},{"id":1}]]' == record.key


def test_a_table_without_a_key_has_no_kafka_key() -> None:
    event = changed(key=())

    assert write(event).records[0].key is None
    assert () == read(text(event)).key
    assert ["types", "key"] == lost(event, output_primary_key_columns=False)


def test_key_columns_can_be_in_the_kafka_key_alone() -> None:
    encoded = write(INSERT, output_primary_key_columns=False)
    [record] = encoded.records

    assert ["types"] == encoded.lost
    assert ("Id",) == read(record.value or b"", key=record.key).key


def test_primary_key_is_written_where_it_is_asked_for() -> None:
    event = changed(key=("name", "Id"))

    assert '"primary_key":["Lem",1],"primary_key_columns":["name","Id"]' in text(
        event, output_primary_keys=True
    )


def test_a_key_column_that_the_row_lacks_gives_no_kafka_key() -> None:
    event = changed(key=("gone",))

    assert write(event).records[0].key is None
    assert ("gone",) == read(text(event)).key


# Options


def test_nulls_can_be_left_out() -> None:
    event = changed(op="update", before={"Id": "1", "name": "x"}, after={"Id": "1", "name": None})

    assert text(event, output_nulls=False).endswith('"data":{"Id":1},"old":{"name":"x"}}')
    assert ["types", "null-columns"] == lost(event, output_nulls=False)


def test_zero_dates_can_be_null() -> None:
    assert '"0000-00-00"' == value_of("date", "0000-00-00")
    assert "null" == value_of("date", "0000-00-00", output_null_zerodates=True)
    assert '"2020-01-01 00:00:00.50"' == value_of(
        "datetime(2)", "2020-01-01 00:00:00.5", output_null_zerodates=True
    )
    assert "zero-dates" in lost(
        typed({"c": ("datetime", "0000-00-00 00:00:00")}), output_null_zerodates=True
    )


def test_camel_case_renames_members_and_columns_but_not_the_kafka_key() -> None:
    event = changed(
        key=("user_id",),
        after={"user_id": "1", "_first_name": "Lem"},
        types=None,
        position={"server_id": "7"},
    )
    encoded = write(event, output_naming_strategy="underscore_to_camelcase")
    [record] = encoded.records

    assert (
        HEAD.encode() + b'"type":"insert","ts":1449786310,"serverId":7,'
        b'"primaryKeyColumns":["user_id"],"data":{"userId":"1","firstName":"Lem"}}'
    ) == record.value
    assert b'{"database":"shop","table":"t","pk.user_id":"1"}' == record.key


def test_options_of_maxwell_are_refused_for_oms() -> None:
    with pytest.raises(UsageError, match="output-nulls is Maxwell's"):
        Encoder("maxwell:oms", output_nulls=False)


# Values


@pytest.mark.parametrize(
    ("mysql", "value", "expected"),
    [
        ("tinyint", "-128", "-128"),
        ("tinyint(1)", "1", "1"),
        ("int unsigned", "4294967295", "4294967295"),
        ("bigint", "-9223372036854775808", "-9223372036854775808"),
        ("bigint unsigned", "18446744073709551615", "18446744073709551615"),
        ("decimal(9,2)", "1.10", "1.10"),
        ("decimal(65,30)", "-1" + "0" * 34 + "." + "1" * 30, "-1" + "0" * 34 + "." + "1" * 30),
        ("decimal(20,10)", "0.0000000000", "0E-10"),
        ("decimal(20,9)", "0.000000150", "1.50E-7"),
        ("decimal(20,6)", "-0.000001", "-0.000001"),
        ("float", "1.5", "1.5"),
        ("float", "16777216", "1.6777216E7"),
        ("double", "1.7976931348623157E308", "1.7976931348623157E308"),
        ("double", "1.7976931348623157e+308", "1.7976931348623157E308"),
        ("double", "10000000000", "1.0E10"),
        ("double", "0.1", "0.1"),
        ("double", "-5", "-5.0"),
        ("double", "0.00150", "0.0015"),
        ("double", "0.0009", "9.0E-4"),
        ("double", "9999999.5", "9999999.5"),
        ("double", "0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("double", "-0", "-0.0"),
        ("double", "0e7", "0.0"),
        ("double", "1e" + "9" * 5000, "1e" + "9" * 5000),
        ("bit(1)", "1", "1"),
        ("bit(64)", "18446744073709551615", "18446744073709551615"),
        ("year", "2016", "2016"),
        ("year", "0000", "0"),
        ("date", "2016-10-21", '"2016-10-21"'),
        ("date", "0000-00-00", '"0000-00-00"'),
        ("datetime(6)", "2016-10-21 05:33:37.523000", '"2016-10-21 05:33:37.523000"'),
        ("datetime(3)", "2016-10-21 05:33:01.5", '"2016-10-21 05:33:01.500"'),
        ("datetime(3)", "2016-10-21 05:33:01.500000", '"2016-10-21 05:33:01.500"'),
        ("datetime(1)", "2016-10-21 05:33:01.25", '"2016-10-21 05:33:01.25"'),
        ("datetime(0)", "2016-10-21 05:33:01.000", '"2016-10-21 05:33:01"'),
        ("datetime", "2016-10-21 05:33:01.5", '"2016-10-21 05:33:01.5"'),
        ("datetime(3)", "0000-00-00 00:00:00", '"0000-00-00 00:00:00.000"'),
        ("timestamp", "1970-01-01 00:00:01", '"1970-01-01 00:00:01"'),
        ("timestamp(6)", "1970-01-01 00:00:01.5", '"1970-01-01 00:00:01.500000"'),
        ("timestamp(14)", "1970-01-01 00:00:01", '"1970-01-01 00:00:01"'),
        ("time(3)", "-838:59:59.000", '"-838:59:59.000"'),
        ("time(3)", "-00:00:01.5", '"-00:00:01.500"'),
        ("time(2)", "soon.5", '"soon.5"'),
        ("datetime(2)", "2016-10-21", '"2016-10-21"'),
        ("datetime(2)", "2016-10-21 05:33:01.5 UTC", '"2016-10-21 05:33:01.5 UTC"'),
        ("enum('a','b')", "b", '"b"'),
        ("enum", "", '""'),
        ("set('a','b')", "a,b", '["a","b"]'),
        ("set", "", "[]"),
        ("json", '{"a": [1.10, "x"]}', '{"a": [1.10, "x"]'),
        ("json", '"abc"', '"abc"'),
        ("json", "[\n1,\r\n2]", "[ 1,  2]"),
        ("binary(4)", "AAECAw==", '"AAECAw=="'),
        ("blob", "", '""'),
        ("geometry", "AAAAAAEBAAAA", '"AAAAAAEBAAAA"'),
        ("text", 'a"b\\c/\u007f\u2028é😀', '"a\\"b\\\\c/\u007f\u2028é😀"'),
        ("text", "\b\f\n\r\t\x00\x1f", '"\\b\\f\\n\\r\\t\\u0000\\u001F"'),
        ("text", "5", '"5"'),
        ("int", None, "null"),
    ],
)
def test_value_of_each_type(mysql: str, value: str | None, expected: str) -> None:
    assert expected == value_of(mysql, value)


@pytest.mark.parametrize(
    ("mysql", "value"),
    [
        ("int", '1,"x":2'),
        ("int", "007"),
        ("bigint", "1e3"),
        ("decimal(9,2)", '1}"'),
        ("decimal(9,2)", "0.0000001x"),
        ("double", "NaN"),
        ("bit(3)", "0b1"),
        ("year", "MMXX"),
        ("json", '{"a":1},"b":2'),
        ("json", '{"a":"\x01"}'),
        ("json", "[" * 100_000),
        ("int", "٣"),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_text(mysql: str, value: str) -> None:
    event = typed({"c": (mysql, value)})

    assert {"c": value} == json.loads(text(event))["data"]
    assert ["types", "misfit"] == lost(event)


def test_floats_of_other_producers_that_java_writes_otherwise_are_counted() -> None:
    columns = {"a": ("double", "1e10"), "b": ("float", "5"), "c": ("double", "1.0E10")}

    assert ["types", "float-digits", "float-digits"] == lost(typed(columns))
    assert '{"a":1.0E10,"b":5.0,"c":1.0E10}' in text(typed(columns, format="debezium"))


def test_floats_and_times_of_maxwell_itself_are_written_as_they_came() -> None:
    columns = {"a": ("double", "1e10"), "b": ("float", "5"), "c": ("datetime(3)", "2016-10-21")}
    row = typed(columns, format="maxwell", dialect="maxwell")

    assert '{"a":1e10,"b":5,"c":"2016-10-21"}' in text(row)
    assert ["types"] == lost(row)


def test_jsons_null_is_null_and_counted() -> None:
    event = typed({"c": ("json", "null")})

    assert '"data":{"c":null}' in text(event)
    assert ["types", "json-null"] == lost(event)


def test_a_json_column_that_came_as_a_fraction_is_one() -> None:
    sent = HEAD + '"type":"insert","ts":1,"data":{"doc":1.50}}'

    assert '"data":{"doc":1.50}}' in text(read(sent), schema="CREATE TABLE shop.t (doc JSON)")


def test_embedded_json_keeps_its_own_escapes() -> None:
    event = typed({"c": ("json", '{"a":"\\u001f\\\\u00e9"}'), "d": ("text", "\x1f\\u001f")})

    assert '{"c":{"a":"\\u001f\\\\u00e9"},"d":"\\u001F\\\\u001f"}' in text(event)


def test_without_types_values_are_written_as_they_came() -> None:
    event = changed(
        key=None,
        types=None,
        after={"n": "1.10", "b": "1", "t": "5", "doc": "{}", "bad": "x"},
        extra={"numbers": '["n","bad"]', "booleans": '["b"]', "nested": '["doc"]'},
    )

    assert '"data":{"n":1.10,"b":true,"t":"5","doc":{},"bad":"x"}' in text(event)


def test_types_go_before_hints_and_hints_serve_the_rest() -> None:
    event = changed(
        key=None,
        types={"doc": ColumnType("text"), "odd": ColumnType("sorted")},
        after={"doc": "5", "n": "5", "odd": "6"},
        extra={"numbers": '["doc","n","odd"]'},
    )

    assert '"data":{"doc":"5","n":5,"odd":6}' in text(event)


@pytest.mark.parametrize("spec", ["maxwell", "maxwell:oms"])
def test_columns_whose_type_nobody_tells_are_counted(spec: str) -> None:
    types = {"Id": ColumnType("int"), "name": ColumnType()}
    own = changed(types=types, format="maxwell")

    assert "types-guessed" not in lost(INSERT, spec)
    assert "types-guessed" in lost(changed(types=types), spec)
    assert "types-guessed" in lost(changed(types={"Id": ColumnType("int")}), spec)
    assert "types-guessed" not in lost(changed(types=None), spec)
    assert "types-guessed" not in lost(own, spec)
    assert '"data":{"Id":1,"name":"Lem"}' in text(changed(types=types), spec)


def test_names_are_escaped() -> None:
    event = changed(database='a"b', table="t\n", after={'c"\\': "1"}, types=None, key=('c"\\',))
    [record] = write(event).records

    assert {"database": 'a"b', "table": "t\n", 'pk.c"\\': "1"} == json.loads(record.key or b"")
    assert {'c"\\': "1"} == json.loads(record.value or b"")["data"]


# DDL

CREATE = Event(
    "ddl",
    "create",
    "shop",
    "t",
    ddl="create table t (id int unsigned primary key, v varchar(9), b blob, e enum('a','b'), "
    "s set('x'), at datetime(3), ts timestamp, f float, j json)",
    event_time=AT + 123_000,
    format="canal-json",
    dialect="canal",
)
COLUMNS = (
    '"columns":[{"type":"int","name":"id","signed":false},'
    '{"type":"varchar","name":"v","charset":null},{"type":"blob","name":"b","charset":"binary"},'
    '{"type":"enum","name":"e","enum-values":["a","b"]},'
    '{"type":"set","name":"s","enum-values":["x"]},'
    '{"type":"datetime","name":"at","column-length":3},'
    '{"type":"timestamp","name":"ts","column-length":0},{"type":"float","name":"f"},'
    '{"type":"json","name":"j"}],"primary-key":["id"]'
)


def test_create_table_has_the_definition_that_its_statement_makes() -> None:
    expected = (
        '{"type":"table-create","database":"shop","table":"t","def":{"database":"shop",'
        f'"charset":null,"table":"t",{COLUMNS}}},"ts":1449786310123,"sql":{json.dumps(CREATE.ddl)}}}'
    )

    assert expected == text(CREATE)
    assert [] == lost(CREATE)
    assert write(CREATE).records[0].key is None


def test_alter_and_rename_tell_the_table_before_and_after() -> None:
    encoder = Encoder("maxwell", schema="create table shop.t (id int)")
    alter = changed(CREATE, op="alter", ddl="alter table t add n bigint")
    rename = changed(CREATE, op="rename", table="u", ddl="rename table shop.t to shop.u")
    [first] = encoder(alter).records
    [second] = encoder(rename).records
    column = '{"type":"int","name":"id","signed":true}'
    both = f'{column},{{"type":"bigint","name":"n","signed":true}}'
    table = '{{"database":"shop","charset":null,"table":"{}","columns":[{}],"primary-key":[]}}'

    assert (
        '{"type":"table-alter","database":"shop","table":"t","old":'
        + table.format("t", column)
        + ',"def":'
        + table.format("t", both)
        + ',"ts":1449786310123,"sql":"alter table t add n bigint"}'
    ) == (first.value or b"").decode()
    assert (
        f'"table":"t","old":{table.format("t", both)},"def":{table.format("u", both)}'
        in (second.value or b"").decode()
    )
    assert "rename" == read(second.value or b"").op


def test_a_table_that_is_not_known_has_a_definition_without_columns() -> None:
    alter = changed(CREATE, op="alter", ddl="alter table t add n bigint")
    event = read(text(alter))

    assert '"columns":[],"primary-key":[]' in text(alter)
    assert (None, None) == (event.types, event.key)


def test_a_rename_whose_new_name_cannot_be_read_is_an_alter() -> None:
    event = changed(CREATE, op="rename", ddl="/* ? */ rename the table")

    assert ["ddl-op"] == lost(event)
    assert "alter" == read(text(event)).op


def test_drop_table_and_databases() -> None:
    drop = changed(CREATE, op="drop", ddl="drop table t")
    database = changed(CREATE, op="query", table=None, ddl="CREATE DATABASE shop")

    assert (
        '{"type":"table-drop","database":"shop","table":"t","ts":1449786310123,'
        '"sql":"drop table t"}'
    ) == text(drop)
    assert (
        '{"type":"database-create","database":"shop","ts":1449786310123,'
        '"sql":"CREATE DATABASE shop"}'
    ) == text(database)


@pytest.mark.parametrize(
    ("op", "table", "ddl"),
    [
        ("truncate", "t", "truncate table t"),
        ("create_index", "t", "create index i on t (a)"),
        ("drop_index", "t", "drop index i on t"),
        ("query", None, "grant all on *.* to x"),
        ("create", "v", "create or replace algorithm=merge view v as select 1"),
        ("create", None, "create user x"),
    ],
)
def test_statements_that_maxwell_has_no_message_for(op: str, table: str | None, ddl: str) -> None:
    encoded = write(changed(CREATE, op=op, table=table, ddl=ddl))

    assert ([], ["ddl"]) == (encoded.records, encoded.lost)


def test_ddl_carries_milliseconds_and_not_the_producers_time() -> None:
    event = changed(CREATE, event_time=AT + 1, emit_time=AT, position={"gtid": "g", "xid": "1"})

    assert ["event-time-micros", "position", "emit-time"] == lost(event)
    assert text(event).endswith(',"gtid":"g"}')


def test_truncated_rows_are_left_out() -> None:
    assert ["truncate"] == lost(changed(op="truncate", after=None))


def test_ddl_can_be_left_out() -> None:
    assert ["ddl"] == lost(CREATE, output_ddl=False)


# Other kinds


@pytest.mark.parametrize("kind", ["watermark", "heartbeat", "statement", "tombstone"])
def test_kinds_that_maxwell_has_no_message_for(kind: str) -> None:
    assert [kind] == lost(Event(kind, format="debezium"))


def test_a_dead_letter_comes_back_and_loses_nothing() -> None:
    message = HEAD + '"type":"insert","reason":"RecordTooLargeException","data":{"id":1}}'

    assert message == text(read(message))
    assert [] == lost(read(message))


def test_an_attribute_that_is_no_json_is_text() -> None:
    event = changed(types=None, format="maxwell", dialect="maxwell", extra={"region": '"eu",'})

    assert '"eu\\","' in text(event)
    assert ["misfit"] == lost(event)


# OMS


def test_oms_writes_every_member() -> None:
    event = changed(
        op="update",
        before={"Id": "1", "name": "x"},
        position={"xid": "1002_336195"},
        event_time=AT,
    )

    assert (
        HEAD + '"type":"update","ts":1449786310,"xid":"1002_336195","commit":true,'
        '"position":"1449786310","primary_key":["1"],"primary_key_columns":["Id"],'
        '"data":{"Id":1,"name":"Lem"},"old":{"Id":1,"name":"x"},"sql":null,"def":null}'
    ) == text(event, "maxwell:oms")
    assert ["types"] == lost(event, "maxwell:oms")
    assert write(event, "maxwell:oms").records[0].key is None


def test_oms_key_is_the_text_of_what_the_row_shows() -> None:
    columns: dict[str, tuple[str, str | None]] = {
        "at": ("datetime", "2016-10-21 05:33:37"),
        "bits": ("bit(8)", "5"),
        "n": ("decimal(20,9)", "0.000000150"),
        "y": ("year", "0000"),
        "tags": ("set('a','b')", "a,b"),
        "none": ("int", None),
    }
    message = text(changed(typed(columns), key=tuple(columns)), "maxwell:oms")

    assert (
        '"primary_key":["2016-10-21 05:33:37.000000","BQ==","1.50E-7","0","a,b",null],' in message
    )
    assert (
        '"data":{"at":"2016-10-21 05:33:37.000000","bits":"BQ==","n":1.50E-7,"y":0,'
        '"tags":["a","b"],"none":null}'
    ) in message


def test_oms_has_numbers_for_true_and_false_unless_it_sent_them_itself() -> None:
    event = changed(
        key=None, types=None, after={"ok": "1", "bad": "x"}, extra={"booleans": '["ok","bad"]'}
    )
    own = changed(event, format="maxwell", dialect="oms")

    assert '"data":{"ok":1,"bad":"x"}' in text(event, "maxwell:oms")
    assert ["bare-values", "misfit"] == lost(event, "maxwell:oms")
    assert '"data":{"ok":true,"bad":"x"}' in text(own, "maxwell:oms")
    assert '"data":{"ok":true,"bad":"x"}' in text(event)


def test_oms_row_of_an_unknown_time_and_an_unknown_key() -> None:
    event = changed(op="snapshot", event_time=None, key=None)
    written = text(event, "maxwell:oms")

    assert '"type":"insert","ts":1600000000,"xid":null,"commit":true,"position":null,' in written
    assert '"primary_key":null,"primary_key_columns":null' in written
    assert ["snapshot", "types"] == lost(event, "maxwell:oms")
    assert read(written).event_time is None
    assert "oms" == read(written).dialect


def test_oms_heartbeat_and_ddl() -> None:
    heartbeat = Event("heartbeat", event_time=AT + 5_000)

    assert (
        '{"database":null,"table":null,"type":"heartbeat","ts":1449786310005,"xid":null,'
        '"commit":true,"position":"1449786310","data":null,"old":null,"sql":null,"def":null,'
        '"primary_key":null,"primary_key_columns":null}'
    ) == text(heartbeat, "maxwell:oms")
    assert [] == lost(heartbeat, "maxwell:oms")
    assert text(changed(CREATE, ddl="create"), "maxwell:oms").endswith(
        '"primary_key":null,"primary_key_columns":null,"data":null,"old":null,"sql":"create",'
        '"def":{"database":"shop","table":"t","primary-key":[],"columns":[]}}'
    )
    assert ["ddl"] == lost(
        changed(CREATE, op="query", table=None, ddl="create database x"), "maxwell:oms"
    )


@pytest.mark.parametrize(
    ("mysql", "value", "expected"),
    [
        ("bigint unsigned", "18446744073709551615", "18446744073709551615"),
        ("decimal(20,9)", "0.000000150", "1.50E-7"),
        ("bit(16)", "257", '"AQE="'),
        ("bit(16)", "0", '"AA=="'),
        ("year", "2016", "2016"),
        ("set('a','b')", "a,b", '["a","b"]'),
        ("enum('a')", "a", '"a"'),
        ("datetime(3)", "2016-10-21 05:33:37.523", '"2016-10-21 05:33:37.523000"'),
        ("timestamp(6)", "2016-10-21 05:33:37.523001", '"2016-10-21 05:33:37.523001"'),
        ("datetime(3)", "2016-10-21 05:33:37", '"2016-10-21 05:33:37.000000"'),
        ("datetime", "0000-00-00 00:00:00", '"0000-00-00 00:00:00"'),
        ("datetime(3)", "0000-00-00 00:00:00.000", '"0000-00-00 00:00:00.000"'),
        ("datetime", "2020-02-30 00:00:00", '"2020-02-30 00:00:00"'),
        ("timestamp", "0000-00-00 00:00:00", '"0000-00-00 00:00:00"'),
        ("datetime", "2016-10-21 05:33:37.1234567", '"2016-10-21 05:33:37.123456700"'),
        ("datetime", "2016-10-21 05:33:37.123456789", '"2016-10-21 05:33:37.123456789"'),
        ("timestamp", "2016-10-21 05:33:37.123456000", '"2016-10-21 05:33:37.123456"'),
        ("datetime", "2016-10-21 05:33:37 Asia/Tokyo", '"2016-10-21 05:33:37 Asia/Tokyo"'),
        ("double", "1e10", "1e10"),
        ("date", "0000-00-00", '"0000-00-00"'),
        ("time", "-01:00:00", '"-01:00:00"'),
        ("json", "null", '"null"'),
        ("blob", "Bf8=", '"Bf8="'),
    ],
)
def test_oms_value_of_each_type(mysql: str, value: str, expected: str) -> None:
    assert expected == value_of(mysql, value, "maxwell:oms")


# Between dialects and formats


def test_the_other_dialects_members_are_counted_as_lost() -> None:
    native = read(HEAD + '"query":"q","type":"insert","ts":1,"data":{"id":1}}')
    oms = read(text(INSERT, "maxwell:oms"))

    assert ["extra"] == lost(native, "maxwell:oms")
    assert '"query"' not in text(native, "maxwell:oms")
    assert ["extra"] == lost(oms)
    assert '"commit"' not in text(oms)


def test_from_canal() -> None:
    message = {
        "data": [
            {"id": "1", "size": "2", "tags": "3", "bin": "\x05ÿ", "at": "2020-01-01 00:00:00"}
        ],
        "database": "shop", "es": 1449786310000, "gtid": "", "id": 4, "isDdl": False,
        "mysqlType": {"id": "int unsigned", "size": "enum('S','M')", "tags": "set('a','b')",
                      "bin": "blob", "at": "timestamp"},
        "old": None, "pkNames": ["id"], "sql": "",
        "sqlType": {"id": 4, "size": 4, "tags": -7, "bin": 2004, "at": 93},
        "table": "t", "ts": 1449786310500, "type": "INSERT",
    }  # fmt: skip
    event = read(json.dumps(message), "canal-json:canal")

    assert (
        HEAD + '"type":"insert","ts":1449786310,"push_ts":1449786310.5,'
        '"primary_key_columns":["id"],'
        '"data":{"id":1,"size":"M","tags":["a","b"],"bin":"Bf8=","at":"2020-01-01 00:00:00"}}'
    ) == text(event)
    assert ["types", "extra"] == lost(event)


def test_a_set_whose_labels_are_not_known_is_its_number() -> None:
    event = typed({"s": ("set", "3"), "e": ("enum", "2")}, format="canal-json", dialect="ticdc")

    assert '"data":{"s":"3","e":"2"}' in text(event)
    assert ["types", "enum-labels", "enum-labels"] == lost(event)


def test_losses_are_told_beforehand() -> None:
    def codes(to: str, **options: Any) -> set[str]:
        return {loss.code for loss in losses("canal-json", to, **options)}

    assert {"types", "statement", "event-time-millis", "json-null"} <= codes("maxwell")
    assert {"emit-time", "position"} <= codes("maxwell:oms")
    assert "null-columns" in codes("maxwell", output_nulls=False)
    assert "null-columns" not in codes("maxwell")


# All types at random

DIGITS = st.text("0123456789", min_size=1, max_size=6)
FRACTION = DIGITS.map(lambda d: f".{d:0<6}")
DATE = st.dates().map(str)
CLOCK = st.times().map(lambda t: f"{t:%H:%M:%S}")
STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LABELS = ("a", "b c", 'd"', "é")
TYPES: dict[str, st.SearchStrategy[str]] = {
    "TINYINT": st.integers(-128, 127).map(str),
    "BIGINT UNSIGNED": st.integers(0, 2**64 - 1).map(str),
    "DECIMAL(40,20)": st.decimals(-(10**19), 10**19, places=12).map(lambda d: f"{d:f}"),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False).map(str).map(java_notation),
    "BIT(64)": st.integers(0, 2**64 - 1).map(str),
    "YEAR": st.integers(1901, 2155).map(str),
    "DATE": DATE | st.just("0000-00-00"),
    "TIME(6)": st.tuples(st.sampled_from(["", "-"]), CLOCK, FRACTION).map("".join),
    "DATETIME(6)": st.tuples(DATE, CLOCK).map(" ".join).map(lambda t: f"{t}.120000"),
    "TIMESTAMP": st.tuples(DATE, CLOCK).map(" ".join).map(lambda t: f"{t}.000000"),
    "ENUM('a','b c','d\"','é')": st.sampled_from(LABELS),
    "SET('a','b c','d\"','é')": st.lists(st.sampled_from(LABELS), unique=True).map(",".join),
    "JSON": st.recursive(
        st.booleans() | st.integers() | STRINGS, lambda x: st.lists(x) | st.dictionaries(STRINGS, x)
    ).map(json.dumps),
    "BLOB": st.binary(max_size=9).map(lambda b: base64.b64encode(b).decode()),
    "TEXT": STRINGS,
}
NAMES = {f"c{i}": mysql for i, mysql in enumerate(TYPES)}
ALL_TYPES: Types = {name: ColumnType(mysql.lower()) for name, mysql in NAMES.items()}
ROWS = st.fixed_dictionaries({n: st.none() | TYPES[mysql] for n, mysql in NAMES.items()})


@pytest.mark.parametrize("dialect", ["maxwell", "oms"])
@settings(max_examples=examples(150), deadline=None)
@given(before=ROWS, after=ROWS, op=st.sampled_from(["insert", "update", "delete", "snapshot"]))
def test_rows_come_back(dialect: str, before: Image, after: Image, op: str) -> None:
    event = Event(
        "row",
        op,
        "shop",
        "t",
        ("c0",),
        before if op in ("update", "delete") else None,
        None if op == "delete" else after,
        ALL_TYPES,
    )
    encoded = Encoder(f"maxwell:{dialect}")(event)
    [record] = encoded.records
    columns = ", ".join(f"{name} {mysql}" for name, mysql in NAMES.items())
    again = read(record.value or b"", f"maxwell:{dialect}", record.key, columns=columns)

    assert b"\n" not in (record.value or b"")
    assert "misfit" not in encoded.lost
    assert event.after == again.after
    assert ("c0",) == again.key
    assert "float-digits" not in encoded.lost
    if "before" not in encoded.lost:
        assert event.before == again.before


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_their_value_in_javas_notation(number: float) -> None:
    written = java_notation(repr(number))

    assert Decimal(repr(number)) == Decimal(written)
    assert re.fullmatch(r"-?\d+\.\d+(E-?\d+)?", written)
    assert ("E" in written) == (number != 0 and not 1e-3 <= abs(number) < 1e7)
