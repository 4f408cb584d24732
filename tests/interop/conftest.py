"""`make interop`: other programs and queues, jobs in S3, on a cluster. Not part of `make test`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from installed import build_wheel

from bench.flink import ENVIRONMENT, Flink, start


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """These tests run only where they are asked for by name."""
    asked = any("interop" in Path(arg.partition("::")[0]).parts for arg in config.args)
    return None if asked else True


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    """One warm Flink process for all tests of a worker."""
    found, why_not = start(ENVIRONMENT, tmp_path_factory.mktemp("flink") / "flink.log")
    if found is None:
        pytest.skip(f"{why_not}; these tests need the package apache-flink")
    yield found
    found.close()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Headgate's wheel, in a folder of its own."""
    return build_wheel(tmp_path_factory.mktemp("dist"))
