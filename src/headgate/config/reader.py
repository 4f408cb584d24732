"""Reads job files and command lines as jobs; errors have the line of the mistake."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.config.conflicts import check_job
from headgate.config.job import Job, Pipeline, Sink, Source, TableSink, sections
from headgate.config.overrides import override, put
from headgate.config.sections import SectionReader
from headgate.config.uris import Given, masked, parse_sink, parse_source
from headgate.config.yaml_lines import MAX_BYTES, Node, read_yaml
from headgate.core.connectors import Place, Topic
from headgate.core.errors import UsageError
from headgate.core.keys import keys
from headgate.selection.selection import Rules


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
    return _JobReader(os.path.dirname(os.path.abspath(name)), environment).job(
        root, overrides, stem
    )


def job_of(
    source: str,
    sinks: Sequence[str],
    overrides: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Job:
    """The job of `headgate run --from URI --to URI`; its name says what it does.

    Its checkpoint also has a hash of the URIs: the same topics of other brokers are another job.

    >>> job = job_of("kafka://h/orders", ["kafka://h/orders-dbz?protocol=debezium"])
    >>> job.name, job.checkpoint.rpartition("/")[2]
    ('orders-to-orders-dbz', 'orders-to-orders-dbz-84b54055')
    """
    root = Node({}, "the command line")
    put(root, "source", Node({"uri": Node(source, "--from")}, "--from"))
    outputs = [Node({"uri": Node(uri, "--to")}, "--to") for uri in sinks]
    if outputs:
        put(root, "sink", Node(list(outputs), "--to"))
    uris = "\n".join(masked(uri) for uri in (source, *sinks))
    suffix = hashlib.sha256(uris.encode("utf-8", "replace")).hexdigest()[:8]
    return _JobReader(os.getcwd(), environment).job(root, overrides, None, suffix)


def job_title(source: Source, sinks: Sequence[Sink | TableSink]) -> str:
    """What a job does, as a name for it: from where to where.

    Nothing of a URI that an environment variable gives is in it.

    >>> sink = parse_sink("delta:///lake/shop")
    >>> job_title(parse_source("kafka://h/cdc-*"), [sink, sink])
    'cdc-to-shop-and-1-more'
    """
    first = sinks[0]
    topic = first.options.get("topic") if isinstance(first, Sink) else None
    read, written = next(iter(source.connector.places()), None), first.connector.place(topic)
    words = [_word(source, read), "to", _word(first, written)]
    if len(sinks) > 1:
        words += ["and", str(len(sinks) - 1), "more"]
    return "-".join(words)


def _word(end: Source | Sink | TableSink, place: Place | None) -> str:
    """The last part of a place's name, with the characters that a job's name may have."""
    if place is None or "${" in end.name:
        return end.connector.name
    name = place.name if isinstance(place, Topic) else place.path.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:40] or end.connector.name


class _JobReader(SectionReader):
    """Turns the nodes of a job into its dataclasses."""

    def job(
        self, root: Node, overrides: Mapping[str, str] | None, name: str | None, suffix: str = ""
    ) -> Job:
        """The job, every value checked.

        `name` is the one it has unless it gives one; without it, what it does is its name. The
        checkpoint of a job that has no name has the `suffix`, too.
        """
        for key, value in (overrides or {}).items():
            with self.at(f"--set {key}" if key.isprintable() else "--set"):
                override(root, key, value)
        declared = sections()
        entries = self.entries(root, "section", declared)
        for needed in ("source", "sink"):
            if needed not in entries:
                raise self.wrong(root, declared[needed].missing)
        rules = self.values(keys(Rules), entries, root)
        source = self.source(entries["source"])
        sinks = self.sinks(entries["sink"])
        if not sinks:
            raise self.wrong(entries["sink"], declared["sink"].missing)
        name = name or job_title(source, sinks)
        settings = self.pipeline(entries.get("pipeline"), name, suffix)
        job = Job(
            source=source,
            sinks=tuple(each for each in sinks if isinstance(each, Sink)),
            table_sinks=tuple(each for each in sinks if isinstance(each, TableSink)),
            **rules,
            **settings,
        )
        for part, check in check_job(job):
            with self.at(self.place(part, entries, root)):
                check()
        return job

    def place(self, part: str, entries: Mapping[str, Node], root: Node) -> str:
        """Where a part of the job is: `pipeline`, or one of a list, such as `sink 0`."""
        section, _, number = part.partition(" ")
        given = next((name for name in sections()[section].names if name in entries), None)
        if given is None:
            return root.where
        return self.listed(entries[given], given)[int(number or 0)].where

    def pipeline(self, node: Node | None, name: str, suffix: str) -> dict[str, Any]:
        """How the job runs."""
        values: dict[str, Any] = {}
        if node is not None:
            declared = keys(Pipeline)
            values = self.values(declared, self.entries(node, "key of pipeline", declared), node)
        folder = values.get("name") or "-".join(filter(None, (name, suffix)))
        values.setdefault("name", name)
        values.setdefault("checkpoint", self.path(f"state/{folder}"))
        values.setdefault("dead_letters", f"{values['checkpoint'].rstrip('/')}/dead-letters")
        return values

    # Sources and sinks

    def source(self, node: Node) -> Source:
        """The source: a mapping, or its URI alone."""
        uri, given, places = self.address(node, "source")
        with self.among(places, uri.where):
            return parse_source(self.raw(uri, "uri"), given, self.base, self.env)

    def sinks(self, node: Node) -> list[Sink | TableSink]:
        """All sinks, which are of one kind."""
        sinks: list[Sink | TableSink] = []
        for each in self.listed(node, "sink"):
            sinks.append(self.sink(each))
            if isinstance(sinks[0], Sink) != isinstance(sinks[-1], Sink):
                raise self.wrong(
                    each,
                    f"{sinks[0].connector.name} and {sinks[-1].connector.name} cannot be sinks of "
                    "one job: a job writes messages or lands tables; run two jobs",
                )
        return sinks

    def sink(self, node: Node) -> Sink | TableSink:
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
            words = re.findall(r"[\w.-]+", str(error).partition(";")[0].replace("_", "-"))
            where = next((places[word] for word in words if word in places), otherwise)
            with self.at(where):
                raise

    def address(self, node: Node, what: str) -> tuple[Node, Given, dict[str, str]]:
        """The URI, the parameters that are given beside it, and where these are."""
        if isinstance(node.value, str):
            return node, Given(), {}
        entries = self.entries(node, f"key of a {what}", None)
        if "uri" not in entries:
            raise self.wrong(node, f"the {what} has no uri; add uri: kafka://HOST:PORT/TOPIC")
        beside: dict[str, str] = {}
        forced: dict[str, str] = {}
        nulls = [key for key, value in entries.items() if value.is_null and key != "uri"]
        for key, value in entries.items():
            if key in nulls:
                beside[key] = "null"
            elif key != "uri":
                (forced if value.forced else beside)[key] = self.joined(value, key)
        places = {
            key.replace("_", "-"): value.where if value.forced else node.keys.get(key, value.where)
            for key, value in entries.items()
        }
        return entries["uri"], Given(beside, forced, nulls), places

    def joined(self, node: Node, what: str) -> str:
        """A parameter's text; a list is joined by commas."""
        if isinstance(node.value, list):
            return ",".join(self.text(part, what) for part in node.value)
        return self.text(node, what)
