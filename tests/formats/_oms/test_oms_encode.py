"""OMS's own formats, written: the document's samples byte for byte, every type, every loss."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import content, decoded, encoded
from hypothesis import given
from hypothesis import strategies as st
from paths import CASES

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.loss_samples import losses
from headgate.core.event import ColumnType, Event, Image, Types
from headgate.core.losses import VALUES
from headgate.formats.encoding import to_json

DEFAULT, EXTENDED = "oms-default:default", "oms-default:extend-column-type"
DATAWORKS, SHAREPLEX, CANAL = "dataworks", "shareplex", "canal-json:oms"
TYPED = (EXTENDED, DATAWORKS, CANAL)
ALL = (DEFAULT, SHAREPLEX, *TYPED)

SAMPLES = [
    *(f"oms-default/{n}" for n in ("insert", "update", "delete", "ddl", "heartbeat")),
    *(f"oms-default/extend-{n}" for n in ("insert", "update", "delete", "ddl", "heartbeat")),
    *(f"dataworks/{n}" for n in ("insert", "update", "delete", "ddl", "heartbeat")),
    "dataworks/heartbeat-short",
    *(f"shareplex/{n}" for n in ("insert", "update", "delete", "ddl", "heartbeat")),
    *(f"canal-json/oms-doc-{n}" for n in ("insert", "update", "delete", "ddl", "heartbeat")),
]


def compact(message: bytes | None) -> bytes:
    """JSON without white space between its parts; digits, escapes and order stay."""
    assert message is not None
    return re.sub(rb'("(?:[^"\\]|\\.)*")|\s+', lambda m: m[1] or b"", message)


@pytest.mark.parametrize("name", SAMPLES)
def test_documents_sample_comes_back_byte_for_byte(name: str) -> None:
    folder: Path = CASES / name
    value = content(folder, "value")
    records = encoded(folder, decoded(folder, None, value))

    assert [compact(value)] == [compact(r.value) for r in records]


# Events of other formats

MYSQL = {"id": "bigint(20)", "n": "varchar(9)", "ts": "timestamp(3)"}
TYPES: Types = {name: ColumnType(mysql) for name, mysql in MYSQL.items()}
OLD: Image = {"id": "7", "n": "a", "ts": "2020-11-24 16:01:02.5"}
NEW: Image = {"id": "7", "n": None, "ts": "2020-11-24 16:01:02.5"}


def row(op: str, **members: Any) -> Event:
    """A change as Maxwell might tell it, with types."""
    told: dict[str, Any] = {"format": "maxwell", "key": ("id",), "types": TYPES}
    told |= {"event_time": 1609344671_000000, "commit_ts": 42}
    images = {"insert": (None, NEW), "update": (OLD, NEW), "delete": (OLD, None)}
    before, after = images[op]
    return Event("row", op, "shop", "t", **({"before": before, "after": after} | told | members))


DDL = Event(
    "ddl", "alter", "shop", "t", ddl='alter table t add c int comment "x"', format="maxwell"
)
HEARTBEAT = Event("heartbeat", event_time=1744170715_480000, format="maxwell")


def value(spec: str, event: Event, **options: Any) -> str:
    records = Encoder(spec, **options)(event).records
    assert 1 == len(records)
    assert records[0].value is not None
    return records[0].value.decode()


META = (
    '{"allMetaData":{"checkpoint":null,"record_primary_key":"id","source_identity":null,'
    '"record_primary_value":"7","dbType":"MYSQL","storeDataSequence":42,"table_name":"t",'
    '"db":"shop","timestamp":"1609344671"},'
)
OLD_ROW = '"id":7,"n":"a","ts":"1606233662.5"'
NEW_ROW = '"id":7,"n":null,"ts":"1606233662.5"'
LIGHT = (
    ',"__light_type":{"id":{"schemaType":"INT64"},"n":{"schemaType":"VARCHAR"},'
    '"ts":{"schemaType":"TIMESTAMP"}}'
)


@pytest.mark.parametrize(("spec", "light"), [(DEFAULT, ""), (EXTENDED, LIGHT)])
def test_default_rows(spec: str, light: str) -> None:
    before, after = "{" + OLD_ROW + light + "}", "{" + NEW_ROW + light + "}"

    assert META + f'"prevStruct":null,"recordType":"INSERT","postStruct":{after}}}' == value(
        spec, row("insert")
    )
    assert META + f'"prevStruct":{before},"recordType":"UPDATE","postStruct":{after}}}' == value(
        spec, row("update")
    )
    assert META + f'"prevStruct":{before},"recordType":"DELETE","postStruct":null}}' == value(
        spec, row("delete")
    )


def test_default_ddl_and_heartbeat() -> None:
    meta = (
        '"allMetaData":{"checkpoint":null,"dbType":"MYSQL","storeDataSequence":null,"db":%s,'
        '"timestamp":%s,"uniqueId":null,%s"ddlType":%s,"record_primary_key":null,'
        '"source_identity":null,"record_primary_value":null,"table_name":%s},"recordType":"%s"}'
    )
    told = meta % ('"shop"', "null", "", '"ALTER_TABLE"', '"t"', "DDL")
    statement = r'"ddl":"alter table t add c int comment \"x\""'
    light = ',"__light_type":{"ddl":{"schemaType":"VAR_STRING"}}'
    beat = meta % (
        "null",
        '"1744170715"',
        '"transId":null,"clusterId":null,',
        "null",
        "null",
        "HEARTBEAT",
    )

    assert f'{{"prevStruct":null,"postStruct":{{{statement}}},{told}' == value(DEFAULT, DDL)
    assert f'{{"prevStruct":null,"postStruct":{{{statement}{light}}},{told}' == value(EXTENDED, DDL)
    for spec in (DEFAULT, EXTENDED):
        assert f'{{"prevStruct":null,"postStruct":null,{beat}' == value(spec, HEARTBEAT)


SOURCE = '"source":{"dbType":"mysql","dbVersion":null,"dbName":%s,"schema":null,"table":%s}'


def test_dataworks_rows() -> None:
    head = (
        '{"version":"2.0","schema":{'
        + SOURCE % ('"shop"', '"t"')
        + ',"column":[{"name":"id","type":"INT64"},{"name":"n","type":"VARCHAR"},'
        '{"name":"ts","type":"TIMESTAMP"}],"pk":["id"]},"payload":{'
    )
    tail = (
        ',"timestamp":{"eventTime":1609344671000,"systemTime":null,"checkpointTime":null},'
        '"ddl":null,"scn":"42"},"extend":{}}'
    )
    before, after = f'{{"data":{{{OLD_ROW}}}}}', f'{{"data":{{{NEW_ROW}}}}}'

    assert head + f'"before":null,"after":{after},"op":"INSERT"' + tail == value(
        DATAWORKS, row("insert")
    )
    assert head + f'"before":{before},"after":{after},"op":"UPDATE"' + tail == value(
        DATAWORKS, row("update")
    )
    assert head + f'"before":{before},"after":null,"op":"DELETE"' + tail == value(
        DATAWORKS, row("delete")
    )


def test_dataworks_ddl_heartbeat_and_markers() -> None:
    message = (
        '{"version":"2.0","schema":{' + SOURCE + ',"column":null,"pk":null},"payload":{'
        '"before":null,"after":null,"op":"%s","timestamp":{"eventTime":%s,"systemTime":null,'
        '"checkpointTime":null},"ddl":%s,"scn":"null"},"extend":{}}'
    )
    statement = r'{"text":"alter table t add c int comment \"x\""}'

    assert message % ('"shop"', '"t"', "ALTER", "null", statement) == value(DATAWORKS, DDL)
    assert message % ("null", "null", "HEARTBEAT", "1744170715480", "null") == value(
        DATAWORKS, HEARTBEAT
    )
    for op, word in [
        ("begin", "TRANSACTION_BEGIN"),
        ("commit", "TRANSACTION_END"),
        ("rollback", "XAROLLBACK"),
    ]:
        assert message % ("null", "null", word, "null", "null") == value(
            DATAWORKS, Event("marker", op, format="maxwell")
        )


def test_shareplex_rows() -> None:
    meta = (
        '"meta":{"posttime":null,"op":"%s","size":0,"time":"2020-12-30T16:11:11","idx":"0/0",'
        '"seq":0,"table":"shop.t","rowid":"shop.t-7","trans":null,"scn":"42"}'
    )

    assert f'{{"data":{{{NEW_ROW}}},{meta % "ins"}}}' == value(SHAREPLEX, row("insert"))
    assert f'{{"data":{{"n":null}},{meta % "upd"},"key":{{{OLD_ROW}}}}}' == value(
        SHAREPLEX, row("update")
    )
    assert f'{{"data":{{{OLD_ROW}}},{meta % "del"}}}' == value(SHAREPLEX, row("delete"))


def test_shareplex_ddl_and_heartbeat() -> None:
    ddl = (
        '{"data":{},"meta":{"posttime":null,"op":"ddl","size":0,"time":null,"idx":"0/0","seq":0,'
        '"table":"shop.t","rowid":"shop.t-","trans":null,"scn":"null"},'
        r'"sql":{"ddl":"alter table t add c int comment \"x\""}}'
    )
    beat = (
        '{"meta":{"time":"2025-04-09T03:51:55","op":"heartbeat","rowid":null,"trans":null,'
        '"seq":0,"size":0,"table":null,"idx":"0/0","posttime":null,"scn":"null"},"data":{}}'
    )

    assert ddl == value(SHAREPLEX, DDL)
    assert beat == value(SHAREPLEX, HEARTBEAT)


def test_shareplex_writes_times_of_the_zone_that_is_named() -> None:
    message = value(SHAREPLEX, HEARTBEAT, timezone="Asia/Shanghai")
    again = decoder(SHAREPLEX, timezone="Asia/Shanghai")(None, message.encode(), None)

    assert '"time":"2025-04-09T11:51:55"' in message
    assert 1744170715_000000 == again[0].event_time


def test_shareplex_counts_a_local_time_that_comes_twice() -> None:
    first, second = 1698539400_000000, 1698543000_000000  # 00:30 and 01:30 UTC
    for at in (first, second):
        event = row("insert", event_time=at, emit_time=at)
        message = value(SHAREPLEX, event, timezone="Europe/Berlin")
        lost = Encoder(SHAREPLEX, timezone="Europe/Berlin")(event).lost

        assert '"time":"2023-10-29T02:30:00"' in message
        assert 2 == lost.count("repeated-hour")
        assert "repeated-hour" not in Encoder(SHAREPLEX)(event).lost


@pytest.mark.parametrize("micros", [0, 5_000_000, 999_000, -1_000, -86_400_000_000, 10**14 - 1_000])
def test_dataworks_times_near_the_epoch_come_back(micros: int) -> None:
    event = row("insert", event_time=micros, emit_time=micros)
    outcome = Encoder(DATAWORKS)(event)
    again = decoder(DATAWORKS)(None, outcome.records[0].value, None)[0]

    assert (micros, micros) == (again.event_time, again.emit_time)
    assert not {"event-time-micros", "emit-time-micros"} & set(outcome.lost)


@pytest.mark.parametrize(
    ("micros", "kept"),
    [
        (1, False),
        (-1, False),
        (10**14 - 1, False),
        (10**14 + 1, True),
        (-(10**14) - 1, True),
    ],
)
def test_dataworks_counts_microseconds_that_would_be_read_as_milliseconds(
    micros: int, kept: bool
) -> None:
    beat = Event("heartbeat", event_time=micros, format="dataworks")
    for event in (row("insert", event_time=micros, emit_time=micros), beat):
        outcome = Encoder(DATAWORKS)(event)
        again = decoder(DATAWORKS)(None, outcome.records[0].value, None)[0]

        assert micros // 1_000 == (again.event_time or 0) // 1_000
        assert kept == (micros == again.event_time)
        assert kept == ("event-time-micros" not in outcome.lost)
        assert kept or event is beat or "emit-time-micros" in outcome.lost


def test_canal_rows_ddl_and_heartbeat() -> None:
    head = (
        '{"database":"shop","sqlType":{"id":-5,"n":12,"ts":93},"data":[{%s}],"pkNames":["id"],'
        '"old":%s,"mysqlType":{"id":"int64","n":"varchar","ts":"timestamp"},"type":"%s",'
        '"table":"t","es":1609344671000,"isDdl":false,"ts":0,"sql":""}'
    )

    assert head % (NEW_ROW, "null", "INSERT") == value(CANAL, row("insert"))
    assert head % (NEW_ROW, '[{"n":"a"}]', "UPDATE") == value(CANAL, row("update"))
    assert head % (OLD_ROW, "null", "DELETE") == value(CANAL, row("delete"))
    assert (
        '{"database":"shop","sqlType":null,"data":null,"pkNames":null,"old":null,'
        '"mysqlType":null,"type":"ALTER","table":"t","es":0,"isDdl":true,"ts":0,'
        r'"sql":"alter table t add c int comment \"x\""}'
    ) == value(CANAL, DDL)
    assert (
        '{"table":null,"database":null,"type":"MHEARTBEAT","ts":0,"es":1744170715480,'
        '"isDdl":false,"sql":"","data":null,"old":null,"pkNames":null,"mysqlType":null,'
        '"sqlType":null}'
    ) == value(CANAL, HEARTBEAT)


@pytest.mark.parametrize(
    ("op", "word"),
    [
        ("create", "CREATE_TABLE"),
        ("alter", "ALTER_TABLE"),
        ("drop", "DROP_TABLE"),
        ("rename", "RENAME_TABLE"),
        ("truncate", "TRUNCATE_TABLE"),
        ("create_index", "CREATE_INDEX"),
        ("drop_index", "DROP_INDEX"),
        ("query", None),
    ],
)
def test_ddl_words(op: str, word: str | None) -> None:
    event = msgspec.structs.replace(DDL, op=op)
    dataworks = {"drop": "ERASE", "create_index": "CINDEX", "drop_index": "DINDEX"}

    assert word == json.loads(value(DEFAULT, event))["allMetaData"]["ddlType"]
    for spec, path in [(DATAWORKS, ("payload", "op")), (CANAL, ("type",))]:
        found: Any = json.loads(value(spec, event))
        for name in path:
            found = found[name]
        assert dataworks.get(op, op.upper()) == found


def test_truncated_table_is_written_as_ddl() -> None:
    event = Event("row", "truncate", "shop", "t", format="debezium")
    for spec in ALL:
        again = decoder(spec)(None, value(spec, event).encode(), None)
        told = [(e.kind, e.op, e.ddl) for e in again]

        assert [("ddl", "truncate", "TRUNCATE TABLE `shop`.`t`")] == told
        assert "truncate" in Encoder(spec)(event).lost


def test_key_of_several_columns_is_joined() -> None:
    mysql = {"a": "bit(8)", "b": "timestamp", "c": "int", "d": "decimal(9,8)", "e": "year"}
    types = {name: ColumnType(told) for name, told in mysql.items()}
    after = {"a": "5", "b": "1970-01-01 00:00:09", "c": "-1", "d": "0.00000001", "e": "0000"}
    event = row("insert", types=types, after=after, key=tuple(after))
    shown = "BQ==\x019\x01-1\x011E-8\x010"
    message = value(DEFAULT, event)
    meta = json.loads(message)["allMetaData"]

    assert '{"a":"BQ==","b":"9","c":-1,"d":1E-8,"e":0}' in message
    assert ("a\x01b\x01c\x01d\x01e", shown) == (
        meta["record_primary_key"],
        meta["record_primary_value"],
    )
    assert f"shop.t-{shown}" == json.loads(value(SHAREPLEX, event))["meta"]["rowid"]


def test_rowid_of_an_update_that_leaves_the_key_alone() -> None:
    types = {"b": ColumnType("timestamp"), "c": ColumnType("int")}
    event = row(
        "update",
        types=types,
        key=("b",),
        before={"b": "1970-01-01 00:00:09", "c": "1"},
        after={"b": "1970-01-01 00:00:09", "c": "2"},
    )

    assert "shop.t-9" == json.loads(value(SHAREPLEX, event))["meta"]["rowid"]


@pytest.mark.parametrize(("key", "told"), [(None, None), ((), ""), (("gone",), "gone")])
def test_key_that_is_not_known_or_not_there(key: Any, told: str | None) -> None:
    event = row("insert", key=key)
    meta = json.loads(value(DEFAULT, event))["allMetaData"]

    assert (told, None) == (meta["record_primary_key"], meta["record_primary_value"])
    assert "shop.t-" == json.loads(value(SHAREPLEX, event))["meta"]["rowid"]
    for spec in (DEFAULT, *TYPED):
        assert key == decoder(spec)(None, value(spec, event).encode(), None)[0].key


def test_what_oms_alone_knows_is_written_back() -> None:
    event = row(
        "insert",
        format="oms-default",
        dialect="default",
        extra={"tenant": "sys", "dbType": "OB_MYSQL", "record_primary_value": "9", "new": "x"},
        position={"checkpoint": "1", "uniqueId": "u", "transId": "2", "clusterId": "3"},
    )
    expected = (
        '"allMetaData":{"checkpoint":"1","record_primary_key":"id","source_identity":null,'
        '"record_primary_value":"9","dbType":"OB_MYSQL","storeDataSequence":42,"table_name":"t",'
        '"db":"sys.shop","timestamp":"1609344671","uniqueId":"u","transId":"2","clusterId":"3",'
        '"new":"x"}'
    )

    assert expected in value(DEFAULT, event)
    assert '"dbType":"MYSQL"' in value(DEFAULT, msgspec.structs.replace(event, format="maxwell"))


# Values

EVERY_TYPE = [
    ("tinyint", "-128", "-128"),
    ("tinyint(1)", "1", "1"),
    ("boolean", "0", "0"),
    ("smallint unsigned", "65535", "65535"),
    ("mediumint", "-8388608", "-8388608"),
    ("int", "-2147483648", "-2147483648"),
    ("int unsigned", "4294967295", "4294967295"),
    ("bigint", "-9223372036854775808", "-9223372036854775808"),
    ("bigint unsigned", "18446744073709551615", "18446744073709551615"),
    ("year", "2155", "2155"),
    ("year", "0000", "0"),
    ("decimal(10,2)", "5.00", "5.00"),
    ("decimal(65,30)", "-1.000000000000000000000000000000", "-1.000000000000000000000000000000"),
    ("decimal(10,6)", "0.000001", "0.000001"),
    ("float", "1.5", "1.5"),
    ("double", "1.7976931348623157e+308", "1.7976931348623157e+308"),
    ("double", "-0.0", "-0.0"),
    ("bit(1)", "0", '"AA=="'),
    ("bit(1)", "1", '"AQ=="'),
    ("bit(64)", "18446744073709551615", '"//////////8="'),
    ("date", "0000-00-00", '"0000-00-00"'),
    ("date", "9999-12-31", '"9999-12-31"'),
    ("time(6)", "-838:59:59.000001", '"-838:59:59.000001"'),
    ("datetime", "0000-00-00 00:00:00", '"0000-00-00 00:00:00"'),
    ("datetime(3)", "1000-01-01 00:00:00.500", '"1000-01-01 00:00:00.500"'),
    ("timestamp", "1970-01-01 00:00:01", '"1"'),
    ("timestamp(6)", "2038-01-19 03:14:07.999999", '"2147483647.999999"'),
    ("timestamp(1)", "1970-01-01 00:00:01.0", '"1.0"'),
    ("timestamp", "0000-00-00 00:00:00", '"0000-00-00 00:00:00"'),
    ("enum('a','b')", "b", '"b"'),
    ("set('a','b')", "a,b", '"a,b"'),
    ("set('a','b')", "", '""'),
    ("json", '{"a": [1, null]}', r'"{\"a\": [1, null]}"'),
    ("char(3)", "7", '"7"'),
    ("text", '"\\/\b\f\n\r\t\x00\x1f\x7f', r'"\"\\/\b\f\n\r\t\u0000\u001f' + '\x7f"'),
    ("longtext", "é漢😀\u2028", '"é漢😀\u2028"'),
    ("varbinary(9)", "Bf8=", '"Bf8="'),
    ("binary(2)", "AAA=", '"AAA="'),
    ("longblob", "", '""'),
    ("int", None, "null"),
    ("timestamp", None, "null"),
    ("point", "AAAA", '"AAAA"'),
    ("something new", "1", '"1"'),
]


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize(("mysql", "text", "expected"), EVERY_TYPE)
def test_every_type(spec: str, mysql: str, text: str | None, expected: str) -> None:
    event = row("insert", types={"c": ColumnType(mysql)}, after={"c": text}, key=None)
    outcome = Encoder(spec)(event)
    message = outcome.records[0].value
    assert message is not None
    again = decoder(spec)(None, message, None)[0]

    assert f'{{"c":{expected}' in message.decode()
    assert "misfit" not in outcome.lost
    if spec in TYPED:
        assert {"c": text} == again.after


@pytest.mark.parametrize(
    ("text", "small"),
    [
        ("0.0000001", "1E-7"),
        ("-0.000000150", "-1.50E-7"),
        ("0.0000000000", "0E-10"),
        ("0.00000012345", "1.2345E-7"),
        ("0.00000100", "0.00000100"),
    ],
)
def test_smallest_decimals_are_written_as_java_does_save_in_dataworks(
    text: str, small: str
) -> None:
    event = row("insert", types={"c": ColumnType("decimal(30,15)")}, after={"c": text}, key=None)
    for spec in ALL:
        expected = text if spec == DATAWORKS else small

        assert f'{{"c":{expected}' in value(spec, event)


HOSTILE = [
    '1,"x":2',
    "1e",
    "--1",
    "0x1",
    "²",
    "1 ",
    "NaN",
    "١",
    "007",
    "",
    "-",
    '"',
    "1" * 5000 + "x",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("mysql", ["int", "bigint unsigned", "decimal(9,2)", "double", "bit(8)"])
@pytest.mark.parametrize("spec", ALL)
def test_hostile_numbers_are_written_as_text_and_counted(spec: str, mysql: str, text: str) -> None:
    event = row("insert", types={"c": ColumnType(mysql)}, after={"c": text}, key=None)
    outcome = Encoder(spec)(event)
    message = outcome.records[0].value

    if mysql == "bit(8)" and text == "007":  # BIT has no leading zeros to lose
        return
    assert "misfit" in outcome.lost
    assert message is not None
    assert f'{{"c":{to_json(text).decode()}' in message.decode()


@pytest.mark.parametrize(
    "text",
    ["2020-11-24T16:01:02", "2020-11-24 16:01+02", "2020-11-24", "x", "2020-11-24 16:01:02.",
     "2020-11-24 16:01:02.1234567890", "2020-02-30 00:00:00 UTC", "1606233662"],
)  # fmt: skip
def test_what_is_no_timestamp_is_written_as_it_is(text: str) -> None:
    event = row("insert", types={"c": ColumnType("timestamp")}, after={"c": text}, key=None)
    for spec in ALL:
        assert "misfit" in Encoder(spec)(event).lost
        assert f'{{"c":"{text}"' in value(spec, event)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("0000-00-00 00:00:00", False),
        ("0000-00-00 00:00:00.000", False),
        ("0000-00-00 00:00:00.5", True),
        ("1969-12-31 23:59:59", True),
        ("2020-02-30 00:00:00", True),
        ("2020-11-24 24:00:00.5", True),
    ],
)
def test_a_timestamp_that_is_no_time_is_written_as_zero(text: str, lost: bool) -> None:
    event = row("insert", types={"c": ColumnType("timestamp(3)")}, after={"c": text}, key=None)
    for spec in ALL:
        assert '{"c":"0000-00-00 00:00:00"' in value(spec, event)
        assert lost == ("zero-dates" in Encoder(spec)(event).lost)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1970-01-01 00:00:00", "0"), ("1970-01-01 00:00:00.5", "0.5"), ("1970-01-01 00:00:01", "1")],
)
def test_the_first_timestamps_come_back(text: str, expected: str) -> None:
    event = row("insert", types={"c": ColumnType("timestamp(3)")}, after={"c": text}, key=None)
    for spec in ALL:
        message = value(spec, event)

        assert f'{{"c":"{expected}"' in message
        if spec in TYPED:
            assert {"c": text} == decoder(spec)(None, message.encode(), None)[0].after


def test_columns_without_types_are_written_as_they_came() -> None:
    event = row("insert", types=None, after={"a": "1.50", "c": "1"}, extra={"numbers": '["a"]'})
    for spec in ALL:
        assert '{"a":1.50,"c":"1"}' in value(spec, event)


def test_true_and_false_are_numbers_unless_oms_sent_them_itself() -> None:
    extra = {"booleans": '["a","b"]'}
    after = {"a": "1", "b": "0", "c": "1"}
    for spec in (DEFAULT, EXTENDED, DATAWORKS, SHAREPLEX):
        own = row("insert", types=None, after=after, extra=extra, format=spec.partition(":")[0])
        for types in (None, {"c": ColumnType("varchar(9)")}):
            event = row("insert", types=types, after=after, extra=extra)

            assert '{"a":1,"b":0,"c":"1"' in value(spec, event)
            assert 2 == Encoder(spec)(event).lost.count("bare-values")
        assert '{"a":true,"b":false,"c":"1"' in value(spec, own)
        assert "bare-values" not in Encoder(spec)(own).lost


def test_columns_whose_type_nobody_tells_are_counted() -> None:
    after = {"a": "1", "n": "1.50", "s": "2"}
    extra = {"numbers": '["n"]'}
    for types, counted in [
        ({"a": ColumnType("int")}, True),
        ({"a": ColumnType("int"), "n": ColumnType(), "s": ColumnType("text")}, True),
        ({"a": ColumnType("int"), "n": ColumnType("new"), "s": ColumnType("text")}, False),
        (None, False),
    ]:
        event = row("insert", types=types, after=after, extra=extra, key=None)
        update = row("update", types=types, before=after, after={"a": "1"}, extra=extra, key=None)
        for spec in (DEFAULT, EXTENDED, DATAWORKS, SHAREPLEX):
            own = msgspec.structs.replace(event, format=spec.partition(":")[0])

            assert counted == ("types-guessed" in Encoder(spec)(event).lost)
            assert counted == ("types-guessed" in Encoder(spec)(update).lost)
            assert "types-guessed" not in Encoder(spec)(own).lost
            assert ('"n":1.50,"s":"2"' in value(spec, event)) is True


@pytest.mark.parametrize("kind", [None, "NUMBER"])
def test_bare_value_of_a_type_that_says_nothing_comes_back_bare(kind: str | None) -> None:
    light = {"a": {"schemaType": kind}}
    extended = {
        "recordType": "INSERT",
        "allMetaData": {"db": "d", "table_name": "t"},
        "postStruct": {"a": 5, "b": True, "c": "5", "__light_type": light},
    }
    dataworks = {
        "version": "2.0",
        "schema": {"source": {"dbName": "d"}, "column": [{"name": "a", "type": kind}]},
        "payload": {"op": "INSERT", "after": {"data": {"a": 5, "b": True, "c": "5"}}},
    }
    for spec, message in ((EXTENDED, extended), (DATAWORKS, dataworks)):
        (event,) = decoder(spec)(None, json.dumps(message).encode(), None)

        assert '{"a":5,"b":true,"c":"5"' in value(spec, event)
        assert '{"a":5,"b":1,"c":"5"' in value(SHAREPLEX, event)


def test_column_that_the_types_do_not_name_is_written_as_it_came() -> None:
    types = {"a": ColumnType("INT")}
    image = {"a": "1", "n": "1.50", "ok": "1", "s": "1"}
    for spec in (EXTENDED, DATAWORKS):
        name = spec.partition(":")[0]
        event = row(
            "insert",
            types=types,
            after=image,
            format=name,
            extra={"numbers": '["n"]', "booleans": '["ok"]'},
        )
        message = value(spec, event)
        again = decoder(spec)(None, message.encode(), None)[0]

        assert '{"a":1,"n":1.50,"ok":true,"s":"1"' in message
        assert (image, ('["n"]', '["ok"]')) == (
            again.after,
            (again.extra or {}).get("numbers") and ('["n"]', (again.extra or {})["booleans"]),
        )


def test_types_of_a_schema_are_named_as_oms_names_them() -> None:
    schema = "CREATE TABLE t (id BIGINT PRIMARY KEY, n DECIMAL(9,2))"
    event = Event("row", "insert", "d", "t", after={"id": "1", "n": "2.50"}, format="oms-default")
    message = json.loads(value(EXTENDED, event, schema=schema), parse_float=str)
    light = {"id": {"schemaType": "INT64"}, "n": {"schemaType": "DECIMAL"}}

    assert {"id": 1, "n": "2.50", "__light_type": light} == message["postStruct"]


def test_json_kept_by_the_decoder_is_checked_before_it_is_written() -> None:
    event = row("insert", format="dataworks", extra={"extend": '{}},"x":{"y":1'})
    ddl = msgspec.structs.replace(
        DDL, format="oms-default", dialect="extend-column-type", extra={"__light_type": '{"a"'}
    )

    assert '{}},"x":{"y":1' == json.loads(value(DATAWORKS, event))["extend"]
    assert '{"a"' == json.loads(value(EXTENDED, ddl))["postStruct"]["__light_type"]


@pytest.mark.parametrize(
    ("spec", "mysql", "text", "expected"),
    [
        ("debezium:oms", "int", "1", 1),
        ("debezium:oms", "bigint", "9223372036854775807", 9223372036854775807),
        ("debezium:oms", "bigint", "18446744073709551615", "18446744073709551615"),
        ("debezium:oms", "decimal(9,5)", "1241.41000", "1241.41000"),
        ("debezium:oms", "bit(8)", "97", "61"),
        ("debezium:oms", "binary(2)", "aQA=", "6900"),
        ("debezium:oms", "year", "2022", 2022),
        ("debezium:oms", "timestamp(3)", "2022-11-15 05:12:11.500", "2022-11-15T05:12:11.500Z"),
        ("debezium:oms", "date", "2022-11-15", 19311),
        ("debezium:oms", "date", "1969-12-31", -1),
        ("debezium:oms", "time", "10:01:00", 36060000000),
        ("debezium:oms", "time(6)", "-838:59:59.000001", -3020399000001),
        ("debezium:oms-flatten", "datetime", "2022-11-15 05:12:11", 1668489131000),
        ("debezium-smt:oms", "datetime(3)", "1969-12-31 23:59:59.999", -1),
        ("maxwell:oms", "set('a','b')", "a,b", ["a", "b"]),
        ("maxwell:oms", "datetime", "2016-10-21 05:33:37", "2016-10-21 05:33:37.000000"),
        ("maxwell:oms", "timestamp(3)", "2016-10-21 05:33:37.523", "2016-10-21 05:33:37.523000"),
        ("maxwell:oms", "datetime", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
        (
            "maxwell:oms",
            "datetime",
            "2016-10-21 05:33:37.12345678",
            "2016-10-21 05:33:37.123456780",
        ),
        ("maxwell:oms", "bit(8)", "5", "BQ=="),
    ],
)  # fmt: skip
def test_values_of_the_other_methods(spec: str, mysql: str, text: str, expected: Any) -> None:
    assert (expected, set()) == column(spec, mysql, text)


def column(spec: str, mysql: str, text: str) -> tuple[Any, set[str]]:
    """A column's value as it is written, and the codes of what is lost of it."""
    types = {"id": ColumnType("int"), "v": ColumnType(mysql)}
    outcome = Encoder(spec)(row("insert", types=types, after={"id": "1", "v": text}))
    message = json.loads(outcome.records[0].value or b"")
    message = message.get("payload", message)
    image = message.get("after") or message.get("data") or message
    return image["v"], set(outcome.lost) & VALUES.keys()


@pytest.mark.parametrize(
    ("mysql", "text", "code", "expected"),
    [
        ("date", "0000-00-00", "zero-dates", None),
        ("datetime", "2020-02-30 00:00:00", "zero-dates", None),
        ("datetime(6)", "1970-01-01 00:00:01.000001", "datetime-micros", 1000),
        ("date", "soon", "misfit", "soon"),
        ("time", "1:2", "misfit", "1:2"),
        ("time", "1" * 5000 + ":00:00", "misfit", "1" * 5000 + ":00:00"),
        ("binary(1)", "?", "misfit", "?"),
    ],
)
def test_values_that_debezium_cannot_have(mysql: str, text: str, code: str, expected: Any) -> None:
    assert (expected, {code}) == column("debezium:oms", mysql, text)


# Losses


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (DEFAULT, ["types", "event-time-millis", "emit-time", "position", "extra"]),
        (EXTENDED, ["event-time-millis", "emit-time", "position", "extra", "type-details"]),
        (DATAWORKS, ["position", "extra", "type-details"]),
        (SHAREPLEX, ["key", "types", "event-time-millis", "emit-time-millis", "position", "extra"]),
    ],
)
def test_what_a_row_of_another_format_loses(spec: str, expected: list[str]) -> None:
    event = row(
        "insert",
        event_time=1609344671_123456,
        emit_time=1609344672_123456,
        position={"gtid": "x"},
        extra={"server_id": "1"},
    )

    assert expected == Encoder(spec)(event).lost


def test_nothing_is_lost_of_a_documented_sample() -> None:
    for name in SAMPLES:
        for event in decoded(CASES / name, None, content(CASES / name, "value")):
            assert [] == Encoder(f"{event.format}:{event.dialect}")(event).lost, name


def test_kinds_that_have_no_message() -> None:
    for spec in ALL:
        for event, code in [
            (Event("watermark", commit_ts=1, format="open-protocol"), "watermark"),
            (Event("statement", "insert", ddl="insert", format="canal-json"), "statement"),
            (Event("marker", "snapshot_end", format="debezium"), "snapshot-marker"),
            (Event("tombstone", format="debezium"), "tombstone"),
        ]:
            outcome = Encoder(spec)(event)
            assert ([], [code]) == (outcome.records, outcome.lost)
    for spec in (DEFAULT, EXTENDED, SHAREPLEX):
        assert ["transaction"] == Encoder(spec)(Event("marker", "begin", format="debezium")).lost


def test_losses_between_formats_are_told_beforehand() -> None:
    from_canal = {spec: {loss.code for loss in losses("canal-json", spec)} for spec in ALL}

    assert {"types", "emit-time", "statement", "extra"} <= from_canal[DEFAULT]
    assert {"type-details", "emit-time"} <= from_canal[EXTENDED]
    assert not {"types", "emit-time", "key"} & from_canal[DATAWORKS]
    assert {"key", "types"} <= from_canal[SHAREPLEX]


def test_row_before_an_update_that_is_not_known() -> None:
    event = row("update", before=None)
    for spec in (DEFAULT, EXTENDED, DATAWORKS):
        again = decoder(spec)(None, value(spec, event).encode(), None)[0]

        assert "before-unknown" not in Encoder(spec)(event).lost
        assert (None, NEW.keys()) == (again.before, (again.after or {}).keys())
    assert "before-unknown" in Encoder(SHAREPLEX)(event).lost
    again = decoder(SHAREPLEX)(None, value(SHAREPLEX, event).encode(), None)[0]
    assert NEW.keys() == (again.after or {}).keys()


def test_shareplex_counts_names_that_read_as_others() -> None:
    for database, table, lost in [("a.b", "t", 1), (None, "a.b", 1), ("a", "b.c", 0)]:
        event = Event("row", "insert", database, table, after={"a": "1"}, format="maxwell")

        assert ["database"] * lost == Encoder(SHAREPLEX)(event).lost


def test_shareplex_counts_a_column_that_the_later_row_lacks() -> None:
    event = Event(
        "row", "update", "d", "t", before={"a": "1", "b": "2"}, after={"a": "2"}, format="maxwell"
    )

    assert ["incomplete"] == Encoder(SHAREPLEX)(event).lost


def test_column_that_is_called_like_the_types() -> None:
    event = row("insert", types={"id": ColumnType("int")}, after={"id": "1", "__light_type": "x"})

    assert "incomplete" in Encoder(EXTENDED)(event).lost
    assert "incomplete" not in Encoder(DEFAULT)(event).lost


def test_strict_refuses_what_would_be_lost() -> None:
    outcome = Encoder(DEFAULT, strict=True)(row("insert"))

    assert ([], "lossy") == (outcome.records, (outcome.error or ("",))[0])


def test_canal_message_in_all_of_them() -> None:
    message = (
        b'{"data":[{"id":"1","e":"2","b":"5","y":"2022","bin":"\\u0005\\u00ff"}],"database":"d",'
        b'"es":1609344671000,"id":1,"isDdl":false,"mysqlType":{"id":"int(11)",'
        b'"e":"enum(\'x\',\'y\')","b":"bit(8)","y":"year(4)","bin":"blob"},"old":null,'
        b'"pkNames":["id"],"sql":"","sqlType":{"id":4,"e":4,"b":-7,"y":12,"bin":2004},'
        b'"table":"t","ts":1609344672000,"type":"INSERT"}'
    )
    (event,) = decoder("canal-json:canal")(None, message, None)
    for spec in ALL:
        assert '{"id":1,"e":"y","b":"BQ==","y":2022,"bin":"Bf8="' in value(spec, event)
        if spec in TYPED:
            again = decoder(spec)(None, value(spec, event).encode(), None)[0]
            assert event.after == again.after


# Any row

fractions = st.text("0123456789", min_size=1, max_size=6).map(lambda f: f".{f}") | st.just("")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def whole_numbers(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(str)


def moments(first: datetime, last: datetime) -> st.SearchStrategy[str]:
    seconds = st.datetimes(first, last).map(lambda at: str(at.replace(microsecond=0)))
    return st.builds("{}{}".format, seconds, fractions)


COLUMNS: dict[str, st.SearchStrategy[str]] = {
    "tinyint": whole_numbers(-(2**7), 2**7 - 1),
    "int unsigned": whole_numbers(0, 2**32 - 1),
    "bigint": whole_numbers(-(2**63), 2**63 - 1),
    "bigint unsigned": whole_numbers(0, 2**64 - 1),
    "decimal(65,30)": st.decimals(places=30, allow_nan=False, allow_infinity=False).map(
        lambda d: f"{d.copy_abs() if d.is_zero() else d:f}"
    ),
    "decimal(20,0)": whole_numbers(-(10**19), 10**19),
    "double": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "bit(64)": whole_numbers(0, 2**64 - 1),
    "year": whole_numbers(1901, 2155) | st.just("0000"),
    "date": st.dates().map(str) | st.just("0000-00-00"),
    "time(6)": st.builds(
        "{}{}{}".format, st.sampled_from(["", "-"]), st.times().map(lambda t: str(t)[:8]), fractions
    ),
    "datetime(6)": moments(datetime(1000, 1, 1), datetime(9999, 12, 31)),
    "timestamp(6)": moments(datetime(1970, 1, 1, 0, 0, 1), datetime(2038, 1, 19))
    | st.just("0000-00-00 00:00:00"),
    "varchar(9)": texts,
    "longtext": texts,
    "enum('a','b')": st.sampled_from(["a", "b"]),
    "set('a','b')": st.sampled_from(["", "a", "b", "a,b"]),
    "json": st.recursive(st.none() | texts, st.lists).map(json.dumps),
    "blob": st.binary(max_size=9).map(lambda b: b64encode(b).decode()),
}
images = st.fixed_dictionaries(
    {}, optional={name: st.none() | values for name, values in COLUMNS.items()}
).filter(bool)


@given(images, images)
def test_rows_with_types_come_back(before: Image, after: Image) -> None:
    before = {name: before.get(name) for name in after}
    types = {name: ColumnType(name) for name in after}
    event = row("update", before=before, after=after, types=types, key=None)
    for spec in TYPED:
        encoder = ENCODERS[spec]
        outcome = encoder(event)
        again = DECODERS[spec](None, outcome.records[0].value, None)[0]

        assert not {"misfit", "zero-dates"} & set(outcome.lost)
        assert (before, after) == (again.before, again.after)


@given(images, images)
def test_rows_without_types_have_the_same_values(before: Image, after: Image) -> None:
    """Default and SharePlex write what DefaultExtendColumnType writes; only the types are away."""
    before = {name: before.get(name) for name in after}
    types = {name: ColumnType(name) for name in after}
    event = row("update", before=before, after=after, types=types, key=None)
    told = json.loads(ENCODERS[EXTENDED](event).records[0].value or b"", parse_float=str)
    expected = [
        {n: v for n, v in told[image].items() if n != "__light_type"}
        for image in ("prevStruct", "postStruct")
    ]
    plain = json.loads(ENCODERS[DEFAULT](event).records[0].value or b"", parse_float=str)
    shareplex = json.loads(ENCODERS[SHAREPLEX](event).records[0].value or b"", parse_float=str)

    assert expected == [plain["prevStruct"], plain["postStruct"]]
    assert expected == [shareplex["key"], shareplex["key"] | shareplex["data"]]


@given(st.dictionaries(texts, st.none() | texts, min_size=1, max_size=4), st.data())
def test_any_text_under_any_type_is_json_that_decodes(image: Image, data: st.DataObject) -> None:
    names = st.sampled_from([*COLUMNS, "", "x(", "int(", "geometry"])
    types = {name: ColumnType(data.draw(names)) for name in image if name != "__light_type"}
    event = row("insert", after=image, types=types, key=tuple(image))
    for spec in ALL:
        message = ENCODERS[spec](event).records[0].value

        assert isinstance(json.loads(message or b""), dict)


ENCODERS = {spec: Encoder(spec) for spec in ALL}
DECODERS = {spec: decoder(spec) for spec in ALL}
