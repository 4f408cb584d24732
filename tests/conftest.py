from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests."""
    from headgate.session import session

    found = session("local[2]", **{"spark.driver.memory": "2g"})
    yield found
    found.stop()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """With CI=true a skipped test is a failure: a missing component must not look green."""
    if (
        os.environ.get("CI") == "true"
        and call.excinfo
        and call.excinfo.errisinstance(pytest.skip.Exception)
    ):
        raise AssertionError(f"{item.name} was skipped in CI: {call.excinfo.value}")


@pytest.fixture
def cases() -> Path:
    return Path(__file__).parent / "cases"
