"""What every source and sink does with its URI: wrong options are refused, secrets stay here."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

import pytest

from headgate.config.job import Sink, Source, TableSink
from headgate.config.uris import parse_sink, parse_source
from headgate.core.connectors import Registry
from headgate.core.errors import UsageError
from headgate.core.options import spelled
from headgate.sinks import SINKS
from headgate.sources import SOURCES


@pytest.mark.parametrize("uri", ["delta:lake", "delta://lake/x", "delta+s3a://bucket/x"])
def test_a_lake_as_a_source_is_told_to_be_a_sink(uri: str) -> None:
    with pytest.raises(UsageError, match="is no source; it is a sink of tables"):
        parse_source(uri)


class Role(NamedTuple):
    """Sources or sinks."""

    registry: Registry[Any]
    parse: Callable[[str], Source | Sink | TableSink]
    query: str
    """What a URI has to say anyway."""
    format_option: str
    """An option of the format, which the same URI takes."""

    def uri(self, scheme: str, host: str) -> str:
        uri = self.registry.example(scheme)
        if "@" in host:
            uri = uri.replace("USER:PASSWORD@", "")
        uri = uri.replace("HOST:PORT", host)
        return f"{uri}?{self.query}" if self.has_format(scheme) else f"{uri}?"

    def has_format(self, scheme: str) -> bool:
        cls = self.registry.load(scheme)
        return "messages" == getattr(cls, "takes", getattr(cls, "gives", "messages"))


ROLES = [
    Role(SOURCES, parse_source, "protocol=auto", "timezone"),
    Role(SINKS, parse_sink, "protocol=debezium", "partition-columns"),
]
CONNECTORS = [
    pytest.param(role, scheme, id=f"{scheme}-{role.registry.role}")
    for role in ROLES
    for scheme in role.registry.names()
]
WITH_LOGIN = [
    each
    for each in CONNECTORS
    for role, scheme in [each.values]
    if role.registry.load(scheme).authority == "hosts"
]


@pytest.mark.parametrize(("role", "scheme"), CONNECTORS)
def test_a_wrong_option_is_refused_by_name_with_the_nearest(role: Role, scheme: str) -> None:
    cls = role.registry.load(scheme)
    options = [spelled(f.name) for f in fields(cls.Options) if len(f.name) > 4]
    if role.has_format(scheme):
        options.append(role.format_option)
    for option in options:
        wrong = f"{option[:-2]}{option[-1]}{option[-2]}"
        with pytest.raises(UsageError) as caught:
            role.parse(f"{role.uri(scheme, 'h:1')}&{wrong}=1")
        said = f"unknown parameter of a {cls.name} {role.registry.role} '{wrong}'"
        assert said in str(caught.value)
        assert f"did you mean '{option}'?" in str(caught.value)


@pytest.mark.parametrize(("role", "scheme"), WITH_LOGIN)
def test_workers_get_no_secrets(role: Role, scheme: str) -> None:
    parsed = role.parse(role.uri(scheme, "me:hunter2@h:1"))

    assert b"hunter2" in pickle.dumps(parsed.connector)
    assert "hunter2" not in repr(parsed)
    assert b"hunter2" not in pickle.dumps(parsed.connector.for_workers())
