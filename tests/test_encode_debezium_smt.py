"""Rows without their envelope as they are written: added fields, deletes, keys, schemas, losses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.encoding import Encoder
from headgate.errors import UsageError
from headgate.event import ColumnType, Event, Image, Types
from headgate.formats import decoder
from tests.messages import canal

TIME = 1_668_489_131_000_000
TYPES: Types = {"id": ColumnType("int"), "price": ColumnType("decimal(10,2)")}
ROW: Image = {"id": "1", "price": "7.90"}
PLACE = {"server_id": "1", "file": "mysql-bin.000003", "pos": "154", "row": "2", "gtid": "a:1"}
BARE = {"schemas_enable": False}
UNNAMED = ["database", "table", "types", "event-time", "emit-time"]


def change(op: str = "insert", **parts: Any) -> Event:
    images = {"delete": {"before": ROW}, "update": {"before": ROW, "after": ROW}, "truncate": {}}
    told: dict[str, Any] = {"database": "shop", "table": "orders", "key": ("id",), "types": TYPES}
    told |= {"event_time": TIME, "emit_time": TIME + 120_345} | images.get(op, {"after": ROW})
    return Event("row", op, **(told | parts))


def records(event: Event, spec: str = "debezium-smt", **options: Any) -> list[tuple[Any, Any]]:
    found = Encoder(spec, **options)(event).records
    return [(r.key and r.key.decode(), r.value and r.value.decode()) for r in found]


def lost(event: Event, spec: str = "debezium-smt", **options: Any) -> list[str]:
    return Encoder(spec, **options)(event).lost


def test_a_row_and_whether_it_is_deleted() -> None:
    kept = '{"id":1,"price":"AxY=","__deleted":"false"}'

    assert [('{"id":1}', kept)] == records(change(), **BARE)
    assert [('{"id":1}', kept)] == records(change("update"), **BARE)
    assert [('{"id":1}', '{"id":1,"price":"AxY=","__deleted":"true"}')] == records(
        change("delete"), **BARE
    )


def test_deletes_by_their_mode() -> None:
    gone = '{"id":1,"price":"AxY=","__deleted":"true"}'
    mode = "delete_tombstone_handling_mode"

    assert [('{"id":1}', gone), ('{"id":1}', None)] == records(
        change("delete"), **BARE, **{mode: "rewrite-with-tombstone"}
    )
    assert [('{"id":1}', None)] == records(change("delete"), **BARE, **{mode: "tombstone"})
    assert [('{"id":1}', '{"id":1,"price":"AxY="}')] == records(
        change(), **BARE, **{mode: "tombstone"}
    )
    assert [*UNNAMED, "deleted-row"] == lost(change("delete"), **BARE, **{mode: "tombstone"})


def test_added_fields() -> None:
    ask = "op,table,db,ts_ms,ts_us,source.ts_ms,source.file,source.row,transaction.id,gtid:g"
    event = change(position=PLACE)
    (found,) = records(event, **BARE, add_fields=ask)

    assert (
        '{"id":1,"price":"AxY=","__deleted":"false","__op":"c","__table":"orders","__db":"shop",'
        '"__ts_ms":1668489131120,"__ts_us":1668489131120345,"__source_ts_ms":1668489131000,'
        '"__source_file":"mysql-bin.000003","__source_row":2,"__transaction_id":null,"__g":"a:1"}'
    ) == found[1]
    assert (
        '"m.op":"r"'
        in records(change("snapshot"), **BARE, add_fields="op", add_fields_prefix="m.")[0][1]
    )
    with pytest.raises(UsageError, match="add-fields"):
        Encoder("debezium-smt", add_fields="after.id")


def test_added_fields_carry_what_the_row_does_not() -> None:
    ask = "op,db,table,ts_us,source.ts_us,source.file,source.pos,source.row,source.server_id"
    event = change("snapshot", position={n: PLACE[n] for n in ("file", "pos", "row", "server_id")})
    (record,) = Encoder("debezium-smt", add_fields=ask)(event).records
    (again,) = decoder("debezium-smt")(record.key, record.value, None)

    assert ["snapshot", *UNNAMED[:2], *UNNAMED[3:]] == [
        c for c in lost(change("snapshot")) if c != "type-details"
    ]
    assert ["type-details"] == lost(event, add_fields=ask)
    for name in ("op", "database", "table", "key", "after", "event_time", "emit_time", "position"):
        assert getattr(event, name) == getattr(again, name)


def test_the_topic_carries_database_and_table() -> None:
    assert {"database", "table"} <= set(lost(change()))
    assert {"database", "table"}.isdisjoint(lost(change(), topic="shop.{database}.{table}"))


def test_a_changed_key_is_two_rows() -> None:
    event = change("update", after=ROW | {"id": "2"})

    assert [
        ('{"id":1}', '{"id":1,"price":"AxY=","__deleted":"true","__op":"d"}'),
        ('{"id":2}', '{"id":2,"price":"AxY=","__deleted":"false","__op":"c"}'),
    ] == records(event, **BARE, add_fields="op")
    assert "key-change" in lost(event)


def test_value_and_key_with_their_schemas() -> None:
    (found,) = records(change(), topic_prefix="p", add_fields="op,source.pos")
    fields = (
        '{"type":"int32","optional":false,"field":"id"},'
        '{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
        '"parameters":{"scale":"2","connect.decimal.precision":"10"},"field":"price"},'
        '{"type":"string","optional":true,"field":"__deleted"},'
        '{"type":"string","optional":true,"field":"__op"},'
        '{"type":"int64","optional":true,"field":"__source_pos"}'
    )

    assert (
        '{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}],'
        '"optional":false,"name":"p.shop.orders.Key"},"payload":{"id":1}}',
        f'{{"schema":{{"type":"struct","fields":[{fields}],"optional":false,'
        '"name":"p.shop.orders.Value"},"payload":{"id":1,"price":"AxY=","__deleted":"false",'
        '"__op":"c","__source_pos":null}}',
    ) == found


def test_what_is_no_row_passes_as_in_debezium() -> None:
    ddl = Event("ddl", "create", "shop", "t", ddl="CREATE TABLE t (id INT)", emit_time=TIME)
    for event in (ddl, Event("heartbeat", emit_time=TIME), Event("marker", "begin")):
        assert records(event, "debezium", **BARE) == records(event, **BARE)
    assert [] == lost(ddl, **BARE)
    assert [] == lost(Event("heartbeat", emit_time=TIME), **BARE)


def test_what_has_no_row_here() -> None:
    tombstone = Event("tombstone", format="debezium", extra={"key": '{"id":1}'})

    outcome = Encoder("debezium-smt")(tombstone)
    assert ([], ["tombstone"]) == (outcome.records, outcome.lost)
    assert [('{"id":1}', None)] == records(
        tombstone, delete_tombstone_handling_mode="rewrite-with-tombstone"
    )
    truncated = Encoder("debezium-smt", **BARE)(change("truncate", types=None))
    assert ["truncate", "emit-time-micros"] == truncated.lost
    assert b"TRUNCATE TABLE `shop`.`orders`" in (truncated.records[0].value or b"")


def test_own_rows_keep_their_fields() -> None:
    sent = b'{"id":1,"__op":"u","__lsn":7,"__source_ts_ms":1668489131000,"__deleted":false}'
    (event,) = decoder("debezium-smt")(None, sent, None)
    outcome = Encoder("debezium-smt", **BARE)(event)

    assert ([sent], []) == ([r.value for r in outcome.records], outcome.lost)


def test_oms() -> None:
    types = {"id": ColumnType("int"), "price": ColumnType("decimal(10,2)"), "b": ColumnType("blob")}
    event = change(types=types, after={**ROW, "b": "ag=="})
    beat = Event("heartbeat", event_time=TIME, emit_time=TIME)

    assert [(None, '{"id":1,"price":"7.90","b":"6A","__deleted":"false"}')] == records(
        event, "debezium-smt:oms"
    )
    assert records(beat, "debezium:oms") == records(beat, "debezium-smt:oms")
    assert ["insert", "database", "table", "key", *UNNAMED[2:]] == lost(event, "debezium-smt:oms")
    assert ["truncate"] == lost(change("truncate"), "debezium-smt:oms")
    with pytest.raises(UsageError, match="add-fields"):
        Encoder("debezium-smt:oms", add_fields="op")
    with pytest.raises(UsageError, match="schema"):
        Encoder("debezium-smt:oms", schemas_enable=True)


def test_canal_becomes_flat_rows() -> None:
    message = canal(data=[{"id": "1", "state": "paid"}], mysqlType={"id": "int", "state": "text"})
    (event,) = decoder("canal-json:canal")(None, message, None)

    assert [('{"id":1}', '{"id":1,"state":"paid","__deleted":"false"}')] == records(event, **BARE)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["insert", "update", "delete", "snapshot"]),
    st.integers(-(2**31), 2**31 - 1).map(str),
    st.none() | st.decimals(-(10**8), 10**8, places=2).map(lambda d: f"{d:.2f}"),
    st.none() | st.text(st.characters(exclude_categories=["Cs"])),
)
def test_any_row_comes_back(op: str, id: str, price: str | None, note: str | None) -> None:
    row: Image = {"id": id, "price": price, "note": note}
    images = {"before": row} if op == "delete" else {"before": None, "after": row}
    event = change(op, types=TYPES | {"note": ColumnType("text")}, **images)
    (record,) = Encoder("debezium-smt", add_fields="op")(event).records
    (again,) = decoder("debezium-smt")(record.key, record.value, None)

    assert (op, event.key) == (again.op, again.key)
    assert row == (again.before if op == "delete" else again.after)
    assert {"schema", "payload"} == json.loads(record.value or b"").keys()
