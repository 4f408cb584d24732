"""Makes a message's schema block match its values, so that Kafka's JSON converter reads them.

The converter rejects null in a required field and text in a struct field, and silently reads text
in a number field as 0. Therefore a column with a value that does not match its type is declared as
text in that message, and a column without a value as optional.
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
    """Whether a JSON value matches its declared type.

    >>> fits({"type": "int16"}, 40_000), fits({"type": "string"}, "x"), fits({"type": "bytes"}, "?")
    (False, True, False)
    """
    if value is None:
        return schema.get("optional") is not False
    if isinstance(value, Raw):
        try:
            value = decode(value)
        except MsgspecError:  # more digits than any type allows
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
    return isinstance(value, list) and all(fits(schema["items"], item) for item in value)


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
    """The columns of a message, declared as text where a value does not match the column type.

    Both rows of an update then have canonical text, because they share one schema.

    >>> row = {"id": "x"}
    >>> settle({"id": Column(None, {"type": "int32"})}, [(row, {"id": "x"})])["id"].head
    {'type': 'string'}
    """
    present = [(row, image or {}) for row, image in rows if row is not None]
    mismatched = {
        name: TEXT
        for name, column in columns.items()
        if not all(
            fits({**column.head, **column.tail}, row[name])
            for row, _ in present
            if row.get(name) is not None
        )
    }
    for row, image in present if mismatched else ():
        for name in mismatched.keys() & row.keys():
            if row[name] is not None:
                row[name] = image[name] if name in image else as_text(row[name])
    return {**columns, **mismatched} if mismatched else columns


def as_text(value: Any) -> str:
    """A value as text: a placeholder that is an array or a map as its JSON."""
    return value if isinstance(value, str) else to_json(value).decode()


def missing_values(required: Iterable[str], rows: Iterable[Pair]) -> tuple[str, ...]:
    """The required columns for which a row has no value.

    >>> missing_values(["id", "at"], [(None, None), ({"id": 1, "at": None}, {})])
    ('at',)
    """
    missing: tuple[str, ...] = ()
    for row, _ in rows:
        if row is not None:
            for name in required:
                if row.get(name) is None and name not in missing:
                    missing += (name,)
    return missing
