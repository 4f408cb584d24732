"""Values of Debezium: booleans, labels with commas, binary declared as text, tables with dots."""

from __future__ import annotations

import json
from typing import Any

import pytest
from paths import REPRO

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.schemas import Schemas
from headgate.core.event import Event

SCHEMA = "CREATE TABLE live.t_int (id BIGINT PRIMARY KEY, b1 TINYINT(1), bo BOOLEAN)"


def lines(name: str) -> list[bytes]:
    return [line for line in (REPRO / name).read_bytes().splitlines() if line]


def converted(name: str, **options: Any) -> list[dict[str, Any]]:
    """The messages of a stream written as Debezium again; DDL tells the types of what follows."""
    decode, encoder = decoder("debezium"), Encoder("debezium", schemas_enable=False, **options)
    return [
        json.loads(encoder(event).records[0].value)
        for line in lines(name)
        for event in decode(None, line, None)
    ]


@pytest.mark.parametrize(
    ("name", "options"), [("dz-bool.jsonl", {}), ("dz-bool2.jsonl", {"schema": SCHEMA})]
)
def test_numbers_stay_numbers_and_booleans_booleans(name: str, options: Any) -> None:
    sent = [json.loads(line) for line in lines(name)]
    images = [(old["after"], new["after"]) for old, new in zip(sent, converted(name, **options))
              if "after" in old]  # fmt: skip

    assert [0, -1] == [old["b1"] for old, _ in images]
    for old, new in images:
        assert (old["b1"], old["bo"]) == (new["b1"], new["bo"])
        assert (type(old["b1"]), type(old["bo"])) == (type(new["b1"]), type(new["bo"]))


@pytest.mark.parametrize("schema", [None, "CREATE TABLE d.t (id INT PRIMARY KEY, f TINYINT(1))"])
@pytest.mark.parametrize(("wire", "value"), [("boolean", True), ("int16", -1), ("boolean", None)])
def test_a_schema_block_says_which_of_them_is_a_boolean(
    wire: str, value: Any, schema: str | None
) -> None:
    fields = [{"type": "int32", "field": "id"}, {"type": wire, "field": "f"}]
    message = envelope({"id": 1, "f": value}, fields)
    event = decoder("debezium", **({"schema": schema} if schema else {}))(None, message, None)[0]
    written = json.loads(Encoder("debezium")(event).records[0].value)

    assert written["payload"]["after"]["f"] is value or written["payload"]["after"]["f"] == value
    assert written["schema"]["fields"][1]["fields"][1]["type"] == wire


def envelope(after: dict[str, Any], fields: list[dict[str, Any]] | None = None) -> bytes:
    source = {"connector": "mysql", "name": "p", "db": "d", "table": "t", "ts_ms": 1000}
    message = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": 1001}
    if fields is None:
        return json.dumps(message).encode()
    image = {"type": "struct", "field": "after", "fields": fields}
    schema = {"type": "struct", "fields": [image, {"type": "string", "field": "op"}]}
    return json.dumps({"schema": schema, "payload": message}).encode()


def test_a_comma_in_an_enums_label() -> None:
    (line,) = lines("dz-enum.jsonl")
    event = decoder("debezium")(None, line, None)[0]
    images = [image for image in (event.before, event.after) if image]
    again = json.loads(Encoder("debezium")(event).records[0].value)
    canal = json.loads(Encoder("canal-json")(event).records[0].value)

    assert event.types is not None
    assert event.types["e"].mysql is not None
    assert event.types["e"].mysql.startswith("enum('a','b','it''s','x,y','','é'")
    assert "x,y" in [image["e"] for image in images]
    assert r"x\,y" in [(again["payload"][i] or {}).get("e") for i in ("before", "after")]
    assert r"it's,x\,y,,é" in json.dumps(again["schema"], ensure_ascii=False).replace("\\\\", "\\")
    assert "4" in [row["e"] for row in canal["data"]]  # the fourth label


def test_a_comma_in_an_enums_label_that_a_schema_tells() -> None:
    decode = decoder("debezium", schema="CREATE TABLE d.t (id INT, e ENUM('a','x,y'))")
    event = decode(None, envelope({"id": 1, "e": r"x\,y"}), None)[0]

    assert event.after == {"id": "1", "e": "x,y"}


BINARY = "CREATE TABLE d.t (id INT, b VARBINARY(9), v VARCHAR(9) CHARACTER SET binary)"


def test_binary_that_was_declared_as_text() -> None:
    fields = [
        {"type": "int32", "field": "id"},
        {"type": "bytes", "field": "b"},
        {"type": "string", "field": "v"},
    ]
    message = envelope({"id": 1, "b": "AP8=", "v": "\x00ÿ"}, fields)
    event = decoder("debezium", schema=BINARY)(None, message, None)[0]

    assert event.after == {"id": "1", "b": "AP8=", "v": "AP8="}
    assert event.types is not None
    assert event.types["v"].mysql == "varbinary(9)"


def test_a_row_whose_binary_nobody_can_tell_is_no_dead_letter() -> None:
    event = decoder("debezium", schema=BINARY)(None, envelope({"id": 1, "v": "\x00ÿ"}), None)[0]

    assert (event.kind, event.after) == ("row", {"id": "1", "v": "\x00ÿ"})
    assert event.types is not None
    assert "v" not in event.types


@pytest.mark.parametrize("topic", ["p.live.Odd.T_ble", "my.prefix.live.Odd.T_ble"])
def test_a_table_whose_name_has_a_dot(topic: str) -> None:
    schema = "CREATE TABLE live.`Odd.Täble` (id INT PRIMARY KEY); CREATE TABLE live.t (id INT)"
    decode = decoder("debezium-smt", schema=schema)
    event: Event = decode(b'{"id":1}', b'{"id":1,"__deleted":"false"}', topic)[0]
    told = decode(None, b'{"id":1,"__deleted":"false"}', "p.live.t")[0]

    assert (event.database, event.table) == ("live", "Odd.Täble")
    assert (told.database, told.table) == ("live", "t")
    assert Schemas(schema).table(event.database, event.table) is not None
