"""How SQL text is cut into statements and words, and what a statement's first words say."""

from __future__ import annotations

import pytest

from headgate.core.event import Event
from headgate.schema.catalog import Catalog
from headgate.schema.ddl import changes, read_statements
from headgate.schema.known_tables import KnownTables
from headgate.schema.statement import (
    HEAD_WORDS,
    alter_actions,
    ddl_op,
    first_statement,
    split_statements,
)
from headgate.schema.tokenizer import Unreadable, statements


def texts(sql: str) -> list[list[str]]:
    return [[word.text for word in each.words] for each in statements(sql)]


WORDS = {
    "": [],
    " ;; -- x\n;": [],
    "a.b(c)=1,d": [["a", ".", "b", "(", "c", ")", "=", "1", ",", "d"]],
    "`a``b` 'c''d' \"e\"\"f\"": [["a`b", "c'd", 'e"f']],
    r"'a\'b' 'c\\' 'd\ne' 'f\%g' 'h\xi'": [["a'b", "c\\", "d\ne", r"f\%g", "hxi"]],
    "'a;b' `c;d`; e": [["a;b", "c;d"], ["e"]],
    "a/* b ; */c-- d\ne#f\ng": [["a", "c", "e", "g"]],
    "a --b": [["a", "-", "-", "b"]],
    "/*!40101 a /* b */ c */ d": [["a", "c", "d"]],
    "/*M!100100 a */ b /*T! c */": [["a", "b"]],
    "a */ b": [["a", "*/", "b"]],
    "a /* never closed": [["a"]],
    "N'a' n'b' nc": [["a", "b", "nc"]],
    "é$1_ñ 0x1F": [["é$1_ñ", "0x1F"]],
    "DELIMITER ;;\nCREATE PROCEDURE p() BEGIN a; b; END;;\nDELIMITER ;\nc": [["c"]],
    "'\nDELIMITER ;;\n' a": [["\nDELIMITER ;;\n", "a"]],
    "INSERT INTO t VALUES " + "(-1, ';'), " * 100 + "(2, ''); b": [
        ["INSERT", "INTO", "t", "VALUES", *["(", "-", "1", ",", ";", ")", ","] * 6][:40],
        ["b"],
    ],
}


@pytest.mark.parametrize("sql", WORDS, ids=lambda sql: sql[:30])
def test_words(sql: str) -> None:
    assert WORDS[sql] == texts(sql)


@pytest.mark.parametrize("quote", ["'", '"', "`"])
def test_a_quote_that_is_not_closed_ends_the_text(quote: str) -> None:
    *_, last = statements(f"a; b {quote}c; d")
    assert (["b"], 5) == ([word.text for word in last.words], last.unclosed)


def test_words_know_their_place_in_the_text() -> None:
    sql = "ALTER /* x */ TABLE `a``b`"
    (statement,) = statements(sql)
    assert ["ALTER", "TABLE", "`a``b`"] == [sql[w.start : w.end] for w in statement.words]


HEADS = {
    "CREATE TABLE t (a INT)": ("CREATE", "TABLE", "create"),
    "create or replace table t": ("CREATE", "TABLE", "create"),
    "CREATE GLOBAL TEMPORARY TABLE t": ("CREATE", "TABLE", "create"),
    "ALTER IGNORE TABLE t": ("ALTER", "TABLE", "alter"),
    "DROP TABLES t": ("DROP", "TABLE", "drop"),
    "RENAME TABLE t TO u": ("RENAME", "TABLE", "rename"),
    "TRUNCATE t": ("TRUNCATE", "TABLE", "truncate"),
    "CREATE UNIQUE INDEX i ON t": ("CREATE", "INDEX", "create_index"),
    "CREATE VECTOR INDEX i ON t": ("CREATE", "INDEX", "create_index"),
    "/* x */ DROP INDEX i ON t": ("DROP", "INDEX", "drop_index"),
    "CREATE SCHEMA d": ("CREATE", "DATABASE", "query"),
    "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW v": (
        "CREATE",
        "VIEW",
        "query",
    ),
    "CREATE DEFINER=CURRENT_USER() PROCEDURE p()": ("CREATE", "PROCEDURE", "query"),
    "CREATE TABLESPACE s": ("CREATE", "TABLESPACE", "query"),
    "CREATE `TABLE` t": ("CREATE", "", "query"),
    "GRANT ALL ON t TO x": ("GRANT", "ALL", "query"),
    "": ("", "", "query"),
    "CREATE": ("CREATE", "", "query"),
    "CREATE DEFINER=": ("CREATE", "", "query"),
}


@pytest.mark.parametrize("sql", HEADS)
def test_verb_object_and_operation(sql: str) -> None:
    statement = first_statement(sql, HEAD_WORDS)
    assert HEADS[sql] == (statement.verb, statement.object, ddl_op(sql))


ACTIONS = {
    "ADD a INT, ADD COLUMN b INT": ["ADD COLUMN", "ADD COLUMN"],
    "ADD (a INT, UNIQUE (a)), ADD COLUMN (b INT)": ["ADD COLUMN", "ADD INDEX", "ADD COLUMN"],
    "ADD (a": ["ADD COLUMN"],
    "ADD `index` INT, ADD INDEX (a)": ["ADD COLUMN", "ADD INDEX"],
    "ADD CONSTRAINT PRIMARY KEY (a), ADD CONSTRAINT x FOREIGN KEY (a)": [
        "ADD PRIMARY KEY",
        "ADD FOREIGN KEY",
    ],
    "ADD COLUMNAR INDEX (a), ADD columnar INT": ["ADD VECTOR INDEX", "ADD COLUMN"],
    "DROP a, DROP KEY k, DROP CHECK c, DROP CONSTRAINT c": [
        "DROP COLUMN",
        "DROP INDEX",
        "DROP CHECK",
        "DROP CONSTRAINT",
    ],
    "RENAME u, RENAME COLUMN a TO b, RENAME KEY k TO l": [
        "RENAME TABLE",
        "RENAME COLUMN",
        "RENAME INDEX",
    ],
    "MODIFY a INT, CHANGE a b INT, ALTER a DROP DEFAULT": [
        "MODIFY COLUMN",
        "CHANGE COLUMN",
        "ALTER A",
    ],
    "ENGINE=x, ORDER BY a, b": ["ENGINE", "ORDER BY"],
    "DROP PARTITION p, q": ["DROP PARTITION"],
    "": [],
}


@pytest.mark.parametrize("sql", ACTIONS)
def test_actions_of_an_alter(sql: str) -> None:
    statement = first_statement(f"ALTER TABLE IF EXISTS `d`.t {sql}")
    assert ACTIONS[sql] == [action.kind for action in alter_actions(statement)]


def test_an_alter_without_a_table_has_no_actions() -> None:
    assert [] == list(alter_actions(first_statement("ALTER TABLE")))


def test_a_routine_hides_its_body() -> None:
    sql = "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW BEGIN DROP TABLE t; END; DROP TABLE u"
    assert [True, False, False] == [each.is_routine for each in split_statements(sql)]
    assert [] == changes(sql)


def test_a_catalog_applies_changes() -> None:
    catalog = Catalog()
    catalog.end_file(1_000_000)
    sql = (
        "CREATE TABLE t (a INT); CREATE TABLE _t_new LIKE t; ALTER TABLE _t_new ADD b INT;"
        "RENAME TABLE t TO _t_old, _t_new TO t; DROP TABLE _t_old; TRUNCATE t; CREATE DATABASE x"
    )
    catalog.apply(changes(sql, "d"))
    known = catalog.find("d", "t")
    assert known is not None
    assert ["a", "b"] == list(known.table.columns)
    assert catalog.find("d", "_t_old") is None
    with pytest.raises(Unreadable, match="not a known statement"):
        catalog.apply(changes("garbage"))


def test_a_column_that_was_there_keeps_its_key() -> None:
    known = KnownTables()
    for sql in (
        "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT PRIMARY KEY",
        "ALTER TABLE t MODIFY COLUMN IF EXISTS c INT UNIQUE",
    ):
        known.learn(Event("ddl", "alter", "d", "t", ddl=sql))
    table = known.table("d", "t")
    assert table is not None
    assert (("a",), ()) == (table.key, table.uniques)


def test_an_alter_of_an_unknown_table_names_it() -> None:
    (reading,) = read_statements("ALTER TABLE t ENGINE=x", "d")
    assert ([], [("d", "t")]) == (reading.changes, reading.tables)
