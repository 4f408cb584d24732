"""The one place where codecs meet Spark: Arrow batches in, event columns out."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain, count
from typing import Any, cast
from zipimport import zipimporter

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.arrow.events import EVENT_SCHEMA, bounded, decode_batches, most_bytes_of
from headgate.arrow.records import encode_events, events_of, without_message
from headgate.codec.decoder import decoder as codec
from headgate.codec.encoder import Encoder
from headgate.core.errors import UsageError
from headgate.core.options import OptionValue
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
READ_COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
}


def decode(
    df: DataFrame,
    format: str = "auto",
    *,
    timezone: str | None = None,
    schema: str | None = None,
    strict: bool | None = None,
    lean: bool | None = None,
    max_message_bytes: int | None = None,
    **options: OptionValue,
) -> DataFrame:
    """Messages to change events, batch or streaming.

    `df` has Kafka's columns, or at least `value`. Every message gives at least one event; one that
    cannot be decoded gives an `invalid` event with its bytes. Further options are those of the
    format: `headgate formats` lists all of them.

    >>> message = '{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
    >>> df = spark.createDataFrame([(message,), ("{",)], "value string")
    >>> [(e.kind, e.after) for e in decode(df).collect()]
    [('row', {'id': '1.10'}), ('invalid', None)]
    """
    given = given_options(
        options,
        timezone=timezone,
        schema=schema,
        strict=strict,
        lean=lean,
        max_message_bytes=max_message_bytes,
    )
    codec(format, **given)  # reject a wrong name or option here, not on a worker
    limit = most_bytes_of(given)
    messages = message_columns(df)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            yield from decode_batches(batches, codec(format, **given), limit)

    events = messages.mapInArrow(run, EVENT_DDL)
    # rows() decodes straight to typed rows when nothing came in between; see `messages_of`.
    events._headgate = (messages, format, given)  # type: ignore[attr-defined]
    return events


def encode(
    events: DataFrame,
    format: str,
    *,
    timezone: str | None = None,
    schema: str | None = None,
    strict: bool | None = None,
    topic: str | None = None,
    partition: str | None = None,
    partition_num: int | None = None,
    partition_columns: str | None = None,
    splice: bool | None = None,
    **options: OptionValue,
) -> DataFrame:
    """Change events to messages of a format, in the columns that Spark's Kafka sink takes.

    A further column, `losses`, has the codes of what the format cannot represent of a message
    (`headgate.losses`). An event that the format has no message for is skipped, and so is one that
    is invalid or, with `strict`, would lose anything: `headgate.dead_letters` returns those.
    Further options are those of the format: `headgate formats` lists all of them.

    >>> message = '{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1.10}}'
    >>> events = decode(spark.createDataFrame([(message,)], "value string"))
    >>> bytes(encode(events, "canal-json").first().value)[:50]
    b'{"data":[{"id":"1.10"}],"database":"d","es":1000,"'
    """
    given = given_options(
        options,
        timezone=timezone,
        schema=schema,
        strict=strict,
        topic=topic,
        partition=partition,
        partition_num=partition_num,
        partition_columns=partition_columns,
        splice=splice,
    )
    Encoder(format, **given)  # reject a wrong name or option here, not on a worker
    fresh = messages_of(events)
    if fresh is not None:
        # One pass from bytes to bytes: event columns would cost more than both codecs.
        messages, source, source_options = fresh

        def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with fast_worker():
                codecs = converter(source, source_options, format, given, whole_messages=False)
                for part in chain.from_iterable(map(bounded, batches)):
                    for converted in codecs.convert(part):
                        yield converted.records

        return messages.mapInArrow(convert, RECORD_DDL)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            encoder = Encoder(format, **given)
            for batch in batches:
                yield encode_events(encoder, events_of(batch))

    return events.select(*event_columns(events)).mapInArrow(run, RECORD_DDL)


def decoder(format: str = "auto", **options: OptionValue) -> Callable[[DataFrame], DataFrame]:
    """`decode` as a function for `df.transform`, with the options of `decode`.

    >>> df = spark.createDataFrame([('{"ts_ms":1}',)], "value string")
    >>> df.transform(decoder("debezium")).first().kind
    'heartbeat'
    """
    return partial(cast("Callable[..., DataFrame]", decode), format=format, **options)


def encoder(format: str, **options: OptionValue) -> Callable[[DataFrame], DataFrame]:
    """`encode` as a function for `df.transform`, with the options of `encode`.

    >>> df = spark.createDataFrame([('{"ts_ms":1}',)], "value string")
    >>> df.transform(decoder()).transform(encoder("maxwell:oms")).first().topic is None
    True
    """
    return partial(cast("Callable[..., DataFrame]", encode), format=format, **options)


def dead_letters(
    events: DataFrame,
    format: str | None = None,
    *,
    strict: bool | None = None,
    **options: OptionValue,
) -> DataFrame:
    """The events that `encode` to that format skips, with the reason in `error`.

    These are the invalid ones, those that the format has no message for (`no-message`), and with
    `strict` those that would lose anything (`lossy`). Without a format: the invalid ones. The
    options are those of `encode`.

    >>> df = spark.createDataFrame([("{",), ('{"ts_ms":1}',)], "value string")
    >>> dead_letters(decode(df), "canal-json", strict=True).select("kind", "error.code").collect()
    [Row(kind='invalid', code='malformed-json'), Row(kind='heartbeat', code='lossy')]
    """
    if format is None:
        return events.where("kind = 'invalid'")
    target, given = format, given_options(options, strict=strict)
    Encoder(target, **given)
    names = event_columns(events)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with fast_worker():
            encoder = Encoder(target, **given)
            for batch in batches:
                out = dict(without_message(encoder, events_of(batch)))
                rejected = batch.take(pa.array(out, pa.int32()))
                reasons = [{"code": code, "message": why} for code, why in out.values()]
                at = rejected.schema.get_field_index("error")
                yield rejected.set_column(
                    at, rejected.schema.field(at), pa.array(reasons, rejected.schema.field(at).type)
                )

    return events.select(*names).mapInArrow(run, EVENT_DDL)


def given_options(options: Mapping[str, OptionValue], **more: OptionValue) -> dict[str, Any]:
    """Options without those that are None, which are as if they were not given.

    >>> given_options({"columns": "tags SET"}, strict=True, timezone=None)
    {'columns': 'tags SET', 'strict': True}
    """
    return {name: value for name, value in {**options, **more}.items() if value is not None}


def event_columns(events: DataFrame) -> list[str]:
    """The names of the event table's columns, all of which must be there."""
    names: list[str] = EVENT_SCHEMA.names
    missing = [name for name in names if name not in events.columns]
    if missing:
        raise UsageError(
            f"the DataFrame is not an event table: it has no column {', '.join(missing)}; "
            "encode what headgate.decode returns, or add the columns as null"
        )
    return names


def messages_of(events: DataFrame) -> tuple[DataFrame, str, dict[str, Any]] | None:
    """The messages, format and options that events come straight from.

    None if they were transformed, or if they are cached: a cached result must not be computed
    again, and the source might have other messages by now.
    """
    source: tuple[DataFrame, str, dict[str, Any]] | None = events.__dict__.get("_headgate")
    level = events.storageLevel
    return None if level.useMemory or level.useDisk else source


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


FREEZING_TASKS = frozenset({1, 8, 64})
"""Before these tasks of a worker, what it has loaded so far is taken out of garbage collection:
Spark collects garbage after each task, and would look at all modules each time (about 0.1 s)."""
_tasks = count()


@contextmanager
def fast_worker() -> Iterator[None]:
    """Spare a worker two costs: garbage collection, and reading Spark's zip files per task."""
    if next(_tasks) in FREEZING_TASKS:
        gc.freeze()
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
