"""The command line's work on Spark: one task per split, results streamed back in input order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import StorageLevel
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.cli.split_work import (
    CONVERTED_SCHEMA,
    DEAD_SCHEMA,
    MESSAGE_SCHEMA,
    Tally,
    decoded,
    note,
)
from headgate.core.errors import HeadgateError, SpliceError, StorageError, UsageError, reason_of
from headgate.sources.message_files import MOST_SPLIT, STDIN, Split, splits
from headgate.spark.api import EVENT_DDL
from headgate.spark.filesystem import for_spark
from headgate.spark.session import session
from headgate.spark.splits import from_splits

Work = Callable[[Split], Iterator[pa.RecordBatch]]
Part = tuple[int, Split]
ROWS = 1_000
GATHERED = 64 * 1024 * 1024
"""The bytes of a split whose results come back to the driver, which holds those of two."""
MESSAGE = "dead IS NULL AND losses IS NULL"
"""Which rows of a conversion are messages."""


def on_workers(
    files: list[str], master: str | None, schema: pa.Schema, work: Work
) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
    """Each file with its results, in order, made on Spark's workers."""
    parts = parts_of(files, most=GATHERED)
    numbered = pa.schema([("split", pa.int64()), *schema])

    def one(index: int) -> Iterator[pa.RecordBatch]:
        for batch in work(parts[index][1]):
            split = pa.array([index] * batch.num_rows, pa.int64())
            yield pa.RecordBatch.from_arrays([split, *batch.columns], schema=numbered)

    df = from_splits(session(master), len(parts), one, from_arrow_schema(numbered))
    yield from by_file(files, parts, local_rows(df), schema)


def local_rows(df: DataFrame) -> Iterator[Any]:
    """The rows of a DataFrame in order; what a worker refuses is a UsageError here."""
    try:
        yield from df.toLocalIterator(prefetchPartitions=True)
    except PythonException as error:
        raise refused(error) from None


def by_file(
    files: list[str], parts: list[Part], rows: Iterable[Any], schema: pa.Schema
) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
    """Each file with the rows of its splits; a file without rows comes too."""
    done = 0
    for at, found in groupby(rows, key=lambda row: parts[row["split"]][0]):
        yield from ((file, ()) for file in files[done:at])
        yield files[at], batches_of(found, schema)
        done = at + 1
    yield from ((file, ()) for file in files[done:])


def batches_of(rows: Iterable[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as they arrive, a thousand at a time."""
    rows = iter(rows)
    while some := list(islice(rows, ROWS)):
        columns = [[aware(row[name]) for row in some] for name in schema.names]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def aware(value: Any) -> Any:
    """A value of a Row; Spark hands over times in this machine's zone, and without saying so."""
    return value.astimezone(UTC) if value.__class__ is datetime else value


def write_events(
    files: list[str],
    format: str,
    options: dict[str, Any],
    out: str,
    errors: str | None,
    master: str | None,
) -> Tally:
    """Decode into Parquet; the dead letters are counted, and kept, from what was written."""
    spark = session(master)
    parts = parts_of(files, spark.sparkContext.defaultParallelism)
    events = from_splits(
        spark, len(parts), lambda index: decoded(parts[index][1], format, options), EVENT_DDL
    )
    try:
        events.write.mode("append").parquet(for_spark(out))
    except (PySparkException, Py4JJavaError) as error:
        raise not_written(out, error) from None
    invalid = spark.read.parquet(for_spark(out)).where("kind = 'invalid'")
    if errors:
        origin = ("topic", "partition", "offset", "timestamp")
        dead = invalid.select(
            F.col("raw_key"), F.col("raw"), *(f"origin.{n}" for n in origin), "error.*"
        ).toDF(*DEAD_SCHEMA.names)
        try:
            dead.write.mode("append").parquet(for_spark(errors))
        except (PySparkException, Py4JJavaError) as error:
            raise not_written(errors, error) from None
    counts = invalid.groupBy("error.code").agg(F.first("error.message"), F.count("*"))
    return Counter({(code, sentence): n for code, sentence, n in counts.toLocalIterator()})


def write_records(
    files: list[str], master: str | None, out: str, text: bool, errors: str | None, work: Work
) -> tuple[Counter[str], Tally]:
    """Convert into a directory, in one pass; what was lost, and the dead letters, counted."""
    spark = session(master)
    parts = parts_of(files, spark.sparkContext.defaultParallelism)
    rows = from_splits(
        spark,
        len(parts),
        lambda index: work(parts[index][1]),
        from_arrow_schema(CONVERTED_SCHEMA),
    )
    if errors:
        # Two writes, of messages and of dead letters, are not to be two conversions.
        rows = rows.persist(StorageLevel.DISK_ONLY)
    seen = Observation()
    # Few rows hold either: one per split.
    told = F.struct("losses", "refused")
    watched = rows.observe(
        seen, F.collect_list(F.when(F.col("losses").isNotNull(), told)).alias("told")
    )
    records = watched.where(MESSAGE)
    writing = out
    try:
        if text:
            records.select(F.col("value").cast("string")).write.mode("append").text(for_spark(out))
        else:
            records.select(*MESSAGE_SCHEMA.names).write.mode("append").parquet(for_spark(out))
        lost: Counter[str] = Counter()
        tally: Tally = Counter()
        for each in seen.get["told"]:
            lost.update(each["losses"])
            for code, message, count in each["refused"]:
                note(tally, [(code, message)], count)
        if errors and tally:
            writing = errors
            letters = rows.where("dead IS NOT NULL").select("dead.*")
            letters.write.mode("append").parquet(for_spark(errors))
    except (PySparkException, Py4JJavaError) as error:
        raise not_written(writing, error) from None
    finally:
        rows.unpersist()
    return lost, tally


def parts_of(files: list[str], slots: int = 1, most: int = MOST_SPLIT) -> list[Part]:
    """All splits of all files, each with its file's place in the list."""
    if STDIN in files:
        raise UsageError("standard input cannot go through Spark; write it to a file first")
    return [(at, split) for at, file in enumerate(files) for split in splits(file, slots, most)]


def not_written(out: str, error: Exception) -> HeadgateError:
    """Why Spark did not write: a worker refused what it read, or the target took no more."""
    if isinstance(error, PythonException):
        return refused(error)
    return StorageError(f"cannot write {out}: {reason_of(error)}")


def refused(error: PythonException) -> HeadgateError:
    """What a worker could not read, or did not trust, without its stack."""
    last = str(error).strip().splitlines()[-1]
    if f"{SpliceError.__name__}: " in last:
        return SpliceError()
    return UsageError(last.rpartition("Error: ")[2] or last)
