"""TiCDC Open Protocol's columns: type codes and flags to MySQL types, values to canonical text."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import msgspec

from headgate.core import values
from headgate.core.column_flags import BINARY, PRIMARY, UNSIGNED
from headgate.core.errors import DecodeError
from headgate.core.event import ColumnType, Event, Image, Types
from headgate.core.json import Number, Raw, exact_text, members, parse, reader
from headgate.core.values import Convert, Converters

NUMERIC = {1, 2, 3, 4, 5, 8, 9, 246}
FLOATS = {4, 5}
STRINGS = {15, 253, 254}
LOBS = {249, 250, 251, 252}
TIMESTAMP, YEAR = 7, 13
CODES = {
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    6: "null",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    14: "date",
    15: "varchar",
    16: "bit",
    225: "vector",
    245: "json",
    246: "decimal",
    247: "enum",
    248: "set",
    249: "tinytext",
    250: "mediumtext",
    251: "longtext",
    252: "text",
    253: "varchar",
    254: "char",
    255: "geometry",
}
BINARY_CODES = {
    15: "varbinary",
    249: "tinyblob",
    250: "mediumblob",
    251: "longblob",
    252: "blob",
    253: "varbinary",
    254: "binary",
}
UNUSUAL_CODES = {14, 253}

_NEGATIVE_ZERO = re.compile(rb"-0[\s,}]")
_GO_ESCAPE = re.compile(
    rb'\\(?:[abfnrtv\\"]|x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|[\\"\n]'
)
_GO_BYTES = {
    b"\\a": b"\a",
    b"\\b": b"\b",
    b"\\f": b"\f",
    b"\\n": b"\n",
    b"\\r": b"\r",
    b"\\t": b"\t",
    b"\\v": b"\v",
    b"\\\\": b"\\",
    b'\\"': b'"',
} | {b"\\x%02x" % byte: bytes([byte]) for byte in range(256)}


class Column(msgspec.Struct, gc=False):
    """One column: type code, handle, flags (absent in the oldest messages) and value."""

    t: int
    v: Any
    h: bool = False
    f: int | None = None


Columns = dict[str, Column]
Signature = tuple[tuple[str, int, "int | None"], ...]
"""Name, type code and flags of the columns of an image."""


class Plan(msgspec.Struct):
    """How to read the columns of an image; made once per signature."""

    key: tuple[str, ...] | None
    types: Types
    converters: Converters
    floats: list[str]
    unflagged_lobs: list[str]
    extra: dict[str, str] | None
    dialect: str | None
    flagged: bool
    busy: bool


_raw_columns = reader(dict[str, dict[str, Raw]])


def signature_and_image(columns: Columns) -> tuple[Signature, Image]:
    """The signature of an image, and its values as text, in one pass because this is a hot path."""
    signature = []
    image: Image = {}
    for name, column in columns.items():
        value = column.v
        kind = value.__class__
        if kind is int:
            value = str(value)
        elif kind is not str and value is not None and kind is not Number:
            value = boolean(value)
        image[name] = value
        signature.append((name, column.t, column.f))
    return tuple(signature), image


def boolean(value: Any) -> str:
    """The text of true or false; raises DecodeError for an object or array."""
    if value.__class__ is not bool:
        raise DecodeError("wrong-type", "a column holds an object or array", "check the producer")
    return "1" if value else "0"


def make_plan(columns: Columns, to_utc: Convert | None) -> Plan:
    """Derive key, types and converters from the columns of one image."""
    check_ranges(columns)
    flags = {name: c.f or 0 for name, c in columns.items()}
    flagged = all(c.f is not None for c in columns.values())
    handles = [name for name, c in columns.items() if c.h]
    extra = {}
    if flagged:
        key: tuple[str, ...] | None = tuple(n for n, f in flags.items() if f & PRIMARY)
    else:
        key = tuple(handles) or None
        if handles:
            extra["h"] = json_text(handles)
    codes = {n: c.t for n, c in columns.items() if c.t in UNUSUAL_CODES or c.t not in CODES}
    if codes:
        extra["t"] = json_text(codes)
    dialect = None
    if not flagged:
        dialect = "classic"
    elif list(columns) != sorted(columns):
        dialect = "new"
    types = {n: ColumnType(mysql_type(c.t, flags[n]), None, c.f) for n, c in columns.items()}
    converters = [(n, convert) for n, c in columns.items() if (convert := converter(c, to_utc))]
    floats = [n for n, c in columns.items() if c.t in FLOATS]
    lobs = [n for n, c in columns.items() if c.t in LOBS and c.f is None]
    busy = bool(converters or floats or lobs)
    return Plan(key, types, converters, floats, lobs, extra or None, dialect, flagged, busy)


def check_ranges(columns: Columns) -> None:
    """Reject type codes that do not fit a byte and flags that do not fit 31 bits."""
    for column in columns.values():
        if not 0 <= column.t <= 255 or not 0 <= (column.f or 0) < 2**31:
            raise DecodeError(
                "wrong-type",
                "a column's type code t or flags f is out of range",
                "check the producer",
            )


def mysql_type(code: int, flags: int) -> str | None:
    """The MySQL type of a type code, or None for an unknown code.

    >>> mysql_type(3, 129), mysql_type(252, 65), mysql_type(13, 193)
    ('int unsigned', 'blob', 'year')
    """
    if flags & BINARY and code in BINARY_CODES:
        return BINARY_CODES[code]
    if flags & UNSIGNED and code in NUMERIC:
        return f"{CODES[code]} unsigned"
    return CODES.get(code)


def converter(column: Column, to_utc: Convert | None) -> Convert | None:
    """The function that converts a column to canonical text, or None if it is canonical already."""
    if column.t == TIMESTAMP:
        return to_utc
    if column.t == YEAR:
        return values.year
    if column.f is None:
        return None
    if column.t in LOBS:
        return checked_base64 if column.f & BINARY else base64_text
    if column.t in STRINGS and column.f & BINARY:
        return quoted_bytes
    return None


def finish(event: Event, image: Image, plan: Plan, body: bytes, member: str) -> None:
    """Convert the columns that are not canonical text yet, in place."""
    values.convert(image, plan.converters)
    if plan.floats and _NEGATIVE_ZERO.search(body):
        keep_negative_zero(image, plan.floats, body, member)
    if plan.unflagged_lobs:
        decode_lobs(event, image, plan.unflagged_lobs)


def keep_negative_zero(image: Image, floats: list[str], body: bytes, member: str) -> None:
    """Read float columns again from the raw bytes: a parsed integer zero has no sign."""
    zeros = [name for name in floats if image[name] == "0"]
    if zeros:
        exact = parse(_raw_columns, bytes(parse(members, body)[member]))
        for name in zeros:
            image[name] = exact_text(exact[name]["v"])


def decode_lobs(event: Event, image: Image, names: list[str]) -> None:
    """Without flags, a value is TEXT if it is UTF-8; others stay base64, listed in `extra`."""
    undecoded = []
    for name in names:
        value = image[name]
        if value is None:
            continue
        try:
            image[name] = values.base64_bytes(value).decode()
        except UnicodeDecodeError:
            undecoded.append(name)
    if undecoded:
        known = event.extra or {}
        before = msgspec.json.decode(known.get("base64", "[]"), type=list[str])
        event.extra = known | {"base64": json_text(list(dict.fromkeys(before + undecoded)))}


def checked_base64(value: str) -> str:
    """A BLOB: base64 as it was sent."""
    values.base64_bytes(value)
    return value


def base64_text(value: str) -> str:
    """A TEXT: decoded from base64.

    >>> base64_text("5rWL6K+VdGV4dA==")
    '测试text'
    """
    try:
        return values.base64_bytes(value).decode()
    except UnicodeDecodeError:
        raise DecodeError(
            "invalid-utf8",
            "a TEXT column holds bytes that are not UTF-8",
            "check the character set of the column in the source",
        ) from None


def quoted_bytes(value: str) -> str:
    """A BINARY or VARBINARY: base64 of the bytes that Go escaped."""
    return b64encode(go_unquote(value)).decode()


def go_unquote(text: str) -> bytes:
    r"""The bytes that Go's `strconv.Quote` wrote as this text, without the outer quotes.

    >>> go_unquote(r"\x89PNG\r\n\x1a\n")
    b'\x89PNG\r\n\x1a\n'
    """
    return _GO_ESCAPE.sub(unescape, text.encode())


def unescape(match: re.Match[bytes]) -> bytes:
    """The bytes of one Go escape."""
    escape = match.group()
    known = _GO_BYTES.get(escape)
    if known is not None:
        return known
    digits = escape[2:]
    if escape[1:2] == b"x":
        return bytes([int(digits, 16)])
    if len(escape) == 1:
        raise broken_escape()
    if escape[1:2] not in b"uU":
        number = int(escape[1:], 8)
        if number > 255:
            raise broken_escape()
        return bytes([number])
    try:
        return chr(int(digits, 16)).encode()
    except (ValueError, OverflowError):  # a surrogate, or beyond U+10FFFF
        raise broken_escape() from None


def broken_escape() -> DecodeError:
    """The error for text that Go's `strconv.Quote` cannot have written."""
    return DecodeError(
        "invalid-binary",
        "a binary column holds an escape, quote or line break that Go does not write",
        "check that the producer is TiCDC",
    )


def json_text(value: Any) -> str:
    """Compact JSON, for `extra`."""
    return msgspec.json.encode(value).decode()
