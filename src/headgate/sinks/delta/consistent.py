"""The writer of `consistency: watermark`: tables change together, from one state of the source to
the next.

Changes and statements of a batch are kept until all partitions have passed a watermark, or a
transaction's end. Then what it takes in is merged into all tables, in the source's order, and the
commits have the watermark. What comes after it waits on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from headgate.landing.resolution import Resolved
from headgate.landing.shape import TableShape
from headgate.sinks.base import Batch, MergeReport, Statement
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.state import Published
from headgate.sinks.delta.unresolved import UnresolvedChanges, UnresolvedStatements
from headgate.sinks.delta.writer import LAST_STEP, MOST_WAITING, DeltaWriter

log = logging.getLogger(__name__)
EVERYTHING = Resolved("~", 0)
"""A point after all changes."""
WARN_EVERY = 3_600.0
"""Seconds between two warnings that much waits."""


class ConsistentWriter(DeltaWriter):
    """Lands states of the source, exactly once."""

    def __init__(
        self, spark: SparkSession, lake: Lake, path: str, settings: Mapping[str, str]
    ) -> None:
        super().__init__(spark, lake, path, settings)
        self.unresolved = UnresolvedChanges(spark, self.storage, lake.job)
        self.statements = UnresolvedStatements(self.storage, lake.job)
        self.warned_at = 0.0

    @property
    def waits(self) -> bool:
        """Whether changes wait for a watermark; else only those that did are still to be merged."""
        return self.lake.options.consistency == "watermark"

    @property
    def has_unresolved(self) -> bool:
        """Whether anything waits."""
        return bool(self.unresolved.steps() or self.statements.names())

    def merge(
        self, batch: Batch, step: int, changes: DataFrame, shapes: Sequence[TableShape]
    ) -> MergeReport:
        """Keep the changes of a step."""
        self.begin(batch)
        self.unresolved.keep(changes, batch.number, step)
        return MergeReport({})

    def apply(self, batch: Batch, step: int, statement: Statement) -> None:
        """Keep a statement."""
        self.begin(batch)
        self.statements.keep(statement, batch.number, step)

    def idle(self, batch: Batch) -> None:
        """Nothing: only messages bring a point up to which changes are complete."""

    def finish(self, batch: Batch, resolved: Resolved | None) -> MergeReport:
        """Publish what is resolved, and let tables go on that somebody has seen to."""
        self.begin(batch)
        self.merge_waiting(self.lake.merge_token(batch.number, 0))  # from before the option was set
        until, published = resolved if self.waits else EVERYTHING, self.state.job.published
        if until is not None and self.is_new(until) and self.is_due(batch):
            self.publish(batch, until)
        elif published is not None and published.batch == batch.number:  # the batch is repeated
            self.settle(published)
        elif self.waits:
            self.warn()
        if self.waits and (last := self.state.job.published) is not None:
            self.lake = replace(self.lake, watermark=last.timestamp)
        self.resume_tables(batch)
        return self.late_report()

    def is_new(self, until: Resolved) -> bool:
        """Whether a point comes after what is published."""
        published = self.state.job.published
        return not self.waits or published is None or until.order > published.order

    def is_due(self, batch: Batch) -> bool:
        """Whether it is time for a merge, or one was begun and cut off."""
        return self.is_time or self.state.job.publishing == batch.number

    def publish(self, batch: Batch, until: Resolved) -> None:
        """Bring all tables to a point; cut off, it is done again in the same way."""
        job = self.state.job
        job.publishing = batch.number
        self.state.write_job()
        after = ""
        # What is more than a batch has tokens for is published with the next one.
        due = self.statements.due(job.published, until.order)
        for number, statement in enumerate(due[: LAST_STEP - 1], 1):
            assert statement.resolved is not None
            self.merge_until(batch, number, after, statement.resolved)
            super().apply(batch, number, statement)
            after = statement.resolved.order
        if len(due) < LAST_STEP:
            self.merge_until(batch, LAST_STEP, after, until)
        else:
            until = Resolved(after, self.lake.watermark or 0)
        published = Published(batch.number, until.order, until.timestamp)
        job.published = published if self.waits else None
        job.publishing, job.merged_at = None, time.time()
        self.state.write_job()
        self.settle(published)

    def settle(self, published: Published) -> None:
        """Forget what waited and is published."""
        self.unresolved.settle(published)
        self.statements.settle(published)

    def merge_until(self, batch: Batch, number: int, after: str, until: Resolved) -> None:
        """Merge the changes after a statement, or all, up to a point."""
        batch.still_ours()
        self.lake = replace(self.lake, watermark=until.timestamp if self.waits else None)
        token = self.lake.merge_token(batch.number, number)
        if self.is_done(token):
            return
        changes = self.unresolved.due(self.state.job.published, after, until.order)
        if changes is not None:
            tables = self.unresolved.tables(changes)
            if tables:
                self.merge_now(token, changes, tables, late=True)

    def warn(self) -> None:
        """Say that much waits, now and then."""
        if time.time() - self.warned_at < WARN_EVERY or self.unresolved.size() < MOST_WAITING:
            return
        self.warned_at = time.time()
        log.warning(
            "%s: %d MB of changes wait for a watermark that all partitions have passed, or for a "
            "transaction's end; check that the producer sends them (consistency: watermark)",
            self.root.uri, self.unresolved.size() >> 20,
        )  # fmt: skip
