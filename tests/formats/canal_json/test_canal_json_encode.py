"""Canal's messages as Canal, TiCDC and Tencent write them, where the events are others'."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.loss_samples import losses
from headgate.core.event import ColumnType, Event, Image, Types

CANAL, TICDC, TENCENT = "canal-json:canal", "canal-json:ticdc", "canal-json:tencent"
TYPES: Types = {"id": ColumnType("int"), "name": ColumnType("varchar(20)")}
ROW: Image = {"id": "1", "name": "a"}
NO_LOSS: list[str] = []


def change(op: str = "insert", **parts: Any) -> Event:
    images = {"delete": {"before": ROW}}.get(op, {"after": ROW})
    table = {"database": "test", "table": "t", "key": ("id",), "types": TYPES}
    return Event("row", op, **(table | images | parts))


def messages(event: Event, spec: str, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(r.value or b"") for r in Encoder(spec, **options)(event).records]


def message(event: Event, spec: str, **options: Any) -> dict[str, Any]:
    (only,) = messages(event, spec, **options)
    return only


def lost(event: Event, spec: str, **options: Any) -> list[str]:
    return [c for c in Encoder(spec, **options)(event).lost if c != "type-details"]


def written(mysql: str, text: str, spec: str) -> tuple[Any, list[str]]:
    """A column's value in a message, and what was lost of it."""
    event = change(types={"v": ColumnType(mysql)}, after={"v": text}, key=())
    codes = [c for c in lost(event, spec) if c not in ("key", "types")]
    return message(event, spec)["data"][0]["v"], codes


# DDL


@pytest.mark.parametrize(
    ("canal", "ticdc", "statement"),
    [
        ("CREATE", "CREATE", "CREATE TABLE t (id INT)"),
        ("ALTER", "ALTER", "ALTER TABLE t ADD c INT"),
        ("CINDEX", "CINDEX", "ALTER TABLE t ADD INDEX i (a)"),
        ("CINDEX", "CINDEX", "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)"),
        ("CINDEX", "CINDEX", "CREATE UNIQUE INDEX i ON t (a)"),
        ("DINDEX", "DINDEX", "DROP INDEX i ON t"),
        ("DINDEX", "DINDEX", "ALTER TABLE t DROP KEY i"),
        ("DINDEX", "ALTER", "ALTER TABLE t DROP INDEX i, ADD c INT"),
        ("CINDEX", "ALTER", "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (b), ADD INDEX i (a)"),
        ("ALTER", "CINDEX", "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (b)"),
        ("DINDEX", "QUERY", "ALTER TABLE t DROP CONSTRAINT c"),
        ("RENAME", "RENAME", "ALTER TABLE s RENAME TO t"),
        ("RENAME", "RENAME", "RENAME TABLE s TO t"),
        ("ERASE", "ERASE", "DROP TABLE t"),
        ("TRUNCATE", "TRUNCATE", "TRUNCATE t"),
        ("QUERY", "QUERY", "CREATE OR REPLACE VIEW t AS SELECT 1"),
        ("QUERY", "QUERY", "DROP VIEW t"),
        ("QUERY", "QUERY", "ALTER VIEW t AS SELECT 2"),
        ("ALTER", "ALTER", "ALTER TABLE t ENGINE = InnoDB"),
        ("ALTER", "ALTER", "ALTER TABLE t DROP PARTITION p0, p1"),
        ("ALTER", "QUERY", "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u"),
        ("ALTER", "ALTER", "?"),
    ],
)
@pytest.mark.parametrize("format", ["maxwell", "debezium"])
def test_the_word_for_ddl_is_read_from_the_statement(
    canal: str, ticdc: str, statement: str, format: str
) -> None:
    event = Event("ddl", "alter", "test", "t", ddl=statement, format=format)

    assert canal == message(event, CANAL)["type"]
    assert canal == message(event, TENCENT)["type"]
    assert ticdc == message(event, TICDC)["type"]


def test_a_producers_own_word_for_ddl_stays() -> None:
    ddl = {"database": "test", "table": "t", "ddl": "ALTER TABLE t ADD c INT"}
    for spec in (CANAL, TICDC, TENCENT):
        origin = {"format": "canal-json", "dialect": spec.partition(":")[2]}
        assert "QUERY" == message(Event("ddl", "query", **ddl, **origin), spec)["type"]
    event = Event("ddl", "query", **ddl, format="open-protocol", dialect="new")
    assert "QUERY" == message(event, TICDC)["type"], "its operation is from TiDB's action number"
    assert "ALTER" == message(event, CANAL)["type"]
    event.table = None
    assert "QUERY" == message(event, CANAL)["type"]


# Values


@pytest.mark.parametrize("text", ["0", "0000"])
def test_the_year_0_is_written_as_each_producer_does(text: str) -> None:
    assert ("0000", NO_LOSS) == written("year", text, CANAL)
    assert ("0", NO_LOSS) == written("year", text, TICDC)
    assert (0, NO_LOSS) == written("year", text, TENCENT)


@pytest.mark.parametrize(("spec", "sent"), [(CANAL, "0000"), (TICDC, "0")])
def test_the_year_0_is_read_from_each_producer(spec: str, sent: str) -> None:
    row = message(change(types={"y": ColumnType("year")}, after={"y": "2024"}), spec)
    row["data"] = [{"y": sent}]
    (event,) = decoder(spec)(None, json.dumps(row).encode(), None)

    assert {"y": "0000"} == event.after


@pytest.mark.parametrize(
    ("text", "canal", "ticdc"),
    [
        ("1.5", "1.5", "1.5"),
        ("5", "5.0", "5"),
        ("-0", "-0.0", "-0"),
        ("0.00", "0.0", "0"),
        ("10000000", "1.0E7", "10000000"),
        ("9999999.5", "9999999.5", "9999999.5"),
        ("1e-7", "1.0E-7", "0.0000001"),
        ("0.001", "0.001", "0.001"),
        ("0.0005", "5.0E-4", "0.0005"),
        ("3.4028235e38", "3.4028235E38", "340282350000000000000000000000000000000"),
        ("1.0E10", "1.0E10", "10000000000"),
    ],
)
def test_floats_are_in_the_producers_notation(text: str, canal: str, ticdc: str) -> None:
    for spec, expected in ((CANAL, canal), (TICDC, ticdc)):
        for mysql in ("float", "double"):
            changed = ["float-digits"] * (text != expected)
            assert (expected, changed) == written(mysql, text, spec)


def test_a_float_that_is_none_stays() -> None:
    for spec in (CANAL, TICDC):
        assert ("x.0", ["misfit"]) == written("double", "x.0", spec)


def test_canals_own_floats_keep_their_digits() -> None:
    types = {"f": ColumnType("float", 7)}
    event = change(types=types, after={"f": "0.0020"}, format="canal-json", dialect="canal")

    assert {"f": "0.0020"} == message(event, CANAL)["data"][0]


def test_zerofill_is_not_padded() -> None:
    for spec in (CANAL, TICDC):
        assert ("7", NO_LOSS) == written("int(10) unsigned zerofill", "7", spec)


def test_rows_of_one_message_get_codes_of_their_own() -> None:
    types = {"u": "int(10) unsigned", "s": "set('a')"}
    two_rows = {
        "data": [{"u": "5", "s": None}, {"u": "4294967295", "s": "1"}],
        "database": "test", "es": 1589373515000, "gtid": "", "id": 7, "isDdl": False,
        "mysqlType": types, "old": None, "pkNames": None, "sql": "",
        "sqlType": {"u": -5, "s": -7}, "table": "t", "ts": 1589373515477, "type": "INSERT",
    }  # fmt: skip
    events = decoder(CANAL)(None, json.dumps(two_rows).encode(), None)

    assert [{"u": 4, "s": 2004}, {"u": -5, "s": -7}] == [
        message(event, CANAL)["sqlType"] for event in events
    ]


# TiCDC


def test_ticdc_knows_every_key() -> None:
    event = change(key=None)

    assert [] == message(event, TICDC)["pkNames"]
    assert ["key-unknown"] == lost(event, TICDC)
    assert [] == message(change(key=()), TICDC)["pkNames"]
    assert NO_LOSS == lost(change(key=()), TICDC)
    assert None is message(event, CANAL)["pkNames"]


@pytest.mark.parametrize(
    "types", [None, {"id": ColumnType("int")}, {"id": ColumnType("int"), "name": ColumnType()}]
)
def test_ticdc_has_a_type_for_every_column(types: Types | None) -> None:
    event = change(types=types)
    row = message(event, TICDC)
    known = types is not None

    assert {"id": "int" if known else "varchar", "name": "varchar"} == row["mysqlType"]
    assert {"id": 4 if known else 12, "name": 12} == row["sqlType"]
    assert ["types-guessed"] == lost(event, TICDC)


def test_ticdc_leaves_out_a_watermark_of_0() -> None:
    extended = {"enable_tidb_extension": True}
    for ts, expected in ((0, {}), (None, {}), (7, {"watermarkTs": 7})):
        event = Event("watermark", commit_ts=ts)
        assert expected == message(event, TICDC, **extended)["_tidb"]
    ddl = Event("ddl", "create", "d", "t", ddl="CREATE TABLE t (id INT)", commit_ts=0)
    assert {} == message(ddl, TICDC, **extended)["_tidb"]


def test_a_watermark_without_the_extension_is_refused() -> None:
    watermark = message(Event("watermark", commit_ts=7), TICDC, enable_tidb_extension=True)
    del watermark["_tidb"]
    with pytest.raises(Exception, match="the watermark has no _tidb"):
        decoder(TICDC)(None, json.dumps(watermark).encode(), None)


UNIQUE: Types = {"u": ColumnType("int", None, 1 + 2 + 16), "v": ColumnType("int", None, 65)}


def test_a_deleted_row_is_cut_down_to_its_handle_key() -> None:
    only = {"delete_only_output_handle_key_columns": True}
    unique = change("delete", key=(), types=UNIQUE, before={"u": "1", "v": "2"})
    for event, row in ((change("delete"), {"id": "1"}), (unique, {"u": "1"})):
        deleted = message(event, TICDC, **only)
        assert [row] == deleted["data"]
        assert row.keys() == deleted["sqlType"].keys() == deleted["mysqlType"].keys()
        assert ["deleted-row"] == lost(event, TICDC, **only)
    keyless = change("delete", key=())
    assert [ROW] == message(keyless, TICDC, **only)["data"]
    assert NO_LOSS == lost(keyless, TICDC, **only)


@pytest.mark.parametrize(
    "event",
    [
        change("update", before=ROW, after=ROW | {"id": "2"}),
        change("update", key=(), types=UNIQUE, before={"u": "1"}, after={"u": "2"}),
        change(
            "update", types=TYPES | {"u": ColumnType("int", None, 1 + 16)},
            before=ROW | {"u": "1"}, after=ROW | {"u": "2"},
        ),
    ],
    ids=["primary", "handle", "unique"],
)  # fmt: skip
def test_ticdc_splits_an_update_of_a_key(event: Event) -> None:
    gone, come = messages(event, TICDC)

    assert ("DELETE", [event.before], None) == (gone["type"], gone["data"], gone["old"])
    assert ("INSERT", [event.after], None) == (come["type"], come["data"], come["old"])
    assert ["key-change"] == lost(event, TICDC)
    raw = message(event, TICDC, output_raw_change_event=True)
    assert ("UPDATE", [event.before]) == (raw["type"], raw["old"])
    assert NO_LOSS == lost(event, TICDC, output_raw_change_event=True)
    assert "UPDATE" == message(event, CANAL)["type"]


def test_each_half_of_an_update_has_codes_of_its_own() -> None:
    types = {"id": ColumnType("tinyint unsigned", -6)}
    event = change("update", types=types, before={"id": "200"}, after={"id": "1"})
    event.format, event.dialect = "canal-json", "ticdc"

    assert [{"id": 5}, {"id": -6}] == [m["sqlType"] for m in messages(event, TICDC)]


def test_ticdc_splits_no_other_update() -> None:
    for event in (
        change("update", before=ROW | {"name": "b"}),
        change("update", before={"name": "b"}),
        change("update", key=None, before=ROW | {"id": "2"}),
    ):
        assert "UPDATE" == message(event, TICDC)["type"]


@pytest.mark.parametrize("spec", [TICDC, "open-protocol:classic", "open-protocol:new"])
def test_each_half_of_an_update_goes_where_its_row_is(spec: str) -> None:
    encode = Encoder(spec, partition="index-value", partition_num=16)
    types = {"a": ColumnType("int")}
    event = Event("row", "update", "test", "t1", ("a",), {"a": "11"}, {"a": "22"}, types)

    assert [2, 11] == [record.partition for record in encode(event).records]


def test_what_a_split_loses_is_listed() -> None:
    for spec in (TICDC, "open-protocol"):
        assert "key-change" in [loss.code for loss in losses("canal-json", spec)]
        assert "key-change" not in [
            loss.code for loss in losses("canal-json", spec, output_raw_change_event=True)
        ]
    assert "key-change" in [loss.code for loss in losses(TICDC, "debezium")]


def test_only_ticdc_has_its_options() -> None:
    with pytest.raises(Exception, match="output-raw-change-event is only for canal-json:ticdc"):
        Encoder(CANAL, output_raw_change_event=True)


# Types


def test_a_sign_is_a_detail_where_only_names_are_written() -> None:
    event = change(types={"id": ColumnType("tinyint unsigned")}, after={"id": "200"})
    names = {"canal-json:oms", "dataworks", "oms-default:extend-column-type"}
    for spec in (*names, TICDC, CANAL, "open-protocol"):
        assert (spec in names) == ("type-details" in Encoder(spec)(event).lost), spec
    big = change(types={"id": ColumnType("bigint unsigned")}, after={"id": "200"})
    for spec in names:
        assert "type-details" not in Encoder(spec)(big).lost, "OMS has a name for it"
