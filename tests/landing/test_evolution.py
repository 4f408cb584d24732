"""What statements make of landed tables: statement → operations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.landing.evolution import follow, operations
from headgate.landing.operations import (
    AddColumns,
    CreateLanded,
    Describe,
    Discard,
    Empty,
    MoveTable,
    Operation,
    Park,
    Rewrite,
    Warn,
)
from headgate.landing.rules import Rules, SchemaChangeRefused, Statement, Tables
from headgate.landing.shape import TableShape, table_shape
from headgate.schema.apply import altered
from headgate.schema.changes import TableId
from headgate.schema.columns import Column
from headgate.schema.ddl import changes
from headgate.schema.definition import TableDefinition
from headgate.schema.tokenizer import Unreadable

EVOLVE = Rules()
NOON = datetime(2026, 5, 4, 12, 30, 15, tzinfo=UTC)
TYPES: dict[str, str | None] = {
    "id": "bigint",
    "amount": "decimal(10,2)",
    "note": "varchar(20)",
    "state": "enum('new','paid')",
    "seen": "datetime(3)",
}


def table(name: str, types: dict[str, str | None] = TYPES, **options: bool) -> TableShape:
    shape = table_shape(TableId("d", name), types, ["id"])
    return msgspec.structs.replace(shape, **options)


LANDED = [
    table("t"),
    table("u", {"id": "int", "n": "int"}),
    table("_t_gho", {**TYPES, "extra": "int"}),
    table("gone", dropped=True),
]


def planned(
    sql: str,
    rules: Rules = EVOLVE,
    after: Sequence[TableShape] = (),
    **options: object,
) -> list[Operation]:
    statement = Statement(sql, "p", NOON, database="d", **options)  # type: ignore[arg-type]
    tables = Tables({shape.table: shape for shape in LANDED}, {s.table: s for s in after})
    return operations(changes(sql, "d"), statement, tables, rules)


def short(operation: Operation) -> str:
    """An operation in one line, with the columns that do not stay as they are."""
    name = operation.table.table
    match operation:
        case CreateLanded(shape=shape, with_rows=grown):
            with_rows = "" if grown is None else f", with rows {described(grown.shape)}"
            return f"create {name} {described(shape)}{with_rows}"
        case AddColumns(columns=columns):
            return f"add {name}: " + ", ".join(f"{c.name} {c.type}" for c in columns)
        case Rewrite(shape=shape):
            return f"rewrite {name}: {selected(operation)}"
        case MoveTable(to=to):
            return f"move {name} > {to.table}{selected(operation)}"
        case Describe(shape=shape):
            kept = [c.name for c in shape.columns if c.dropped]
            return f"describe {name}" + " dropped" * shape.dropped + f" without {kept}" * bool(kept)
        case Empty():
            return f"empty {name}"
        case Discard():
            return f"discard {name}"
        case Park(reason=reason):
            return f"park {name}: {reason}"
        case Warn(reason=reason):
            return f"warn {name}: {reason}"


def described(shape: TableShape) -> str:
    each = ", ".join(f"{c.name} {c.type}" for c in shape.columns)
    return f"({each}) key {','.join(shape.key)}"


def selected(operation: Rewrite | MoveTable) -> str:
    parts = []
    for column in operation.shape.columns:
        source = operation.select[column.name]
        types = ">".join(source.types[1:])
        if source.column is None:
            parts.append(f"{column.name} {column.type} = {source.text}")
        elif source.column != column.name or types:
            parts.append(f"{column.name} {column.type} = {source.column} {types}".rstrip())
        if column.dropped:
            parts.append(f"{column.name} dropped")
    return ", ".join(parts)


STATEMENTS = {
    # Columns
    "ALTER TABLE t ADD n INT": ["add t: n int"],
    "ALTER TABLE t ADD n INT DEFAULT NULL AFTER id, ADD m TEXT": ["add t: n int, m string"],
    "ALTER TABLE t ADD n INT DEFAULT 5": ["rewrite t: n int = 5"],
    "ALTER TABLE t ADD n INT NOT NULL": ["rewrite t: n int = 0"],
    "ALTER TABLE t ADD c DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP": [
        "rewrite t: c timestamp_ntz = 2026-05-04 12:30:15",
        "warn t: column 'c': rows that are there have the time of the statement in the time zone "
        "UTC",
    ],
    "ALTER TABLE t ADD c TIMESTAMP DEFAULT CURRENT_TIMESTAMP": [
        "rewrite t: c timestamp = 2026-05-04 12:30:15"
    ],
    "ALTER TABLE t ADD c TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3)": [
        "rewrite t: c timestamp = 2026-05-04 12:30:15.000",
        "warn t: column 'c': rows that are there have the time of the statement's event, perhaps "
        "without a fraction of the second",
    ],
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS note TEXT": [],
    "ALTER TABLE t ADD note VARCHAR(20) NOT NULL DEFAULT 'x'": [],  # it was applied before
    "ALTER TABLE t ADD g INT AS (id + 1)": [
        "park t: column 'g': its values are generated by an expression"
    ],
    "ALTER TABLE t ADD g VARCHAR(36) DEFAULT (UUID())": [
        "park t: column 'g': its default is the expression 'UUID()'"
    ],
    "ALTER TABLE t ADD no INT AUTO_INCREMENT UNIQUE": [
        "park t: column 'no': the server numbers the rows that are there"
    ],
    "ALTER TABLE t ADD day DATE NOT NULL": [
        "park t: column 'day': the value '0000-00-00' does not fit the type date"
    ],
    "ALTER TABLE t DROP note": ["describe t without ['note']"],
    "ALTER TABLE t DROP COLUMN IF EXISTS x": [],
    "ALTER TABLE t DROP x": [],  # it was applied before, or is not selected
    "ALTER TABLE t DROP note, ADD note INT NOT NULL": ["rewrite t: note int = 0"],
    "ALTER TABLE t RENAME COLUMN note TO remark": ["rewrite t: remark string = note"],
    "ALTER TABLE t RENAME COLUMN x TO note": [],
    "ALTER TABLE t RENAME COLUMN note TO `a b`": ["rewrite t: a_x0020_b string = note"],
    "ALTER TABLE t RENAME COLUMN note TO state, RENAME COLUMN state TO note": [
        "rewrite t: state string = note, note string = state"
    ],
    "ALTER TABLE t CHANGE id no BIGINT": ["rewrite t: no bigint = id"],
    "ALTER TABLE t CHANGE amount total DECIMAL(12,4) FIRST": [
        "rewrite t: total decimal(12,4) = amount decimal(12,4)"
    ],
    "ALTER TABLE t MODIFY amount DECIMAL(10,1)": [
        "rewrite t: amount decimal(10,1) = amount decimal(10,1)"
    ],
    "ALTER TABLE t MODIFY note TEXT": ["describe t"],
    "ALTER TABLE t MODIFY note VARCHAR(5)": ["rewrite t: note string = note varchar(5)"],
    "ALTER TABLE t MODIFY note INT": ["rewrite t: note int = note int"],
    "ALTER TABLE t MODIFY state ENUM('paid','open','new')": ["describe t"],
    "ALTER TABLE t MODIFY seen DATETIME": ["rewrite t: seen timestamp_ntz = seen datetime"],
    "ALTER TABLE t MODIFY seen DATETIME(6)": ["describe t"],
    "ALTER TABLE t MODIFY seen TIMESTAMP": [
        "park t: column 'seen': datetime as timestamp depends on the time zone of the session "
        "that changed it"
    ],
    "ALTER TABLE t MODIFY note VARBINARY(20)": [
        "park t: column 'note': the bytes of text depend on the column's character set"
    ],
    "ALTER TABLE t MODIFY note VARCHAR(20) NOT NULL DEFAULT 'x'": [],
    "ALTER TABLE t MODIFY COLUMN IF EXISTS x INT": [],
    "ALTER TABLE t MODIFY note VARCHAR(20) FIRST": ["describe t"],
    "ALTER TABLE t ALTER note SET DEFAULT 'x'": [],
    "ALTER TABLE t ADD n INT, DROP note, MODIFY amount BIGINT, RENAME COLUMN seen TO at": [
        "rewrite t: amount bigint = amount bigint, note dropped, at timestamp_ntz = seen, "
        "n int = None"
    ],
    # Keys, and what is not landed
    "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, note)": ["describe t"],
    "ALTER TABLE t DROP PRIMARY KEY": ["describe t"],
    "ALTER TABLE t ADD KEY (note), COMMENT 'x', ENGINE = InnoDB": [],
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4": [],
    "CREATE INDEX i ON t (note)": [],
    "ALTER TABLE elsewhere ADD n INT": [],
    "CREATE DATABASE x": [],
    # Rows without changes
    "TRUNCATE TABLE t": ["empty t"],
    "TRUNCATE TABLE elsewhere": [],
    "ALTER TABLE t DROP PARTITION p": [
        "park t: DROP PARTITION adds or removes rows that no change tells"
    ],
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u": [
        "park t: EXCHANGE PARTITION adds or removes rows that no change tells",
        "park u: EXCHANGE PARTITION adds or removes rows that no change tells",
    ],
    "ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (5))": [],
    # Tables
    "CREATE TABLE v (id INT PRIMARY KEY, b BIT(1))": ["create v (id int, b boolean) key id"],
    "CREATE TABLE IF NOT EXISTS t (id INT)": [],
    # Where rows came before the statement, their columns stay.
    "CREATE TABLE t (id INT PRIMARY KEY, z INT)": [
        "create t (id int, z int) key id, with rows (id bigint, amount decimal(10,2), note string, "
        "state string, seen timestamp_ntz, z int) key id"
    ],
    "CREATE TABLE v LIKE u": ["create v (id int, n int) key id"],
    "CREATE TABLE v AS SELECT * FROM t": [],  # its rows will tell the columns
    "CREATE TABLE gone (id INT PRIMARY KEY)": ["create gone (id int) key id"],
    "CREATE TABLE IF NOT EXISTS gone LIKE u": ["create gone (id int, n int) key id"],
    "CREATE OR REPLACE TABLE u (id INT, n INT, PRIMARY KEY (id))": ["empty u"],
    "CREATE OR REPLACE TABLE u AS SELECT 1": ["empty u"],
    "DROP TABLE t, elsewhere": ["describe t dropped"],
    "DROP TABLE gone": [],
    "DROP TABLE t; CREATE TABLE t (id INT PRIMARY KEY)": ["create t (id int) key id"],
    "DROP DATABASE d": ["describe t dropped", "describe u dropped", "describe _t_gho dropped"],
    "DROP DATABASE x": [],
    "RENAME TABLE t TO v": ["move t > v", "discard t"],
    "ALTER TABLE t RENAME TO v, ADD n INT NOT NULL": ["move t > vn int = 0", "discard t"],
    "RENAME TABLE t TO u": ["move t > u", "discard t"],
    "RENAME TABLE t TO tmp, u TO t, tmp TO u": ["move u > t", "move t > u"],
    "RENAME TABLE t TO _t_del, _t_gho TO t": [
        "move _t_gho > t",
        "move t > _t_del",
        "discard _t_gho",
    ],
    "RENAME TABLE elsewhere TO v": [],
    "RENAME TABLE elsewhere TO u": [
        "park u: 'd.elsewhere' took its place, and that is not landed; it has to be among the "
        "job's tables"
    ],
    "RENAME TABLE t TO v; DROP TABLE v": ["describe t dropped"],
    "RENAME TABLE t TO v; TRUNCATE v": [
        "create v (id bigint, amount decimal(10,2), note string, state string, "
        "seen timestamp_ntz) key id",
        "describe t dropped",
    ],
    # What is not understood
    "ALTER TABLE t ADD n NUMBER(5)": [
        "park t: the statement is not understood: unknown column type 'number'"
    ],
    "ALTER TABLE t ADD g INT AS (1), RENAME TO v": [
        "park v: column 'g': its values are generated by an expression",
        "park t: column 'g': its values are generated by an expression",
    ],
    "FROBNICATE": [f"park {name}: the statement is not understood" for name in
                   ("t", "u", "_t_gho", "gone")],
}  # fmt: skip


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statement(sql: str) -> None:
    found = [short(operation) for operation in planned(sql)]
    expected = STATEMENTS[sql]
    assert len(found) == len(expected), found
    for operation, start in zip(found, expected):
        assert operation.startswith(start) if start.startswith("park") else operation == start


TRY = Rules("try_evolve")
LENIENT = Rules("lenient", drop_table="drop", drop_column="drop")
DROP = Rules(drop_table="drop", drop_column="drop")
LOG = Rules(log=True)
BEHAVIOURS: list[tuple[Rules, str, list[str]]] = [
    (DROP, "ALTER TABLE t DROP note", ["rewrite t: "]),
    (DROP, "DROP TABLE t", ["discard t"]),
    (DROP, "DROP DATABASE d", ["discard t", "discard u", "discard _t_gho", "discard gone"]),
    (DROP, "DROP TABLE t; CREATE TABLE t LIKE u", ["create t (id int, n int) key id"]),
    (TRY, "ALTER TABLE t ADD n INT NOT NULL", ["rewrite t: n int = 0"]),
    (
        TRY,
        "ALTER TABLE t ADD g INT AS (id + 1), ADD n INT, MODIFY seen TIMESTAMP",
        [
            "add t: g int, n int",
            "warn t: column 'g': its values are generated by an expression",
            "warn t: column 'seen': datetime as timestamp depends on the time zone of the session "
            "that changed it",
        ],
    ),
    (
        TRY,
        "ALTER TABLE t DROP PARTITION p",
        ["warn t: DROP PARTITION adds or removes rows that no change tells"],
    ),
    (LENIENT, "ALTER TABLE t DROP note", ["describe t without ['note']"]),
    (
        LENIENT,
        "ALTER TABLE t RENAME COLUMN note TO remark",
        ["rewrite t: remark string = note, note dropped"],
    ),
    (LENIENT, "ALTER TABLE t MODIFY amount DECIMAL(12,4)", ["rewrite t: "]),
    (LENIENT, "ALTER TABLE t MODIFY amount DECIMAL(5,1)", ["describe t"]),
    (LENIENT, "ALTER TABLE t MODIFY note INT", ["describe t"]),
    (
        LENIENT,
        "ALTER TABLE t MODIFY note BLOB",
        ["warn t: column 'note': no type holds both string and binary"],
    ),
    (LENIENT, "TRUNCATE TABLE t", ["warn t: TRUNCATE is not applied"]),
    (LENIENT, "DROP TABLE t", ["describe t dropped"]),
    (LENIENT, "CREATE TABLE gone (id BIGINT, n INT)", ["add gone: n int"]),
    (LENIENT, "RENAME TABLE t TO v", ["move t > v", "describe t dropped"]),
    (LENIENT, "RENAME TABLE t TO tmp, u TO t, tmp TO u", ["move u > t", "move t > u"]),
    (Rules("ignore"), "CREATE TABLE v (id INT PRIMARY KEY)", ["create v (id int) key id"]),
    (Rules("ignore"), "CREATE TABLE gone (id INT)", []),
    (Rules("ignore"), "ALTER TABLE t ADD n INT; TRUNCATE t; DROP TABLE t; FROBNICATE", []),
    (Rules("exception"), "CREATE TABLE v (id INT PRIMARY KEY)", ["create v (id int) key id"]),
    (Rules("exception"), "ALTER TABLE t ADD KEY (note)", []),
    (LOG, "ALTER TABLE t ADD n INT NOT NULL", ["add t: n int"]),
    (LOG, "ALTER TABLE t ADD g INT AS (id + 1)", ["add t: g int"]),
    (LOG, "ALTER TABLE t RENAME COLUMN note TO remark", ["add t: remark string"]),
    (LOG, "ALTER TABLE t MODIFY amount DECIMAL(12,4)", ["rewrite t: "]),
    (LOG, "ALTER TABLE t DROP note", []),
    (LOG, "TRUNCATE TABLE t", []),
    (Rules(ignore_deletes=True), "TRUNCATE TABLE t", []),
    (LOG, "RENAME TABLE u TO v", ["create v (id int, n int) key id", "describe u dropped"]),
]


@pytest.mark.parametrize(("rules", "sql", "expected"), BEHAVIOURS)
def test_behaviour(rules: Rules, sql: str, expected: list[str]) -> None:
    assert expected == [short(operation) for operation in planned(sql, rules)]


def test_a_lenient_type_holds_old_and_new_values() -> None:
    [rewrite] = planned("ALTER TABLE t MODIFY amount DECIMAL(8,4)", LENIENT)

    assert isinstance(rewrite, Rewrite)
    assert "decimal(12,4)" == rewrite.shape.columns[1].type


@pytest.mark.parametrize(
    "sql", ["ALTER TABLE t ADD n INT", "TRUNCATE t", "DROP TABLE t", "RENAME TABLE t TO v"]
)
def test_exception_stops_the_job_and_names_table_and_remedy(sql: str) -> None:
    with pytest.raises(SchemaChangeRefused) as caught:
        planned(sql, Rules("exception"))

    for part in ("d.", sql, "schema_change: evolve", "exclude"):
        assert part in str(caught.value)


def test_what_parks_a_table_says_which_statement_and_what_to_do() -> None:
    [park] = planned("ALTER TABLE t ADD g INT AS (id + 1)")

    assert isinstance(park, Park)
    assert "ALTER TABLE t ADD g INT AS (id + 1)" == park.statement
    assert "headgate tables resume" in park.remedy


def test_an_unreadable_statement_parks_the_table_that_its_event_names() -> None:
    [park] = planned("FROBNICATE", table=TableId("d", "u"))

    assert "u" == park.table.table


def test_a_table_without_rows_takes_any_column() -> None:
    sql = "ALTER TABLE t ADD g INT AS (1), MODIFY seen TIMESTAMP, DROP PARTITION p"
    tables = Tables({shape.table: shape for shape in LANDED}, is_empty=lambda table: True)
    found = operations(changes(sql, "d"), Statement(sql, "p"), tables, Rules())

    assert ["rewrite t: seen timestamp = None, g int = None"] == [short(each) for each in found]


def test_a_column_whose_type_nobody_told_stays_as_it_is() -> None:
    shape = table("x", {"id": "int", "a": None})
    sql = "ALTER TABLE x MODIFY a INT, ADD n INT"
    found = operations(changes(sql, "d"), Statement(sql, "p"), Tables({shape.table: shape}), EVOLVE)

    add, warn = map(short, found)
    assert "add x: n int" == add
    assert warn.startswith("warn x: column 'a' stays as it is")


def test_a_statement_of_a_snapshot_only_creates() -> None:
    sql = "DROP TABLE IF EXISTS t; CREATE TABLE t (id INT); CREATE TABLE v LIKE u"

    assert ["create v (id int, n int) key id"] == [
        short(each) for each in planned(sql, is_snapshot=True)
    ]


def test_the_catalog_knows_the_key_the_binary_columns_and_the_columns_of_the_job() -> None:
    after = table("t", {**TYPES, "b": "varbinary(9)"})
    after = msgspec.structs.replace(after, key=("id", "note"))
    [add] = planned("ALTER TABLE t ADD b VARCHAR(9), ADD secret TEXT", after=[after])

    assert isinstance(add, AddColumns)
    assert "add t: b binary" == short(add)
    assert ("id", "note") == add.shape.key


def test_a_table_that_is_renamed_out_of_the_selection_counts_as_dropped() -> None:
    sql = "RENAME TABLE t TO archive"
    landed = {shape.table: shape for shape in LANDED}
    tables = Tables(landed, takes=lambda table: table.table != "archive")
    found = operations(changes(sql, "d"), Statement(sql, "p"), tables, Rules())

    assert ["describe t dropped"] == [short(each) for each in found]


# A copy that takes the place of its table, and is not landed


def swapped(after: dict[str, str | None]) -> list[str]:
    """What the swap of gh-ost makes of t, where the job does not land its copies."""
    sql = "RENAME TABLE t TO _t_del, _t_gho TO t"
    landed = {TableId("d", "t"): table("t")}
    tables = Tables(landed, {TableId("d", "t"): table("t", after)}, takes=landed.__contains__)
    found = operations(changes(sql, "d"), Statement(sql, "p"), tables, EVOLVE)
    return [short(each) for each in found]


def test_a_swap_that_changes_no_column_changes_nothing() -> None:
    assert [] == swapped(TYPES)


def test_a_swap_applies_types_and_dropped_columns() -> None:
    after = {name: type_ for name, type_ in TYPES.items() if name != "note"}

    assert ["rewrite t: amount decimal(12,4) = amount decimal(12,4), note dropped"] == swapped(
        {**after, "amount": "decimal(12,4)"}
    )


def test_a_swap_that_adds_columns_parks_the_table() -> None:
    [park] = swapped({**TYPES, "extra": "int"})

    assert park.startswith("park t: the copy that took its place is not landed, and adds 'extra'")


# Rows without DDL


def test_rows_bring_new_columns_and_wider_types() -> None:
    wanted = table("t", {"id": "bigint", "extra": "int", "note": "varchar(500)"})
    assert ["add t: extra int"] == [short(each) for each in follow(table("t"), wanted, Rules())]

    wanted = table("t", {"amount": "decimal(14,3)"})
    [rewrite] = follow(table("t"), wanted, Rules())
    assert isinstance(rewrite, Rewrite)
    assert ["bigint", "decimal(14,3)"] == [column.type for column in rewrite.shape.columns[:2]]


def test_rows_of_known_columns_need_nothing() -> None:
    assert [] == follow(table("t"), table("t", {"note": "varchar(20)"}), Rules())


def test_rows_with_new_columns_are_ignored_or_stop_the_job() -> None:
    wanted = table("t", {**TYPES, "extra": "int"})

    assert [] == follow(table("t"), wanted, Rules("ignore"))
    with pytest.raises(SchemaChangeRefused, match="extra"):
        follow(table("t"), wanted, Rules("exception"))


# Many statements, one after the other

COLUMNS = st.sampled_from(["id", "a", "b", "c", "d"])
COLUMN_TYPES = st.sampled_from(["INT", "BIGINT", "DECIMAL(8,3)", "VARCHAR(9)", "TEXT", "DOUBLE"])
PLACES = st.sampled_from(["", " FIRST", " AFTER id"])
ACTIONS = st.one_of(
    st.builds("ADD COLUMN {} {}{}".format, COLUMNS, COLUMN_TYPES, PLACES),
    st.builds("DROP COLUMN {}".format, COLUMNS),
    st.builds("RENAME COLUMN {} TO {}".format, COLUMNS, COLUMNS),
    st.builds("MODIFY COLUMN {} {}{}".format, COLUMNS, COLUMN_TYPES, PLACES),
    st.builds("CHANGE COLUMN {} {} {}".format, COLUMNS, COLUMNS, COLUMN_TYPES),
)


@given(st.lists(st.lists(ACTIONS, min_size=1, max_size=3), min_size=1, max_size=6))
def test_the_landed_table_has_the_columns_of_the_source(statements: list[list[str]]) -> None:
    definition = TableDefinition({"id": Column("int"), "a": Column("varchar(9)")}, ("id",))
    landed = table("t", {"id": "int", "a": "varchar(9)"})
    for actions in statements:
        sql = f"ALTER TABLE t {', '.join(actions)}"
        try:
            definition = altered(definition, changes(sql, "d"))  # type: ignore[arg-type]
        except Unreadable:
            continue  # MySQL refuses it
        types = {name: column.mysql for name, column in definition.columns.items()}
        after = table_shape(landed.table, types, definition.key)
        tables = Tables({landed.table: landed}, {landed.table: after})
        found = operations(changes(sql, "d"), Statement(sql, "p"), tables, DROP)
        if any(isinstance(operation, Park) for operation in found):
            break
        for operation in found:
            assert isinstance(operation, Rewrite | AddColumns | Describe)
            landed = operation.shape

        assert after.columns == landed.columns
        assert after.key == landed.key
