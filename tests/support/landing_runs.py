"""Jobs that land tables in Delta, without Spark: passes and merges one after the other, here."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import urlencode

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from in_process import job_of, passed

from headgate.arrow.messages import MESSAGE_SCHEMA, Partition
from headgate.config.job import Job
from headgate.core.batches import SourceRange
from headgate.core.event import Message
from headgate.landing.resolution import between, span
from headgate.landing.shape import union
from headgate.pipeline.balance import check_balance
from headgate.pipeline.catalog import catalog_after
from headgate.pipeline.ddl_schedule import merged_ddl
from headgate.pipeline.engine import Engine, resolve, with_schema
from headgate.pipeline.plan import BatchPlan, PartitionReport
from headgate.pipeline.state import State
from headgate.pipeline.table_targets import Apply, Merge, TableSteps, TableTargets
from headgate.schema.changes import TableId
from headgate.sinks.base import Batch
from headgate.sinks.delta.ddl import change
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.merge import merge_table
from headgate.sinks.delta.outcome import Merged
from headgate.sinks.delta.state import Published
from headgate.sinks.delta.table import TableError, Token
from headgate.sinks.delta.task import TableResult
from headgate.sinks.delta.unresolved import UnresolvedChanges, batch_of
from headgate.spark.storage import Storage

Row = dict[str, Any]
TOPIC = "in"
OWN = ("_position", "_deleted")
"""Columns of landed tables that are not the source's."""


class Killed(Exception):
    """The job ends here, as by kill -9."""


@dataclass
class Landed:
    """What a job has landed."""

    tables: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    """By database and table, the rows without Headgate's own columns."""
    columns: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    dead_letters: list[tuple[str, str]] = field(default_factory=list)
    """Codes and sentences."""
    parked: list[str] = field(default_factory=list)


class LocalPass(NamedTuple):
    """What a pass gave, as `PassResult` has it, without Spark."""

    rows: list[Row]
    reports: list[PartitionReport]


class Killer:
    """Ends a job now and then, as its random numbers say, but not for ever."""

    def __init__(self, seed: int | None) -> None:
        self.random = Random(seed)
        self.left = 0 if seed is None else 3

    def point(self) -> None:
        """A place where the job may end."""
        if self.left and self.random.random() < 0.1:
            self.left -= 1
            raise Killed


class LocalSteps(TableSteps):
    """The steps of a batch, which are written without Spark."""

    def __init__(self, targets: TableTargets, killer: Killer) -> None:
        super().__init__(targets)
        self.killer = killer

    def merge(self, result: Any, step: int, has_ddl: bool) -> Merge | None:
        shapes = union(s for r in result.reports for s in r.shapes[0].get(step, ()))
        rows: Any = [r for r in result.rows if r["dead_letter"] is None and r["step"] == step]
        return Merge(rows, [shapes]) if shapes else None

    def write(self, batch: Batch) -> dict[str, dict[str, int]]:
        [writer] = self.targets.writers
        for number, step in enumerate(self.steps):
            self.killer.point()
            if isinstance(step, Merge):
                writer.merge(batch, number // 2, step.rows, step.shapes[0])
            elif isinstance(step, Apply):
                self.apply(0, writer, batch, number // 2, step)
        self.killer.point()
        writer.finish(batch, self.resolved)
        return {}


class LocalUnresolved(UnresolvedChanges):
    """Changes that wait for a watermark, in files that are read without Spark."""

    kill: Killer

    def keep(self, changes: Any, batch: int, step: int) -> None:
        rows = [(row["table"], row["changes"]) for row in changes]
        self.storage.write(f"{self.folder}/{batch:010d}-{step:05d}", pickle.dumps(rows))

    def rows(self, step: str) -> list[tuple[str, bytes]]:
        rows: list[tuple[str, bytes]] = pickle.loads(
            self.storage.read(f"{self.folder}/{step}") or b""
        )
        return rows

    def between(self, steps: list[str], after: str, until: str) -> Any:
        found = [
            {"table": table, "changes": between(packed, after, until)}
            for step in steps
            for table, packed in self.rows(step)
        ]
        return [row for row in found if row["changes"] is not None]

    def joined(self, parts: list[Any]) -> Any:
        return [row for part in parts for row in part]

    def tables(self, changes: Any) -> list[TableId]:
        names = dict.fromkeys(row["table"] for row in changes)
        return [msgspec.json.decode(name, type=TableId) for name in names]

    def settle(self, published: Published) -> None:
        for step in self.steps():
            self.kill.point()
            done = batch_of(step) <= published.batch
            if done and all(span(each)[1] <= published.order for _, each in self.rows(step)):
                self.remove([step])


@contextmanager
def local_merges(killer: Killer) -> Iterator[None]:
    """Merges and rewrites are made here, one table after the other, not by Spark's tasks."""

    def merge_tables(changes: Any, lake: Lake, token: Token, tables: int) -> list[TableResult]:
        packed: dict[str, list[bytes]] = {}
        for row in changes:
            packed.setdefault(row["table"], []).append(row["changes"])
        results = []
        for name, blobs in packed.items():
            killer.point()
            table = msgspec.json.decode(name, type=TableId)
            try:
                results.append(TableResult(table, merge_table(lake, token, blobs)))
            except TableError as error:
                results.append(TableResult(table, Merged(), error.reason, error.remedy))
        return results

    def carry_out(spark: None, *operation: Any) -> None:
        killer.point()
        change(*operation)

    class Unresolved(LocalUnresolved):
        kill = killer

    writer = "headgate.sinks.delta.writer"
    unresolved = "headgate.sinks.delta.consistent.UnresolvedChanges"
    with (
        patch(f"{writer}.merge_tables", merge_tables),
        patch(f"{writer}.carry_out", carry_out),
        patch(unresolved, Unresolved),
    ):
        yield


def land(
    root: Path,
    spec: str,
    batches: Sequence[Sequence[Message]],
    source: Mapping[str, Any] | None = None,
    sink: Mapping[str, Any] | None = None,
    schema: str | None = None,
    killed: int | None = None,
    partitions: int = 0,
    after_batch: Callable[[Landed], None] | None = None,
) -> Landed:
    """Land batches of messages in Delta tables below `root`, and read these.

    `source` and `sink` have options; `killed` is the seed of a job that is killed and restarted.
    `partitions` is how many the topic has, `after_batch` is called with what is landed then.
    """
    job = job_for(root, spec, source or {}, sink or {}, schema)
    killer = Killer(killed)
    known = Storage((root / "known").as_uri())
    state, found = State(), Landed()
    with local_merges(killer):
        for number, messages in enumerate(batches):
            while True:
                try:
                    expected = [(TOPIC, each) for each in range(partitions)]
                    state = land_batch(job, known, killer, state, number, messages, found, expected)
                    break
                except Killed:
                    continue
            if after_batch is not None:
                landed = Landed()
                read_lake(root / "lake", landed)
                after_batch(landed)
    read_lake(root / "lake", found)
    return found


def job_for(
    root: Path, spec: str, source: Mapping[str, Any], sink: Mapping[str, Any], schema: str | None
) -> Job:
    pipeline: dict[str, Any] = {"name": "t", "checkpoint": str(root / "state")}
    if schema is not None:
        (root / "schema.sql").write_text(schema)
        pipeline["schema"] = str(root / "schema.sql")
    options = "".join(f"&{urlencode({name: value})}" for name, value in source.items())
    to = f"delta://{root}/lake?{urlencode(sink)}".rstrip("?")
    job = job_of(root, spec + options, to, pipeline=pipeline)
    return replace(job, source=with_schema(job.source, job.schema))


def land_batch(
    job: Job,
    known: Storage,
    killer: Killer,
    state: State,
    number: int,
    messages: Sequence[Message],
    found: Landed,
    partitions: Sequence[Partition] = (),
) -> State:
    """One batch, as the engine does it: passes until one lacked nothing, then merges and DDL."""
    driver = Engine.__new__(Engine)  # without Spark
    driver.job, driver.signatures = job, {}
    no_spark: Any = None
    driver.targets = targets = TableTargets(no_spark, job, "job", known)
    more: BatchPlan | None = replace(state.plan(known.uri), emit="tables")
    while more is not None:
        plan = more
        rows: list[Row] = []
        reports: list[PartitionReport] = []
        for batch in by_partition(messages):
            of_partition = passed(job, plan, batch)
            rows += of_partition[0]
            reports += of_partition[1]
        more = driver.next_plan(plan, reports)
    killer.point()
    ddl = list(merged_ddl(plan.ddl, reports))
    steps = LocalSteps(targets, killer)
    result: Any = LocalPass(rows, reports)
    steps.add(result, ddl, state.catalog)
    after = state.after(number, reports, ddl)
    resolve(steps, after, partitions)
    batch_now = Batch(number, SourceRange(), lambda: None)
    steps.verify(batch_now)
    steps.write(batch_now)
    letters = [row["dead_letter"] for row in rows if row["dead_letter"]]
    found.dead_letters += [(letter["code"], letter["message"]) for letter in letters]
    after.catalog = catalog_after(known, state.catalog, job.source, ddl)
    check_balance(number, state.totals, after.totals)
    return after


def by_partition(messages: Sequence[Message]) -> Iterator[pa.RecordBatch]:
    """Messages as the tasks of a batch get them: each those of one partition."""
    partitions: dict[tuple[Any, Any], list[Message]] = {}
    for message in messages:
        partitions.setdefault((message.topic, message.partition), []).append(message)
    for each in partitions.values():
        columns = {name: [getattr(m, name) for m in each] for name in Message._fields}
        arrays = [
            pa.array(columns[f.name]).cast(f.type)
            if any(value is not None for value in columns.get(f.name, ()))
            else pa.nulls(len(each), f.type)
            for f in MESSAGE_SCHEMA
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=MESSAGE_SCHEMA)


def read_lake(lake: Path, found: Landed) -> None:
    """Read landed tables with delta-rs, as anybody would."""
    for log in sorted(lake.glob("**/_delta_log")):
        if "_headgate" in log.parts:
            continue
        table = DeltaTable(log.parent)
        shape = json.loads(table.metadata().configuration["headgate.shape"])
        name = tuple(shape["table"])
        content = table.to_pyarrow_table()
        kept = [n for n in content.column_names if n not in OWN]
        rows = content.to_pylist()
        found.columns[name] = kept
        found.tables[name] = [
            {n: row[n] for n in kept} for row in rows if not row.get("_deleted", False)
        ]
    for states in sorted((lake / "_headgate" / "tables").glob("*.json")):
        tables = json.loads(states.read_text())["tables"]
        found.parked += [".".join(t["table"]) for t in tables if t.get("state") == "parked"]
