"""What a message has beside its value as attributes of a record, which are text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping

KEY = "headgate-key"
"""The attribute of the message's key."""
ENCODED = ".base64"
"""What follows the name of an attribute whose value is not text, and therefore in base64."""
RECORD_FRAME, ATTRIBUTE_FRAME = 32, 16
"""What of a request the tags and lengths of a record take, and those of an attribute."""


def attributes_of(key: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    """The attributes of a message: its headers and its key.

    A header of a name that was there before has a number behind its name.

    >>> attributes_of(b"1", [("trace", b"a"), ("trace", b"b"), ("raw", bytes([255]))])
    {'trace': 'a', 'trace.2': 'b', 'raw.base64': '/w==', 'headgate-key': '1'}
    """
    attributes: dict[str, str] = {}
    for name, value in headers:
        put(attributes, name, value or b"")
    if key is not None:
        put(attributes, KEY, key)
    return attributes


def put(attributes: dict[str, str], name: str, value: bytes) -> None:
    """Add an attribute, under a name that is free."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        name, text = f"{name}{ENCODED}", b64encode(value).decode()
    free, number = name, 1
    while free in attributes:
        number += 1
        free = f"{name}.{number}"
    attributes[free] = text


def size_of(value: bytes, attributes: Mapping[str, str]) -> int:
    """How many bytes of a request a record takes at most.

    >>> size_of(b"abc", {"headgate-id": "1"})
    63
    """
    return (
        len(value)
        + RECORD_FRAME
        + sum(
            len(name.encode()) + len(text.encode()) + ATTRIBUTE_FRAME
            for name, text in attributes.items()
        )
    )
