"""One Spark job for all tables of a step: each table is merged by one task, without a JVM."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass

import msgspec
import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame

from headgate.core.errors import HeadgateError, internal_error, reason_of
from headgate.schema.changes import TableId
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.merge import merge_table
from headgate.sinks.delta.outcome import Merged
from headgate.sinks.delta.table import TableError, Token

RESULT = (
    "table string, inserted long, updated long, deleted long, ignored_old long, version long, "
    "error string, remedy string, stops boolean"
)
TASKS_PER_CORE = 4
"""Tables are spread over at most so many tasks."""
_STORAGE = re.compile(
    r"object.?store|generic \w+ error|time[d ]*out|connect|no space", re.IGNORECASE
)
"""Errors of delta-rs that are not the table's fault: another attempt may succeed."""


@dataclass(frozen=True)
class TableResult:
    """What became of a table."""

    table: TableId
    merged: Merged
    error: str | None = None
    remedy: str = ""
    stops: bool = False
    """Whether the error is not the table's fault, so that the job stops."""


def merge_tables(changes: DataFrame, lake: Lake, token: Token, tables: int) -> list[TableResult]:
    """Merge packed changes into their tables, side by side."""
    cores = changes.sparkSession.sparkContext.defaultParallelism
    tasks = max(1, min(tables, TASKS_PER_CORE * cores))
    grouped = changes.select("table", "changes").repartition(tasks, "table").groupBy("table")
    rows = grouped.applyInArrow(merger(lake, token), RESULT).collect()
    decode = msgspec.json.Decoder(TableId).decode
    return [
        TableResult(
            decode(row.table),
            Merged(row.inserted, row.updated, row.deleted, row.ignored_old, row.version),
            row.error,
            row.remedy or "",
            row.stops,
        )
        for row in rows
    ]


def merger(lake: Lake, token: Token) -> Callable[[pa.Table], pa.Table]:
    """What a task does with the rows of one table."""

    def merge(rows: pa.Table) -> pa.Table:
        result = merged(lake, token, rows.column("changes").to_pylist())
        return pa.Table.from_pylist([{"table": rows.column("table")[0].as_py(), **result}], SCHEMA)

    return merge


SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        *((name, pa.int64()) for name in ("inserted", "updated", "deleted", "ignored_old")),
        ("version", pa.int64()),
        ("error", pa.string()),
        ("remedy", pa.string()),
        ("stops", pa.bool_()),
    ]
)


def merged(lake: Lake, token: Token, packed: list[bytes]) -> dict[str, object]:
    """The result of a table as a row: what fails is reported, so that no other table is lost."""
    try:
        return {**asdict(merge_table(lake, token, packed)), "stops": False}
    except Exception as error:
        return {**asdict(Merged()), **failure(error)}


def failure(error: Exception) -> dict[str, object]:
    """What failed in a task, as a part of its result: a raised error has a stack of Spark's."""
    remedy, stops = "", False
    match error:
        case TableError():
            reason, remedy = error.reason, error.remedy
        case HeadgateError() | OSError():
            reason, stops = reason_of(error), True
        case DeltaError() | pa.ArrowException():
            reason, stops = reason_of(error), _STORAGE.search(str(error)) is not None
            remedy = "" if stops else "land the table anew"
        case _:
            reason, remedy = internal_error(error)[1], "then resume the table"
    return {"error": reason, "remedy": remedy, "stops": stops}
