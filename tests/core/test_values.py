"""Canonical text of values."""

from __future__ import annotations

from headgate.core import values


def test_text_without_digits_is_no_number() -> None:
    assert ["E5", ".e5", "+e1"] == [values.plain(t) for t in ("E5", ".e5", "+e1")]
