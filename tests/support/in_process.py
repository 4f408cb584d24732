"""A job without Spark: the passes of its batches one after the other, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.codec.encoder import Encoder
from headgate.config.job import Job
from headgate.config.reader import load_job
from headgate.pipeline.balance import check_balance
from headgate.pipeline.catalog import catalog_after
from headgate.pipeline.ddl_schedule import merged_ddl
from headgate.pipeline.engine import Engine
from headgate.pipeline.message_targets import MessageTargets, encoded
from headgate.pipeline.partition_worker import worker_function
from headgate.pipeline.plan import BatchPlan, PartitionReport
from headgate.pipeline.state import State
from headgate.pipeline.work_rows import WORK_SCHEMAS
from headgate.spark.storage import Storage


class Sent(NamedTuple):
    """A message of the source."""

    value: bytes | None
    key: bytes | None = None


class Out(NamedTuple):
    """What a job did: messages by sink, dead letters, and what it knows."""

    written: list[list[tuple[Any, ...]]]
    letters: list[tuple[Any, ...]]
    state: State


def job_of(root: Path, source: str, *sinks: str, **sections: Any) -> Job:
    """A job from Kafka to Kafka, which it never meets."""
    written = {
        "source": {"uri": f"kafka://127.0.0.1:9/in?protocol={source}"},
        "sink": [{"uri": sink} for sink in sinks],
        "pipeline": {"name": "t", "checkpoint": str(root / "state")},
        **sections,
    }
    path = root / "job.yaml"
    path.write_text(json.dumps(written))
    return load_job(str(path))


def batch_of(
    messages: Sequence[Sent], first: int, judge: Callable[[Sent], str] | None = None
) -> pa.RecordBatch:
    """Messages as a worker gets them; `judge` is in the place of the job's row conditions."""
    rows = len(messages)
    given = {
        "value": pa.array([m.value for m in messages], pa.binary()),
        "key": pa.array([m.key for m in messages], pa.binary()),
        "topic": pa.array(["in"] * rows, pa.string()),
        "partition": pa.array([0] * rows, pa.int32()),
        "offset": pa.array(range(first, first + rows), pa.int64()),
    }
    arrays = [given.get(f.name, pa.nulls(rows, f.type)).cast(f.type) for f in MESSAGE_SCHEMA]
    batch = pa.RecordBatch.from_arrays(arrays, schema=MESSAGE_SCHEMA)
    if judge is not None:
        verdicts = pa.array([[judge(m)] for m in messages], pa.list_(pa.string()))
        batch = batch.append_column("verdicts", verdicts)
    return batch


def passed(
    job: Job, plan: BatchPlan, batch: pa.RecordBatch
) -> tuple[list[dict[str, Any]], list[PartitionReport]]:
    """The rows and the reports of one pass."""
    reports: list[bytes] = []
    batches = worker_function(job, plan, reports.extend)([batch])
    rows = pa.Table.from_batches(batches, WORK_SCHEMAS[plan.emit]).to_pylist()
    return rows, [msgspec.json.decode(each, type=PartitionReport) for each in reports]


def run_job(
    job: Job,
    root: Path,
    batches: Sequence[Sequence[Sent]],
    judge: Callable[[Sent], str] | None = None,
    state: State | None = None,
) -> Out:
    """Run batches as the engine does: each until a pass lacked nothing, its DDL as barriers."""
    state = state or State()
    driver = Engine.__new__(Engine)  # without Spark
    driver.job, driver.signatures = job, {}
    driver.targets = targets = MessageTargets.__new__(MessageTargets)
    targets.job, targets.topics = job, [None] * len(job.sinks)
    out = Out([[] for _ in job.sinks], [], state)
    known = Storage((root / "known").as_uri())
    first = 0
    for number, messages in enumerate(batches):
        batch = batch_of(messages, first, judge)
        first += len(messages)
        more: BatchPlan | None = replace(state.plan(known.uri), topics=targets.known_topics())
        while more is not None:
            plan = more
            rows, reports = passed(job, plan, batch)
            more = driver.next_plan(plan, reports)
        ddl = list(merged_ddl(plan.ddl, reports))
        for n, sink in enumerate(job.sinks):
            encoder = Encoder(sink.format, **sink.options)
            for step in range(len(ddl) + 1):
                chosen = [r for r in rows if (r["sink"], r["step"]) == (n, step)]
                out.written[n].extend(message for row in chosen for message in in_pack(row))
                if step < len(ddl):
                    records = encoded(encoder, ddl[step])
                    out.written[n].extend((r.key, r.value, r.topic) for r in records)
        out.letters.extend(
            (row["dead_letter"]["offset"], row["dead_letter"]["code"])
            for row in rows
            if row["dead_letter"]
        )
        before, state = state, state.after(number, reports, ddl)
        state.catalog = catalog_after(known, state.catalog, job.source, ddl)
        check_balance(number, before.totals, state.totals)
    return out._replace(state=state)


def in_pack(row: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Key, value, topic and id of the messages of a row."""
    for n in range(len(row["value_at"] or (0,)) - 1):
        message: dict[str, Any] = {}
        for name in ("key", "value", "id"):
            start, end = row[f"{name}_at"][n : n + 2]
            missing = row[f"{name}_missing"] and row[f"{name}_missing"][n]
            message[name] = None if missing else row[f"{name}_bytes"][start - 1 : end - 1]
        topic = row["topics"][row["topic_at"][n] if row["topic_at"] else 0]
        yield message["key"], message["value"], topic, message["id"]
