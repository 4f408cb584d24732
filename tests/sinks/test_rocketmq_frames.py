"""Messages made by column are those that are made one by one."""

from __future__ import annotations

from random import Random
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest

from headgate.arrow.headers import to_text
from headgate.config.uris import parse_sink
from headgate.rocketmq.client import Queue
from headgate.sinks.rocketmq import RocketMQSink
from headgate.sinks.rocketmq.frames import frames, one_by_one, pieces
from headgate.sinks.rocketmq.sender import Sender
from headgate.spark.row_packing import FLAT_SCHEMA

KEYS: list[list[bytes | None]] = [
    [b"7", b"12"],
    [None],
    [b"7", None],
    [b"7", b""],
    [b"\xff", b"7"],
    [b"a\1b", b"7"],
    ["ä".encode(), b"7"],
]


def message(n: int, rng: Random, keys: list[bytes | None], headers: str | None) -> dict[str, Any]:
    return {
        "key": rng.choice(keys),
        "value": b"x" * rng.randrange(2_000),
        "id": f"in-0-{n}",
        "topic": "t",
        "headers": rng.choice([None, headers]),
        "table": rng.choice([None, "orders", "ä", "a\1", "t" * 300]),
    }


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("headers", [None, to_text([("trace", b"1")])])
def test_messages_by_column_are_those_made_one_by_one(
    keys: list[bytes | None], headers: str | None
) -> None:
    rng = Random(1)
    rows = [message(n, rng, keys, headers) for n in range(100)]
    flat = pa.RecordBatch.from_pylist(rows, FLAT_SCHEMA)

    assert one_by_one(flat).equals(frames(flat))
    assert one_by_one(flat.slice(30, 20)).equals(frames(flat.slice(30, 20)))


def test_every_message_goes_to_its_queue_in_order() -> None:
    rng = Random(3)
    queues = {"a": [Queue("b", n) for n in range(3)], "b": [Queue("b", n) for n in range(2)]}
    rows = [
        {
            **message(n, rng, [b"%d" % key for key in range(20)], None),
            "topic": rng.choice("ab"),
            "partition": rng.choice([None, 0, 1, 7]),
            "value": b"%d" % n,
        }
        for n in range(300)
    ]
    flat = pa.RecordBatch.from_pylist(rows, FLAT_SCHEMA)
    sink = parse_sink("rocketmq://h:9876/t?protocol=canal-json").connector
    assert isinstance(sink, RocketMQSink)

    found = {(t, q): messages for t, q, messages in Sender(sink, (), queues).by_queue(flat)}

    expected: dict[tuple[str, int], list[Any]] = {}
    for row, made in zip(rows, one_by_one(flat).to_pylist()):
        number = crc32(row["key"]) if row["partition"] is None else row["partition"]
        place = row["topic"], number % len(queues[row["topic"]])
        expected.setdefault(place, []).append(made)
    assert 5 == len(expected)
    assert expected == {place: messages.to_pylist() for place, messages in found.items()}


def test_pieces_are_all_the_bytes_and_no_message_is_cut() -> None:
    rng = Random(2)
    sizes = [rng.randrange(1, 300) for _ in range(500)]
    data = pa.array([bytes([n % 251]) * size for n, size in enumerate(sizes)])

    found = [bytes(piece) for piece in pieces(data, 200)]

    assert b"".join(data.to_pylist()) == b"".join(found)
    ends = {sum(sizes[:n]) for n in range(len(sizes) + 1)}
    at = 0
    for piece in found:
        at += len(piece)
        assert at in ends
        assert len(piece) <= 200 or len(piece) in sizes
