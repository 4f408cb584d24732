"""Shared by the dialects: values of canal-json to canonical text, by the column's MySQL type."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.json import encode as encode_json

from headgate.core import values
from headgate.core.compression import COMPRESSIONS
from headgate.core.event import Event
from headgate.core.json import escape_control_characters, parse
from headgate.core.mysql_types import parse_type
from headgate.core.options import CommonOptions, option
from headgate.core.values import Convert
from headgate.formats._oms.decode_values import TypedConverters
from headgate.formats.base import Producer, ReadColumn
from headgate.formats.canal_json.wire import raw_rows_reader

SPATIAL = re.compile("geometry|(multi)?(point|linestring|polygon)|geom(etry)?collection")
_JSON_FUNCTION = re.compile(r"JSON_[A-Z_]+\(")


@dataclass(frozen=True)
class Options(CommonOptions):
    """Options of canal-json."""

    compression: str = option("auto", "of the whole value, as TiCDC compresses", COMPRESSIONS)


def text_converter(mysql_type: str, to_utc: Convert | None) -> Convert | None:
    """Canal and TiCDC: binary as ISO-8859-1, ENUM and SET as numbers, TIMESTAMP in local time.

    TiCDC writes the YEAR 0000 as a number.
    """
    base = values.base_type(mysql_type)
    if base.endswith("blob") or base.endswith("binary") or SPATIAL.fullmatch(base):
        return values.latin1_bytes
    if base == "enum":
        return values.enum_label(mysql_type)
    if base == "set":
        return values.set_labels(mysql_type)
    if base == "timestamp":
        return to_utc
    scale = parse_type(mysql_type).scale if base in ("decimal", "numeric") else None
    if scale:
        return values.with_scale(scale)  # Canal writes 5.0 for 5.00
    return values.year if base == "year" else None


def text_column_reader(producer: Producer, options: Options) -> ReadColumn:
    """How values that are sent as text are read, if their type comes from a schema or from DDL."""
    to_utc = values.utc(options.timezone)

    def read(sent_type: str | None, schema_type: str) -> Callable[[Any], Any] | None:
        # codec/schemas.py replaces numbers by labels, with or without types in the message.
        if sent_type is not None or values.base_type(schema_type) in ("enum", "set"):
            return None
        convert = text_converter(schema_type, to_utc)
        return convert and (lambda sent: convert(sent) if sent.__class__ is str else sent)

    return read


def relabelled(sent_type: str, schema_type: str) -> Callable[[Any], Any] | None:
    """A function from the labels of Canal's types to those of the schema, matched by number.

    Canal spells labels as its connection to the source does: an emoji may be `?`.

    >>> relabelled("enum('a','?')", "enum('a','😀')")("?")
    '😀'
    """
    sent_labels, labels = values.labels(sent_type), values.labels(schema_type)
    if sent_labels == labels or len(sent_labels) > len(labels):
        return None
    pairs = zip(sent_labels, labels)
    new = {sent: label for sent, label in pairs if sent_labels.count(sent) == 1}
    if values.base_type(schema_type) == "enum":
        by_index = values.enum_label(schema_type)
        return lambda sent: new[sent] if sent in new else by_index and by_index(sent)
    by_mask = values.set_labels(schema_type)

    def joined(sent: Any) -> Any:
        replaced = [new.get(label) for label in sent.split(",")]
        if None in replaced:
            return by_mask(sent) if by_mask else sent
        return ",".join(map(str, replaced))

    return joined


def as_text(event: Event, message: Any, value: bytes, converters: TypedConverters) -> None:
    """Turn bare values into text, in place; without types, record which values were bare."""
    numbers: list[str] = []
    booleans: list[str] = []
    nested = False
    for image in (message.data or []) + (message.old or []):
        if image is not None:
            values.convert(image, converters)
            nested |= values.to_text(image, numbers, booleans)
    if nested:
        keep_exact(message, value)
    if event.types is None:
        for label, names in (("numbers", numbers), ("booleans", booleans)):
            if names:
                event.extra = {**(event.extra or {}), label: values.names_json(tuple(names))}


def mark_functions(events: list[Event], documents: list[str]) -> None:
    """List the JSON columns that hold a function call: MySQL logged the change, not the value."""
    for event in events:
        row = event.after or {}
        partial = [n for n in documents if (v := row.get(n)) and _JSON_FUNCTION.match(v)]
        if partial:
            event.extra = {**(event.extra or {}), "partial_json": encode_json(partial).decode()}


def keep_exact(message: Any, value: bytes) -> None:
    """Parse the rows again to get the exact text of values that are objects or arrays."""
    exact = parse(raw_rows_reader, escape_control_characters(value))
    for images, raws in ((message.data, exact.data), (message.old, exact.old)):
        for image, raw in zip(images or (), raws or ()):
            if image is not None:
                values.exact_nested(image, raw)
