"""Values, names and rows out of proportion: refused, or read in linear time."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from typing import Any

import pytest
from messages import canal, maxwell

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.event_lines import line
from headgate.core import values
from headgate.core.event import Event
from headgate.core.limits import MAX_MESSAGE_BYTES


def events(spec: str, value: bytes | None, key: bytes | None = None, **options: Any) -> list[Event]:
    found = decode_message(decoder(spec, **options), key, value, None, MAX_MESSAGE_BYTES)
    for event in found:
        line(event)  # what cannot be printed is as bad as what cannot be decoded
    return found


def code(event: Event) -> str | None:
    return event.error[0] if event.error else None


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (canal(id=None, mysqlType={"id": "bit(8)"}, data=[{"id": "%s"}]), {}),
        (maxwell(data={"id": "%s"}), {"columns": "id BIT(8)"}),
    ],
    ids=["canal-json:oms", "maxwell"],
)
def test_a_bit_of_thousands_of_bytes_is_invalid(value: bytes, options: dict[str, str]) -> None:
    spec = "maxwell" if options else "canal-json:oms"
    long = value.replace(b"%s", b64encode(b"\xff" * 3_000))

    assert "invalid-value" == code(events(spec, long, **options)[0])


def nameless_columns(count: int) -> tuple[bytes, bytes]:
    new = ",".join(f'"c{i}":{{"t":3,"f":{i},"v":null}}' for i in range(count))
    old = ",".join(f'"t":3,"f":{i},"v":1' for i in range(count))
    key = b'{"ts":1,"scm":"a","tbl":"b","t":1}'
    body = f'{{"u":{{{new}}},"p":{{{old}}}}}'.encode()
    version = (1).to_bytes(8, "big")
    return version + len(key).to_bytes(8, "big") + key, len(body).to_bytes(8, "big") + body


def test_hostile_texts_cost_linear_time() -> None:
    started = time.process_time()
    values.labels("enum('" + "\\'" * 1_000_000)
    values.plain("1" * 1_000_000 + "Ex")
    digits = json.dumps({"op": "c", "after": {"n": "1" * 1_000_000 + "x"}}).encode()
    assert "invalid-value" == code(events("debezium", digits, columns="n DECIMAL(9,2)")[0])
    key, value = nameless_columns(20_000)
    assert "update" == events("open-protocol", value, key)[0].op
    row = {f"c{i}": 1 for i in range(20_000)} | {f"n{i}": [] for i in range(20_000)}
    events("maxwell", maxwell(data=row), json.dumps({f"pk.x{i}": 1 for i in row}).encode())

    assert time.process_time() - started < 5


def test_rows_that_share_more_than_any_producer_writes_are_refused() -> None:
    message = canal(sql="s" * 1_000_000, data=[{"id": "1"}] * 2_000)

    assert "too-large" == code(events("canal-json", message)[0])
