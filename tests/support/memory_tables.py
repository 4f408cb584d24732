"""A sink of tables in memory: what a job asks of a sink, without a lake."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import memory_tables
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from headgate.codec.sequence import supersedes
from headgate.core.connectors import Address, Entry
from headgate.core.options import build, option
from headgate.landing.changes import unpack
from headgate.landing.resolution import Resolved
from headgate.landing.shape import TableShape
from headgate.landing.table_rows import DELETE, TRUNCATE
from headgate.landing.types import TypePreferences
from headgate.schema.changes import TableId
from headgate.sinks import SINKS
from headgate.sinks.base import (
    Batch,
    MergeReport,
    Statement,
    TableMerge,
    TableSink,
    TableWriter,
    Target,
)

STORES: dict[str, Store] = {}


@dataclass
class Store:
    """What was landed, by table and key; and all that was asked."""

    rows: dict[TableId, dict[Any, dict[str, Any]]] = field(default_factory=dict)
    shapes: list[TableShape] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    def values(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table without the columns that are not the source's."""
        rows = self.rows[TableId(*table.split("."))].values()
        return [
            {name: value for name, value in row.items() if name not in ("_position", "_deleted")}
            for row in rows
            if not row["_deleted"]
        ]


@dataclass(frozen=True)
class MemoryOptions(TypePreferences):
    store: str = option("lake", "which store")
    on_misfit: str = option("reject", "what happens to a misfit", ("reject", "null"))


@dataclass(frozen=True)
class MemorySink(TableSink):
    """Lands tables in memory."""

    name = "memory"
    summary = "tables in memory"
    promise = "exactly-once"
    Options = MemoryOptions

    options: MemoryOptions

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        return cls(build(MemoryOptions, address.params))

    @property
    def types(self) -> TypePreferences:
        return self.options

    @property
    def on_misfit(self) -> Literal["reject", "null"]:
        return "null" if self.options.on_misfit == "null" else "reject"

    def open(self, spark: SparkSession, target: Target) -> TableWriter:
        return MemoryWriter(STORES.setdefault(self.options.store, Store()))


class MemoryWriter(TableWriter):
    """Lands batches."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def verify(self, batch: Batch) -> None:
        self.store.calls.append(("verify", batch.number))

    def merge(
        self, batch: Batch, step: int, changes: DataFrame, shapes: Sequence[TableShape]
    ) -> MergeReport:
        self.store.calls.append(("merge", batch.number, step))
        self.store.shapes += shapes
        found: dict[TableId, TableMerge] = {}
        for row in changes.collect():
            shape, rows = unpack(bytes(row["changes"]))
            assert TableId(*json.loads(row["table"])) == shape.table
            assert row["count"] == rows.num_rows
            merged = self.store.rows.setdefault(shape.table, {})
            counts = [fold(merged, shape, change) for change in rows.to_pylist()]
            known = found.get(shape.table, TableMerge())
            found[shape.table] = TableMerge(
                known.upserted + counts.count("upserted"),
                known.deleted + counts.count("deleted"),
                known.ignored + counts.count("ignored"),
            )
        return MergeReport(found)

    def apply(self, batch: Batch, step: int, statement: Statement) -> None:
        self.store.calls.append(("apply", batch.number, step, statement.text))
        self.store.statements.append(statement)

    def finish(self, batch: Batch, resolved: Resolved | None) -> None:
        watermark = None if resolved is None else resolved.timestamp
        self.store.calls.append(("finish", batch.number, watermark))


def fold(rows: dict[Any, dict[str, Any]], shape: TableShape, change: dict[str, Any]) -> str:
    """Take one change into a table, by the rules for positions; what became of it."""
    op, position, absent = change["_op"], change["_position"], change.get("_absent") or ()
    if op == TRUNCATE:
        for key in [k for k, row in rows.items() if supersedes(position, row["_position"])]:
            del rows[key]
        return "deleted"
    names = shape.key or [column.name for column in shape.columns]
    key = tuple(change[name] for name in names)
    known = rows.get(key)
    if known is not None and not supersedes(position, known["_position"]):
        return "ignored"
    columns = [column.name for column in shape.columns]
    told = {n: change[n] for n in columns if n in change and n not in absent}
    kept = {} if known is None or known["_deleted"] else known
    rows[key] = {**kept, **told, "_position": position, "_deleted": op == DELETE}
    return "deleted" if op == DELETE else "upserted"


@contextmanager
def registered_store() -> Iterator[Store]:
    """The store of `memory:`, a scheme that is known meanwhile."""
    entries: Any = SINKS.entries
    entries["memory"] = Entry("memory_tables:MemorySink", "memory:")
    cloudpickle.register_pickle_by_value(memory_tables)
    store = STORES["lake"] = Store()
    try:
        yield store
    finally:
        del entries["memory"], STORES["lake"]
        cloudpickle.unregister_pickle_by_value(memory_tables)
