"""Messages that no producer means to write, by format, and what must hold of what comes out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from headgate.codec.event_lines import as_dict
from headgate.core.event import Event
from headgate.core.json import Number

Strategy = st.SearchStrategy[Any]


class Attempt(NamedTuple):
    """A message and the decoder that must survive it."""

    spec: str
    value: bytes | None
    key: bytes | None = None
    options: tuple[tuple[str, str], ...] = ()


class Attack(NamedTuple):
    """A way to make messages, and how many are tried."""

    attempts: st.SearchStrategy[Attempt]
    examples: int = 100


def assert_sound(events: Iterable[Event]) -> None:
    """Check what Arrow and the printed line need: text in maps, numbers of 64 bits, an event."""
    all_events = list(events)
    assert all_events
    for event in all_events:
        assert as_dict(event)
        for image in (event.before, event.after, event.position, event.extra):
            for name, value in (image or {}).items():
                assert type(name) is str
                assert value is None or type(value) in (str, Number)
        assert all(value is not None for value in (event.position or {}).values())
        assert event.key is None or all(type(name) is str for name in event.key)
        for number in (event.commit_ts, event.event_time, event.emit_time):
            assert number is None or -(2**63) <= number < 2**63


def sent(message: Any) -> bytes:
    return json.dumps(message).encode("utf-8", "replace")


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(
        ["", "-", "1.", "1234", "²", "1e5", "1606233662.01", "9" * 20, "null", "Bf8="]
    )
    | st.sampled_from(["2020-01-01 00:00:00", "2020-01-01T00:00", "TIMESTAMP", "BIT", "DATE"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def some(*members: str) -> Strategy:
    """An object with any of these members, of any type."""
    return st.dictionaries(st.sampled_from(members), JSON, max_size=min(len(members), 8))


def columns(names: Iterable[str], most: int = 4) -> Strategy:
    return st.dictionaries(st.sampled_from(list(names)), JSON, max_size=most)


# canal-json

CANAL = {
    "id": 0, "database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "type": "INSERT",
    "es": 1589373515000, "ts": 1589373515477, "sql": "", "sqlType": {"id": 4, "name": 12},
    "mysqlType": {"id": "int", "name": "varchar(9)"}, "data": [{"id": "1", "name": "x"}],
    "old": None,
}  # fmt: skip
CANAL_TYPES = [
    "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME",
    "CINDEX", "DINDEX", "INIT", "GTID", "XACOMMIT", "XAROLLBACK", "MHEARTBEAT", "TIDB_WATERMARK",
    "x",
]  # fmt: skip
MYSQL_TYPES = [
    "int", "blob", "json", "timestamp(3)", "datetime", "bit(8)", "decimal", "set", None,
    "enum('a','b')", "set('a','b')", "point", "ENUM(", "set('", "", "unheard(of)",
]  # fmt: skip
ZONE = (("timezone", "Asia/Shanghai"),)


@st.composite
def canal(draw: st.DrawFn) -> Attempt:
    rows = st.none() | st.lists(st.none() | columns("abc", 3), max_size=3)
    types = st.none() | st.dictionaries(
        st.sampled_from("abc"), st.sampled_from(MYSQL_TYPES), max_size=3
    )
    members = st.dictionaries(st.sampled_from([*CANAL, "_tidb", "gtid"]), JSON, max_size=3)
    images = st.fixed_dictionaries({}, optional={"data": rows, "old": rows, "mysqlType": types})
    dialect = draw(st.sampled_from(["", ":canal", ":ticdc", ":oms", ":tencent"]))
    type_ = draw(st.sampled_from(CANAL_TYPES))
    message = {**CANAL, "type": type_, **draw(members), **draw(images)}
    return Attempt(f"canal-json{dialect}", sent(message), options=ZONE)


# maxwell

MAXWELL = {
    "database": "shop", "table": "t", "type": "insert", "ts": 1449786310, "xid": 1, "commit": True,
    "data": {"id": 1, "name": "x"},
}  # fmt: skip
MAXWELL_TYPES = [
    "insert", "update", "delete", "bootstrap-insert", "bootstrap-start", "bootstrap-complete",
    "table-create", "table-alter", "table-drop", "database-create", "database-alter",
    "database-drop", "heartbeat", "x",
]  # fmt: skip
MAXWELL_MEMBERS = [
    *MAXWELL, "charset", "comment", "def", "gtid", "mesh", "old", "position", "primaryKey",
    "primaryKeyColumns", "primary_key", "primary_key_columns", "pushTs", "push_ts", "query",
    "reason", "schemaId", "schema_id", "serverId", "server_id", "sql", "threadId", "thread_id",
    "uuid", "xoffset", "mine",
]  # fmt: skip
DECLARED = "a SET('x','y'), b BIT(8), c DECIMAL(9,2), d JSON, e TIMESTAMP, shop.t.id INT"


@st.composite
def maxwell(draw: st.DrawFn) -> Attempt:
    row = st.none() | columns([*"abcde", "id"])
    rows = st.fixed_dictionaries({}, optional={"data": row, "old": row, "def": JSON})
    members = st.dictionaries(st.sampled_from(MAXWELL_MEMBERS), JSON, max_size=3)
    dialect = draw(st.sampled_from(["", ":maxwell", ":oms", ":ticdc"]))
    options = draw(st.sampled_from([ZONE, (*ZONE, ("columns", DECLARED))]))
    type_ = draw(st.sampled_from(MAXWELL_TYPES))
    message = {**MAXWELL, "type": type_, **draw(members), **draw(rows)}
    key = draw(st.none() | JSON.map(sent) | st.binary(max_size=5))
    return Attempt(f"maxwell{dialect}", sent(message), key, options)


# debezium, debezium-smt

SOURCE = {"connector": "mysql", "name": "s", "db": "d", "table": "t", "ts_ms": 1}
CONNECT_NAMES = [
    "org.apache.kafka.connect.data.Decimal", "io.debezium.time.Date", "io.debezium.time.MicroTime",
    "io.debezium.time.NanoTimestamp", "io.debezium.time.ZonedTimestamp", "io.debezium.data.Bits",
    "io.debezium.data.VariableScaleDecimal", None,
]  # fmt: skip
DECLARABLE = [
    "DECIMAL(9,2)", "BIGINT UNSIGNED", "BIT(8)", "BLOB", "DATE", "TIME(3)", "DATETIME(6)",
    "TIMESTAMP(3)", "JSON",
]  # fmt: skip
SOURCES = st.sampled_from([SOURCE, SOURCE | {"name": "OMS"}])


@st.composite
def envelope(draw: st.DrawFn) -> Attempt:
    members = {"op": st.sampled_from(["c", "u", "d", "r", "t", "m", "HEARTBEAT", 1, None])}
    source = JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(SOURCE, SCALARS))
    optional = {"before": JSON, "after": JSON, "source": source, "transaction": JSON}
    optional |= dict.fromkeys(["ts_ms", "ts_us", "ts_ns"], SCALARS)
    message = draw(st.fixed_dictionaries(members, optional=optional))
    wrapped = {"payload": message} if draw(st.booleans()) else message
    spec = draw(st.sampled_from(["debezium", "debezium-smt"]))
    return Attempt(spec, sent(wrapped), draw(st.none() | st.binary(max_size=20)))


@st.composite
def under_a_schema_block(draw: st.DrawFn) -> Attempt:
    name = draw(st.sampled_from(CONNECT_NAMES))
    type_ = draw(st.sampled_from(["bytes", "string", "int64", "struct", "STRUCT", ""]))
    column = {"type": type_, "name": name, "field": "a", "parameters": {"scale": "2"}}
    after = {"type": "struct", "field": "after", "fields": [column]}
    schema = {"type": "struct", "fields": [after, {"type": "string", "field": "op"}]}
    payload = {"op": "c", "after": {"a": draw(JSON)}, "source": draw(SOURCES)}
    return Attempt("debezium", sent({"schema": schema, "payload": payload}))


@st.composite
def under_declared_columns(draw: st.DrawFn) -> Attempt:
    message = {"before": None, "after": {"a": draw(JSON)}, "source": draw(SOURCES), "op": "c"}
    declared = f"a {draw(st.sampled_from(DECLARABLE))}"
    return Attempt("debezium", sent({**message, "ts_ms": 1}), options=(("columns", declared),))


FLAT = st.dictionaries(st.sampled_from(["id", "__deleted", "__op", "__ts_ms", "__x"]), JSON)


# oms-default, dataworks, shareplex

OMS_TYPES = ["TIMESTAMP", "DATETIME", "DATE", "DECIMAL", "BIT", "INT64", "BLOB", "", "x(1"]
OMS_COLUMN_TYPES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(OMS_TYPES), max_size=4)


@st.composite
def oms_default(draw: st.DrawFn) -> Attempt:
    kind = draw(st.sampled_from(["INSERT", "UPDATE", "DELETE", "DDL", "HEARTBEAT", "x"]))
    meta = draw(some("db", "table_name", "record_primary_key", "timestamp", "storeDataSequence",
                     "checkpoint", "dbType", "ddlType", "new"))  # fmt: skip
    prev, post = draw(columns("abcd") | JSON), draw(columns("abcd") | JSON)
    types = draw(OMS_COLUMN_TYPES | JSON)
    if isinstance(post, dict) and isinstance(types, dict):
        post = {**post, "__light_type": {n: {"schemaType": t} for n, t in types.items()}}
    message = {"recordType": kind, "allMetaData": meta, "prevStruct": prev, "postStruct": post}
    return Attempt("oms-default", sent(message))


@st.composite
def dataworks(draw: st.DrawFn) -> Attempt:
    op = draw(st.sampled_from(["INSERT", "UPDATE", "DELETE", "ALTER", "GTID", "HEARTBEAT", "x"]))
    column = [{"name": n, "type": t} for n, t in draw(OMS_COLUMN_TYPES).items()]
    before, after = {"data": draw(columns("abcd"))}, {"data": draw(columns("abcd"))}
    images = {"before": before, "after": after}
    images |= {"INSERT": {"before": None}, "DELETE": {"after": None}}.get(op, {})  # type: ignore
    times = draw(some("eventTime", "systemTime", "checkpointTime"))
    message = {
        "version": "2.0",
        "schema": {"source": {"dbName": "d"}, "column": column, "pk": ["a"]},
        "payload": {"op": op, **images, "timestamp": times, "scn": draw(JSON)},
        "extend": draw(JSON),
    }
    return Attempt("dataworks", sent(message))


@st.composite
def shareplex(draw: st.DrawFn) -> Attempt:
    op = draw(st.sampled_from(["ins", "upd", "del", "ddl", "heartbeat", "x"]))
    meta = some("table", "time", "posttime", "seq", "idx", "size", "rowid", "trans", "scn")
    message = {"meta": {**draw(meta), "op": op}, "data": draw(columns("abcd") | JSON)}
    if (key := draw(columns("abcd") | JSON)) is not None:
        message["key"] = key
    if op == "ddl":
        message["sql"] = {"ddl": draw(JSON)}
    return Attempt("shareplex", sent(message))


# open-protocol

ROW_KEY = b'{"ts":415508878783938562,"scm":"test","tbl":"t1","t":1}'


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(8, "big") + body


def framed(keys: Iterable[bytes], bodies: Iterable[bytes]) -> Attempt:
    version = (1).to_bytes(8, "big")
    return Attempt(
        "open-protocol", b"".join(map(frame, bodies)), version + b"".join(map(frame, keys))
    )


FRAMES = st.builds(
    framed, st.lists(st.binary(max_size=40), max_size=4), st.lists(st.binary(max_size=40))
)
OPEN_COLUMN = st.fixed_dictionaries(
    {"t": st.sampled_from([3, 5, 7, 15, 252, 254]), "v": SCALARS},
    optional={"f": st.integers(0, 255), "h": st.booleans()},
)
OPEN_ROWS = st.dictionaries(
    st.sampled_from("upd"),
    st.dictionaries(st.sampled_from("thfvabc"), JSON | OPEN_COLUMN) | JSON,
).map(lambda row: framed([ROW_KEY], [sent(row)]))


ATTACKS: dict[str, Attack] = {
    "canal-json": Attack(canal(), 400),
    "maxwell": Attack(maxwell(), 400),
    "debezium envelope": Attack(envelope(), 200),
    "debezium schema block": Attack(under_a_schema_block()),
    "debezium declared columns": Attack(under_declared_columns()),
    "debezium-smt": Attack(FLAT.map(lambda row: Attempt("debezium-smt", sent(row)))),
    "oms-default": Attack(oms_default()),
    "dataworks": Attack(dataworks()),
    "shareplex": Attack(shareplex()),
    "open-protocol frames": Attack(FRAMES),
    "open-protocol rows": Attack(OPEN_ROWS),
}
"""Any JSON where a format has its members, by format and place."""

MEMBERS = [
    "type", "data", "old", "database", "table", "isDdl", "es", "ts", "id", "sql", "pkNames",
    "mysqlType", "sqlType", "_tidb", "gtid", "prevStruct", "postStruct", "allMetaData",
    "recordType", "version", "schema", "payload", "meta", "key", "op", "before", "after",
    "source", "ts_ms", "__deleted", "__op", "xid", "commit", "def", "primary_key",
    "primary_key_columns", "transaction", "ddl", "tableChanges", "status", "encrypted",
]  # fmt: skip
MIXED = some(*MEMBERS).map(sent)
"""Members of all formats in one message."""
