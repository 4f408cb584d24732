"""What a job knows of tables: the tables as they are, whatever the number of statements was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from in_process import Sent, job_of, run_job
from paths import REPRO

from headgate.codec.loss_samples import SCHEMA
from headgate.codec.schemas import Schemas
from headgate.config.job import Source
from headgate.core.event import Event
from headgate.pipeline import catalog
from headgate.pipeline.catalog import (
    CatalogTooLarge,
    catalog_after,
    known_tables,
    read_catalog,
)
from headgate.pipeline.engine import with_schema
from headgate.pipeline.plan import PlannedDdl
from headgate.pipeline.state import State, States
from headgate.schema import known_tables as learnt_tables
from headgate.schema.known_tables import LearntTable
from headgate.sources.stdin import StdinSource
from headgate.spark.storage import Storage

SOURCE = Source(StdinSource(), "debezium")


def ddl(sql: str, id: str | None = None, table: str = "t", rejected: bool = False) -> PlannedDdl:
    event = Event("ddl", "alter", "d", table, ddl=sql)
    return PlannedDdl(event, event, id or sql, True, rejected=rejected)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "state"))


def types(storage: Storage, name: str | None, source: Source = SOURCE, table: str = "t") -> Any:
    found = known_tables(storage, name, source).table("d", table)
    return found and {column: told.mysql for column, told in found.types.items()}


def test_a_stable_table_is_known_after_any_number_of_statements(storage: Storage) -> None:
    name = catalog_after(storage, None, SOURCE, [ddl("CREATE TABLE t (id INT, p DECIMAL(5,2))")])
    for batch in range(3):
        others = [ddl("DROP TABLE IF EXISTS x", f"{batch}-{n}", "x") for n in range(2_000)]
        name = catalog_after(storage, name, SOURCE, others)

    assert {"id": "int", "p": "decimal(5,2)"} == types(storage, name)
    assert read_catalog(storage, name).is_repeat("0-0")


def test_a_batch_without_ddl_writes_nothing_and_old_files_go(storage: Storage) -> None:
    first = catalog_after(storage, None, SOURCE, [ddl("CREATE TABLE t (id INT)")])
    assert first == catalog_after(storage, first, SOURCE, [])
    assert [first] == storage.names(catalog.FOLDER)
    second = catalog_after(storage, first, SOURCE, [ddl("ALTER TABLE t ADD n INT")])

    states = States(storage)
    states.write(State(batch=0, catalog=second))
    assert [second] == storage.names(catalog.FOLDER)


def test_what_is_kept_comes_back_exactly() -> None:
    known = Schemas()
    for sql in (
        SCHEMA,
        "CREATE TABLE d.t (a INT NOT NULL, b INT AS (a+1) STORED, c CHAR(4) NOT NULL, UNIQUE (c,a),"
        " KEY k (a)) CHARSET=binary",
        "CREATE TABLE d.dropped (id INT); DROP TABLE d.dropped",
        "CREATE TABLE d.lost (id INT)",
        "CREATE TABLE d.old (e ENUM('x,y','it''s') PRIMARY KEY); RENAME TABLE d.old TO d.new",
        "ALTER TABLE d.lost SOMETHING UNKNOWN",
    ):
        known.learn(Event("ddl", "create", "d", ddl=sql))
    kept = msgspec.json.encode(known.learnt(Schemas()))
    found = Schemas().with_learnt(msgspec.json.decode(kept, type=list[LearntTable]))

    assert kept == msgspec.json.encode(found.learnt(Schemas()))
    more = Event("ddl", "alter", "d", ddl="ALTER TABLE d.t ADD z CHAR(3), DROP KEY k, DROP b")
    for each in (known, found):
        each.learn(more)
    for table in ("t", "new", "dropped", "lost"):
        assert known.table("d", table) == found.table("d", table)
    assert "binary(3)" == found.table("d", "t").columns["z"].mysql
    assert found.table("d", "lost") is None


def test_ddl_changes_what_a_schema_file_told_until_the_file_is_edited(storage: Storage) -> None:
    file = "CREATE TABLE d.t (id INT); CREATE TABLE d.u (id INT)"
    source = with_schema(SOURCE, file)
    name = catalog_after(storage, None, source, [ddl("ALTER TABLE t ADD n INT")])
    edited = with_schema(SOURCE, file.replace("d.t (id INT)", "d.t (id BIGINT)"))
    another = with_schema(SOURCE, file.replace("d.u (id INT)", "d.u (id BIGINT)"))

    assert {"id": "int", "n": "int"} == types(storage, name, source)
    assert {"id": "bigint"} == types(storage, name, edited)
    assert {"id": "int", "n": "int"} == types(storage, name, another)
    assert {"id": "bigint"} == types(storage, name, another, "u")


def test_rejected_ddl_counts_for_its_tables_and_is_no_repeat(storage: Storage) -> None:
    create, add = "CREATE TABLE t (id INT)", "ALTER TABLE t ADD n INT"
    name = catalog_after(storage, None, SOURCE, [ddl(create), ddl(add, "add", rejected=True)])

    assert {"id": "int", "n": "int"} == types(storage, name)
    assert not read_catalog(storage, name).is_repeat("add")

    name = catalog_after(storage, name, SOURCE, [ddl(add, "add")])
    assert {"id": "int", "n": "int"} == types(storage, name)
    assert read_catalog(storage, name).is_repeat("add")


def test_more_tables_than_are_kept_stop_the_job(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learnt_tables, "MAX_LEARNT_BYTES", 2_000)
    monkeypatch.setattr(catalog, "_cache", {})
    many = [ddl(f"CREATE TABLE t{n} (id INT)", table=f"t{n}") for n in range(20)]

    with pytest.raises(CatalogTooLarge, match="a new checkpoint and a schema file"):
        catalog_after(storage, None, SOURCE, many)


def rows(written: list[Any]) -> list[Any]:
    found = [json.loads(message[1]) for message in written]
    return [(m["table"], m["data"][0], m["mysqlType"]) for m in found if m["data"]]


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "route", [{}, {"route": [{"table": "live.(.*)", "to": "other.$1"}]}], ids=str
)
def test_a_job_reads_values_as_ddl_of_this_or_earlier_batches_tells(
    tmp_path: Path, cut: int, route: dict[str, Any]
) -> None:
    job = job_of(tmp_path, "debezium", "kafka://127.0.0.1:9/out?protocol=canal-json", **route)
    messages = [Sent(line) for line in (REPRO / "dz-ns-ddl.jsonl").read_bytes().splitlines()]
    out = run_job(job, tmp_path, [messages[:cut], messages[cut:]])

    found = rows(out.written[0])
    assert ["1.10", "1.500"] == [found[0][1]["c"], found[1][1]["d"]]
    assert "decimal(5,2)" == found[0][2]["c"]
    assert "untyped" not in out.state.totals.losses


@pytest.mark.parametrize("cut", [1, 2])
def test_a_schema_file_is_followed_by_ddl(tmp_path: Path, cut: int) -> None:
    """A file that tells the scale of before an ALTER does not hold for rows of after it."""
    lines = (REPRO / "dz-ns-ddl.jsonl").read_bytes().splitlines()
    change = json.loads(lines[0])
    change |= {"ddl": "ALTER TABLE t_nokey MODIFY c DECIMAL(5,1)", "tableChanges": []}
    messages = [Sent(lines[1].replace(b":337", b":330").replace(b"783569", b"770000"))]
    messages += [Sent(json.dumps(change).encode()), Sent(lines[1])]
    job = job_of(tmp_path, "debezium", "kafka://127.0.0.1:9/out?protocol=canal-json")
    schema = "CREATE TABLE live.t_nokey (a INT, b VARCHAR(20), c DECIMAL(5,2))"
    job = replace(job, source=with_schema(job.source, schema))
    out = run_job(job, tmp_path, [messages[:cut], messages[cut:]])

    found = rows(out.written[0])
    assert [("1.10", "decimal(5,2)"), ("11.0", "decimal(5,1)")] == [
        (data["c"], told["c"]) for _, data, told in found
    ]
