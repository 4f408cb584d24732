"""How Debezium writes a column: its Kafka Connect schema and its values."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from struct import unpack_from
from typing import Any

from msgspec import Raw

from headgate.core.column_flags import NULLABLE
from headgate.core.event import ColumnType
from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.formats._connect.column import BOOLEAN, DATA, TEXT, TIME, Column, named, plain
from headgate.formats._connect.encode_numbers import (
    bit,
    decimal,
    integer,
    java_double,
    own_year,
    real,
    year,
)
from headgate.formats._connect.encode_times import temporal
from headgate.formats._connect.options import EncodedValueOptions
from headgate.formats.encoding import json_value, raw_bytes

TIMES = ("time", "datetime", "timestamp")


def is_measured(type_: MySqlType, options: EncodedValueOptions) -> bool:
    """Whether the column depends on fractional digits that its type does not declare.

    >>> is_measured(parse_type("decimal"), EncodedValueOptions())
    True
    """
    if type_.length is not None:
        return False
    if type_.family in ("time", "timestamp"):
        return options.column_propagate_source_type
    return type_.family in ("decimal", "datetime")


def fraction_digits(text: str) -> int:
    """The number of digits after the point.

    >>> fraction_digits("7.90"), fraction_digits("7")
    (2, 0)
    """
    point = text.find(".")
    return len(text) - point - 1 if point >= 0 else 0


def column(
    column_type: ColumnType,
    options: EncodedValueOptions,
    schemas: bool,
    from_connect: bool,
    digits: int | None = None,
    keyed: bool = False,
    is_boolean: bool = False,
) -> Column:
    """How a column of a known type is written.

    `from_connect`: Debezium or OMS wrote the event. `is_boolean`: it declared the column as a
    boolean. `digits`: the fractional digits, measured if the type does not declare them. `keyed`:
    the column is in the key and therefore NOT NULL.

    >>> column(ColumnType("decimal(10,2)"), EncodedValueOptions(), True, False).write("7.90")
    'AxY='
    """
    type_ = parse_type(column_type.mysql)
    required = keyed or (column_type.flags is not None and not column_type.flags & NULLABLE)
    known = digits if type_.length is None else type_.length
    by_type = (
        BOOLEAN if is_boolean else _column(type_, options, schemas, from_connect, known, required)
    )
    if not options.column_propagate_source_type:
        return by_type
    parameters = by_type.tail.get("parameters", {}) | source_parameters(
        column_type.mysql or "", known
    )
    return by_type._replace(tail={**by_type.tail, "parameters": parameters})


def _column(
    type_: MySqlType,
    options: EncodedValueOptions,
    schemas: bool,
    from_connect: bool,
    digits: int | None,
    required: bool,
) -> Column:
    family = type_.family
    if family == "integer":
        return integer(type_, options, schemas)
    if family == "decimal":
        scale = type_.scale or 0
        if type_.length is None:
            scale = digits or 0
        scale_unknown = type_.length is None and not schemas
        return decimal(type_.length, scale, scale_unknown, options)
    if family == "float":
        single = type_.scale is None and (type_.length or 0) <= 24
        return plain("float" if single else "double", real)
    if family in ("date", *TIMES):
        precision_unknown = type_.length is None and digits is not None and not schemas
        return temporal(type_, digits or 0, precision_unknown, required, options)
    if family == "bit":
        return bit(type_.length)
    if family == "binary":
        return binary(type_, options)
    if family == "spatial":
        return POINT if type_.base == "point" else GEOMETRY
    if family in ("enum", "set"):
        name = DATA + ("Enum" if family == "enum" else "EnumSet")
        if not type_.labels:
            return named("string", name)
        escaped = {label: label.replace(",", "\\,") for label in type_.labels}
        commas = any("," in label for label in type_.labels)
        write = (lambda text: escaped.get(text, text)) if commas else None
        return named("string", name, write, allowed=",".join(escaped.values()))
    if family == "year":
        return named("int32", f"{TIME}Year", own_year if from_connect else year)
    return OTHERS.get(family, TEXT)


def source_parameters(mysql: str, digits: int | None) -> dict[str, str]:
    """The schema parameters that `column.propagate.source.type` adds for a type.

    >>> source_parameters("decimal(12,2) unsigned", 12)
    {'__debezium.source.column.type': 'DECIMAL UNSIGNED', ...length': '12', ...scale': '2'}
    """
    type_ = parse_type(mysql)
    head, _, rest = mysql.partition("(")
    words = f"{head} {rest.rpartition(')')[2]}".split()
    name = type_.base if type_.family in ("enum", "set") else " ".join(words)
    prefix = "__debezium.source.column."
    parameters = {f"{prefix}type": name.upper()}
    length = type_.length
    if length is None and type_.family in TIMES:
        length = digits or None
    if length is not None:
        parameters[f"{prefix}length"] = str(length)
    if type_.scale is not None:
        parameters[f"{prefix}scale"] = str(type_.scale)
    return parameters


def binary(type_: MySqlType, options: EncodedValueOptions) -> Column:
    """Binary by its mode; BINARY(n) is padded to n bytes."""
    mode = options.binary_handling_mode
    width = type_.length if type_.base == "binary" else None
    wire = "bytes" if mode == "bytes" else "string"
    form = BINARY_FORMS[mode]
    if width is None and mode in ("bytes", "base64"):
        return plain(wire, standard)

    def write(text: str) -> str:
        return form(raw_bytes(text).ljust(width or 0, b"\x00"))

    return plain(wire, write)


def standard(text: str) -> str:
    """Canonical binary text, validated; Debezium writes the same."""
    raw_bytes(text)
    return text


BINARY_FORMS: dict[str, Callable[[bytes], str]] = {
    "bytes": lambda raw: b64encode(raw).decode(),
    "base64": lambda raw: b64encode(raw).decode(),
    "base64-url-safe": lambda raw: b64encode(raw, b"-_").decode(),
    "hex": bytes.hex,
}


# Geometry and other types


def geometry(text: str) -> Any:
    """A geometry: Debezium's own object, or MySQL's bytes (SRID and well-known binary) as base64.

    >>> geometry("AAAAAAEBAAAAAAAAAAAA8D8AAAAAAADwPw==")
    {'wkb': 'AQEAAAAAAAAAAADwPwAAAAAAAPA/', 'srid': None}
    """
    if text[:1] == "{":
        return nested(text)
    raw = raw_bytes(text)
    if len(raw) < 9:
        raise Lossy("misfit", text)
    srid = int.from_bytes(raw[:4], "little")
    return {"wkb": b64encode(raw[4:]).decode(), "srid": srid or None}


def point(text: str) -> Any:
    """A POINT: a geometry with its coordinates."""
    struct = geometry(text)
    if struct.__class__ is not dict:
        return struct
    wkb = raw_bytes(text)[4:]
    if len(wkb) != 21:
        raise Lossy("misfit", text)
    x, y = unpack_from("<dd" if wkb[0] == 1 else ">dd", wkb, 5)
    return {"x": Raw(java_double(x).encode()), "y": Raw(java_double(y).encode()), **struct}


def nested(text: str) -> Raw:
    """An object or array, with its text unchanged.

    >>> bytes(nested("[0.10]"))
    b'[0.10]'
    """
    value = json_value(text)
    if value is None or text[:1] not in ("{", "["):
        raise Lossy("misfit", text)
    return value


WKB = [
    {"type": "bytes", "optional": False, "field": "wkb"},
    {"type": "int32", "optional": True, "field": "srid"},
]
GEOMETRY = Column(
    geometry,
    {"type": "struct", "fields": WKB},
    {"name": f"{DATA}geometry.Geometry", "version": 1, "doc": "Geometry"},
)
POINT = Column(
    point,
    {
        "type": "struct",
        "fields": [
            {"type": "double", "optional": False, "field": "x"},
            {"type": "double", "optional": False, "field": "y"},
            {"type": "bytes", "optional": True, "field": "wkb"},
            WKB[1],
        ],
    },
    {"name": f"{DATA}geometry.Point", "version": 1, "doc": "Geometry (POINT)"},
)
OTHERS = {
    "double": plain("double", real),
    "json": named("string", f"{DATA}Json"),
    "vector": Column(
        nested,
        {"type": "array", "items": {"type": "float", "optional": False}},
        {"name": f"{DATA}FloatVector", "version": 1},
    ),
}
