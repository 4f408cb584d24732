"""What later DDL makes of rows that were written before it."""

from __future__ import annotations

from headgate.schema.ddl import changes
from headgate.verification.lineage import Fate, Lineage, Statement, as_modified


def lineage(*statements: str) -> Lineage:
    return Lineage([Statement(changes(sql, "d")) for sql in statements])


def test_a_table_that_nothing_changed_is_as_it_was() -> None:
    assert Fate("d.t") == lineage("ALTER TABLE u ADD n INT").fate("d.t", 0)


def test_a_column_has_its_last_name_and_a_dropped_one_none() -> None:
    found = lineage("ALTER TABLE t RENAME COLUMN a TO b, DROP c", "ALTER TABLE t CHANGE b d INT")

    assert ["d", None, "x"] == [found.fate("d.t", 0).name(name) for name in ("a", "c", "x")]
    assert ["a", "d"] == [found.fate("d.t", 1).name(name) for name in ("a", "b")]
    assert "d" == found.fate("d.t", 2).name("d")


def test_a_column_that_is_dropped_and_added_again_has_nothing_of_the_old_one() -> None:
    found = lineage("ALTER TABLE t DROP a", "ALTER TABLE t ADD a INT DEFAULT 5")

    assert None is found.fate("d.t", 0).name("a")
    assert {"a": ("int", "5")} == found.fate("d.t", 0).added
    assert ("a", {}) == (found.fate("d.t", 2).name("a"), found.fate("d.t", 2).added)


def test_a_new_column_that_is_renamed_has_its_default_under_the_last_name() -> None:
    found = lineage("ALTER TABLE t ADD a INT DEFAULT 5", "ALTER TABLE t RENAME COLUMN a TO b")

    assert {"b": ("int", "5")} == found.fate("d.t", 0).added
    assert "b" == found.fate("d.t", 1).name("a")


def test_rows_follow_a_renamed_table_and_not_the_one_that_takes_its_name() -> None:
    found = lineage("RENAME TABLE t TO old", "CREATE TABLE t (id INT)")

    assert ["d.old", "d.t"] == [found.fate("d.t", step).table for step in (0, 2)]


def test_tables_that_are_swapped_as_online_schema_changes_do() -> None:
    found = lineage("ALTER TABLE _t_gho ADD n INT", "RENAME TABLE t TO _t_del, _t_gho TO t")

    assert "d._t_del" == found.fate("d.t", 0).table
    assert ("d.t", {"n": ("int", None)}) == (
        found.fate("d._t_gho", 0).table, found.fate("d._t_gho", 0).added
    )  # fmt: skip
    assert "d.t" == found.fate("d.t", 2).table


def test_what_is_dropped_or_truncated_is_gone_and_what_comes_after_is_not() -> None:
    found = lineage("DROP TABLE t", "TRUNCATE TABLE u", "DROP DATABASE e")

    assert [None, "d.t"] == [found.fate("d.t", step).table for step in (0, 1)]
    assert [True, False] == [found.fate("d.u", step).truncated for step in (1, 2)]
    assert [None, "e.t"] == [found.fate("e.t", step).table for step in (2, 3)]


def test_values_become_what_the_server_made_of_them_when_types_changed() -> None:
    found = lineage("ALTER TABLE t MODIFY a DATETIME", "ALTER TABLE t CHANGE a b VARCHAR(30)")

    fate = found.fate("d.t", 0)

    assert {"b": ("datetime", "varchar(30)")} == fate.modified
    assert "2024-02-29 12:00:01" == as_modified(
        "2024-02-29 12:00:00.500000", "datetime(6)", fate.modified["b"]
    )
    assert "7" == as_modified("7", None, ["int"])


def test_a_new_columns_default_is_what_later_changes_of_its_type_make_of_it() -> None:
    found = lineage("ALTER TABLE t ADD a DECIMAL(9,3) DEFAULT 2.25", "ALTER TABLE t MODIFY a INT")

    assert {"a": ("int", "2")} == found.fate("d.t", 0).added


def test_a_table_has_its_last_key() -> None:
    found = lineage(
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b)", "ALTER TABLE t RENAME COLUMN b TO c"
    )

    assert ("c",) == found.fate("d.t", 0).key
    assert None is found.fate("d.t", 1).key
    assert () == lineage("ALTER TABLE t DROP PRIMARY KEY").fate("d.t", 0).key
