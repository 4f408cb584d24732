"""Columns of landed rows after a schema change: kept, filled with a value, or converted."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.errors import shown
from headgate.core.mysql_types import MySqlType, parse_type
from headgate.landing.mysql_conversion import limits, text_rule
from headgate.landing.mysql_times import NotComputable
from headgate.landing.operations import ColumnSource
from headgate.landing.shape import LandedColumn, TableShape
from headgate.landing.types import (
    TypePreferences,
    arrow_type,
    lake_type,
    lake_type_of,
    typed,
    upcast,
    wider,
)


class NotConvertible(Exception):
    """A column's landed values cannot be converted; the text says why."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"column {shown(column)}: {reason}")
        self.column = column


def selected(
    rows: pa.RecordBatch | pa.Table,
    shape: TableShape,
    select: Mapping[str, ColumnSource],
    prefer: TypePreferences,
) -> list[pa.Array | pa.ChunkedArray]:
    """The columns of a shape, from landed rows.

    >>> from headgate.landing.shape import table_shape
    >>> from headgate.schema.changes import TableId
    >>> shape = table_shape(TableId("d", "t"), {"a": "decimal(5,1)", "b": "int"})
    >>> sources = {"a": ColumnSource(("varchar(9)", "decimal(5,1)"), "x"),
    ...            "b": ColumnSource(("int",), text="7")}
    >>> rows = pa.table({"x": ["1.25", None]})
    >>> [column.to_pylist() for column in selected(rows, shape, sources, TypePreferences())]
    [[Decimal('1.3'), None], [7, 7]]
    """
    return [_column(rows, column, select[column.name], prefer) for column in shape.columns]


def _column(
    rows: pa.RecordBatch | pa.Table,
    column: LandedColumn,
    source: ColumnSource,
    prefer: TypePreferences,
) -> pa.Array | pa.ChunkedArray:
    try:
        if source.column is not None:
            given = rows.column(source.column)
            chunks = given.chunks if isinstance(given, pa.ChunkedArray) else [given]
            done = [converted(chunk, source.types, column.type, prefer) for chunk in chunks]
            return pa.chunked_array(done, arrow_type(column.type))
        return pa.repeat(constant(source, column.type, prefer), rows.num_rows)
    except NotComputable as error:
        raise NotConvertible(column.name, str(error)) from None


def constant(source: ColumnSource, lake: str, prefer: TypePreferences) -> pa.Scalar:
    """The value that all rows have; NotComputable where it does not fit the lake type."""
    start = lake_type(source.types[0], prefer) if len(source.types) > 1 else lake
    texts = pa.array([source.text], pa.string())
    column, misfits = typed(texts, source.types[0], start, prefer)
    if misfits:
        raise NotComputable(f"the value {shown(source.text)} does not fit the type {start}")
    return converted(column, source.types, lake, prefer)[0]


def converted(
    column: pa.Array, types: tuple[str, ...], lake: str, prefer: TypePreferences
) -> pa.Array:
    """A column's values after it went through MySQL types, in a lake type.

    Raises NotComputable where a value's result cannot be known, or does not fit.
    """
    steps = list(pairwise(types))
    for number, (old, new) in enumerate(steps, 1):
        column = _step(column, old, new, lake if number == len(steps) else None, prefer)
    present = lake_type_of(column.type)
    if present == lake:
        return column.cast(arrow_type(lake))
    if wider(present, lake) == lake:
        return upcast(column, lake, types[-1])
    return _typed(_texts(column, types[-1]), types[-1], lake, prefer)


def _step(
    column: pa.Array, old: str, new: str, lake: str | None, prefer: TypePreferences
) -> pa.Array:
    """A column after one change of its type."""
    lake = lake or lake_type(new, prefer)
    present = lake_type_of(column.type)
    rule = text_rule(parse_type(old), parse_type(new), present == "string")
    if rule is None and present == lake:
        return column
    if rule is None and wider(present, lake) == lake:
        return upcast(column, lake, old)
    at_once = _rounded(column, parse_type(old), parse_type(new), lake)
    if at_once is not None:
        return at_once
    encoded = _texts(column, old).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    if rule is not None:
        texts = [rule(text) for text in texts]
    return _typed(pa.array(texts, pa.string()), new, lake, prefer).take(encoded.indices)


def _rounded(column: pa.Array, old: MySqlType, new: MySqlType, lake: str) -> pa.Array | None:
    """A column of numbers or times that only has to be rounded, at once; None where it has not.

    The result is that of the values' rule, much sooner.
    """
    if pa.types.is_timestamp(column.type) and old.family == new.family:
        unit = 10 ** (6 - (new.length or 0))
        micros = column.view(pa.int64()).fill_null(0).to_numpy()
        rounded = pa.array((micros + unit // 2) // unit * unit).view(column.type)
        return pc.if_else(column.is_valid(), rounded, pa.scalar(None, column.type))
    type_, exact = arrow_type(lake), ("integer", "decimal")
    if old.family not in exact or new.family not in exact or lake in ("string", "boolean"):
        return None
    low, high, scale = limits(new)
    try:
        if pa.types.is_decimal(column.type) and column.type.scale > scale:
            # 9.96 becomes 10.0, with one digit more before the point
            roomy = column.cast(pa.decimal128(column.type.precision + 1, column.type.scale))
            column = pc.round(roomy, scale, "half_towards_infinity")
        ends = pc.min_max(column).as_py()
        if ends["min"] is not None and (ends["min"] < low or ends["max"] > high):
            return None
        return column.cast(type_)
    except (pa.ArrowException, ValueError):  # more digits than Arrow has
        return None


def _texts(column: pa.Array, mysql: str) -> pa.Array:
    """The canonical texts of a column's values."""
    if lake_type_of(column.type) == "binary":
        values = column.to_pylist()
        return pa.array([None if v is None else b64encode(v).decode() for v in values], pa.string())
    if column.type == pa.float32():
        column = column.cast(pa.float64())  # MySQL computes with doubles
    return upcast(column, "string", mysql)


def _typed(texts: pa.Array, mysql: str, lake: str, prefer: TypePreferences) -> pa.Array:
    column, misfits = typed(texts, mysql, lake, prefer)
    if misfits:
        raise NotComputable(f"{len(misfits)} different values do not fit the type {lake}")
    return column
