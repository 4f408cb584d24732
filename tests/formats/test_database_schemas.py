"""Tables in schemas: PostgreSQL, Oracle, SQL Server and Db2 through Debezium."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dialects import SPECS
from paths import REPRO

from headgate.arrow.typed_rows import Source, changes, table_of
from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.packing import packed
from headgate.codec.schemas import Schemas
from headgate.config.reader import load_job
from headgate.core.event import Event
from headgate.pipeline.counts import table_name
from headgate.pipeline.dedup import identity
from headgate.selection.filters import Filter
from headgate.selection.routes import Route
from headgate.selection.selection import Rules, Selection
from headgate.selection.tables import Tables

ALL = Tables()
COLUMNS = "shop.public.orders.d DATE"


def lines(name: str) -> list[bytes]:
    return (REPRO / "others" / f"{name}.jsonl").read_bytes().splitlines()


def decoded(name: str, **options: Any) -> list[Event]:
    decode = decoder("debezium", **options)
    return [event for line in lines(name) for event in decode(None, line, None)]


def row(schema: str | None, **members: Any) -> Event:
    told: dict[str, Any] = {"key": ("id",), "after": {"id": "1"}, "event_time": 1_000_000}
    told |= {"op": "insert", "database": "shop", "table": "orders"} | members
    return Event("row", schema=schema, **told)


def test_an_event_has_its_schema() -> None:
    assert ["public", "archive"] == [event.schema for event in decoded("pg2schemas")]
    assert {"DEBEZIUM"} == {event.schema for event in decoded("dbz-oracle-noschema")}
    assert {"dbo"} == {event.schema for event in decoded("dbz-sqlserver-noschema")}
    assert {("shop", "orders")} == {(e.database, e.table) for e in decoded("pg2schemas")}


@pytest.mark.parametrize("spec", SPECS)
def test_tables_of_two_schemas_stay_two_in_every_format(spec: str) -> None:
    encoder = Encoder(spec, **({"add_fields": "table"} if spec == "debezium-smt:debezium" else {}))
    events = [row("public"), row("archive"), row(None)]
    records, _ = packed(encoder, events, map(encoder, events))
    if spec == "debezium-smt:oms":
        return  # its rows do not tell their table at all
    read = decoder(spec)

    found = [event for record in records for event in read(record.key, record.value, None)]

    assert 3 == len({(event.database, event.schema, event.table) for event in found})
    assert "orders" == found[-1].table


def test_the_schema_stands_before_the_table_where_a_format_has_no_place_for_it() -> None:
    outcome = Encoder("canal-json")(row("public"))
    written = json.loads(outcome.records[0].value or b"")

    assert ("shop", "public.orders") == (written["database"], written["table"])
    assert "schema-name" in outcome.lost
    assert "schema-name" not in Encoder("canal-json")(row(None)).lost
    assert Encoder("canal-json", strict=True)(row("public")).error is not None
    assert b"`public.orders`" in (
        Encoder("canal-json")(row("public", op="truncate", after=None)).records[0].value or b""
    )


@pytest.mark.parametrize("spec", ["debezium", "dataworks"])
def test_formats_that_have_schemas_keep_the_name(spec: str) -> None:
    outcome = Encoder(spec)(row("public"))
    (event,) = decoder(spec)(outcome.records[0].key, outcome.records[0].value, None)

    assert ("shop", "public", "orders") == (event.database, event.schema, event.table)
    assert "schema-name" not in outcome.lost


@pytest.mark.parametrize(
    "name", ["pg2schemas", "dbz-oracle-noschema", "dbz-sqlserver-noschema", "dbz-pg-schema"]
)
def test_debezium_to_debezium_keeps_the_source(name: str) -> None:
    encoder = Encoder("debezium", schemas_enable=False)
    for line, event in zip(lines(name), decoded(name)):
        outcome = encoder(event)
        sent, written = json.loads(line), json.loads(outcome.records[0].value or b"")
        source = sent.get("payload", sent)["source"]
        present = {n: str(v) for n, v in source.items() if v is not None}

        assert present == {n: str(written["source"].get(n)) for n in present}
        assert isinstance(written["source"].get("scn", ""), str)
        assert "position" not in outcome.lost


@pytest.mark.parametrize(
    ("connector", "name"),
    [("postgresql", "s.public.orders.Key"), ("sqlserver", "s.shop.public.orders.Key")],
)
def test_schema_blocks_are_called_as_the_connector_calls_them(connector: str, name: str) -> None:
    event = row("public", format="debezium", dialect="debezium")
    event.extra = {"connector": connector, "name": "s"}
    (record,) = Encoder("debezium")(event).records
    value = json.loads(record.value or b"")
    source = next(f for f in value["schema"]["fields"] if f["field"] == "source")

    assert name == json.loads(record.key or b"")["schema"]["name"]
    assert "schema" in [field["field"] for field in source["fields"]]
    assert "public" == value["payload"]["source"]["schema"]


def test_flattened_rows_tell_their_schema() -> None:
    decode = decoder("debezium-smt:debezium")
    value = b'{"id":1,"__op":"c","__schema":"public","__table":"orders"}'
    (event,) = decode(None, value, "pg.public.orders")
    (again,) = Encoder("debezium-smt", schemas_enable=False)(event).records
    (told,) = Encoder("debezium-smt", schemas_enable=False, add_fields="schema,table")(
        row("public")
    ).records

    assert (None, "public", "orders") == (event.database, event.schema, event.table)
    assert b'"__schema":"public","__table":"orders"' in (again.value or b"")
    assert b'"__schema":"public","__table":"orders"' in (told.value or b"")
    decode = decoder("debezium-smt:debezium", schema="CREATE TABLE dbo.orders (id INT)")
    (event,) = decode(None, b'{"id":1,"__op":"c","__schema":"dbo"}', "s.shop.dbo.orders")
    assert ("shop", "dbo", "orders") == (event.database, event.schema, event.table)


def test_schema_changes_tell_their_schema() -> None:
    table = {"type": "CREATE", "id": '"shop"."public"."orders"', "table": None}
    told = {"databaseName": "shop", "schemaName": "public", "ddl": None, "tableChanges": [table]}
    (event,) = decoder("debezium")(None, json.dumps(told).encode(), None)

    assert ("shop", "public", "orders") == (event.database, event.schema, event.table)


def test_vitess_has_keyspaces() -> None:
    source = {"connector": "vitess", "db": "", "keyspace": "shop", "table": "t", "shard": "-80"}
    value = json.dumps({"op": "c", "after": {"id": 1}, "source": source}).encode()
    (event,) = decoder("debezium")(None, value, None)
    written = json.loads(Encoder("debezium", schemas_enable=False)(event).records[0].value or b"")

    assert ("shop", None, "t") == (event.database, event.schema, event.table)
    assert "shop" == written["source"]["keyspace"]


@pytest.mark.parametrize("format", ["auto", "debezium", "debezium-smt"])
def test_mongodb_is_refused_by_its_name(format: str) -> None:
    from headgate.codec.decoder import decode_message

    decode = decoder(format)
    for line in lines("dbz-mongo"):
        for value in (line, b'{"schema":{},"payload":' + line + b"}"):
            (event,) = decode_message(decode, None, value, None, 1_000_000)

            assert event.error is not None
            assert "unsupported-connector" == event.error[0]
            assert "Debezium's MongoDB connector is not supported" in event.error[1]


def test_topics_tell_schemas_apart() -> None:
    def topic(template: str, schema: str | None) -> str | None:
        return Encoder("maxwell", topic=template)(row(schema)).records[0].topic

    assert "cdc.shop.public.orders" == topic("cdc.{database}.{schema}.{table}", "public")
    assert "cdc.public_orders" == topic("cdc.{schema}_{table}", "public")
    assert "cdc.shop_orders" == topic("cdc.{schema}_{table}", None)
    assert "cdc.shop.public.orders" == topic("cdc.{database}.{table}", "public")
    assert "cdc.orders" == topic("cdc.{table}", None)


# Jobs


def selection(tables: Tables = ALL, filters: tuple[Filter, ...] = (), *routes: Route) -> Selection:
    return Selection(Rules(tables, filters, routes=routes))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.*", ["public", "archive"]),
        ("shop.*", ["public", "archive"]),
        ("shop.orders", ["public", "archive"]),
        ("public.orders", ["public"]),
        ("public.*", ["public"]),
        ("shop.public.orders", ["public"]),
        ("shop.*.orders", ["public", "archive"]),
        ("*.archive.*", ["archive"]),
        ("shop.pub*", []),
        ("crm.public.orders", []),
    ],
)
def test_tables_are_selected_by_their_schema(pattern: str, expected: list[str]) -> None:
    events = [row("public"), row("archive")]
    included, excluded = selection(Tables((pattern,))), selection(Tables(exclude=(pattern,)))
    filtered = selection(ALL, (Filter(pattern, ops=("insert",)),))
    deletes = [row(e.schema, op="delete", before=e.after, after=None) for e in events]

    assert expected == [e.schema for e in events if included.wants(e)]
    assert expected == [e.schema for e in events if not excluded.wants(e)]
    assert expected == [e.schema for e in deletes if not filtered.wants(e)]


def test_names_without_a_schema_are_matched_as_ever() -> None:
    assert selection(Tables(("shop.orders",))).wants(row(None))
    assert selection(Tables(("shop.a.b",))).wants(row(None, table="a.b"))
    assert not selection(Tables(("public.orders",))).wants(row(None))


@pytest.mark.parametrize(
    ("table", "to", "expected"),
    [
        # A schema that the pattern does not speak of stays.
        ("shop.(.*)", "lake.$1", [("lake", "public", "orders"), ("lake", "archive", "orders")]),
        (r".*\.orders", "lake.o", [("lake", "public", "o"), ("lake", "archive", "o")]),
        ("public.orders", "lake.o", [("lake", None, "o"), ("shop", "archive", "orders")]),
        (r"shop\.(.*)\.(.*)", "$1.$2", [("public", None, "orders"), ("archive", None, "orders")]),
        ("shop.(.*).(.*)", "lake.$1_$2", [("lake", None, "public_orders")]),
        ("shop.(.*)", "lake.raw.{schema}_$1", [("lake", "raw", "public_orders")]),
        ("shop.(.*)", "lake.{schema}.{table}", [("lake", "public", "orders")]),
    ],
)
def test_routes_know_schemas(table: str, to: str, expected: list[Any]) -> None:
    routed = selection(ALL, (), Route(table, to))
    shaped = [routed.shape(event) for event in (row("public"), row("archive"))]

    assert expected == [(e.database, e.schema, e.table) for e in shaped][: len(expected)]


def test_routes_give_topics_by_schema() -> None:
    def topics(template: str) -> list[str | None]:
        routed = selection(ALL, (), Route("shop.(.*)", topic=template))
        return [routed.topic_of(event) for event in (row("public"), row("archive"), row(None))]

    assert ["t.public.orders", "t.archive.orders", "t.orders"] == topics("t.{table}")
    assert ["public_orders", "archive_orders", "shop_orders"] == topics("{schema}_{table}")
    assert ["t.public.orders", "t.archive.orders", "t.shop.orders"] == topics("t.{schema}.$1")


def test_a_statement_of_a_database_with_schemas_keeps_its_text() -> None:
    routed = selection(ALL, (), Route("shop.(.*)", "lake.$1"))
    ddl = row("public", after=None, ddl='ALTER TABLE "public"."orders" ADD x NUMBER')
    ddl.kind, ddl.op, ddl.format, ddl.extra = "ddl", "alter", "debezium", {"tableChanges": "[]"}
    shaped = routed.shape(ddl)

    assert ("lake", "public", "orders") == (shaped.database, shaped.schema, shaped.table)
    assert (ddl.ddl, None) == (shaped.ddl, shaped.extra)


def test_flink_cdcs_words_take_schemas(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "source: {uri: in, format: debezium}\nsink: {uri: 'out?protocol=debezium'}\n"
        "route:\n"
        "  - {source-table: shop.public.\\.*, sink-table: lake.<>, replace-symbol: <>}\n"
    )
    routed = Selection(load_job(path)).shape(row("public"))

    assert ("lake", None, "orders") == (routed.database, routed.schema, routed.table)


def test_changes_of_two_schemas_are_two_changes() -> None:
    position = {"file": "f", "pos": "1", "row": "0"}
    ids = [
        identity(row(schema, position=position, format="debezium"))
        for schema in ("public", "archive", None)
    ]

    assert 3 == len({*ids} - {None})
    assert "shop.public.orders" == table_name(row("public"))


def test_rows_of_two_schemas_are_no_one_table() -> None:
    events = [row("public"), row("archive", after={"id": "99"}), row(None, after={"id": "7"})]

    def ids(name: str) -> list[str | None]:
        source = Source(pa.record_batch({}), None, None)
        return [image["id"] for image in changes(events, table_of(name), source).images]

    assert ["1"] == ids("public.orders") == ids("shop.public.orders")
    assert ["7"] == ids("shop.orders")
    assert ["1", "99", "7"] == ids("orders")


# Schema files


@pytest.mark.parametrize("name", ["shop.public.orders", "public.orders", "orders"])
def test_a_schema_file_names_tables_in_schemas(name: str) -> None:
    known = Schemas(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY)")
    public, archive, plain = row("public", key=None), row("archive", key=None), row(None, key=None)
    for event in (public, archive, plain):
        known.complete(event)

    assert ("id",) == public.key
    assert ("id",) * (name == "orders") == (archive.key or ())
    assert ("id",) * (name == "orders") == (plain.key or ())


def test_a_changed_table_of_a_schema_is_forgotten_and_its_neighbours_stay() -> None:
    sql = "CREATE TABLE {} (id INT PRIMARY KEY)"
    for name in ("shop.public.orders", "public.orders", "orders"):
        known = Schemas(sql.format(name) + ";" + sql.format("archive.orders"))
        known.learn(Event("ddl", "create", "shop", "orders", schema="public", ddl="CREATE …"))
        assert known.table("shop", "orders", "public") is not None
        known.learn(Event("ddl", "alter", "shop", "orders", schema="public", ddl="ALTER …"))

        assert known.table("shop", "orders", "public") is None
        assert known.table("shop", "orders", "archive") is not None


def test_columns_are_declared_for_a_table_in_a_schema() -> None:
    told = {e.schema: e.after or {} for e in decoded("pg2schemas", columns=COLUMNS)}

    assert ("2024-05-01", "19844") == (told["public"]["d"], told["archive"]["d"])


def test_types_of_other_databases_are_the_nearest_of_mysql() -> None:
    line = json.loads(lines("dbz-pg-schema")[0])
    source = {"type": "struct", "name": "io.debezium.connector.postgresql.Source", "fields": []}
    for field in line["schema"]["fields"]:
        if field.get("field") == "source":
            field.update(source)
        for column in field.get("fields", []) if field["field"] in ("before", "after") else []:
            own = {"__debezium.source.column.type": "INT4", "__debezium.source.column.length": "10"}
            column["parameters"] = column.get("parameters", {}) | own
    decode = decoder("debezium")
    (plain,), (propagated,) = (
        decode(None, value, None)
        for value in (lines("dbz-pg-schema")[0], json.dumps(line).encode())
    )

    assert (plain.after, plain.types) == (propagated.after, propagated.types)
    assert plain.types is not None
    names = {n: plain.types[n].mysql for n in ("amount", "created", "uid", "arr", "hs", "num")}
    assert "decimal(12,4) datetime(6) varchar json json decimal" == " ".join(
        map(str, names.values())
    )
