"""A dialect of canal-json is one record in a table: all else is derived from it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headgate import formats
from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.loss_samples import losses
from headgate.core.event import ColumnType, Event
from headgate.core.mysql_types import MySqlType
from headgate.formats import canal_json
from headgate.formats.canal_json.dialects import DIALECTS
from headgate.formats.canal_json.dialects.canal import CANAL, CanalMessage, canal_row
from headgate.formats.canal_json.type_maps import Plan

EVENT = Event(
    "row",
    "update",
    "shop",
    "orders",
    key=("id",),
    before={"id": "1", "state": "new"},
    after={"id": "1", "state": "paid"},
    types={"id": ColumnType("int(11)"), "state": ColumnType("enum('new','paid')")},
    event_time=1_589_373_515_000_000,
    emit_time=1_589_373_515_477_000,
)


def acme_row(event: Event, plan: Plan, lost: list[str]) -> CanalMessage:
    message = canal_row(event, plan, lost)
    message.id = -1
    return message


def upper_case(column: ColumnType, type_: MySqlType, same_dialect: bool) -> str:
    return type_.base.upper()


ACME = replace(
    CANAL,
    name="acme",
    summary="Acme's messages: like Canal's, with id -1 and types in upper case",
    has_mark=lambda message: message.id == -1,
    row_encoder=lambda options: acme_row,
    type_namer=lambda options: upper_case,
    carries=lambda options: CANAL.carries(options) - {"type-details", "position.gtid"},
)


def register() -> None:
    """Derive the format from the table again, as a new process does."""
    importlib.reload(canal_json)
    for cached in (formats.load, formats.traits_of, formats.extra_members):
        cached.cache_clear()


@pytest.fixture
def _with_acme() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DIALECTS, "acme", ACME)
        register()
        yield
    register()


def encoded(event: Event, spec: str) -> dict[str, Any]:
    (record,) = Encoder(spec)(event).records
    message: dict[str, Any] = json.loads(record.value or b"")
    return message


@pytest.mark.usefixtures("_with_acme")
def test_one_record_adds_a_dialect() -> None:
    message = encoded(EVENT, "canal-json:acme")
    assert (-1, {"id": "INT", "state": "ENUM"}) == (message["id"], message["mysqlType"])
    assert {**message, "id": 1, "mysqlType": None} == {
        **encoded(EVENT, "canal-json:canal"),
        "mysqlType": None,
    }

    for spec in ("canal-json:acme", "canal-json", "auto"):
        (event,) = decoder(spec)(None, json.dumps(message).encode(), None)
        assert ("canal-json", "acme") == (event.format, event.dialect)
        assert ({"id": "1", "state": "1"}, {"id": "1", "state": "2"}) == (event.before, event.after)
    assert message == encoded(event, "canal-json:acme")


@pytest.mark.usefixtures("_with_acme")
def test_what_the_rest_asks_of_a_dialect_is_derived_from_its_record() -> None:
    format = formats.load("canal-json")
    assert ACME.summary == format.dialects["acme"]
    assert "canal" == next(iter(format.dialects)), "the default for writing"
    assert format.encoding is not None
    assert "canal" == format.encoding.partition_rules["acme"].producer
    assert formats.traits_of("canal-json", "acme").enum_as_number
    codes = {loss.code for loss in losses("canal-json:canal", "canal-json:acme")}
    assert {"type-details", "position"} <= codes


@pytest.mark.usefixtures("_with_acme")
def test_the_other_dialects_are_recognised_as_before() -> None:
    for spec in ("canal-json:canal", "canal-json:ticdc", "canal-json:oms", "canal-json:tencent"):
        value = json.dumps(encoded(EVENT, spec)).encode()
        (event,) = decoder("canal-json")(None, value, None)
        assert spec == f"{event.format}:{event.dialect}"
