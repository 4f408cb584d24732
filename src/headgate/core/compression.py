"""Decompression of message bodies, bounded: a small body never grows past the message limit."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headgate.core.errors import DecodeError

COMPRESSIONS = ("auto", "none", "lz4", "snappy")
LZ4_MAGIC = b"\x04\x22\x4d\x18"


def decompressor(name: str, most_bytes: int) -> Callable[[bytes], bytes]:
    """A function that undoes one compression; `auto` recognises LZ4 frames and passes the rest.

    >>> decompressor("auto", 100)(b"{}")
    b'{}'
    """

    def auto(value: bytes) -> bytes:
        return lz4(value, most_bytes) if value[:4] == LZ4_MAGIC else value

    if name == "lz4":
        return lambda value: lz4(value, most_bytes)
    if name == "snappy":
        return lambda value: snappy(value, most_bytes)
    return auto if name == "auto" else lambda value: value


def is_json(value: bytes) -> bool:
    """Whether a value is a bare JSON object, and not packed.

    A Snappy body of 123 bytes starts with a brace as well, but not with a brace and one of these.

    >>> is_json(b'{"a":1}'), is_json(b"{\\x18abcdefg"), is_json(b"\\x04\\x22\\x4d\\x18")
    (True, False, False)
    """
    return value[:1] == b"{" and value[1:2] in b'"}\n\r\t '


def lz4(value: bytes, most_bytes: int) -> bytes:
    """Undo LZ4's frame format, as TiCDC writes it."""
    try:
        with pa.CompressedInputStream(pa.BufferReader(value), "lz4") as stream:
            body: bytes = stream.read(most_bytes + 1)
    except (OSError, pa.ArrowException):
        raise _broken("LZ4") from None
    return _bounded(body, len(body), most_bytes)


def snappy(value: bytes, most_bytes: int) -> bytes:
    """Undo Snappy's raw block format, whose first varint claims the length."""
    length, shift = 0, 0
    for byte in value[:5]:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise _broken("Snappy")
    _bounded(value, length, most_bytes)
    try:
        body: bytes = pa.decompress(value, decompressed_size=length, codec="snappy", asbytes=True)
    except (OSError, pa.ArrowException):
        raise _broken("Snappy") from None
    return body


def _bounded(body: bytes, length: int, most_bytes: int) -> bytes:
    if length > most_bytes:
        raise DecodeError(
            "too-large",
            f"the message unpacks to more than {most_bytes} bytes",
            "raise max-message-bytes if it is real",
        )
    return body


def _broken(name: str) -> DecodeError:
    return DecodeError(
        "malformed-compression", f"the message is not {name}", "check the option compression"
    )
