"""What the columns of a table map are: names, declared types, and how their values are read.

The binlog tells it with `binlog_row_metadata=FULL`; what is missing comes from the table as DDL
made it (`headgate.schema`), if that fits.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.core.errors import shown
from headgate.core.mysql_types import parse_type
from headgate.mysql import table_map as t
from headgate.mysql.charsets import BINARY, is_charset, lenient_decoder, widest
from headgate.mysql.errors import SchemaError
from headgate.mysql.table_map import MappedColumn, TableMap
from headgate.schema.columns import Column
from headgate.schema.tables import Table

FULL_METADATA = "SET GLOBAL binlog_row_metadata = 'FULL'"
_FIXED_NAMES = {
    t.TINY: "tinyint", t.SHORT: "smallint", t.INT24: "mediumint", t.LONG: "int",
    t.LONGLONG: "bigint", t.FLOAT: "float", t.DOUBLE: "double", t.YEAR: "year", t.DATE: "date",
    t.NEWDATE: "date", t.TIME: "time", t.DATETIME: "datetime", t.TIMESTAMP: "timestamp",
    t.TIME2: "time", t.DATETIME2: "datetime", t.TIMESTAMP2: "timestamp", t.JSON: "json",
    t.VECTOR: "vector",
}  # fmt: skip
_BLOBS = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection",
)  # fmt: skip
_STRINGS = {t.VARCHAR, t.VAR_STRING, t.STRING, t.VARCHAR_COMPRESSED}
_TEXTS = {t.BLOB, t.BLOB_COMPRESSED}
_DECLARED = {
    "integer": {t.TINY, t.SHORT, t.INT24, t.LONG, t.LONGLONG},
    "decimal": {t.NEWDECIMAL},
    "float": {t.FLOAT, t.DOUBLE},
    "double": {t.DOUBLE},
    "bit": {t.BIT},
    "year": {t.YEAR},
    "date": {t.DATE, t.NEWDATE},
    "time": {t.TIME, t.TIME2},
    "datetime": {t.DATETIME, t.DATETIME2},
    "timestamp": {t.TIMESTAMP, t.TIMESTAMP2},
    "enum": {t.ENUM},
    "set": {t.SET},
    "json": {t.JSON, t.BLOB},
    "string": _STRINGS | _TEXTS,
    "binary": _STRINGS | _TEXTS,
    "spatial": {t.GEOMETRY},
    "vector": {t.VECTOR, t.VARCHAR},
}
"""By family of the declared type: the types that its values have in the binlog."""


class ColumnSpec(NamedTuple):
    """A column, with all that reading its values takes."""

    name: str
    mysql: str
    """Its declared type, as far as it is known."""
    mapped: MappedColumn
    unsigned: bool = False
    charset: str = BINARY
    labels: tuple[str, ...] = ()


class ResolvedTable(NamedTuple):
    """The columns of a table map, and the table for events."""

    columns: tuple[ColumnSpec, ...]
    table: Table
    key: tuple[str, ...] | None


def resolve(mapped: TableMap, known: Table | None) -> ResolvedTable:
    """The columns of a table map; `known` is the table as DDL made it, where that is known."""
    where = f"{shown(mapped.database)}.{shown(mapped.table)}"
    named = all(column.name is not None for column in mapped.columns)
    if known is not None and not _fits(mapped, known):
        if not named:
            raise SchemaError(
                f"the rows of table {where} do not have the columns that its definition has, and "
                f"the binlog does not name them; run {FULL_METADATA} on the server, and read from "
                "a later position"
            )
        known = None
    if not named and known is None:
        raise SchemaError(
            f"nothing tells the names of the columns of table {where}; run {FULL_METADATA} on the "
            "server, and read from a later position"
        )
    declared = list(known.columns.items()) if known is not None else []
    specs = []
    for at, column in enumerate(mapped.columns):
        name, mysql = declared[at] if declared else (column.name or "", None)
        specs.append(_spec(where, column, name, mysql))
    if known is not None:
        return ResolvedTable(tuple(specs), known, known.key)
    key = None if mapped.key is None else tuple(specs[at].name for at in mapped.key)
    columns = {spec.name: Column(spec.mysql, spec.mapped.nullable) for spec in specs}
    return ResolvedTable(tuple(specs), Table(columns, key or ()), key)


def _fits(mapped: TableMap, known: Table) -> bool:
    """Whether a definition can be that of the rows."""
    if len(known.columns) != len(mapped.columns):
        return False
    for (name, declared), column in zip(known.columns.items(), mapped.columns):
        if column.name is not None and column.name != name:
            return False
        parsed = parse_type(declared.mysql)
        if column.type not in _DECLARED.get(parsed.family, ()):
            return False
        is_integer = parsed.family == "integer"
        if is_integer and column.unsigned not in (None, parsed.unsigned):
            return False
        if column.labels is not None and len(column.labels) != len(parsed.labels):
            return False
        if is_integer and _FIXED_NAMES[column.type] != parsed.base:
            return False
    return True


def _spec(where: str, column: MappedColumn, name: str, declared: Column | None) -> ColumnSpec:
    parsed = parse_type(declared.mysql if declared is not None else None)
    unsigned = column.unsigned if column.unsigned is not None else parsed.unsigned
    charset = column.charset
    if charset is None and column.type in t.CHARACTER:
        if parsed.family != "binary" and parsed.base not in ("uuid", "inet4", "inet6"):
            charset = declared.charset if declared is not None else None
            if charset is None or not is_charset(charset):
                raise SchemaError(
                    f"nothing tells the character set of column {shown(name)} of table {where}; "
                    f"run {FULL_METADATA} on the server, and read from a later position"
                )
        else:
            charset = BINARY
    labels = parsed.labels
    if column.labels is not None:
        labels = tuple(map(lenient_decoder(charset or "utf8mb4"), column.labels))
    if column.type in (t.ENUM, t.SET) and not labels:
        raise SchemaError(
            f"nothing tells the labels of column {shown(name)} of table {where}; run "
            f"{FULL_METADATA} on the server, and read from a later position"
        )
    charset = charset or BINARY
    if declared is not None:
        mysql = declared.mysql
    else:
        mysql = type_text(column, bool(unsigned), charset, labels)
    return ColumnSpec(name, mysql, column, bool(unsigned), charset, labels)


def type_text(column: MappedColumn, unsigned: bool, charset: str, labels: tuple[str, ...]) -> str:
    """A column's type as MySQL's SHOW COLUMNS writes it, as far as the binlog tells it.

    >>> type_text(MappedColumn(t.VARCHAR, 80, True), False, "utf8mb4", ())
    'varchar(20)'
    """
    kind, meta = column.type, column.meta
    if kind in (t.ENUM, t.SET):
        quoted = ",".join("'" + label.replace("'", "''") + "'" for label in labels)
        return f"{'enum' if kind == t.ENUM else 'set'}({quoted})"
    if kind in _STRINGS:
        base = "char" if kind == t.STRING else "varchar"
        if charset == BINARY:
            return f"{base.replace('char', 'binary')}({meta})"
        return f"{base}({meta // widest(charset)})"
    if kind in _TEXTS:
        return f"{_BLOBS[meta]}{'blob' if charset == BINARY else 'text'}"
    if kind == t.GEOMETRY:
        return _GEOMETRIES[column.geometry or 0]
    if kind == t.BIT:
        return f"bit({(meta >> 8) * 8 + (meta & 0xFF)})"
    suffix = " unsigned" if unsigned and kind != t.YEAR else ""
    if kind == t.NEWDECIMAL:
        return f"decimal({meta >> 8},{meta & 0xFF}){suffix}"
    name = _FIXED_NAMES.get(kind)
    if name is None:
        raise SchemaError(f"a column has the type {kind} of the binlog, which is not known")
    if kind in (t.TIME2, t.DATETIME2, t.TIMESTAMP2) and meta:
        return f"{name}({meta})"
    return f"{name}{suffix}"
