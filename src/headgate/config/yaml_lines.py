"""YAML read as text and lines: no types are guessed, nothing is shared, nothing is constructed."""

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
    """Whether nothing was written where a value belongs."""
    forced: bool = False
    """Whether it was given with --set."""
    keys: dict[str, str] = field(default_factory=dict)
    """Where the keys of a mapping are."""


def read_yaml(data: bytes, name: str) -> Node:
    """One YAML document; every scalar is the text that was written.

    >>> read_yaml(b"a: no", "job.yaml").value["a"].value
    'no'
    """
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name}: the file is larger than {MAX_BYTES} bytes; a job is not")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: the file is not UTF-8; save it as UTF-8") from None
    try:
        return _document(yaml.parse(text, Loader=yaml.SafeLoader), name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise UsageError(f"{name}:{line}: the YAML is wrong: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UsageError(f"{name}:{line}: a control character; write it as text") from None


def _document(events: Iterator[Any], name: str) -> Node:
    """Build the tree of the one document there may be."""
    root: Node | None = None
    stack: list[Node] = []
    pending: list[tuple[str, str] | None] = []  # of each mapping on the stack, the key just read
    count = 0
    for event in events:
        where = f"{name}:{event.start_mark.line + 1}"
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise UsageError(f"{where}: a second document; a file describes one job")
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
            pending.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        _check(event, where)
        count += 1
        if count > _MAX_NODES:
            raise UsageError(f"{where}: more than {_MAX_NODES} values; a job has fewer")
        if stack and isinstance(stack[-1].value, dict) and pending[-1] is None:
            pending[-1] = _key(event, where, stack[-1])
            continue
        node = _node(event, where)
        if stack:
            _put(stack[-1], pending, node)
        else:
            root = node
        if not isinstance(event, yaml.ScalarEvent):
            if len(stack) >= _MAX_DEPTH:
                raise UsageError(f"{where}: nested more than {_MAX_DEPTH} deep; a job is not")
            stack.append(node)
            pending.append(None)
    return root or Node("", f"{name}:1", missing=True)


def _check(event: Any, where: str) -> None:
    """Refuse what makes one place of a file change the meaning of another."""
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise UsageError(f"{where}: anchors and aliases are not taken; write the value out")
    if event.tag is not None:
        raise UsageError(f"{where}: tags (!…) are not taken; quote the text if it starts with !")


def _key(event: Any, where: str, mapping: Node) -> tuple[str, str]:
    if not isinstance(event, yaml.ScalarEvent):
        raise UsageError(f"{where}: a key is not a word; write it as key: value")
    if event.value in mapping.keys:
        first = mapping.keys[event.value].rpartition(":")[2]
        raise UsageError(f"{where}: {shown(event.value)} is there already, in line {first}")
    return event.value, where


def _node(event: Any, where: str) -> Node:
    if isinstance(event, yaml.ScalarEvent):
        return Node(event.value, where, missing=event.style is None and event.value in _NULLS)
    return Node([] if isinstance(event, yaml.SequenceStartEvent) else {}, where)


def _put(parent: Node, pending: list[tuple[str, str] | None], node: Node) -> None:
    if isinstance(parent.value, list):
        parent.value.append(node)
        return
    assert isinstance(parent.value, dict)
    key, where = pending[-1] or ("", "")
    parent.value[key], parent.keys[key] = node, where
    pending[-1] = None
