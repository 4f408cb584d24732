"""Typed rows: a value that does not match its column type is a misfit."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headgate.arrow.typed_rows import TIME, cast


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("0x10", pa.int64()),
        ("0X1f", pa.int8()),
        ("inf", pa.float64()),
        ("NaN", pa.float64()),
        ("1e400", pa.float64()),
        ("3.5e38", pa.float32()),
        ("0000-01-01", pa.date32()),
        ("0000-01-01 00:00:00", pa.timestamp("us")),
        ("0000-01-01 00:00:00", TIME),
    ],
)
def test_what_mysql_never_writes_is_a_misfit(text: str, type_: pa.DataType) -> None:
    column, misfits = cast(pa.array([None, text, None]), type_)

    assert {1: text} == misfits
    assert [None] * 3 == column.to_pylist()
