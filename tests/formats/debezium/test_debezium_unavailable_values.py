"""Debezium's placeholder for a value that the log did not hold is never written as a value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialects import SPECS

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.core.event import Event

TEXT = "__debezium_unavailable_value"
BASE64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
FORMS = {
    "text": TEXT,
    "base64": BASE64,
    "hexadecimal": TEXT.encode().hex(),
    "array": [TEXT],
    "bytes-array": [BASE64],
    "numbers": [*TEXT.encode()],
    "map": {TEXT: TEXT},
}
OTHERS = [spec for spec in SPECS if not spec.startswith("debezium") or ":oms" in spec]


def envelope(body: Any, before: Any = None, fields: list[dict[str, Any]] | None = None) -> bytes:
    source = {"connector": "mysql", "name": "shop", "db": "shop", "table": "t", "ts_ms": 1000}
    after = {"id": 1, "body": body}
    message = {"before": before, "after": after, "source": source, "op": "u", "ts_ms": 1001}
    if fields is None:
        return json.dumps(message, separators=(",", ":")).encode()
    image = {"type": "struct", "field": "after", "fields": fields}
    schema = {"type": "struct", "fields": [image, {"type": "string", "field": "op"}]}
    return json.dumps({"schema": schema, "payload": message}).encode()


def read(value: bytes, **options: Any) -> Event:
    return decoder("debezium", **options)(b'{"id":1}', value, "shop.shop.t")[0]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_column_is_absent_and_debezium_writes_the_placeholder_again(form: Any) -> None:
    event = read(envelope(form))
    outcome = Encoder("debezium", schemas_enable=False)(event)

    assert event.after == {"id": "1"}
    assert json.loads(outcome.records[0].value)["after"] == {"id": 1, "body": form}
    assert "incomplete" not in outcome.lost


@pytest.mark.parametrize("spec", OTHERS)
def test_no_other_dialect_writes_it_and_the_loss_is_counted(spec: str) -> None:
    for form in (TEXT, BASE64, FORMS["hexadecimal"]):
        outcome = Encoder(spec)(read(envelope(form)))
        written = b"".join((record.key or b"") + record.value for record in outcome.records)

        assert b"unavailable" not in written
        assert BASE64.encode() not in written
        assert b"5f5f64" not in written.lower()
        assert "incomplete" in outcome.lost
        assert Encoder(spec, strict=True)(read(envelope(form))).error[0] == "lossy"


def test_a_binary_column_with_a_schema() -> None:
    fields = [{"type": "int32", "field": "id"}, {"type": "bytes", "field": "body"}]
    event = read(envelope(BASE64, fields=fields))
    written = json.loads(Encoder("debezium")(event).records[0].value)

    assert event.after == {"id": "1"}
    assert written["payload"]["after"]["body"] == BASE64
    assert ["id", "body"] == [f["field"] for f in written["schema"]["fields"][1]["fields"]]


def test_the_transform_writes_it_again() -> None:
    outcome = Encoder("debezium-smt", schemas_enable=False)(read(envelope(TEXT)))
    row = outcome.records[0].value
    event = decoder("debezium-smt")(b'{"id":1}', row, "shop.shop.t")[0]

    assert json.loads(row)["body"] == TEXT
    assert event.after == {"id": "1"}
    assert b'"body":"__debezium_un' in Encoder("debezium")(event).records[0].value


def test_a_column_that_did_not_change_does_not_look_changed() -> None:
    event = read(envelope(TEXT, before={"id": 1, "body": "old text"}))
    canal = json.loads(Encoder("canal-json")(event).records[0].value)
    again = json.loads(Encoder("debezium", schemas_enable=False)(event).records[0].value)

    assert (canal["data"], canal["old"]) == ([{"id": "1"}], [{}])
    assert again["before"] == {"id": 1, "body": "old text"}


def test_the_connectors_own_placeholder() -> None:
    event = read(envelope("(unknown)"), unavailable_value_placeholder="(unknown)")

    assert event.after == {"id": "1"}
    assert read(envelope("(unknown)")).after == {"id": "1", "body": "(unknown)"}
