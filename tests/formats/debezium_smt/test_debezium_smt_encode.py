"""Rows without their envelope as they are written: added fields, deletes, keys, schemas, losses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import canal

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.core.errors import UsageError
from headgate.core.event import ColumnType, Event, Image, Types

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


def test_a_column_with_the_name_of_an_added_field_is_a_loss() -> None:
    types = TYPES | {"__deleted": ColumnType("int")}
    event = change(after=ROW | {"__deleted": "5"}, types=types)

    assert [('{"id":1}', '{"id":1,"price":"AxY=","__deleted":"false"}')] == records(event, **BARE)
    assert "column-name" in lost(event, **BARE)
    assert "column-name" not in lost(change(), **BARE)
    ((_, value),) = records(event)
    fields = [(field["field"], field["type"]) for field in json.loads(value)["schema"]["fields"]]
    assert [("id", "int32"), ("price", "bytes"), ("__deleted", "string")] == fields


def test_a_column_that_readers_take_for_the_mark_of_a_delete_is_a_loss() -> None:
    """OMS adds no such field, and a reader refused the message for the column's value."""
    event = change(
        after=ROW | {"__deleted": "0x10"}, types={}, format="debezium-smt", dialect="oms"
    )
    outcome = Encoder("debezium-smt:oms")(event)

    assert b"__deleted" not in (outcome.records[0].value or b"")
    assert "column-name" in outcome.lost

    flagged = change(after=ROW | {"__op": "d"}, types=TYPES | {"__op": ColumnType("char(1)")})
    assert [('{"id":1}', '{"id":1,"price":"AxY=","__deleted":"false"}')] == records(flagged, **BARE)
    assert "column-name" in lost(flagged, **BARE)


def test_a_key_column_with_such_a_name_stays_in_the_key() -> None:
    types = TYPES | {"__deleted": ColumnType("int")}
    row = {"id": "1", "__deleted": "5"}
    event = change("delete", before=row, types=types, key=("id", "__deleted"))

    mode = {"delete_tombstone_handling_mode": "delete-to-tombstone"}
    assert [('{"id":1,"__deleted":5}', None)] == records(event, **BARE, **mode)
    inserted = change(after=row, types=types, key=("id", "__deleted"))
    ((key, _),) = records(inserted, **BARE)
    assert '{"id":1,"__deleted":5}' == key


@pytest.mark.parametrize("value", [None, b'{"schema":null,"payload":null}'])
def test_a_null_value_that_was_read_as_a_delete_is_written_as_it_was(value: bytes | None) -> None:
    key = b'{"id":1}'
    decode = decoder("debezium-smt", delete_tombstone_handling_mode="tombstone")
    (event,) = decode(key, value, "shop.shop.orders")

    assert ("delete", {"id": "1"}) == (event.op, event.before)
    (record,) = Encoder("debezium-smt")(event).records
    assert (key, value) == (record.key, record.value)
    ((_, written),) = records(event, "debezium", schemas_enable=False)[:1]
    assert '"op":"d"' in written


def test_a_delete_of_which_nothing_tells_how_it_came_is_written_as_the_options_say() -> None:
    event = change("delete", format="debezium-smt", dialect="debezium")

    assert [('{"id":1}', '{"id":1,"price":"AxY=","__deleted":"true"}')] == records(event, **BARE)


def test_deletes_by_their_mode() -> None:
    gone = '{"id":1,"price":"AxY=","__deleted":"true"}'
    mode = "delete_tombstone_handling_mode"

    assert [('{"id":1}', gone), ('{"id":1}', None)] == records(
        change("delete"), **BARE, **{mode: "rewrite-with-tombstone"}
    )
    # The transform's null has a schema, so that the converter writes the text null.
    assert [('{"id":1}', "null")] == records(change("delete"), **BARE, **{mode: "tombstone"})
    assert [('{"id":1}', None)] == records(
        change("delete"), **BARE, **{mode: "delete-to-tombstone"}
    )
    assert [] == records(change("delete"), **BARE, **{mode: "drop"})
    for name in ("tombstone", "delete-to-tombstone", "drop"):
        assert [('{"id":1}', '{"id":1,"price":"AxY="}')] == records(
            change(), **BARE, **{mode: name}
        )
    for name in ("tombstone", "delete-to-tombstone"):
        assert [*UNNAMED, "deleted-row"] == lost(change("delete"), **BARE, **{mode: name})


def test_the_mode_drop_says_what_it_leaves_out() -> None:
    mode = {"delete_tombstone_handling_mode": "drop"}
    moved = change("update", after=ROW | {"id": "2"})
    strict = Encoder("debezium-smt", **mode, strict=True)(change("delete"))

    assert ["row"] == lost(change("delete"), **mode)
    assert "lossy" == (strict.error or ("",))[0]
    assert [('{"id":2}', '{"id":2,"price":"AxY="}')] == records(moved, **BARE, **mode)
    assert {"key-change", "row"} <= set(lost(moved, **mode))


def test_the_null_of_a_delete_has_the_tables_schema() -> None:
    mode = {"delete_tombstone_handling_mode": "tombstone"}
    ((key, value),) = records(change("delete"), topic_prefix="p", add_fields="op", **mode)
    message = json.loads(value)

    assert {"id": 1} == json.loads(key)["payload"]
    assert (None, True, "p.shop.orders.Value") == (
        message["payload"],
        message["schema"]["optional"],
        message["schema"]["name"],
    )
    assert ["id", "price"] == [f["field"] for f in message["schema"]["fields"]]


def test_a_null_that_has_a_schema_comes_back_as_it_was() -> None:
    key = b'{"id":1}'
    for sent in (None, b"null", b'{"schema":{"type":"struct","fields":[]},"payload":null}'):
        (event,) = decoder("debezium-smt")(key, sent, None)
        (same,) = Encoder("debezium-smt")(event).records
        (other,) = Encoder("debezium")(event).records

        assert ("tombstone", sent, None) == (event.kind, same.value, other.value)
        assert [key, key] == [same.key, other.key]


def test_debeziums_tombstones_pass_in_one_mode_only() -> None:
    event = Event("tombstone", format="debezium", dialect="debezium", extra={"key": '{"id":1}'})
    passed = {}
    for mode in ("rewrite", "rewrite-with-tombstone", "tombstone", "delete-to-tombstone", "drop"):
        encoder = Encoder("debezium-smt", delete_tombstone_handling_mode=mode)
        passed[mode] = len(encoder(event).records)

    assert ["rewrite-with-tombstone"] == [mode for mode, count in passed.items() if count]


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


def metadata(event: Event, ask: str, **options: Any) -> dict[str, Any]:
    """The added fields of an event's row."""
    (found,) = records(event, **{**BARE, **options}, add_fields=ask)
    row: dict[str, Any] = json.loads(found[1])
    return {n: v for n, v in row.items() if n.startswith("__") and n != "__deleted"}


TRANSACTION = '"transaction":{"id":"a:1","total_order":3,"data_collection_order":2}'


def enveloped(connector: str = "mysql", more: str = "", transaction: str = TRANSACTION) -> Event:
    """A row that Debezium wrote."""
    source = f'{{"version":"3.6.1.Final","connector":"{connector}","name":"p","db":"shop"{more}}}'
    sent = f'{{"before":null,"after":{{"id":1}},"source":{source},{transaction},"op":"c"}}'
    (event,) = decoder("debezium")(b'{"id":1}', sent.encode(), None)
    return event


def test_members_of_the_transaction() -> None:
    ask = "transaction.id,transaction.total_order,transaction.data_collection_order"
    told = {"id": "a:1", "total_order": 3, "data_collection_order": 2}
    nothing = dict.fromkeys(told)

    assert {f"__transaction_{n}": v for n, v in told.items()} == metadata(enveloped(), ask)
    assert {f"__{n}": v for n, v in told.items()} == metadata(
        enveloped(), ask.replace("transaction.", "")
    )
    assert {f"__transaction_{n}": v for n, v in nothing.items()} == metadata(change(), ask)


def test_members_that_nobody_has_are_left_out() -> None:
    ask = "lsn,source.nothing,transaction.nothing,source.op,table"
    message = json.loads(records(change(), add_fields=ask)[0][1])
    postgres = enveloped("postgresql", ',"table":"t","lsn":24023128,"txId":556,"xmin":null')

    assert {"__source_op": "c", "__table": "orders"} == metadata(change(), ask)
    assert ["__deleted", "__source_op", "__table"] == [
        f["field"] for f in message["schema"]["fields"] if f["field"].startswith("__")
    ]
    assert {"__lsn": 24023128, "__txId": 556} == metadata(postgres, "lsn,txId,file")
    message = json.loads(records(postgres, add_fields="lsn,txId")[0][1])
    assert ["int64", "int64"] == [f["type"] for f in message["schema"]["fields"][-2:]]


def test_an_added_snapshot_is_null_unless_it_is_one() -> None:
    (found,) = records(change(), add_fields="source.snapshot")
    field = json.loads(found[1])["schema"]["fields"][-1]

    assert {"__source_snapshot": None, "__snapshot": None} == metadata(
        change(), "source.snapshot,snapshot"
    )
    assert {"__snapshot": "true"} == metadata(change("snapshot"), "snapshot")
    assert {"__snapshot": "last"} == metadata(enveloped(more=',"snapshot":"last"'), "snapshot")
    assert ("io.debezium.data.Enum", True, False) == (
        field["name"],
        field["optional"],
        "default" in field,
    )


def test_one_added_field_is_enough() -> None:
    mode = {"delete_tombstone_handling_mode": "tombstone"}

    assert {"__table": "orders"} == metadata(change(), "table", **mode)


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


def test_a_changed_key_tells_the_other_key_in_a_header() -> None:
    event = change("update", after=ROW | {"id": "2"})
    new, old = (("__debezium.newkey", b'{"id":2}'),), (("__debezium.oldkey", b'{"id":1}'),)
    mode = "delete_tombstone_handling_mode"

    for options in ({}, BARE, {mode: "tombstone"}):
        assert [new, old] == [r.headers for r in Encoder("debezium-smt", **options)(event).records]
    with_tombstone = Encoder("debezium-smt", **{mode: "rewrite-with-tombstone"})(event).records
    assert [new, new, old] == [r.headers for r in with_tombstone]
    assert [None, None] == [r.headers for r in Encoder("debezium-smt:oms")(event).records]


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


def test_what_omss_heartbeats_lose() -> None:
    beat = Event("heartbeat", None, "shop", "t", event_time=TIME, emit_time=TIME)
    precise = Event("heartbeat", event_time=TIME + 1, emit_time=TIME + 1)

    for spec in ("debezium-smt:oms", "debezium:oms"):
        assert [] == lost(beat, spec)
        assert ["event-time-micros", "emit-time-micros"] == lost(precise, spec)


def test_canal_becomes_flat_rows() -> None:
    message = canal(data=[{"id": "1", "state": "paid"}], mysqlType={"id": "int", "state": "text"})
    (event,) = decoder("canal-json:canal")(None, message, None)

    assert [('{"id":1}', '{"id":1,"state":"paid","__deleted":"false"}')] == records(event, **BARE)


@settings(deadline=None, max_examples=examples(60))
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
