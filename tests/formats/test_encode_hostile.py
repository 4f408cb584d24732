"""Whatever the event, an encoder gives messages, losses or an error; it never raises."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgspec
import pytest
from cases import READABLE, content, decoded
from dialects import SPECS
from effort import one_in

from headgate.codec.decoder import decode_message, decoder
from headgate.codec.encoder import Encoder
from headgate.codec.packing import packed
from headgate.core.errors import INTERNAL_ERROR
from headgate.core.event import ColumnType, Event
from headgate.core.limits import MAX_MESSAGE_BYTES

TEXTS = [
    "", "x", "-", "1e999999999", "1,\"x\":2", "\n", "\u2028", "0x10", "٣", "1_000", "+5", "007",
    "-0", "NaN", "Infinity", "9" * 400, "2024-02-30", "0000-00-00 00:00:00", "24:00:00", "\ud7ff",
    "a,b", "AP8=", "AP8", "{", "null", "true", "\x00",
]  # fmt: skip
TYPES = [
    "int", "bigint unsigned", "decimal(10,2)", "decimal(9999999,99999)", "decimal", "float",
    "double", "bit(1)", "bit(9999999)", "bit", "year", "date", "time(6)", "datetime(3)",
    "timestamp", "json", "enum('a','b')", "enum", "set('a','b')", "set", "binary(4)",
    "varbinary(2)", "blob", "text", "point", "vector(3)", "", "nonsense(", "enum('a", "int(", None,
]  # fmt: skip
OPS = ["insert", "update", "delete", "snapshot", "truncate", "begin", "alter", "create", "?", None]
KINDS = [
    "row",
    "row",
    "row",
    "row",
    "ddl",
    "statement",
    "watermark",
    "heartbeat",
    "marker",
    "tombstone",
]
NAMES = [
    "id",
    "a",
    "__deleted",
    "__light_type",
    "pk.id",
    "",
    "a\nb",
    'q"',
    "日本",
    "ID",
    "c1",
    "c2",
]
OWN = ["rid", "ptn", "id", "type", "sql", "commit", "xid", "primary_key", "def", "old", "fields",
       "key", "nested", "numbers", "booleans", "onlyHandleKey", "push_ts", "ts_ns", "ddlType",
       "tableChanges", "transaction.id", "snapshot", "query", "tenant", "uuid",
       "version"]  # fmt: skip


def any_event(seed: int) -> Event:
    """An event of arbitrary parts, as a user's own job might build it."""
    r = Random(seed)

    def image() -> dict[str, str | None] | None:
        if r.random() < 0.15:
            return None
        return {n: r.choice([None, *TEXTS]) for n in r.sample(NAMES, r.randrange(6))}

    def texts() -> dict[str, str] | None:
        return (
            {n: r.choice(TEXTS) for n in r.sample(OWN, r.randrange(6))}
            if r.random() < 0.6
            else None
        )

    def moment() -> int | None:
        return r.choice(
            [None, 0, 1, -(2**62), 1_714_550_482_436_123, 2**62, 253_402_300_799_999_999]
        )

    types = {
        n: ColumnType(r.choice(TYPES), r.choice([None, 4, 93]), r.choice([None, 0, 11, 65, 255]))
        for n in r.sample(NAMES, r.randrange(8))
    }
    name, _, dialect = r.choice([*SPECS, ":"]).partition(":")
    return Event(
        r.choice(KINDS), r.choice(OPS), r.choice([None, "", "shop", "a`b", "x.y"]),
        r.choice([None, "", "t", 't"\n', "a.b"]),
        r.choice([None, (), ("id",), ("id", "a"), ("gone",)]),
        image(), image(), r.choice([None, types]),
        r.choice([None, "", "ALTER TABLE t ADD x INT", "("]),
        r.choice([None, 0, 1, -1, 2**63 - 1, 449459121667702785]), moment(), moment(),
        texts(), name or None, dialect or None, texts(),
    )  # fmt: skip


@pytest.mark.parametrize("spec", SPECS)
def test_no_event_makes_an_encoder_raise(spec: str) -> None:
    encoder = Encoder(spec, partition_num=3, topic="{database}.{table}")
    decode = decoder(spec)
    for seed in range(1_500):
        check(encoder, decode, spec, any_event(seed))


@pytest.mark.parametrize("spec", one_in(4, SPECS))
def test_every_case_can_be_written_in_every_format(spec: str) -> None:
    encoder = Encoder(spec)
    decode = decoder(spec)
    for folder in READABLE:
        for event in decoded(folder, content(folder, "key"), content(folder, "value")):
            check(encoder, decode, spec, event)


def check(encoder: Encoder, decode: Any, spec: str, event: Event) -> None:
    """Messages are whole: JSON on one line, or frames; and they can be read again."""
    kept = msgspec.structs.replace(event)
    outcome = encoder(event)
    assert kept == event, "the event was changed"
    assert outcome.error is None or outcome.error[0] != INTERNAL_ERROR, event
    records, losses = packed(encoder, [event], [outcome])
    assert len(records) == len(losses)
    for record in records:
        if record.value is None:
            continue
        if not encoder.encoding.binary:
            json.loads(record.value)
            assert b"\n" not in record.value
        if {"misfit", "incomplete"} & set(outcome.lost):
            continue  # a value that is none of its type, or a lacking column, may be refused
        found = decode_message(decode, record.key, record.value, None, MAX_MESSAGE_BYTES)
        assert [] == [e.error for e in found if e.error], (spec, event, record)
