"""Messages in the layout of a broker's store, without a broker."""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64decode
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from headgate.arrow.messages import KAFKA_SCHEMA
from headgate.core.errors import HeadgateError
from headgate.core.limits import BATCH_BYTES
from headgate.rocketmq.layout import properties
from headgate.sources.rocketmq.store_layout import (
    BROKER_V6,
    COMPRESSED,
    INNER_BATCH,
    INTERNAL,
    LZ4,
    MAGIC,
    MAGIC_2,
    PRODUCER_V6,
    ZSTD,
    Malformed,
    as_columns,
    key_and_headers,
    messages_in,
)

LIMIT = 1 << 20


def stored(
    body: bytes, flags: int = 0, magic: int = MAGIC, properties: bytes = b"", offset: int = 41
) -> bytes:
    """A message as RocketMQ's documentation of its store draws it."""
    producer = bytes(16 if flags & PRODUCER_V6 else 4) + struct.pack(">i", 1)
    broker = bytes(16 if flags & BROKER_V6 else 4) + struct.pack(">i", 2)
    topic = b"\x03cdc" if magic == MAGIC else b"\x00\x03cdc"
    rest = struct.pack(">iiiiqqiq", magic, 0, 1, 0, offset, 7_000, flags, 1_700_000_000_123)
    rest += producer + struct.pack(">q", 1_700_000_000_456) + broker + struct.pack(">iq", 0, 0)
    rest += struct.pack(">i", len(body)) + body + topic
    rest += struct.pack(">h", len(properties)) + properties
    return struct.pack(">i", len(rest) + 4) + rest


def columns(data: bytes, most: int = LIMIT) -> dict[str, list[Any]]:
    """The columns that an answer of a broker becomes."""
    batches = as_columns(messages_in(data), "cdc", 3, most)
    return pa.Table.from_batches(batches, KAFKA_SCHEMA).to_pydict()


@pytest.mark.parametrize("magic", [MAGIC, MAGIC_2])
@pytest.mark.parametrize("flags", [0, PRODUCER_V6, BROKER_V6, PRODUCER_V6 | BROKER_V6])
def test_messages_of_both_layouts_and_addresses_are_read(flags: int, magic: int) -> None:
    data = stored(b"one", flags, magic, b"KEYS\x01b\x02") + stored(b"", 0, offset=42)
    data += stored(b"three", flags, magic, offset=43)
    found = columns(data)

    assert [b"one", b"", b"three"] == found["value"]
    assert [41, 42, 43] == found["offset"]
    assert [b"b", None, None] == found["key"]


@pytest.mark.parametrize("kind", [0, LZ4, ZSTD, 0x300])
def test_bodies_are_unpacked_within_the_limit_and_else_left_as_they_are(kind: int) -> None:
    plain = b"x" * 5_000
    codec = {LZ4: "lz4", ZSTD: "zstd"}.get(kind)
    if codec is None:
        packed = zlib.compress(plain)
    else:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(plain)
        packed = sink.getvalue().to_pybytes()
    flags = COMPRESSED | kind

    def body(data: bytes, most: int) -> bytes:
        before, found, after = columns(stored(b"1") + stored(data, flags) + stored(b"3"), most)[
            "value"
        ]
        assert (b"1", b"3") == (before, after)
        return found

    assert plain == body(packed, 5_000)
    assert packed == body(packed, 4_999)
    assert b"\x00damaged" == body(b"\x00damaged", 5_000)


def test_no_batch_grows_without_limit_when_bodies_are_unpacked() -> None:
    packed = zlib.compress(bytes(BATCH_BYTES // 3))
    data = b"".join(stored(packed, COMPRESSED, offset=n) for n in range(7))
    batches = list(as_columns(messages_in(data), "cdc", 3, BATCH_BYTES))

    assert [[0, 1, 2, 3], [4, 5, 6]] == [batch["offset"].to_pylist() for batch in batches]


def test_every_answer_that_is_cut_short_is_refused() -> None:
    data = stored(b"body", properties=b"a\x01b\x02")

    for length in range(1, len(data)):
        with pytest.raises(Malformed):
            messages_in(data[:length])


@pytest.mark.parametrize("wrong", [0x7F, 0xFF])
@pytest.mark.parametrize("at", [0, 4, 84, 92, 96])
def test_an_answer_with_wrong_lengths_is_refused(at: int, wrong: int) -> None:
    """Those of the message, the body, the topic and the properties, and what is in front of it."""
    data = stored(b"body", properties=b"a\x01b\x02")

    with pytest.raises(Malformed):
        messages_in(data[:at] + bytes([wrong]) * 4 + data[at + 4 :])


def test_a_topic_that_keeps_batches_as_one_is_refused() -> None:
    with pytest.raises(HeadgateError, match="SimpleCQ"):
        messages_in(stored(b"", INNER_BATCH))


def read(properties: bytes) -> tuple[bytes | None, tuple[tuple[str, bytes | None], ...]]:
    """The key of a message, and its headers."""
    key, text = key_and_headers(properties)
    headers = json.loads(text or "[]")
    return key, tuple((h["key"], decoded(h.get("value"))) for h in headers)


def decoded(value: str | None) -> bytes | None:
    return None if value is None else b64decode(value)


def test_properties_become_key_and_headers() -> None:
    assert (None, None) == key_and_headers(b"")
    assert (b"\xff\x00", (("TAGS", b"t"),)) == read(
        b"KEYS\x01shown\x02headgate-key\x01base64:/wA=\x02TAGS\x01t\x02CLUSTER\x01c\x02"
    )


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        (None, ()),
        (b"7", (("trace", "é".encode()),)),
        (b"", (("empty", b""), ("none", None))),
        (b"\xff\x00", (("binary", b"\xff"), ("twice", b"1"), ("twice", b"2"), ("UPPER", b"x"))),
        (b"a\x01b\x02", (("separators", b"\x01\x02"), ("KEYS", b"k"), ("headgate-key", b"k"))),
    ],
)
def test_what_the_sink_makes_properties_of_comes_back(
    key: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    found, back = read(properties(key, "orders", b"t-0-1", headers))

    assert key == found
    wanted = [("TAGS", b"orders"), ("headgate-id", b"t-0-1"), *headers]
    assert sorted(wanted, key=repr) == sorted(back, key=repr)


def test_columns_are_kafkas() -> None:
    data = stored(b"v", properties=b"KEYS\x01k\x02h\x01x\x02", offset=5)
    (batch,) = as_columns(messages_in(data), "cdc", 3, LIMIT)

    (row,) = batch.to_pylist()
    assert (b"k", b"v", "cdc", 3, 5) == tuple(row.values())[:5]
    assert 1_700_000_000.123 == row["timestamp"].timestamp()
    assert '[{"key":"h","value":"eA=="}]' == row["headers"]


def test_the_names_of_internal_properties_are_those_of_the_java_client(
    rocketmq_client: ModuleType,
) -> None:
    constants = rocketmq_client.JClass("org.apache.rocketmq.common.message.MessageConst")
    shown = {"KEYS", "TAGS", "__SHARDINGKEY"}

    assert {
        str(name).encode() for name in constants.STRING_HASH_SET if str(name) not in shown
    } <= INTERNAL
