"""What all encoders have in common: partitions, topics, schemas learnt, losses, errors."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.codec.encoder import Encoder
from headgate.codec.packing import packed
from headgate.core.errors import UsageError
from headgate.core.event import ColumnType, Event
from headgate.core.losses import KINDS, NUMBERS, PLACE, PRESENT, SIGN
from headgate.core.options import build
from headgate.formats import MODULES, load

INT = {"a": ColumnType("int")}


def row(**changes: Any) -> Event:
    event = Event("row", "insert", "test", "t1", ("a",), after={"a": "11"}, types=INT)
    for name, value in changes.items():
        setattr(event, name, value)
    return event


def partitions(spec: str, event: Event, **options: Any) -> list[int | None]:
    return [record.partition for record in Encoder(spec, **options)(event).records]


@pytest.mark.parametrize(
    ("spec", "rule", "count", "expected"),
    [
        ("canal-json:ticdc", None, 16, 15),
        ("canal-json:ticdc", "index-value", 16, 2),
        ("open-protocol", "table", 16, 15),
        ("canal-json", None, 16, 0),
        ("maxwell", None, 5, 3),
        ("debezium", None, 5, None),
    ],
)
def test_each_format_goes_by_its_producers_hash(
    spec: str, rule: str | None, count: int, expected: int | None
) -> None:
    assert [expected] == partitions(spec, row(), partition=rule, partition_num=count)


def test_ddl_and_watermarks_go_where_the_protocol_says() -> None:
    ddl = Event("ddl", "create", "test", "t1", ddl="CREATE TABLE t1 (a INT)")
    watermark = Event("watermark", commit_ts=5)
    ticdc = {"partition_num": 3, "enable_tidb_extension": True}

    assert [0, 1, 2] == partitions("open-protocol", ddl, partition_num=3)
    assert [0] == partitions("canal-json:ticdc", ddl, **ticdc)
    assert [0, 1, 2] == partitions("open-protocol", watermark, partition_num=3)
    assert [0, 1, 2] == partitions("canal-json:ticdc", watermark, **ticdc)


def test_a_column_that_is_not_there_is_an_error_of_that_event() -> None:
    told = {"partition": "columns", "partition_columns": "b", "partition_num": 3}
    outcome = Encoder("canal-json:ticdc", **told)(row())

    assert ([], "dispatch") == (outcome.records, (outcome.error or ("",))[0])


@pytest.mark.parametrize("name", MODULES)
def test_a_format_says_it_carries_only_what_is_looked_at(name: str) -> None:
    encoding = load(name).encoding
    looked_at = {*KINDS, *PRESENT, "incomplete", "type-details", NUMBERS, SIGN}
    for dialect in load(name).dialects:
        told = encoding.carries(dialect, build(encoding.options, encoding.fullest.get(dialect, {})))
        assert set() == {code for code in told if not code.startswith(PLACE)} - looked_at


def test_topics_are_made_of_names() -> None:
    encoder = Encoder("maxwell", topic="cdc_{schema}_{table}")

    assert "cdc_test_t1" == encoder(row()).records[0].topic
    assert "cdc__x7btable_x7d_t1" == encoder(row(database="{table}")).records[0].topic
    with pytest.raises(UsageError, match="topic"):
        Encoder("maxwell", topic="{column}")


def test_rows_are_packed_until_something_else_comes() -> None:
    encoder = Encoder("open-protocol", max_batch_size=3)
    ddl = Event("ddl", "alter", "test", "t1", ddl="ALTER TABLE t1 COMMENT 'x'")
    events = [row(), row(), row(), row(), ddl, row(), row(table="t2")]
    records, losses = packed(encoder, events, map(encoder, events))

    assert 5 == len(records) == len(losses)


def test_ddl_teaches_types_and_keys_from_where_it_stands() -> None:
    encoder = Encoder("canal-json")
    untyped = row(key=None, types=None)
    before = encoder(untyped).records[0].value or b""
    encoder(Event("ddl", "create", "test", "t1", ddl="CREATE TABLE t1 (a INT PRIMARY KEY)"))
    after = encoder(untyped).records[0].value or b""

    assert b'"mysqlType":null' in before
    assert b'"mysqlType":{"a":"int"}' in after
    assert b'"pkNames":["a"]' in after
    assert untyped.types is None, "the event itself stays as it was"


def test_a_truncated_table_is_written_as_ddl_where_rows_cannot_say_it() -> None:
    outcome = Encoder("canal-json")(Event("row", "truncate", "test", "t`1"))

    assert ["truncate"] == outcome.lost
    assert b'"sql":"TRUNCATE TABLE `test`.`t``1`"' in (outcome.records[0].value or b"")
    assert ["truncate"] == Encoder("debezium-smt:oms")(Event("row", "truncate", "a", "b")).lost


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (row(op="upsert"), "no row has the operation 'upsert'"),
        (row(after=None), "the insert has no before image and no after image"),
        (row(op="delete"), "the delete has no before image and an after image"),
        (row(event_time=2**62), "a time is before year 1 or after year 9999"),
    ],
)
def test_an_event_that_cannot_be_is_an_error(event: Event, said: str) -> None:
    outcome = Encoder("maxwell")(event)

    assert ("malformed-event", f"{said}; check what made the event") == outcome.error
    assert [] == outcome.records


def test_strict_says_every_loss() -> None:
    outcome = Encoder("maxwell", strict=True)(row(commit_ts=5))

    assert [] == outcome.records
    code, sentence = outcome.error or ("", "")
    assert "lossy" == code
    assert "commit number" in sentence
    assert "column types" in sentence


def test_an_event_can_be_encoded_again() -> None:
    types = {"id": ColumnType("int"), "e": ColumnType("enum")}
    event = row(format="open-protocol", types=types, after={"id": "1", "e": "1"})
    encoder = Encoder("maxwell", schema="CREATE TABLE t1 (id INT, e ENUM('2','1'))")
    first, second = encoder(event), encoder(event)

    assert first.records == second.records
    assert {"id": "1", "e": "1"} == event.after


def test_omss_bigint_is_unsigned() -> None:
    types = {"a": ColumnType("INT64"), "u": ColumnType("BIGINT")}
    event = row(format="dataworks", dialect="v2.0", types=types, after={"a": "1", "u": "2"})

    assert b'"mysqlType":{"a":"bigint","u":"bigint unsigned"}' in value("canal-json", event)
    assert b'"mysqlType":{"a":"int64","u":"bigint"}' in value("canal-json:oms", event)


def test_types_of_a_sibling_dialect_lose_their_details() -> None:
    event = row(format="canal-json", dialect="canal", types={"a": ColumnType("int(11)")})

    assert ["type-details"] == Encoder("canal-json:ticdc")(event).lost


def test_ticdc_names_types_by_its_options_and_floats_without_exponent() -> None:
    types = {"a": ColumnType("enum('a\\\\','b')"), "f": ColumnType("float")}
    event = row(types=types, after={"a": "a\\", "f": "1.0E10"})

    assert b'"mysqlType":{"a":"enum","f":"float"}' in value("canal-json:ticdc", event)
    assert b'"data":[{"a":"1","f":"10000000000"}]' in value("canal-json:ticdc", event)
    described = value("canal-json:ticdc", event, content_compatible=True)
    assert b"enum('a\\\\\\\\','b')" in described
    plain = row(types={"a": ColumnType("decimal")}, after={"a": "1.25"})
    assert b'{"a":"decimal"}' in value("canal-json:ticdc", plain, content_compatible=True)


def test_a_cut_down_row_stays_marked() -> None:
    event = row(format="open-protocol", commit_ts=5, extra={"onlyHandleKey": "true"})
    found = value("canal-json:ticdc", event, enable_tidb_extension=True)

    assert b'"_tidb":{"commitTs":5,"onlyHandleKey":true}' in found


def test_the_connect_schema_is_in_the_order_of_the_row() -> None:
    after = {"id": "1", "a": "2"}
    one = {"id": ColumnType("int"), "a": ColumnType("int")}
    other = dict(reversed(one.items()))

    assert value("debezium", row(types=one, after=after)) == value(
        "debezium", row(types=other, after=after)
    )


def test_a_delete_that_debezium_wrote_brings_its_own_tombstone() -> None:
    event = row(op="delete", before={"a": "1"}, after=None, format="debezium", dialect="debezium")
    encoder = Encoder("debezium-smt", delete_tombstone_handling_mode="rewrite-with-tombstone")

    assert 1 == len(encoder(event).records)
    assert 2 == len(encoder(row(op="delete", before={"a": "1"}, after=None)).records)


def test_oms_pads_binary_in_hexadecimal() -> None:
    event = row(types={"a": ColumnType("binary(4)")}, after={"a": "YQ=="})

    assert b'"a":"61000000"' in value("debezium:oms", event)


def test_what_names_no_table_goes_to_the_sinks_topic() -> None:
    encoder = Encoder("open-protocol", topic="cdc.{table}")

    assert None is encoder(Event("watermark", commit_ts=5)).records[0].topic


def value(spec: str, event: Event, **options: Any) -> bytes:
    return Encoder(spec, **options)(event).records[0].value or b""
