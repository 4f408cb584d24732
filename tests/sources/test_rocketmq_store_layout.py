"""Messages in the layout of a broker's store, without a broker."""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa
import pytest

from headgate.core.errors import HeadgateError
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
    Stored,
    as_columns,
    key_and_headers,
    messages_in,
)

LIMIT = 1 << 20


def stored(body: bytes, flags: int = 0, magic: int = MAGIC, properties: bytes = b"") -> bytes:
    """A message as RocketMQ's documentation of its store draws it."""
    producer = bytes(16 if flags & PRODUCER_V6 else 4) + struct.pack(">i", 1)
    broker = bytes(16 if flags & BROKER_V6 else 4) + struct.pack(">i", 2)
    topic = b"\x03cdc" if magic == MAGIC else b"\x00\x03cdc"
    rest = struct.pack(">iiiiqqiq", magic, 0, 1, 0, 41, 7_000, flags, 1_700_000_000_123)
    rest += producer + struct.pack(">q", 1_700_000_000_456) + broker + struct.pack(">iq", 0, 0)
    rest += struct.pack(">i", len(body)) + body + topic
    rest += struct.pack(">h", len(properties)) + properties
    return struct.pack(">i", len(rest) + 4) + rest


@pytest.mark.parametrize("magic", [MAGIC, MAGIC_2])
@pytest.mark.parametrize("flags", [0, PRODUCER_V6, BROKER_V6, PRODUCER_V6 | BROKER_V6])
def test_messages_of_both_layouts_and_addresses_are_read(flags: int, magic: int) -> None:
    data = stored(b"one", flags, magic, b"a\x01b\x02") + stored(b"two", flags, magic)

    assert [
        Stored(41, 1_700_000_000_123, b"one", b"a\x01b\x02"),
        Stored(41, 1_700_000_000_123, b"two", b""),
    ] == list(messages_in(data, LIMIT))


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
        (message,) = messages_in(stored(data, flags), most)
        return message.body

    assert plain == body(packed, 5_000)
    assert packed == body(packed, 4_999)
    assert b"\x00damaged" == body(b"\x00damaged", 5_000)


def test_every_answer_that_is_cut_short_is_refused() -> None:
    data = stored(b"body", properties=b"a\x01b\x02")

    for length in range(1, len(data)):
        with pytest.raises(Malformed):
            list(messages_in(data[:length], LIMIT))


def test_a_topic_that_keeps_batches_as_one_is_refused() -> None:
    with pytest.raises(HeadgateError, match="SimpleCQ"):
        list(messages_in(stored(b"", INNER_BATCH), LIMIT))


def test_properties_become_key_and_headers() -> None:
    assert (None, ()) == key_and_headers(b"")
    assert (b"\xff\x00", (("TAGS", b"t"),)) == key_and_headers(
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
    found, back = key_and_headers(properties(key, "orders", b"t-0-1", headers))

    assert key == found
    wanted = [("TAGS", b"orders"), ("headgate-id", b"t-0-1"), *headers]
    assert sorted(wanted, key=repr) == sorted(back, key=repr)


def test_columns_are_kafkas() -> None:
    batch = as_columns([Stored(5, 1_700_000_000_123, b"v", b"KEYS\x01k\x02h\x01x\x02")], "cdc", 3)

    (row,) = batch.to_pylist()
    assert (b"k", b"v", "cdc", 3, 5) == tuple(row.values())[:5]
    assert 1_700_000_000.123 == row["timestamp"].timestamp()
    assert '[{"key":"h","value":"eA=="}]' == row["headers"]


def test_the_names_of_internal_properties_are_those_of_the_java_client() -> None:
    jpype = pytest.importorskip("jpype")
    from headgate.rocketmq import jvm

    jvm.start()
    names = jpype.JClass("org.apache.rocketmq.common.message.MessageConst").STRING_HASH_SET
    shown = {"KEYS", "TAGS", "__SHARDINGKEY"}

    assert {str(name).encode() for name in names if str(name) not in shown} <= INTERNAL
