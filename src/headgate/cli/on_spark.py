"""The command line's work on Spark: one task per split, results streamed back in input order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import StorageLevel
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.conversion import Converter
from headgate.cli.output import DEAD_LETTER_SCHEMA, ErrorCounts, count_errors
from headgate.cli.split_work import (
    MESSAGE_SCHEMA,
    DeadLetter,
    Decoding,
    FormatCounts,
    converted,
    counted,
    decoded,
    printed,
    rejected_messages,
)
from headgate.core.errors import HeadgateError, SpliceError, StorageError, UsageError, reason_of
from headgate.core.values import EPOCH
from headgate.sources.message_files import MOST_SPLIT, STDIN, Split, splits
from headgate.spark.api import EVENT_DDL
from headgate.spark.filesystem import for_spark
from headgate.spark.logs import temporary_log
from headgate.spark.session import session
from headgate.spark.splits import from_splits

Part = tuple[int, Split]
"""A split, and the place of its file in the list of files."""
GATHERED = 64 * 1024 * 1024
"""The bytes of a split whose results come back to the driver, which holds those of two."""
BATCH_BYTES = 16 * 1024 * 1024
"""About how much text is put into a batch of lines."""
DEAD_LETTER = pa.struct(list(DEAD_LETTER_SCHEMA))
LINE_SCHEMA = pa.schema([("line", pa.binary()), ("dead_letter", DEAD_LETTER)])
COUNT_SCHEMA = pa.schema(
    [
        ("split", pa.int64()),
        *((name, pa.string()) for name in ("format", "dialect", "kind", "code")),
        ("messages", pa.int64()),
    ]
)
REJECTED = pa.struct([("code", pa.string()), ("message", pa.string()), ("messages", pa.int64())])
CONVERTED_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        *MESSAGE_SCHEMA,
        ("dead_letter", DEAD_LETTER),
        ("losses", pa.map_(pa.string(), pa.int64())),
        ("rejected", pa.list_(REJECTED)),
    ]
)
"""A row is a `message`, a `dead_letter`, or, at the end of a split, the `summary` of its losses and
of its rejected messages by reason."""


def print_on_workers(
    files: list[str], master: str | None, source: Decoding
) -> Iterator[tuple[bytes, DeadLetter | None]]:
    """The events of all files as JSON lines, in order, each invalid one with its dead letter."""
    parts = parts_of(files, most=GATHERED)

    def make(index: int) -> Iterator[pa.RecordBatch]:
        return line_batches(printed(parts[index][1], source))

    df = from_splits(
        session(master, log=temporary_log()), len(parts), make, from_arrow_schema(LINE_SCHEMA)
    )
    for row in local_rows(df):
        rejected = row["dead_letter"]
        yield bytes(row["line"]), None if rejected is None else dead_letter(rejected)


def line_batches(
    lines: Iterable[tuple[bytes, DeadLetter | None]],
) -> Iterator[pa.RecordBatch]:
    """Lines and dead letters in batches of a bounded size."""
    texts: list[bytes] = []
    dead_letters: list[DeadLetter | None] = []
    size = 0
    for text, rejected in lines:
        texts.append(text)
        dead_letters.append(rejected)
        size += len(text)
        if size >= BATCH_BYTES:
            yield line_batch(texts, dead_letters)
            texts, dead_letters, size = [], [], 0
    if texts:
        yield line_batch(texts, dead_letters)


def line_batch(texts: list[bytes], dead_letters: list[DeadLetter | None]) -> pa.RecordBatch:
    """Some lines, each with its dead letter if it has one."""
    columns = [
        pa.array(texts, pa.binary()),
        pa.array([each and each._asdict() for each in dead_letters], DEAD_LETTER),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LINE_SCHEMA)


def dead_letter(row: Any) -> DeadLetter:
    """A dead letter of a Row, in which Spark has turned bytes and time into its own types."""
    key, value, topic, partition, offset, time, code, message = row
    return DeadLetter(
        None if key is None else bytes(key),
        None if value is None else bytes(value),
        topic,
        partition,
        offset,
        None if time is None else micros(time),
        code,
        message,
    )


def micros(time: datetime) -> int:
    """The microseconds since 1970 of a time as Spark gives it: local to this machine, and naive."""
    since = time.astimezone(UTC).replace(tzinfo=None) - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def count_on_workers(
    files: list[str], master: str | None, source: Decoding
) -> Iterator[tuple[str, FormatCounts]]:
    """The number of messages per format, dialect, kind and error code of each file."""
    parts = parts_of(files, most=GATHERED)

    def make(index: int) -> Iterator[pa.RecordBatch]:
        counts = counted(parts[index][1], source)
        rows = [(index, *what, n) for what, n in counts.items()]
        columns = zip(*rows) if rows else [[]] * len(COUNT_SCHEMA)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, COUNT_SCHEMA)]
        yield pa.RecordBatch.from_arrays(arrays, schema=COUNT_SCHEMA)

    df = from_splits(
        session(master, log=temporary_log()), len(parts), make, from_arrow_schema(COUNT_SCHEMA)
    )
    for file, rows in by_file(files, parts, local_rows(df)):
        counts: FormatCounts = Counter()
        for _, *what, n in rows:
            counts[tuple(what)] += n
        yield file, counts


def local_rows(df: DataFrame) -> Iterator[Any]:
    """The rows of a DataFrame in order; what a worker refuses is a UsageError here."""
    try:
        yield from df.toLocalIterator(prefetchPartitions=True)
    except PythonException as error:
        raise refused(error) from None


def by_file(
    files: list[str], parts: list[Part], rows: Iterable[Any]
) -> Iterator[tuple[str, Iterable[Any]]]:
    """Each file with the rows of its splits; a file without rows comes too."""
    done = 0
    for at, of_file in groupby(rows, key=lambda row: parts[row["split"]][0]):
        yield from ((file, ()) for file in files[done:at])
        yield files[at], of_file
        done = at + 1
    yield from ((file, ()) for file in files[done:])


def write_events(
    files: list[str], source: Decoding, out: str, errors: str | None, master: str | None
) -> ErrorCounts:
    """Decode into Parquet; the dead letters are counted, and kept, from what was written."""
    spark = session(master, log=temporary_log())
    parts = parts_of(files, spark.sparkContext.defaultParallelism)
    events = from_splits(
        spark, len(parts), lambda index: decoded(parts[index][1], source), EVENT_DDL
    )
    write_parquet(events, out)
    invalid = spark.read.parquet(for_spark(out)).where("kind = 'invalid'")
    if errors:
        origin = ("topic", "partition", "offset", "timestamp")
        dead = invalid.select(
            F.col("raw_key"), F.col("raw"), *(f"origin.{n}" for n in origin), "error.*"
        ).toDF(*DEAD_LETTER_SCHEMA.names)
        write_parquet(dead, errors)
    counts = invalid.groupBy("error.code").agg(F.first("error.message"), F.count("*"))
    return Counter({(code, sentence): n for code, sentence, n in counts.toLocalIterator()})


def write_parquet(df: DataFrame, out: str) -> None:
    """Add Parquet files to a directory."""
    try:
        df.write.mode("append").parquet(for_spark(out))
    except (PySparkException, Py4JJavaError) as error:
        raise not_written(out, error) from None


def write_text(df: DataFrame, out: str) -> None:
    """Add files of lines to a directory."""
    try:
        df.select(F.col("value").cast("string")).write.mode("append").text(for_spark(out))
    except (PySparkException, Py4JJavaError) as error:
        raise not_written(out, error) from None


def write_records(
    files: list[str],
    master: str | None,
    out: str,
    lines: bool,
    errors: str | None,
    converter: Callable[[], Converter],
) -> tuple[Counter[str], ErrorCounts]:
    """Convert into a directory, in one pass; the losses and the dead letters, counted.

    `converter` makes a new converter for each split.
    """
    spark = session(master, log=temporary_log())
    parts = parts_of(files, spark.sparkContext.defaultParallelism)
    rows = from_splits(
        spark,
        len(parts),
        lambda index: converted_rows(parts[index][1], converter(), lines),
        from_arrow_schema(CONVERTED_SCHEMA),
    )
    if errors:
        # Two writes, of messages and of dead letters, are not to be two conversions.
        rows = rows.persist(StorageLevel.DISK_ONLY)
    observation = Observation()
    summary = F.when(F.col("kind") == "summary", F.struct("losses", "rejected"))
    observed = rows.observe(observation, F.collect_list(summary).alias("summaries"))
    messages = observed.where("kind = 'message'")
    try:
        if lines:
            write_text(messages, out)
        else:
            write_parquet(messages.select(*MESSAGE_SCHEMA.names), out)
        losses, counts = total(observation.get["summaries"])
        if errors and counts:
            write_parquet(rows.where("kind = 'dead_letter'").select("dead_letter.*"), errors)
    finally:
        rows.unpersist()
    return losses, counts


def total(summaries: Iterable[Any]) -> tuple[Counter[str], ErrorCounts]:
    """The losses and rejected messages of all splits together."""
    losses: Counter[str] = Counter()
    counts: ErrorCounts = Counter()
    for each in summaries:
        losses.update(each["losses"])
        for code, message, count in each["rejected"]:
            count_errors(counts, [(code, message)], count)
    return losses, counts


def converted_rows(split: Split, converter: Converter, lines: bool) -> Iterator[pa.RecordBatch]:
    """The messages of a split in another format, its dead letters, and a summary of both."""
    losses: Counter[str] = Counter()
    counts: ErrorCounts = Counter()
    for part in converted(split, converter, lines):
        losses += part.losses
        dead_letters = list(rejected_messages(part))
        if dead_letters:
            count_errors(counts, part.reasons)
            structs = pa.array([each._asdict() for each in dead_letters], DEAD_LETTER)
            yield tagged("dead_letter", {"dead_letter": structs})
        if part.records.num_rows:
            columns = dict(zip(part.records.schema.names, part.records.columns))
            yield tagged("message", columns)
    if losses or counts:
        rows = [(*reason, count) for reason, count in counts.items()]
        rejected = [dict(zip(REJECTED.names, row)) for row in rows]
        types = CONVERTED_SCHEMA.field("losses").type, CONVERTED_SCHEMA.field("rejected").type
        columns = {
            "losses": pa.array([list(losses.items())], types[0]),
            "rejected": pa.array([rejected], types[1]),
        }
        yield tagged("summary", columns)


def tagged(kind: str, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """Rows of one kind; their other columns are null."""
    rows = len(next(iter(columns.values())))
    columns = {"kind": pa.repeat(pa.scalar(kind, pa.string()), rows), **columns}
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
        for field in CONVERTED_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=CONVERTED_SCHEMA)


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
