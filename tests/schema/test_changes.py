"""From DDL text to SchemaChange values."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.event import Event
from headgate.schema.apply import altered
from headgate.schema.changes import (
    AddColumn,
    AddIndex,
    CreateDatabase,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropIndex,
    DropTable,
    ModifyColumn,
    MoveColumn,
    Position,
    RenameColumn,
    RenameIndex,
    RenameTable,
    ReplaceRows,
    SchemaChange,
    SetCharset,
    SetDefault,
    SetPrimaryKey,
    TableId,
    TruncateTable,
    Unknown,
)
from headgate.schema.columns import Column, ColumnDefinition, Default
from headgate.schema.ddl import MAX_WORDS, changes, event_changes
from headgate.schema.definition import Index, TableDefinition
from headgate.schema.statement import MAX_LENGTH
from headgate.schema.tokenizer import Unreadable

T, U = TableId("d", "t"), TableId("d", "u")
INT = ColumnDefinition("n", "int")


def int_column(name: str) -> ColumnDefinition:
    return ColumnDefinition(name, "int")


CHANGES: dict[str, list[SchemaChange]] = {
    # Databases
    "CREATE DATABASE IF NOT EXISTS x": [CreateDatabase("x")],
    "drop schema if exists `x y`": [DropDatabase("x y")],
    "ALTER DATABASE d CHARACTER SET utf8mb4": [],
    # Tables
    "CREATE TABLE t (n INT)": [CreateTable(T, TableDefinition({"n": Column("int")}))],
    "CREATE TABLE IF NOT EXISTS t LIKE x.u": [
        CreateTable(T, like=TableId("x", "u"), if_not_exists=True)
    ],
    "CREATE OR REPLACE TABLE t (LIKE u)": [CreateTable(T, like=U, or_replace=True)],
    "CREATE TEMPORARY TABLE t (n INT)": [],
    "DROP TABLE t": [DropTable(T)],
    "DROP TABLE IF EXISTS `t`, u CASCADE": [DropTable(T, True), DropTable(U, True)],
    "DROP TEMPORARY TABLE t": [],
    "TRUNCATE TABLE t": [TruncateTable(T)],
    "truncate x.t": [TruncateTable(TableId("x", "t"))],
    "RENAME TABLE t TO u": [RenameTable(T, U)],
    "ALTER TABLE t RENAME TO u": [RenameTable(T, U)],
    "ALTER TABLE t RENAME AS x.u, ADD n INT": [
        AddColumn(T, INT),
        RenameTable(T, TableId("x", "u")),
    ],
    # The swap of gh-ost, of pt-online-schema-change, and of two tables
    "RENAME /* gh-ost */ TABLE `d`.`t` TO `d`.`_t_del`, `d`.`_t_gho` TO `d`.`t`": [
        RenameTable(T, TableId("d", "_t_del")),
        RenameTable(TableId("d", "_t_gho"), T),
    ],
    "RENAME TABLE t TO tmp, u TO t, tmp TO u": [
        RenameTable(T, TableId("d", "tmp")),
        RenameTable(U, T),
        RenameTable(TableId("d", "tmp"), U),
    ],
    # Columns
    "ALTER TABLE t ADD n INT": [AddColumn(T, INT)],
    "ALTER TABLE t ADD COLUMN n INT FIRST": [AddColumn(T, INT, Position())],
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT AFTER `a b`": [
        AddColumn(T, INT, Position("a b"), if_not_exists=True)
    ],
    "ALTER TABLE t ADD (a INT, b INT, KEY (a))": [
        AddColumn(T, int_column("a")),
        AddColumn(T, int_column("b")),
        AddIndex(T, "", Index(("a",), False)),
    ],
    "ALTER TABLE t ADD n INT PRIMARY KEY": [
        AddColumn(T, ColumnDefinition("n", "int", nullable=False)),
        SetPrimaryKey(T, ("n",)),
    ],
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT UNIQUE": [
        AddColumn(T, INT, if_not_exists=True),
        AddIndex(T, "", Index(("n",), True), if_applied=True),
    ],
    "ALTER TABLE t DROP n, DROP COLUMN IF EXISTS m": [DropColumn(T, "n"), DropColumn(T, "m", True)],
    "ALTER TABLE t RENAME COLUMN n TO m": [RenameColumn(T, "n", "m")],
    "ALTER TABLE t MODIFY n INT": [ModifyColumn(T, INT)],
    "ALTER TABLE t MODIFY COLUMN n INT AFTER m": [
        ModifyColumn(T, INT),
        MoveColumn(T, "n", Position("m")),
    ],
    "ALTER TABLE t CHANGE COLUMN m n INT FIRST": [
        RenameColumn(T, "m", "n"),
        ModifyColumn(T, INT),
        MoveColumn(T, "n", Position()),
    ],
    "ALTER TABLE t CHANGE n n INT": [ModifyColumn(T, INT)],
    "ALTER TABLE t ALTER n SET DEFAULT 5": [SetDefault(T, "n", Default("5"))],
    "ALTER TABLE t ALTER COLUMN n DROP DEFAULT": [SetDefault(T, "n", None)],
    "ALTER TABLE t ENGINE=InnoDB DEFAULT CHARSET=utf8": [SetCharset(T, "utf8mb3", False)],
    "ALTER TABLE t CONVERT TO CHARACTER SET gbk": [SetCharset(T, "gbk", True)],
    "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT": [SetCharset(T, None, True)],
    # Keys
    "ALTER TABLE t ADD PRIMARY KEY (a, b(10) DESC)": [SetPrimaryKey(T, ("a", "b"))],
    "ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY USING BTREE (a)": [SetPrimaryKey(T, ("a",))],
    "ALTER TABLE t DROP PRIMARY KEY": [SetPrimaryKey(T, ())],
    "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)": [
        SetPrimaryKey(T, ()),
        SetPrimaryKey(T, ("a",)),
    ],
    "ALTER TABLE t ADD UNIQUE KEY k (a)": [AddIndex(T, "k", Index(("a",), True))],
    "ALTER TABLE t ADD CONSTRAINT k UNIQUE (a)": [AddIndex(T, "k", Index(("a",), True))],
    "ALTER TABLE t ADD INDEX ((a + 1))": [AddIndex(T, "", Index((), False))],
    "ALTER TABLE t DROP KEY k, DROP CONSTRAINT c": [
        DropIndex(T, "k"),
        DropIndex(T, "c", if_exists=True),
    ],
    "ALTER TABLE t RENAME INDEX k TO l": [RenameIndex(T, "k", "l")],
    "CREATE UNIQUE INDEX k ON t (a)": [AddIndex(T, "k", Index(("a",), True))],
    "CREATE FULLTEXT INDEX k ON t (a) WITH PARSER ngram": [AddIndex(T, "k", Index(("a",), False))],
    "DROP INDEX k ON x.t": [DropIndex(TableId("x", "t"), "k")],
    "DROP INDEX `PRIMARY` ON t": [SetPrimaryKey(T, ())],
    # Rows without row events
    "ALTER TABLE t DROP PARTITION p, q": [ReplaceRows(T, "DROP PARTITION")],
    "ALTER TABLE t TRUNCATE PARTITION ALL": [ReplaceRows(T, "TRUNCATE PARTITION")],
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u WITHOUT VALIDATION": [
        ReplaceRows(T, "EXCHANGE PARTITION"),
        ReplaceRows(U, "EXCHANGE PARTITION"),
    ],
    "ALTER TABLE t CONVERT PARTITION p TO TABLE x.u": [
        ReplaceRows(T, "CONVERT PARTITION"),
        ReplaceRows(TableId("x", "u"), "CONVERT PARTITION"),
    ],
    "ALTER TABLE t IMPORT TABLESPACE": [ReplaceRows(T, "IMPORT TABLESPACE")],
    "ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (5))": [],
    # No change of a column or a key
    "ALTER TABLE t ENGINE = InnoDB, COMMENT 'a, b', LOCK=NONE": [],
    "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (b), ADD CHECK (a > 1)": [],
    "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (5))": [],
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4": [SetCharset(T, "utf8mb4", True)],
    "CREATE OR REPLACE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW v AS SELECT 1": [],
    "CREATE DEFINER=CURRENT_USER() TRIGGER r BEFORE INSERT ON t FOR EACH ROW DROP TABLE u": [],
    "CREATE PROCEDURE p() BEGIN DROP TABLE t; DROP TABLE u; END": [],
    "GRANT ALL ON *.* TO 'x'@'%'": [],
    "INSERT INTO t VALUES ('DROP TABLE t')": [],
    "": [],
    "-- nothing": [],
    # Names and comments
    "ALTER TABLE `a``b`.`c;d` DROP `e'f`": [DropColumn(TableId("a`b", "c;d"), "e'f")],
    'ALTER TABLE "t" DROP COLUMN "a""b"': [DropColumn(T, 'a"b')],
    "ALTER/**/TABLE/*x*/t--\n#y\nDROP/*!80000 COLUMN */n -- z": [DropColumn(T, "n")],
    "/*!40000 DROP TABLE IF EXISTS `t` */": [DropTable(T, True)],
    "/*M!100100 ALTER TABLE t DROP n */": [DropColumn(T, "n")],
    "DROP TABLE t; /* ; */ DROP TABLE u": [DropTable(T), DropTable(U)],
    "USE x; DROP TABLE t": [DropTable(TableId("x", "t"))],
    'DROP TABLE "X"."S"."T"': [DropTable(TableId("X", "S.T"))],
    "ALTER TABLE tàblé DROP $n": [DropColumn(TableId("d", "tàblé"), "$n")],
}


@pytest.mark.parametrize("sql", CHANGES)
def test_changes(sql: str) -> None:
    assert CHANGES[sql] == changes(sql, "d")


def test_several_operations_in_one_statement_come_in_order() -> None:
    sql = "ALTER TABLE t ADD a INT, DROP b, MODIFY c INT, ADD KEY (a), DROP PRIMARY KEY"
    kinds = [AddColumn, DropColumn, ModifyColumn, AddIndex, SetPrimaryKey]
    assert kinds == [type(change) for change in changes(sql)]


def test_a_table_without_a_database_is_of_the_current_one() -> None:
    assert [DropTable(TableId(None, "t"))] == changes("DROP TABLE t")


def test_a_created_table_has_its_columns_keys_and_indexes() -> None:
    (change,) = changes(
        "CREATE TABLE `t` (`id` BIGINT(20) UNSIGNED NOT NULL AUTO_INCREMENT, `e` ENUM('a','b'), "
        "code CHAR(3) UNIQUE, PRIMARY KEY (`ID`), KEY k (e)) ENGINE=InnoDB"
    )
    assert isinstance(change, CreateTable)
    assert change.definition == TableDefinition(
        {
            "id": Column("bigint(20) unsigned", nullable=False),
            "e": Column("enum('a','b')"),
            "code": Column("char(3)"),
        },
        ("id",),
        {"code": Index(("code",), True), "k": Index(("e",), False)},
    )


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE t AS SELECT 1", "CREATE TABLE t (n NUMBER)", "CREATE TABLE t (n INT"]
)
def test_a_created_table_whose_columns_are_not_told(sql: str) -> None:
    (change,) = changes(sql, "d")
    assert isinstance(change, CreateTable)
    assert (T, None) == (change.table, change.definition)
    assert change.unknown is not None
    assert change.unknown.reason


DEFAULTS = {
    "": None,
    "DEFAULT NULL": Default(None),
    "NOT NULL DEFAULT 5": Default("5"),
    "DEFAULT -1.50 NOT NULL": Default("-1.50"),
    "DEFAULT + 1e3": Default("1e3"),
    "DEFAULT 'it''s \\n' COMMENT 'x'": Default("it's \n"),
    'DEFAULT "x"': Default("x"),
    "DEFAULT N'x'": Default("x"),
    "DEFAULT _utf8mb4'x'": Default("x"),
    "DEFAULT b'101'": Default("5"),
    "DEFAULT TRUE": Default("1"),
    "DEFAULT CURRENT_TIMESTAMP": Default("CURRENT_TIMESTAMP", True),
    "DEFAULT now(6) ON UPDATE now(6)": Default("now(6)", True),
    "DEFAULT (uuid() + ')')": Default("(uuid() + ')')", True),
    "DEFAULT x'41'": Default("x'41'", True),
    "DEFAULT NEXT VALUE FOR s": Default("NEXT", True),
    "COMMENT 'DEFAULT 5'": None,
    "CHECK (n DEFAULT 5)": None,
}


@pytest.mark.parametrize("attributes", DEFAULTS)
def test_defaults(attributes: str) -> None:
    (change,) = changes(f"ALTER TABLE t ADD n VARCHAR(20) {attributes}")
    assert isinstance(change, AddColumn)
    assert DEFAULTS[attributes] == change.column.default


UNKNOWN = {
    "garbage": ((), "not a known statement"),
    "ALTER": ((), "expected TABLE"),
    "ALTER TABLE": ((), "expected a table name"),
    "ALTER TABLE t ADD n": ((T,), "expected a type"),
    "ALTER TABLE t ADD n INT, FROBNICATE n": ((T,), "'FROBNICATE' is not known"),
    "ALTER TABLE t ADD n INT, ADD m NUMBER(5)": ((T,), "unknown column type 'number'"),
    "ALTER TABLE t ALTER COLUMN n TYPE bigint": ((T,), "ALTER COLUMN"),
    "ALTER TABLE t CHARACTER SET binary": ((T,), "becomes binary"),
    "RENAME TABLE t, u TO v": ((T,), "expected TO"),
    "DROP TABLE t, (": ((T,), "expected a table name"),
    "ALTER TABLE t ADD n VARCHAR(5) DEFAULT 'x": ((), "quote is not closed"),
    "FLASHBACK TABLE t TO BEFORE DROP": ((), "not a known statement"),
    "DROP TABLE `" + "x" * MAX_LENGTH + "`": ((), "too long"),
    "DROP TABLE t" + ",t" * MAX_WORDS: ((), "too long"),
}


@pytest.mark.parametrize("sql", UNKNOWN, ids=lambda sql: sql[:40])
def test_unknown_has_a_reason_and_the_tables(sql: str) -> None:
    tables, reason = UNKNOWN[sql]
    (change,) = changes(sql, "d")
    assert isinstance(change, Unknown)
    assert tables == change.tables
    assert reason in change.reason


def test_unknown_tells_where() -> None:
    (change,) = changes("ALTER TABLE t\n  ADD n NUMBER(5)")
    assert isinstance(change, Unknown)
    assert "NUMBER(5)" == "ALTER TABLE t\n  ADD n NUMBER(5)"[change.at :]


EVENTS: list[tuple[Event, list[SchemaChange]]] = [
    (Event("row", "insert", "d", "t"), []),
    (Event("ddl", "drop", "d", "t", ddl="DROP TABLE t, x.u"), changes("DROP TABLE t, x.u", "d")),
    (Event("ddl", "query", "d", ddl="GRANT ALL ON d.* TO x"), []),
    (Event("ddl", "alter", "d", "t", ddl="ALTER TABLE t ENGINE=x"), []),
    (Event("ddl", "truncate", "d", "t"), [TruncateTable(T)]),
    (Event("ddl", "truncate", "d", "t", ddl="TRUNCATE t"), [TruncateTable(T)]),
    (Event("ddl", "alter", "d", "t"), [Unknown((T,), "there is no statement")]),
    (Event("ddl", "query", "d"), [Unknown((), "there is no statement")]),
    (Event("ddl", "drop", "d", "t", schema="s", ddl="x"), [DropTable(TableId("d", "s.t"))]),
    (
        Event("ddl", "alter", "d", "t", schema="s", ddl="ALTER TABLE s.t ADD n INT"),
        [Unknown((TableId("d", "s.t"),), "the statement is not MySQL's")],
    ),
]


@pytest.mark.parametrize(("event", "expected"), EVENTS)
def test_changes_of_events(event: Event, expected: list[SchemaChange]) -> None:
    assert expected == event_changes(event)


def test_changes_can_be_written_and_read() -> None:
    every = [change for sql in CHANGES for change in changes(sql, "d")] + changes("garbage")
    text = msgspec.json.encode(every)
    assert every == msgspec.json.decode(text, type=list[SchemaChange])


def test_altered_leaves_the_definition_as_it_was() -> None:
    before = TableDefinition({"n": Column("int")}, ("n",))
    after = altered(before, changes("ALTER TABLE t CHANGE n m BIGINT, ADD a INT FIRST"))  # type: ignore[arg-type]
    assert (["a", "m"], ("m",)) == (list(after.columns), after.key)
    assert (["n"], ("n",)) == (list(before.columns), before.key)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("ALTER TABLE t DROP n", "no column is left"),
        ("ALTER TABLE t DROP m", "there is no column 'm'"),
        ("ALTER TABLE t ADD N INT", "'N' is defined twice"),
        ("ALTER TABLE t ADD m INT AFTER x", "there is no column 'x'"),
        ("ALTER TABLE t DROP KEY k", "there is no index 'k'"),
    ],
)
def test_a_change_that_does_not_fit(sql: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        altered(TableDefinition({"n": Column("int")}), changes(sql))  # type: ignore[arg-type]


_WORDS = r"""
CREATE ALTER DROP RENAME TRUNCATE TABLE TABLES INDEX DATABASE OR REPLACE IF NOT EXISTS ADD COLUMN
MODIFY CHANGE TO AS LIKE FIRST AFTER PRIMARY UNIQUE KEY CONSTRAINT FOREIGN CHECK PARTITION SET
DEFAULT NULL INT VARCHAR ENUM SERIAL ( ) , . ; = ' " ` \\ -- # /* */ /*!80000 /*M! + - 5 0x1 b n t
't' `t` "t" DELIMITER DEFINER @ SQL SECURITY ALGORITHM ON USING LONG NATIONAL CHARSET binary
"""
WORDS = [*_WORDS.split(), "\n"]


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join) | st.text())
def test_no_text_raises(sql: str) -> None:
    for change in changes(sql):
        assert isinstance(change, SchemaChange)
        assert not isinstance(change, Unknown) or change.reason


@given(st.text(alphabet="abcxyz 123()=,.;", min_size=1))
def test_garbage_is_unknown(text: str) -> None:
    found = changes(f"zz {text}")
    assert isinstance(found[0], Unknown)


TESTS = Path(__file__).parents[1]
NOT_UNDERSTOOD = {"create table t (id int unsigned primary key, ...)"}
"""Statements in the cases that are not SQL: a vendor's document leaves the rest out."""


def statements_of(value: object) -> set[str]:
    """The DDL in the events of a case."""
    if isinstance(value, list):
        return {text for each in value for text in statements_of(each)}
    if isinstance(value, dict) and value.get("kind") == "ddl" and value.get("ddl"):
        return {value["ddl"]}
    return set()


def test_all_ddl_of_the_cases_is_understood() -> None:
    read = {
        text
        for file in (TESTS / "cases").rglob("expect.json")
        for text in statements_of(json.loads(file.read_text()))
    }
    assert len(read) > 50
    unknown = {
        text
        for text in read
        for change in changes(text)
        if isinstance(change, Unknown) or (isinstance(change, CreateTable) and change.unknown)
    }
    assert unknown == NOT_UNDERSTOOD
