"""`headgate.rows`: the events of one table as typed rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DecimalType, StructField, StructType

from headgate.arrow.casts import SIMPLE_TYPES
from headgate.arrow.typed_rows import (
    CHANGE_FIELDS,
    Cast,
    Table,
    cast_texts,
    changes,
    table_of,
    typed_changes,
    typed_schema,
)
from headgate.core.errors import UsageError
from headgate.landing.row_types import RowTypes, observed
from headgate.landing.types import arrow_type, typed
from headgate.spark.api import fast_worker, parse_schema
from headgate.spark.reading import Reading, reading

CHANGE_COLUMNS = frozenset(name for name, _ in CHANGE_FIELDS)


def rows(events: DataFrame, table: str, schema: str | StructType | None = None) -> DataFrame:
    """The rows of one table, typed: one row per image.

    `table` is `database.table`, or `table` of any database; of a source with schemas (PostgreSQL)
    `schema.table` or `database.schema.table`. `schema` is its columns in Spark's types. Without it
    the messages are read once before, for the types that they and the DDL among them give
    (docs/lake-types.md); a column of which neither gives the type is a string. A streaming
    DataFrame needs it.

    Further columns:

    - `_misfits`: null, or by column the texts that are invalid for its type
    - `_change_type`: insert, delete, update_preimage, update_postimage
    - `_commit_version`, `_commit_timestamp`: the source's commit number, and its time
    - `_topic`, `_partition`, `_offset`: the message
    - `_sequence`: a text that orders the rows of a key, for MERGE and `sequence_by`. It compares as
      `headgate.land` compares changes: by commit number, or by place in the source's log, or else
      by offset. A preimage or a delete comes before the row that replaces it, a snapshot's row
      before every change. Null where nothing of this is known. Its first 8 characters stand for the
      log: after a failover to another server they differ, and only `headgate.land` knows then what
      is newer.

    >>> from headgate import decode
    >>> message = '{"database":"d","table":"t","type":"insert","data":{"id":1,"amount":1.10}}'
    >>> events = decode(spark.createDataFrame([(message,)], "value string"))
    >>> rows(events, "d.t", "id BIGINT, amount DECIMAL(12,2)").first()[:2]
    (1, Decimal('1.10'))
    """
    wanted = table_of(table)
    if schema is not None:
        fields = [(f.name, arrow_of(f)) for f in table_columns(schema)]
        return row_frame(reading(events, is_row_of(events, wanted)), wanted, fields)
    if events.isStreaming:
        raise UsageError(
            "a streaming DataFrame has no columns before it runs; give them: "
            f'headgate.rows(events, "{table}", "id BIGINT, amount DECIMAL(12,2)"). Those of a '
            f'batch DataFrame of the same topic are headgate.rows(batch, "{table}").schema'
        )
    types = observed(events, wanted, table)
    fields = [(column.source_name, arrow_type(column.type)) for column in types.columns]
    check_names([name for name, _ in fields])
    with_types = reading(events, is_row_of(events, wanted), types.learnt)
    return row_frame(with_types, wanted, fields, casts_of(types))


def row_frame(
    read: Reading,
    table: Table,
    fields: Sequence[tuple[str, pa.DataType]],
    cast_column: Cast = cast_texts,
) -> DataFrame:
    """The rows of a table with these columns."""
    schema, decode = typed_schema(fields), read.events

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            for events, source in decode(batches):
                found = changes(events, table, source)
                yield typed_changes(found, events, source, schema, cast_column)

    return read.df.mapInArrow(run, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def casts_of(types: RowTypes) -> Cast:
    """How the values of columns are cast of which MySQL's types are known too."""
    columns = {column.source_name: column for column in types.columns}

    def cast_column(name: str, texts: pa.Array, _: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
        return typed(texts, columns[name].mysql, columns[name].type)

    return cast_column


def is_row_of(events: DataFrame, table: Table) -> Column:
    """Whether an event is a change of a row of a table."""
    # Events that a user made or stored may lack the column.
    schema = F.col("schema") if "schema" in events.columns else F.lit(None).cast("string")
    name = F.col("table")
    chosen = name == table.name
    if table.database is not None:
        in_database = F.col("database") == table.database
        in_schema = (schema == table.database) & chosen
        in_both = in_database & (F.concat_ws(".", schema, name) == table.name)
        chosen = F.when(schema.isNull(), in_database & chosen).otherwise(in_schema | in_both)
    return chosen & (F.col("kind") == "row")


def table_columns(schema: str | StructType) -> list[StructField]:
    """The columns of a table in the schema that a user gives, which may be one of `rows`."""
    fields = list(parse_schema(schema))
    names = [field.name for field in fields]
    if CHANGE_COLUMNS <= set(names):
        return [field for field in fields if field.name not in CHANGE_COLUMNS]
    check_names(names)
    return fields


def check_names(names: Iterable[str]) -> None:
    """Reject columns that have the name of one that `rows` adds."""
    taken = sorted(CHANGE_COLUMNS.intersection(names))
    if taken:
        raise UsageError(
            f"headgate.rows adds a column {taken[0]} itself; give the table's columns without it"
        )


def arrow_of(field: StructField) -> pa.DataType:
    """The Arrow type of a Spark type that a MySQL column can have."""
    simple = field.dataType.simpleString()
    if simple not in SIMPLE_TYPES and not isinstance(field.dataType, DecimalType):
        known = ", ".join([*SIMPLE_TYPES, "decimal(p,s)"])
        raise UsageError(f"column {field.name!r} cannot be {simple}; use one of: {known}")
    return arrow_type(simple)
