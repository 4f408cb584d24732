"""Every recording of a real producer, landed: the tables equal the server's at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import Recording
from recorded_landing import check_landed
from recordings import RECORDINGS


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_landed_tables_are_the_servers(recording: Recording, tmp_path: Path) -> None:
    check_landed(recording, tmp_path)
