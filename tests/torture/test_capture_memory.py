"""Memory of reading the largest that a binlog is meant to have."""

from __future__ import annotations

from typing import Any

from binlog_capture import Capture
from large_changes import fill, large_row
from reading_memory import measured

MOST = 600
"""MiB of a process that reads: 440 were seen."""


def test_a_transaction_of_a_million_rows(mysql: Any) -> None:
    result = measured(mysql, fill(Capture(mysql, "headgate_memory"), 1_000_000))
    assert 1_000_000 == result["rows"]
    assert result["peak"] < MOST


def test_a_row_of_64_mebibytes(mysql: Any) -> None:
    """And its update, which has it twice."""
    result = measured(mysql, large_row(Capture(mysql, "headgate_memory"), 64))
    assert 2 == result["rows"]
    assert result["peak"] - result["before"] < 64 * 16
