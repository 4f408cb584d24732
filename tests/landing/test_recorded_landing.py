"""Recorded messages of real producers, landed: the tables equal the server's at the end.

`make torture` lands all of them (tests/torture/test_recordings.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from effort import one_in
from recorded import Recording
from recorded_landing import check_landed
from recordings import RECORDINGS

SOME = (
    "canal17", "canal15", "maxwell122", "maxwell145", "dbz19-default", "dbz35-default",
    "dbz35-noschema", "dbz35-prop", "dbz35-trunc", "dbz35-smt-rewrite", "dbz35-smt-tomb",
    "dbz35-snap2",
)  # fmt: skip
"""Of each producer and version."""


@pytest.mark.parametrize(
    "recording", one_in(6, (r for r in RECORDINGS if r.name in SOME)), ids=lambda r: r.name
)
def test_landed_tables_are_the_servers(recording: Recording, tmp_path: Path) -> None:
    check_landed(recording, tmp_path)
