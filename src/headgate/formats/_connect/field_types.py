"""The MySQL type of a column, from its field in a schema block."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from headgate.core.errors import DecodeError

SOURCE = "__debezium.source.column."
SOURCE_TYPE, SOURCE_LENGTH, SOURCE_SCALE = f"{SOURCE}type", f"{SOURCE}length", f"{SOURCE}scale"


class Field(msgspec.Struct, gc=False):
    """One field of a Connect schema."""

    type: str
    field: str | None = None
    name: str | None = None
    parameters: dict[str, str | int | None] | None = None
    fields: list[Field] | None = None
    tidb_type: str | None = None
    """The column's type, if TiCDC's extension is enabled."""


def number(field: Field, parameter: str, default: int | None = None) -> int | None:
    """An integer among a field's parameters."""
    value = (field.parameters or {}).get(parameter)
    if value is None:
        return default
    digits = str(value)
    if not digits.removeprefix("-").isdecimal() or len(digits) > 9:
        raise DecodeError(
            "invalid-value",
            f"the schema's parameter {parameter} is not an integer of at most 9 digits",
            "check the producer",
        )
    return int(digits)


def digits_of(field: Field) -> int | None:
    """A time column's fractional digits, if the connector propagates source types."""
    if not (field.parameters or {}).get(SOURCE_TYPE):
        return None
    digits = number(field, SOURCE_LENGTH, 0)
    return digits if digits is not None and 0 <= digits <= 6 else None


_COMMA = re.compile(r"(?<!\\),")
"""Separates labels; the connector escapes a comma within a label with a backslash."""


def _quoted(allowed: str) -> str:
    labels = [label.replace("\\,", ",") for label in _COMMA.split(allowed)]
    return ",".join("'" + label.replace("\\", "\\\\").replace("'", "''") + "'" for label in labels)


def labelled(base: str) -> Callable[[Field], str]:
    """ENUM and SET with the labels that the schema lists."""

    def name(field: Field) -> str:
        allowed = (field.parameters or {}).get("allowed")
        return f"{base}({_quoted(str(allowed))})" if allowed else base

    return name


def decimal_name(field: Field) -> str:
    """DECIMAL with its precision and scale; MySQL's maximum if the precision is not declared."""
    return f"decimal({number(field, 'connect.decimal.precision', 65)},{number(field, 'scale', 0)})"


def bit_name(field: Field) -> str:
    """BIT with its length."""
    length = number(field, "length")
    return "bit" if length is None else f"bit({length})"


def named(mysql: str) -> Callable[[Field], str]:
    """The same name for every field."""
    return lambda field: mysql


MYSQL_NAMES: dict[str, Callable[[Field], str]] = {
    "org.apache.kafka.connect.data.Decimal": decimal_name,
    "org.apache.kafka.connect.data.Date": named("date"),
    "org.apache.kafka.connect.data.Time": named("time"),
    "org.apache.kafka.connect.data.Timestamp": named("datetime(3)"),
    "io.debezium.time.Date": named("date"),
    "io.debezium.time.Time": named("time"),
    "io.debezium.time.MicroTime": named("time"),
    "io.debezium.time.NanoTime": named("time"),
    "io.debezium.time.Timestamp": named("datetime(3)"),
    "io.debezium.time.MicroTimestamp": named("datetime(6)"),
    "io.debezium.time.NanoTimestamp": named("datetime(6)"),
    "io.debezium.time.ZonedTimestamp": named("timestamp"),
    "io.debezium.time.ZonedTime": named("time"),
    "io.debezium.time.IsoDate": named("date"),
    "io.debezium.time.IsoTime": named("time"),
    "io.debezium.time.IsoTimestamp": named("datetime(6)"),
    "io.debezium.time.Year": named("year"),
    "io.debezium.data.Enum": labelled("enum"),
    "io.debezium.data.EnumSet": labelled("set"),
    "io.debezium.data.Bits": bit_name,
    "io.debezium.data.Json": named("json"),
    "io.debezium.data.VariableScaleDecimal": named("decimal"),
    "io.debezium.data.FloatVector": named("vector"),
    "io.debezium.data.geometry.Geometry": named("geometry"),
    "io.debezium.data.geometry.Point": named("point"),
}

WIRE_TYPES = {
    "boolean": "tinyint(1)",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "string": "varchar",
    "bytes": "blob",
    "array": "json",
    "map": "json",
    "struct": "json",
}


def source_type(field: Field) -> str | None:
    """The MySQL type that the connector propagated, spelled as MySQL does.

    >>> parameters = {SOURCE_TYPE: "BIGINT UNSIGNED", SOURCE_LENGTH: "20"}
    >>> source_type(Field("int64", parameters=parameters))
    'bigint(20) unsigned'
    """
    propagated = (field.parameters or {}).get(SOURCE_TYPE)
    if not propagated:
        return None
    base, space, rest = str(propagated).lower().partition(" ")
    if base in ("enum", "set"):
        return labelled(base)(field)
    length, scale = number(field, SOURCE_LENGTH), number(field, SOURCE_SCALE)
    if length is None or length < 0:
        return base + space + rest
    parts = f"{length}" if scale is None or scale < 0 else f"{length},{scale}"
    return f"{base}({parts}){space}{rest}"


def tidb_type(field: Field) -> str | None:
    """The type name from TiCDC's extension, without length or labels.

    >>> tidb_type(Field("int64", tidb_type="bigint unsigned"))
    'bigint unsigned'
    """
    return "bit(1)" if field.tidb_type == "bit" else field.tidb_type


def mysql_type(field: Field) -> str | None:
    """The MySQL type of a field: as propagated, else the closest to its semantic or plain type."""
    type_ = source_type(field)
    if type_ is None and field.name in MYSQL_NAMES:
        type_ = MYSQL_NAMES[field.name](field)
    return type_ or tidb_type(field) or WIRE_TYPES.get(field.type.lower())
