"""What a message's schema block says of a value holds: Kafka's JSON converter can read it.

`make interop` has the real converter read the same messages.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from connect_messages import Written, golden, recorded, written
from effort import one_in
from paths import VECTORS

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.core.event import ColumnType, Event

WHOLE = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
DAY = 24 * 60 * 60 * 1000


def problems(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """Where a value is not what its schema says, as Kafka Connect understands it."""
    path = f"{path}.{schema['field']}" if "field" in schema else path
    kind, name = schema["type"], schema.get("name", "")
    if value is None:
        if not schema.get("optional") and "default" not in schema:
            yield f"{path}: null, but required"
    elif name.endswith("connect.data.Decimal") and isinstance(value, int | float):
        return
    elif kind in WHOLE:
        if type(value) is not int or not -(1 << WHOLE[kind]) <= value < 1 << WHOLE[kind]:
            yield f"{path}: no {kind}"
        elif name.endswith("connect.data.Time") and not 0 <= value <= DAY:
            yield f"{path}: no time of a day"
    elif kind in ("float", "double"):
        if type(value) not in (int, float):
            yield f"{path}: no {kind}"
    elif kind == "boolean":
        if type(value) is not bool:
            yield f"{path}: no boolean"
    elif kind == "string":
        if not isinstance(value, str):
            yield f"{path}: no string"
    elif kind == "bytes":
        try:
            b64decode(value, validate=True)
        except (ValueError, TypeError):
            yield f"{path}: no base64"
    elif kind == "array":
        if not isinstance(value, list):
            yield f"{path}: no array"
            return
        for each in value:
            yield from problems(schema["items"], each, f"{path}[]")
    elif kind == "map":
        if not isinstance(value, dict):
            yield f"{path}: no map"
            return
        for each in value.values():
            yield from problems(schema["values"], each, f"{path}{{}}")
    elif kind == "struct":
        if not isinstance(value, dict):
            yield f"{path}: no struct"
            return
        for field in schema["fields"]:
            yield from problems(field, value.get(field["field"]), path)
    else:
        yield f"{path}: {kind} is no type of Connect's"


def wrong(messages: Iterable[Written]) -> list[str]:
    found = []
    for origin, is_key, content in messages:
        told = json.loads(content)
        if set(told) != {"schema", "payload"}:
            found.append(f"{origin}: no schema and payload")
            continue
        found += [
            f"{origin}: {'key' if is_key else 'value'}{problem}"
            for problem in problems(told["schema"], told["payload"])
        ]
    return found


@pytest.mark.slow
def test_golden_messages() -> None:
    assert [] == wrong(golden())[:20]


@pytest.mark.parametrize(
    "name",
    one_in(
        3,
        ["mysql80/dbz35-default", "mysql80/canal17", "mysql80/maxwell145", "ticdc/new.canal-ext"],
    ),
)
def test_recorded_messages(name: str) -> None:
    path = VECTORS / f"{name}.jsonl.xz"
    schema = {} if "ticdc" in name else {"schema": (path.parent / "schema.sql").read_text()}

    assert [] == wrong(recorded(path, [{}]))[:20]
    assert [] == wrong(recorded(path, [{"time_precision_mode": "connect"}], **schema))[:20]


MISFITS = [
    ("point", "POINT (1.5 -2.25)", {}),
    ("point", '{"x":1.5}', {}),
    ("geometry", '{"wkb":5,"srid":null}', {}),
    ("vector(3)", '["a"]', {}),
    ("time", "-838:59:59", {"time_precision_mode": "connect"}),
    ("decimal(5,2)", "1E-30", {}),
    ("smallint", "40000", {}),
    ("bigint", "9223372036854775808", {}),
    ("bigint unsigned", "18446744073709551616", {}),
    ("varbinary(9)", "no base64!", {}),
    ("year", "MMXX", {}),
    ("tinyint(1)", "yes", {}),
    ("double", "1" * 1001, {}),
]


@pytest.mark.parametrize(("mysql", "text", "options"), MISFITS)
@pytest.mark.parametrize("format", ["debezium", "debezium-smt"])
def test_a_value_that_its_type_cannot_have_is_text_and_counted(
    mysql: str, text: str, options: dict[str, Any], format: str
) -> None:
    types = {"id": ColumnType("int"), "v": ColumnType(mysql)}
    event = Event("row", "update", "d", "t", ("id",), types=types)
    event.before, event.after = {"id": "1", "v": None}, {"id": "1", "v": text}
    outcome = Encoder(format, **options)(event)
    message = json.loads(outcome.records[0].value or b"")
    row = message["payload"]["after"] if format == "debezium" else message["payload"]

    assert row["v"] == text
    assert [] == wrong(written("misfit", [event], [options]))
    assert "misfit" in outcome.lost


def test_both_rows_of_an_update_have_the_type_that_the_schema_says() -> None:
    types = {"id": ColumnType("int"), "v": ColumnType("int")}
    event = Event("row", "update", "d", "t", ("id",), types=types)
    event.before, event.after = {"id": "1", "v": "5"}, {"id": "1", "v": "five"}
    payload = json.loads(Encoder("debezium")(event).records[0].value or b"")["payload"]

    assert ("5", "five") == (payload["before"]["v"], payload["after"]["v"])


def test_a_required_column_without_a_value_is_optional() -> None:
    types = {"id": ColumnType("int", flags=0), "at": ColumnType("datetime", flags=0)}
    event = Event("row", "insert", "d", "t", ("id",), after={"id": "1", "at": None}, types=types)
    partial = Event("row", "insert", "d", "t", ("id", "at"), after={"id": "1"}, types=types)

    assert [] == wrong(written("null", [event, partial], [{}]))


def test_objects_without_types_are_text() -> None:
    value = b'{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1,"o":{"a":[1]}}}'
    events = decoder("maxwell")(None, value, None)

    assert [] == wrong(written("nested", events, [{}]))
