"""Statements of a server: after every one of them, landed tables have the server's rows."""

from __future__ import annotations

from effort import examples
from histories import History, histories
from hypothesis import given, settings
from memory_lake import PREFER, MemoryLake, counted, typed_rows
from recorded import final, paired, truth

from headgate.landing.shape import table_shape
from headgate.schema.changes import TableId


@settings(max_examples=examples(300))
@given(histories())
def test_tables_of_a_history(history: History) -> None:
    lake = MemoryLake()
    for transaction in history.server.log:
        if transaction.ddl is not None:
            lake.run(transaction.ddl.sql, "d")
        for change in transaction.changes:
            if change.op != "snapshot":
                lake.change(TableId("d", change.table), change.before, change.after)

    assert not lake.parked
    assert set(history.server.tables) == {table.table for table in lake.tables}
    for name, table in history.server.tables.items():
        shape, rows = lake.tables[TableId("d", name)]
        expected = table_shape(TableId("d", name), table.types, table.key, PREFER)
        assert set(expected.columns) == set(shape.columns)
        assert expected.key == shape.key
        assert counted(typed_rows(shape, table.rows)) == counted(rows)


FIRST_ALTERED = 206
"""The recorded statement from which on tables change."""


def test_tables_of_a_real_server() -> None:
    """MySQL 8.0: rows that statements left are found as they are when they change later."""
    lake = MemoryLake()
    for statement in truth():
        if statement["n"] < FIRST_ALTERED:
            continue
        table = TableId(statement["db"], statement["table"])
        if statement["kind"] == "ddl":
            lake.run(statement["sql"], table.database or "")
        elif statement["kind"] == "ctas":  # the table appears with its rows
            shape = table_shape(table, statement["types"], statement["key"])
            lake.tables[table] = shape, typed_rows(shape, statement["added"])
        elif statement["kind"] == "stmt":
            for before, after in paired(statement):
                lake.change(table, before, after)

    assert {TableId("live", "dp")} == lake.parked  # TRUNCATE PARTITION
    servers = {TableId(*name): rows for name, rows in final().items()}
    names = {table.table for table in lake.tables}
    assert {"d3", "d4", "d5", "dp"} == names
    for table in lake.tables.keys() - lake.parked:
        shape, rows = lake.tables[table]
        expected = typed_rows(shape, [row.after or {} for row in servers[table]])
        assert counted(expected) == counted(rows)
        assert servers[table][0].types == {c.source_name: c.mysql for c in shape.columns}
        assert tuple(servers[table][0].key) == shape.key
