"""Messages as bytes: the layout of a batch that is sent, and keys and headers as properties.

Properties of a message are text, separated by two control characters, and RocketMQ keeps names for
itself. What such text cannot hold goes encoded into properties of Headgate's own, so that a reader
gets back what was sent:

    KEYS               the key, where it is text
    headgate-key       "base64:" and the key, where it is not
    NAME               a header, where its name and value can be a property's
    headgate-headers   all other headers as JSON, values in base64
"""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache

from headgate.arrow.headers import ID_HEADER, to_text

TAGS, HEADERS_PROPERTY = "TAGS", "headgate-headers"
_SEPARATORS = re.compile(b"[\1\2]")
PLAIN = re.compile(rb"[\x03-\x7f]+")
"""Text that can be the value of a property for certain."""
_FREE_NAME = re.compile("(?!__|headgate-(?:key|headers)$)[^\1\2]*[a-z][^\1\2]*")
"""Names that RocketMQ does not keep for itself: its own have no small letter or begin with __."""
_HEAD = struct.Struct(">iiiii")
_TAIL = struct.Struct(">h")
OVERHEAD = _HEAD.size + _TAIL.size
LONGEST_TAG = 255
"""Bytes of a tag: no database has longer names, and all properties share 32,767 bytes."""

Headers = Sequence[tuple[str, "bytes | None"]]


def message(body: bytes, properties: bytes) -> bytes:
    """One message of a batch: its size, three numbers that the broker sets, body and properties.

    >>> message(b"ab", b"TAGS\\1t\\2").hex(" ", -4)
    '0000001f 00000000 00000000 00000000 00000002 61620007 54414753 017402'
    """
    size = OVERHEAD + len(body) + len(properties)
    return b"".join(
        (
            _HEAD.pack(size, 0, 0, 0, len(body)),
            body,
            _TAIL.pack(len(properties)),
            properties,
        )
    )


def properties(
    key: bytes | None, tag: str | None, id_: bytes | None = None, headers: Headers = ()
) -> bytes:
    """The properties of a message; its id is a header, too.

    >>> properties(b"7", "orders", b"t-0-1")
    b'KEYS\\x017\\x02TAGS\\x01orders\\x02headgate-id\\x01t-0-1\\x02'
    """
    parts: list[bytes] = []
    if key is not None:
        if is_text(key):
            parts.append(b"KEYS\1%b\2" % key)
        else:
            parts.append(b"headgate-key\1base64:%b\2" % b64encode(key))
    tagged = b"" if tag is None else tag_property(tag)
    parts.append(tagged)
    if id_ is not None and is_text(id_):
        parts.append(b"headgate-id\1%b\2" % id_)
    if not headers:
        return b"".join(parts)
    names: set[str] = {ID_HEADER}
    others: list[tuple[str, bytes | None]] = []
    for name, value in headers:
        if value is None or name in names or not is_free(name) or not is_text(value):
            # A tag that came from RocketMQ is there already.
            if name != TAGS or value is None or tagged != b"TAGS\1%b\2" % value:
                others.append((name, value))
            continue
        names.add(name)
        parts.append(b"%b\1%b\2" % (name.encode(), value))
    if others:
        parts.append(f"{HEADERS_PROPERTY}\1{to_text(others)}\2".encode())
    return b"".join(parts)


@lru_cache(10_000)
def tag_property(tag: str) -> bytes:
    """The property of a table's name; nothing where it cannot be one."""
    name = tag.encode()
    return b"TAGS\1%b\2" % name if len(name) <= LONGEST_TAG and is_text(name) else b""


@lru_cache(10_000)
def is_free(name: str) -> bool:
    """Whether a header's name can be a property's."""
    return _FREE_NAME.fullmatch(name) is not None


def is_text(value: bytes) -> bool:
    """Whether bytes can be the value of a property.

    >>> is_text(b"a"), is_text("ä".encode()), is_text(b""), is_text(b"\\xff"), is_text(b"a\\1")
    (True, True, False, False, False)
    """
    if PLAIN.fullmatch(value):
        return True
    if not value or _SEPARATORS.search(value):
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
