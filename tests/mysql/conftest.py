"""Both servers, and both ways of reading rows."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.mysql import rows
from headgate.mysql.compilation import ROW_LOOPS


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Any:
    """Each of the two servers."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["compiled", "plain"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Rows are read by the compiled loops, or by those that need no Numba."""
    if request.param == "plain":
        monkeypatch.setattr(rows, "_compiled", lambda: None)
    else:
        pytest.importorskip("numba")
        ROW_LOOPS.preparing.join()
    return str(request.param)
