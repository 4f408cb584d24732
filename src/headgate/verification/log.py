"""A log of messages as tables: all its changes, folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from headgate.config.job import Job
from headgate.core.errors import UsageError
from headgate.landing.types import DEFAULTS, TypePreferences
from headgate.pipeline.counts import Counts
from headgate.spark.storage import Storage
from headgate.verification.fold import LogTable, Truncation, folded, keyed, log_tables
from headgate.verification.lineage import Lineage
from headgate.verification.log_reading import EVERYTHING, Log, LogReading, Until
from headgate.verification.log_worker import LoggedChange
from headgate.verification.sides import KeyText, LogMessage, Side, SideTable
from headgate.verification.typed_rows import shape_of, table_ids, typed_rows

ROWS = "rows"
PARTITIONS_PER_CORE = 4


class LogSide(Side):
    """The tables that the messages of a job tell.

    The log is read and folded when a table is first asked for.
    """

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        folder: Storage,
        until: Until = EVERYTHING,
        prefer: TypePreferences = DEFAULTS,
    ) -> None:
        """`folder` is for files of the comparison; `until` says where the log ends."""
        self.spark, self.job, self.folder = spark, job, folder
        self.name = job.source.name
        self.until = until
        self.prefer = prefer
        self.known: dict[str, int] | None = None
        self.log_tables: list[LogTable] = []
        self.rows: DataFrame | None = None
        self.counts = Counts()

    def tables(self) -> list[str]:
        """The tables that have had rows and were not dropped."""
        if self.known is None:
            self.fold()
        return list(self.known or ())

    def fold(self) -> None:
        """Read the log, and write the rows that it leaves, table by table."""
        log = LogReading(self.spark, self.job, self.folder, self.until).read()
        self.counts = log.counts
        lineage = Lineage(log.statements)
        self.log_tables = log_tables(log.tables, lineage)
        self.known = {table.name: number for number, table in enumerate(self.log_tables)}
        self.rows = keyed(log.changes, self.log_tables, lineage, log.tables)
        cores = self.spark.sparkContext.defaultParallelism
        truncations = truncations_of(log, lineage, self.known)
        rows = folded(self.rows, truncations, cores * PARTITIONS_PER_CORE)
        rows.write.partitionBy("table").parquet(self.folder.for_spark(ROWS))

    def table(self, name: str) -> SideTable | None:
        """The rows of a table, typed."""
        self.tables()
        number = (self.known or {}).get(name)
        if number is None:
            return None
        table, folder = self.log_tables[number], f"{ROWS}/table={number}"
        if self.folder.exists(folder):
            rows = self.spark.read.schema("row binary").parquet(self.folder.for_spark(folder))
        else:
            rows = self.spark.createDataFrame([], "row binary")
        shape = shape_of(table_ids(name)[0], table.columns, table.key, self.prefer)
        untyped = [column.name for column in shape.columns if column.is_untyped]
        notes = [f"no type is known of: {', '.join(untyped)}"] if untyped else []
        notes += [f"{n:,} messages are dead letters ({c})" for c, n in self.rejected(name).items()]
        return SideTable(typed_rows(rows, shape, self.prefer), shape.key, notes=tuple(notes))

    def rejected(self, name: str) -> dict[str, int]:
        """How many messages of a table cannot be processed, by code."""
        return self.counts.rejected.get(name, {})

    def messages(
        self, table: str, keys: Sequence[KeyText], most: int
    ) -> dict[KeyText, list[LogMessage]]:
        """The last messages of some keys."""
        number = (self.known or {}).get(table)
        if number is None or self.rows is None or not self.log_tables[number].key:
            return {}
        texts = {msgspec.json.encode(list(key)).decode(): key for key in keys}
        newest = Window.partitionBy("key").orderBy(
            *(F.col(name).desc() for name in ("time", "sequence", "arrival"))
        )
        chosen = (
            self.rows.where((F.col("table") == number) & F.col("key").isin(*texts))
            .withColumn("n", F.row_number().over(newest))
            .where(F.col("n") <= most)
        )
        messages: dict[KeyText, list[LogMessage]] = {}
        for row in chosen.orderBy("key", "n").collect():
            message = LogMessage(row.logged, row.topic, row.partition, row.offset, row.place)
            messages.setdefault(texts[row.key], []).append(message)
        return messages

    def close(self) -> None:
        """Remove the files of the comparison."""
        self.folder.delete("")


def truncations_of(
    log: Log, lineage: Lineage, numbers: dict[str, int]
) -> dict[int, list[Truncation]]:
    """Where tables were truncated by a change among the rows, by the numbers of tables."""
    if not any("truncate" in counts for counts in log.counts.rows.values()):
        return {}
    head = msgspec.json.encode(LoggedChange("truncate", None, None))[: len('["truncate"')]
    rows = log.changes.where(F.col("change").cast("string").startswith(head.decode()))
    truncations: dict[int, list[Truncation]] = {}
    for row in rows.select("table", "step", "order", "sequence", "arrival").collect():
        number = numbers.get(lineage.fate(row.table, row.step).table or "")
        if number is not None:
            truncations.setdefault(number, []).append(
                Truncation(row.order, row.sequence, row.arrival)
            )
    return truncations


def refuse_latest(job: Job) -> None:
    """Refuse a log of which the beginning was never read."""
    starting: Any = getattr(job.source.connector, "starting", None)
    if starting == "latest":
        raise UsageError(
            f"the job reads {job.source.name} from its latest message on, so that its messages do "
            "not tell whole tables; compare with the database: --source mysql://…"
        )
