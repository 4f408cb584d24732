"""Messages as brokers send them, in the layout of their store, to Arrow columns.

A message is a fixed head with the addresses of its producer and its broker, which are longer for
IPv6, then body, topic and properties, each behind its length. The body may be compressed.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Iterator
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

import msgspec
import pyarrow as pa

from headgate.arrow.headers import Headers, from_text, to_text
from headgate.arrow.messages import KAFKA_SCHEMA
from headgate.core.errors import HeadgateError
from headgate.rocketmq.layout import HEADERS_PROPERTY

COMPRESSED, PRODUCER_V6, BROKER_V6, INNER_BATCH = 0x1, 0x10, 0x20, 0x80
LZ4, ZSTD = 0x100, 0x200
COMPRESSION = 0x700
"""The bits of a message's flags that name the compression; else it is zlib."""
MAGIC, MAGIC_2 = -626843481, -626843477
"""What stands in front of a message; with the second, the length of the topic has two bytes."""
_FLAGS, _SHORT = Struct(">i"), Struct(">h")
_FLAGS_AT = 36
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


def _head(flags: int) -> Struct:
    """The head of a message: size, magic, offset, flags, times, and the size of the body."""
    producer = 16 if flags & PRODUCER_V6 else 4
    broker = 16 if flags & BROKER_V6 else 4
    return Struct(f">ii12xq8xiq{producer + 4}xq{broker + 4}x12xi")


_HEADS = {flags: _head(flags) for flags in (0, PRODUCER_V6, BROKER_V6, PRODUCER_V6 | BROKER_V6)}


class Stored(NamedTuple):
    """A message of a queue."""

    offset: int
    born: int
    """When it was sent, in milliseconds."""
    body: bytes
    properties: bytes


class Malformed(HeadgateError):
    """A broker's answer is not what brokers send."""


def messages_in(data: bytes, most_bytes: int) -> Iterator[Stored]:
    """The messages of a broker's answer, unpacked where that gives no more than `most_bytes`."""
    at = 0
    while at < len(data):
        try:
            (flags,) = _FLAGS.unpack_from(data, at + _FLAGS_AT)
            head = _HEADS[flags & (PRODUCER_V6 | BROKER_V6)]
            size, magic, offset, _, born, _, length = head.unpack_from(data, at)
            body_at = at + head.size
            topic_at = body_at + length
            if magic == MAGIC_2:
                properties_at = topic_at + 2 + _SHORT.unpack_from(data, topic_at)[0]
            else:
                properties_at = topic_at + 1 + data[topic_at]
            (count,) = _SHORT.unpack_from(data, properties_at)
        except (IndexError, StructError) as error:
            raise _malformed() from error
        properties_at += 2
        if (
            magic not in (MAGIC, MAGIC_2)
            or properties_at + count > at + size
            or at + size > len(data)
        ):
            raise _malformed()
        if flags & INNER_BATCH:
            raise HeadgateError(
                "the topic keeps batches of messages as one (queue.type=BatchCQ), and those are "
                "not read; make the topic with queue.type=SimpleCQ"
            )
        body = data[body_at:topic_at]
        if flags & COMPRESSED:
            body = unpacked(body, flags & COMPRESSION, most_bytes)
        yield Stored(offset, born, body, data[properties_at : properties_at + count])
        at += size


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


def key_and_headers(properties: bytes) -> tuple[bytes | None, Headers]:
    r"""The key of a message and its headers, from its properties (rocketmq/layout.py).

    >>> key_and_headers(b"KEYS\x017\x02TAGS\x01orders\x02UNIQ_KEY\x01A\x02trace\x011\x02")
    (b'7', (('TAGS', b'orders'), ('trace', b'1')))
    """
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] = []
    for pair in properties.split(b"\2"):
        name, separator, value = pair.partition(b"\1")
        if not separator or name in INTERNAL:
            continue
        if name == KEYS:
            key = value if key is None else key
        elif name == OWN_KEY:
            key = _own_key(value)
        elif name == OWN_HEADERS:
            headers += _own_headers(value)
        else:
            headers.append((name.decode("utf-8", "replace"), value))
    return key, tuple(headers)


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


def as_columns(messages: list[Stored], topic: str, partition: int) -> pa.RecordBatch:
    """Messages of a queue in Kafka's columns."""
    keys: list[bytes | None] = []
    headers: list[str | None] = []
    for message in messages:
        key, own = key_and_headers(message.properties)
        keys.append(key)
        headers.append(to_text(own))
    count = len(messages)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array([m.body for m in messages], pa.binary()),
        "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        "offset": pa.array([m.offset for m in messages], pa.int64()),
        "timestamp": pa.array(
            [m.born * 1000 for m in messages], KAFKA_SCHEMA.field("timestamp").type
        ),
        "headers": pa.array(headers, pa.string()),
    }
    arrays = [columns[field.name] for field in KAFKA_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=KAFKA_SCHEMA)


def _malformed() -> Malformed:
    return Malformed("the broker's answer is no list of messages; is it RocketMQ 4.x or 5.x?")
