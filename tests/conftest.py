"""Fixtures of the tests that need a server or a connector."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TypeVar

import pytest
from connector_cases import World
from datahub_server import DataHubServer
from effort import use_share
from kafka_broker import Broker
from mariadb_server import MariaDB, from_jar
from mysql_server import MySQL
from rocketmq_server import Server
from s3_server import S3Server

from headgate.core.errors import UsageError

T = TypeVar("T")

use_share()


def skip(component: str, reason: object) -> NoReturn:
    """Skip, loudly, a test whose component is missing; CI counts it as a failure."""
    warnings.warn(f"NOT TESTED, no {component}: {reason}", stacklevel=1)
    pytest.skip(f"no {component}: {reason}")


def made(component: str, make: Callable[[], T]) -> T:
    """What `make` makes, or skip the test, where its parts cannot be had."""
    try:
        return make()
    except UsageError as error:
        skip(component, error)


def library(module: str, extra: str) -> ModuleType:
    """The library of an extra, or skip the test."""
    if find_spec(module) is None:
        skip(module, f"pip install 'headgate[{extra}]'")
    return import_module(module)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One real broker for all tests."""
    with made("Kafka broker", Broker) as server:
        yield server


@pytest.fixture(scope="session")
def rocketmq() -> Iterator[Server]:
    """One RocketMQ for all tests."""
    with made("RocketMQ", lambda: Server(tls=True)) as server:
        yield server


@pytest.fixture(scope="session")
def rocketmq_acl() -> Iterator[Server]:
    """One with users and permissions."""
    with made("RocketMQ", lambda: Server(acl=True)) as server:
        yield server


@pytest.fixture(scope="session")
def rocketmq_client() -> ModuleType:
    """JPype with RocketMQ's Java client loaded."""
    from headgate.rocketmq import jvm

    return made("RocketMQ client", jvm.start)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """One MariaDB for all tests."""
    with made("MariaDB", lambda: MariaDB().start()) as server:
        yield server


@pytest.fixture(scope="session")
def new_mariadb() -> Iterator[MariaDB]:
    """One MariaDB 11 for all tests."""
    with made("MariaDB 11", lambda: MariaDB(from_jar()).start()) as server:
        yield server


@pytest.fixture(scope="session")
def mysql() -> Iterator[MySQL]:
    """One MySQL 8.0 for all tests."""
    with made("MySQL", lambda: MySQL().start()) as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3 server for all tests."""
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def datahub() -> Iterator[DataHubServer]:
    """One DataHub for all tests that write to topics of their own."""
    library("datahub", "datahub")
    with DataHubServer() as server:
        yield server


@pytest.fixture(scope="session")
def deltalake() -> ModuleType:
    """delta-rs."""
    return library("deltalake", "delta")


@pytest.fixture
def world(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    """What the contracts of sources and sinks have at hand."""
    return World(tmp_path, request.getfixturevalue, capsysbinary, monkeypatch)
