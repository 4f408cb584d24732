"""Formats that people name or send and that Headgate does not decode are refused by their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import DETECTABLE, READABLE, content
from command_line import events_of, run
from paths import REPRO

from headgate.core.errors import UsageError
from headgate.formats import split
from headgate.formats.foreign import FOREIGN, NO_FORMATS, refusal

NAMES = {
    "aws-dms.jsonl": "a record of AWS DMS",
    "bottledwater-wal2json.jsonl": "wal2json",
    "canal-protobuf.parquet": "Canal's Protobuf",
    "confluent-protobuf.parquet": "Avro or Protobuf of a schema registry",
    "datastream-gcp.jsonl": "Google Datastream's JSON",
    "dbz-avro.parquet": "Avro or Protobuf of a schema registry",
    "dbz-cloudevents.jsonl": "a CloudEvent",
    "fivetran-airbyte.jsonl": "a record of Airbyte",
    "flink-canal-out.jsonl": "Flink's canal-json or maxwell-json without metadata",
    "flink-changelog.jsonl": "Flink's changelog-json",
    "flink-maxwell-out.jsonl": "Flink's canal-json or maxwell-json without metadata",
    "json-schema-sr.jsonl": "JSON Schema of a schema registry",
    "kafka-connect-jdbc.jsonl": "a Kafka Connect record without a change in it",
    "ogg-json.jsonl": "JSON of Oracle GoldenGate",
    "ticdc-avro.parquet": "Avro or Protobuf of a schema registry",
    "ticdc-csv.jsonl": "TiCDC's CSV",
    "ticdc-simple.jsonl": "TiCDC's simple protocol",
    "wal2json-v2.jsonl": "wal2json",
}


@pytest.mark.parametrize("file", sorted((REPRO / "foreign").iterdir()), ids=lambda each: each.name)
def test_messages_of_others_are_refused_by_their_name(file: Path) -> None:
    done = run("decode", str(file))

    errors = [event["error"] for event in events_of(done)]
    assert 3 == done.returncode
    assert {"unsupported-format"} == {error["code"] for error in errors}
    said = [error["message"].removeprefix("the message is ") for error in errors]
    assert all(text.startswith(NAMES[file.name]) for text in said), said


DETECTED = {
    "canal-flat.jsonl": "canal-json:canal, 2 messages (1 row, 1 statement)",
    "dbz-mongo.jsonl": "no CDC format, 3 messages; mixed in: 3 invalid (unsupported-connector)",
    "dbz-mysql-noschema.jsonl": "debezium:debezium, 7 messages "
    "(4 row, 1 ddl, 1 marker, 1 heartbeat)",
    "dbz-mysql-schema.jsonl": "debezium:debezium, 1 messages (1 row)",
    "dbz-oracle-noschema.jsonl": "debezium:debezium, 2 messages (2 row)",
    "dbz-outbox.jsonl": "no CDC format, 1 messages; mixed in: 1 invalid (unrecognised)",
    "dbz-pg-noschema.jsonl": "debezium:debezium, 5 messages (4 row); "
    "mixed in: 1 invalid (unsupported-format)",
    "dbz-pg-schema.jsonl": "debezium:debezium, 1 messages (1 row)",
    "dbz-sqlserver-noschema.jsonl": "debezium:debezium, 2 messages (2 row)",
    "dbz-unwrapped.jsonl": "debezium-smt:debezium, 1 messages (1 row)",
    "dbz-unwrapped-bare.jsonl": "no CDC format, 1 messages; mixed in: 1 invalid (unrecognised)",
    "flink-debezium-out.jsonl": "debezium:debezium, 2 messages (2 row)",
    "flink-upsert-kafka.parquet": "debezium, 2 messages (1 tombstone); "
    "mixed in: 1 invalid (unrecognised)",
    "flinkcdc-pipeline.jsonl": "debezium:debezium, 1 messages (1 row)",
    "flinkcdc-pipeline-canal.jsonl": "canal-json:oms, 1 messages (1 row)",
    "maxwell.jsonl": "maxwell:maxwell, 5 messages (3 row, 1 ddl, 1 marker)",
    "pg2schemas.jsonl": "debezium:debezium, 2 messages (2 row)",
    "polardb-dts.jsonl": "no CDC format, 1 messages; mixed in: 1 invalid (unrecognised)",
    "seatunnel-json.jsonl": "no CDC format, 1 messages; mixed in: 1 invalid (unrecognised)",
    "ticdc-canal.jsonl": "canal-json:ticdc, 1 messages (1 row)",
    "ticdc-debezium.jsonl": "debezium:debezium, 1 messages (1 row)",
}
"""What others write that is decoded, and what has no mark of who wrote it."""


@pytest.mark.parametrize("file", sorted((REPRO / "others").iterdir()), ids=lambda each: each.name)
def test_messages_of_others_are_detected(file: Path) -> None:
    done = run("detect", str(file))

    assert f"{file}: {DETECTED[file.name]}\n".encode() == done.stdout


def test_a_logical_decoding_message_is_refused_by_its_name() -> None:
    done = run("decode", str(REPRO / "others" / "dbz-pg-noschema.jsonl"))

    rows = [event["op"] for event in events_of(done) if event["kind"] == "row"]
    [error] = [event["error"] for event in events_of(done) if event["kind"] == "invalid"]
    assert ["insert", "update", "delete", "truncate"] == rows
    assert error["message"].startswith("a logical decoding message (pg_logical_emit_message), ")
    assert error["message"].endswith("exclude its topic, which ends in .message")


def test_a_named_format_says_it_too() -> None:
    done = run("decode", str(REPRO / "foreign" / "dbz-avro.parquet"), "--format", "debezium")

    assert (
        b"3  unsupported-format   e.g. the message is Avro or Protobuf of a schema" in done.stderr
    )


def test_no_message_of_a_format_that_is_decoded_is_taken_for_another_system() -> None:
    for folder in {*READABLE} & {*DETECTABLE}:
        assert None is refusal(content(folder, "key"), content(folder, "value")), folder


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("debezium-json", ("debezium", None)),
        ("maxwell-json", ("maxwell", None)),
        ("maxwell_json", ("maxwell", None)),
        ("canal", ("canal-json", None)),
        ("canal_json", ("canal-json", None)),
        ("Canal-JSON:ticdc", ("canal-json", "ticdc")),
    ],
)
def test_other_names_of_a_format_work(typed: str, meant: tuple[str, str | None]) -> None:
    assert meant == split(typed)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("ticdc", "name its protocol, canal-json:ticdc, open-protocol or debezium"),
        ("tencent", "it is a dialect; write canal-json:tencent"),
        ("avro", "Avro or Protobuf of a schema registry is not decoded; let the producer write"),
        ("ogg-json", "JSON of Oracle GoldenGate is not decoded"),
        ("delta", "Delta tables are a sink of jobs, not a format of messages: --to delta:///DIR"),
        ("debezum", "did you mean 'debezium'"),
    ],
)
def test_what_is_not_there_gets_an_answer(typed: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"^unknown format '{typed}'") as raised:
        split(typed)

    assert said in str(raised.value)
    assert "canal-json, " in str(raised.value)


def test_no_name_is_answered_twice_or_is_a_formats_own() -> None:
    names = [name for each in FOREIGN for name in each.names] + [*NO_FORMATS]

    assert len(names) == len(set(names))
    for name in names:
        with pytest.raises(UsageError):
            split(name)
