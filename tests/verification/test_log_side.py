"""A log of messages as tables: decoded, deduplicated, routed and folded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from job_runs import uri
from kafka_broker import Broker
from messages import canal, maxwell
from pyspark.sql import SparkSession
from ticdc_messages import ddl, ticdc

from headgate.config.reader import load_job
from headgate.core.errors import UsageError
from headgate.spark.storage import Storage
from headgate.verification.log import LogSide
from headgate.verification.log_reading import EVERYTHING, Until
from headgate.verification.sides import LogMessage

Open = Callable[..., LogSide]


@pytest.fixture
def log(tmp_path: Path, spark: SparkSession) -> Iterator[Open]:
    """Opens the log of some messages, which are in files in that order."""
    opened: list[LogSide] = []
    (tmp_path / "in").mkdir()

    def make(
        *messages: bytes, source: str = "", until: Until = EVERYTHING, **sections: Any
    ) -> LogSide:
        for number, message in enumerate(messages):
            (tmp_path / "in" / f"{number:04d}.jsonl").write_bytes(message + b"\n")
        job = {
            "source": {"uri": source or f"file://{tmp_path}/in"},
            "sink": {"uri": f"file://{tmp_path}/out?protocol=maxwell&topic=t"},
            "pipeline": {"name": "t", "checkpoint": f"{tmp_path}/state"},
            **sections,
        }
        path = tmp_path / "job.yaml"
        path.write_text(json.dumps(job))
        folder = Storage(str(tmp_path / f"verify-{len(opened)}"))
        opened.append(LogSide(spark, load_job(str(path), {}), folder, until))
        return opened[-1]

    yield make
    for each in opened:
        each.close()
        assert not Path(each.folder.root).exists()


def rows(side: LogSide, table: str = "shop.orders") -> list[dict[str, Any]]:
    found = side.table(table)
    assert found is not None
    return sorted((row.asDict() for row in found.rows.collect()), key=str)


def order(n: int, ts: int) -> dict[str, Any]:
    return {"id": n, "amount": Decimal(f"{ts}.10"), "note": None}


def test_rows_are_those_of_the_last_changes_in_their_types(log: Open) -> None:
    side = log(ticdc(1, 1), ticdc(2, 2), ticdc(1, 3, "UPDATE"), ticdc(2, 4, "DELETE"), ticdc(3, 5))

    assert ["shop.orders"] == side.tables()
    assert [order(1, 3), order(3, 5)] == rows(side)
    found = side.table("shop.orders")
    assert found is not None
    assert ("id",) == found.key
    assert [("id", "bigint"), ("amount", "decimal(12,2)"), ("note", "string")] == found.rows.dtypes
    assert None is side.table("shop.other")


def test_repeats_and_disorder_change_nothing(log: Open) -> None:
    changes = [ticdc(1, 1), ticdc(1, 2, "UPDATE"), ticdc(2, 3), ticdc(2, 4, "DELETE")]

    side = log(changes[3], changes[1], changes[0], changes[2], changes[1], changes[3])

    assert [order(1, 2)] == rows(side)


def test_a_key_that_changes_moves_its_row(log: Open) -> None:
    row = {"id": "1", "amount": "2.10", "note": None}
    moved = ticdc(2, 2, "UPDATE", data=[{**row, "id": "2"}], old=[{"id": "1"}])

    assert [order(2, 2)] == rows(log(ticdc(1, 1), moved))


def test_statements_change_rows_that_were_there_before(log: Open) -> None:
    side = log(
        ticdc(1, 1),
        ddl(2, "ALTER TABLE orders ADD COLUMN n INT NOT NULL DEFAULT 7"),
        ddl(3, "ALTER TABLE orders RENAME COLUMN note TO remark"),
        ddl(4, "RENAME TABLE orders TO purchases", kind="RENAME"),
    )

    assert ["shop.purchases"] == side.tables()
    row = {"id": 1, "amount": Decimal("1.10"), "remark": None, "n": 7}
    assert [row] == rows(side, "shop.purchases")


def test_what_was_there_before_a_truncate_is_gone(log: Open) -> None:
    truncate = ddl(2, "TRUNCATE TABLE orders", kind="TRUNCATE")

    assert [order(2, 3)] == rows(log(ticdc(1, 1), truncate, ticdc(2, 3)))


def test_a_table_that_was_emptied_has_no_rows_and_a_dropped_one_is_no_table(log: Open) -> None:
    drop = ddl(4, "DROP TABLE other", kind="ERASE", table="other")
    truncate = ddl(2, "TRUNCATE TABLE orders", kind="TRUNCATE")
    side = log(ticdc(1, 1), truncate, ticdc(1, 3, table="other"), drop)

    assert ["shop.orders"] == side.tables()
    assert [] == rows(side)


def test_equal_rows_of_a_table_without_a_key_are_all_there(log: Open) -> None:
    def row(op: str, ts: int, a: str, old: str | None = None) -> bytes:
        # Commits tell two equal rows apart.
        return ticdc(
            1, ts, op, pkNames=None, mysqlType={"a": "varchar(9)"}, sqlType={"a": 12},
            data=[{"a": a}], old=None if old is None else [{"a": old}],
        )  # fmt: skip

    side = log(row("INSERT", 1, "x"), row("INSERT", 2, "x"), row("INSERT", 3, "y"),
               row("UPDATE", 4, "z", "y"), row("DELETE", 5, "x"))  # fmt: skip

    assert [{"a": "x"}, {"a": "z"}] == rows(side)
    found = side.table("shop.orders")
    assert found is not None
    assert () == found.key


def test_without_types_values_are_texts_and_the_report_says_so(log: Open) -> None:
    side = log(maxwell(primary_key_columns=["id"]))

    found = side.table("shop.orders")

    assert found is not None
    assert ["string", "string"] == [type_ for _, type_ in found.rows.dtypes]
    assert any("no type is known of: id, note" in note for note in found.notes)


def test_tables_are_selected_and_renamed_as_the_job_does_it(log: Open) -> None:
    side = log(
        ticdc(1, 1),
        ticdc(1, 2, table="secret"),
        tables={"exclude": ["shop.secret"]},
        route=[{"table": "shop.(.*)", "to": "lake.$1"}],
    )

    assert ["lake.orders"] == side.tables()
    assert [order(1, 1)] == rows(side, "lake.orders")


def test_dead_letters_are_noted(log: Open) -> None:
    side = log(ticdc(1, 1), canal(data="x"))

    assert [order(1, 1)] == rows(side)
    assert 1 == side.counts.dead_letters


def test_the_last_messages_of_a_key_are_found(log: Open) -> None:
    side = log(ticdc(1, 1), ticdc(2, 2), ticdc(1, 3, "UPDATE"), ticdc(1, 4, "DELETE"))
    side.tables()

    found = side.messages("shop.orders", [("1",), ("9",)], 2)

    places = [LogMessage(op, "in", None, None, place) for op, place in
              (("delete", "0003.jsonl:0"), ("update", "0002.jsonl:0"))]  # fmt: skip
    assert {("1",): places} == found


def test_standard_input_cannot_be_read_again(log: Open) -> None:
    with pytest.raises(UsageError, match="cannot be read again"):
        log(source="stdin:").tables()


def test_a_log_ends_where_the_job_was(log: Open, broker: Broker, spark: SparkSession) -> None:
    topic = broker.create_topic("verify-ends", 2)
    broker.produce(topic, [
        (None, ticdc(1, 1), 0, None), (None, ticdc(1, 3, "UPDATE"), 0, None),
        (None, ticdc(2, 2), 1, None), (None, ticdc(3, 4), 1, None),
    ])  # fmt: skip

    side = log(source=uri(broker, topic), until=Until({(topic, 0): 1, (topic, 1): 2}))

    assert [order(1, 1), order(2, 2), order(3, 4)] == rows(side)
    with closing(log(source=uri(broker, topic))) as whole:
        assert [order(1, 3), order(2, 2), order(3, 4)] == rows(whole)
        [message] = whole.messages("shop.orders", [("3",)], 5)[("3",)]
    assert LogMessage("insert", topic, 1, 1) == message
