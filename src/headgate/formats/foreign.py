"""Formats that are not decoded, by the names that people type and by what their messages look like.

Looked at only where a name is unknown, or where a message could not be decoded: a message of
another system is refused by its name then, not by the first byte that is out of place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
from msgspec import Raw

from headgate.core.errors import DecodeError

CODE = "unsupported-format"
Members = Mapping[str, Raw]
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_JSON_CONVERTER = "let the producer write JSON (Kafka Connect: JsonConverter)"
_EXCLUDE = "exclude its topics, or convert them first"
_LETTERS = frozenset({"B", "C", "I", "U", "D", "T", "M"})
_WAL2JSON = frozenset(
    {"action", "schema", "table", "columns", "identity", "pk", "xid", "timestamp", "lsn", "nextlsn",
     "origin", "transactional", "prefix", "content"}
)  # fmt: skip
_CHANGES = frozenset({"+I", "-U", "+U", "-D"})
_REGISTRY_JSON = re.compile(rb"\x00.{4}\s*\{", re.DOTALL)
_REGISTRY = re.compile(rb"\x00.{4}", re.DOTALL)
_GLUE = re.compile(rb"\x03[\x00\x05].{16}", re.DOTALL)
_AVRO = re.compile(rb"\xc3\x01|Obj\x01")
_CANAL_PACKET = re.compile(rb"(\x08\x11)?(\x10.)?\x18[\x07\x08](\x20.)?\x2a", re.DOTALL)
_CSV = re.compile(rb'"?[IUD]"?,("[^"]+"|[^,"{]+),("[^"]+"|[^,"{]+),')
_TICDC_KEY = b"\0\0\0\0\0\0\0\1"
"""A key so begins where the value has frames of its own, which begin with zeros, too."""


class Foreign(NamedTuple):
    """A format that is not decoded."""

    title: str
    names: tuple[str, ...]
    """What people type for it."""
    remedy: str
    bytes: re.Pattern[bytes] | None = None
    """How a message begins that is not JSON."""
    has: Callable[[Members], bool] | None = None
    """Whether a message with these members is one."""


def _word(members: Members, name: str) -> str | None:
    """The text of a member; None where it is none."""
    try:
        return str(msgspec.json.decode(members[name], type=str)) if name in members else None
    except (msgspec.MsgspecError, UnicodeError):
        return None


def _inside(members: Members, name: str) -> Members:
    """The members of a member; none where it is no object."""
    try:
        return _MEMBERS.decode(members[name]) if name in members else {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def _is_simple(members: Members) -> bool:
    return {"version", "type", "commitTs", "buildTs"} <= members.keys()


def _is_wal2json(members: Members) -> bool:
    if _word(members, "action") in _LETTERS:
        return members.keys() <= _WAL2JSON
    return "change" in members and members.keys() <= {"change", "xid", "nextlsn", "timestamp"}


def _is_dms(members: Members) -> bool:
    return {"record-type", "operation"} <= _inside(members, "metadata").keys()


def _is_changelog(members: Members) -> bool:
    return members.keys() == {"data", "op"} and _word(members, "op") in _CHANGES


def _is_airbyte(members: Members) -> bool:
    return (
        _word(members, "type") == "RECORD"
        and {"stream", "data"} <= _inside(members, "record").keys()
    )


def _is_connect(members: Members) -> bool:
    schema, payload = _inside(members, "schema"), _inside(members, "payload")
    return (
        members.keys() == {"schema", "payload"}
        and "fields" in schema
        and bool(payload)
        and not (_word(schema, "name") or "").startswith("io.debezium.")
        and not payload.keys() & {"op", "source", "before", "after", "ts_ms", "__deleted", "__op"}
    )


FOREIGN = (
    Foreign(
        "JSON Schema of a schema registry (magic byte and schema id before the JSON)",
        ("json-schema", "jsonschema", "json-sr"), _JSON_CONVERTER, bytes=_REGISTRY_JSON,
    ),
    Foreign(
        "Avro or Protobuf of a schema registry (it begins with the registry's magic byte)",
        ("avro", "debezium-avro", "avro-confluent", "debezium-avro-confluent", "confluent-avro",
         "ticdc-avro", "protobuf", "protobuf-confluent"),
        f"{_JSON_CONVERTER}; of TiCDC's protocols choose canal-json, open-protocol or debezium",
        bytes=_REGISTRY,
    ),
    Foreign(
        "a record of AWS Glue's schema registry", ("glue", "glue-avro"), _JSON_CONVERTER,
        bytes=_GLUE,
    ),
    Foreign("Avro", (), _JSON_CONVERTER, bytes=_AVRO),
    Foreign(
        "Canal's Protobuf", ("canal-protobuf", "canal-pb"),
        "set canal.mq.flatMessage = true, and Canal writes canal-json", bytes=_CANAL_PACKET,
    ),
    Foreign(
        "TiCDC's CSV", ("csv", "ticdc-csv"),
        "choose its protocol canal-json, open-protocol or debezium", bytes=_CSV,
    ),
    Foreign(
        "TiCDC's simple protocol", ("simple", "ticdc-simple", "simple-json"),
        "choose its protocol canal-json, open-protocol or debezium", has=_is_simple,
    ),
    Foreign(
        "JSON of Oracle GoldenGate", ("ogg-json", "ogg", "goldengate", "oracle-goldengate"),
        f"{_EXCLUDE}; Debezium's connector for Oracle is read",
        has=lambda m: {"op_type", "op_ts", "table"} <= m.keys(),
    ),
    Foreign("a record of AWS DMS", ("dms", "aws-dms"), _EXCLUDE, has=_is_dms),
    Foreign(
        "a CloudEvent", ("cloudevents", "cloudevent", "cloud-events"),
        "let Debezium write JSON (value.converter: JsonConverter), not CloudEvents",
        has=lambda m: {"specversion", "type", "source"} <= m.keys(),
    ),
    Foreign(
        "wal2json", ("wal2json",),
        "read PostgreSQL with Debezium's connector, which is decoded", has=_is_wal2json,
    ),
    Foreign(
        "Google Datastream's JSON", ("datastream",), _EXCLUDE,
        has=lambda m: {"read_method", "source_metadata", "payload"} <= m.keys(),
    ),
    Foreign("a record of Airbyte", ("airbyte",), _EXCLUDE, has=_is_airbyte),
    Foreign(
        "a message of Qlik Replicate", ("qlik", "attunity"), _EXCLUDE,
        has=lambda m: _word(m, "magic") == "atMSG",
    ),
    Foreign(
        "Flink's changelog-json", ("changelog-json", "changelog"),
        "let Flink write canal-json with metadata columns, or read what Flink reads",
        has=_is_changelog,
    ),
    Foreign(
        "Flink's canal-json or maxwell-json without metadata, which names no database and no table",
        (), "read the topic that Flink reads: its sink leaves out what the source told",
        has=lambda m: m.keys() == {"data", "type"},
    ),
    Foreign(
        "a Kafka Connect record without a change in it (a JDBC source's, say)", ("jdbc-json",),
        "if Debezium's ExtractNewRecordState made it, name the format: debezium-smt",
        has=_is_connect,
    ),
    Foreign(
        "Debezium's MongoDB connector", ("mongodb", "mongo", "debezium-mongodb"),
        "its changes are not rows with columns",
    ),
)  # fmt: skip
"""In the order in which they are tried."""


NO_FORMATS = {
    "ticdc": "TiCDC writes several formats; name its protocol, canal-json:ticdc, open-protocol or "
    "debezium, or auto to read",
    "delta": "Delta tables are a sink of jobs, not a format of messages: --to delta:///DIR",
    "iceberg": "Iceberg tables are not written; Delta tables are, as a sink: --to delta:///DIR",
    "hudi": "Hudi tables are not written; Delta tables are, as a sink: --to delta:///DIR",
    "parquet": "Parquet is a form of files: write to OUT.parquet, or to file:DIR?as=parquet",
    "json": "JSON alone does not say how changes are written; name who writes it, or auto to read",
    "jsonl": "lines are a form of files; name who writes the messages, or auto to read",
    "mysql": "MySQL is a source of jobs: --from mysql://USER:PASSWORD@HOST:PORT/DATABASE.TABLE",
    "binlog": "the binlog is a source of jobs: --from mysql://USER:PASSWORD@HOST:PORT/DATABASE",
    "kafka": "Kafka is a source and a sink of jobs: kafka://HOST:PORT/TOPIC",
}
"""What else people name where a format is asked for."""


def answer(name: str) -> str | None:
    """What there is to say of a format that somebody names; None of unknown names.

    >>> answer("hudi")
    'Hudi tables are not written; Delta tables are, as a sink: --to delta:///DIR'
    """
    if name in NO_FORMATS:
        return NO_FORMATS[name]
    for each in FOREIGN:
        if name in each.names:
            title = each.title.partition(" (")[0]
            return f"{title} is not decoded; {each.remedy}"
    return None


def refusal(key: bytes | None, value: bytes | None) -> DecodeError | None:
    """The error of a message in a format that is known and not decoded; None of others.

    >>> refusal(None, b'{"data":{"id":1},"op":"+I"}').code
    'unsupported-format'
    """
    if not value or (key is not None and key.startswith(_TICDC_KEY)):
        return None
    try:
        members = _MEMBERS.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        members = {}
    for each in FOREIGN:
        if (each.bytes is not None and each.bytes.match(value)) or (
            members and each.has is not None and each.has(members)
        ):
            return DecodeError(CODE, f"the message is {each.title}, which is not decoded",
                               each.remedy)  # fmt: skip
    return None
