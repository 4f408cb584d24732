"""Messages as brokers send them, in the layout of their store, to Arrow columns.

A message is a fixed head with the addresses of its producer and its broker, which are longer for
IPv6, then body, topic and properties, each behind its length. The body may be compressed. All
messages of an answer are looked at together: one by one they cost more than to fetch them.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from headgate.arrow.headers import Headers, from_text, to_text
from headgate.arrow.messages import KAFKA_SCHEMA
from headgate.core.cache import BoundedCache
from headgate.core.errors import HeadgateError
from headgate.core.limits import BATCH_BYTES
from headgate.rocketmq.layout import HEADERS_PROPERTY

COMPRESSED, PRODUCER_V6, BROKER_V6, INNER_BATCH = 0x1, 0x10, 0x20, 0x80
LZ4, ZSTD = 0x100, 0x200
COMPRESSION = 0x700
"""The bits of a message's flags that name the compression; else it is zlib."""
MAGIC, MAGIC_2 = -626843481, -626843477
"""What stands in front of a message; with the second, the length of the topic has two bytes."""
MAGIC_AT, OFFSET_AT, FLAGS_AT, BORN_AT, HEAD = 4, 20, 36, 40, 88
"""Where numbers of the head are, and its size; the size of the body is the last of it."""
V6_MORE = 12
"""By how much an address of IPv6 is longer."""
LEAST = HEAD + 3
"""The size of a message without anything: two lengths follow the head."""
_SIZE = Struct(">i")
KEYS, OWN_KEY, OWN_HEADERS = b"KEYS", b"headgate-key", HEADERS_PROPERTY.encode()
BASE64 = b"base64:"
INTERNAL = frozenset(
    b"""TRACE_ON MSG_REGION WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP
    MIN_OFFSET MAX_OFFSET BUYER_ID ORIGIN_MESSAGE_ID TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG
    RECONSUME_TIME UNIQ_KEY EXTEND_UNIQ_INFO MAX_RECONSUME_TIMES CONSUME_START_TIME
    ORIGIN_GROUP BORN_TIMESTAMP __BORNHOST _SYS_MSG_PRIORITY_
    TRAN_PREPARED_QUEUE_OFFSET TRANSACTION_CHECK_TIMES CHECK_IMMUNITY_TIME_IN_SECONDS INSTANCE_ID
    CORRELATION_ID REPLY_TO_CLIENT TTL ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE POP_CK
    POP_CK_OFFSET 1ST_POP_TIME INNER_NUM INNER_BASE DUP_INFO __CRC32# INNER_MULTI_DISPATCH
    INNER_MULTI_QUEUE_OFFSET TIMER_DELAY_MS TIMER_DELAY_SEC TIMER_DELIVER_MS TIMER_IN_MS
    TIMER_OUT_MS TIMER_ENQUEUE_MS TIMER_DEQUEUE_MS TIMER_ROLL_TIMES TIMER_DEL_UNIQKEY
    TIMER_DELAY_LEVEL TIMER_DEL_MS DLQ_ORIGIN_TOPIC DLQ_ORIGIN_MESSAGE_ID""".split()
)
"""Properties of brokers and clients, which are nobody's headers."""


@dataclass(frozen=True)
class StoredMessages:
    """Messages of a queue."""

    offsets: Any
    born: Any
    """When each was sent, in milliseconds."""
    flags: Any
    bodies: pa.Array
    properties: pa.Array


class Malformed(HeadgateError):
    """A broker's answer is not what brokers send."""


def messages_in(data: bytes) -> StoredMessages:
    """The messages of a broker's answer, or of several; bodies are as they were sent."""
    starts, ends = _places(data)
    numbers = np.frombuffer(data, np.uint8)
    flags = _numbers(numbers, starts + FLAGS_AT, ">i4")
    v6 = (flags & PRODUCER_V6 != 0) * V6_MORE + (flags & BROKER_V6 != 0) * V6_MORE
    magic = _numbers(numbers, starts + MAGIC_AT, ">i4")
    wide = magic == MAGIC_2
    _check((wide | (magic == MAGIC)) & (starts + LEAST + v6 + wide <= ends))
    if (flags & INNER_BATCH).any():
        raise HeadgateError(
            "the topic keeps batches of messages as one (queue.type=BatchCQ), and those are not "
            "read; make the topic with queue.type=SimpleCQ"
        )
    body_at = starts + HEAD + v6
    length = _numbers(numbers, body_at - 4, ">i4")
    topic_at = body_at + length
    _check((length >= 0) & (topic_at + wide + 3 <= ends))
    topic = np.where(wide, _numbers(numbers, topic_at, ">i2"), numbers[topic_at])
    properties_at = topic_at + 1 + wide + topic + 2
    _check((topic >= 0) & (properties_at <= ends))
    count = _numbers(numbers, properties_at - 2, ">i2")
    _check((count >= 0) & (properties_at + count <= ends))
    buffer = pa.py_buffer(data)
    return StoredMessages(
        _numbers(numbers, starts + OFFSET_AT, ">i8"),
        _numbers(numbers, starts + BORN_AT, ">i8"),
        flags,
        _between(buffer, body_at, topic_at),
        _between(buffer, properties_at, properties_at + count),
    )


def _places(data: bytes) -> tuple[Any, Any]:
    """Where each message begins, and where it ends."""
    starts, at, size_at = [], 0, _SIZE.unpack_from
    try:
        while at < len(data):
            starts.append(at)
            (size,) = size_at(data, at)
            if size < LEAST:
                raise _malformed()
            at += size
    except StructError as error:
        raise _malformed() from error
    if at != len(data):
        raise _malformed()
    places = np.array([*starts, at], np.int64)
    return places[:-1], places[1:]


def _numbers(data: Any, at: Any, type: str) -> Any:
    """The numbers at these places."""
    at_each_byte = np.ndarray(max(0, len(data) + 1 - np.dtype(type).itemsize), type, data, 0, (1,))
    return at_each_byte[at].astype(np.int64)


def _between(data: pa.Buffer, starts: Any, ends: Any) -> pa.Array:
    """The bytes from each start to its end."""
    if not len(starts):
        return pa.array([], pa.binary())
    bounds = np.stack([starts, ends], 1).astype(np.int32).ravel()
    # With what lies between them: Arrow's values are one behind the other.
    all_bytes = pa.Array.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), data]
    )
    return all_bytes.take(pa.array(np.arange(0, len(bounds), 2)))


def _check(right: Any) -> None:
    if not right.all():
        raise _malformed()


def _malformed() -> Malformed:
    return Malformed("the broker's answer is no list of messages; is it RocketMQ 4.x or 5.x?")


# Bodies


def plain_bodies(messages: StoredMessages, most_bytes: int) -> Iterator[tuple[int, pa.Array]]:
    """Bodies without compression, in parts of bounded size, each with its first row."""
    if not (messages.flags & COMPRESSED).any():
        yield 0, messages.bodies
        return
    part: list[bytes] = []
    size, first = 0, 0
    for row, (body, flags) in enumerate(zip(messages.bodies.to_pylist(), messages.flags.tolist())):
        plain = unpacked(body, flags & COMPRESSION, most_bytes) if flags & COMPRESSED else body
        part.append(plain)
        size += len(plain)
        if size >= BATCH_BYTES:
            yield first, pa.array(part, pa.binary())
            part, size, first = [], 0, row + 1
    if part:
        yield first, pa.array(part, pa.binary())


def unpacked(body: bytes, compression: int, most_bytes: int) -> bytes:
    """A body without its compression; as it is, where it is damaged or would be too large.

    It cannot be decoded then, and becomes a dead letter.

    >>> unpacked(zlib.compress(b"{}"), 0, 10), unpacked(b"{}", 0, 10)
    (b'{}', b'{}')
    """
    try:
        if compression in (LZ4, ZSTD):
            codec = "lz4" if compression == LZ4 else "zstd"
            with pa.CompressedInputStream(pa.BufferReader(body), codec) as stream:
                plain: bytes = stream.read(most_bytes + 1)
        else:
            unpacking = zlib.decompressobj()
            plain = unpacking.decompress(body, most_bytes + 1)
            if not unpacking.eof:
                return body
    except (OSError, zlib.error, pa.ArrowException):
        return body
    return plain if len(plain) <= most_bytes else body


# Properties


def key_and_headers(properties: bytes) -> tuple[bytes | None, str | None]:
    r"""The key of a message, and its headers as text, from its properties (rocketmq/layout.py).

    >>> key_and_headers(b"KEYS\x017\x02TAGS\x01orders\x02UNIQ_KEY\x01A\x02")
    (b'7', '[{"key":"TAGS","value":"b3JkZXJz"}]')
    """
    key: bytes | None = None
    others: list[bytes] = []
    for pair in properties.split(b"\2"):
        name, separator, value = pair.partition(b"\1")
        if not separator or name in INTERNAL:
            continue
        if name == KEYS:
            key = value if key is None else key
        elif name == OWN_KEY:
            key = _own_key(value)
        else:
            others.append(pair)
    return key, _header_texts[tuple(others)] if others else None


def headers_of(pairs: tuple[bytes, ...]) -> Headers:
    """The headers that properties are."""
    headers: list[tuple[str, bytes | None]] = []
    for pair in pairs:
        name, _, value = pair.partition(b"\1")
        if name == OWN_HEADERS:
            headers += _own_headers(value)
        else:
            headers.append((name.decode("utf-8", "replace"), value))
    return tuple(headers)


_header_texts: BoundedCache[tuple[bytes, ...], str | None] = BoundedCache(
    lambda pairs: to_text(headers_of(pairs))
)
"""Many messages have the same: the tag of their table."""


def _own_key(value: bytes) -> bytes:
    """The key that the RocketMQ sink encoded; as it is, where another wrote it."""
    try:
        return b64decode(value.removeprefix(BASE64), validate=True)
    except ValueError:
        return value


def _own_headers(value: bytes) -> Headers:
    """The headers that the RocketMQ sink encoded; as they are, where another wrote them."""
    try:
        return from_text(value.decode())
    except (ValueError, msgspec.MsgspecError):
        return ((HEADERS_PROPERTY, value),)


def as_columns(
    messages: StoredMessages, topic: str, partition: int, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Messages of a queue in Kafka's columns."""
    for first, bodies in plain_bodies(messages, most_bytes):
        count = len(bodies)
        rows = slice(first, first + count)
        pairs = [*map(key_and_headers, messages.properties[rows].to_pylist())]
        times = pa.array(messages.born[rows] * 1000)
        columns = {
            "key": pa.array([key for key, _ in pairs], pa.binary()),
            "value": bodies,
            "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
            "offset": pa.array(messages.offsets[rows]),
            "timestamp": times.cast(KAFKA_SCHEMA.field("timestamp").type),
            "headers": pa.array([headers for _, headers in pairs], pa.string()),
        }
        arrays = [columns[field.name] for field in KAFKA_SCHEMA]
        yield pa.RecordBatch.from_arrays(arrays, schema=KAFKA_SCHEMA)
