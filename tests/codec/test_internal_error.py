"""A defect in a codec costs the message that meets it, loudly, and not the stream."""

from __future__ import annotations

import json
import logging
from typing import Any

import pyarrow as pa
import pytest
from messages import canal
from paths import REPRO

from headgate.arrow.events import decode_columns
from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder
from headgate.core import errors
from headgate.core.event import Event
from headgate.formats import MODULES, load

DIGITS = (REPRO / "digits.jsonl").read_bytes().splitlines()
ENCODINGS = [f"{name}:{dialect}" for name in MODULES for dialect in load(name).dialects]


@pytest.fixture(autouse=True)
def unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_logged", set())


def broken(*_: Any) -> Any:
    raise KeyError("a secret of the message")


def test_more_digits_than_python_reads_are_a_misfit() -> None:
    read = decoder("canal-json")
    events = [e for line in DIGITS for e in decode_message(read, None, line, None, 10**6)]
    outcomes = [Encoder("debezium")(event) for event in events]
    assert [1, 1, 1] == [len(outcome.records) for outcome in outcomes]
    assert ["misfit" in outcome.lost for outcome in outcomes] == [False, True, False]
    written = json.loads(outcomes[1].records[0].value or b"")["payload"]["after"]["a"]
    assert events[1].after is not None
    assert events[1].after["a"] == written


@pytest.mark.parametrize("to", ENCODINGS)
def test_long_numbers_are_no_defect(to: str) -> None:
    digits = "9" * 5_000
    encoder, read = Encoder(to), decoder("canal-json")
    kinds = (
        "bigint", "bigint unsigned", "decimal(10,2)", "double", "bit(8)", "year", "time(3)",
        "datetime(6)", "timestamp", "enum('a','b')", "set('a','b')", "tinyint(1)", "json",
    )  # fmt: skip
    for kind in kinds:
        for text in (digits, f"-{digits}", f"1.{digits}", f"1e{digits}", f"{digits}:00:00"):
            message = canal(data=[{"id": "1", "a": text}], mysqlType={"id": "int", "a": kind})
            (event,) = read(None, message, None)
            encoder.encoded(event, None)  # which raises what it meets


def test_a_defect_in_a_decoder_is_an_invalid_event(caplog: pytest.LogCaptureFixture) -> None:
    batch = pa.record_batch({"value": pa.array([b"{}", b"[]"], pa.binary())})
    with caplog.at_level(logging.ERROR, "headgate"):
        events, counts = decode_columns(batch, broken, 100)
    assert [1, 1] == counts
    assert [b"{}", b"[]"] == [event.raw for event in events]
    for event in events:
        assert event.error is not None
        code, said = event.error
        assert ("invalid", "internal-error") == (event.kind, code)
        assert "KeyError in Headgate itself, at codec/decoder.py:" in said
        assert "secret" not in said
    (record,) = caplog.records  # once, though two messages met it
    assert "secret" not in record.getMessage()


def test_a_defect_in_an_encoder_is_its_outcome(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = Encoder("maxwell")
    monkeypatch.setattr(encoder, "encode", broken)
    with caplog.at_level(logging.ERROR, "headgate"):
        outcomes = [encoder(Event("row", "insert", "d", "t", after={"id": n})) for n in "12"]
    assert ["internal-error"] * 2 == [o.error[0] for o in outcomes if o.error]
    assert 1 == len(caplog.records)


def test_a_machine_without_memory_is_no_fault_of_the_message() -> None:
    def exhausted(*_: Any) -> list[Event]:
        raise MemoryError

    with pytest.raises(MemoryError):
        decode_message(exhausted, None, b"{}", None, 100)
