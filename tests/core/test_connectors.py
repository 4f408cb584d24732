"""Connectors are registered by the scheme of their URI; nothing else asks which one a job uses."""

from __future__ import annotations

import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner

import headgate.core.connectors as connectors
from headgate.cli.main import cli
from headgate.config.uris import parse_sink, parse_source
from headgate.core.connectors import Address, Entry, Registry
from headgate.core.errors import UsageError
from headgate.core.options import names, spelled
from headgate.sinks import SINKS
from headgate.sinks.base import MessageSink, TableSink
from headgate.sinks.console import ConsoleSink
from headgate.sources import SOURCES
from headgate.sources.base import Source

SOURCE = Path(connectors.__file__).parents[1]
REGISTRIES: list[Registry[Any]] = [SOURCES, SINKS]


class Tables(TableSink):
    name = "tables"
    summary = "a sink of tables"
    promise = "exactly-once"

    @classmethod
    def from_uri(cls, address: Address, format_options: dict[str, str]) -> Self:
        return cls()


class Events(Source):
    name = "events"
    summary = "a source of events"
    gives = "events"

    @classmethod
    def from_uri(cls, address: Address) -> Self:
        return cls()


def test_every_registered_class_loads_and_says_what_it_is() -> None:
    for registry in REGISTRIES:
        for scheme in registry.schemes():
            cls = registry.load(scheme)
            assert cls.summary
            assert registry.example(scheme).startswith(scheme)
            assert cls.authority in ("hosts", "path", "none")
            if registry is SINKS:
                assert cls.promise in ("exactly-once", "at-least-once")


def test_what_is_missing_is_named_with_the_command_that_installs_it() -> None:
    entry = Entry("no_such_module:Sink", "x://HOST", "pip install 'headgate[x]'")
    registry: Registry[Any] = Registry("sink", {"x": entry}, dash="x")

    with pytest.raises(UsageError, match="No module named 'no_such_module'; pip install 'headgate"):
        registry.load("x")
    with pytest.raises(UsageError, match="unknown scheme of a sink 'xx'; did you mean 'x'"):
        registry.load("xx")


def test_packages_register_connectors_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = [
        EntryPoint("loud", "headgate.sinks.console:ConsoleSink", "headgate.sinks"),
        EntryPoint("kafka", "headgate.sinks.console:ConsoleSink", "headgate.sinks"),
        EntryPoint("tables", f"{__name__}:Tables", "headgate.sinks"),
        EntryPoint("events", f"{__name__}:Events", "headgate.sources"),
    ]
    monkeypatch.setattr(
        connectors, "entry_points", lambda group: [p for p in plugins if p.group == group]
    )

    assert isinstance(parse_sink("loud:?protocol=maxwell").connector, ConsoleSink)
    assert "kafka" == parse_sink("kafka://h/t?protocol=maxwell").connector.name  # not replaced
    assert isinstance(parse_sink("tables:").connector, Tables)
    assert "events" == parse_source("events:").connector.name
    with pytest.raises(UsageError, match="events gives changes, which have no format"):
        parse_source("events:?protocol=maxwell")
    with pytest.raises(UsageError, match="did you mean 'loud'"):
        parse_sink("luod:?protocol=maxwell")
    with pytest.raises(UsageError, match="unknown scheme of a source"):
        parse_source("loud:")


def test_a_format_that_its_producers_write_to_kafka_only_is_refused_by_a_sink_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parse_sink("console:?protocol=maxwell")
    monkeypatch.setattr(ConsoleSink, "any_format", False)

    parse_sink("console:?protocol=debezium")
    with pytest.raises(UsageError, match=r"the producers of maxwell:oms .*allow-any-format=true"):
        parse_sink("console:?protocol=maxwell:oms")


def test_the_command_lists_connectors_with_all_their_options() -> None:
    listed = json.loads(CliRunner().invoke(cli, ["connectors", "--json"]).output)

    assert [(r.role, n) for r in REGISTRIES for n in r.names()] == [
        (each["role"], each["connector"]) for each in listed
    ]
    for each in listed:
        registry = SOURCES if each["role"] == "source" else SINKS
        declared = names(registry.load(each["connector"]).Options)
        assert set(map(spelled, declared)) == {option["name"] for option in each["options"]}
        assert all(option["help"] for option in each["options"])
    text = CliRunner().invoke(cli, ["connectors", "kafka"]).output
    assert "kafka source" in text
    assert "writes at-least-once" in text
    assert "file" not in {line.partition(" ")[0] for line in text.splitlines()}


def test_an_unknown_connector_is_refused_with_the_nearest() -> None:
    result = CliRunner().invoke(cli, ["connectors", "kafak"])

    assert "did you mean 'kafka'" in str(result.exception)


def test_the_options_of_message_sinks_have_defaults_that_an_encoder_has() -> None:
    for scheme in SINKS.schemes():
        cls = SINKS.load(scheme)
        if cls.takes == "messages":
            own = {spelled(name) for name in names(cls.Options)}
            assert not cls.passed_on - own
            assert not cls.tolerated & own


TRANSPORTS = "|".join(sorted({cls.load(n).name for cls in REGISTRIES for n in cls.names()}))
ASKED = re.compile(
    rf"""(==|!=|\bin\b|\bcase\b)\s*\(?["']({TRANSPORTS})["']|["']({TRANSPORTS})["']\s*(==|!=|in\b)"""
    rf"""|isinstance\([^)]*\b(Kafka|RocketMQ|File|Console|Stdin)(Source|Sink|Reader|Writer)\b"""
    rf"""|from headgate\.(kafka|rocketmq|sources\.(kafka|rocketmq|stdin))\b"""
    rf"""|from headgate\.sinks\.(kafka|rocketmq|console)\b"""
)
PACKAGES = [
    f"{room}{name}/"
    for room in ("", "sources/", "sinks/")
    for name in ("kafka", "mysql", "rocketmq")
]
OWN = (*PACKAGES, "sources/stdin.py", "sinks/console.py")


def test_no_transport_is_asked_for_by_name_outside_its_package() -> None:
    asked = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not str(path.relative_to(SOURCE)).startswith((*OWN, "formats/"))  # of binlog files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if ASKED.search(line)
    ]

    assert [] == asked


def test_a_sink_needs_little_to_be_one() -> None:
    class Smallest(MessageSink):
        name = "smallest"
        summary = "nothing"
        promise = "at-least-once"

    sink = Smallest()
    assert (None, (), None, False) == (
        sink.max_bytes,
        sink.jars,
        sink.place("t"),
        sink.uses_topics,
    )
    assert sink is sink.for_workers()
