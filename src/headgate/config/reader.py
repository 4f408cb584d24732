"""Job files and command lines to jobs; what is wrong is refused with its line."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from headgate.codec.schemas import Schemas
from headgate.config.conflicts import check_job
from headgate.config.job import Job, Sink, Source
from headgate.config.overrides import SECTIONS, override, put
from headgate.config.uris import Given, check_topic_template, masked, parse_sink, parse_source
from headgate.config.yaml_lines import MAX_BYTES, Node, read_yaml
from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.scalars import Environment, duration, share, truth, whole_number
from headgate.selection.columns import Columns, Projection
from headgate.selection.filters import OPS, Filter
from headgate.selection.flink import flink_glob, flink_regex, projection, replace_symbol
from headgate.selection.globs import split_glob
from headgate.selection.routes import Route, check_route
from headgate.selection.statements import DDL_OPS, Ddl
from headgate.selection.tables import Tables
from headgate.spark import filesystem

T = TypeVar("T")

PIPELINE = (
    "name", "checkpoint", "trigger", "heartbeat", "dead_letters", "max_invalid", "max_messages",
    "remember", "redact", "schema", "metrics", "spark",
)  # fmt: skip
_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_HOST_PORT = re.compile(r"(?:([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):)?(\d{1,5})", re.ASCII)
_MOST_SCHEMA_BYTES = 64 * 1024 * 1024


class _Located(UsageError):
    """An error that says already where it is."""


def load_job(
    path: str | os.PathLike[str],
    overrides: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Job:
    """The job that a file describes. Overrides have dotted keys, such as `pipeline.trigger`.

    Relative paths are relative to the file.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            root = read_yaml(file.read(MAX_BYTES + 1), name)
    except OSError as error:
        raise UsageError(f"{name}: the job file cannot be read: {error.strerror}") from None
    if root.missing:
        raise UsageError(f"{name}:1: the file is empty; a job has a source and a sink")
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem).strip("-._") or "job"
    return _Reader(os.path.dirname(os.path.abspath(name)), environment).job(root, overrides, stem)


def job_of(
    source: str,
    sinks: Sequence[str],
    overrides: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Job:
    """The job of `headgate run --from URI --to URI`; its name is made of the URIs.

    >>> job_of("in", ["file:out?protocol=debezium"]).sinks[0].format
    'debezium'
    """
    root = Node({}, "the command line")
    put(root, "source", Node({"uri": Node(source, "--from")}, "--from"))
    outputs = [Node({"uri": Node(uri, "--to")}, "--to") for uri in sinks]
    if outputs:
        put(root, "sink", Node(list(outputs), "--to"))
    told = "\n".join(masked(uri) for uri in (source, *sinks))
    name = f"run-{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return _Reader(os.getcwd(), environment).job(root, overrides, name)


class _Reader:
    """Turns the nodes of a job into its dataclasses."""

    def __init__(self, base: str, environment: Mapping[str, str] | None) -> None:
        self.base = base
        self.env = Environment(os.environ if environment is None else environment)

    @contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Say of errors where they are, and hide what came from the environment."""
        try:
            yield
        except _Located:
            raise
        except UsageError as error:
            raise _Located(f"{where}: {self.env.scrubbed(str(error))}") from None

    def wrong(self, node: Node, what: str) -> UsageError:
        return _Located(f"{node.where}: {self.env.scrubbed(what)}")

    # The whole

    def job(self, root: Node, overrides: Mapping[str, str] | None, name: str) -> Job:
        """The job, every value checked."""
        for key, value in (overrides or {}).items():
            with self.at(f"--set {key}" if key.isprintable() else "--set"):
                override(root, key, value)
        sections = self.mapping(root, "section", SECTIONS)
        for needed in ("source", "sink"):
            if needed not in sections:
                raise self.wrong(root, f"the job has no {needed}; add {needed}: {{uri: …}}")
        routes = self.routes(sections)
        tables = self.tables(sections)
        filters = self.filters(sections)
        source = self.source(sections["source"])
        sinks = [(self.sink(node), node) for node in self.listed(sections["sink"], "sink")]
        if not sinks:
            raise self.wrong(sections["sink"], "the job has no sink; add one, as in {uri: …}")
        ddl = self.ddl(sections)
        settings = self.pipeline(sections.get("pipeline"), name)
        job = Job(
            source=source,
            sinks=tuple(sink for sink, _ in sinks),
            tables=tables,
            filters=tuple(filter for filter, _ in filters),
            ddl=ddl,
            routes=tuple(route for route, _ in routes),
            **settings,
        )
        where = {
            **{f"sink {n}": node.where for n, (_, node) in enumerate(sinks)},
            **{f"route {n}": node.where for n, (_, node) in enumerate(routes)},
            "pipeline": sections["pipeline"].where if "pipeline" in sections else root.where,
        }
        for part, check in check_job(job):
            with self.at(where[part]):
                check()
        for filter, node in filters:
            with self.at(node.where):
                _check_columns(filter, job.schema)
        return job

    # Sections

    def source(self, node: Node) -> Source:
        """The source: a mapping, or its URI alone."""
        uri, given, places = self.address(node, "source")
        with self.among(places, uri.where):
            return parse_source(self.raw(uri, "uri"), given, self.base, self.env)

    def sink(self, node: Node) -> Sink:
        """One sink: a mapping, or its URI alone."""
        uri, given, places = self.address(node, "sink")
        with self.among(places, uri.where):
            return parse_sink(self.raw(uri, "uri"), given, self.base, self.env)

    @contextmanager
    def among(self, places: Mapping[str, str], otherwise: str) -> Iterator[None]:
        """As `at`, at the place of the parameter that an error names first."""
        try:
            yield
        except UsageError as error:
            told = re.findall(r"[\w.-]+", str(error).partition(";")[0].replace("_", "-"))
            where = next((places[word] for word in told if word in places), otherwise)
            with self.at(where):
                raise

    def address(self, node: Node, what: str) -> tuple[Node, Given, dict[str, str]]:
        """The URI, the parameters that are given beside it, and where these are."""
        if isinstance(node.value, str):
            return node, Given(), {}
        entries = self.mapping(node, f"key of a {what}", None)
        if "uri" not in entries:
            raise self.wrong(node, f"the {what} has no uri; add uri: kafka://HOST:PORT/TOPIC")
        beside: dict[str, str] = {}
        forced: dict[str, str] = {}
        for key, value in entries.items():
            if key != "uri":
                (forced if value.forced else beside)[key] = self.joined(value, key)
        places = {
            key.replace("_", "-"): value.where if value.forced else node.keys.get(key, value.where)
            for key, value in entries.items()
        }
        return entries["uri"], Given(beside, forced), places

    def tables(self, sections: Mapping[str, Node]) -> Tables:
        """Which tables are taken."""
        if "tables" not in sections:
            return Tables()
        entries = self.mapping(sections["tables"], "key of tables", ("include", "exclude"))
        include: tuple[str, ...] = ("*.*",)
        if "include" in entries:
            include = self.each(entries["include"], "include", _table_pattern)
            if not include:
                raise self.wrong(entries["include"], "include is empty; leave it out to take all")
        exclude: tuple[str, ...] = ()
        if "exclude" in entries:
            exclude = self.each(entries["exclude"], "exclude", _table_pattern)
        return Tables(include, exclude)

    def filters(self, sections: Mapping[str, Node]) -> list[tuple[Filter, Node]]:
        """What is kept of rows; Flink CDC's `transform` where it says the same."""
        if "filter" in sections and "transform" in sections:
            raise self.wrong(sections["transform"], "filter and transform say the same; use one")
        if "transform" in sections:
            nodes = self.listed(sections["transform"], "transform")
            return [(self.transform(node), node) for node in nodes]
        if "filter" not in sections:
            return []
        return [(self.filter(node), node) for node in self.listed(sections["filter"], "filter")]

    def filter(self, node: Node) -> Filter:
        """One filter."""
        entries = self.mapping(node, "key of a filter", ("table", "ops", "where", "columns"))
        if "table" not in entries:
            raise self.wrong(node, "the filter names no table; add table: database.table")
        table = self.one(entries["table"], "table", _table_pattern)
        ops = where = include = None
        exclude: tuple[str, ...] = ()
        if "ops" in entries:
            ops = self.each(entries["ops"], "ops", lambda text: _word("operation", text, OPS))
            if not ops:
                raise self.wrong(entries["ops"], "ops is empty; exclude the table under tables:")
        if "where" in entries:
            where = self.one(entries["where"], "where", _not_empty)
        if "columns" in entries:
            columns = self.mapping(entries["columns"], "key of columns", ("include", "exclude"))
            if "include" in columns:
                include = self.each(columns["include"], "include", _column)
                if not include:
                    raise self.wrong(
                        columns["include"], "include is empty; no column would be left"
                    )
            if "exclude" in columns:
                exclude = self.each(columns["exclude"], "exclude", _column)
        return Filter(table, ops, where, Columns(include, exclude))

    def transform(self, node: Node) -> Filter:
        """Flink CDC's transform: a filter, and columns by their names."""
        known = ("source-table", "filter", "projection", "description")
        entries = self.mapping(node, "key of a transform", known)
        if "source-table" not in entries:
            raise self.wrong(node, "the transform names no source-table")
        table = self.one(entries["source-table"], "source-table", flink_glob)
        where = include = None
        if "filter" in entries:
            where = self.one(entries["filter"], "filter", _not_empty)
        if "projection" in entries:
            include = self.one(entries["projection"], "projection", projection)
        return Filter(table, None, where, Columns(include))

    def ddl(self, sections: Mapping[str, Node]) -> Ddl:
        """Which statements are taken."""
        if "ddl" not in sections:
            return Ddl()
        entries = self.mapping(sections["ddl"], "key of ddl", ("include", "exclude"))
        found = {key: self.each(node, key, _ddl_word) for key, node in entries.items()}
        both = sorted(set(found.get("include", ())) & set(found.get("exclude", ())))
        if both:
            raise self.wrong(entries["exclude"], f"{both[0]} is both included and excluded")
        return Ddl(found.get("include"), found.get("exclude", ()))

    def routes(self, sections: Mapping[str, Node]) -> list[tuple[Route, Node]]:
        """New names, for tables and topics."""
        if "route" not in sections:
            return []
        return [(self.route(node), node) for node in self.listed(sections["route"], "route")]

    def route(self, node: Node) -> Route:
        """One route, in our words or in Flink CDC's."""
        known = ("table", "to", "topic", "source-table", "sink-table", "replace-symbol")
        entries = self.mapping(node, "key of a route", (*known, "description"))
        for ours, flinks in (("table", "source-table"), ("to", "sink-table")):
            if ours in entries and flinks in entries:
                raise self.wrong(entries[flinks], f"{flinks} and {ours} say the same; give one")
        if "source-table" in entries:
            table = self.one(entries["source-table"], "source-table", flink_regex)
        elif "table" in entries:
            table = self.one(entries["table"], "table", str)
        else:
            raise self.wrong(node, "the route names no table; add table: 'database.(.*)'")
        to = topic = None
        for key in ("to", "sink-table"):
            if key in entries:
                to = self.one(entries[key], key, str)
        if "topic" in entries:
            topic = self.one(entries["topic"], "topic", _topic)
        if to is None and topic is None:
            raise self.wrong(node, "the route leads nowhere; add to: database.table or topic: …")
        with self.at(node.where):
            if "replace-symbol" in entries:
                symbol = self.one(entries["replace-symbol"], "replace-symbol", _not_empty)
                table, to = replace_symbol(table, to, symbol)
            route = Route(table, to, topic)
            check_route(route)
        return route

    def pipeline(self, node: Node | None, name: str) -> dict[str, Any]:
        """How the job runs."""
        entries = {} if node is None else self.mapping(node, "key of pipeline", PIPELINE)
        read: dict[str, Callable[[str], Any]] = {
            "trigger": duration,
            "heartbeat": _positive,
            "remember": _positive,
            "max_invalid": share,
            "max_messages": whole_number,
            "redact": truth,
            "metrics": _endpoint,
            "schema": self.schema,
            "name": _job_name,
            "checkpoint": self.path,
            "dead_letters": self.path,
        }
        found = {k: self.one(node, k, read[k]) for k, node in entries.items() if k != "spark"}
        if "spark" in entries:
            settings = self.mapping(entries["spark"], "Spark setting", None)
            for key, each in settings.items():
                if not key.startswith("spark."):
                    raise self.wrong(
                        each, f"{shown(key)} is no setting of Spark; write spark.{key}"
                    )
            found["settings"] = {k: self.text(each, k) for k, each in settings.items()}
        found.setdefault("name", name)
        found.setdefault("checkpoint", self.path(f"state/{found['name']}"))
        found.setdefault("dead_letters", f"{found['checkpoint'].rstrip('/')}/dead-letters")
        return found

    def path(self, text: str) -> str:
        """An absolute path; URIs of other file systems stay as they are."""
        if text.startswith("file://"):
            text = text.removeprefix("file://")
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
            filesystem.refuse_credentials(filesystem.scheme_of(text), text)
            return text.rstrip("/")
        return os.path.normpath(os.path.join(self.base, _not_empty(text)))

    def schema(self, text: str) -> str:
        """The statements of a schema file, which must be understood."""
        path = Path(self.path(text))
        try:
            if path.stat().st_size > _MOST_SCHEMA_BYTES:
                raise UsageError("the schema file is too large")
            sql = path.read_text("utf-8-sig")
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path} is not UTF-8; save it as UTF-8") from None
        Schemas(sql)
        return sql

    # Nodes

    def mapping(self, node: Node, what: str, known: Sequence[str] | None) -> dict[str, Node]:
        """The entries of a mapping, each key a known one; `_` and `-` are the same."""
        if not isinstance(node.value, dict):
            empty = node.missing or not node.value
            told = "is empty; fill it or leave it out" if empty else "is no mapping of key: value"
            raise self.wrong(node, f"{_part(what)} {told}")
        found: dict[str, Node] = {}
        for key, value in node.value.items():
            name = _known_key(key, known)
            if name is None:
                error = unknown_name(what, key, known or ())
                raise _Located(f"{node.keys.get(key, value.where)}: {error}")
            if name in found:
                raise self.wrong(value, f"{shown(key)} is there twice")
            found[name] = value
        return found

    def listed(self, node: Node, what: str) -> list[Node]:
        """A list; one thing alone may stand for a list of one."""
        if node.missing:
            raise self.wrong(node, f"{what} is empty; fill it or leave it out")
        return node.value if isinstance(node.value, list) else [node]

    def raw(self, node: Node, what: str) -> str:
        """The text of a node, as it was written."""
        if not isinstance(node.value, str):
            raise self.wrong(node, f"{what} is no single value; write it as text")
        if node.missing:
            raise self.wrong(node, f"{what} has no value; fill it or leave it out")
        return node.value

    def text(self, node: Node, what: str) -> str:
        """The text of a node, with what it takes from the environment."""
        with self.at(node.where):
            return self.env.fill(self.raw(node, what))

    def one(self, node: Node, what: str, read: Callable[[str], T]) -> T:
        """A text as what it stands for."""
        text = self.text(node, what)
        with self.at(node.where):
            try:
                return read(text)
            except UsageError as error:
                raise UsageError(f"{what}: {error}") from None

    def each(self, node: Node, what: str, read: Callable[[str], T]) -> tuple[T, ...]:
        """A list of texts; a single text may have several, separated by commas."""
        if isinstance(node.value, str):
            return tuple(self.one(part, what, read) for part in _comma_separated(node))
        return tuple(self.one(part, what, read) for part in self.listed(node, what))

    def joined(self, node: Node, what: str) -> str:
        """A parameter's text; a list is joined by commas."""
        if isinstance(node.value, list):
            return ",".join(self.text(part, what) for part in node.value)
        return self.text(node, what)


def _comma_separated(node: Node) -> list[Node]:
    text = str(node.value)
    parts = [part.strip() for part in text.split(",")] if text.strip() else [text]
    return [Node(part, node.where, node.missing) for part in parts]


def _known_key(key: str, known: Sequence[str] | None) -> str | None:
    if known is None:
        return key
    plain = key.replace("-", "_")
    return next((name for name in known if name.replace("-", "_") == plain), None)


def _part(what: str) -> str:
    """What a mapping is, by what its keys are called."""
    if what == "section":
        return "the job"
    return what.removeprefix("key of ").removeprefix("a ")


# Values


def _word(what: str, text: str, known: Sequence[str]) -> str:
    if text not in known:
        raise unknown_name(what, text, known)
    return text


def _ddl_word(text: str) -> str:
    return _word("DDL operation", text.replace("-", "_"), DDL_OPS)


def _table_pattern(text: str) -> str:
    split_glob(text)
    return text


def _column(text: str) -> str:
    return _not_empty(text)


def _topic(text: str) -> str:
    check_topic_template(text)
    return text


def _not_empty(text: str) -> str:
    if not text.strip():
        raise UsageError("is empty; fill it or leave it out")
    return text


def _positive(text: str) -> float:
    found = duration(text)
    if found <= 0:
        raise UsageError("must be longer than nothing; leave it out to go without")
    return found


def _job_name(text: str) -> str:
    if not _JOB_NAME.fullmatch(text):
        raise UsageError(f"no job is called {shown(text)}; letters, digits, . _ - are allowed")
    return text


def _endpoint(text: str) -> str:
    """`host:port`; a port alone is that of this machine only."""
    match = _HOST_PORT.fullmatch(text)
    if match is None or not 0 <= int(match[2]) <= 65535:
        raise UsageError(f"{shown(text)} is no address; write HOST:PORT, or PORT for 127.0.0.1")
    return f"{match[1] or '127.0.0.1'}:{int(match[2])}"


def _check_columns(filter: Filter, schema: str | None) -> None:
    """Where the table is known, refuse a column it does not have, and the loss of its key."""
    if schema is None or "*" in filter.table or "?" in filter.table:
        return
    table = Schemas(schema).table(*split_glob(filter.table))
    if table is None:
        return
    columns = {name.lower(): name for name in table.columns}
    named = (*(filter.columns.include or ()), *filter.columns.exclude)
    for name in named:
        if name.lower() not in columns and "*" not in name and "?" not in name:
            raise unknown_name(f"column of {filter.table}", name, table.columns)
    lost = Projection(filter.columns, filter.table).first_removed(table.key)
    if lost is not None:
        raise UsageError(
            f"the filter leaves out {shown(lost)}, a column of the key of {filter.table}; "
            "keep it: without it nobody can tell rows apart"
        )
