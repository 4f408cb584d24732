"""Fixtures of the tests that need a server or a connector."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from connector_cases import World
from datahub_server import DataHubServer
from effort import use_share
from kafka_broker import Broker
from mariadb_server import MariaDB
from rocketmq_server import Server
from s3_server import S3Server

from headgate.core.errors import UsageError

use_share()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One real broker for all tests; without its parts they skip, which CI counts as a failure."""
    try:
        found = Broker()
    except UsageError as error:
        warnings.warn(f"NOT TESTED, no Kafka broker: {error}", stacklevel=1)
        pytest.skip(f"no Kafka broker: {error}")
    with found:
        yield found


@pytest.fixture(scope="session")
def rocketmq() -> Iterator[Server]:
    """One RocketMQ for all tests; without its parts they skip, which CI counts as a failure."""
    with rocketmq_server(tls=True) as found:
        yield found


@pytest.fixture(scope="session")
def rocketmq_acl() -> Iterator[Server]:
    """One with users and permissions."""
    with rocketmq_server(acl=True) as found:
        yield found


def rocketmq_server(**options: bool) -> Server:
    try:
        return Server(**options)
    except UsageError as error:
        warnings.warn(f"NOT TESTED, no RocketMQ: {error}", stacklevel=1)
        pytest.skip(f"no RocketMQ: {error}")


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """One MariaDB for all tests; without its parts they skip, which CI counts as a failure."""
    try:
        found = MariaDB().__enter__()
    except UsageError as error:
        warnings.warn(f"NOT TESTED, no MariaDB: {error}", stacklevel=1)
        pytest.skip(f"no MariaDB: {error}")
    yield found
    found.__exit__()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3 server for all tests."""
    with S3Server() as found:
        yield found


@pytest.fixture(scope="session")
def datahub() -> Iterator[DataHubServer]:
    """One DataHub for all tests that write to topics of their own."""
    if find_spec("datahub") is None:
        warnings.warn("NOT TESTED, no pydatahub: pip install 'headgate[datahub]'", stacklevel=1)
        pytest.skip("no pydatahub")
    with DataHubServer() as found:
        yield found


@pytest.fixture(scope="session")
def deltalake() -> ModuleType:
    """delta-rs; without it tests skip, which CI counts as a failure."""
    if find_spec("deltalake") is None:
        warnings.warn("NOT TESTED, no deltalake: pip install 'headgate[delta]'", stacklevel=1)
        pytest.skip("no deltalake")
    return import_module("deltalake")


@pytest.fixture
def world(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    """What the contracts of sources and sinks have at hand."""
    return World(tmp_path, request.getfixturevalue, capsysbinary, monkeypatch)
