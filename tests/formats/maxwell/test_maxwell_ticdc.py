"""TiCDC's protocol `maxwell`: Maxwell's members, TiCDC's key, batches, DDL, commit number."""

from __future__ import annotations

import json

import pytest
from paths import REPRO

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.core.errors import UsageError
from headgate.core.event import Event
from headgate.formats.detect import candidates
from headgate.pipeline.dedup import identity

RECORDED = (REPRO / "ticdc-maxwell.jsonl").read_bytes().splitlines()
VERSION = bytes(7) + b"\x01"
TSO = 462238520974811087
SCHEMA = (
    "CREATE TABLE d.t (id INT PRIMARY KEY, e ENUM('a','b'), j JSON, b VARBINARY(9), ts TIMESTAMP)"
)


def row(type_: str = "insert", **members: object) -> bytes:
    return json.dumps({"database": "d", "table": "t", "type": type_, "ts": 1763300000, **members},
                      separators=(",", ":")).encode()  # fmt: skip


def ddl(type_: str, sql: str) -> bytes:
    old = {"database": "d", "table": "t", "columns": None, "primary-key": None}
    new = old | {"columns": [{"type": "string", "name": "b"}]}
    return row(type_, old=old, **{"def": new, "ts": TSO, "sql": sql})


@pytest.mark.parametrize("spec", ["auto", "maxwell", "maxwell:ticdc"])
def test_a_message_of_several_objects_is_several_rows(spec: str) -> None:
    value = row(data={"id": 1, "v": "}{"}) + row("delete", old={"id": 2, "v": "\\"})
    events = decoder(spec)(VERSION, value, None)

    assert [(e.op, e.before or e.after, e.position, e.dialect) for e in events] == [
        ("insert", {"id": "1", "v": "}{"}, {"row": "0"}, "ticdc"),
        ("delete", {"id": "2", "v": "\\"}, {"row": "1"}, "ticdc"),
    ]


def test_its_key_is_not_open_protocols() -> None:
    assert candidates(VERSION, row(data={"id": 1})) == ["maxwell"]
    assert candidates(VERSION, None) == candidates(VERSION, b"") == ["open-protocol"]


def test_one_broken_object_makes_the_message_invalid() -> None:
    from headgate.codec.decoder import decode_message

    found = decode_message(decoder("auto"), VERSION, row(data={"id": 1}) + b"{", None, 1 << 20)

    assert [(e.kind, e.error and e.error[0]) for e in found] == [("invalid", "malformed-json")]


@pytest.mark.parametrize(
    ("type_", "sql", "op"),
    [
        ("table-create", "CREATE TABLE t (id INT)", "create"),
        ("table-alter", "ALTER TABLE t ADD INDEX i (a)", "create_index"),
        ("table-alter", "RENAME TABLE s TO t", "rename"),
        ("table-alter", "TRUNCATE TABLE t", "truncate"),
        ("alter table multi-schema change", "ALTER TABLE t ADD a INT, ADD b INT", "alter"),
        ("create view", "CREATE VIEW t AS SELECT 1", "query"),
        ("database-create", "CREATE DATABASE d", "create"),
    ],
)
def test_ddl_has_a_commit_number_and_says_what_it_does(type_: str, sql: str, op: str) -> None:
    (event,) = decoder("auto")(b'{"ts":%d,"scm":"d","tbl":"t","t":2}' % TSO, ddl(type_, sql), None)

    assert (event.kind, event.op, event.ddl) == ("ddl", op, sql)
    assert (event.commit_ts, event.event_time) == (TSO, (TSO >> 18) * 1000)
    assert event.types is None, "`string` stands for BLOB too"


def test_recorded_messages_without_keys() -> None:
    events = [e for line in RECORDED for e in decoder("auto")(None, line, None)]

    assert [(e.kind, e.op) for e in events] == [
        ("row", "delete"), ("row", "insert"), ("row", "update"), ("ddl", "create"),
    ]  # fmt: skip
    assert [e.dialect for e in events] == ["ticdc", "maxwell", "maxwell", "ticdc"]
    assert events[0].before == {"id": "1", "v": "x"}


def test_values_are_ticdcs() -> None:
    sent = {"b": "AAE=", "e": 2, "id": 1, "j": '"x"', "ts": "2024-05-01 08:00:00"}
    decode = decoder("maxwell", schema=SCHEMA, timezone="Asia/Shanghai")
    (event,) = decode(VERSION, row(data=sent), None)

    assert event.after == {
        "b": "AAE=",
        "e": "b",
        "id": "1",
        "j": '"x"',
        "ts": "2024-05-01 00:00:00",
    }


def test_a_job_knows_its_ddl_by_the_commit_number() -> None:
    def read(ts: int, value: bytes) -> Event:
        return decoder("auto")(None, value.replace(str(TSO).encode(), b"%d" % ts), None)[0]

    statement = ddl("table-alter", "ALTER TABLE t ADD a INT")

    assert identity(read(TSO, statement)) == identity(read(TSO, statement)) is not None
    assert identity(read(TSO, statement)) != identity(read(TSO + 1, statement))
    assert identity(decoder("auto")(VERSION, row(data={"id": 1}), None)[0]) is None


def test_it_is_not_written() -> None:
    with pytest.raises(UsageError, match=r"read and not written; .* maxwell or oms"):
        Encoder("maxwell:ticdc")
