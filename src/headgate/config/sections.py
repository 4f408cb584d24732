"""Reads sections of a job file as the dataclasses that declare their keys; errors have lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any

from headgate.config.yaml_lines import Node
from headgate.core.errors import UsageError, shown, unknown_name
from headgate.core.keys import Key, KeyedError, Read, keys, not_empty, spelling
from headgate.core.scalars import Environment
from headgate.spark import filesystem

Keys = Mapping[str, Key]


class LocatedError(UsageError):
    """An error that already starts with its location."""


class SectionReader:
    """Reads nodes as the dataclasses that declare their keys."""

    def __init__(self, base: str, environment: Mapping[str, str] | None) -> None:
        self.base = base
        self.env = Environment(os.environ if environment is None else environment)

    @contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Add the location to errors, and hide the values of environment variables."""
        try:
            yield
        except LocatedError:
            raise
        except UsageError as error:
            raise LocatedError(f"{where}: {self.env.scrubbed(str(error))}") from None

    def wrong(self, node: Node, what: str) -> UsageError:
        """An error at a node."""
        return LocatedError(f"{node.where}: {self.env.scrubbed(what)}")

    # Sections

    def section(self, cls: type, node: Node, what: str) -> Any:
        """A section as its dataclass; one in Flink CDC's words as the rule that it means."""
        entries = self.entries(node, f"key of {what}", keys(cls))
        values = self.values(keys(cls), entries, node)
        with self.at(node.where):
            try:
                made = cls(**values)
                return made.as_rule() if hasattr(made, "as_rule") else made
            except KeyedError as error:
                raise self.wrong(entries[error.key], str(error)) from None

    def values(self, declared: Keys, entries: Mapping[str, Node], node: Node) -> dict[str, Any]:
        """The values of the keys that are given, by the names of their fields."""
        values = {}
        for key in declared.values():
            given = [name for name in key.names if name in entries]
            if len(given) > 1:
                error = f"{given[0]} and {given[1]} are aliases; set only one"
                raise self.wrong(entries[given[1]], error)
            if given:
                values[key.attribute] = self.value(key, given[0], entries[given[0]])
            elif key.missing:
                raise self.wrong(node, key.missing)
        return values

    def value(self, key: Key, name: str, node: Node) -> Any:
        """The value of one key."""
        read = key.names[name]
        if read is type(None):  # a comment
            return None
        if key.open:
            return self.settings(node, name)
        if is_dataclass(read) and isinstance(read, type):
            if not key.many:
                return self.section(read, node, name)
            return tuple(self.section(read, item, f"a {name}") for item in self.listed(node, name))
        if not key.many:
            return self.one(node, name, read, key.path)
        items = self.items(node, name, read)
        if key.empty and not items:
            raise self.wrong(node, f"{name} is empty; {key.empty}")
        return items

    def settings(self, node: Node, prefix: str) -> dict[str, str]:
        """A mapping of settings, whose names start with the name of the key."""
        entries = self.entries(node, f"{prefix.capitalize()} setting", None)
        for name, entry in entries.items():
            if not name.startswith(f"{prefix}."):
                error = f"{shown(name)} is not a {prefix.capitalize()} setting"
                raise self.wrong(entry, f"{error}; write {prefix}.{name}")
        return {name: self.text(entry, name) for name, entry in entries.items()}

    def entries(self, node: Node, what: str, declared: Keys | None) -> dict[str, Node]:
        """The entries of a mapping, by their declared names."""
        if not isinstance(node.value, dict):
            must = "must be a mapping (key: value)"
            if node.missing or not node.value:
                must = "is empty; fill it or leave it out"
            raise self.wrong(node, f"{_part(what)} {must}")
        known = None if declared is None else [n for k in declared.values() for n in k.names]
        entries: dict[str, Node] = {}
        for written, value in node.value.items():
            name = written if known is None else spelling(written, known)
            if name is None:
                error = unknown_name(what, written, known or ())
                raise LocatedError(f"{node.keys.get(written, value.where)}: {error}")
            if name in entries:
                raise self.wrong(value, f"{shown(written)} is given twice")
            entries[name] = value
        return entries

    # Values

    def listed(self, node: Node, what: str) -> list[Node]:
        """A list; a single item may stand for a list of one."""
        if node.missing:
            raise self.wrong(node, f"{what} is empty; fill it or leave it out")
        return node.value if isinstance(node.value, list) else [node]

    def raw(self, node: Node, what: str) -> str:
        """The text of a node, as it was written."""
        if not isinstance(node.value, str):
            raise self.wrong(node, f"{what} must be a single value; write it as text")
        if node.missing:
            raise self.wrong(node, f"{what} has no value; fill it or leave it out")
        return node.value

    def text(self, node: Node, what: str) -> str:
        """The text of a node, with environment variables replaced."""
        with self.at(node.where):
            return self.env.fill(self.raw(node, what))

    def one(self, node: Node, what: str, read: Read, is_path: bool = False) -> Any:
        """The value of a text."""
        text = self.text(node, what)
        with self.at(node.where):
            try:
                return read(self.path(text) if is_path else text)
            except UsageError as error:
                raise UsageError(f"{what}: {error}") from None

    def items(self, node: Node, what: str, read: Read) -> tuple[Any, ...]:
        """A list of texts; a single text may have several, separated by commas."""
        if isinstance(node.value, str):
            texts = (
                [t.strip() for t in node.value.split(",")] if node.value.strip() else [node.value]
            )
            nodes = [Node(text, node.where, node.missing) for text in texts]
        else:
            nodes = self.listed(node, what)
        return tuple(self.one(item, what, read) for item in nodes)

    def path(self, text: str) -> str:
        """An absolute path; URIs of other file systems stay as they are."""
        text = text.removeprefix("file://")
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
            filesystem.refuse_credentials(filesystem.scheme_of(text), text)
            return text.rstrip("/")
        return os.path.normpath(os.path.join(self.base, not_empty(text)))


def _part(what: str) -> str:
    """The name of a mapping, from the name of its keys."""
    if what == "section":
        return "the job"
    return what.removeprefix("key of ").removeprefix("a ")
