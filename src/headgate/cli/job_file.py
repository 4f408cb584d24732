"""The job file that `headgate init` writes: what is needed, what was seen, what else there is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from headgate.config.addresses import is_secret

_LOGIN = re.compile(r"(//[^/@:]+):([^/]+)@")
_VARIABLE = re.compile(r"(?<!\$)\$\{\w+\}")


@dataclass(frozen=True)
class Looked:
    """What a look at a source has shown."""

    uri: str
    reads: tuple[str, ...] = ()
    messages: int = 0
    formats: Mapping[str, int] = field(default_factory=dict)
    """Events by `format:dialect`, the most frequent first."""
    tables: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)

    @property
    def format(self) -> str | None:
        """The format of all messages that could be decoded, if it is one."""
        names = {name.partition(":")[0] for name in self.formats}
        return names.pop() if len(names) == 1 else None

    def lines(self) -> Iterator[str]:
        """What was seen, for people."""
        yield from self.reads
        if self.messages:
            seen = [f"{name} ({n:,} events)" for name, n in self.formats.items()]
            seen += [f"{n:,} x {reason}" for reason, n in self.rejected.items()]
            yield f"{self.messages:,} messages: {', '.join(seen)}"
        if self.tables:
            names = ", ".join(f"{name} ({n:,} events)" for name, n in self.tables.items())
            yield f"tables: {names}"


@dataclass(frozen=True)
class End:
    """A source or a sink, without its secrets."""

    given: str = field(repr=False)
    role: str
    format: str | None = None

    @property
    def uri(self) -> str:
        """The URI, with the names of variables for its secrets.

        >>> End("kafka://me:a$b@h/t?sasl-password=c", "SOURCE").uri
        'kafka://me:${SOURCE_PASSWORD}@h/t?sasl-password=${SOURCE_SASL_PASSWORD}'
        """
        return self._parted[0]

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that get the secrets of the URI, and what each is."""
        return self._parted[1]

    @cached_property
    def _parted(self) -> tuple[str, dict[str, str]]:
        variables: dict[str, str] = {}

        def named(what: str, value: str) -> str:
            if not value or _VARIABLE.fullmatch(value):
                return value
            name = f"{self.role}_{re.sub('[^A-Za-z0-9]', '_', what).upper()}"
            variables[name] = what
            return f"${{{name}}}"

        before, question, query = self.given.partition("?")
        before = _LOGIN.sub(lambda m: f"{m[1]}:{named('password', m[2])}@", before, count=1)
        pairs = [pair.partition("=") for pair in query.split("&")]
        params = (
            f"{name}{equals}{named(name, value) if is_secret(name) else value}"
            for name, equals, value in pairs
        )
        return f"{before}{question}{'&'.join(params)}", variables


def job_file(title: str, looked: Looked, source: End, sink: End, needs_format: bool) -> str:
    """The text of a job file; `needs_format` says whether the source's is to be written."""
    return "\n".join([*_head(title), *_source(looked, source, needs_format), *_rules(looked),
                      *_sink(sink), *_pipeline(title)]) + "\n"  # fmt: skip


def _head(title: str) -> Iterator[str]:
    yield f"# {title}: written by `headgate init`."
    yield "# `headgate lint FILE` checks it, `headgate check FILE` connects too, and"
    yield "# `headgate run FILE` runs it. ${NAME} is taken from the environment."
    yield ""


def _source(looked: Looked, source: End, needs_format: bool) -> Iterator[str]:
    yield "source:"
    yield f"  uri: {_quoted(source.uri)}"
    for line in looked.lines():
        yield f"  # seen: {_plain(line)}"
    if looked.format is not None and needs_format:
        yield f"  format: {looked.format}  # or auto, which looks at each message"
    elif needs_format:
        yield "  format: auto  # or a name of `headgate formats`, which is faster and stricter"
    yield "  # starting: earliest  # where the first start begins"
    yield ""


def _rules(looked: Looked) -> Iterator[str]:
    example = next(iter(looked.tables), "shop.orders")
    yield "# Only some tables, rows and columns; * and ? make a pattern:"
    yield "# tables:"
    yield f"#   include: [{_quoted(example)}]"
    yield "# filter:"
    yield f"#   - table: {_quoted(example)}"
    yield "#     where: id > 0"
    yield "# Other names, of tables and topics:"
    yield "# route:"
    yield f"#   - table: {_quoted(example)}"
    yield '#     to: "other.{table}"'
    yield ""


def _sink(sink: End) -> Iterator[str]:
    yield "sink:"
    yield f"  uri: {_quoted(sink.uri)}"
    if sink.format is not None:
        yield f"  format: {sink.format}"
    yield ""


def _pipeline(title: str) -> Iterator[str]:
    yield "pipeline:"
    yield f"  name: {title}"
    yield f"  checkpoint: ./state/{title}  # the job's progress: keep it"
    yield f"  dead_letters: ./state/{title}/dead-letters  # what could not be processed"
    yield "  # trigger: 5s  # time from one micro-batch to the next"
    yield "  # max_invalid: 1%  # the share of dead letters at which the job stops"
    yield "  # metrics: 9108  # Prometheus"


def _quoted(text: str) -> str:
    """A text as YAML."""
    return json.dumps(text, ensure_ascii=False)


def _plain(text: str) -> str:
    """A text without what would end a comment."""
    return "".join(c if c.isprintable() else "?" for c in text)
