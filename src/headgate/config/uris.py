"""URIs of sources and sinks: `kafka://`, `file:`, `s3a://`, `stdin:` …, with TiCDC's parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from headgate.codec.decoder import decoder
from headgate.codec.encoder import Encoder, target
from headgate.config.addresses import BODY, Given, masked, take_apart
from headgate.config.job import Sink, Source
from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.options import build, names, spelled
from headgate.core.scalars import Environment, named, size, truth, whole_number
from headgate.formats import MODULES, load, split
from headgate.kafka.client_options import (
    KAFKA_WORDS,
    WRITING_WORDS,
    connection,
    producer,
    refuse_setting,
)
from headgate.selection.routes import MAX_TOPIC, checked_topic
from headgate.spark.filesystem import is_remote

__all__ = ["Given", "masked", "parse_sink", "parse_source"]

_TOPIC_GLOB = re.compile(r"[A-Za-z0-9._*?-]+", re.ASCII)


def parse_source(
    uri: str, given: Given | None = None, base: str | None = None, env: Environment | None = None
) -> Source:
    """A source from its URI; paths are relative to `base`, `${NAME}` is taken from `env`.

    >>> source = parse_source("kafka://h1:9092,h2/cdc-*?protocol=debezium")
    >>> source.topics, source.format, source.kafka["kafka.bootstrap.servers"]
    (('cdc-*',), 'debezium', 'h1:9092,h2:9092')
    """
    env = env or Environment()
    address = take_apart(uri, "source", given or Given(), env)
    params, kind = address.params, address.scheme
    format = params.pop("protocol", "auto")
    split(format)
    starting = _starting(params.pop("starting", "earliest"), kind)
    _known(params, _read_options(format), kind, "source")
    topics: tuple[str, ...] = ()
    kafka: dict[str, str] = {}
    if kind == "kafka":
        topics = _topics(address.path, params.pop("topics", None))
        params.pop("compression", None)  # consumers find out how batches are compressed
        kafka = connection(address.brokers, address.login, params, base, env)
        for word in WRITING_WORDS:
            params.pop(word, None)
    if BODY in params:
        params["compression"] = params.pop(BODY)
    options = _decoding(format, params)
    path = _path(address.path, base) if kind == "file" else None
    return Source(kind, format, options, topics, path, starting, kafka, masked(uri))


def parse_sink(
    uri: str, given: Given | None = None, base: str | None = None, env: Environment | None = None
) -> Sink:
    """A sink from its URI.

    >>> sink = parse_sink("kafka://h/orders?protocol=canal-json&enable-tidb-extension=true")
    >>> sink.format, sink.options
    ('canal-json:ticdc', {'enable_tidb_extension': True, 'topic': 'orders'})
    """
    env = env or Environment()
    address = take_apart(uri, "sink", given or Given(), env)
    params, kind = address.params, address.scheme
    format = _written_format(params)
    _known(params, _write_options(format), kind, "sink")
    kafka: dict[str, str] = {}
    create, replication = True, 1
    if kind == "kafka":
        create = named("auto-create-topic", truth, params.pop("auto-create-topic", "true"))
        copies = params.pop("replication-factor", "1")
        replication = named("replication-factor", lambda n: whole_number(n, 1, 32767), copies)
        kafka = connection(address.brokers, address.login, params, base, env)
        kafka |= producer(params)
        for word in {*WRITING_WORDS, "max-message-bytes"} - _write_options(format):
            params.pop(word, None)  # as in TiCDC, it is for other protocols
        _sink_topic(address.path, params)
    lines = _lines(params.pop("as", None), kind, format)
    if BODY in params:
        params["compression"] = params.pop(BODY)
    options = _encoding(format, params, kind)
    path = _path(address.path, base) if kind == "file" else None
    return Sink(kind, masked(uri), format, options, path, lines, kafka, create, replication)


# Formats and their options


@cache
def _read_options(format: str) -> frozenset[str]:
    """The options of a decoder, as they are spelled in URIs."""
    name = split(format)[0]
    formats = MODULES if name == "auto" else [name]
    found = {spelled(n) for f in formats for n in names(load(f).options)}
    return frozenset(found - {"schema"})


@cache
def _write_options(format: str) -> frozenset[str]:
    """The options of an encoder."""
    return frozenset({spelled(n) for n in names(target(format)[2].options)} - {"schema"})


def _known(params: Mapping[str, str], options: frozenset[str], kind: str, role: str) -> None:
    """Refuse a parameter that neither the transport nor the format has."""
    known = {*options, "protocol"}
    if role == "source":
        known |= {"starting"}
    if kind == "kafka":
        known |= {*KAFKA_WORDS, *WRITING_WORDS}
        known |= {"topics"} if role == "source" else {"auto-create-topic", "replication-factor"}
    if kind == "file" and role == "sink":
        known |= {"as"}
    if "compression" in options:
        known |= {BODY}
    for name in params:
        if name == "schema":
            raise UsageError("a schema is told once for a job, under pipeline: schema: FILE.sql")
        if name.startswith("sasl-gssapi") or name.startswith("sasl-oauth"):
            raise UsageError(
                f"{name} has no equal in Kafka's Java client; pass what it takes, as in "
                "kafka.sasl.mechanism and kafka.sasl.jaas.config"
            )
        if kind == "kafka" and name.startswith("kafka."):
            refuse_setting(name)
        elif name not in known:
            raise unknown_name(f"parameter of a {kind} {role}", name, known)


def _decoding(format: str, params: Mapping[str, str]) -> dict[str, Any]:
    """Options of a decoder, typed and tried."""
    name = split(format)[0]
    options: dict[str, Any] = {}
    for word, text in _sized(params).items():
        owner = next(
            load(f)
            for f in (MODULES if name == "auto" else [name])
            if word.replace("-", "_") in names(load(f).options)
        )
        options |= _typed(owner.options, {word: text})
    decoder(format, **options)
    return options


def _encoding(format: str, params: dict[str, str], kind: str) -> dict[str, Any]:
    """Options of an encoder, typed and tried."""
    _, dialect, encoding = target(format)
    by_key = dialect not in encoding.partition_rules
    rule = params.get("partition", "").strip().lower().replace("_", "-")
    if by_key and rule in ("index-value", "primary-key", "rowid"):
        # Such messages have the primary key as their key, and Kafka goes by it.
        del params["partition"]
    options = _typed(encoding.options, _sized(params))
    tried = dict(options)
    if kind == "kafka" and "partition" in options:
        tried.setdefault("partition_num", 1)  # the broker will say how many there are
    Encoder(format, **tried)
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
            f"a sink names its format: add protocol=…, one of: {', '.join(sorted(MODULES))}"
        )
    name = target(format)[0]
    implied = None if split(format)[1] else load(name).implied_dialect(params)
    return f"{name}:{implied}" if implied else format


def _lines(form: str | None, kind: str, format: str) -> bool:
    if form not in (None, "lines", "parquet"):
        raise UsageError(f"as: {unknown_name('form', str(form), ('lines', 'parquet'))}")
    binary = target(format)[2].binary
    if binary and (form == "lines" or kind == "console"):
        what = "as=lines" if form else "a console"
        raise UsageError(
            f"{format} is binary, and {what} takes text; write it to Kafka or to Parquet"
        )
    return form == "lines"


# Topics and positions


def _topics(path: str, more: str | None) -> tuple[str, ...]:
    """The topics of a source, from the path or the parameter `topics`."""
    if path and more is not None:
        raise UsageError("topics are both in the path and in topics=; name them in one place")
    found = tuple(t.strip() for t in (path or more or "").split(",") if t.strip())
    if not found:
        raise UsageError("the source names no topic; write kafka://HOST:PORT/TOPIC")
    for topic in found:
        if not _TOPIC_GLOB.fullmatch(topic) or len(topic) > MAX_TOPIC or topic in (".", ".."):
            raise UsageError(
                f"no topic is called {shown(topic)}; letters, digits, . _ - are allowed, "
                "* and ? stand for any text and any character"
            )
    if len(set(found)) < len(found):
        raise UsageError("a topic is named twice; name each once")
    return found


def _sink_topic(path: str, params: dict[str, str]) -> None:
    """Put the topic of a sink among its parameters."""
    if path:
        if params.get("topic", path) != path:
            raise UsageError("the topic is both in the path and in topic=; name it in one place")
        params["topic"] = path
    if "topic" in params:
        checked_topic(params["topic"])


def _starting(text: str, kind: str) -> str:
    """Where reading starts the first time."""
    text = text.strip()
    word = {"earliest-offset": "earliest", "latest-offset": "latest"}.get(text, text)
    if kind != "kafka":
        if word != "earliest":
            raise UsageError(f"a {kind} source starts at its beginning; leave starting out")
        return word
    if word in ("earliest", "latest"):
        return word
    if word.startswith("{"):
        try:
            msgspec.json.decode(word, type=dict[str, dict[str, int]])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise UsageError(
                """starting is no JSON of offsets; write it as {"topic":{"0":42,"1":-2}}"""
            ) from None
        return word
    try:
        datetime.fromisoformat(word)
    except ValueError:
        raise unknown_name(
            "starting position", text, ("earliest", "latest", "2024-05-01T08:00:00Z")
        ) from None
    return word


def _path(path: str, base: str | None) -> str:
    """An absolute path."""
    if not path:
        raise UsageError("the URI names no directory; write file:///DIR or file:DIR")
    if is_remote(path):
        return path
    return os.path.normpath(os.path.join(base or os.getcwd(), path))
