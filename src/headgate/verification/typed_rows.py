"""Rows of canonical texts as typed columns: one definition for all sides that have texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from headgate.landing.shape import TableShape, table_shape
from headgate.landing.types import TypePreferences, arrow_type, typed
from headgate.schema.changes import TableId


def shape_of(
    table: TableId, columns: Mapping[str, str | None], key: Iterable[str], prefer: TypePreferences
) -> TableShape:
    """The shape that a table lands in, of its columns' MySQL types.

    >>> orders = TableId("shop", "orders")
    >>> shape_of(orders, {"id": "int", "a b": None}, ["id"], TypePreferences()).key
    ('id',)
    """
    return table_shape(table, columns, tuple(key), prefer)


def table_ids(name: str) -> list[TableId]:
    """The tables that `database.table` may mean: either name may have a dot.

    >>> table_ids("a.b.t")
    [TableId(database='a', table='b.t'), TableId(database='a.b', table='t')]
    >>> table_ids("orders")
    [TableId(database=None, table='orders')]
    """
    dots = [place for place, char in enumerate(name) if char == "."]
    return [TableId(name[:dot], name[dot + 1 :]) for dot in dots] or [TableId(None, name)]


def typed_rows(rows: DataFrame, shape: TableShape, prefer: TypePreferences) -> DataFrame:
    """Rows, each a JSON object of texts in the column `row`, as columns under their landed names.

    What does not fit its type is null, as it lands with `on_misfit: null`.
    """
    columns = shape.columns
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns])

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decode = msgspec.json.Decoder(dict[str, str | None]).decode
        for batch in batches:
            images = [decode(row) for row in batch.column("row").to_pylist()]
            arrays = []
            for column in columns:
                texts = pa.array([i.get(column.source_name) for i in images], pa.string())
                arrays.append(typed(texts, column.mysql, column.type, prefer)[0])
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    names = (column.name.replace("`", "``") for column in columns)
    ddl = ", ".join(f"`{name}` {column.type}" for name, column in zip(names, columns))
    return rows.select("row").mapInArrow(run, ddl)
