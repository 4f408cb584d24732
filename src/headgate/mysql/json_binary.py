"""MySQL's binary JSON as the text that MySQL prints, and its partial updates.

A document is read as a tree of dicts, lists and leaves, where a leaf is its JSON text.
"""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from typing import Any

from headgate.mysql.errors import malformed
from headgate.mysql.events import packed_int
from headgate.mysql.numbers import decimal_reader, number_text

Node = Any
"""dict[str, Node], list[Node] or str."""

(
    _SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL, _INT16, _UINT16, _INT32,
    _UINT32, _INT64, _UINT64, _DOUBLE, _STRING,
) = range(13)  # fmt: skip
_OPAQUE = 15
_LITERALS = {0: "null", 1: "true", 2: "false"}
_INLINE: dict[int, tuple[int, bool]] = {_INT16: (2, True), _UINT16: (2, False)}
_INLINE_LARGE = _INLINE | {_INT32: (4, True), _UINT32: (4, False)}
_INTEGERS = _INLINE_LARGE | {_INT64: (8, True), _UINT64: (8, False)}
_DECIMAL, _TIMESTAMP, _DATE, _TIME, _DATETIME = 246, 7, 10, 11, 12
_ESCAPED = re.compile('["\\\\\\x00-\\x1f]')
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_STEP = re.compile(r'\[(\d+)\]|\.(?:"((?:[^"\\]|\\.)*)"|([^.\[]+))', re.DOTALL)
_REPLACE, _INSERT, _REMOVE = range(3)


def quoted(text: str) -> str:
    """A JSON string as MySQL writes it.

    >>> print(quoted('a"é' + chr(1)))
    "a\\"é\\u0001"
    """
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"


def json_text(data: bytes) -> str:
    """The text of a document; no bytes at all are the JSON null that an old server left.

    >>> json_text(bytes.fromhex("00 01000f00 0b000100 05 0100 61".replace(" ", "") + "00" * 3))
    '{"a": 1}'
    """
    return dumped(parsed(data))


def dumped(node: Node) -> str:
    """A tree as text."""
    if node.__class__ is str:
        return node
    if node.__class__ is dict:
        return f"{{{', '.join([f'{quoted(name)}: {dumped(node[name])}' for name in node])}}}"
    return f"[{', '.join([dumped(each) for each in node])}]"


def parsed(data: bytes) -> Node:
    """A document as a tree."""
    if not data:
        return "null"
    try:
        return _value(data[0], data, 1)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise malformed("a JSON value is cut short") from None


def _value(kind: int, data: bytes, at: int) -> Node:
    if kind <= _LARGE_ARRAY:
        return _container(kind, data, at)
    if kind == _STRING:
        size, at = _length(data, at)
        return quoted(data[at : at + size].decode())
    if kind == _LITERAL:
        return _LITERALS[data[at]]
    if kind in _INTEGERS:
        size, signed = _INTEGERS[kind]
        return str(int.from_bytes(data[at : at + size], "little", signed=signed))
    if kind == _DOUBLE:
        return _double(data[at : at + 8])
    if kind == _OPAQUE:
        field = data[at]
        size, at = _length(data, at + 1)
        return _opaque(field, data[at : at + size])
    raise malformed(f"a JSON value has the unknown type {kind}")


def _container(kind: int, data: bytes, start: int) -> Node:
    """An object or array: counts, entries of keys and values, and what these point to."""
    large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
    width = 4 if large else 2
    inline = _INLINE_LARGE if large else _INLINE

    def number(at: int, size: int = width) -> int:
        return int.from_bytes(data[at : at + size], "little")

    count = number(start)
    at = start + 2 * width
    names: list[str] = []
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
        for _ in range(count):
            key, size = start + number(at), number(at + width, 2)
            names.append(data[key : key + size].decode())
            at += width + 2
    values: list[Node] = []
    for _ in range(count):
        entry = data[at]
        if entry in inline or entry == _LITERAL:
            values.append(_value(entry, data, at + 1))
        else:
            values.append(_value(entry, data, start + number(at + 1)))
        at += 1 + width
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
        return dict(zip(names, values))
    return values


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A length of seven bits per byte, and where it ends."""
    length = shift = 0
    while True:
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return length, at
        shift += 7


def _double(data: bytes) -> str:
    text = number_text(repr(struct.unpack("<d", data)[0]))
    return text if "." in text or "e" in text else f"{text}.0"


def _opaque(field: int, data: bytes) -> str:
    if field == _DECIMAL:
        return decimal_reader(data[0], data[1])(data[2:])
    if field in (_DATE, _DATETIME, _TIMESTAMP):
        packed = int.from_bytes(data, "little")
        day, clock = packed >> 41, packed >> 24 & 0x1FFFF
        month = day >> 5
        date = f"{month // 13:04d}-{month % 13:02d}-{day & 31:02d}"
        return f'"{date}"' if field == _DATE else f'"{date} {_clock(clock, packed & 0xFFFFFF)}"'
    if field == _TIME:
        packed = int.from_bytes(data, "little", signed=True)
        sign, packed = ("-", -packed) if packed < 0 else ("", packed)
        return f'"{sign}{_clock(packed >> 24, packed & 0xFFFFFF)}"'
    return quoted(f"base64:type{field}:{b64encode(data).decode()}")


def _clock(packed: int, micros: int) -> str:
    return f"{packed >> 12:02d}:{packed >> 6 & 63:02d}:{packed & 63:02d}.{micros:06d}"


def updated(document: Node, diffs: bytes) -> Node:
    """A tree with a partial update applied; the tree is changed."""
    at = 0
    while at < len(diffs):
        operation = diffs[at]
        size, at = packed_int(diffs, at + 1)
        path = diffs[at : at + size].decode()
        at += size
        value = None
        if operation != _REMOVE:
            size, at = packed_int(diffs, at)
            value = parsed(diffs[at : at + size])
            at += size
        document = _apply(document, operation, path, value)
    return document


def _apply(document: Node, operation: int, path: str, value: Node) -> Node:
    steps: list[int | str] = [_step(match) for match in _STEP.finditer(path, 1)]
    if not steps:
        return value
    node = document
    for step in steps[:-1]:
        node = node[step]
    last = steps[-1]
    if operation == _REMOVE:
        del node[last]
    elif operation == _INSERT and isinstance(last, int):
        node.insert(last, value)
    elif isinstance(last, str) and last not in node:
        node[last] = value
        ordered = sorted(node.items(), key=lambda item: _key_order(item[0]))
        node.clear()
        node.update(ordered)
    else:
        node[last] = value
    return document


def _key_order(name: str) -> tuple[int, bytes]:
    """The order of an object's members: shorter names first."""
    data = name.encode()
    return len(data), data


def _step(match: re.Match[str]) -> int | str:
    index, name, plain = match.groups()
    if index is not None:
        return int(index)
    return plain if name is None else _unescape(name)


_UNESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _unescape(name: str) -> str:
    return _UNESCAPED.sub(_unescape_one, name)


def _unescape_one(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _PLAIN.get(escape, escape)
