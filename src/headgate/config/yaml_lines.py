"""YAML as text with line numbers: no types are inferred, and no objects are constructed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from headgate.core.errors import UsageError, shown

MAX_BYTES = 1024 * 1024
_MAX_DEPTH = 20
_MAX_NODES = 20_000
_NULLS = ("", "~", "null", "Null", "NULL")


@dataclass
class Node:
    """A value of a job: text, a list or a mapping, and where it is."""

    value: str | list[Node] | dict[str, Node] = field(repr=False)
    where: str
    """`FILE:LINE`, or the option of the command line."""
    missing: bool = False
    """Whether there is nothing where a value belongs."""
    forced: bool = False
    """Whether it was given with --set."""
    keys: dict[str, str] = field(default_factory=dict)
    """Where the keys of a mapping are."""

    @property
    def is_null(self) -> bool:
        """Whether it is the word `null` without quotes."""
        return self.missing and isinstance(self.value, str) and self.value.lower() == "null"


def read_yaml(data: bytes, name: str) -> Node:
    """One YAML document; every scalar is the text that was written.

    >>> read_yaml(b"a: no", "job.yaml").value["a"].value
    'no'
    """
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"{name}: the file is larger than {MAX_BYTES} bytes, the limit of a job file"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: the file is not UTF-8; save it as UTF-8") from None
    try:
        _check(yaml.parse(text, Loader=yaml.SafeLoader), name)
        document = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise UsageError(f"{name}:{line}: invalid YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UsageError(f"{name}:{line}: a control character is not allowed; remove it") from None
    return Node("", f"{name}:1", missing=True) if document is None else _node(document, name)


def _check(events: Iterator[Any], name: str) -> None:
    """Reject what lets one place of a file change the meaning of another, and what is too large."""
    documents = nodes = depth = 0
    for event in events:
        where = f"{name}:{event.start_mark.line + 1}"
        documents += isinstance(event, yaml.DocumentStartEvent)
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if documents > 1:
            raise UsageError(f"{where}: a second document; a file describes one job")
        if getattr(event, "anchor", None) is not None:  # an alias has one too
            raise UsageError(f"{where}: anchors and aliases are not supported; write the value out")
        if getattr(event, "tag", None) is not None:
            raise UsageError(
                f"{where}: tags (!…) are not supported; quote the text if it starts with !"
            )
        if nodes > _MAX_NODES:
            raise UsageError(f"{where}: more than {_MAX_NODES} values, the limit of a job file")
        if depth > _MAX_DEPTH:
            raise UsageError(
                f"{where}: nested more than {_MAX_DEPTH} deep, the limit of a job file"
            )


def _node(node: yaml.Node, name: str) -> Node:
    where = _where(node, name)
    if isinstance(node, yaml.ScalarNode):
        return Node(node.value, where, missing=node.style is None and node.value in _NULLS)
    if isinstance(node, yaml.SequenceNode):
        return Node([_node(item, name) for item in node.value], where)
    mapping = Node({}, where)
    for key, value in node.value:
        _put(mapping, key, _node(value, name), _where(key, name))
    return mapping


def _put(mapping: Node, key: yaml.Node, value: Node, where: str) -> None:
    """Put an entry into a mapping; its key must be text, and new."""
    assert isinstance(mapping.value, dict)
    if not isinstance(key, yaml.ScalarNode):
        raise UsageError(f"{where}: a key must be text; write it as key: value")
    if key.value in mapping.keys:
        first = mapping.keys[key.value].rpartition(":")[2]
        raise UsageError(f"{where}: {shown(key.value)} is given twice, first in line {first}")
    mapping.value[key.value], mapping.keys[key.value] = value, where


def _where(node: yaml.Node, name: str) -> str:
    return f"{name}:{node.start_mark.line + 1}"
