"""What producers send in forms of their own, and what a schema makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from messages import canal, maxwell
from paths import REPRO

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder
from headgate.codec.schemas import Schemas
from headgate.core.event import Event


def schema(name: str) -> str:
    return (REPRO / f"{name}.sql").read_text()


def decoded(spec: str, name: str, **options: Any) -> list[Event]:
    run = decoder(spec, **options)
    lines = (REPRO / f"{name}.jsonl").read_bytes().splitlines()
    return [event for line in lines for event in run(None, line, None)]


def row(mysql: str, value: str, own: str | None = None, **options: Any) -> Event:
    """A Canal row with a column c of a type, which the message may call another."""
    types = {"id": "int", "c": own or mysql}
    message = canal(data=[{"id": "1", "c": value}], mysqlType=types, sqlType={"id": 4, "c": 4})
    return decoder("canal-json", **options)(None, message, None)[0]


UNIQUE_ROW = {
    "before": None,
    "after": {"a": 1, "b": "x"},
    "op": "c",
    "source": {"connector": "mysql", "name": "s", "db": "live", "table": "t_uniq"},
}


class TestKey:
    def test_a_unique_key_of_the_message_stays_where_there_is_no_primary_key(self) -> None:
        run = decoder("debezium", schema=schema("uniq"))
        (event,) = run(b'{"a":1}', json.dumps(UNIQUE_ROW).encode(), None)

        assert event.key == ("a",)
        (record,) = Encoder("debezium", schemas_enable=False, schema=schema("uniq"))(event).records
        assert record.key == b'{"a":1}'

    def test_a_primary_key_of_the_schema_counts(self) -> None:
        run = decoder("debezium", schema="CREATE TABLE t_uniq (a INT, b CHAR(9) PRIMARY KEY)")

        assert run(b'{"a":1}', json.dumps(UNIQUE_ROW).encode(), None)[0].key == ("b",)

    def test_without_any_key_there_is_none(self) -> None:
        found = decoder("canal-json", schema="CREATE TABLE orders (id INT)")

        assert found(None, canal(pkNames=None), None)[0].key == ()


class TestEnum:
    def test_the_schemas_labels_count(self) -> None:
        (event,) = decoded("canal-json", "canal-label", schema=schema("label"))

        assert event.after == {"id": "1", "e": "😀"}

    def test_labels_that_canal_lost_are_told_apart_by_their_numbers(self) -> None:
        mysql = "enum('a','😀','😁')"
        known = {"schema": f"CREATE TABLE orders (id INT PRIMARY KEY, c {mysql})"}

        assert [(row(mysql, n, "enum('a','?','?')").after or {})["c"] for n in "123"] == [
            "a", "2", "3",
        ]  # fmt: skip
        assert [(row(mysql, n, "enum('a','?','?')", **known).after or {})["c"] for n in "123"] == [
            "a", "😀", "😁",
        ]  # fmt: skip

    def test_index_0_is_not_the_label_of_no_letters(self) -> None:
        mysql = "enum('a','')"
        events = [row(mysql, n) for n in "02"]

        assert [(e.after or {})["c"] for e in events] == ["0", ""]
        for event, index in zip(events, "02"):
            (record,) = Encoder("canal-json")(event).records
            assert json.loads(record.value or b"")["data"][0]["c"] == index
        lost = [Encoder("debezium")(e).lost.count("enum-labels") for e in events]
        assert lost == [1, 0]

    def test_where_no_label_is_empty_index_0_is_the_empty_text(self) -> None:
        assert (row("enum('a','b')", "0").after or {})["c"] == ""


def test_canals_quotes_around_a_databases_name() -> None:
    assert [e.database for e in decoded("canal-json", "canal-db")] == ["live"]


@pytest.mark.parametrize(
    ("sent", "value"), [("5.0", "5.00"), ("-5", "-5.00"), ("5.25", "5.25"), ("5.125", "5.125")]
)
def test_a_decimal_has_the_digits_of_its_column(sent: str, value: str) -> None:
    known = {"schema": "CREATE TABLE orders (id INT PRIMARY KEY, c DECIMAL(9,2))"}

    assert (row("decimal", sent, **known).after or {})["c"] == value
    assert (row("decimal(9,2)", sent).after or {})["c"] == value


def test_maxwells_year_1900_is_0000() -> None:
    message = maxwell(data={"id": 1, "y": 1900})
    known = {"schema": "CREATE TABLE orders (id INT PRIMARY KEY, y YEAR)"}

    for options in (known, {"columns": "y YEAR"}):
        (event,) = decoder("maxwell", **options)(None, message, None)
        assert event.after == {"id": "1", "y": "0000"}


def test_json_that_was_bare_in_the_row_before_only() -> None:
    known = "CREATE TABLE orders (id INT PRIMARY KEY, j JSON)"
    for old, text in ((True, "true"), (1.5, "1.5")):
        message = maxwell(type="update", data={"id": 1, "j": "text"}, old={"j": old})
        (event,) = decoder("maxwell", schema=known)(None, message, None)

        assert [(image or {})["j"] for image in (event.before, event.after)] == [text, '"text"']


class TestMariaDb:
    def test_json_is_longtext_with_a_check(self) -> None:
        events = decoded("maxwell", "maria-json", schema=schema("maria-json"))

        assert [(e.after or {})["j"] for e in events] == ["true", '"123"']
        (record,) = Encoder("maxwell", schema=schema("maria-json"))(events[1]).records
        assert json.loads(record.value or b"")["data"]["j"] == "123"

    def test_a_check_of_another_column_is_none(self) -> None:
        known = Schemas("CREATE TABLE t (a LONGTEXT, b LONGTEXT CHECK (json_valid(`a`)))").table
        table = known(None, "t")

        assert table
        assert [c.mysql for c in table.columns.values()] == ["longtext", "longtext"]

    @pytest.mark.parametrize(
        "spec", ["canal-json", "canal-json:ticdc", "canal-json:oms", "open-protocol", "debezium",
                 "maxwell", "maxwell:oms", "dataworks", "oms-default"]
    )  # fmt: skip
    def test_its_own_types_are_text_everywhere(self, spec: str) -> None:
        known = schema("maria")
        after = {
            "id": "1",
            "u": "123e4567-e89b-12d3-a456-426655440000",
            "i6": "::1",
            "i4": "1.2.3.4",
        }
        event = Event("row", "insert", "live", "t", ("id",), after=after)
        encoder = Encoder(spec, schema=known)
        outcome = encoder(event)
        (record,) = outcome.records
        options = {} if "default" in spec else {"schema": known}
        (again,) = decoder(spec, **options)(record.key, record.value, None)

        assert not {"misfit", "types-guessed"} & set(outcome.lost)
        assert again.after == after


def test_varchar_of_no_character_set_is_binary() -> None:
    table = Schemas("CREATE TABLE t (a VARCHAR(9) CHARACTER SET binary, b TEXT COLLATE binary)")
    found = table.table(None, "t")

    assert found
    assert [c.mysql for c in found.columns.values()] == ["varbinary(9)", "blob"]


class TestOpenProtocol:
    def written(self, name: str, spec: str, sql: str | None, event: int = -1) -> Any:
        events = decoded("auto", name, schema=sql)
        encoder = Encoder(f"open-protocol:{spec}", schema=sql)
        (record,) = encoder(events[event]).records
        return json.loads((record.value or b"")[8:])

    def test_a_column_of_a_plain_key_has_the_flag_of_repeated_values(self) -> None:
        columns = self.written("key", "classic", schema("key"))["u"]

        assert {name: column["f"] for name, column in columns.items()} == {"id": 11, "w": 97}

    def test_ddl_of_cache_and_time_to_live(self) -> None:
        codes = [self.written("ttl", "classic", None, n)["t"] for n in range(3)]

        assert codes == [65, 57, 67]
        no = Event("ddl", "alter", "d", "t", ddl="ALTER TABLE t NOCACHE", commit_ts=1)
        (record,) = Encoder("open-protocol")(no).records
        assert json.loads((record.value or b"")[8:])["t"] == 59

    def test_columns_are_in_the_tables_order_as_far_as_it_is_known(self) -> None:
        sql = "CREATE TABLE shop.customers (name VARCHAR(20), id BIGINT PRIMARY KEY)"
        order = list(self.written("one", "new", sql)["u"])

        assert order == ["name", "id", "email", "points", "avatar", "created_at"]

    def test_set_by_schema_and_by_ddl(self) -> None:
        by_schema = self.written("set", "classic", schema("set"))["u"]
        run, encoder = decoder("maxwell"), Encoder("open-protocol")
        lines = (REPRO / "setddl.jsonl").read_bytes().splitlines()
        found = [encoder(e) for line in lines for e in run(None, line, None)]
        by_ddl = json.loads((found[-1].records[0].value or b"")[8:])["u"]

        assert by_schema["st"]["v"] == by_ddl["st"]["v"] == 5
        assert by_schema["a"]["v"] == by_ddl["a"]["v"] == "0." + "0" * 30
