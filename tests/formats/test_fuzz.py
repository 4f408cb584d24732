"""The fuzz contract of all formats: whatever the bytes, sound events or one `invalid` event.

Random bytes; golden messages with bytes changed; any JSON where a format has its members (a new
format adds its own to hostile_messages.ATTACKS); golden messages with members swapped, dropped and
broken, which are read, written and read again. Nothing may raise, no defect may hide behind
`internal-error`, and what is written can be read. A failure prints its seed;
`HEADGATE_FUZZ=<number>` runs so many rounds of the last kind per format.
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
from effort import examples
from hostile_messages import ATTACKS, MIXED, Attempt, assert_sound
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder
from headgate.core.errors import INTERNAL_ERROR
from headgate.core.event import Event
from headgate.core.limits import MAX_MESSAGE_BYTES
from headgate.formats import MODULES

ROUNDS = int(os.environ.get("HEADGATE_FUZZ", examples(1_000)))
DECODERS = {name: decoder(name) for name in [*MODULES, "auto"]}
SMALL = [f for f in FOLDERS if 0 < len(content(f, "value") or b"") < 5_000]
ODD: list[Any] = [
    None, True, False, 0, -1, 2**63, -(2**63), 10**40, 1.5, "", "null", "NaN", "1e999", "9" * 5_000,
    "2024-02-30", "-838:59:59.5", "AAEC", "\\x00", "\ud7ff\ue000", "__debezium_unavailable_value",
    [], {}, [None], {"": None}, [{"id": "1"}], {"type": "struct", "fields": None},
]  # fmt: skip


def read(decode: Any, key: bytes | None, value: bytes | None, topic: Any) -> list[Event]:
    """The events of a message, which are sound and tell of no defect."""
    events = decode_message(decode, key, value, topic, MAX_MESSAGE_BYTES)
    assert_sound(events)
    assert INTERNAL_ERROR not in {event.error[0] for event in events if event.error}
    return events


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=examples(100), deadline=None)
@given(value=st.none() | st.binary(max_size=200), key=st.none() | st.binary(max_size=60))
def test_random_bytes(name: str, value: bytes | None, key: bytes | None) -> None:
    read(DECODERS[name], key, value, "a.b.c")


@pytest.mark.parametrize("format", MODULES)
@settings(max_examples=examples(250), deadline=None)
@given(data=st.data())
def test_golden_messages_with_changed_bytes(format: str, data: st.DataObject) -> None:
    folder = data.draw(st.sampled_from([f for f in SMALL if f.parent.name == format]))
    parts = {n: bytearray(content(folder, n) or b"") for n in ("key", "value")}
    for _ in range(data.draw(st.integers(1, 4))):
        part = parts[data.draw(st.sampled_from([n for n in parts if parts[n]] or ["value"]))]
        at = data.draw(st.integers(0, max(len(part) - 1, 0)))
        if part and data.draw(st.booleans()):
            part[at] ^= 1 << data.draw(st.integers(0, 7))
        else:
            part[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    for name in (format, "auto"):
        read(DECODERS[name], bytes(parts["key"]) or None, bytes(parts["value"]), "a.b.c")


@pytest.mark.parametrize("name", ATTACKS)
def test_any_json_in_the_members_of_a_format(name: str) -> None:
    @settings(max_examples=examples(ATTACKS[name].examples), deadline=None)
    @given(ATTACKS[name].attempts)
    def survives(attempt: Attempt) -> None:
        read(decoder(attempt.spec, **dict(attempt.options)), attempt.key, attempt.value, None)

    survives()


def test_every_format_is_attacked() -> None:
    assert set(MODULES) == {name.partition(" ")[0] for name in ATTACKS}


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=examples(200), deadline=None)
@given(value=MIXED)
def test_members_of_all_formats_in_one_message(name: str, value: bytes) -> None:
    read(DECODERS[name], None, value, "a.b.c")


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
        key, message, options_of = random.choice(given)
        value = json.dumps(broken(random, message, random.choice(given)[1])).encode()
        case = json.dumps(options_of, sort_keys=True)
        if case not in decoders:
            decoders[case] = decoder(
                options_of.get("format", format), **options_of.get("options", {})
            )
        read(auto, key, value, "a.b.c")
        events = read(decoders[case], key, value, options_of.get("topic"))
        if sql := schema_for(random, events):
            options = {**options_of.get("options", {}), "schema": sql}
            events += read(decoder(options_of.get("format", format), **options), key, value, None)
        for event in events:
            spec, encoder, decode = random.choice(encoders)
            if sql and random.random() < 0.2:
                encoder = Encoder(spec, schema=sql)
            outcome = encoder(event)
            assert outcome.error is None or outcome.error[0] != INTERNAL_ERROR, (number, spec)
            for record in outcome.records:
                read(decode, record.key, record.value, "a.b.c")
