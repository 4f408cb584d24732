"""Where a job's messages come from: Kafka, or a directory of files, as a stream."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow import headers
from headgate.arrow.events import most_bytes_of
from headgate.arrow.messages import KAFKA_SCHEMA, MESSAGE_SCHEMA, Partition
from headgate.config.job import Source
from headgate.core.batches import SourceRange
from headgate.kafka.client_options import READING
from headgate.sources.message_files import Split, read, rows_at_once, splits
from headgate.spark import checkpoint as spark_checkpoint
from headgate.spark.filesystem import file_system, for_spark, for_workers, local
from headgate.spark.splits import from_splits
from headgate.spark.storage import Storage

INBOX = "inbox"
"""The folder of a job's state from which dead letters come back."""


def stream(spark: SparkSession, source: Source, inbox: str, limit: int | None) -> DataFrame:
    """The messages of Kafka as a stream, or the files of a directory; and those of the inbox.

    A row of Kafka's is a message; one of a file is its path, and `messages` reads what is in it.
    Among messages a path is the value of a row without a partition: columns of its own would be
    carried along with every message.
    """
    again = files(spark, inbox, None, cleanSource="delete")
    if source.kind != "kafka":
        first = files(spark, source.path or "", limit)
        return first.select("*", F.lit(False).alias("inbox")).union(
            again.select("*", F.lit(True).alias("inbox"))
        )
    told = kafka(spark, source, limit)
    given = {"value": F.col("path").cast("binary"), "timestamp": F.col("modified")}
    fields = told.schema.fields
    paths = [given.get(f.name, F.lit(None).cast(f.dataType)).alias(f.name) for f in fields]
    return told.union(again.select(*paths))


def kafka(spark: SparkSession, source: Source, limit: int | None) -> DataFrame:
    """Kafka's messages through Spark's connector."""
    options = kafka_options(source)
    if limit is not None:
        options["maxOffsetsPerTrigger"] = str(limit)
    return spark.readStream.format("kafka").options(**options).load()


def kafka_options(source: Source) -> dict[str, str]:
    """What Spark's connector is told of a source."""
    options = {
        "failOnDataLoss": "true", **READING, **source.kafka, **starting(source.starting)
    }  # fmt: skip
    options["includeHeaders"] = "true"
    if any(map(is_pattern, source.topics)):
        options["subscribePattern"] = "|".join(map(pattern, source.topics))
    else:
        options["subscribe"] = ",".join(source.topics)
    return options


def is_pattern(topic: str) -> bool:
    """Whether a name stands for several topics."""
    return "*" in topic or "?" in topic


def matching(wanted: tuple[str, ...], names: list[str]) -> list[str]:
    """The topics that are meant.

    >>> matching(("cdc-*",), ["cdc-a", "other"])
    ['cdc-a']
    """
    return [name for name in names if any(re.fullmatch(pattern(t), name) for t in wanted)]


def pattern(topic: str) -> str:
    """A topic pattern as Java's regular expression.

    >>> pattern("cdc-*.v?")
    'cdc-.*\\\\.v.'
    """
    kinds = {"*": ".*", "?": ".", ".": "\\."}
    return "".join(kinds.get(letter, letter) for letter in topic)


def starting(where: str) -> dict[str, str]:
    """Where a first start begins, as options of Spark's connector.

    >>> starting("2024-05-01T00:00:00+00:00")
    {'startingTimestamp': '1714521600000', 'startingOffsetsByTimestampStrategy': 'latest'}
    """
    if where in ("earliest", "latest") or where.startswith("{"):
        return {"startingOffsets": where}
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(where)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return {
        "startingTimestamp": str(int(moment.timestamp() * 1000)),
        "startingOffsetsByTimestampStrategy": "latest",
    }


def files(spark: SparkSession, path: str, limit: int | None, **options: str) -> DataFrame:
    """The files of a directory as they appear: their paths only, no content."""
    schema = "path string, modificationTime timestamp, length bigint, content binary"
    found = spark.readStream.format("binaryFile").schema(schema)
    # By default a file that is older than a week when it arrives would be passed over in silence.
    found = found.option("recursiveFileLookup", "true").option("maxFileAge", "36500d")
    found = found.options(**options)
    if limit is not None:
        found = found.option("maxFilesPerTrigger", str(max(1, limit // 10_000)))
    return found.load(for_spark(path)).select("path", F.col("modificationTime").alias("modified"))


def paths(batch: DataFrame, source: Source, inbox: bool) -> list[tuple[str, str]]:
    """The files of a batch in the order in which they appeared, each with its time."""
    if source.kind != "kafka":
        chosen = batch.where("inbox" if inbox else "NOT inbox").select("path", "modified")
    elif inbox:
        chosen = batch.where("partition IS NULL").selectExpr(
            "CAST(value AS STRING) AS path", "timestamp AS modified"
        )
    else:
        return []
    found = sorted(chosen.collect(), key=lambda row: (row.modified, row.path))
    return [(row.path, row.modified.isoformat()) for row in found]


def messages(
    batch: DataFrame,
    source: Source,
    inbox: bool,
    files: list[tuple[str, str]],
    settings: Mapping[str, str],
) -> DataFrame | None:
    """The messages of a batch, partition by partition in order; None if there are none.

    `files` are the paths of the batch, `settings` Spark's, for their file systems.
    """
    if source.kind == "kafka" and not inbox:  # a pass leaves the paths among them alone
        told = batch.withColumn("headers", F.expr(headers.TO_TEXT))
        return told.select(*KAFKA_SCHEMA.names)
    paths = [local(path) for path, _ in files]
    settings = for_workers(paths, settings)
    parts = [split for path in paths for split in splits(path, settings=settings)]
    if not parts:
        return None
    root = posixpath.normpath(local(source.path or ""))
    name = posixpath.relpath if not inbox else lambda path, _: posixpath.basename(path)
    names = [name(part.path, root) for part in parts]
    topic = posixpath.basename(root)
    most_bytes = most_bytes_of(source.options)

    def one(index: int) -> Iterator[pa.RecordBatch]:
        at, split = 0, parts[index]
        for found in letters_in(split, settings) if inbox else read(split, most_bytes, settings):
            yield placed(found, names[index], split.start, topic, index, at)
            at += found.num_rows

    schema = pa.schema([*MESSAGE_SCHEMA, ("part", pa.int32()), ("at", pa.int64())])
    spark = batch.sparkSession
    read_all = from_splits(spark, len(parts), one, from_arrow_schema(schema))
    partitions = read_all.repartition("topic", "partition")
    return partitions.sortWithinPartitions("topic", "partition", "offset", "part", "at").select(
        *MESSAGE_SCHEMA.names
    )


def letters_in(split: Split, settings: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """The dead letters in a file of the inbox, with their places."""
    found, path = file_system(split.path, settings)
    file = pq.ParquetFile(path, filesystem=found)
    yield from file.iter_batches(rows_at_once(file))


def placed(
    batch: pa.RecordBatch, name: str, start: int, topic: str, part: int, first: int
) -> pa.RecordBatch:
    """Messages of a file with all columns; those without coordinates get a place."""
    rows = batch.num_rows
    given = {
        column: batch.column(column)
        for column in batch.schema.names
        if batch.column(column).null_count < rows
    }
    if not {"partition", "offset"} <= set(given):
        given.pop("offset", None)
        given.pop("partition", None)
        places = pa.array([f"{name}:{start + first + n}" for n in range(rows)], pa.string())
        given["place"] = pc.coalesce(given["place"], places) if "place" in given else places
    given.setdefault("topic", pa.array([topic] * rows, pa.string()))
    if "headers" in given:
        given["headers"] = headers.texts(given["headers"])
    given["part"] = pa.array([part] * rows, pa.int32())
    given["at"] = pa.array(range(first, first + rows), pa.int64())
    schema = pa.schema([*MESSAGE_SCHEMA, ("part", pa.int32()), ("at", pa.int64())])
    arrays = [
        given[f.name].cast(f.type) if f.name in given else pa.nulls(rows, f.type) for f in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def offsets_of(checkpoint: Storage, batch: int) -> dict[Partition, int]:
    """Where a batch ends in every partition that Spark knew of when it planned it."""
    found: dict[Partition, int] = {}
    for told in spark_checkpoint.offsets_of(checkpoint, batch):
        for topic, partitions in told.items() if isinstance(told, dict) else ():
            if isinstance(partitions, dict):
                found.update({(topic, int(n)): end for n, end in partitions.items()})
    return found


def range_of(checkpoint: Storage, batch: int, files: Sequence[tuple[str, str]]) -> SourceRange:
    """What of its source a batch holds; `files` are its paths, with their times."""
    before = offsets_of(checkpoint, batch - 1)
    found: dict[str, dict[str, tuple[int | None, int]]] = {}
    for partition, end in sorted(offsets_of(checkpoint, batch).items()):
        if before.get(partition) != end:
            found.setdefault(str(partition[0]), {})[str(partition[1])] = (
                before.get(partition),
                end,
            )
    told = blake2b(msgspec.json.encode(files), digest_size=16).hexdigest() if files else None
    return SourceRange(found, told)
