"""Maxwell's row images as canonical text, with or without types from the option `columns`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from headgate.core import values
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event, Types
from headgate.core.json import Raw, parse, reader
from headgate.core.options import CommonOptions
from headgate.core.values import Convert
from headgate.formats._connect.columns import DECIMALS, table_columns
from headgate.formats.base import Producer, ReadColumn

NO_COLUMNS: frozenset[str] = frozenset()


class RawRows(msgspec.Struct, gc=False):
    """The rows alone, each value as its own bytes."""

    data: dict[str, Raw] | None = None
    old: dict[str, Raw] | None = None


class Plan(msgspec.Struct):
    """What the option `columns` means for one table."""

    types: Types | None
    sets: list[str]
    documents: frozenset[str]
    bits: list[str]
    decimals: list[str]
    timestamps: list[str]
    years: list[str]


_raw_rows = reader(RawRows)
_json = msgspec.json.encode
_DIGITS = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)


def planner(columns: str | None) -> Callable[[Event], Plan] | None:
    """A function that returns the plan of an event's table; None if the option is not set."""
    columns_of = table_columns(columns)
    if columns_of is None:
        return None

    @lru_cache(maxsize=4096)
    def plan(database: str | None, table: str | None) -> Plan:
        columns = columns_of(database, table)
        bases = {n: values.base_type(t) for n, t in columns.items()}

        def names(*wanted: str) -> list[str]:
            return [column for column, base in bases.items() if base in wanted]

        return Plan(
            {n: ColumnType(t) for n, t in columns.items()} or None,
            names("set"),
            frozenset(names("json")),
            names("bit"),
            names(*DECIMALS),
            names("timestamp"),
            names("year"),
        )

    return lambda event: plan(event.database, event.table)


def as_text(
    data: dict[str, Any],
    old: dict[str, Any] | None,
    value: bytes,
    extra: dict[str, str],
    documents: frozenset[str],
) -> None:
    """Turn both images into text, in place, and note which columns were not JSON strings."""
    numbers: list[str] = []
    booleans: list[str] = []
    if old:
        documents |= of_two_kinds(data, old)
    nested = values.to_text(data, numbers, booleans)
    if old:
        nested |= values.to_text(old, numbers, booleans)
    if nested or documents:
        exact = nested_names(data, documents) + nested_names(old or {}, documents)
        if exact:
            keep_exact(data, old, value, exact)
            extra["nested"] = values.names_json(tuple(exact))
            nested_columns = frozenset(exact)
            numbers = [n for n in numbers if n not in nested_columns]
            booleans = [n for n in booleans if n not in nested_columns]
    if booleans:
        extra["booleans"] = values.names_json(tuple(booleans))
    if numbers:
        extra["numbers"] = values.names_json(tuple(numbers))


def of_two_kinds(data: dict[str, Any], old: dict[str, Any]) -> frozenset[str]:
    """The columns whose JSON type differs between the images, as only that of a document can.

    >>> of_two_kinds({"a": 1, "b": "1"}, {"a": 2, "b": True})
    frozenset({'b'})
    """
    return frozenset(
        name
        for name, was in old.items()
        if was is not None and (now := data.get(name)) is not None and kind(was) != kind(now)
    )


def kind(value: Any) -> str:
    """The type of a JSON value: text, boolean or number."""
    return "text" if value.__class__ is str else "boolean" if value.__class__ is bool else "number"


def nested_names(image: dict[str, Any], documents: frozenset[str]) -> list[str]:
    """The columns that hold an object or array, or are known to hold JSON."""
    return [
        name
        for name, sent in image.items()
        if sent.__class__ is dict
        or sent.__class__ is list
        or (sent is not None and name in documents)
    ]


def keep_exact(
    data: dict[str, Any], old: dict[str, Any] | None, value: bytes, names: list[str]
) -> None:
    """Read the message again, for the exact text of columns that hold an object or array."""
    exact = parse(_raw_rows, value)
    rows = exact.old if exact.data is None else exact.data
    for image, raws in ((data, rows), (old or {}, exact.old or {})):
        for name in names:
            if image.get(name) is not None:
                image[name] = bytes(raws[name]).decode()


def read_typed(image: dict[str, Any], plan: Plan) -> None:
    """Convert what only its JSON type tells apart: BIT as base64 or a number, SET as an array."""
    for name in plan.bits:
        sent = image.get(name)
        if sent.__class__ is str:
            image[name] = bits(sent)
    for name in plan.sets:
        sent = image.get(name)
        if sent.__class__ is list:
            image[name] = labels(sent)


def bits(sent: Any) -> Any:
    """BIT from the base64 of its bytes; a number stays as it is."""
    return values.big_endian_bits(values.base64_bytes(sent)) if sent.__class__ is str else sent


def labels(sent: Any) -> Any:
    """SET from an array of its labels; OMS sends them already joined.

    >>> labels(["r", "g"]), labels([]), labels("r,g")
    ('r,g', '', 'r,g')
    """
    if sent.__class__ is list and all(label.__class__ is str for label in sent):
        return ",".join(sent)
    return sent


def document(sent: Any) -> Any:
    """The JSON text of a document that is a string or a boolean; other documents stay as they are.

    >>> document("123"), document(True), document(123)
    ('"123"', 'true', 123)
    """
    return _json(sent).decode() if sent.__class__ in (str, bool) else sent


def digits(sent: Any) -> Any:
    """DECIMAL in plain notation.

    >>> digits("1E-3"), digits("1.10")
    ('0.001', '1.10')
    """
    if sent.__class__ is int:
        return sent
    if not isinstance(sent, str) or not _DIGITS.fullmatch(text := values.plain(sent)):
        raise DecodeError("invalid-value", "a decimal is no number", "check the table's schema")
    return str(text)


def column_reader(producer: Producer, options: CommonOptions) -> ReadColumn:
    """How values are read whose type is known from the schema or from DDL.

    >>> read = column_reader(Producer("maxwell", "maxwell", "insert"), CommonOptions())
    >>> read(None, "set('r','g')")(["r", "g"]), read(None, "json")("123")
    ('r,g', '"123"')
    """
    converters = {"bit": bits, "set": labels, "year": lambda sent: values.year(str(sent))}
    converters |= dict.fromkeys(DECIMALS, digits)
    to_utc = values.utc(options.timezone)
    if to_utc and is_local(producer.dialect, producer.op):
        converters["timestamp"] = lambda sent: to_utc(sent) if sent.__class__ is str else sent
    if producer.dialect == "maxwell":  # the others send JSON as text
        converters["json"] = document
    return lambda sent_type, mysql: (
        converters.get(values.base_type(mysql)) if sent_type is None else None
    )


def is_local(dialect: str | None, op: str | None) -> bool:
    """Whether TIMESTAMP values are in local time."""
    return op == "snapshot" or dialect == "ticdc"


def apply(image: dict[str, Any], plan: Plan, to_utc: Convert | None) -> None:
    """Convert the other columns whose types the option `columns` gives to canonical text."""
    for name in plan.decimals:
        if image.get(name) is not None:
            image[name] = values.plain(image[name])
    for name in plan.years:
        if image.get(name) is not None:
            image[name] = values.year(image[name])
    if to_utc:
        for name in plan.timestamps:
            if image.get(name) is not None:
                image[name] = to_utc(image[name])
