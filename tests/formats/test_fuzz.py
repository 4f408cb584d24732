"""Golden messages with parts swapped, dropped and broken: read, written, and read again.

Nothing may raise, no defect may hide behind `internal-error`, and what is written can be read. A
failure prints its seed; `HEADGATE_FUZZ=<number>` runs so many rounds per format.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from cases import FOLDERS, content, settings_of
from dialects import SPECS

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder
from headgate.core.errors import INTERNAL_ERROR
from headgate.core.event import Event
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.formats import MODULES

ROUNDS = int(os.environ.get("HEADGATE_FUZZ", "1000"))
ODD: list[Any] = [
    None, True, False, 0, -1, 2**63, -(2**63), 10**40, 1.5, "", "null", "NaN", "1e999", "9" * 5_000,
    "2024-02-30", "-838:59:59.5", "AAEC", "\\x00", "\ud7ff\ue000", "__debezium_unavailable_value",
    [], {}, [None], {"": None}, [{"id": "1"}], {"type": "struct", "fields": None},
]  # fmt: skip


def seeds(format: str) -> list[tuple[bytes | None, Any, dict[str, Any]]]:
    """The JSON messages of a format's golden cases."""
    found = []
    for folder in FOLDERS:
        value = content(folder, "value")
        if folder.parent.name == format and value and value[:1] == b"{" and len(value) < 20_000:
            try:
                found.append((content(folder, "key"), json.loads(value), settings_of(folder)))
            except ValueError:
                continue
    return found


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and the name or index of each of its members."""
    if isinstance(value, dict | list):
        for name in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, name
            yield from places(value[name])


def broken(random: Random, message: Any, other: Any) -> Any:
    """A message with some members dropped, replaced by odd values or by another message's."""
    message = copied(message)
    for _ in range(random.randint(1, 4)):
        found = list(places(message))
        if not found:
            break
        holder, name = random.choice(found)
        if isinstance(name, int) and name >= len(holder):
            continue
        action = random.random()
        if action < 0.2:
            del holder[name]
        elif action < 0.7:
            holder[name] = copied(random.choice(ODD))
        else:
            from_, its = random.choice(list(places(other)) or [({"": 1}, "")])
            holder[name] = copied(from_[its])
    return message


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def read(decode: Any, key: bytes | None, value: bytes | None, topic: Any) -> list[Event]:
    found = decode_message(decode, key, value, topic, MAX_MESSAGE_BYTES)
    assert found
    assert INTERNAL_ERROR not in {event.error[0] for event in found if event.error}
    return found


TYPES = [
    "tinyint(1)", "int", "bigint unsigned", "decimal(12,2)", "float", "double", "bit(9)", "year",
    "date", "time(3)", "datetime(6)", "timestamp(3)", "char(3)", "text", "binary(4)", "blob",
    "json", "enum('a','b')", "set('x','y')", "point", "varchar(9) character set binary",
]  # fmt: skip


def schema_for(random: Random, events: list[Event]) -> str | None:
    """A table that the rows of some events could be of, its types chosen at random."""
    rows = [event for event in events if event.kind == "row" and event.table]
    images = [image for event in rows for image in (event.after, event.before) if image]
    names = sorted({name for image in images for name in image if name.strip()}, key=str.lower)
    unique = {name.lower(): name for name in names if len(name) <= 64}
    if not unique:
        return None
    columns = ", ".join(f"{quoted(name)} {random.choice(TYPES)}" for name in unique.values())
    where = [quoted(name) for name in (rows[0].database, rows[0].table) if name]
    return f"CREATE TABLE {'.'.join(where)} ({columns})"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize("format", [name for name in MODULES if name != "open-protocol"])
def test_broken_messages_are_read_and_written_without_a_defect(format: str) -> None:
    given = seeds(format)
    encoders = [(spec, Encoder(spec), decoder(spec)) for spec in SPECS]
    auto, decoders = decoder("auto"), {}
    for number in range(ROUNDS):
        random = Random(f"{format}-{number}")
        key, message, settings = random.choice(given)
        value = json.dumps(broken(random, message, random.choice(given)[1])).encode()
        told = json.dumps(settings, sort_keys=True)
        if told not in decoders:
            decoders[told] = decoder(settings.get("format", format), **settings.get("options", {}))
        read(auto, key, value, "a.b.c")
        events = read(decoders[told], key, value, settings.get("topic"))
        if sql := schema_for(random, events):
            options = {**settings.get("options", {}), "schema": sql}
            events += read(decoder(settings.get("format", format), **options), key, value, None)
        for event in events:
            spec, encoder, decode = random.choice(encoders)
            if sql and random.random() < 0.2:
                encoder = Encoder(spec, schema=sql)
            outcome = encoder(event)
            assert outcome.error is None or outcome.error[0] != INTERNAL_ERROR, (number, spec)
            for record in outcome.records:
                read(decode, record.key, record.value, "a.b.c")
