"""Canonical text as typed Arrow columns; a value that does not fit its type is reported."""

from __future__ import annotations

from binascii import a2b_base64
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.events import TIME
from headgate.core.values import YEAR_ONE, plain

SIMPLE_TYPES = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": TIME,
    "timestamp_ntz": pa.timestamp("us"),
}
"""Arrow types by their names in Spark SQL, those without parameters."""


def cast(texts: pa.Array, type_: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """A text column in another type, and the texts that do not fit it, by row.

    What Arrow accepts but MySQL never writes is a misfit too: `0x10`, `inf`, the year 0.

    >>> column, misfits = cast(pa.array(["1", "x", None, "0x10"]), pa.int64())
    >>> column.to_pylist(), misfits
    ([1, None, None, None], {1: 'x', 3: '0x10'})
    """
    column = _cast_all(texts, type_)
    if column is not None:
        return column, {}
    # The same few texts are wrong in many rows (zero dates): try each distinct text once.
    distinct = texts.dictionary_encode()
    wrong: list[int] = []
    values = pa.concat_arrays(_cast_parts(distinct.dictionary, type_, 0, wrong))
    rows = pc.indices_nonzero(
        pc.is_in(distinct.indices, value_set=pa.array(wrong, distinct.indices.type))
    )
    misfits = dict(zip(rows.to_pylist(), texts.take(rows).to_pylist()))
    return values.take(distinct.indices), misfits


def _cast_parts(
    texts: pa.Array, type_: pa.DataType, first: int, wrong: list[int]
) -> list[pa.Array]:
    """The cast texts in parts, divided until each part is right or is one wrong text (null)."""
    column = _cast_all(texts, type_)
    if column is not None:
        return [column]
    if len(texts) == 1:
        wrong.append(first)
        return [pa.nulls(1, type_)]
    size = max(1, len(texts) // 16)
    parts: list[pa.Array] = []
    for start in range(0, len(texts), size):
        parts += _cast_parts(texts[start : start + size], type_, first + start, wrong)
    return parts


def _cast_all(texts: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """The texts in another type; None where one of them does not fit."""
    try:
        return _cast(texts, type_)
    except (pa.ArrowException, ValueError):
        return None


def _cast(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_string(type_):
        return texts
    if pa.types.is_binary(type_):
        decoded = [
            None if text is None else a2b_base64(text, strict_mode=True)
            for text in texts.to_pylist()
        ]
        return pa.array(decoded, type_)
    if pa.types.is_decimal(type_):
        return _decimals(texts, type_)
    if pa.types.is_timestamp(type_):
        column = pc.cast(texts, pa.timestamp(type_.unit)).view(type_)
    else:
        column = pc.cast(texts, type_)
    if not _is_sound(texts, column):
        raise ValueError("Arrow accepted an invalid value")
    return column


def _is_sound(texts: pa.Array, column: pa.Array) -> bool:
    type_ = column.type
    if pa.types.is_integer(type_):
        text = _bytes(texts)
        return b"x" not in text and b"X" not in text
    if pa.types.is_floating(type_):
        return pc.all(pc.is_finite(column)).as_py() is not False
    if pa.types.is_timestamp(type_):
        first = pc.min(column.cast(pa.int64())).as_py()
        return first is None or first >= YEAR_ONE
    if pa.types.is_date32(type_):
        first = pc.min(column.cast(pa.int32())).as_py()
        return first is None or first >= YEAR_ONE // 86_400_000_000
    return True


def _decimals(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decimals; Arrow casts only those whose digits have room in the type.

    Beyond that it wraps around without an error (39 nines are a negative number), and a large
    negative exponent crashes the process.
    """
    whole_digits, scale = type_.precision - type_.scale, type_.scale
    if _have_room(texts, whole_digits, scale):
        return pc.cast(texts, type_)
    exact = [
        None if text is None else _exact_decimal(text, whole_digits, scale)
        for text in texts.to_pylist()
    ]
    return pa.array(exact, type_)


def _have_room(texts: pa.Array, whole_digits: int, scale: int) -> bool:
    """Whether no text has more characters before or after its point than the type has digits."""
    text = _bytes(texts)
    if b"e" in text or b"E" in text:
        return False
    length, point = pc.binary_length(texts), pc.find_substring(texts, ".")
    before = pc.if_else(pc.less(point, 0), length, point)
    unsigned = pc.subtract(before, pc.cast(pc.starts_with(texts, "-"), pa.int32()))
    most_before = pc.max(unsigned).as_py() or 0
    most_behind = (pc.max(pc.subtract(length, before)).as_py() or 1) - 1
    return most_before <= whole_digits and most_behind <= scale


def _exact_decimal(text: str, whole_digits: int, scale: int) -> Decimal:
    """A number of at most so many digits; ValueError where it has more, or is none.

    >>> _exact_decimal("-0001.5000", 1, 1), _exact_decimal("12e-1", 1, 1)
    (Decimal('-1.5'), Decimal('1.2'))
    """
    number = plain(text)
    minus = "-" if number.startswith("-") else ""
    whole, _, fraction = number.removeprefix(minus or "+").partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("no number")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    if len(whole) > whole_digits or len(fraction) > scale:
        raise ValueError("too many digits")
    return Decimal(f"{minus}{whole or 0}{fraction and '.'}{fraction}")


def _bytes(texts: pa.Array) -> bytes:
    """All texts in one piece; of a slice, its own."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return b""
    ends = memoryview(offsets).cast("i")
    content = memoryview(data)[ends[texts.offset] : ends[texts.offset + len(texts)]]
    return content.tobytes()
