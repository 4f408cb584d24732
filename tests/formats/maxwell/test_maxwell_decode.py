"""Maxwell's JSON beyond the golden cases: hostile members, cut messages, exact digits."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.codec.decoder import decoder
from headgate.core.errors import DecodeError, UsageError
from headgate.core.event import Event

ENVELOPE: dict[str, Any] = {
    "database": "shop",
    "table": "t",
    "type": "insert",
    "ts": 1449786310,
    "xid": 1,
    "commit": True,
    "data": {"id": 1, "name": "x"},
}
COLUMNS = "a SET('x','y'), b BIT(8), c DECIMAL(9,2), d JSON, e TIMESTAMP, shop.t.id INT"


def decode(
    message: dict[str, Any] | bytes, spec: str = "maxwell", key: bytes | None = None, **options: Any
) -> Event:
    value = message if isinstance(message, bytes) else json.dumps(message).encode()
    [event] = decoder(spec, **options)(key, value, None)
    return event


def code_of(message: dict[str, Any] | bytes, **options: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        decode(message, **options)
    return caught.value.code


@given(micros=st.integers(0, 4_102_444_800_000_000), digits=st.integers(1, 6))
def test_push_ts_is_exact_to_the_microsecond(micros: int, digits: int) -> None:
    micros -= micros % 10 ** (6 - digits)
    sent = f"{micros // 1_000_000}.{micros % 1_000_000:06}"[: 11 + digits + 6]
    value = json.dumps({**ENVELOPE, "push_ts": 0}).replace('"push_ts": 0', f'"push_ts": {sent}')

    assert decode(value.encode()).emit_time == micros


@given(
    number=st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40)
)
def test_every_number_keeps_its_digits(number: Decimal) -> None:
    sent = str(number)
    value = json.dumps(ENVELOPE).replace('"id": 1', f'"id": {sent}').encode()
    if "." not in sent and "E" not in sent:
        sent = str(int(sent))

    assert (decode(value).after or {})["id"] == sent


@given(
    before=st.dictionaries(st.sampled_from("abc"), st.text(max_size=3) | st.none(), min_size=3),
    after=st.dictionaries(st.sampled_from("abc"), st.text(max_size=3) | st.none(), min_size=3),
)
def test_the_row_before_an_update_is_complete(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    old = {n: before[n] for n in after if before[n] != after[n]}

    event = decode({**ENVELOPE, "type": "update", "data": after, "old": old})

    assert (event.before, event.after) == (before, after)


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"type": None}, "wrong-type"),
        ({"data": None}, "missing-member"),
        ({"data": [{"id": 1}]}, "wrong-type"),
        ({"data": "x"}, "wrong-type"),
        ({"ts": "soon"}, "wrong-type"),
        ({"ts": 2**63}, "wrong-type"),
        ({"xid": [1]}, "wrong-type"),
        ({"primary_key_columns": "id"}, "wrong-type"),
        ({"primary_key_columns": [1]}, "wrong-type"),
        ({"encrypted": None}, "encrypted"),
        ({"type": "table-create", "def": []}, "wrong-type"),
        ({"type": "table-create", "def": {"columns": [1]}}, "wrong-type"),
        ({"type": "table-create", "def": {"columns": [{"name": 1}]}}, "wrong-type"),
    ],
)
def test_a_member_of_the_wrong_kind_is_refused(members: dict[str, Any], code: str) -> None:
    assert code_of({**ENVELOPE, **members}) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"", "empty-value"),
        (b"[]", "wrong-type"),
        (b"{}", "missing-member"),
        (b'{"type":"insert","mine":"\xff"}', "invalid-utf8"),
        (b'{"type":"insert","data":' + b"[" * 100_000, "too-deep"),
        (b'{"type":"insert","data":{"a":' + b"1" * 5000 + b"}}", "wrong-type"),
    ],
)
def test_bytes_that_are_no_message_say_why(value: bytes, code: str) -> None:
    assert code_of(value) == code


def test_a_bit_that_is_no_base64_is_refused() -> None:
    message = {**ENVELOPE, "data": {"b": "*"}}

    assert code_of(message, columns="b BIT(8)") == "invalid-binary"


def test_an_error_does_not_carry_the_payload() -> None:
    secret = "4111111111111111"
    for members in ({"data": secret}, {"data": [secret]}, {"xid": {"card": secret}}):
        with pytest.raises(DecodeError) as caught:
            decode({**ENVELOPE, **members})
        assert secret not in str(caught.value)


def test_a_list_of_columns_that_cannot_be_read_is_refused_before_the_first_message() -> None:
    with pytest.raises(UsageError, match="columns"):
        decoder("maxwell", columns="tags")


def test_events_of_one_table_share_their_key() -> None:
    decode_one = decoder("maxwell")
    value = json.dumps({**ENVELOPE, "primary_key_columns": ["id"]}).encode()

    assert decode_one(None, value, None)[0].key is decode_one(None, value, None)[0].key


@pytest.mark.parametrize("spec", ["maxwell", "maxwell:oms"])
def test_year_zero_has_four_digits(spec: str) -> None:
    message = {**ENVELOPE, "type": "update", "data": {"y": 0}, "old": {"y": 2024}}
    for told in ({"columns": "y YEAR"}, {"schema": "CREATE TABLE shop.t (y YEAR)"}):
        event = decode(message, spec, **told)

        assert ({"y": "2024"}, {"y": "0000"}) == (event.before, event.after)
    assert {"y": "0"} == decode(message, spec).after


def test_a_push_time_before_year_one_is_kept_as_text() -> None:
    event = decode({**ENVELOPE, "push_ts": -99_999_999_999})

    assert event.emit_time is None
    assert event.extra
    assert "-99999999999" == event.extra["push_ts"]
