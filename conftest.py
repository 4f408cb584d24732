"""Fixtures that tests and docstring examples share."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestItem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEED_SPARK = (
    "headgate.spark.api",
    "headgate.spark.session",
    "headgate.spark.user_session",
    "headgate.landing.rows",
    "headgate.cli.on_spark",
    "headgate.pipeline.land",
)


os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")  # no test runs for long


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests."""
    from kafka_broker import connector_settings

    from headgate.spark.session import session

    found = session("local[2]", {"spark.driver.memory": "2g"} | connector_settings())
    yield found
    found.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts a JVM; a test that does so in another process says it itself."""
    for item in items:
        needed = {"spark", "broker", "rocketmq_client"} & set(getattr(item, "fixturenames", ()))
        if needed or (isinstance(item, DoctestItem) and item.name.startswith(NEED_SPARK)):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(autouse=True)
def _session_for_examples(
    request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]
) -> None:
    """Docstring examples of the Spark functions run against the real thing."""
    if isinstance(request.node, DoctestItem) and request.node.name.startswith(NEED_SPARK):
        doctest_namespace["spark"] = request.getfixturevalue("spark")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true a skipped test is a failure: a missing component must not look green."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which CI does not allow: {report.longrepr}"
    return report
