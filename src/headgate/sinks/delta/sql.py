"""SQL of delta-rs: names, literals and conditions. Nothing else puts names or values into SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.codec.sequence import KIND, SNAPSHOT

LONGEST_TEXT = 200
MOST_VALUES = 20
"""Up to so many values are listed; of more the range is given."""


def quoted(name: str, table: str | None = None) -> str:
    """The name of a column.

    >>> quoted("a"), quoted('x"y', "t")
    ('"a"', 't."x""y"')
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"' if table is None else f'{table}."{escaped}"'


def text(value: str) -> str:
    """A text.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def literal(value: Any) -> str | None:
    """A value as SQL; None where it has no sure literal.

    >>> literal(5), literal("a"), literal(date(2024, 5, 1)), literal(b"x")
    ('5', "'a'", "DATE '2024-05-01'", None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return text(value) if value.isprintable() and len(value) <= LONGEST_TEXT else None
    if isinstance(value, Decimal):
        scale = max(-int(value.as_tuple().exponent), 0)
        return f"CAST('{value:f}' AS DECIMAL(38,{scale}))"
    if isinstance(value, date) and not isinstance(value, datetime):
        return f"DATE '{value.isoformat()}'"
    return None


def range_of(column: pa.ChunkedArray, name: str, table: str | None = None) -> str | None:
    """A condition that all of these values satisfy: their range. None where SQL cannot express it.

    >>> range_of(pa.chunked_array([[7, 3]]), "id", "t")
    't."id" >= 3 AND t."id" <= 7'
    """
    if column.null_count or not len(column):
        return None
    try:
        ends = pc.min_max(column).as_py()
    except pa.ArrowNotImplementedError:
        return None
    low, high = literal(ends["min"]), literal(ends["max"])
    if low is None or high is None:
        return None
    column_name = quoted(name, table)
    return f"{column_name} >= {low} AND {column_name} <= {high}"


def among(column: pa.ChunkedArray, name: str) -> str | None:
    """A condition that all of these values satisfy: a list where they are few, or their range.

    >>> among(pa.chunked_array([[7, 3]]), "id"), among(pa.chunked_array([[b"x"]]), "id")
    ('"id" IN (7, 3)', None)
    """
    if not column.null_count and 0 < len(column) <= MOST_VALUES:
        listed = [literal(value) for value in column.to_pylist()]
        if None not in listed:
            return f"{quoted(name)} IN ({', '.join(filter(None, listed))})"
    return range_of(column, name)


def all_of(conditions: Sequence[str | None]) -> str | None:
    """Conditions joined by AND; None where there are none."""
    return " AND ".join(filter(None, conditions)) or None


def supersedes(new: str, landed: str, *, snapshots: bool) -> str:
    """The condition of codec.sequence.supersedes, of two columns of positions.

    `snapshots` says whether `new` may be rows of a snapshot.
    """
    kinds_differ = f"substr({new}, 1, {KIND}) <> substr({landed}, 1, {KIND})"
    newer = f"({kinds_differ} OR {new} >= {landed})"
    if not snapshots:
        return newer
    kind = f"substr({new}, 1, {KIND})"
    compares = (
        f"octet_length({new}) = octet_length({landed}) "
        f"AND substr({new}, {KIND + 1}) >= substr({landed}, {KIND + 1})"
    )
    snapshot = text(SNAPSHOT)
    return f"(({kind} = {snapshot} AND {compares}) OR ({kind} <> {snapshot} AND {newer}))"
