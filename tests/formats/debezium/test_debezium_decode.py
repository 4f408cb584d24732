"""Debezium's codecs under bad input, and its value conversions against Python's own."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import CASES

from headgate.codec.decoder import decode_message, decoder
from headgate.core.errors import DecodeError, UsageError
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.formats._connect.times import civil

OWN_CASES = CASES / "debezium"
SOURCE = {"connector": "mysql", "name": "s", "db": "d", "table": "t", "ts_ms": 1}
TYPE = "__debezium.source.column.type"
BLOB = {TYPE: "BLOB"}
DECIMAL = "org.apache.kafka.connect.data.Decimal"
decode = decoder("debezium")
cached_decoder = cache(decoder)
decode_smt = decoder("debezium-smt")


def message(**members: Any) -> bytes:
    envelope = {"before": None, "after": {"id": 1}, "source": SOURCE, "op": "c", "ts_ms": 1}
    return json.dumps(envelope | members).encode()


def column(
    value: Any, type_: str, name: str = "", parameters: Any = None, **options: Any
) -> str | None:
    """The text of a value that is sent with such a field in the message's schema."""
    field = {"field": "v", "type": type_, "parameters": parameters} | (
        {"name": name} if name else {}
    )
    images = [{"type": "struct", "fields": [field], "field": "after"}]
    schema = {"type": "struct", "fields": images, "name": "s.d.t.Envelope"}
    payload = json.loads(message(after={"v": value}))
    sent = json.dumps({"schema": schema, "payload": payload}).encode()
    (event,) = cached_decoder("debezium", **options)(None, sent, None)
    return (event.after or {})["v"]


@given(st.integers(-(10**65), 10**65), st.integers(0, 30))
def test_base64_decimals_are_exact(unscaled: int, scale: int) -> None:
    size = unscaled.bit_length() // 8 + 1
    sent = b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()

    text = column(sent, "bytes", DECIMAL, {"scale": str(scale)})

    sign, digits, exponent = Decimal(text or "").as_tuple()
    assert -exponent == scale
    assert int("".join(map(str, digits))) * (-1 if sign else 1) == unscaled


@given(st.dates())
def test_dates_are_pythons_dates(day: date) -> None:
    days = (day - date(1970, 1, 1)).days

    assert column(days, "int32", "io.debezium.time.Date") == civil(days) == day.isoformat()


@given(st.integers(-(10**12), 10**12))
def test_days_of_any_year_repeat_every_400_years(days: int) -> None:
    year, rest = civil(days).rsplit("-", 2)[0], civil(days)[-6:]
    later = civil(days + 146097)

    assert (int(later.rsplit("-", 2)[0]), later[-6:]) == (int(year) + 400, rest)


@given(st.datetimes(), st.sampled_from(["Timestamp", "MicroTimestamp", "NanoTimestamp"]))
def test_datetimes_are_pythons_datetimes(at: datetime, name: str) -> None:
    at = at.replace(microsecond=at.microsecond // 1000 * 1000) if name == "Timestamp" else at
    micros = (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    counts = {"Timestamp": micros // 1000, "NanoTimestamp": micros * 1000}

    text = column(counts.get(name, micros), "int64", f"io.debezium.time.{name}")

    assert datetime.fromisoformat(text or "") == at


@given(st.integers(-(10**13), 10**13))
def test_times_add_up(micros: int) -> None:
    text = column(micros, "int64", "io.debezium.time.MicroTime") or ""
    hours, minutes, seconds = text.removeprefix("-").split(":")
    total = (int(hours) * 60 + int(minutes)) * 60 * 10**6 + int(Decimal(seconds) * 10**6)

    assert (-total if text.startswith("-") else total) == micros


@given(st.binary(max_size=40))
def test_binary_modes_agree(held: bytes) -> None:
    standard = b64encode(held).decode()

    sent = {
        "base64-url-safe": [standard.replace("+", "-").replace("/", "_")],
        "hex": [held.hex(), held.hex().upper()],
        "base64": [standard],
    }
    for mode, texts in sent.items():
        for text in texts:
            assert standard == column(text, "string", "", BLOB, binary_handling_mode=mode)


@given(st.integers(0, 2**64 - 1))
def test_bits_and_unsigned_come_back(number: int) -> None:
    wrapped = number - 2**64 if number >= 2**63 else number

    bits = b64encode(number.to_bytes(8, "little")).decode()
    assert column(bits, "bytes", "io.debezium.data.Bits", {"length": "64"}) == str(number)
    assert column(wrapped, "int64", "", {TYPE: "BIGINT UNSIGNED"}) == str(number)


def test_a_schema_is_read_once_and_shared() -> None:
    value = (OWN_CASES / "values-propagated" / "value.json").read_bytes()
    first, second = decode(None, value, None)[0], decode(None, value.rstrip(), None)[0]
    third = decode(None, value.rstrip(), None)[0]

    assert first.types is second.types is third.types
    assert first.extra is third.extra
    assert first.after == second.after == third.after


def test_a_known_beginning_does_not_excuse_a_bad_end() -> None:
    value = (OWN_CASES / "values-zoned" / "value.json").read_bytes().rstrip()
    decode(None, value, None)
    extended = value[:-1] + b',"more":1}'

    assert decode(None, extended, None)[0].after == decode(None, value, None)[0].after
    with pytest.raises(DecodeError, match="not valid JSON"):
        decode(None, value[:-1] + b",}", None)


def test_a_huge_exponent_stays_scientific() -> None:
    sent = message(after=0).replace(b'"after": 0', b'"after": {"n": 1e300000}')
    event = decoder("debezium", columns="n DECIMAL(9,2)")(None, sent, None)[0]

    assert event.after == {"n": "1e300000"}


def test_a_monstrous_decimal_is_refused() -> None:
    with pytest.raises(DecodeError) as caught:
        column(b64encode(b"\x7f" * 5000).decode(), "bytes", DECIMAL, {"scale": "2"})

    assert caught.value.code == "invalid-value"


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"op": None}, "missing-member"),
        ({"op": 5}, "wrong-type"),
        ({"op": "x"}, "unknown-type"),
        ({"after": [1]}, "wrong-type"),
        ({"source": "here"}, "wrong-type"),
        ({"ts_ms": "soon"}, "wrong-type"),
        ({"ts_ms": 10**18}, "wrong-type"),
        ({"op": "d", "after": None}, "missing-member"),
    ],
)
def test_what_is_wrong_is_named(members: dict[str, Any], code: str) -> None:
    found = decode_message(decode, None, message(**members), None, MAX_MESSAGE_BYTES)

    assert found[0].error is not None
    assert found[0].error[0] == code


def test_a_delete_without_its_row_is_known_by_its_key() -> None:
    event = decode(b'{"id":7}', message(op="d", after=None), None)[0]

    assert (event.key, event.before) == (("id",), None)
    assert event.extra is not None
    assert event.extra["key"] == '{"id":7}'


@pytest.mark.parametrize("columns", ["amount", "a.b DATE", "x FANCY(3)", "a DATE,, b DATE"])
def test_a_column_list_that_cannot_be_is_refused(columns: str) -> None:
    with pytest.raises(UsageError):
        decoder("debezium", columns=columns)


def test_column_lists_read_as_create_table_does() -> None:
    columns = "`my col` DECIMAL(12, 2) NOT NULL, s.t.e ENUM('a,b','C)'), d DATETIME(3)"
    run = decoder("debezium", columns=columns)

    def types_of(table: str) -> dict[str, str | None]:
        (event,) = run(None, message(source=SOURCE | {"db": "s", "table": table}), None)
        return {name: type_.mysql for name, type_ in (event.types or {}).items()}

    everywhere = {"my col": "decimal(12, 2) not null", "d": "datetime(3)"}
    assert types_of("t") == {**everywhere, "e": "enum('a,b','C)')"}
    assert types_of("u") == everywhere


@pytest.mark.parametrize(
    ("statement", "op"),
    [
        ("create table t (a int)", "create"),
        ("-- why\nALTER TABLE t ADD c INT", "alter"),
        ("ALTER TABLE t RENAME TO u", "rename"),
        ("ALTER TABLE t RENAME COLUMN a TO b", "alter"),
        ("DROP INDEX i ON t", "drop_index"),
        ("TRUNCATE t", "truncate"),
        ("", "query"),
        ("/*!40000 DROP TABLE t */", "drop"),
    ],
)
def test_statements_say_what_they_do(statement: str, op: str) -> None:
    sent = json.dumps({"source": SOURCE, "databaseName": "d", "ddl": statement}).encode()

    assert decode(None, sent, None)[0].op == op


@pytest.mark.parametrize("text", ["0000-00-00 00:00:00", "9999-12-31T23:59:59-14:00", "", "Z"])
def test_text_that_is_no_time_stays_as_it_is(text: str) -> None:
    assert column(text, "string", "io.debezium.time.ZonedTimestamp") == text


WKB = "AQEAAAAAAAAAAADwPwAAAAAAAPA/"


@pytest.mark.parametrize(
    ("told", "sent", "text"),
    [
        ("GEOMETRY", f'{{"wkb":"{WKB}","srid":null}}', "AAAAAAEBAAAAAAAAAAAA8D8AAAAAAADwPw=="),
        ("POLYGON", '{"wkb":"AQMAAAA=","srid":4326}', "5hAAAAEDAAAA"),
        ("POINT", f'{{"x":1.0,"y":1,"wkb":"{WKB}","srid":1}}',
         "AQAAAAEBAAAAAAAAAAAA8D8AAAAAAADwPw=="),
        ("POINT", f'{{"x":1.0,"y":2.0,"wkb":"{WKB}","srid":1}}', None),
        ("POINT", f'{{"x":1.0,"y":null,"wkb":"{WKB}","srid":1}}', None),
        ("POINT", '{"x":1.0,"y":1.0,"wkb":null,"srid":1}', None),
        ("POINT", f'{{"wkb":"{WKB}","srid":1}}', None),
        ("GEOMETRY", f'{{"wkb":"{WKB}","srid":0}}', None),
        ("GEOMETRY", f'{{"wkb":"{WKB}","srid":-1}}', None),
        ("GEOMETRY", f'{{"wkb":"{WKB}"}}', None),
        ("GEOMETRY", '{"wkb":"?","srid":1}', None),
        ("GEOMETRY", '[1]', None),
    ],
)  # fmt: skip
def test_a_geometry_is_mysqls_bytes_where_they_say_the_same(
    told: str, sent: str, text: str | None
) -> None:
    message = f'{{"op":"c","before":null,"after":{{"g":{sent}}},"source":{{"connector":"mysql"}}}}'
    (event,) = decoder("debezium", columns=f"g {told}")(None, message.encode(), None)

    assert {"g": text or sent} == event.after
