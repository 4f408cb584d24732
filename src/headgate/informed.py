"""Decoding with a table schema: exact types, keys, labels, and values in the form of their type."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from headgate.errors import DecodeError
from headgate.event import Event, Types
from headgate.formats import Decode
from headgate.formats.parts import oms_values
from headgate.memo import Plans
from headgate.mysql_types import MySqlType, parse_type
from headgate.schemas import Schemas
from headgate.values import Convert, base64_bytes, with_digits, year

UNTYPED_OMS = ("oms-default", "shareplex")
"""Formats of OMS that send values in OMS's forms, and no types beside them."""


def informed(decode: Decode, sql: str) -> Decode:
    """A decoder whose rows have the types, keys and labels of a schema.

    >>> from headgate.formats import decoder
    >>> decode = informed(decoder("canal-json"), "CREATE TABLE t (e ENUM('a','b') PRIMARY KEY)")
    >>> m = b'{"database":"d","table":"t","type":"INSERT","isDdl":false,"id":1,"data":[{"e":"2"}]}'
    >>> decode(None, m, None)[0].after
    {'e': 'b'}
    """
    schemas = Schemas(sql)
    exact_columns = Plans(exact)
    oms_columns = Plans(from_oms)

    def run(key: bytes | None, value: bytes | None, topic: str | None) -> list[Event]:
        events = decode(key, value, topic)
        for event in events:
            if event.kind == "row":
                untyped = event.types is None
                schemas.complete(event)
                if event.types is not None:
                    if untyped and event.format in UNTYPED_OMS:
                        convert(event, oms_columns(event.types))
                    convert(event, exact_columns(event.types))
        return events

    return run


Columns = list[tuple[str, Callable[[Any], Any]]]


def convert(event: Event, columns: Columns) -> None:
    """Apply a conversion to each column of both images; a value that is none of its type stays."""
    if not columns:
        return
    for image in (event.before, event.after):
        if image:
            for name, function in columns:
                text = image.get(name)
                if text is not None:
                    try:
                        image[name] = function(text)
                    except DecodeError:
                        continue


def exact(types: Types | None) -> Columns:
    """Columns whose text depends on the declared type: fractions of seconds, BINARY, YEAR."""
    parsed = {name: parse_type(told.mysql) for name, told in (types or {}).items()}
    return [(name, c) for name, type_ in parsed.items() if (c := exact_text(type_))]


def exact_text(type_: MySqlType) -> Convert | None:
    """What gives a value the form that its declared type has in MySQL.

    >>> exact_text(parse_type("datetime(3)"))("2024-05-01 08:00:00.500000")
    '2024-05-01 08:00:00.500'
    """
    if type_.family in ("time", "datetime", "timestamp"):
        return with_digits(type_.length or 0)
    if type_.family == "year":
        return year
    if type_.base == "binary":
        length = type_.length or 1

        def padded(text: str) -> str:
            held = base64_bytes(text)
            if len(held) >= length:
                return text
            return b64encode(held.ljust(length, b"\0")).decode()

        return padded
    return None


def from_oms(types: Types | None) -> Columns:
    """Columns that OMS sends in a form of its own."""
    return [
        (name, c)
        for name, told in (types or {}).items()
        if told.mysql and (c := oms_values.converter(told.mysql))
    ]
