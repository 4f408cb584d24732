"""DDL that MySQL and TiDB ran, read and applied, against what they themselves say of it."""

from __future__ import annotations

import json
import lzma
from typing import Any

import pytest
from paths import VECTORS

from headgate.codec.encoder import Encoder
from headgate.core.event import Event
from headgate.schema.changes import CreateTable, Unknown
from headgate.schema.ddl import changes
from headgate.schema.known_tables import KnownTables

MYSQL, TICDC = VECTORS / "mysql80", VECTORS / "ticdc"
TRUTHS = (MYSQL / "truth.jsonl.xz", TICDC / "classic.truth.jsonl.xz", TICDC / "new.truth.jsonl.xz")
NOT_TOLD = {"create table live.d5 as select id, aa from live.d3"}
"""Statements that do not define the table's columns."""


def ddl_of(truth: Any) -> list[dict[str, Any]]:
    with lzma.open(truth, "rt") as lines:
        return [ddl for ddl in map(json.loads, lines) if ddl["kind"] in ("ddl", "truncate", "ctas")]


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_recorded_ddl_is_understood(truth: Any) -> None:
    statements = {text for ddl in ddl_of(truth) if (text := ddl.get("sql") or ddl.get("query"))}
    assert len(statements) > 40
    unknown = {
        text
        for text in statements
        for change in changes(text)
        if isinstance(change, Unknown) or (isinstance(change, CreateTable) and change.unknown)
    }
    assert unknown <= NOT_TOLD


def test_applied_ddl_gives_the_tables_that_the_server_has() -> None:
    known = KnownTables()
    for ddl in ddl_of(MYSQL / "truth.jsonl.xz"):
        if ddl["kind"] == "ddl":
            known.learn(Event("ddl", ddl["op"], ddl["db"], ddl["table"], ddl=ddl["sql"]))
    with lzma.open(MYSQL / "final.json.xz", "rt") as file:
        final = json.load(file)
    checked = 0
    for name, server in final.items():
        table = known.table(*name.split("\t"))
        if table is None:
            assert "live\td5" == name  # CREATE TABLE … SELECT
            continue
        checked += 1
        # MySQL 8 says geomcollection, and in ENUM's labels ? for what is not in utf8mb3.
        types = {
            column: mysql.replace("geomcollection", "geometrycollection").replace("'?'", "'😀'")
            for column, mysql in server["types"].items()
        }
        assert types == {column: c.mysql for column, c in table.columns.items()}
        assert server["key"] == list(table.key)
    assert checked > 20


@pytest.mark.parametrize("truth", TRUTHS[1:], ids=lambda path: path.name)
def test_ticdc_has_the_same_number_for_a_statement(truth: Any) -> None:
    encoder = Encoder("open-protocol")
    for ddl in ddl_of(truth):
        (record,) = encoder(Event("ddl", ddl=ddl["query"], commit_ts=1)).records
        assert ddl["ddlType"] == json.loads((record.value or b"")[8:])["t"], ddl["query"]
