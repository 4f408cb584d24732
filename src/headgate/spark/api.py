"""The one place where codecs meet Spark: Arrow batches in, event columns out."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, cast
from zipimport import zipimporter

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, StructType

from headgate.arrow.casts import SIMPLE_TYPES
from headgate.arrow.events import bounded, decode_batches, decode_parts, most_bytes_of
from headgate.arrow.records import encode_events, events_of, without_message
from headgate.arrow.typed_rows import (
    Table,
    changes,
    typed_batch,
    typed_changes,
    typed_schema,
)
from headgate.codec.decoder import decoder as codec
from headgate.codec.encoder import Encoder
from headgate.core.errors import UsageError
from headgate.fastpath.convert import converter

EVENT_DDL = """
    kind string, op string, database string, table string, schema string, key array<string>,
    before map<string, string>, after map<string, string>,
    types map<string, struct<mysql: string, jdbc: int, flags: int>>,
    ddl string, commit_ts bigint, event_time timestamp, emit_time timestamp,
    position map<string, string>,
    origin struct<format: string, dialect: string, topic: string, partition: int,
                  offset: bigint, timestamp: timestamp>,
    extra map<string, string>,
    error struct<code: string, message: string>, raw binary, raw_key binary
"""
RECORD_DDL = """
    key binary, value binary, partition int, topic string,
    headers array<struct<key: string, value: binary>>, losses array<string>
"""
CHANGE_DDL = (
    "_misfits map<string, string>, _change_type string, "
    "_commit_version bigint, _commit_timestamp timestamp"
)
READ_COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
}


def decode(df: DataFrame, format: str = "auto", **options: Any) -> DataFrame:
    """Messages to change events, batch or streaming.

    `df` has Kafka's columns, or at least `value`. Every message gives at least one event; one that
    cannot be decoded gives an `invalid` event with its bytes.

    >>> message = '{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
    >>> df = spark.createDataFrame([(message,), ("{",)], "value string")
    >>> [(e.kind, e.after) for e in decode(df).collect()]
    [('row', {'id': '1.10'}), ('invalid', None)]
    """
    codec(format, **options)  # reject a wrong name or option here, not on a worker
    limit = most_bytes_of(options)
    messages = message_columns(df)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            yield from decode_batches(batches, codec(format, **options), limit)

    events = messages.mapInArrow(run, EVENT_DDL)
    # rows() decodes straight to typed rows when nothing came in between; see there.
    events._headgate = (messages, format, options)  # type: ignore[attr-defined]
    return events


def decoder(format: str = "auto", **options: Any) -> Callable[[DataFrame], DataFrame]:
    """`decode` as a function for `df.transform`.

    >>> df = spark.createDataFrame([('{"ts_ms":1}',)], "value string")
    >>> df.transform(decoder("debezium")).first().kind
    'heartbeat'
    """
    return lambda df: decode(df, format, **options)


def encode(events: DataFrame, format: str, **options: Any) -> DataFrame:
    """Change events to messages of a format, in the columns that Spark's Kafka sink takes.

    A further column, `losses`, has the codes of what the format cannot represent of a message
    (`headgate.losses`). An event that the format has no message for is skipped, and so is one that
    is invalid or, with `strict`, would lose anything: `headgate.dead_letters` returns those.

    >>> message = '{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
    >>> events = decode(spark.createDataFrame([(message,)], "value string"))
    >>> bytes(encode(events, "canal-json").first().value)[:50]
    b'{"data":[{"id":"1.10"}],"database":"d","es":1000,"'
    """
    Encoder(format, **options)  # reject a wrong name or option here, not on a worker
    fresh = source_of(events)
    if fresh is not None:
        # One pass from bytes to bytes: event columns would cost more than both codecs.
        messages: DataFrame
        messages, source, source_options = fresh

        def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with fast_worker():
                codecs = converter(source, source_options, format, options, whole_messages=False)
                for part in chain.from_iterable(map(bounded, batches)):
                    for converted in codecs.convert(part):
                        yield converted.records

        return messages.mapInArrow(convert, RECORD_DDL)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            encoder = Encoder(format, **options)
            for batch in batches:
                yield encode_events(encoder, events_of(batch))

    return events.select(*event_columns(events)).mapInArrow(run, RECORD_DDL)


def encoder(format: str, **options: Any) -> Callable[[DataFrame], DataFrame]:
    """`encode` as a function for `df.transform`.

    >>> df = spark.createDataFrame([('{"ts_ms":1}',)], "value string")
    >>> df.transform(decoder()).transform(encoder("maxwell:oms")).first().topic is None
    True
    """
    return lambda events: encode(events, format, **options)


def dead_letters(events: DataFrame, format: str | None = None, **options: Any) -> DataFrame:
    """The events that `encode` to that format skips, with the reason in `error`.

    These are the invalid ones, those that the format has no message for (`no-message`), and with
    `strict` those that would lose anything (`lossy`). Without a format: the invalid ones.

    >>> df = spark.createDataFrame([("{",), ('{"ts_ms":1}',)], "value string")
    >>> dead_letters(decode(df), "canal-json", strict=True).select("kind", "error.code").collect()
    [Row(kind='invalid', code='malformed-json'), Row(kind='heartbeat', code='lossy')]
    """
    if format is None:
        return events.where("kind = 'invalid'")
    target = format
    Encoder(target, **options)
    names = event_columns(events)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            encoder = Encoder(target, **options)
            for batch in batches:
                out = dict(without_message(encoder, events_of(batch)))
                rejected = batch.take(pa.array(out, pa.int32()))
                reasons = [{"code": code, "message": why} for code, why in out.values()]
                at = rejected.schema.get_field_index("error")
                yield rejected.set_column(
                    at, rejected.schema.field(at), pa.array(reasons, rejected.schema.field(at).type)
                )

    return events.select(*names).mapInArrow(run, EVENT_DDL)


def event_columns(events: DataFrame) -> list[str]:
    """The names of the event table's columns, all of which must be there."""
    names = parse_schema(EVENT_DDL).names
    missing = [name for name in names if name not in events.columns]
    if missing:
        raise UsageError(
            f"the DataFrame is not an event table: it has no column {', '.join(missing)}; "
            "encode what headgate.decode returns, or add the columns as null"
        )
    return names


def rows(events: DataFrame, table: str, schema: str | StructType) -> DataFrame:
    """The rows of one table, typed: one row per image.

    `table` is `database.table`, or `table` of any database; of a source with schemas (PostgreSQL)
    `schema.table` or `database.schema.table`. `schema` is its columns in Spark's types.
    Further columns: `_change_type` (insert, delete, update_preimage, update_postimage),
    `_commit_version`, `_commit_timestamp`, and `_misfits`: null, or by column the texts that are
    invalid for its type.

    >>> message = '{"database":"d","table":"t","type":"insert","data":{"id":1,"amount":1.10}}'
    >>> events = decode(spark.createDataFrame([(message,)], "value string"))
    >>> rows(events, "d.t", "id BIGINT, amount DECIMAL(12,2)").first()[:2]
    (1, Decimal('1.10'))
    """
    fields = parse_schema(schema)
    arrow = typed_schema([(f.name, arrow_type(f.name, f.dataType)) for f in fields])
    out = StructType([*fields, *parse_schema(CHANGE_DDL)])
    wanted = table_of(table)
    fresh = source_of(events)
    if fresh is not None:
        # Straight from the message: building and shipping event columns would double the cost.
        messages: DataFrame
        messages, format, options = fresh
        options = {**options, "lean": True}
        limit = most_bytes_of(options)

        def decode_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with fast_worker():
                decode_one = codec(format, **options)
                for part in chain.from_iterable(map(bounded, batches)):
                    for _, events, _ in decode_parts(part, decode_one, limit):
                        yield typed_changes(changes(events, wanted), arrow)

        return messages.mapInArrow(decode_rows, out)

    def cast_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            images = batch.column("image")

            def texts(name: str, images: pa.Array = images) -> pa.Array:
                return pc.map_lookup(images, pa.scalar(name), "first")

            yield typed_batch(texts, arrow, batch.columns[1:])

    return image_rows(events, wanted).mapInArrow(cast_rows, out)


def source_of(events: DataFrame) -> tuple[DataFrame, str, dict[str, Any]] | None:
    """The messages, format and options that events come straight from.

    None if they were transformed, or if they are cached: a cached result must not be computed
    again, and the source might have other messages by now.
    """
    source: tuple[DataFrame, str, dict[str, Any]] | None = events.__dict__.get("_headgate")
    level = events.storageLevel
    return None if level.useMemory or level.useDisk else source


def image_rows(events: DataFrame, table: Table) -> DataFrame:
    """One row per image of a table's row events: image, change type, commit, time."""
    # Events that a user made or stored may lack the column.
    schema = F.col("schema") if "schema" in events.columns else F.lit(None).cast("string")
    name = F.col("table")
    chosen = name == table.name
    if table.database is not None:
        in_database = F.col("database") == table.database
        in_schema = (schema == table.database) & chosen
        in_both = in_database & (F.concat_ws(".", schema, name) == table.name)
        chosen = F.when(schema.isNull(), in_database & chosen).otherwise(in_schema | in_both)
    chosen &= F.col("kind") == "row"
    image = F.expr("""
        inline(transform(
            CASE op
                WHEN 'update' THEN array('update_preimage', 'update_postimage')
                WHEN 'delete' THEN array('delete')
                ELSE array('insert')
            END,
            t -> struct(
                IF(t IN ('update_preimage', 'delete'), before, after) AS image, t AS change_type
            )
        ))
    """)
    exploded = events.where(chosen).select(image, "commit_ts", "event_time")
    return exploded.where("image IS NOT NULL")


def message_columns(df: DataFrame) -> DataFrame:
    """The columns that decoding reads, in Kafka's types."""
    if "value" not in df.columns:
        raise UsageError(
            f"the DataFrame has no column 'value' (it has: {', '.join(df.columns)}); "
            "rename the column that holds the messages to 'value'"
        )
    types = dict(df.dtypes)
    return df.select(
        *(
            F.col(n) if is_fit(types[n], t) else F.col(n).cast(t).alias(n)
            for n, t in READ_COLUMNS.items()
            if n in types
        )
    )


def is_fit(type_: str, wanted: str) -> bool:
    """Whether a column can be read without a cast; Arrow reads text as bytes without a copy.

    >>> is_fit("string", "binary"), is_fit("string", "int")
    (True, False)
    """
    return type_ == wanted or (type_ == "string" and wanted == "binary")


def parse_schema(schema: str | StructType) -> StructType:
    """A schema from its DDL text."""
    if isinstance(schema, StructType):
        return schema
    return cast(StructType, StructType.fromDDL(schema))


def table_of(name: str) -> Table:
    """`shop.orders` as database and table."""
    database, dot, table = name.partition(".")
    return Table(database, table) if dot else Table(None, name)


def arrow_type(name: str, type_: Any) -> pa.DataType:
    """The Arrow type of a Spark type that a MySQL column can have."""
    if isinstance(type_, DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    simple = type_.simpleString()
    if simple not in SIMPLE_TYPES:
        known = ", ".join([*SIMPLE_TYPES, "decimal(p,s)"])
        raise UsageError(f"column {name!r} cannot be {simple}; use one of: {known}")
    return SIMPLE_TYPES[simple]


@contextmanager
def fast_worker() -> Iterator[None]:
    """Spare a worker two costs: garbage collection, and reading Spark's zip files per task."""
    gc.disable()  # events hold no cycles, and the collector alone would halve the speed
    try:
        yield
    finally:
        gc.enable()
        # Spark invalidates all import caches before each task, and an importer of a zip file then
        # reads the whole archive again (about 0.1 s). One that is not in the cache does not.
        for path, importer in list(sys.path_importer_cache.items()):
            if isinstance(importer, zipimporter):
                del sys.path_importer_cache[path]
