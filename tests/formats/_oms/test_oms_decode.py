"""OMS Default, DataWorks and SharePlex: members of wrong types, times, and who recognises what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from paths import CASES

from headgate.codec.decoder import decoder
from headgate.core.errors import DecodeError
from headgate.core.json import members
from headgate.formats import load
from headgate.formats.base import Sniffed
from headgate.schema.statement import ddl_op

FORMATS = ("oms-default", "dataworks", "shareplex")
GOLDEN = {
    format: [p.read_bytes() for p in sorted((CASES / format).glob("*/value.json"))]
    for format in FORMATS
}
DECODERS = {format: decoder(format) for format in FORMATS}


def sent(message: Any) -> bytes:
    return json.dumps(message).encode()


def replaced(message: Any, path: str, value: Any) -> bytes:
    place = message
    *outer, last = path.split(".")
    for name in outer:
        place = place[name]
    place[last] = value
    return sent(message)


@pytest.mark.parametrize(
    ("format", "path"),
    [
        ("oms-default", "recordType"),
        ("oms-default", "allMetaData"),
        ("oms-default", "allMetaData.db"),
        ("oms-default", "allMetaData.dbType"),
        ("oms-default", "allMetaData.table_name"),
        ("oms-default", "allMetaData.record_primary_key"),
        ("oms-default", "allMetaData.timestamp"),
        ("oms-default", "allMetaData.storeDataSequence"),
        ("oms-default", "allMetaData.checkpoint"),
        ("oms-default", "allMetaData.transId"),
        ("oms-default", "postStruct"),
        ("oms-default", "postStruct.__light_type"),
        ("dataworks", "version"),
        ("dataworks", "payload"),
        ("dataworks", "payload.op"),
        ("dataworks", "payload.scn"),
        ("dataworks", "payload.after"),
        ("dataworks", "payload.after.data"),
        ("dataworks", "payload.timestamp"),
        ("dataworks", "payload.timestamp.eventTime"),
        ("dataworks", "payload.ddl"),
        ("dataworks", "schema"),
        ("dataworks", "schema.source.dbName"),
        ("dataworks", "schema.column"),
        ("dataworks", "schema.pk"),
        ("shareplex", "meta"),
        ("shareplex", "meta.op"),
        ("shareplex", "meta.time"),
        ("shareplex", "meta.table"),
        ("shareplex", "meta.seq"),
        ("shareplex", "meta.scn"),
        ("shareplex", "data"),
    ],
)
def test_a_known_member_of_the_wrong_type_is_wrong_type(format: str, path: str) -> None:
    message = json.loads((CASES / format / "insert" / "value.json").read_bytes())

    with pytest.raises(DecodeError) as caught:
        DECODERS[format](None, replaced(message, path, [[1.5]]), None)

    assert caught.value.code == "wrong-type"


@pytest.mark.parametrize("time", ["2024-W10-1T12:00:07", "20240301T120007", "2024-03-01"])
def test_a_time_in_another_form_than_shareplexs_is_invalid(time: str) -> None:
    message = json.loads((CASES / "shareplex" / "insert" / "value.json").read_bytes())

    with pytest.raises(DecodeError) as caught:
        DECODERS["shareplex"](None, replaced(message, "meta.time", time), None)

    assert caught.value.code == "invalid-value"


@pytest.mark.parametrize("format", FORMATS)
def test_each_format_recognises_its_own_messages_and_no_other(format: str) -> None:
    for owner, messages in GOLDEN.items():
        for message in messages:
            sniffed = Sniffed(None, members.decode(message))

            assert load(format).recognises(sniffed) == (owner == format)


@pytest.mark.parametrize("format", FORMATS)
def test_events_of_one_table_share_types_and_key(format: str) -> None:
    case = "extend-insert" if format == "oms-default" else "insert"
    value = (CASES / format / case / "value.json").read_bytes()

    first, second = (DECODERS[format](None, value, None)[0] for _ in range(2))

    assert first.types is second.types
    assert first.key is second.key


def test_types_that_change_are_learnt_again() -> None:
    decode = decoder("oms-default")
    message = {"recordType": "INSERT", "allMetaData": {"db": "d", "table_name": "t"}}

    found = []
    for kind in ("TIMESTAMP", "VARCHAR", "TIMESTAMP"):
        image = {"a": "1606233662", "__light_type": {"a": {"schemaType": kind}}}
        found.append(decode(None, sent({**message, "postStruct": image}), None)[0].after)

    assert found == [
        {"a": "2020-11-24 16:01:02"},
        {"a": "1606233662"},
        {"a": "2020-11-24 16:01:02"},
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1590315269000", "2020-05-24 10:14:29"),
        ("1590315269000.5", "2020-05-24 10:14:29.5"),
        ("1590315269123.4", "2020-05-24 10:14:29.1234"),
        ("1.5E12", "1.5E12"),
        ("-1500", "1969-12-31 23:59:58.500"),
        ("0", "1970-01-01 00:00:00"),
        ("-1", "1969-12-31 23:59:59.999"),
        ("0.5", "1970-01-01 00:00:00.5"),
        ("-0.5", "-0.5"),
        ("-1500.25", "-1500.25"),
        ("100000000000000", "100000000000000"),
        ('"1590315269000"', "1590315269000"),
        ("true", "1"),
    ],
)
def test_bare_milliseconds(value: str, text: str) -> None:
    assert text == column("DATETIME", value)


def column(type_: str, json_value: str) -> str | None:
    """The text of a column of a type that a message sends so."""
    source = {"dbName": "d", "table": "t"}
    message = {
        "version": "2.0",
        "schema": {"source": source, "column": [{"name": "v", "type": type_}], "pk": []},
        "payload": {"op": "INSERT", "before": None, "after": {"data": {"v": "?"}}},
    }
    (event,) = DECODERS["dataworks"](None, sent(message).replace(b'"?"', json_value.encode()), None)
    return (event.after or {})["v"]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0000"), (2024, "2024"), ("0", "0000"), ("x", "x"), (None, None)]
)
def test_year_zero_has_four_digits(value: Any, text: Any) -> None:
    light = {"y": {"schemaType": "YEAR"}}
    message = {"recordType": "INSERT", "allMetaData": {"db": "d", "table_name": "t"}}
    extended = {**message, "postStruct": {"y": value, "__light_type": light}}
    untyped = {**message, "postStruct": {"y": value}}
    schema = decoder("oms-default", schema="CREATE TABLE t (y YEAR)")

    assert {"y": text} == DECODERS["oms-default"](None, sent(extended), None)[0].after
    assert {"y": text} == schema(None, sent(untyped), None)[0].after


@pytest.mark.parametrize("text", ["", "-", "-5.5", "5.", ".5", "²", "1.x", "1.²", "9" * 12])
def test_text_that_is_no_second_count_stays(text: str) -> None:
    assert text == column("TIMESTAMP", json.dumps(text))


@pytest.mark.parametrize(
    ("statement", "op"),
    [
        ("  -- why\n# and\n/* so */create table t (a int)", "create"),
        ("CREATE TEMPORARY TABLE t (a int)", "create"),
        ("alter table t rename to u", "alter"),
        ("alter database d", "query"),
        ("truncate t", "truncate"),
        ("drop view v", "query"),
        ("/* never closed", "query"),
        ("/**/" * 20_000, "query"),
        ("", "query"),
    ],
)
def test_ddl_op_by_first_words(statement: str, op: str) -> None:
    assert ddl_op(statement) == op
