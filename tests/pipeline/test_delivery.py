"""What a sink needs of its messages: their tables, row keys, and headers that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.arrow.headers import to_text
from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.codec.encoder import Encoder
from headgate.config.job import Sink
from headgate.core.connectors import Address
from headgate.core.event import Event
from headgate.pipeline.change import Change, MessageBatch
from headgate.pipeline.delivery import DeliveryCheck, Fitting
from headgate.sinks.base import MessageSink, Target, Writer

ROW = Event("row", "insert", "shop", "orders", ("id",), after={"id": "7", "note": "x"})


@dataclass(frozen=True)
class ParticularSink(MessageSink):
    """A sink that needs more of a message, and takes less, than Kafka."""

    name = "particular"
    summary = ""
    promise = "at-least-once"
    takes_packed_rows = True
    uses_row_keys = True

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        return cls()

    @property
    def max_header_bytes(self) -> int | None:
        return 100

    def open(self, spark: SparkSession, target: Target) -> Writer:
        raise NotImplementedError


def fitted(format: str, event: Event, **options: Any) -> Any:
    sink = Sink(ParticularSink(), "particular:", format)
    encoder = Encoder(format, **options)
    outcome = encoder(event)
    Fitting(sink, encoder)(event, outcome)
    return outcome


def change(event: Event, headers: Mapping[str, bytes]) -> Change:
    message = {"value": b"", "headers": to_text(headers.items())}
    rows = pa.RecordBatch.from_pylist([message], MESSAGE_SCHEMA)
    return Change(event, MessageBatch(("t", 0), rows), 0, None, "t-0-0")


def test_a_message_without_a_key_gets_the_rows() -> None:
    (record,) = fitted("canal-json", ROW).records

    assert (b"7", "orders") == (record.key, record.table)


def test_the_formats_own_key_stays() -> None:
    (record,) = fitted("debezium", ROW, schemas_enable=False).records

    assert (b'{"id":"7"}', "orders") == (record.key, record.table)


@pytest.mark.parametrize(
    "event",
    [
        Event("row", "insert", "shop", "orders", after={"id": "7"}),
        Event("row", "insert", "shop", "orders", ("id",), after={"note": "x"}),
        Event("ddl", "create", "shop", "orders", ddl="CREATE TABLE orders (id INT)"),
    ],
)
def test_where_no_key_is_known_there_is_none(event: Event) -> None:
    assert [None] == [record.key for record in fitted("canal-json", event).records]


def test_headers_that_the_sink_does_not_take_are_rejected() -> None:
    check = DeliveryCheck(Sink(ParticularSink(), "particular:", "canal-json"), {}, False)
    outcome = fitted("canal-json", ROW)

    assert check(change(ROW, {"a": b"1"}), outcome) is None
    for many in ({"a": b"1" * 100}, dict.fromkeys("abcdef", b"")):
        error = check(change(ROW, many), outcome)
        assert error is not None
        assert "too-large" == error[0]
        assert "100 bytes" in error[1]
