"""Memory is bounded, whatever is in the binlog: transactions of many rows, and large rows."""

from __future__ import annotations

from typing import Any

import pytest
from binlog_capture import Capture
from large_changes import fill, large_row
from reading_memory import measured

pytestmark = pytest.mark.slow


def test_a_large_transaction(mysql: Any) -> None:
    """Twice the rows take no more memory."""
    peaks = []
    for rows in (150_000, 300_000):
        capture = Capture(mysql, "headgate_memory")
        start = fill(capture, rows)
        result = measured(mysql, start)
        assert rows == result["rows"]
        peaks.append(result["peak"])
    assert peaks[1] < peaks[0] * 1.25


def test_a_large_row(mysql: Any) -> None:
    """A row of 16 MiB, before and after."""
    capture = Capture(mysql, "headgate_memory")
    result = measured(mysql, large_row(capture, 16))
    assert 2 == result["rows"]
    assert result["peak"] - result["before"] < 16 * 16
