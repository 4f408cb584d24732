"""Reads a job's messages once more: a query of its own over the same source, with no sink.

It takes micro-batches as the job does, so that a long log needs no more memory than a batch, and
keeps the changes as Parquet in a folder that is removed in the end. The job's checkpoint is read
and never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.messages import Partition
from headgate.config.job import Job
from headgate.core.errors import HeadgateError, UsageError, reason_of
from headgate.pipeline.batch_pass import for_workers
from headgate.pipeline.catalog import catalog_after
from headgate.pipeline.counts import Counts
from headgate.pipeline.ddl_schedule import lacks_ddl, merged_ddl
from headgate.pipeline.engine import with_schema
from headgate.pipeline.plan import BatchPlan, PartitionReport, PlannedDdl
from headgate.pipeline.row_filter.values import with_condition_values
from headgate.pipeline.row_filter.verdicts import with_verdicts
from headgate.pipeline.state import State
from headgate.schema.ddl import event_changes
from headgate.sources.base import Origin, Reader
from headgate.spark.storage import Storage
from headgate.verification.lineage import Statement
from headgate.verification.log_worker import CHANGE_SCHEMA, SeenTable, WorkerReport, log_function

CHANGES = "changes"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ARRIVALS = 2**40
"""More changes than a micro-batch can have."""


@dataclass(frozen=True)
class Until:
    """How far a job has read its source."""

    offsets: Mapping[Partition, int] = field(default_factory=dict)
    """The offset behind the last message of each partition."""
    files: frozenset[str] | None = None
    """The files of a directory, as local paths; None where the source has offsets."""
    order: str | None = None
    """The last change (landing/resolution.py), where tables have the state of a watermark."""


EVERYTHING = Until()


@dataclass
class Log:
    """The changes of a log."""

    changes: DataFrame
    statements: list[Statement] = field(default_factory=list)
    """DDL, in order."""
    tables: list[SeenTable] = field(default_factory=list)
    """The tables as their changes show them, in order."""
    counts: Counts = field(default_factory=Counts)


class LogReading:
    """Reads a log."""

    def __init__(self, spark: SparkSession, job: Job, folder: Storage, until: Until) -> None:
        if job.source.connector.ends:
            raise UsageError(
                f"the messages of {job.source.name} cannot be read again; name a source to compare "
                "with: --source mysql://USER:PASSWORD@HOST/DATABASE, or a directory of the messages"
            )
        self.spark, self.folder, self.until = spark, folder, until
        self.job = replace(job, source=with_schema(job.source, job.schema))
        self.shipped = for_workers(self.job)
        self.state, self.signatures = State(), dict[int, set[str]]()
        self.log = Log(self._empty())

    def read(self) -> Log:
        """Read everything that there is now."""
        source = self.job.source
        query_folder = Storage(f"{self.folder.uri}/query", self.job.settings)
        origin = Origin(source.name, source.options, self.job.settings, self.folder, query_folder)
        reader = source.connector.open(self.spark, origin)
        failure: list[BaseException] = []

        def process(batch: DataFrame, number: int) -> None:
            try:
                self.process(reader, batch, number)
            except BaseException as error:
                failure.append(error)
                raise

        try:
            batch = -2
            while batch == -2 or (self.state.batch > batch and reader.unread(self.state.batch)):
                batch = self.state.batch
                query = (
                    reader.stream(self.job.max_messages)
                    .writeStream.option("checkpointLocation", query_folder.for_spark(""))
                    .trigger(availableNow=True)
                    .foreachBatch(process)
                    .start()
                )
                query.awaitTermination()
        except StreamingQueryException as error:
            if failure and isinstance(failure[0], HeadgateError):
                raise failure[0] from None
            raise HeadgateError(f"cannot read {source.name}: {reason_of(error)}") from error
        finally:
            reader.close()
        if self.state.batch >= 0:
            self.log.changes = (
                self.spark.read.schema(from_arrow_schema(CHANGE_SCHEMA))
                .parquet(*(self._folder_of(n) for n in range(self.state.batch + 1) if self._has(n)))
                .where("report IS NULL")
            )
        return self.log

    def process(self, reader: Reader, batch: DataFrame, number: int) -> None:
        """One micro-batch."""
        messages, _ = reader.messages(self.of_files(batch))
        state = self.state
        if messages is not None:
            plan = state.plan(self.folder.uri)
            plan = replace(plan, by_place=self.job.source.connector.redelivers, emit="tables")
            reports, ddl = self.run_pass(self.before_end(messages), plan, number)
            state = state.after(number, [p for r in reports for p in r.partitions], ddl)
            state.catalog = catalog_after(self.folder, state.catalog, self.job.source, ddl)
            self.keep(reports, ddl)
        state.batch = number
        self.state = state

    def keep(self, reports: list[WorkerReport], ddl: list[PlannedDdl]) -> None:
        """Add the reports and the DDL of a batch to the log."""
        before = len(self.log.statements)
        for report in reports:
            for table in report.tables:
                self.log.tables.append(msgspec.structs.replace(table, step=before + table.step))
            for partition in report.partitions:
                self.log.counts.add(partition.counts)
        self.log.statements += (statement_of(each, self.until.order) for each in ddl)

    def run_pass(
        self, messages: DataFrame, plan: BatchPlan, number: int
    ) -> tuple[list[WorkerReport], list[PlannedDdl]]:
        """A pass whose plan lacked nothing, and the DDL that is new."""
        folder = self._folder_of(number)
        before = len(self.log.statements)
        while True:
            work = self.judged(messages).mapInArrow(
                log_function(self.shipped, plan, self.until.order), from_arrow_schema(CHANGE_SCHEMA)
            )
            work = work.withColumns(
                {
                    "step": F.col("step") + before,
                    "arrival": F.col("arrival") + F.lit(number * ARRIVALS),
                }
            )
            work.write.mode("overwrite").parquet(folder)
            rows = self.spark.read.parquet(folder).where("report IS NOT NULL").select("report")
            reports = [msgspec.json.decode(r.report, type=WorkerReport) for r in rows.collect()]
            partitions = [p for r in reports for p in r.partitions]
            more = next_plan(plan, partitions, self.signatures)
            if more is None:
                return reports, list(merged_ddl(plan.ddl, partitions))
            plan = more

    def judged(self, messages: DataFrame) -> DataFrame:
        """Messages with the verdicts of the job's row conditions."""
        if not any(each.where for each in self.job.filters):
            return messages
        looked = with_condition_values(messages, self.job)
        return with_verdicts(looked, self.job, self.signatures)

    def of_files(self, batch: DataFrame) -> DataFrame:
        """Of a batch of files, those that the job has read."""
        if self.until.files is None:
            return batch
        rows: list[Any] = [(path,) for path in self.until.files]
        read = batch.sparkSession.createDataFrame(rows, "path string").hint("broadcast")
        path = F.regexp_replace(F.col("value").cast("string"), "^file:/+", "/")
        return batch.join(read, path == F.col("path"), "left_semi")

    def before_end(self, messages: DataFrame) -> DataFrame:
        """The messages that the job has read; of partitions that it does not know, none."""
        if not self.until.offsets:
            return messages
        rows: list[Any] = [(topic, n, end) for (topic, n), end in self.until.offsets.items()]
        ends = messages.sparkSession.createDataFrame(rows, "t string, p int, e bigint").hint(
            "broadcast"
        )
        here = (F.col("topic") == F.col("t")) & (F.col("partition") == F.col("p"))
        return messages.join(ends, here & (F.col("offset") < F.col("e")), "left_semi")

    def _folder_of(self, number: int) -> str:
        return self.folder.for_spark(f"{CHANGES}/batch={number}")

    def _has(self, number: int) -> bool:
        return self.folder.exists(f"{CHANGES}/batch={number}")

    def _empty(self) -> DataFrame:
        return self.spark.createDataFrame([], from_arrow_schema(CHANGE_SCHEMA))


def statement_of(ddl: PlannedDdl, until: str | None = None) -> Statement:
    """A statement; one that the job leaves out, or that comes after the end, changes nothing."""
    event = ddl.event
    time = None if event.event_time is None else EPOCH + timedelta(microseconds=event.event_time)
    counts = ddl.wanted and (until is None or ddl.order <= until)
    return Statement(event_changes(event) if counts else [], time)


def next_plan(
    plan: BatchPlan, reports: list[PartitionReport], signatures: dict[int, set[str]]
) -> BatchPlan | None:
    """What a pass should have known; None if it knew everything.

    `signatures` gets the types of row conditions that the pass had no expression for.
    """
    unknown = [each for report in reports for each in report.signatures]
    for rule, signature in unknown:
        signatures.setdefault(rule, set()).add(signature)
    ddl = merged_ddl(plan.ddl, reports)
    lacking = any(lacks_ddl(report, plan.ddl, ddl) for report in reports)
    disordered = {r.state.partition for r in reports if r.disordered} - plan.disordered
    if not (unknown or lacking or disordered):
        return None
    return replace(plan, ddl=ddl, disordered=plan.disordered | disordered)
