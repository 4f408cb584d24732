"""Members of Debezium's envelope and of its heartbeats."""

from __future__ import annotations

from typing import Any

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.event_lines import line
from headgate.core.event import Event
from headgate.core.limits import MAX_MESSAGE_BYTES


def events(spec: str, value: bytes | None, key: bytes | None = None, **options: Any) -> list[Event]:
    found = decode_message(decoder(spec, **options), key, value, None, MAX_MESSAGE_BYTES)
    for event in found:
        line(event)  # what cannot be printed is as bad as what cannot be decoded
    return found


def code(event: Event) -> str | None:
    return event.error[0] if event.error else None


def test_a_sequence_with_a_fraction_keeps_its_text() -> None:
    message = b'{"op":"c","source":{"sequence":[1.50, "x"]},"after":{"a":1}}'

    assert {"sequence": '[1.50, "x"]'} == events("debezium", message)[0].position


def test_a_heartbeat_whose_key_is_not_utf8_is_invalid() -> None:
    (event,) = events("debezium", b'{"ts_ms":1}', b'{"serverName":["\xff"]}')

    assert "invalid-utf8" == code(event)


def test_renaming_a_column_is_no_rename_of_the_table() -> None:
    ddl = b'{"source":{"connector":"mysql"},"databaseName":"d","ddl":"ALTER TABLE t RENAME   %s"}'

    assert "alter" == events("debezium", ddl % b"COLUMN a TO b")[0].op
    assert "rename" == events("debezium", ddl % b"TO b")[0].op
