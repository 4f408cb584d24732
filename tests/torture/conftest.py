"""`make torture`: jobs that are killed. Not part of `make test`: each kill is a start of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """These tests run only where they are asked for by name."""
    asked = any("torture" in Path(arg.partition("::")[0]).parts for arg in config.args)
    return None if asked else True
