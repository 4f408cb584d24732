"""Schema block and values of a message agree, so that Kafka's JSON converter reads what is meant.

The converter refuses null in a required field, and text where a struct is declared; text under a
number it takes for 0 without a word. So a column with a value that its type cannot have is declared
as text in that message, and one without a value as optional.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import MsgspecError, Raw
from msgspec.json import decode

from headgate.core.event import Image
from headgate.formats._connect.column import TEXT, Column
from headgate.formats._connect.encode_numbers import INT32, INT64
from headgate.formats.encoding import to_json

INT8, INT16 = range(-(2**7), 2**7), range(-(2**15), 2**15)
WHOLE = {"int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64}
DECIMAL = "org.apache.kafka.connect.data.Decimal"
Pair = tuple["dict[str, Any] | None", "Image | None"]
"""A row as JSON values, and as canonical text."""


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a JSON value is of its declared type.

    >>> fits({"type": "int16"}, 40_000), fits({"type": "string"}, "x"), fits({"type": "bytes"}, "?")
    (False, True, False)
    """
    if value is None:
        return schema.get("optional") is not False
    if isinstance(value, Raw):
        try:
            value = decode(value)
        except MsgspecError:  # more digits than any type has
            return False
    return CHECKS[schema["type"]](schema, value)


def _whole(schema: Mapping[str, Any], value: Any) -> bool:
    return value.__class__ is int and value in WHOLE[schema["type"]]


def _number(schema: Mapping[str, Any], value: Any) -> bool:
    return value.__class__ in (int, float)


def _text(schema: Mapping[str, Any], value: Any) -> bool:
    return isinstance(value, str)


def _bytes(schema: Mapping[str, Any], value: Any) -> bool:
    if schema.get("name") == DECIMAL and _number(schema, value):
        return True
    if not isinstance(value, str):
        return False
    try:
        a2b_base64(value.encode(), strict_mode=bool(value))
    except (Base64Error, ValueError):
        return False
    return True


def _struct(schema: Mapping[str, Any], value: Any) -> bool:
    return isinstance(value, dict) and all(
        fits(field, value.get(field["field"])) for field in schema["fields"]
    )


def _array(schema: Mapping[str, Any], value: Any) -> bool:
    return isinstance(value, list) and all(fits(schema["items"], each) for each in value)


CHECKS: dict[str, Callable[[Mapping[str, Any], Any], bool]] = {
    **dict.fromkeys(WHOLE, _whole),
    **dict.fromkeys(("float", "double"), _number),
    "boolean": lambda schema, value: value.__class__ is bool,
    "string": _text,
    "bytes": _bytes,
    "struct": _struct,
    "array": _array,
}


def settle(columns: Mapping[str, Column], rows: Iterable[Pair]) -> Mapping[str, Column]:
    """The columns of a message, those declared as text of which a row has a value of another type.

    Both rows of an update have the canonical text then: the message has one schema for both.

    >>> row = {"id": "x"}
    >>> settle({"id": Column(None, {"type": "int32"})}, [(row, {"id": "x"})])["id"].head
    {'type': 'string'}
    """
    there = [(row, image or {}) for row, image in rows if row is not None]
    odd = {
        name: TEXT
        for name, column in columns.items()
        if not all(
            fits({**column.head, **column.tail}, row[name])
            for row, _ in there
            if row.get(name) is not None
        )
    }
    for row, image in there if odd else ():
        for name in odd.keys() & row.keys():
            if row[name] is not None:
                row[name] = image[name] if name in image else as_text(row[name])
    return {**columns, **odd} if odd else columns


def as_text(value: Any) -> str:
    """A value as text: a placeholder that is an array or a map as its JSON."""
    return value if isinstance(value, str) else to_json(value).decode()


def lacking(required: Iterable[str], rows: Iterable[Pair]) -> tuple[str, ...]:
    """The required columns of which a row has no value.

    >>> lacking(["id", "at"], [(None, None), ({"id": 1, "at": None}, {})])
    ('at',)
    """
    found: tuple[str, ...] = ()
    for row, _ in rows:
        if row is not None:
            for name in required:
                if row.get(name) is None and name not in found:
                    found += (name,)
    return found
