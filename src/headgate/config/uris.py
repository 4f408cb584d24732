"""URIs of sources and sinks: `kafka://`, `file:`, `s3a://`, `stdin:` …, with TiCDC's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder, target
from headgate.config.addresses import BODY, Given, masked, take_apart
from headgate.config.job import Sink, Source, TableSink
from headgate.core.connectors import Address
from headgate.core.errors import UsageError, unknown_name
from headgate.core.options import build, names, spelled
from headgate.core.scalars import Environment, named, size
from headgate.formats import load, registered, split, writable
from headgate.sinks import SINKS
from headgate.sinks import base as sinks
from headgate.sources import SOURCES
from headgate.sources import base as sources

__all__ = ["Given", "masked", "parse_sink", "parse_source"]


def parse_source(
    uri: str, given: Given | None = None, base: str | None = None, env: Environment | None = None
) -> Source:
    """A source from its URI; paths are relative to `base`, `${NAME}` is taken from `env`.

    >>> source = parse_source("kafka://h1:9092,h2/cdc-*?protocol=debezium")
    >>> source.connector.name, source.format
    ('kafka', 'debezium')
    """
    given = given or Given()
    address = take_apart(uri, SOURCES, given, base, env or Environment())
    cls = SOURCES.load(address.scheme)
    _check_nulls(given.nulls, cls.Options)
    if cls.gives == "events":
        return Source(_event_source(address, cls), name=masked(uri))
    params = dict(address.params)
    format = ":".join(filter(None, split(params.pop("protocol", "auto"))))
    known = _read_options(format)
    _check_names(params, cls, known | {"protocol"}, "source")
    connector_params, rest = _divided(params, cls)
    options = {n: v for n, v in rest.items() if n in known or n == BODY}
    connector = cls.from_uri(replace(address, params=connector_params))
    if BODY in options:
        options["compression"] = options.pop(BODY)
    return Source(connector, format, _decoding(format, options), masked(uri))


def parse_sink(
    uri: str, given: Given | None = None, base: str | None = None, env: Environment | None = None
) -> Sink | TableSink:
    """A sink from its URI; one of tables has no format.

    >>> sink = parse_sink("kafka://h/orders?protocol=canal-json&enable-tidb-extension=true")
    >>> sink.format, sink.options
    ('canal-json:ticdc', {'enable_tidb_extension': True, 'topic': 'orders'})
    """
    given = given or Given()
    address = take_apart(uri, SINKS, given, base, env or Environment())
    cls = SINKS.load(address.scheme)
    _check_nulls(given.nulls, cls.Options)
    if cls.takes == "tables":
        return TableSink(_table_sink(address, cls), masked(uri))
    params = dict(address.params)
    format = _written_format(params)
    known = _write_options(format)
    _check_names(params, cls, known | {"protocol"}, "sink")
    connector_params, rest = _divided(params, cls)
    options = {n: v for n, v in rest.items() if n in known or n == BODY}
    options |= {n: connector_params[n] for n in cls.passed_on & known & connector_params.keys()}
    connector = cls.from_uri(replace(address, params=connector_params), options)
    encoding = target(format)[2]
    if encoding.kafka_only and not connector.any_format:
        raise UsageError(
            f"the producers of {format} write it to Kafka only, and readers of {cls.name} do not "
            "expect it; choose another format, or set allow-any-format=true"
        )
    if encoding.binary and connector.text_only is not None:
        raise UsageError(
            f"{format} is binary, and {connector.text_only} takes text; "
            "write it to a queue or to Parquet"
        )
    if BODY in options:
        options["compression"] = options.pop(BODY)
    return Sink(connector, masked(uri), format, _encoding(format, options, connector))


def _event_source(address: Address, cls: type[sources.Source]) -> sources.Source:
    if "protocol" in address.params:
        raise UsageError(f"{cls.name} gives changes, which have no format; remove protocol=…")
    _check_names(address.params, cls, frozenset(), "source")
    return cls.from_uri(address)


def _table_sink(address: Address, cls: type[sinks.TableSink]) -> sinks.TableSink:
    if "protocol" in address.params:
        raise UsageError(f"{cls.name} lands tables, which have no format; remove protocol=…")
    _check_names(address.params, cls, frozenset(), "sink")
    return cls.from_uri(address, {})


def _divided(
    params: Mapping[str, str], cls: type[sources.Source] | type[sinks.MessageSink]
) -> tuple[dict[str, str], dict[str, str]]:
    """The parameters of a connector, and those of the format."""
    options = {spelled(name) for name in names(cls.Options)}
    prefix = cls.settings_prefix
    mine = {n for n in params if n in options or (prefix is not None and n.startswith(prefix))}
    return (
        {n: v for n, v in params.items() if n in mine},
        {n: v for n, v in params.items() if n not in mine},
    )


# Formats and their options


@cache
def _read_options(format: str) -> frozenset[str]:
    """The options of a decoder, as they are spelled in URIs."""
    name = split(format)[0]
    formats = registered() if name == "auto" else [name]
    options = {spelled(n) for f in formats for n in names(load(f).options)}
    return frozenset(options - {"schema"})


@cache
def _write_options(format: str) -> frozenset[str]:
    """The options of an encoder."""
    return frozenset({spelled(n) for n in names(target(format)[2].options)} - {"schema"})


def _check_names(
    params: Mapping[str, str],
    cls: type[sources.Source] | type[sinks.MessageSink] | type[sinks.TableSink],
    options: frozenset[str],
    role: str,
) -> None:
    """Reject a parameter that neither the connector nor the format has."""
    known = {*options, *map(spelled, names(cls.Options)), *cls.tolerated}
    if "compression" in options:
        known |= {BODY}
    for name in params:
        if name == "schema":
            raise UsageError("the schema is set once for the job, under pipeline: schema: FILE.sql")
        if cls.settings_prefix is not None and name.startswith(cls.settings_prefix):
            continue
        if name not in known:
            for prefix, remedy in cls.unsupported.items():
                if name.startswith(prefix):
                    raise UsageError(f"{name} {remedy}")
            raise unknown_name(f"parameter of a {cls.name} {role}", name, known)


def _check_nulls(given: Iterable[str], options: Any) -> None:
    """Reject a parameter without a value; of some options `null` is a value."""
    values = {spelled(each.name): each.metadata.get("choices", ()) for each in fields(options)}
    for name in given:
        if "null" not in values.get(spelled(name), ()):
            raise UsageError(f"{name} has no value; fill it or leave it out")


def _decoding(format: str, params: Mapping[str, str]) -> dict[str, Any]:
    """The options of a decoder, typed and checked."""
    name = split(format)[0]
    options: dict[str, Any] = {}
    for word, text in _sized(params).items():
        owner = next(
            load(f)
            for f in (registered() if name == "auto" else [name])
            if word.replace("-", "_") in names(load(f).options)
        )
        options |= _typed(owner.options, {word: text})
    decoder(format, **options)
    return options


def _encoding(format: str, params: dict[str, str], connector: sinks.MessageSink) -> dict[str, Any]:
    """The options of an encoder, typed and checked."""
    _, dialect, encoding = target(format)
    by_key = dialect not in encoding.partition_rules
    rule = params.get("partition", "").strip().lower().replace("_", "-")
    if by_key and rule in ("index-value", "primary-key", "rowid"):
        # Such messages have the primary key as their key, and Kafka goes by it.
        del params["partition"]
    options = _typed(encoding.options, _sized(params))
    Encoder(format, **Sink(connector, "", format, options).encoder_options())
    return options


def _sized(params: Mapping[str, str]) -> dict[str, str]:
    """Parameters, sizes among them as plain numbers."""
    return {n: str(named(n, size, v)) if n == "max-message-bytes" else v for n, v in params.items()}


def _typed(cls: type, params: Mapping[str, str]) -> dict[str, Any]:
    made: Any = build(cls, params)
    return {name: getattr(made, name) for name in (n.replace("-", "_") for n in params)}


def _written_format(params: dict[str, str]) -> str:
    """The format that a sink names, with the dialect that its options imply."""
    format = params.pop("protocol", None)
    if format is None:
        raise UsageError(
            f"a sink needs a format: add protocol=…, one of: {', '.join(sorted(writable()))}"
        )
    name = target(format)[0]
    dialect = split(format)[1] or load(name).implied_dialect(params)
    return f"{name}:{dialect}" if dialect else name
