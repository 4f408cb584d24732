"""Column types and converters of a Kafka Connect schema, made once per distinct schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Types
from headgate.core.json import Number, parse, reader
from headgate.core.limits import MAX_PLAIN_EXPONENT
from headgate.core.mysql_types import parse_type
from headgate.formats._connect.columns import (
    DeclaredColumn,
    DecodedValueOptions,
    Writer,
    base64_decimal,
    base64_text,
    converter,
    decimal,
    enum_label,
    hexadecimal,
    little_endian_bits,
    precision,
    table_columns,
    text,
    year_text,
)
from headgate.formats._connect.connectors import MYSQL_LIKE, TICDC
from headgate.formats._connect.field_types import (
    SOURCE,
    SOURCE_LENGTH,
    SOURCE_TYPE,
    WIRE_TYPES,
    Field,
    digits_of,
    labelled,
    mysql_type,
    number,
    source_type,
    tidb_type,
)
from headgate.formats._connect.geometry import geometry, point
from headgate.formats._connect.times import (
    MICROS,
    MILLIS,
    NANOS,
    Convert,
    counted_datetime,
    counted_time,
    date_text,
    zoned,
)
from headgate.formats.base import Producer, ReadColumn

Converters = list[tuple[str, Convert]]

CONNECTOR_SCHEMA = "io.debezium.connector."
MOST_PLANS = 1_000
MOST_SCHEMA_BYTES = 256 * 1024
"""Longer schemas are not cached, so that the cache stays bounded."""


class Plan(msgspec.Struct):
    """The types and converters of a table's rows, from its schema block and the options."""

    types: Types | None
    converters: Converters
    texts: Sequence[str] = ()
    """Columns that OMS declares as strings; a DATETIME is among them."""
    datetimes: dict[tuple[str, ...], Types] = {}
    booleans: tuple[str, ...] = ()
    """Columns that the schema declares as boolean: TINYINT(1) or BIT(1) in MySQL."""


def with_datetimes(plan: Plan, *rows: Mapping[str, Any] | None) -> Types | None:
    """The types of unconverted rows: a number in a string column is a DATETIME."""
    names = [n for n in plan.texts if any(r and r.get(n).__class__ is int for r in rows)]
    if not names or plan.types is None:
        return plan.types
    types = plan.datetimes.get(tuple(names))
    if types is None:
        if len(plan.datetimes) >= MOST_PLANS:
            plan.datetimes.clear()
        types = plan.types | dict.fromkeys(names, ColumnType("datetime"))
        plan.datetimes[tuple(names)] = types
    return types


NO_PLAN = Plan(None, [])
_schema = reader(Field | None)


def variable_scale(value: Any) -> str:
    """Decimal text of a VariableScaleDecimal, a struct with its own scale.

    >>> variable_scale({"scale": 2, "value": "AxY="})
    '7.90'
    """
    if value.__class__ is dict:
        scale, unscaled = value.get("scale"), value.get("value")
        if (
            isinstance(scale, int)
            and abs(scale) <= MAX_PLAIN_EXPONENT
            and isinstance(unscaled, str)
        ):
            return base64_decimal(unscaled, scale)
    raise DecodeError(
        "wrong-type", "a VariableScaleDecimal has no scale and value", "check the producer"
    )


def oms_string(value: Any) -> str:
    """Text of an OMS string column: a number is a DATETIME in milliseconds.

    >>> oms_string(1668489131000), oms_string("1668489131000")
    ('2022-11-15 05:12:11', '1668489131000')
    """
    return _millis(value) if value.__class__ is int else text(value)


_millis = counted_datetime(MILLIS)

CONVERTERS: dict[str, Callable[[Field], Convert]] = {
    "org.apache.kafka.connect.data.Decimal": lambda f: decimal(number(f, "scale", 0) or 0),
    "org.apache.kafka.connect.data.Date": lambda f: date_text,
    "org.apache.kafka.connect.data.Time": lambda f: counted_time(MILLIS, digits_of(f)),
    "org.apache.kafka.connect.data.Timestamp": lambda f: counted_datetime(MILLIS, digits_of(f)),
    "io.debezium.time.Date": lambda f: date_text,
    "io.debezium.time.Time": lambda f: counted_time(MILLIS, digits_of(f)),
    "io.debezium.time.MicroTime": lambda f: counted_time(MICROS, digits_of(f)),
    "io.debezium.time.NanoTime": lambda f: counted_time(NANOS, digits_of(f)),
    "io.debezium.time.Timestamp": lambda f: counted_datetime(MILLIS, digits_of(f)),
    "io.debezium.time.MicroTimestamp": lambda f: counted_datetime(MICROS, digits_of(f)),
    "io.debezium.time.NanoTimestamp": lambda f: counted_datetime(NANOS, digits_of(f)),
    "io.debezium.time.ZonedTimestamp": lambda f: zoned(digits_of(f)),
    "io.debezium.time.ZonedTime": lambda f: counted_time(MICROS),
    "io.debezium.time.IsoDate": lambda f: date_text,
    "io.debezium.time.IsoTime": lambda f: counted_time(MICROS),
    "io.debezium.time.IsoTimestamp": lambda f: zoned(digits_of(f)),
    "io.debezium.time.Year": lambda f: year_text,
    "io.debezium.data.Enum": lambda f: enum_label(labelled("enum")(f)) or text,
    "io.debezium.data.Bits": lambda f: little_endian_bits,
    "io.debezium.data.VariableScaleDecimal": lambda f: variable_scale,
    "io.debezium.data.geometry.Geometry": lambda f: geometry,
    "io.debezium.data.geometry.Point": lambda f: point,
}


def is_text(mysql: str | None) -> bool:
    """Whether a column is CHAR, VARCHAR or TEXT."""
    return parse_type(mysql).family == "string"


def field_converter(
    field: Field, declared: str | None, writer: Writer, options: DecodedValueOptions
) -> Convert | None:
    """The converter of a field to canonical text, by its semantic name, then by its MySQL type."""
    if field.name in CONVERTERS:
        return CONVERTERS[field.name](propagated(field, declared))
    wire, oms = field.type.lower(), writer == "oms"
    mysql = declared or source_type(field) or tidb_type(field)
    if mysql and not field.name and wire not in ("array", "map", "struct"):
        binary_only = wire == "bytes" and not oms
        column = DeclaredColumn(mysql, wire, writer, is_text(source_type(field)))
        convert = None if binary_only else converter(column, options)
        if convert:
            return convert
    if wire == "bytes":
        return hexadecimal if oms else base64_text
    return oms_string if oms and wire == "string" else None


def propagated(field: Field, declared: str | None) -> Field:
    """A field with the type from the option `columns`, unless the connector propagated its own."""
    if declared is None or source_type(field) is not None:
        return field
    length, _ = precision(declared)
    parameters = {SOURCE_TYPE: declared, SOURCE_LENGTH: str(length or 0)}
    return msgspec.structs.replace(field, parameters={**(field.parameters or {}), **parameters})


PLAIN_WIRES = {mysql: wire for wire, mysql in WIRE_TYPES.items() if mysql not in ("blob", "json")}
"""A field's plain type, by the MySQL type that is assumed for it without other information."""
_FROM_TEXT: dict[str, Callable[[str], Any]] = dict.fromkeys(
    ("int8", "int16", "int32", "int64"), int
)
_FROM_TEXT |= {"boolean": lambda text: text == "1", "float64": Number, "float": Number}


def column_reader(producer: Producer, options: DecodedValueOptions) -> ReadColumn:
    """A function that reads Debezium's values by the types of a schema file or DDL.

    Where the schema block declares only a field's plain type, the value is still as it was sent.

    >>> read = column_reader(Producer("debezium", "debezium"), DecodedValueOptions())
    >>> read(None, "decimal(9,2)")("AxY="), read("bigint", "bigint unsigned")("-1")
    ('7.90', '18446744073709551615')
    """
    oms = producer.dialect not in (None, "debezium")
    writer: Writer = "oms" if oms else "ticdc" if producer.program == TICDC else "debezium"

    def read(sent_type: str | None, mysql: str) -> Convert | None:
        if sent_type is None:
            return converter(DeclaredColumn(mysql, None, writer), options)
        wire = PLAIN_WIRES.get(sent_type)
        propagated = is_text(sent_type) and wire is None
        # If other binary columns are sent as bytes, the connector treats one sent as text as text.
        as_text = propagated or (is_text(sent_type) and producer.binary)
        column = DeclaredColumn(mysql, "string" if propagated else wire, writer, as_text)
        convert = converter(column, options) if column.wire else None
        if convert is None or wire not in _FROM_TEXT:
            return convert
        from_text = _FROM_TEXT[wire]
        return lambda text: convert(from_text(text))

    return read


def row_fields(schema: Field) -> list[Field]:
    """The columns' fields: those of an envelope's `after` or `before`, else the schema's fields."""
    fields = schema.fields or []
    images = {f.field: f.fields for f in fields if f.field in ("before", "after")}
    named = (schema.name or "").endswith(".Envelope")
    if images and (named or any(f.field == "op" for f in fields)):
        return images.get("after") or images.get("before") or []
    return fields


def of_mysql(schema: Field) -> bool:
    """Whether propagated types are MySQL's, by the connector named in the envelope's `source`."""
    names = [f.name or "" for f in schema.fields or () if f.field == "source"]
    connectors = [name.split(".")[-2] for name in names if name.startswith(CONNECTOR_SCHEMA)]
    return MYSQL_LIKE.issuperset(connectors)


def without_source_type(field: Field) -> Field:
    """A field without its propagated type, for databases other than MySQL."""
    if source_type(field) is None:
        return field
    parameters = {n: p for n, p in (field.parameters or {}).items() if not n.startswith(SOURCE)}
    return msgspec.structs.replace(field, parameters=parameters)


def any_member(name: str) -> bool:
    """Treats every member as a column, as in an envelope's images."""
    return True


def make_plan(
    schema: bytes,
    declared: dict[str, str],
    writer: Writer,
    options: DecodedValueOptions,
    is_column: Callable[[str], bool] = any_member,
) -> Plan:
    """Types and converters of a table's columns.

    >>> schema = b'{"type":"struct","fields":[{"type":"int32","field":"day"}]}'
    >>> make_plan(schema, {}, "debezium", DecodedValueOptions()).types["day"].mysql
    'int'
    """
    root = parse(_schema, schema)
    if root is None:
        by_column = {
            n: converter(DeclaredColumn(t, None, writer), options) for n, t in declared.items()
        }
        types = {n: ColumnType(t) for n, t in declared.items()}
        return Plan(types or None, [(n, c) for n, c in by_column.items() if c])
    types = {}
    converters: Converters = []
    fields = [field for field in row_fields(root) if is_column(field.field or "")]
    if not of_mysql(root):
        fields = [without_source_type(field) for field in fields]
    for field in fields:
        name = field.field or ""
        types[name] = ColumnType(declared.get(name) or mysql_type(field))
        convert = field_converter(field, declared.get(name), writer, options)
        if convert:
            converters.append((name, convert))
    texts = [name for name, convert in converters if convert is oms_string]
    booleans = tuple(field.field or "" for field in fields if field.type.lower() == "boolean")
    return Plan(types or None, converters, texts, booleans=booleans)


def planner(
    options: DecodedValueOptions, is_column: Callable[[str], bool] = any_member
) -> Callable[[bytes, Writer, str | None, str | None], Plan]:
    """A function from (schema bytes, writer, database, table) to the cached plan."""
    columns = table_columns(options.columns)
    by_table = "." in (options.columns or "")
    plans: dict[tuple[bytes, Writer, str | None, str | None], Plan] = {}

    def plan(schema: bytes, writer: Writer, database: str | None, table: str | None) -> Plan:
        if columns is None and schema == b"null":
            return NO_PLAN
        cache_key = (schema, writer, database, table) if by_table else (schema, writer, None, None)
        known = plans.get(cache_key)
        if known is None:
            declared = columns(database, table) if columns else {}
            known = make_plan(schema, declared, writer, options, is_column)
            if len(plans) >= MOST_PLANS:
                plans.clear()
            if len(schema) + len(database or "") + len(table or "") <= MOST_SCHEMA_BYTES:
                plans[cache_key] = known
        return known

    return plan
