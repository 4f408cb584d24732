"""Debezium's envelope as it is written: members, keys, schema blocks, every type, modes, losses."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import canal

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.core.errors import UsageError
from headgate.core.event import ColumnType, Event, Image, Types

TIME = 1_668_489_131_000_000
TYPES: Types = {"id": ColumnType("int"), "price": ColumnType("decimal(10,2)")}
ROW: Image = {"id": "1", "price": "7.90"}
PLACE = {"server_id": "223344", "file": "mysql-bin.000003", "pos": "1234", "row": "0"}
SOURCE = (
    '"source":{"version":"3.6.1.Final","connector":"mysql","name":"headgate",'
    '"ts_ms":1668489131000,"snapshot":"false","db":"shop","sequence":null,'
    '"ts_us":1668489131000000,"ts_ns":1668489131000000000,"table":"orders","server_id":null,'
    '"gtid":null,"file":null,"pos":null,"row":null,"thread":null,"query":null}'
)
TIMES = '"ts_ms":1668489131120,"ts_us":1668489131120345,"ts_ns":1668489131120345000'
BARE = {"schemas_enable": False}


def change(op: str = "insert", **parts: Any) -> Event:
    images = {"delete": {"before": ROW}, "update": {"before": ROW, "after": ROW}, "truncate": {}}
    told: dict[str, Any] = {"database": "shop", "table": "orders", "key": ("id",), "types": TYPES}
    told |= {"event_time": TIME, "emit_time": TIME + 120_345} | images.get(op, {"after": ROW})
    return Event("row", op, **(told | parts))


def values(event: Event, spec: str = "debezium", **options: Any) -> list[str | None]:
    """The messages of an event."""
    records = Encoder(spec, **options)(event).records
    return [r.value and r.value.decode() for r in records]


def lost(event: Event, spec: str = "debezium", **options: Any) -> list[str]:
    return Encoder(spec, **options)(event).lost


def schemaless(event: Event, spec: str = "debezium", **options: Any) -> dict[str, Any]:
    (record,) = Encoder(spec, **{**BARE, **options})(event).records
    found: dict[str, Any] = json.loads(record.value or b"")
    return found


def column(mysql: str | None, text: str | None, flags: int | None = None, **options: Any) -> Any:
    """The text of one column's JSON value, its field in the schema, and what was lost."""
    event = change(key=None, types={"c": ColumnType(mysql, None, flags)}, after={"c": text})
    outcome = Encoder("debezium", **options)(event)
    (record,) = outcome.records
    message = json.loads(record.value or b"", parse_float=str)
    field = message["schema"]["fields"][1]["fields"][0]
    assert "c" == field.pop("field")
    sent = message["payload"]["after"]["c"]
    return sent, field, [code for code in outcome.lost if code != "type-details"]


def plain(type_: str) -> dict[str, Any]:
    return {"type": type_, "optional": True}


def named(type_: str, name: str, **parameters: str) -> dict[str, Any]:
    found = {"type": type_, "optional": True, "name": name, "version": 1}
    return found | {"parameters": parameters} if parameters else found


DECIMAL = "org.apache.kafka.connect.data.Decimal"
TEN = {"scale": "2", "connect.decimal.precision": "10"}
TWENTY = {"scale": "0", "connect.decimal.precision": "20"}


# Messages, byte for byte


def test_rows_have_all_members_in_their_order() -> None:
    assert [
        '{"before":null,"after":{"id":1,"price":"AxY="},'
        f'{SOURCE},"transaction":null,"op":"c",{TIMES}}}'
    ] == values(change(), **BARE)
    assert [
        '{"before":{"id":1,"price":"AxY="},"after":{"id":1,"price":"AxY="},'
        f'{SOURCE},"transaction":null,"op":"u",{TIMES}}}'
    ] == values(change("update"), **BARE)


def test_each_row_has_the_source_of_its_own_whatever_came_before() -> None:
    events = [
        change(),
        change("update"),
        change(table="items"),
        change("snapshot", table="items"),
        change(database="d", event_time=5),
        change(database="d", event_time=5, position=PLACE),
        change(database="d", event_time=5),
        change(database="d", event_time=5, format="debezium", dialect="debezium", extra={}),
        change(event_time=None),
    ]
    encoder = Encoder("debezium", **BARE)

    assert [encoder(event).records for event in events] == [
        Encoder("debezium", **BARE)(event).records for event in events
    ]


def test_a_delete_has_a_tombstone_behind_it() -> None:
    deleted, tombstone = Encoder("debezium", **BARE)(change("delete")).records

    assert (b'{"id":1}', b'{"id":1}', None) == (deleted.key, tombstone.key, tombstone.value)
    assert deleted.value is not None
    assert deleted.value.startswith(b'{"before":{"id":1,"price":"AxY="},"after":null,')
    assert 1 == len(Encoder("debezium", tombstones_on_delete=False)(change("delete")).records)
    assert 1 == len(Encoder("debezium")(change("delete", key=None)).records)


def test_debeziums_own_tombstones_are_not_doubled() -> None:
    decode, encoder = decoder("debezium"), Encoder("debezium", **BARE)
    sent = encoder(change("delete")).records
    events = [e for r in sent for e in decode(r.key, r.value, None)]

    assert ["row", "tombstone"] == [e.kind for e in events]
    assert sent == [r for e in events for r in encoder(e).records]
    assert [] == [code for e in events for code in encoder(e).lost]


def flat(value: bytes | None, key: bytes = b'{"id":1}') -> Event:
    (event,) = decoder("debezium-smt")(key, value, None)
    return event


def test_the_transforms_tombstones_are_not_doubled() -> None:
    stream = [flat(b'{"id":1,"__deleted":"true"}'), flat(None), flat(None)]

    def counts(**options: Any) -> list[tuple[int, list[str]]]:
        encoder = Encoder("debezium", **BARE, **options)
        return [(len(o.records), o.lost) for o in map(encoder, stream)]

    assert [(2, ["extra"]), (0, []), (0, [])] == counts()
    assert [(1, ["extra"]), (1, []), (1, [])] == counts(tombstones_on_delete=False)
    assert [(0, ["extra"]), (0, []), (0, [])] == counts(strict=True)  # refused with the delete


def test_another_rows_tombstone_is_written() -> None:
    encoder = Encoder("debezium", **BARE)
    encoder(flat(b'{"id":1,"__deleted":"true"}'))

    assert [b'{"id":2}'] == [r.key for r in encoder(flat(None, b'{"id":2}')).records]
    assert [] == encoder(flat(None, b'{"schema":null,"payload":{"id":1}}')).records
    encoder(flat(b'{"id":1,"__deleted":"true"}'))
    encoder(flat(b'{"id":1,"__deleted":"false"}'))
    assert [None] == [r.value for r in encoder(flat(None)).records]


def test_snapshot_and_truncate() -> None:
    snapshot = schemaless(change("snapshot"))
    truncated = schemaless(change("truncate"))

    assert ("r", "true") == (snapshot["op"], snapshot["source"]["snapshot"])
    assert ("t", None, None) == (truncated["op"], truncated["before"], truncated["after"])
    assert Encoder("debezium")(change("truncate")).records[0].key is None


def test_a_changed_key_is_a_delete_a_tombstone_and_a_create() -> None:
    event = change("update", before=ROW, after=ROW | {"id": "2"})
    outcome = Encoder("debezium", **BARE)(event)
    deleted, tombstone, created = outcome.records

    assert ["types", "key-change"] == outcome.lost
    assert [b'{"id":1}', b'{"id":1}', b'{"id":2}'] == [r.key for r in outcome.records]
    assert (("__debezium.newkey", b'{"id":2}'),) == deleted.headers
    assert (("__debezium.oldkey", b'{"id":1}'),) == created.headers
    assert (None, deleted.headers) == (tombstone.value, tombstone.headers)
    assert ["d", None] == [json.loads(deleted.value or b"")[n] for n in ("op", "after")]
    assert ["c", None] == [json.loads(created.value or b"")[n] for n in ("op", "before")]


def test_times_that_are_not_known_are_not_made_up() -> None:
    found = schemaless(change(event_time=None, emit_time=None))
    event = decoder("debezium")(
        None, values(change(event_time=None, emit_time=None))[0].encode(), ""
    )  # type: ignore[union-attr]

    assert (0, None) == (found["source"]["ts_ms"], found["ts_ms"])
    assert (None, None) == (event[0].event_time, event[0].emit_time)


def test_key_and_value_with_their_schemas() -> None:
    (record,) = Encoder("debezium", topic_prefix="p")(change(position=PLACE)).records
    key, value = record.key or b"", record.value or b""
    fields = (
        '{"type":"int32","optional":false,"field":"id"},'
        '{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
        '"parameters":{"scale":"2","connect.decimal.precision":"10"},"field":"price"}'
    )

    assert (
        b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}],'
        b'"optional":false,"name":"p.shop.orders.Key"},"payload":{"id":1}}'
    ) == key
    assert value.startswith(
        (
            '{"schema":{"type":"struct","fields":['
            f'{{"type":"struct","fields":[{fields}],"optional":true,"name":"p.shop.orders.Value",'
            '"field":"before"},'
            f'{{"type":"struct","fields":[{fields}],"optional":true,"name":"p.shop.orders.Value",'
            '"field":"after"},'
            '{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},'
        ).encode()
    )
    assert (
        b'"optional":false,"name":"io.debezium.connector.mysql.Source","version":1,'
        b'"field":"source"},{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},'
        b'{"type":"int64","optional":false,"field":"total_order"},'
        b'{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,'
        b'"name":"event.block","version":1,"field":"transaction"},'
        b'{"type":"string","optional":false,"field":"op"},'
        b'{"type":"int64","optional":true,"field":"ts_ms"},'
        b'{"type":"int64","optional":true,"field":"ts_us"},'
        b'{"type":"int64","optional":true,"field":"ts_ns"}],"optional":false,'
        b'"name":"p.shop.orders.Envelope","version":2},"payload":{"before":null,'
    ) in value


def test_what_the_schema_requires_is_required_only_where_it_is_known() -> None:
    def optional(event: Event) -> dict[str, bool]:
        message = json.loads(values(event)[0] or "")
        fields = message["schema"]["fields"][2]["fields"]
        return {f["field"]: f["optional"] for f in fields if f["field"] in PLACE}

    assert dict.fromkeys(PLACE, False) == optional(change(position=PLACE))
    assert dict.fromkeys(PLACE, True) == optional(change())


def test_messages_that_are_no_rows() -> None:
    ddl = Event("ddl", "create", "shop", "orders", ddl="CREATE TABLE orders (id INT)")
    ddl.event_time, ddl.emit_time = TIME, TIME + 120_000
    beat = Event("heartbeat", emit_time=TIME + 120_000)
    begin = Event("marker", "begin", event_time=TIME, position={"gtid": "a:1"})

    def both(event: Event) -> tuple[str, str]:
        (record,) = Encoder("debezium", **BARE)(event).records
        return (record.key or b"").decode(), (record.value or b"").decode()

    assert (
        '{"databaseName":"shop"}',
        f'{{{SOURCE},"ts_ms":1668489131120,"databaseName":"shop","schemaName":null,'
        '"ddl":"CREATE TABLE orders (id INT)","tableChanges":[]}',
    ) == both(ddl)
    assert ('{"serverName":"headgate"}', '{"ts_ms":1668489131120}') == both(beat)
    assert (
        '{"id":"a:1"}',
        '{"status":"BEGIN","id":"a:1","event_count":null,"data_collections":null,'
        '"ts_ms":1668489131000}',
    ) == both(begin)


def test_schemas_of_messages_that_are_no_rows() -> None:
    (record,) = Encoder("debezium")(Event("heartbeat", emit_time=TIME)).records

    assert (
        b'{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"ts_ms"}],'
        b'"optional":false,"name":"io.debezium.connector.common.Heartbeat","version":1},'
        b'"payload":{"ts_ms":1668489131000}}'
    ) == record.value
    for event in (Event("ddl", "drop", "shop", ddl="DROP TABLE t"), Event("marker", "commit")):
        (record,) = Encoder("debezium")(event).records
        for part in (record.key, record.value):
            assert {"schema", "payload"} == json.loads(part or b"").keys()


def test_kinds_that_debezium_does_not_have() -> None:
    encoder = Encoder("debezium")
    for event, code in (
        (Event("watermark", commit_ts=1), "watermark"),
        (Event("statement", "query", ddl="DELETE FROM t"), "statement"),
        (Event("marker", "rollback"), "transaction"),
        (Event("marker", "snapshot_begin"), "snapshot-marker"),
        (Event("tombstone", format="maxwell", extra={"key": "{}"}), "tombstone"),
    ):
        outcome = encoder(event)
        assert ([], [code]) == (outcome.records, outcome.lost)


def test_strings_are_escaped_as_jackson_does() -> None:
    types = {"c": ColumnType("text")}
    (sent,) = values(change(key=None, types=types, after={"c": 'a"\\\x01\x1f\b\x7f/<é🦊'}), **BARE)

    assert '"after":{"c":"a\\"\\\\\\u0001\\u001F\\b\x7f/<é🦊"}' in (sent or "")


# Types


INT64_MAX, UINT64_MAX = str(2**63 - 1), str(2**64 - 1)


@pytest.mark.parametrize(
    ("mysql", "text", "sent", "field"),
    [
        ("tinyint", "-128", -128, plain("int16")),
        ("tinyint(1)", "1", 1, plain("int16")),
        ("tinyint unsigned", "255", 255, plain("int16")),
        ("smallint", "-32768", -32768, plain("int16")),
        ("smallint unsigned", "65535", 65535, plain("int32")),
        ("mediumint unsigned", "16777215", 16777215, plain("int32")),
        ("int", "-2147483648", -2147483648, plain("int32")),
        ("int(10) unsigned", "4294967295", 4294967295, plain("int64")),
        ("bigint", "-9223372036854775808", -(2**63), plain("int64")),
        ("bigint unsigned", INT64_MAX, 2**63 - 1, plain("int64")),
        ("decimal(10,2)", "-1.50", "/2o=", named("bytes", DECIMAL, **TEN)),
        ("decimal(10,2)", "0.00", "AA==", named("bytes", DECIMAL, **TEN)),
        ("decimal", "123.4567", "EtaH", named("bytes", DECIMAL, scale="4")),
        ("float", "3.14", "3.14", plain("float")),
        ("float(7,3)", "3.14", "3.14", plain("double")),
        ("double", "1.7976931348623157e308", "1.7976931348623157e308", plain("double")),
        ("bit(1)", "1", True, plain("boolean")),
        ("bit(16)", "13929", "aTY=", named("bytes", "io.debezium.data.Bits", length="16")),
        ("bit(64)", UINT64_MAX, "//////////8=",
         named("bytes", "io.debezium.data.Bits", length="64")),
        ("year", "2022", 2022, named("int32", "io.debezium.time.Year")),
        ("date", "2022-11-15", 19311, named("int32", "io.debezium.time.Date")),
        ("date", "0001-01-01", -719162, named("int32", "io.debezium.time.Date")),
        ("time", "-838:59:59", -3020399000000, named("int64", "io.debezium.time.MicroTime")),
        ("time(6)", "00:00:00.000001", 1, named("int64", "io.debezium.time.MicroTime")),
        ("datetime(3)", "2022-11-15 05:12:11.120", 1668489131120,
         named("int64", "io.debezium.time.Timestamp")),
        ("datetime", "1969-12-31 23:59:59", -1000, named("int64", "io.debezium.time.Timestamp")),
        ("datetime", "2022-11-15 05:12:11.123456", 1668489131123456,
         named("int64", "io.debezium.time.MicroTimestamp")),
        ("datetime(6)", "2022-11-15 05:12:11.000000", 1668489131000000,
         named("int64", "io.debezium.time.MicroTimestamp")),
        ("timestamp(3)", "2018-06-20 13:37:03.500", "2018-06-20T13:37:03.500Z",
         named("string", "io.debezium.time.ZonedTimestamp")),
        ("timestamp(3)", "2018-06-20 13:37:03.5", "2018-06-20T13:37:03.500Z",
         named("string", "io.debezium.time.ZonedTimestamp")),
        ("timestamp(6)", "2018-06-20 13:37:03", "2018-06-20T13:37:03.000000Z",
         named("string", "io.debezium.time.ZonedTimestamp")),
        ("timestamp(0)", "2018-06-20 13:37:03.000", "2018-06-20T13:37:03Z",
         named("string", "io.debezium.time.ZonedTimestamp")),
        ("timestamp", "2018-06-20 13:37:03.50", "2018-06-20T13:37:03.50Z",
         named("string", "io.debezium.time.ZonedTimestamp")),
        ("char(3)", "é🦊", "é🦊", plain("string")),
        ("binary(4)", "YWI=", "YWIAAA==", plain("bytes")),
        ("varbinary(4)", "YWI=", "YWI=", plain("bytes")),
        ("longblob", "", "", plain("bytes")),
        ("enum('a','it''s')", "it's", "it's",
         named("string", "io.debezium.data.Enum", allowed="a,it's")),
        ("enum", "2", "2", named("string", "io.debezium.data.Enum")),
        ("set('a','b')", "a,b", "a,b", named("string", "io.debezium.data.EnumSet", allowed="a,b")),
        ("json", '{"a": 1}', '{"a": 1}', named("string", "io.debezium.data.Json")),
        ("text", None, None, plain("string")),
    ],
)  # fmt: skip
def test_each_type(mysql: str | None, text: str | None, sent: Any, field: Any) -> None:
    assert (sent, field, []) == column(mysql, text)


@pytest.mark.parametrize(("mysql", "text"), [("hypertext", "x"), (None, "5")])
def test_a_type_that_nobody_knows_is_guessed_and_counted(mysql: str | None, text: str) -> None:
    assert (text, plain("string"), ["types-guessed"]) == column(mysql, text)


def test_geometry_and_vector() -> None:
    point = b64encode(bytes(4) + bytes.fromhex("0101000000000000000000f03f0000000000408fc0"))
    sent, field, _ = column("point", point.decode())

    assert {"x": "1.0", "y": "-1000.0", "wkb": "AQEAAAAAAAAAAADwPwAAAAAAQI/A", "srid": None} == sent
    assert ("struct", "io.debezium.data.geometry.Point") == (field["type"], field["name"])
    assert {"wkb": "AQEAAAAAAAAAAADwPwAAAAAAQI/A", "srid": 4326} == column(
        "geometry", b64encode((4326).to_bytes(4, "little") + bytes.fromhex(
            "0101000000000000000000f03f0000000000408fc0")).decode())[0]  # fmt: skip
    assert ["0.10", "2e3"] == column("vector", "[0.10,2e3]")[0]
    assert ("[1,", ["misfit"]) == column("vector", "[1,")[::2]


@pytest.mark.parametrize(
    ("options", "mysql", "text", "sent", "field", "codes"),
    [
        ({"decimal_handling_mode": "string"}, "decimal(10,2)", "7.90", "7.90", plain("string"), []),
        ({"decimal_handling_mode": "string"}, "decimal(10,2)", "1.5", "1.50", plain("string"), []),
        ({"decimal_handling_mode": "string"}, "decimal(10,2)", "-7", "-7.00", plain("string"), []),
        ({"decimal_handling_mode": "string"}, "decimal(10)", "7", "7", plain("string"), []),
        ({"decimal_handling_mode": "string"}, "decimal", "1.5", "1.5", plain("string"), []),
        ({"decimal_handling_mode": "string"}, "decimal(9,8)", "0.00000015", "0.00000015",
         plain("string"), []),
        ({"decimal_handling_mode": "double"}, "decimal(10,2)", "7.90", "7.9", plain("double"), []),
        ({"decimal_handling_mode": "double"}, "decimal(20,2)", "123456789012345678.12",
         "1.2345678901234568E17", plain("double"), ["float-digits"]),
        ({"decimal_format": "numeric"}, "decimal(10,2)", "7.90", "7.90",
         named("bytes", DECIMAL, **TEN), []),
        ({"decimal_format": "numeric"}, "decimal(10,2)", "1.5", "1.50",
         named("bytes", DECIMAL, **TEN), []),
        ({"binary_handling_mode": "base64"}, "blob", "+/8=", "+/8=", plain("string"), []),
        ({"binary_handling_mode": "base64-url-safe"}, "blob", "+/8=", "-_8=", plain("string"), []),
        ({"binary_handling_mode": "hex"}, "blob", "Bf8=", "05ff", plain("string"), []),
        ({"bigint_unsigned_handling_mode": "precise"}, "bigint unsigned", UINT64_MAX,
         "AP//////////", named("bytes", DECIMAL, **TWENTY), []),
        ({"time_precision_mode": "connect"}, "time(3)", "04:05:11.789", 14711789,
         named("int32", "org.apache.kafka.connect.data.Time"), []),
        ({"time_precision_mode": "connect"}, "time(6)", "04:05:11.789001", 14711789,
         named("int32", "org.apache.kafka.connect.data.Time"), ["time-micros"]),
        ({"time_precision_mode": "connect"}, "datetime(6)", "2022-11-15 05:12:11.120001",
         1668489131120, named("int64", "org.apache.kafka.connect.data.Timestamp"),
         ["datetime-micros"]),
        ({"time_precision_mode": "connect"}, "date", "2022-11-15", 19311,
         named("int32", "org.apache.kafka.connect.data.Date"), []),
        ({"time_precision_mode": "isostring"}, "date", "2017-09-15", "2017-09-15Z",
         named("string", "io.debezium.time.IsoDate"), []),
        ({"time_precision_mode": "isostring"}, "time(3)", "04:05:11.789", "04:05:11.789Z",
         named("string", "io.debezium.time.IsoTime"), []),
        ({"time_precision_mode": "isostring"}, "datetime(6)", "2019-07-09 02:28:57.123456",
         "2019-07-09T02:28:57.123456Z", named("string", "io.debezium.time.IsoTimestamp"), []),
        ({"time_precision_mode": "microseconds"}, "datetime", "2022-11-15 05:12:11",
         1668489131000000, named("int64", "io.debezium.time.MicroTimestamp"), []),
        ({"time_precision_mode": "nanoseconds"}, "time", "00:00:01", 10**9,
         named("int64", "io.debezium.time.NanoTime"), []),
        ({"time_precision_mode": "nanoseconds"}, "datetime", "1970-01-01 00:00:01", 10**9,
         named("int64", "io.debezium.time.NanoTimestamp"), []),
        ({"time_precision_mode": "nanoseconds"}, "datetime", "2262-04-11 23:47:16",
         9223372036000000000, named("int64", "io.debezium.time.NanoTimestamp"), []),
    ],
)  # fmt: skip
def test_each_mode(
    options: dict[str, str], mysql: str, text: str, sent: Any, field: Any, codes: list[str]
) -> None:
    assert (sent, field, codes) == column(mysql, text, **options)


@pytest.mark.parametrize(
    ("mysql", "text", "flags", "sent", "code"),
    [
        ("bigint unsigned", UINT64_MAX, None, -1, "bigint-unsigned"),
        ("date", "0000-00-00", None, None, "zero-dates"),
        ("date", "2021-02-30", 64, None, "zero-dates"),
        ("date", "0000-00-00", 0, 0, "zero-dates"),
        ("datetime", "0000-00-00 00:00:00", 0, 0, "zero-dates"),
        ("timestamp", "0000-00-00 00:00:00", None, None, "zero-dates"),
        ("timestamp", "0000-00-00 00:00:00", 0, "1970-01-01T00:00:00Z", "zero-dates"),
        ("year", "0000", None, 1900, "zero-dates"),
        ("int", '1,"x":2', None, '1,"x":2', "misfit"),
        ("int", "٣", None, "٣", "misfit"),
        ("double", "NaN", None, "NaN", "misfit"),
        ("decimal(5,2)", "1.234", None, "1.234", "misfit"),
        ("decimal(5,2)", "1_0.00", None, "1_0.00", "misfit"),
        ("decimal(5,2)", "9" * 5000 + ".00", None, "9" * 5000 + ".00", "misfit"),
        ("bit(8)", "-1", None, "-1", "misfit"),
        ("date", "tomorrow", None, "tomorrow", "misfit"),
        ("time", "noon", None, "noon", "misfit"),
        ("datetime", "2022-11-15 05:12+01", None, "2022-11-15 05:12+01", "misfit"),
        ("datetime", "2024-W10-1 12:00:07", None, "2024-W10-1 12:00:07", "misfit"),
        ("datetime", "2024-03-01 120007.5", None, None, "zero-dates"),
        ("datetime", "2024-03-01 24:00:00", None, None, "zero-dates"),
        ("timestamp", "2022-11-15 05:12:11+01:00", None, "2022-11-15 05:12:11+01:00", "misfit"),
        ("timestamp", "2024-W10-1 12:00:07", None, "2024-W10-1 12:00:07", "misfit"),
        ("timestamp", "2024-W10-1 12:00:07.5", None, "2024-W10-1 12:00:07.5", "misfit"),
        ("point", '{"x":1', None, '{"x":1', "misfit"),
        ("blob", "?", None, "?", "misfit"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_written(
    mysql: str, text: str, flags: int | None, sent: Any, code: str
) -> None:
    assert (sent, [code]) == column(mysql, text, flags)[::2]


@pytest.mark.parametrize(
    ("mode", "mysql", "text"),
    [
        ("nanoseconds", "datetime", "2262-04-11 23:47:17"),
        ("nanoseconds", "datetime(6)", "9999-12-31 23:59:59.999999"),
        ("nanoseconds", "datetime", "1000-01-01 00:00:00"),
        ("nanoseconds", "time", "9999999:00:00"),
        ("connect", "time", "-00:00:01"),
        ("connect", "time", "24:00:01"),
        ("connect", "time", "838:59:59"),
        ("microseconds", "datetime", "999999-12-31 23:59:59"),
        ("microseconds", "date", "9999999-12-31"),
    ],
)
def test_a_count_that_is_out_of_range_is_text_and_counted(mode: str, mysql: str, text: str) -> None:
    sent, field, codes = column(mysql, text, time_precision_mode=mode)

    assert (text, ["misfit"]) == (sent, codes)
    assert field["type"] == "string"


@pytest.mark.parametrize(
    ("mysql", "text", "sent", "mode"),
    [
        ("date", "0000-00-00", 0, "adaptive_time_microseconds"),
        ("datetime", "0000-00-00 00:00:00", 0, "connect"),
        ("timestamp(3)", "0000-00-00 00:00:00.000", "1970-01-01T00:00:00.000Z", "connect"),
        ("date", "2021-02-30", "1970-01-01Z", "isostring"),
    ],
)
def test_a_zero_date_in_the_key_is_the_epoch(mysql: str, text: str, sent: Any, mode: str) -> None:
    types = {"day": ColumnType(mysql), "other": ColumnType(mysql)}
    event = change(key=("day",), types=types, after={"day": text, "other": text})
    outcome = Encoder("debezium", time_precision_mode=mode)(event)
    (record,) = outcome.records
    key, value = json.loads(record.key or b""), json.loads(record.value or b"")
    fields = {f["field"]: f["optional"] for f in value["schema"]["fields"][1]["fields"]}

    assert {"day": sent} == key["payload"]
    assert {"day": sent, "other": None} == value["payload"]["after"]
    assert {"day": False, "other": True} == fields
    assert ["zero-dates", "zero-dates"] == [c for c in outcome.lost if c == "zero-dates"]


def test_the_flags_say_what_is_optional() -> None:
    assert [True, False, True] == [column("int", "1", f)[1]["optional"] for f in (64, 0, None)]


def test_source_types_are_propagated() -> None:
    prefix = "__debezium.source.column."
    for mysql, text, told in (
        ("bigint(20) unsigned", "1", {"type": "BIGINT UNSIGNED", "length": "20"}),
        ("decimal(12,2)", "1.00", {"type": "DECIMAL", "length": "12", "scale": "2"}),
        ("datetime", "2022-11-15 05:12:11.5", {"type": "DATETIME", "length": "1"}),
        ("enum('a')", "a", {"type": "ENUM"}),
        ("text", "a", {"type": "TEXT"}),
    ):
        parameters = column(mysql, text, column_propagate_source_type=True)[1]["parameters"]
        assert told == {n[len(prefix) :]: t for n, t in parameters.items() if n.startswith(prefix)}


# Events of other formats


def test_canal_becomes_debezium() -> None:
    message = canal(
        data=[{"id": "1", "state": "paid"}],
        old=[{"state": "new"}],
        mysqlType={"id": "int(11)", "state": "varchar(10)"},
        pkNames=["id"],
        type="UPDATE",
    )
    (event,) = decoder("canal-json:canal")(None, message, None)
    found = schemaless(event)

    assert {"id": 1, "state": "new"} == found["before"]
    assert {"id": 1, "state": "paid"} == found["after"]
    assert ("headgate", event.database, event.table) == tuple(
        found["source"][n] for n in ("name", "db", "table")
    )


def test_canals_geometry_comes_back_as_bytes() -> None:
    wkb = bytes.fromhex("0101000000000000000000f03f0000000000408fc0")
    sent = ((4326).to_bytes(4, "little") + wkb).decode("latin-1")
    message = canal(
        data=[{"id": "1", "g": sent, "p": sent}],
        mysqlType={"id": "int", "g": "geometry", "p": "point"},
    )
    (event,) = decoder("canal-json:canal")(None, message, None)
    (there,) = Encoder("debezium")(event).records
    (back,) = decoder("debezium")(there.key, there.value, None)
    (again,) = Encoder("canal-json:canal")(back).records

    assert event.after == back.after
    assert {"id": "1", "g": sent, "p": sent} == json.loads(again.value or b"")["data"][0]


def test_values_that_came_bare_stay_bare() -> None:
    extra = {"numbers": '["n","d"]', "booleans": '["b"]', "nested": '["o"]'}
    row: Image = {"n": "7", "d": "1.10", "b": "1", "s": "7", "o": '{"a": [1]}'}
    event = change(key=None, types=None, after=row, extra=extra, format="maxwell")
    (sent,) = values(event, **BARE)
    message = json.loads(values(event)[0] or "")
    types = {f["field"]: f["type"] for f in message["schema"]["fields"][1]["fields"]}

    assert '"after":{"n":7,"d":1.10,"b":true,"s":"7","o":{"a": [1]}}' in (sent or "")
    assert {"n": "int64", "d": "double", "b": "boolean", "s": "string", "o": "string"} == types


def test_a_hostile_hint_does_not_get_out_of_its_value() -> None:
    event = change(key=None, types=None, after={"n": '1}},"op":"d"'}, extra={"numbers": '["n"]'})
    assert {"n": '1}},"op":"d"'} == schemaless(event)["after"]
    assert ["misfit", "types-guessed"] == lost(event)


def test_a_decimal_without_its_scale_is_told_by_the_schema_or_counted() -> None:
    event = change("update", types={"id": ColumnType("int"), "price": ColumnType("decimal")})
    event.before = {"id": "1", "price": "7.9"}
    event.after = {"id": "1", "price": "7.90"}
    outcome = Encoder("debezium")(event)
    (again,) = decoder("debezium")(None, outcome.records[0].value, None)

    assert ("7.90", "7.90") == (again.before["price"], again.after["price"])  # type: ignore[index]
    assert [] == [c for c in outcome.lost if c == "decimal-scale"]
    assert 2 == lost(event, **BARE).count("decimal-scale")


def test_a_datetime_without_its_precision_is_told_by_the_schema_or_counted() -> None:
    def count(mysql: str, text: str, **options: Any) -> list[str]:
        event = change(key=None, types={"c": ColumnType(mysql)}, after={"c": text})
        return [c for c in lost(event, **options) if c == "datetime-precision"]

    for text in ("2022-11-15 05:12:11", "2022-11-15 05:12:11.123456"):
        assert ["datetime-precision"] == count("datetime", text, **BARE)
        assert [] == count("datetime", text)
        assert [] == count("datetime", text, **BARE, time_precision_mode="microseconds")
        assert [] == count("datetime(6)", text, **BARE)


def test_keys_that_cannot_be_written_are_counted() -> None:
    assert ["types", "key"] == lost(change(key=()), **BARE)
    assert ["types", "key"] == lost(change(key=("gone",)), **BARE)
    assert ["types"] == lost(change(key=None), **BARE)


def test_losses_of_a_row() -> None:
    told = change(commit_ts=5, position=PLACE | {"xid": "7"}, extra={"uuid": "x"}, format="maxwell")
    assert ["types", "commit-ts", "position", "extra"] == lost(told, **BARE)
    assert [] == lost(change(position=PLACE), column_propagate_source_type=True)
    assert ["type-details"] == lost(change())


# OMS


def test_oms_writes_its_own_members_and_values() -> None:
    types = {n: ColumnType(t) for n, t in {
        "id": "bigint", "u": "bigint unsigned", "d": "decimal(20,9)", "b": "varbinary(3)",
        "t": "timestamp", "dt": "datetime(3)", "day": "date", "at": "time", "bit": "bit(9)",
        "ok": "boolean",
    }.items()}  # fmt: skip
    row: Image = {
        "id": "1", "u": UINT64_MAX, "d": "0.000000150", "b": "ag==", "t": "2022-11-15 05:12:11",
        "dt": "2022-11-15 05:12:11.120", "day": "2022-11-15", "at": "10:01:00", "bit": "257",
        "ok": "1",
    }  # fmt: skip
    after = (
        '{"id":1,"u":"18446744073709551615","d":"1.50E-7","b":"6A","t":"2022-11-15T05:12:11Z",'
        '"dt":1668489131120,"day":19311,"at":36060000000,"bit":"0101","ok":true}'
    )
    source = '{"connector":"OB_MYSQL","name":"OMS","version":"","ts_ms":1668489131000,"db":"shop","table":"orders"}'  # noqa: E501
    flat = f'{{"op":"c","source":{source},"after":{after},"ts_ms":1668489131120}}'
    event = change(types=types, after=row)

    assert [f'{{"payload":{flat}}}'] == values(event, "debezium:oms")
    assert [flat] == values(event, "debezium:oms-flatten")
    assert ["key", "types", "emit-time-micros"] == lost(event, "debezium:oms")


def test_oms_deletes_heartbeats_and_schemas() -> None:
    (deleted,) = values(change("delete"), "debezium:oms-flatten")
    (beat,) = values(Event("heartbeat", event_time=TIME, emit_time=TIME), "debezium:oms")
    message = json.loads(values(change(), "debezium:oms", schemas_enable=True)[0] or "")

    assert (deleted or "").startswith('{"op":"d","before":{"id":1,"price":"7.90"},"source":{')
    assert (
        '{"payload":{"source":{"version":"","connector":"OB_MYSQL","name":"OMS",'
        '"ts_ms":1668489131000},"op":"HEARTBEAT","ts_ms":1668489131000,"before":{},"after":{}}}'
    ) == beat
    assert "STRUCT" == message["schema"]["type"]
    assert [
        {"field": "id", "optional": False, "type": "int32"},
        {"field": "price", "optional": False, "type": "string"},
    ] == message["schema"]["fields"][1]["fields"]


def test_options_that_oms_does_not_have() -> None:
    with pytest.raises(UsageError, match="decimal-handling-mode"):
        Encoder("debezium:oms", decimal_handling_mode="string")
    with pytest.raises(UsageError, match="schema"):
        Encoder("debezium:oms-flatten", schemas_enable=True)


# Any row comes back


def fractions(digits: int) -> st.SearchStrategy[str]:
    if not digits:
        return st.just("")
    return st.integers(0, 10**digits - 1).map(lambda n: f".{n:0{digits}d}")


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map("".join)


DATES = st.dates().map(str)
CLOCKS = st.times().map(lambda t: f"{t:%H:%M:%S}")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
BYTES = st.binary(max_size=20).map(lambda b: b64encode(b).decode())
ANY: dict[str, st.SearchStrategy[str]] = {
    "tinyint": st.integers(-128, 127).map(str),
    "int unsigned": st.integers(0, 2**32 - 1).map(str),
    "bigint": st.integers(-(2**63), 2**63 - 1).map(str),
    "bigint unsigned": st.integers(0, 2**64 - 1).map(str),
    "decimal(30,10)": st.decimals(-(10**20), 10**20, places=10).map(lambda d: f"{d:.10f}"),
    "double": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "bit(1)": st.sampled_from(["0", "1"]),
    "bit(33)": st.integers(0, 2**33 - 1).map(str),
    "year": st.integers(1901, 2155).map(str),
    "date": DATES,
    "time(6)": joined(
        st.sampled_from(["", "-"]), st.integers(0, 838).map(lambda h: f"{h:02d}:"),
        CLOCKS.map(lambda t: t[3:]), fractions(6),
    ).filter(lambda t: t != "-00:00:00.000000"),
    "datetime": joined(DATES, st.just(" "), CLOCKS),
    "datetime(3)": joined(DATES, st.just(" "), CLOCKS, fractions(3)),
    "datetime(6)": joined(DATES, st.just(" "), CLOCKS, fractions(6)),
    "timestamp(2)": joined(DATES, st.just(" "), CLOCKS, fractions(2)),
    "varchar(20)": TEXTS,
    "varbinary(20)": BYTES,
    "binary(20)": st.binary(min_size=20, max_size=20).map(lambda b: b64encode(b).decode()),
    "enum('a','it''s')": st.sampled_from(["a", "it's", ""]),
    "set('a','b')": st.sampled_from(["", "a", "a,b"]),
    "json": st.sampled_from(["{}", "null", '{"a": 1.10}']),
}  # fmt: skip
ALL_TYPES: Types = {mysql: ColumnType(mysql) for mysql in ANY}
ROWS = st.fixed_dictionaries({mysql: st.none() | text for mysql, text in ANY.items()})


@settings(deadline=None, max_examples=examples(60))
@given(ROWS, ROWS, st.sampled_from(["precise", "string"]), st.sampled_from(["bytes", "hex"]))
def test_any_row_comes_back(before: Image, after: Image, decimals: str, binary: str) -> None:
    event = change("update", key=None, types=ALL_TYPES, before=before, after=after)
    outcome = Encoder(
        "debezium",
        column_propagate_source_type=True,
        decimal_handling_mode=decimals,
        binary_handling_mode=binary,
    )(event)
    (again,) = decoder("debezium", binary_handling_mode=binary)(None, outcome.records[0].value, "")

    assert (before, after) == (again.before, again.after)
    assert ALL_TYPES == again.types
    assert set(outcome.lost) <= {"bigint-unsigned"}


def test_a_decimal_beyond_any_double_stays_text() -> None:
    digits = "9" * 400
    event = Event(
        "row", "insert", "d", "t", after={"n": digits}, types={"n": ColumnType("decimal(65,0)")}
    )
    done = Encoder("debezium", schemas_enable=False, decimal_handling_mode="double")(event)

    assert done.error is None
    assert "misfit" in done.lost
    assert f'"n":"{digits}"'.encode() in (done.records[0].value or b"")
