"""Statistics of files, by which readers skip them: only those that delta-rs notes exactly.

It notes the range of a decimal as doubles. A reader would skip a file that has the value it looks
for, so files have no range of a column whose values may not be exact in that form: decimals with
more than 15 digits, unless they are whole numbers (BIGINT UNSIGNED) and all below 2^53. Columns
with larger ones are noted in the table's properties before the first is written.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import ColumnProperties, WriterProperties

EXACT_DIGITS = 15
"""So many digits of a decimal are exact as a double."""
LARGEST = Decimal(2**53)
TEXT_CHARACTERS = 128
"""Positions are longer than what delta-rs notes of a text by itself."""


def is_exact(type_: pa.DataType) -> bool:
    """Whether ranges of a column are exact, whatever its values are.

    >>> is_exact(pa.int64()), is_exact(pa.decimal128(12, 2)), is_exact(pa.decimal128(20, 0))
    (True, True, False)
    """
    return not pa.types.is_decimal(type_) or type_.precision <= EXACT_DIGITS


def whole_numbers(schema: pa.Schema) -> list[str]:
    """The columns of which ranges are exact as long as no value is large.

    >>> whole_numbers(pa.schema([("a", pa.decimal128(20, 0)), ("b", pa.decimal128(20, 2))]))
    ['a']
    """
    return [each.name for each in schema if not is_exact(each.type) and not each.type.scale]


def large_columns(rows: pa.Table) -> list[str]:
    """The columns of rows that have large whole numbers."""
    large = []
    for name in whole_numbers(rows.schema):
        ends = pc.min_max(rows.column(name)).as_py()
        if any(end is not None and abs(end) >= LARGEST for end in ends.values()):
            large.append(name)
    return large


def writer_properties(
    schema: pa.Schema, large: Collection[str], *, dictionaries: bool = True
) -> WriterProperties:
    """How files of a table are written, some of whose columns have large numbers.

    Dictionaries take a quarter of the time of a merge; files that stay have them.
    """
    small = set(whole_numbers(schema)) - set(large)
    without = [e.name for e in schema if not is_exact(e.type) and e.name not in small]
    none = ColumnProperties(dictionary_enabled=dictionaries, statistics_enabled="NONE")
    return WriterProperties(
        compression="SNAPPY",
        statistics_truncate_length=TEXT_CHARACTERS,
        default_column_properties=ColumnProperties(dictionary_enabled=dictionaries),
        column_properties=dict.fromkeys(without, none) or None,
    )
