"""Statements on real Delta tables: done twice is done once; rows are what MySQL made of them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from packed_changes import COLUMNS, orders, packed, upsert
from packed_changes import position as order

from headgate.core.batches import SourceRange
from headgate.landing.evolution import operations
from headgate.landing.operations import CreateLanded, Discard, Operation, Park, Warn
from headgate.landing.rules import Statement, Tables
from headgate.landing.shape import TableShape, table_shape
from headgate.landing.types import typed
from headgate.schema.changes import TableId
from headgate.schema.ddl import changes
from headgate.sinks import base
from headgate.sinks.base import Batch, Target
from headgate.sinks.delta import DeltaSink
from headgate.sinks.delta.ddl import carry_out, change
from headgate.sinks.delta.lake import Lake
from headgate.sinks.delta.merge import merge_table
from headgate.sinks.delta.options import DeltaOptions
from headgate.sinks.delta.state import read_tables
from headgate.sinks.delta.table import TableError
from headgate.spark.storage import Storage

TYPES: dict[str, str | None] = {"id": "int", "a": "decimal(8,2)", "s": "varchar(9)"}
ROWS = [("1", "1.25", "one"), ("2", "-2.50", None), ("3", None, "3.7")]
T, U = TableId("d", "t"), TableId("d", "u")
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def position(number: int) -> str:
    return f"abcdef01{number:020d}"


class House:
    """A lake with a few tables, and statements on it."""

    def __init__(self, root: Path, **options: str) -> None:
        self.lake = Lake(str(root), "job", DeltaOptions(**options))
        self.step = 0

    def land(self, table: TableId, types: dict[str, str | None], *rows: tuple[Any, ...]) -> None:
        """Make a table and its rows, whose positions are 1, 2, 3 …"""
        shape = table_shape(table, types, ["id"])
        self.step += 1
        token = self.lake.ddl_token(0, self.step)
        change(self.lake, CreateLanded(table, shape, position(0)), token, {})
        columns = [
            typed(pa.array([row[at] for row in rows], pa.string()), column.mysql, column.type)[0]
            for at, column in enumerate(shape.columns)
        ]
        names = [column.name for column in shape.columns]
        positions = pa.array([position(number) for number in range(1, len(rows) + 1)])
        everything = pa.table([*columns, positions], names=[*names, "_position"])
        self.append(table, everything)

    def append(self, table: TableId, rows: pa.Table) -> None:
        landed = self.lake.opened(table)
        assert landed is not None
        self.step += 1
        landed.append(rows, self.lake.merge_token(0, self.step))

    def shapes(self) -> dict[TableId, TableShape]:
        found = {table: self.lake.opened(table) for table in (T, U, *OTHERS)}
        return {table: each.shape for table, each in found.items() if each is not None}

    def plan(self, sql: str, at: int = 9) -> tuple[list[Operation], dict[str, int]]:
        landed = self.shapes()
        statement = Statement(sql, position(at), NOON, database="d")
        found = operations(changes(sql, "d"), statement, Tables(landed), self.lake.rules)
        opened = {table: self.lake.opened(table) for table in landed}
        versions = {self.lake.path(t): e.delta.version() for t, e in opened.items() if e}
        return found, versions

    def run(self, sql: str, at: int = 9, times: int = 2) -> None:
        """Run a statement; its operations are done twice, as after a crash."""
        found, versions = self.plan(sql, at)
        self.step += 1
        for _ in range(times):
            for operation in found:
                self.carry_out(operation, versions)

    def carry_out(self, operation: Operation, versions: dict[str, int]) -> None:
        assert not isinstance(operation, Park | Warn), operation
        if not isinstance(operation, Discard):
            change(self.lake, operation, self.lake.ddl_token(0, self.step), versions)

    def rows(self, table: TableId, *names: str) -> list[tuple[Any, ...]]:
        landed = self.lake.opened(table)
        assert landed is not None
        rows = landed.rows().sort_by("id") if "id" in landed.schema.names else landed.rows()
        return list(zip(*(rows.column(name).to_pylist() for name in names)))

    def files(self, table: TableId) -> list[str]:
        landed = self.lake.opened(table)
        assert landed is not None
        return sorted(landed.delta.file_uris())


OTHERS = tuple(TableId("d", name) for name in ("v", "_t_gho", "_t_del", "_t_new", "_t_old"))


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path, drop_column="drop")
    house.land(T, TYPES, *ROWS)
    return house


OUTCOMES: dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]] = {
    "ADD n INT": (("id", "n"), [(1, None), (2, None), (3, None)]),
    "ADD n INT NOT NULL DEFAULT 7": (("id", "n"), [(1, 7), (2, 7), (3, 7)]),
    "ADD at TIMESTAMP DEFAULT NOW()": (("at",), [(NOON,)] * 3),
    "ADD e ENUM('x','y') NOT NULL FIRST": (("e", "id"), [("x", 1), ("x", 2), ("x", 3)]),
    "RENAME COLUMN a TO b": (
        ("id", "b"),
        [(1, Decimal("1.25")), (2, Decimal("-2.50")), (3, None)],
    ),
    "RENAME COLUMN a TO s, RENAME COLUMN s TO a": (
        ("a", "s"),
        [("one", Decimal("1.25")), (None, Decimal("-2.50")), ("3.7", None)],
    ),
    "MODIFY a DECIMAL(8,1)": (("a",), [(Decimal("1.3"),), (Decimal("-2.5"),), (None,)]),
    "MODIFY a BIGINT": (("a",), [(1,), (-3,), (None,)]),
    "MODIFY s INT": (("s",), [(0,), (None,), (4,)]),
    "MODIFY s VARCHAR(2)": (("s",), [("on",), (None,), ("3.",)]),
    "CHANGE a total VARCHAR(9)": (("total",), [("1.25",), ("-2.50",), (None,)]),
    "DROP a, ADD a TEXT NOT NULL": (("id", "a"), [(1, ""), (2, ""), (3, "")]),
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, s)": (("id",), [(1,), (2,), (3,)]),
    "ADD n INT, MODIFY id BIGINT, DROP s": (("id", "n"), [(1, None), (2, None), (3, None)]),
}


@pytest.mark.parametrize("action", OUTCOMES)
def test_alter_table(house: House, action: str) -> None:
    house.run(f"ALTER TABLE t {action}")
    names, expected = OUTCOMES[action]

    assert expected == house.rows(T, *names)
    assert [(position(n),) for n in (1, 2, 3)] == sorted(house.rows(T, "_position"))


def test_what_is_noted_of_a_table_is_what_the_source_has(house: House) -> None:
    house.run("ALTER TABLE t MODIFY a DECIMAL(9,1), ADD n INT NOT NULL, ADD KEY (s)")
    house.run("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)")
    shape = house.shapes()[T]

    assert {"id": "int", "a": "decimal(9,1)", "s": "varchar(9)", "n": "int"} == {
        column.name: column.mysql for column in shape.columns
    }
    assert ("id", "n") == shape.key


def test_a_dropped_column_stays_until_its_name_is_used_again(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.land(T, TYPES, *ROWS)

    house.run("ALTER TABLE t DROP s")
    assert [("one",), (None,), ("3.7",)] == house.rows(T, "s")

    house.run("ALTER TABLE t ADD s INT NOT NULL DEFAULT 5")
    assert [(5,), (5,), (5,)] == house.rows(T, "s")


def test_a_conversion_that_changes_no_value_writes_no_file(house: House) -> None:
    before = house.files(T)
    house.run("ALTER TABLE t MODIFY s VARCHAR(5)")

    assert before == house.files(T)
    assert "varchar(5)" == house.shapes()[T].columns[2].mysql


@pytest.mark.parametrize(
    ("action", "names"),
    [
        ("MODIFY s VARCHAR(9) FIRST", ["s", "id", "a"]),
        ("MODIFY id INT AFTER a, MODIFY s VARCHAR(9) FIRST", ["s", "a", "id"]),
        ("ADD n DATETIME AFTER id", ["id", "n", "a", "s"]),
        ("ADD n INT FIRST, ADD m INT AFTER n", ["n", "m", "id", "a", "s"]),
    ],
)
def test_columns_are_put_in_their_place_and_files_stay(
    house: House, action: str, names: list[str]
) -> None:
    files = house.files(T)
    house.run(f"ALTER TABLE t {action}")

    assert names == columns_of(house)
    assert files == house.files(T)
    assert [(1, "one"), (2, None), (3, "3.7")] == house.rows(T, "id", "s")
    house.run("ALTER TABLE t MODIFY s VARCHAR(9) AFTER id, MODIFY a BIGINT FIRST")
    assert "a" == columns_of(house)[0]
    assert [(1, "one", 1), (2, None, -3), (3, "3.7", None)] == house.rows(T, "id", "s", "a")


def columns_of(house: House) -> list[str]:
    landed = house.lake.opened(T)
    assert landed is not None
    assert landed.properties["headgate.job"] == "job"
    return [name for name in landed.schema.names if not name.startswith("_")]


def test_rows_are_merged_after_columns_have_moved(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path), "job", DeltaOptions())
    merge_table(lake, lake.merge_token(0, 0), [packed([upsert(1, 1, "a")])])
    landed = lake.opened(orders().table)
    assert landed is not None
    names = landed.shape.names
    landed.reordered(names[::-1])
    merge_table(lake, lake.merge_token(1, 0), [packed([upsert(2, 1, "b"), upsert(3, 2, "c")])])
    landed = lake.opened(orders().table)

    assert landed is not None
    assert names[::-1] == landed.shape.names
    assert [(1, "b"), (2, "c")] == sorted(
        zip(landed.rows().column("id").to_pylist(), landed.rows().column("name").to_pylist())
    )
    landed.delta.optimize.compact()
    assert 2 == landed.again().rows().num_rows


def test_truncate_leaves_rows_that_came_after_it(house: House) -> None:
    house.run("TRUNCATE TABLE t", at=2)

    assert [(3,)] == house.rows(T, "id")


def test_a_table_that_is_created_again_starts_empty(house: House) -> None:
    house.run("DROP TABLE t")
    assert 3 == len(house.rows(T, "id"))
    assert house.shapes()[T].dropped

    house.run("CREATE TABLE t (id INT PRIMARY KEY, n TEXT)")
    assert [] == house.rows(T, "id", "n")
    assert not house.shapes()[T].dropped


def test_rename(house: House) -> None:
    house.run("ALTER TABLE t RENAME TO v, ADD n INT NOT NULL")

    assert [(1, 0), (2, 0), (3, 0)] == house.rows(OTHERS[0], "id", "n")


SWAP = "RENAME TABLE t TO v, u TO t, v TO u"


@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_swap_that_is_cut_off_ends_as_a_swap(house: House, done: int) -> None:
    house.land(U, {"id": "int", "n": "int"}, ("10", "5"))
    found, versions = house.plan(SWAP)
    house.step += 1
    for operation in [*found[:done], *found, *found]:
        house.carry_out(operation, versions)

    assert [(10, 5)] == house.rows(T, "id", "n")
    assert [(1, "one"), (2, None), (3, "3.7")] == house.rows(U, "id", "s")


def test_the_swap_of_an_online_schema_change(house: House) -> None:
    ghost = OTHERS[1]
    house.land(ghost, {**TYPES, "extra": "int"}, *((*row, "9") for row in ROWS))
    house.run("RENAME TABLE t TO _t_del, _t_gho TO t")

    assert [(1, 9), (2, 9), (3, 9)] == house.rows(T, "id", "extra")
    assert [(1,), (2,), (3,)] == house.rows(OTHERS[2], "id")


def test_an_online_schema_change_from_its_first_statement_to_its_last(tmp_path: Path) -> None:
    """pt-online-schema-change; its triggers and its copy of the rows come as row events."""
    house, copy = House(tmp_path, drop_table="drop"), TableId("d", "_t_new")
    house.land(T, TYPES, *ROWS)
    house.run("CREATE TABLE `d`.`_t_new` LIKE `d`.`t`")
    house.run("ALTER TABLE `d`.`_t_new` ADD extra INT NOT NULL DEFAULT 9, MODIFY s TEXT")
    house.append(
        copy, pa.table({"id": pa.array([1, 4], pa.int32()), "extra": pa.array([9, 8], pa.int32())})
    )
    house.run("RENAME TABLE `d`.`t` TO `d`.`_t_old`, `d`.`_t_new` TO `d`.`t`")
    house.run("DROP TABLE IF EXISTS `d`.`_t_old`")

    assert [(1, 9), (4, 8)] == house.rows(T, "id", "extra")
    assert "text" == house.shapes()[T].columns[2].mysql


def test_values_that_cannot_be_converted_leave_the_table_as_it_is(house: House) -> None:
    before = house.shapes()[T]
    with pytest.raises(TableError, match="column 's'") as caught:
        house.run("ALTER TABLE t MODIFY s DATE")

    assert "one" not in str(caught.value)
    assert [("one",), (None,), ("3.7",)] == house.rows(T, "s")
    assert before == house.shapes()[T]


def test_try_evolve_applies_the_rest(tmp_path: Path) -> None:
    house = House(tmp_path, schema_change="try_evolve")
    house.land(T, TYPES, *ROWS)
    house.run("ALTER TABLE t MODIFY s DATE, ADD n INT NOT NULL DEFAULT 1")

    assert [("one", 1), (None, 1), ("3.7", 1)] == house.rows(T, "s", "n")


@pytest.mark.spark
def test_rows_are_rewritten_in_a_task(house: House, spark: Any) -> None:
    found, versions = house.plan("ALTER TABLE t ADD n INT NOT NULL DEFAULT 7")
    for _ in range(2):
        for operation in found:
            carry_out(spark, house.lake, operation, house.lake.ddl_token(1, 0), versions)

    assert [(7,), (7,), (7,)] == house.rows(T, "n")


@pytest.mark.spark
def test_a_failure_in_a_task_names_the_column_and_the_remedy(house: House, spark: Any) -> None:
    [operation], versions = house.plan("ALTER TABLE t MODIFY s DATE")

    with pytest.raises(TableError, match=r"column 's'.*snapshot"):
        carry_out(spark, house.lake, operation, house.lake.ddl_token(1, 0), versions)


# Through the writer of a job


class Job:
    """A batch of changes and statements, as the engine writes it."""

    def __init__(self, spark: Any, folder: Path, **options: str) -> None:
        self.spark, self.folder = spark, folder
        sink = DeltaSink(str(folder), DeltaOptions(**options))
        self.writer = sink.open(spark, Target("job", "delta", {}, {}))

    def land(self, number: int, *steps: str | dict[TableShape, list[Any]], at: int = 1) -> None:
        """Changes and statements, in turn; positions count from `at`."""
        batch = Batch(number, SourceRange({"t": {"0": (number, number + 1)}}), lambda: None)
        self.writer.verify(batch)
        for place, step in enumerate(steps):
            if isinstance(step, str):
                found = list(changes(step, "shop"))
                statement = base.Statement(found, step, order(at + place), {}, NOON)
                self.writer.apply(batch, place // 2, statement)
            else:
                rows = [
                    (name_of(shape), len(each), packed(each, shape)) for shape, each in step.items()
                ]
                frame = self.spark.createDataFrame(rows, "table string, count long, changes binary")
                self.writer.merge(batch, place // 2, frame, list(step))
        self.writer.finish(batch, None)

    def rows(self, table: str) -> list[dict[str, Any]]:
        rows = DeltaTable(self.folder / "shop" / table).to_pyarrow_table().sort_by("id").to_pylist()
        return [{name: v for name, v in row.items() if name != "_position"} for row in rows]


def name_of(shape: TableShape) -> str:
    return msgspec.json.encode(shape.table).decode()


ARCHIVE = orders({**COLUMNS, "extra": "int"}, table=TableId("shop", "archive"))


@pytest.mark.spark
def test_a_batch_that_renames_its_table_and_is_repeated(spark: Any, tmp_path: Path) -> None:
    steps = (
        {orders(): [upsert(1, 1, "a"), upsert(1, 2, "b")]},
        "RENAME TABLE orders TO archive",
        {orders({**COLUMNS}, table=ARCHIVE.table): [upsert(3, 2, "c")]},
        "ALTER TABLE archive ADD extra INT NOT NULL DEFAULT 5",
        {ARCHIVE: [upsert(5, 3, "d")]},
    )
    for times in range(3):
        Job(spark, tmp_path).land(0, *steps[: 5 if times else 4])

    assert not (tmp_path / "shop" / "orders").exists()
    assert [
        {"id": 1, "name": "a", "n": None, "extra": 5},
        {"id": 2, "name": "c", "n": None, "extra": 5},
        {"id": 3, "name": "d", "n": None, "extra": None},
    ] == Job(spark, tmp_path).rows("archive")


@pytest.mark.spark
def test_a_parked_table_stays_parked_under_its_new_name(spark: Any, tmp_path: Path) -> None:
    job = Job(spark, tmp_path)
    job.land(0, {orders(): [upsert(1, 1, "a")]}, "ALTER TABLE orders ADD g INT AS (n + 1)")
    job.land(1, {}, "RENAME TABLE orders TO archive", at=5)

    assert {"orders": "parked", "archive": "parked"} == {
        table.table: each.state
        for table, each in read_tables(Storage(str(tmp_path / "_headgate"))).items()
    }
    assert [{"id": 1, "name": "a", "n": None}] == job.rows("orders")


def test_operations_travel_as_json(house: House) -> None:
    found, _ = house.plan(f"{SWAP}; ALTER TABLE t ADD n INT NOT NULL; DROP TABLE u")

    assert found == msgspec.json.decode(msgspec.json.encode(found), type=list[Operation])
