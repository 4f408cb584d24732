"""Types that only DDL in the stream tells: values are then what they are with a schema file."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from paths import REPRO

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.loss_samples import DATABASE, SCHEMA, TABLE, TOPIC, specimens
from headgate.codec.schemas import Schemas
from headgate.core.event import Event

CREATE = Event("ddl", "create", DATABASE, TABLE, ddl=SCHEMA)


def lines(name: str) -> list[bytes]:
    return (REPRO / name).read_bytes().splitlines()


def converted(messages: list[bytes], source: str, target: str, **options: Any) -> list[Any]:
    """What a conversion writes of the rows, and all that it lost."""
    decode, encoder = decoder(source), Encoder(target, **options)
    found = [encoder(event) for message in messages for event in decode(None, message, None)]
    assert [] == [outcome.error for outcome in found if outcome.error]
    return [msgspec.json.decode(r.value) for o in found for r in o.records if r.value]


def test_maxwells_arrays_and_documents_are_values_of_the_types_that_ddl_tells() -> None:
    found = converted(lines("mx-set.jsonl"), "maxwell", "canal-json:oms")

    assert [
        {"id": 1, "s": "r,g", "j": '"123"'},
        {"id": 2, "s": "", "j": "true"},
        {"id": 3, "s": "r", "j": '"null"'},
        {"id": 4, "s": "r", "j": '{"a":1}'},
    ] == [m["data"][0] for m in found if m.get("data")]


def test_maxwells_rows_come_back_as_they_were() -> None:
    sent = [msgspec.json.decode(line) for line in lines("mx-set.jsonl")[1:]]
    found = converted(lines("mx-set.jsonl"), "maxwell", "maxwell")

    assert [m["data"] for m in sent] == [m["data"] for m in found if m["type"] == "insert"]


def test_debeziums_encodings_are_read_once_ddl_tells_the_types() -> None:
    found = converted(lines("dz-ns-ddl.jsonl"), "debezium", "canal-json")

    assert [
        {"a": "1", "b": "dup", "c": "1.10"},
        {
            "id": "1", "i": "5", "v": "dv", "d": "1.500", "dt": "2020-01-01 00:00:00",
            "ts": "2020-01-01 00:00:00", "bt": "5", "e": "2", "b": "1", "nn": "7",
        },
    ] == [m["data"][0] for m in found if m.get("data")]  # fmt: skip


def test_debeziums_table_changes_tell_what_the_statement_does_not() -> None:
    sent = [msgspec.json.decode(line) for line in lines("dz-ns-ddl.jsonl")]
    for message in sent:
        if "ddl" in message:
            message["ddl"] = "ALTER TABLE t_def SOMETHING NOBODY KNOWS"
    found = converted(list(map(msgspec.json.encode, sent)), "debezium", "canal-json")

    rows = [m for m in found if m.get("data")]
    assert ["1.10", "1.500"] == [rows[0]["data"][0]["c"], rows[1]["data"][0]["d"]]
    assert "enum('a','b')" == rows[1]["mysqlType"]["e"]


def test_scientific_notation_becomes_a_decimal() -> None:
    (row,) = [m for m in converted(lines("mx-sci.jsonl"), "maxwell", "debezium") if "payload" in m
              and m["payload"].get("op")]  # fmt: skip

    assert {"id": 1, "d": "AQ=="} == row["payload"]["after"]


@pytest.mark.parametrize(
    ("type_", "sent"), [("decimal(5,2)", "no number!"), ("bit(3)", "?"), ("blob", "?")]
)
def test_a_value_that_is_none_of_its_type_is_not_believed_to_be(type_: str, sent: str) -> None:
    encoder = Encoder("canal-json")
    encoder.learn(Event("ddl", "create", "d", "t", ddl=f"CREATE TABLE t (id INT, c {type_})"))
    event = Event("row", "insert", "d", "t", after={"id": "1", "c": sent}, format="debezium")

    outcome = encoder(event)
    message = msgspec.json.decode(outcome.records[0].value)
    assert [{"id": "1", "c": sent}] == message["data"]
    assert type_ != message["mysqlType"].get("c")
    assert "untyped" in outcome.lost
    assert {"id": "1", "c": sent} == event.after
    assert event.types is None


def test_the_sources_options_count_for_what_ddl_tells() -> None:
    ddl = Event("ddl", "create", "d", "t", ddl="CREATE TABLE t (p DECIMAL(9,2), b BLOB, t TIME)")
    options = {
        "decimal-handling-mode": "string",
        "binary-handling-mode": "hex",
        "time-precision-mode": "connect",
    }
    known = Schemas(None, options)
    known.learn(ddl)
    event = Event("row", "insert", "d", "t", after={"p": "1234", "b": "6A", "t": "3600000"})
    event.format, event.dialect, event.extra = "debezium", "debezium", {"numbers": '["t"]'}

    assert [] == known.complete(event)
    assert {"p": "1234.00", "b": "ag==", "t": "01:00:00"} == event.after
    assert event.extra is None


SOURCES = [
    ("debezium", {"schemas_enable": False}),
    ("debezium", {}),
    ("debezium:oms-flatten", {}),
    ("debezium-smt", {"schemas_enable": False}),
    ("maxwell", {}),
    ("maxwell:oms", {}),
    ("canal-json:canal", {}),
    ("canal-json:tencent", {}),
    ("oms-default", {}),
    ("shareplex", {}),
    ("open-protocol", {}),
]


@pytest.mark.parametrize(("source", "options"), SOURCES, ids=str)
def test_ddl_in_the_stream_tells_as_much_as_a_schema_file(
    source: str, options: dict[str, Any]
) -> None:
    """Same bytes from all three: known to the decoder, known to the encoder, learnt from DDL."""
    name, _, dialect = source.partition(":")
    rows = [e for e in specimens(name, dialect or "any") if e.kind == "row" and not e.schema]
    messages = [r for e in rows for r in Encoder(source, **options)(e).records if r.value]
    told = {} if name not in ("debezium-smt",) else {"database": DATABASE, "table": TABLE}
    plain, file = decoder(source, **told), decoder(source, schema=SCHEMA, **told)
    for target in ("canal-json:ticdc", "debezium", "maxwell", "open-protocol"):
        known, taught, after_file = Encoder(target, schema=SCHEMA), Encoder(target), Encoder(target)
        taught.learn(CREATE)
        for message in messages:
            sent = (message.key, message.value, TOPIC)
            expected = [known(e) for e in plain(*sent)]
            assert expected == [taught(e) for e in plain(*sent)]
            found = [after_file(e) for e in file(*sent)]
            assert [e.records for e in expected] == [e.records for e in found]
