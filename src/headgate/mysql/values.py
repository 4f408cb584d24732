"""How the values of each column are read: how many bytes they take, and their canonical text.

A column has a `Reader`: its size in a row, a function from bytes to text, and what the compiled
printer (`kernel`) does instead where there is one for its type.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Callable
from socket import AF_INET, AF_INET6, inet_ntop
from typing import NamedTuple
from uuid import UUID

from headgate.core.values import base_type
from headgate.mysql import table_map as t
from headgate.mysql.charsets import BINARY, decoder, single_bytes
from headgate.mysql.columns import ColumnSpec
from headgate.mysql.errors import SchemaError, malformed
from headgate.mysql.json_binary import json_text
from headgate.mysql.numbers import (
    date_text,
    datetime_reader,
    decimal_reader,
    decimal_size,
    double_text,
    float_text,
    fraction_size,
    old_datetime_text,
    old_time_text,
    old_timestamp_text,
    time_reader,
    timestamp_reader,
    year_text,
)

Text = Callable[[bytes], str]

(
    PREPARED, SIGNED, UNSIGNED, BITS, DECIMAL, DATE, YEAR, DATETIME, TIME, TIMESTAMP, COPY, TABLE,
    BASE64, ENUM, SET, FLOATING,
) = range(16)  # fmt: skip
"""What the compiled printer does with a column; it takes PREPARED text from `Reader.text`, and that
of FLOATING columns from a printer of their own."""

_INTEGERS = {t.TINY: 1, t.SHORT: 2, t.INT24: 3, t.LONG: 4, t.LONGLONG: 8}


class Reader(NamedTuple):
    """How a column's values are read."""

    size: int
    """The bytes of a value; if negative, so many bytes before it tell its length."""
    text: Text
    code: int = PREPARED
    first: int = 0
    """DECIMAL: precision; times: digits of the fraction; BASE64: pad with zeros to this length."""
    second: int = 0
    """DECIMAL: scale."""
    labels: tuple[str, ...] = ()
    """ENUM, SET: labels; TABLE: the characters of 256 bytes."""


def reader(column: ColumnSpec) -> Reader:
    """How the values of a column are read."""
    kind, meta = column.mapped.type, column.mapped.meta
    if kind in _INTEGERS:
        size = _INTEGERS[kind]
        code = UNSIGNED if column.unsigned else SIGNED
        return Reader(size, _integer(not column.unsigned), code)
    if kind in t.CHARACTER:
        return _string(column)
    if kind == t.NEWDECIMAL:
        precision, scale = meta >> 8, meta & 0xFF
        size = decimal_size(precision, scale)
        return Reader(size, decimal_reader(precision, scale), DECIMAL, precision, scale)
    if kind == t.ENUM:
        return Reader(meta, _enum(column.labels), ENUM, labels=column.labels)
    if kind == t.SET:
        return Reader(meta, _set(column.labels), SET, labels=column.labels)
    if kind == t.BIT:
        return Reader((meta >> 8) + ((meta & 0xFF) > 0), _bits, BITS)
    if kind == t.JSON:
        return Reader(-meta, json_text)
    if kind in (t.GEOMETRY, t.VECTOR):
        return Reader(-meta, base64_text, BASE64)
    temporal = _TEMPORAL.get(kind)
    if temporal is not None:
        size, make, code = temporal
        return Reader(size + fraction_size(meta), make(meta), code, meta)
    if kind in _PLAIN:
        return _PLAIN[kind]
    raise SchemaError(f"the binlog's type {kind} of a column is not known")


def _integer(signed: bool) -> Text:
    return lambda data: str(int.from_bytes(data, "little", signed=signed))


def _bits(data: bytes) -> str:
    return str(int.from_bytes(data, "big"))


def base64_text(data: bytes) -> str:
    """Binary values.

    >>> base64_text(b"\\xff")
    '/w=='
    """
    return b64encode(data).decode()


def printed_labels(reader: Reader) -> tuple[str, ...]:
    """The texts from which the printer chooses, by number.

    >>> printed_labels(Reader(1, str, ENUM, labels=("a", "b")))
    ('', 'a', 'b')
    """
    if reader.code != ENUM:
        return reader.labels
    # MySQL's error value reads as '' too: where that is a label, its number tells the two apart.
    return ("0" if "" in reader.labels and "0" not in reader.labels else "", *reader.labels)


def _enum(labels: tuple[str, ...]) -> Text:
    texts = printed_labels(Reader(0, str, ENUM, labels=labels))

    def read(data: bytes) -> str:
        index = int.from_bytes(data, "little")
        return texts[index] if index < len(texts) else str(index)

    return read


def _set(labels: tuple[str, ...]) -> Text:
    def read(data: bytes) -> str:
        mask = int.from_bytes(data, "little")
        if mask >> len(labels):
            return str(mask)
        return ",".join(label for at, label in enumerate(labels) if mask >> at & 1)

    return read


def _string(column: ColumnSpec) -> Reader:
    """CHAR, VARCHAR, TEXT, and their binary kin."""
    kind, meta = column.mapped.type, column.mapped.meta
    is_blob = kind in (t.BLOB, t.BLOB_COMPRESSED)
    size = -meta if is_blob else -1 if meta < 256 else -2
    if column.charset == BINARY:
        string_reader = _binary(column, size)
    elif column.charset in ("utf8mb4", "utf8mb3"):
        string_reader = Reader(size, decoder(column.charset), COPY)
    else:
        table = single_bytes(column.charset)
        code = PREPARED if table is None else TABLE
        string_reader = Reader(size, decoder(column.charset), code, labels=table or ())
    if kind in (t.BLOB_COMPRESSED, t.VARCHAR_COMPRESSED):
        text = string_reader.text
        return Reader(size, lambda data: text(_expanded(data)))
    return string_reader


def _binary(column: ColumnSpec, size: int) -> Reader:
    length = column.mapped.meta
    if column.mapped.type != t.STRING:
        return Reader(size, base64_text, BASE64)
    special = _MARIADB.get(base_type(column.mysql))
    if special is not None:
        return Reader(size, lambda data: special(data.ljust(length, b"\0")))
    # The binlog has no zeros at the end of a BINARY.
    return Reader(size, lambda data: base64_text(data.ljust(length, b"\0")), BASE64, length)


def _expanded(data: bytes) -> bytes:
    """A value of a COMPRESSED column: a head, the length, and what zlib made of it."""
    if not data:
        return data
    if data[0] == 0:
        return data[1:]
    size = data[0] & 7
    try:
        return zlib.decompress(data[1 + size :], -15 if data[0] & 8 else 15)
    except zlib.error:
        raise malformed("a compressed column cannot be read") from None


_MARIADB: dict[str, Text] = {
    "uuid": lambda data: str(UUID(bytes=data)),
    "inet4": lambda data: inet_ntop(AF_INET, data),
    "inet6": lambda data: inet_ntop(AF_INET6, data),
}
"""Types that the binlog has as BINARY."""
_TEMPORAL: dict[int, tuple[int, Callable[[int], Text], int]] = {
    t.DATETIME2: (5, datetime_reader, DATETIME),
    t.TIME2: (3, time_reader, TIME),
    t.TIMESTAMP2: (4, timestamp_reader, TIMESTAMP),
}
_PLAIN = {
    t.FLOAT: Reader(4, float_text, FLOATING),
    t.DOUBLE: Reader(8, double_text, FLOATING),
    t.DATE: Reader(3, date_text, DATE),
    t.NEWDATE: Reader(3, date_text, DATE),
    t.YEAR: Reader(1, year_text, YEAR),
    t.TIME: Reader(3, old_time_text),
    t.DATETIME: Reader(8, old_datetime_text),
    t.TIMESTAMP: Reader(4, old_timestamp_text),
}
