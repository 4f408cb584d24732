"""Maxwell's row images as canonical text, with or without types from the option `columns`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from headgate import values
from headgate.event import Event
from headgate.formats.parts.connect_columns import DECIMALS, told_columns
from headgate.strict_json import Raw, parse, reader
from headgate.values import Convert

NO_COLUMNS: frozenset[str] = frozenset()


class RawRows(msgspec.Struct, gc=False):
    """The rows alone, each value as its own bytes."""

    data: dict[str, Raw] | None = None
    old: dict[str, Raw] | None = None


class Plan(msgspec.Struct):
    """What the option `columns` means for one table."""

    sets: list[str]
    documents: frozenset[str]
    bits: list[str]
    decimals: list[str]
    timestamps: list[str]
    years: list[str]


_raw_rows = reader(RawRows)


def planner(columns: str | None, schema: str | None) -> Callable[[Event], Plan] | None:
    """A function that finds the plan of an event's table; None where no option tells types."""
    told = told_columns(columns, schema)
    if told is None:
        return None

    @lru_cache(maxsize=4096)
    def plan(database: str | None, table: str | None) -> Plan:
        bases = {n: values.base_type(t) for n, t in told(database, table).items()}

        def names(*wanted: str) -> list[str]:
            return [column for column, base in bases.items() if base in wanted]

        return Plan(
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
    nested = values.to_text(data, numbers, booleans)
    if old:
        nested |= values.to_text(old, numbers, booleans)
    if nested or documents:
        exact = nested_names(data, documents) + nested_names(old or {}, documents)
        if exact:
            keep_exact(data, old, value, exact)
            extra["nested"] = values.names_json(tuple(exact))
            found = frozenset(exact)
            numbers = [n for n in numbers if n not in found]
            booleans = [n for n in booleans if n not in found]
    if booleans:
        extra["booleans"] = values.names_json(tuple(booleans))
    if numbers:
        extra["numbers"] = values.names_json(tuple(numbers))


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
    """Make text of what only its JSON type tells apart: BIT as base64 or digits, SET as array."""
    for name in plan.bits:
        sent = image.get(name)
        if sent.__class__ is str:
            image[name] = values.big_endian_bits(values.base64_bytes(str(sent)))
    for name in plan.sets:
        sent = image.get(name)
        if sent.__class__ is list and all(label.__class__ is str for label in sent):
            image[name] = ",".join(sent)


def apply(image: dict[str, Any], plan: Plan, to_utc: Convert | None) -> None:
    """Make canonical text of the other columns whose types the option `columns` gives."""
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
