"""OMS Default, DataWorks and SharePlex: any bytes give events or a DecodeError, nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import CASES

from headgate.codec.decoder import decoder
from headgate.core.errors import DecodeError
from headgate.core.event import Event
from headgate.core.json import Number, members
from headgate.formats import load
from headgate.formats._oms import decode_values as oms
from headgate.formats.base import Sniffed
from headgate.schema.statement import ddl_op

FORMATS = ("oms-default", "dataworks", "shareplex")
GOLDEN = {
    format: [p.read_bytes() for p in sorted((CASES / format).glob("*/value.json"))]
    for format in FORMATS
}
DECODERS = {format: decoder(format) for format in FORMATS}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["²", "-", "1.", "99999999999999999999", "null", "TIMESTAMP", "BIT", "DATE"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
columns = st.dictionaries(st.sampled_from("abcd"), json_values, max_size=4)
type_names = st.sampled_from(
    ["TIMESTAMP", "DATETIME", "DATE", "DECIMAL", "BIT", "INT64", "BLOB", "", "x(1"]
)
column_types = st.dictionaries(st.sampled_from("abcd"), type_names, max_size=4)


def decoded(format: str, value: bytes) -> list[Event] | None:
    """The events, or None for a DecodeError; anything else fails the test."""
    try:
        events = DECODERS[format](None, value, None)
    except DecodeError:
        return None
    assert events
    for event in events:
        for image in (event.before or {}, event.after or {}, event.extra or {}):
            assert all(v is None or isinstance(v, str) for v in image.values())
        assert all(isinstance(v, str) for v in (event.position or {}).values())
        assert event.commit_ts is None or -(2**63) <= event.commit_ts < 2**63
    return events


def sent(message: Any) -> bytes:
    return json.dumps(message).encode()


def some(*members: str) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of these members, of any type."""
    return st.dictionaries(st.sampled_from(members), json_values, max_size=len(members))


@given(
    st.sampled_from(["INSERT", "UPDATE", "DELETE", "DDL", "HEARTBEAT", "x"]),
    some("db", "table_name", "record_primary_key", "timestamp", "storeDataSequence", "checkpoint",
         "dbType", "ddlType", "new"),
    columns | json_values,
    columns | json_values,
    column_types | json_values,
)  # fmt: skip
def test_any_oms_default_message_gives_events_or_a_decode_error(
    kind: str, meta: Any, prev: Any, post: Any, light: Any
) -> None:
    if isinstance(post, dict) and isinstance(light, dict):
        post = {**post, "__light_type": {n: {"schemaType": t} for n, t in light.items()}}

    decoded(
        "oms-default",
        sent({"recordType": kind, "allMetaData": meta, "prevStruct": prev, "postStruct": post}),
    )


@given(
    st.sampled_from(["INSERT", "UPDATE", "DELETE", "ALTER", "GTID", "HEARTBEAT", "x"]),
    column_types,
    columns,
    columns,
    some("eventTime", "systemTime", "checkpointTime"),
    json_values,
    json_values,
)
def test_any_dataworks_message_gives_events_or_a_decode_error(
    op: str, types: Any, before: Any, after: Any, times: Any, scn: Any, extend: Any
) -> None:
    column = [{"name": n, "type": t} for n, t in types.items()]
    payload = {"op": op, "before": {"data": before}, "after": {"data": after}}
    for image in {"INSERT": ("before",), "DELETE": ("after",)}.get(op, ()):
        payload[image] = None  # type: ignore[assignment]

    decoded(
        "dataworks",
        sent({
            "version": "2.0",
            "schema": {"source": {"dbName": "d"}, "column": column, "pk": ["a"]},
            "payload": {**payload, "timestamp": times, "scn": scn},
            "extend": extend,
        }),
    )  # fmt: skip


@given(
    st.sampled_from(["ins", "upd", "del", "ddl", "heartbeat", "x"]),
    some("table", "time", "posttime", "seq", "idx", "size", "rowid", "trans", "scn"),
    columns | json_values,
    columns | json_values,
    json_values,
)
def test_any_shareplex_message_gives_events_or_a_decode_error(
    op: str, meta: Any, data: Any, key: Any, sql: Any
) -> None:
    message = {"meta": {**meta, "op": op}, "data": data}
    if key is not None:
        message["key"] = key
    if op == "ddl":
        message["sql"] = {"ddl": sql}

    decoded("shareplex", sent(message))


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_mutated_golden_messages_give_events_or_a_decode_error(
    format: str, data: st.DataObject
) -> None:
    golden = bytearray(data.draw(st.sampled_from(GOLDEN[format])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(golden) - 1))
        golden[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))

    decoded(format, bytes(golden))


@pytest.mark.parametrize("format", FORMATS)
def test_truncation_anywhere_is_malformed_json(format: str) -> None:
    whole = (CASES / format / "insert" / "value.json").read_bytes().strip()

    for end in range(len(whole)):
        with pytest.raises(DecodeError) as caught:
            DECODERS[format](None, whole[:end], None)
        assert caught.value.code in ("malformed-json", "empty-value")


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
        (1590315269000, "2020-05-24 10:14:29"),
        (Number("1590315269000.5"), "2020-05-24 10:14:29.5"),
        (Number("1590315269123.4"), "2020-05-24 10:14:29.1234"),
        (Number("1.5E12"), Number("1.5E12")),
        (-1500, "1969-12-31 23:59:58.500"),
        (0, "1970-01-01 00:00:00"),
        (-1, "1969-12-31 23:59:59.999"),
        (Number("0.5"), "1970-01-01 00:00:00.5"),
        (Number("-0.5"), Number("-0.5")),
        (Number("-1500.25"), Number("-1500.25")),
        (10**14, 10**14),
        ("1590315269000", "1590315269000"),
        (True, True),
    ],
)
def test_bare_milliseconds(value: Any, text: Any) -> None:
    assert oms.epoch_millis(value) == text


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
    assert oms.epoch_seconds(text) == text


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
