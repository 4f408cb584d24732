"""Landed tables in memory: operations of DDL are carried out on Arrow tables, without any lake."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from headgate.landing.conversion import selected
from headgate.landing.evolution import operations
from headgate.landing.operations import (
    AddColumns,
    ColumnSource,
    CreateLanded,
    Describe,
    Discard,
    Empty,
    MoveTable,
    Operation,
    Park,
    Rewrite,
)
from headgate.landing.rules import Rules, Statement, Tables
from headgate.landing.shape import TableShape
from headgate.landing.types import TypePreferences, arrow_type, typed
from headgate.schema.changes import TableId
from headgate.schema.ddl import changes

Row = dict[str, "str | None"]
PREFER = TypePreferences(zero_dates="string")
RULES = Rules(drop_table="drop", drop_column="drop", prefer=PREFER)


class MemoryLake:
    """Landed tables, by name."""

    def __init__(self) -> None:
        self.tables: dict[TableId, tuple[TableShape, pa.Table]] = {}
        self.parked: set[TableId] = set()

    def run(self, sql: str, database: str) -> None:
        """Follow a statement, without what a catalog knows."""
        landed = {table: shape for table, (shape, _) in self.tables.items()}
        found = operations(changes(sql, database), Statement(sql, "p"), Tables(landed), RULES)
        before = dict(self.tables)
        for operation in found:
            self.carry_out(operation, before)

    def carry_out(
        self, operation: Operation, before: dict[TableId, tuple[TableShape, pa.Table]]
    ) -> None:
        match operation:
            case CreateLanded(table=table, shape=shape) | Empty(table=table, shape=shape):
                self.tables[table] = shape, typed_rows(shape, [])
            case AddColumns(table=table, shape=shape, columns=columns):
                rows = before[table][1]
                for column in columns:
                    nulls = pa.nulls(rows.num_rows, arrow_type(column.type))
                    rows = rows.append_column(column.name, nulls)
                self.tables[table] = shape, rows
            case Rewrite(table=table, shape=shape, select=select):
                self.tables[table] = shape, rewritten(before[table][1], shape, select)
            case MoveTable(table=table, to=to, shape=shape, select=select):
                self.tables[to] = shape, rewritten(before[table][1], shape, select)
            case Describe(table=table, shape=shape):
                self.tables[table] = shape, before[table][1]
            case Discard(table=table):
                del self.tables[table]
            case Park(table=table):
                self.parked.add(table)

    def change(self, table: TableId, before: Row | None, after: Row | None) -> None:
        """Change a row of a table; it has to be there."""
        shape, landed = self.tables[table]
        rows = landed.to_pylist()
        for image, apply in ((before, rows.remove), (after, rows.append)):
            if image is not None:
                apply(typed_rows(shape, [image]).to_pylist()[0])
        self.tables[table] = shape, pa.Table.from_pylist(rows, landed.schema)


def rewritten(rows: pa.Table, shape: TableShape, select: dict[str, ColumnSource]) -> pa.Table:
    names = [column.name for column in shape.columns]
    return pa.table(selected(rows, shape, select, PREFER), names=names)


def typed_rows(shape: TableShape, rows: list[Row]) -> pa.Table:
    """Rows of the server as they land."""
    columns = []
    for column in shape.columns:
        texts = pa.array([row[column.source_name] for row in rows], pa.string())
        values, misfits = typed(texts, column.mysql, column.type, PREFER)
        assert {} == misfits
        columns.append(values)
    return pa.table(columns, names=[column.name for column in shape.columns])


def counted(rows: pa.Table) -> Counter[Any]:
    """Rows, in no order."""
    return Counter(tuple(sorted(row.items())) for row in rows.to_pylist())
