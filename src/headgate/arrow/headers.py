"""Headers on their way to a worker and back: as text, because Arrow's nested columns are slow.

A list of structs costs more than all other columns of a message together, also where it is null,
as it mostly is. As JSON, with values in base64, it costs nothing then.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable

import msgspec
import pyarrow as pa

ID_HEADER = "headgate-id"
Headers = tuple[tuple[str, "bytes | None"], ...]
TYPE = "array<struct<key: string, value: binary>>"
TO_TEXT = "CASE WHEN size(headers) > 0 THEN to_json(headers) END"
"""Spark's expression for headers as text."""
FROM_TEXT = f"from_json(headers, '{TYPE}')"


class _Header(msgspec.Struct, omit_defaults=True):
    key: str | None = None
    value: str | None = None


_read = msgspec.json.Decoder(list[_Header]).decode
"""A header without a name is dropped."""


def from_text(text: str | None) -> Headers:
    """Headers from text, without the id that an earlier job added.

    >>> from_text('[{"key":"trace","value":"AQ=="}]')
    (('trace', b'\\x01'),)
    """
    if text is None:
        return ()
    return tuple(
        (h.key, None if h.value is None else b64decode(h.value))
        for h in _read(text)
        if h.key is not None and h.key != ID_HEADER
    )


def to_text(headers: Iterable[tuple[str, bytes | None]]) -> str | None:
    """Headers as text, as Spark writes and reads them.

    >>> to_text([("trace", b"\\x01")]), to_text([])
    ('[{"key":"trace","value":"AQ=="}]', None)
    """
    encoded = [_Header(k, None if v is None else b64encode(v).decode()) for k, v in headers]
    return msgspec.json.encode(encoded).decode() if encoded else None


def header_bytes(headers: Headers) -> int:
    """About how many bytes of a message its headers take, with those for their lengths.

    >>> header_bytes((("trace", b"1"), ("none", None)))
    30
    """
    return sum(len(name.encode()) + len(value or b"") + 10 for name, value in headers)


def texts(column: pa.Array) -> pa.Array:
    """A column of headers as text."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    pairs = (
        [(h["key"], h["value"]) for h in headers or () if h and h["key"] is not None]
        for headers in column.to_pylist()
    )
    return pa.array(map(to_text, pairs), pa.string(), size=len(column))
