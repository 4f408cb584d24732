"""Splicing from the first message on, which jobs only begin after some thousand."""

from __future__ import annotations

import pytest

from headgate.fastpath import compilation, convert, splicer


def splice_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splice as soon as two messages look alike, with nothing known from before."""
    compilation.SPLICING.preparing.join()
    monkeypatch.setattr(convert, "WARM", 0)
    monkeypatch.setattr(splicer, "ENOUGH", 2)
    monkeypatch.setattr(convert, "_splicers", {})
