"""Changes that fit their landed table: its columns' names and types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headgate.core.errors import shown
from headgate.landing.shape import RESERVED, LandedColumn, TableShape
from headgate.landing.types import arrow_type, lake_type_of, typed, upcast, wider
from headgate.schema.changes import TableId
from headgate.sinks.delta.lake import named
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.table import TableError


def fitted_rows(
    rows: pa.Table, shape: TableShape, landed: TableShape, options: DeltaOptions
) -> pa.Table:
    """Changes with the names and types of the landed columns; what is not landed is left out."""
    columns = {column.name.lower(): column for column in landed.columns}
    sources = {column.name: column for column in shape.columns}
    arrays, names = [], []
    for name, array in zip(rows.column_names, rows.columns):
        if name == "_absent":
            array = respelled(array, columns)
        elif name not in RESERVED:
            column = columns.get(name.lower())
            if column is None:
                continue
            source = sources.get(name) or LandedColumn(name, lake_type_of(array.type))
            array = fitted(array.combine_chunks(), source, column, landed.table, options)
            name = column.name
        arrays.append(array)
        names.append(name)
    return pa.table(arrays, names=names)


def respelled(absent: pa.ChunkedArray, columns: Mapping[str, LandedColumn]) -> pa.ChunkedArray:
    """Lists of names as the landed columns are spelled; those of others are left out."""
    names = absent.combine_chunks().flatten().unique().to_pylist()
    if all(name.lower() in columns and columns[name.lower()].name == name for name in names):
        return absent
    lists = [
        None if each is None else [columns[n.lower()].name for n in each if n.lower() in columns]
        for each in absent.to_pylist()
    ]
    return pa.chunked_array([pa.array(lists, absent.type)])


def fitted(
    array: pa.Array,
    source: LandedColumn,
    column: LandedColumn,
    table: TableId,
    options: DeltaOptions,
) -> pa.Array:
    """Values in the type of their landed column."""
    type_ = arrow_type(column.type)
    if array.type == type_:
        return array
    if pa.types.is_null(array.type):
        return array.cast(type_)
    narrow = lake_type_of(array.type)
    if wider(narrow, column.type) == column.type:
        return upcast(array, column.type, source.mysql)
    if wider(narrow, "string") == "string":
        texts = upcast(array, "string", source.mysql)
        array, misfits = typed(texts, column.mysql, column.type, options)
        if not misfits or options.on_misfit == "null":
            return array
    raise TableError(
        f"misfit: the column {shown(column.name)} of {shown(named(table))} is landed as "
        f"{column.type}, and values of {source.mysql or narrow} do not fit",
        "choose schema_change: evolve or on_misfit: null, or land the table anew",
    )
