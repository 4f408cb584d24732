"""Canal's JSON beyond the golden cases: hostile members, cut messages, rows that must not mix."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import canal

from headgate.codec.decoder import decoder
from headgate.core.errors import DecodeError, UsageError
from headgate.core.event import Event

ENVELOPE: dict[str, Any] = {
    "data": [{"id": "1", "name": "x"}],
    "database": "d",
    "es": 1589373515000,
    "id": 7,
    "isDdl": False,
    "mysqlType": {"id": "int", "name": "varchar(20)"},
    "old": None,
    "pkNames": ["id"],
    "sql": "",
    "sqlType": {"id": 4, "name": 12},
    "table": "t",
    "ts": 1589373515477,
    "type": "INSERT",
}


def decode(
    message: dict[str, Any] | bytes, spec: str = "canal-json", **options: Any
) -> list[Event]:
    value = message if isinstance(message, bytes) else json.dumps(message).encode()
    return decoder(spec, **options)(None, value, None)


def code_of(message: dict[str, Any] | bytes, spec: str = "canal-json", **options: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        decode(message, spec, **options)
    return caught.value.code


ROW = st.fixed_dictionaries({n: st.none() | st.text(max_size=5) for n in "abc"})


@settings(max_examples=examples(100), deadline=None)
@given(pairs=st.lists(st.tuples(ROW, ROW), min_size=1, max_size=5), leak=st.booleans())
def test_the_before_image_of_each_row_is_its_own(
    pairs: list[tuple[dict[str, Any], dict[str, Any]]], leak: bool
) -> None:
    changed: set[str] = set()
    old = []
    for before, after in pairs:
        changed = (changed if leak else set()) | {n for n in after if before[n] != after[n]}
        old.append({n: before[n] for n in changed})
    message = {**ENVELOPE, "type": "UPDATE", "mysqlType": None, "sqlType": None}

    events = decode({**message, "data": [after for _, after in pairs], "old": old})

    assert [(e.before, e.after) for e in events] == pairs
    assert [(e.position or {}).get("row") for e in events] == (
        [None] if len(pairs) == 1 else [str(i) for i in range(len(pairs))]
    )


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"type": None}, "wrong-type"),
        ({"isDdl": "yes"}, "wrong-type"),
        ({"data": {"id": "1"}}, "wrong-type"),
        ({"data": [None]}, "wrong-type"),
        ({"data": [["id"]]}, "wrong-type"),
        ({"data": None, "old": [{"id": "1"}]}, "missing-member"),
        ({"data": None}, "missing-member"),
        ({"mysqlType": ["int"]}, "wrong-type"),
        ({"sqlType": {"id": 2**31}}, "wrong-type"),
        ({"sqlType": {"id": "4"}}, "wrong-type"),
        ({"pkNames": "id"}, "wrong-type"),
        ({"es": 2**63}, "wrong-type"),
        ({"_tidb": 1}, "wrong-type"),
        ({"mysqlType": {"id": "bit"}, "data": [{"id": "="}]}, None),
        ({"data": None, "old": [None], "type": "DELETE"}, "wrong-type"),
    ],
)
def test_a_member_of_the_wrong_kind_names_itself(members: dict[str, Any], code: str | None) -> None:
    message = {**ENVELOPE, **members}
    if code is None:
        assert decode(message)
    else:
        assert code_of(message) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"", "empty-value"),
        (b"\r\n", "empty-value"),
        (b"[]", "wrong-type"),
        (b"{}", "missing-member"),
        (b"\xef\xbb\xbf{}", "malformed-json"),
        (b'{"type":"INSERT"} x', "malformed-json"),
        (b'{"type":"\xff"}', "invalid-utf8"),
        (b'{"type":"INSERT","x":"\xff"}', "invalid-utf8"),
        (b'{"type":"\\ud800"}', "malformed-json"),
        (b'{"type":"INSERT","data":[{"a":' + b"[" * 100_000, "too-deep"),
        (b"\x04\x22\x4d\x18junk", "malformed-compression"),
    ],
)
def test_bytes_that_are_no_message_say_why(value: bytes, code: str) -> None:
    assert code_of(value) == code


def test_an_error_does_not_carry_the_payload() -> None:
    secret = "4111111111111111"
    for members in ({"data": secret}, {"type": {"card": secret}}, {"mysqlType": {"id": [secret]}}):
        with pytest.raises(DecodeError) as caught:
            decode({**ENVELOPE, **members})
        assert secret not in str(caught.value)


def test_an_unended_string_of_escaped_quotes_is_refused_at_once() -> None:
    assert code_of(b'{"type":"QUERY","sql":"\n' + b'\\"' * 300_000) == "malformed-json"


def test_raw_control_characters_inside_strings_are_read() -> None:
    value = b'{"type":"QUERY","isDdl":true,"id":0,\n\t"sql":"a\n\tb\x01 \\n \\" c"}'

    assert decode(value)[0].ddl == 'a\n\tb\x01 \n " c'


def test_a_backslash_before_a_raw_line_break_is_not_mended() -> None:
    assert code_of(b'{"type":"QUERY","isDdl":true,"sql":"a\\\nb"}') == "malformed-json"


def test_more_rows_than_the_ceiling_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.formats.canal_json.decode.MAX_EVENTS_PER_MESSAGE", 2)

    assert len(decode({**ENVELOPE, "data": [{"id": "1"}] * 2})) == 2
    assert code_of({**ENVELOPE, "data": [{"id": "1"}] * 3}) == "too-large"


@pytest.mark.parametrize("name", ["lz4", "snappy"])
def test_a_small_message_that_unpacks_into_a_huge_one_is_refused(name: str) -> None:
    body = b" " * 5_000_000 + json.dumps(ENVELOPE).encode()
    if name == "lz4":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "lz4") as stream:
            stream.write(body)
        packed = sink.getvalue().to_pybytes()
    else:
        packed = pa.compress(body, "snappy", asbytes=True)

    assert len(decode(packed, compression=name)) == 1
    assert code_of(packed, compression=name, max_message_bytes=1_000_000) == "too-large"


def test_events_of_one_table_share_their_types() -> None:
    decode_one = decoder("canal-json")
    value = json.dumps(ENVELOPE).encode()

    first, second = decode_one(None, value, None)[0], decode_one(None, value, None)[0]

    assert first.types is second.types
    assert first.key is second.key


def test_set_masks_that_only_look_like_digits_stay() -> None:
    message = {**ENVELOPE, "mysqlType": {"s": "set('a','b')"}, "data": [{"s": "²"}]}

    assert decode(message)[0].after == {"s": "²"}


def test_columns_that_the_type_maps_do_not_name_are_kept() -> None:
    assert decode({**ENVELOPE, "data": [{"new": "1"}]})[0].after == {"new": "1"}


def test_an_unknown_option_or_dialect_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="compression"):
        decoder("canal-json", compresion="lz4")
    with pytest.raises(UsageError, match="ticdc"):
        decoder("canal-json:tidcd")


class TestOrderOfTypeMaps:
    """TiCDC writes `mysqlType` in another order each time; what it means is the same."""

    def test_rows_of_a_table_share_one_map_of_types(self) -> None:
        run = decoder("canal-json:ticdc")
        names = [f"c{n}" for n in range(20)]
        message = ENVELOPE | {"data": [dict.fromkeys(names)], "sqlType": dict.fromkeys(names, 4)}
        orders = [random.Random(n).sample(names, len(names)) for n in range(9)]
        sent = [message | {"mysqlType": dict.fromkeys(order, "int")} for order in orders]
        events = [run(None, json.dumps(each).encode(), None)[0] for each in sent]

        assert {id(e.types) for e in events} == {id(events[0].types)}
        assert list(events[0].types or ()) == names, "the order of sqlType"

    def test_another_type_is_another_map(self) -> None:
        run = decoder("canal-json:ticdc")
        types: list[dict[str, str]] = [{"id": "int", "b": "blob"}, {"b": "text", "id": "int"}]
        message = ENVELOPE | {"data": [{"id": "1", "b": "x"}], "sqlType": {"id": 4, "b": 2004}}
        sent = [message | {"mysqlType": each} for each in (*types, *types)]
        rows = [run(None, json.dumps(each).encode(), None)[0].after for each in sent]

        assert rows == [{"id": "1", "b": "eA=="}, {"id": "1", "b": "x"}] * 2

    def test_without_codes_its_order_is_the_columns(self) -> None:
        run = decoder("canal-json")
        types = [{"id": "int", "name": "text"}, {"name": "text", "id": "int"}]
        sent = [ENVELOPE | {"mysqlType": each, "sqlType": None} for each in types]
        events = [run(None, json.dumps(each).encode(), None)[0] for each in sent]

        assert [list(e.types or ()) for e in events] == [["id", "name"], ["name", "id"]]


def test_set_labels_that_canal_lost_are_those_of_the_schema() -> None:
    value = canal(data=[{"s": "1"}], mysqlType={"s": "set('?','?')"}, pkNames=None)
    decode = decoder("canal-json", schema="CREATE TABLE shop.orders (s SET('😀','😁'))")

    assert decode(None, value, None)[0].after == {"s": "😀"}
