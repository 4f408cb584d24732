"""`auto` finds format and dialect of each message; `strict` refuses where it would guess."""

from __future__ import annotations

import json
from itertools import groupby, zip_longest
from typing import Any

import pytest
from cases import DETECTABLE, FOLDERS, content, events, settings_of
from messages import canal, maxwell
from paths import CASES

from headgate.codec.decoder import decode_message, decoder
from headgate.core.event import Event
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.core.values import micros
from headgate.formats import MODULES
from headgate.formats.detect import candidates

ENVELOPE = {
    "before": None,
    "after": {"id": 1},
    "source": {"connector": "mysql", "name": "shop", "db": "shop", "table": "t", "file": "b.1"},
    "op": "c",
    "ts_ms": 1589373515477,
}
OMS_SOURCE = {"connector": "OB_MYSQL", "name": "OMS", "db": "shop", "table": "t"}
SMT_ROW = {"id": 1, "__deleted": "false"}
SCHEMA = {"type": "struct", "fields": [], "optional": True}
NO_TYPES = {"id": 0, "mysqlType": None, "pkNames": None, "sqlType": None}
CANAL_DDL = {"isDdl": True, "type": "CREATE", "data": None, "sql": "create table t (id int)"}


def sent(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def without(message: bytes, *names: str) -> bytes:
    return sent({k: v for k, v in json.loads(message).items() if k not in names})


def auto(value: bytes | None, key: bytes | None = None, **options: Any) -> Event:
    found = decode_message(decoder("auto", **options), key, value, None, MAX_MESSAGE_BYTES)
    assert len(found) == 1
    return found[0]


def golden(name: str) -> bytes:
    value = content(CASES / name, "value")
    assert value is not None
    return value


VERDICTS: list[tuple[str, Any, str]] = [
    # rule, message (an object is sent as JSON), "kind format:dialect"
    ("0 null value", None, "tombstone debezium"),
    ("0 text null", b"null", "tombstone debezium"),
    ("1 array, as in Maxwell's keys", b'["db","t",[{"id":1}]]', "invalid"),
    ("1 number", b"7", "invalid"),
    ("1 no bytes", b"", "invalid"),
    ("2 schema, payload null", {"schema": SCHEMA, "payload": None}, "tombstone debezium"),
    ("2 payload null", b'{"payload":null}', "tombstone debezium"),
    ("2 schema and payload", {"schema": None, "payload": ENVELOPE}, "row debezium:debezium"),
    ("2 payload alone", {"payload": ENVELOPE}, "row debezium:debezium"),
    ("2 payload alone, OMS", {"payload": ENVELOPE | {"source": OMS_SOURCE}}, "row debezium:oms"),
    (
        "2 payload holds an SMT row",
        {"schema": SCHEMA, "payload": SMT_ROW},
        "row debezium-smt:debezium",
    ),
    ("2 payload is no object", b'{"payload":7}', "invalid"),
    ("3 OMS Default", golden("oms-default/insert"), "row oms-default:default"),
    ("3 OMS DataWorks", golden("dataworks/insert"), "row dataworks:v2.0"),
    ("3 OMS SharePlex", golden("shareplex/insert"), "row shareplex:oms"),
    ("4 envelope", ENVELOPE, "row debezium:debezium"),
    ("4 envelope without source", {"op": "c", "after": {"id": 1}}, "row debezium:debezium"),
    ("4 OMS by name", ENVELOPE | {"source": {"name": "OMS"}}, "row debezium:oms-flatten"),
    (
        "4 OMS by connector",
        ENVELOPE | {"source": {"connector": "OB_ORACLE"}},
        "row debezium:oms-flatten",
    ),
    (
        "4 OMS heartbeat",
        {"op": "HEARTBEAT", "source": {}, "ts_ms": 1},
        "heartbeat debezium:oms-flatten",
    ),
    ("4 legacy", golden("debezium/v0.9-ts-sec"), "row debezium:debezium"),
    ("4 columns op and source", {"id": 1, "op": "sell", "source": "web"}, "invalid"),
    ("4 column op is a number", {"id": 1, "op": 5, "before": None}, "invalid"),
    ("5 transaction", golden("debezium/transaction-begin"), "marker debezium:debezium"),
    ("6 schema change", golden("debezium/schema-change-create"), "ddl debezium:debezium"),
    (
        "6 ddl and databaseName",
        {"ddl": "drop table t", "databaseName": "d"},
        "ddl debezium:debezium",
    ),
    ("7 heartbeat", b'{"ts_ms":1589373515477}', "heartbeat debezium:debezium"),
    ("8 native Canal", canal(), "row canal-json:canal"),
    ("8 native Canal from 1.1.7", canal(gtid="g:1-5"), "row canal-json:canal"),
    ("8 without isDdl", without(canal(), "isDdl"), "row canal-json:canal"),
    ("8 es alone", without(canal(), "isDdl", "mysqlType", "pkNames"), "row canal-json:canal"),
    ("8 pkNames alone", without(canal(), "isDdl", "mysqlType", "es"), "row canal-json:canal"),
    ("8 TiCDC by _tidb", canal(_tidb={"commitTs": 1}), "row canal-json:ticdc"),
    (
        "8 TiCDC watermark",
        canal(type="TIDB_WATERMARK", _tidb={"watermarkTs": 1}),
        "watermark canal-json:ticdc",
    ),
    ("8 TiCDC rows without _tidb", canal(id=0), "row canal-json:ticdc"),
    ("8 OMS: no id", without(canal(), "id"), "row canal-json:oms"),
    ("8 OMS heartbeat", golden("canal-json/oms-doc-heartbeat"), "heartbeat canal-json:oms"),
    ("8 Tencent", canal(**NO_TYPES), "row canal-json:tencent"),
    (
        "8 Tencent, empty types",
        canal(id=0, mysqlType={}, pkNames=[], sqlType={}),
        "row canal-json:tencent",
    ),
    ("8 Tencent or TiCDC DDL", canal(**NO_TYPES, **CANAL_DDL), "ddl canal-json:tencent"),
    ("9 Maxwell", maxwell(), "row maxwell:maxwell"),
    ("9 attribute es", maxwell(es="madrid", pkNames=1), "row maxwell:maxwell"),
    (
        "9 Maxwell DDL without table",
        {"type": "database-drop", "database": "d", "ts": 1, "sql": "x"},
        "ddl maxwell:maxwell",
    ),
    ("9 Maxwell camelCase", golden("maxwell/camel-case"), "row maxwell:maxwell"),
    ("9 OMS by uuid", maxwell(uuid="u"), "row maxwell:oms"),
    ("9 OMS by xid", maxwell(xid="1002_1"), "row maxwell:oms"),
    ("9 OMS by def and sql", maxwell(**{"def": None, "sql": None}), "row maxwell:oms"),
    ("9 OMS heartbeat", golden("maxwell/oms-doc-heartbeat"), "heartbeat maxwell:oms"),
    ("9 columns type and database", {"id": 1, "type": "user", "database": "d"}, "invalid"),
    ("10 encrypted", b'{"encrypted":{"iv":"AA==","bytes":"AA=="}}', "invalid"),
    ("11 __deleted", SMT_ROW, "row debezium-smt:debezium"),
    ("11 __deleted is a boolean", SMT_ROW | {"__deleted": True}, "row debezium-smt:debezium"),
    ("11 __op", {"id": 1, "__op": "c"}, "row debezium-smt:debezium"),
    ("12 a plain row", b'{"id":1,"name":"Lem"}', "invalid"),
    ("12 no members", b"{}", "invalid"),
]
CODES = {
    "1 array, as in Maxwell's keys": "wrong-type",
    "1 number": "wrong-type",
    "1 no bytes": "empty-value",
    "10 encrypted": "encrypted",
}


@pytest.mark.parametrize(("rule", "message", "verdict"), VERDICTS, ids=[v[0] for v in VERDICTS])
def test_each_rule_has_its_verdict(rule: str, message: Any, verdict: str) -> None:
    value = sent(message) if isinstance(message, dict) else message
    event = auto(value)
    kind, _, origin = verdict.partition(" ")
    format, _, dialect = origin.partition(":")

    assert (event.kind, event.format or "", event.dialect or "") == (kind, format, dialect)
    if event.error:
        assert event.error[0] == CODES.get(rule, "unrecognised")
        assert event.raw == value


def test_a_framed_key_is_open_protocols_whatever_the_value_is() -> None:
    folder = CASES / "open-protocol" / "doc-log-01"

    assert candidates(content(folder, "key"), canal()) == ["open-protocol"]


def is_json(value: bytes | None) -> bool:
    try:
        return value is not None and isinstance(json.loads(value), dict)
    except ValueError:
        return False


@pytest.mark.parametrize("format", MODULES)
def test_one_format_alone_claims_a_message(format: str) -> None:
    own = [f for f in DETECTABLE if f.parent.name == format and is_json(content(f, "value"))]
    for folder in own:
        found = candidates(content(folder, "key"), content(folder, "value") or b"")

        assert len(found) <= 1, folder.name


@pytest.mark.slow
def test_formats_mixed_in_one_topic_do_not_disturb_each_other() -> None:
    decode = decoder("auto")
    plain = [f for f in FOLDERS if settings_of(f) == {} and content(f, "value") is not None]
    by_format = [list(group) for _, group in groupby(plain, key=lambda f: f.parent)]
    assert len(by_format) == len(MODULES)
    chosen = [f for turn in zip_longest(*by_format) for f in turn if f]

    for _ in range(2):
        for folder in chosen:
            key, value = content(folder, "key"), content(folder, "value")
            mixed = decode_message(decode, key, value, None, MAX_MESSAGE_BYTES)
            alone = decode_message(decoder("auto"), key, value, None, MAX_MESSAGE_BYTES)

            assert mixed == alone, folder


@pytest.mark.parametrize(
    ("value", "code", "named"),
    [
        (canal(**NO_TYPES, **CANAL_DDL), "ambiguous-dialect", ["tencent", "ticdc"]),
        (sent(SMT_ROW), "ambiguous-dialect", ["debezium", "oms"]),
        (
            sent(SMT_ROW | {"type": "x", "database": "d", "data": {"a": 1}}),
            "ambiguous-format",
            ["debezium-smt", "maxwell"],
        ),
        (
            sent(SMT_ROW | {"type": "INSERT", "isDdl": False, "data": None}),
            "ambiguous-format",
            ["canal-json", "debezium-smt"],
        ),
    ],
    ids=["tencent or ticdc", "debezium or oms", "smt or maxwell", "canal or smt"],
)
def test_strict_refuses_to_guess_and_names_the_candidates(
    value: bytes, code: str, named: list[str]
) -> None:
    event = auto(value, strict=True)

    assert event.error is not None
    assert event.error[0] == code
    assert " or ".join(named) in event.error[1]
    assert event.raw == value


@pytest.mark.parametrize("name", ["canal-json:ticdc", "canal-json:tencent"])
def test_a_named_dialect_is_no_guess(name: str) -> None:
    value = canal(**NO_TYPES, **CANAL_DDL)

    assert decoder(name, strict=True)(None, value, None)[0].dialect == name.partition(":")[2]


@pytest.mark.parametrize("format", MODULES)
def test_strict_changes_nothing_but_what_would_be_a_guess(format: str) -> None:
    for folder in DETECTABLE:
        if folder.parent.name != format:
            continue
        settings = settings_of(folder)
        strict = settings | {"options": {**settings.get("options", {}), "strict": True}}
        found = events(folder, "auto", strict)
        code = found[0].get("error", {}).get("code", "")

        if code.startswith("ambiguous-"):
            assert " or " in found[0]["error"]["message"], folder.name
        else:
            assert found == json.loads((folder / "expect.json").read_text()), folder.name


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (99_999_999_999, 99_999_999_999_000_000),
        (100_000_000_000, 100_000_000_000_000),
        (99_999_999_999_999, 99_999_999_999_999_000),
        (100_000_000_000_000, 100_000_000_000_000),
        (99_999_999_999_999_999, 99_999_999_999_999_999),
        (100_000_000_000_000_000, 100_000_000_000_000),
        (0, 0),
        (None, None),
    ],
)
def test_the_size_of_a_time_tells_its_unit(sent: int | None, read: int | None) -> None:
    assert micros(sent) == read
