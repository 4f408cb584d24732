"""A pass over the messages of a batch, seen from the driver: one Spark job.

The rows that the partition workers return are persisted until the sinks have written them. What the
workers report comes back in an accumulator, with the job itself, and needs no job of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import msgspec
from pyspark import AccumulatorParam, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.headers import FROM_TEXT
from headgate.config.job import Job
from headgate.core.errors import HeadgateError
from headgate.pipeline.partition_worker import worker_function
from headgate.pipeline.plan import BatchPlan, PartitionReport
from headgate.pipeline.work_rows import WORK_SCHEMAS
from headgate.sources.base import Deferred
from headgate.spark import filesystem

TaskReport = tuple[int, list[bytes]]
"""The number of a pass, and the reports of the partitions that one task processed."""


class LostReports(HeadgateError):
    """Spark did not bring the reports of all tasks: nothing of the batch is written."""


class TaskReports(AccumulatorParam[list[TaskReport]]):
    """Collects what tasks report."""

    def zero(self, value: list[TaskReport]) -> list[TaskReport]:
        """Nothing."""
        return []

    def addInPlace(self, value1: list[TaskReport], value2: list[TaskReport]) -> list[TaskReport]:
        """Add reports; a task that succeeds is counted once."""
        value1 += value2
        return value1


@dataclass(frozen=True)
class PassResult:
    """The rows of a pass, and the reports of its partitions."""

    rows: DataFrame
    reports: list[PartitionReport]

    def dead_letters(self) -> DataFrame:
        """The dead letters among the rows."""
        dead_letters = self.rows.where("dead_letter IS NOT NULL").select("dead_letter.*")
        return dead_letters.withColumn("headers", F.expr(FROM_TEXT))

    def release(self) -> None:
        """Give back the memory of the rows."""
        _rdd(self.rows).unpersist(False)


class PassRunner:
    """Runs the passes of a job."""

    def __init__(self, spark: SparkSession, job: Job) -> None:
        self.job = for_workers(job)
        self.numbers = count()
        self.reports = spark.sparkContext.accumulator([], TaskReports())
        # Not as a columnar cache and not in Java's serial form, which would cost as much as writing
        # the rows to Kafka. On a cluster in two places, because they cannot be made again when an
        # executor is lost.
        alone = str(spark.sparkContext.master).startswith("local")
        self.storage_level = StorageLevel(True, True, False, True, 1 if alone else 2)

    def run(self, messages: DataFrame | Deferred, plan: BatchPlan) -> PassResult:
        """Run a pass and hold its rows."""
        number, accumulator = next(self.numbers), self.reports
        accumulator.value = []

        def report(reports: list[bytes]) -> None:
            accumulator.add([(number, reports)])

        schema = from_arrow_schema(WORK_SCHEMAS[plan.emit])
        process = worker_function(self.job, plan, report)
        if isinstance(messages, Deferred):
            read = messages.read
            work = messages.rows.mapInArrow(lambda rows: process(read(rows)), schema)
        else:
            work = messages.mapInArrow(process, schema)
        rows = work.localCheckpoint(eager=True, storageLevel=self.storage_level)
        with released_on_error(rows):
            task_reports = [reports for n, reports in accumulator.value if n == number]
            tasks = _rdd(rows).getNumPartitions()
            if len(task_reports) != tasks:
                raise LostReports(
                    f"Spark brought the reports of {len(task_reports)} of {tasks} tasks, and "
                    "nothing of the batch was written; start the job again"
                )
            decode = msgspec.json.Decoder(PartitionReport).decode
            return PassResult(rows, [decode(each) for reports in task_reports for each in reports])


@contextmanager
def released_on_error(rows: DataFrame) -> Iterator[None]:
    """Give back the memory of rows that will not be used."""
    try:
        yield
    except BaseException:
        _rdd(rows).unpersist(False)
        raise


def _rdd(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed().rdd()


def for_workers(job: Job) -> Job:
    """The job without what only the driver needs.

    A worker gets no secrets, except those of the file system of the checkpoint.
    """
    sinks = tuple(replace(s, connector=s.connector.for_workers()) for s in job.sinks)
    tables = tuple(replace(s, connector=s.connector.for_workers()) for s in job.table_sinks)
    source = replace(job.source, connector=job.source.connector.for_workers())
    settings = filesystem.for_workers([job.checkpoint], job.settings)
    return replace(job, source=source, sinks=sinks, table_sinks=tables, settings=settings)
