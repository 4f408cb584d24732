"""`--set KEY=VALUE`: the command line overrides values of a job file."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.config.job import sections
from headgate.config.yaml_lines import Node
from headgate.core.errors import UsageError, unknown_name
from headgate.core.keys import Key, keys, spelling


def put(mapping: Node, key: str, node: Node) -> None:
    """Put an entry into a mapping."""
    assert isinstance(mapping.value, dict)
    mapping.value[key], mapping.keys[key] = node, node.where


def override(root: Node, key: str, value: str) -> None:
    """Put a value at a dotted key, replacing what is there.

    >>> root = Node({}, "job.yaml:1")
    >>> override(root, "pipeline.trigger", "1s")
    >>> root.value["pipeline"].value["trigger"].value
    '1s'
    """
    top, *path = key.split(".")
    section = _section(top)
    if not isinstance(root.value, dict):
        return  # which is refused when it is read
    declared = None if section.open else keys(section.names[top])
    first = "uri" if declared is None else next(iter(declared))
    example = f"{top}.0.{first}" if section.many else f"{top}.{first}"
    node = _into(root, top)
    if section.many:
        node = _item(node, path, example)
    if section.open and isinstance(node.value, str):  # a URI alone
        node.value = {"uri": Node(node.value, node.where, node.missing)}
    path = _joined(declared, path)
    if not path or not all(path):
        raise UsageError(f"the key does not name a value; write it as in {example}")
    for part in path[:-1]:
        node = _into(node, part)
    if not isinstance(node.value, dict):
        raise UsageError("the key leads into a value that is not a mapping")
    for same in [name for name in node.value if spelling(name, path[-1:])]:
        del node.value[same]
    put(node, path[-1], Node(value, f"--set {key}", forced=True))


def _section(name: str) -> Key:
    """The section of a name, which may be an alias."""
    known = {alias: key for key in sections().values() for alias in key.names}
    if name not in known:
        raise unknown_name("section", name, known)
    return known[name]


def _joined(declared: Mapping[str, Key] | None, path: list[str]) -> list[str]:
    """The path of a key, in which the names of an open mapping may have dots."""
    if declared is None:
        return [".".join(path)] if path else []
    if len(path) > 1 and path[0] in declared and declared[path[0]].open:
        return [path[0], ".".join(path[1:])]
    return path


def _into(node: Node, key: str) -> Node:
    """The node under a key, created if it is missing."""
    if not isinstance(node.value, dict):
        raise UsageError("the key leads into a value that is not a mapping")
    child = node.value.get(key)
    if child is None or child.missing:
        child = Node({}, node.where)
        put(node, key, child)
    return child


def _item(node: Node, path: list[str], example: str) -> Node:
    """The item of a list that a key's number names; without a number, the only one there is."""
    items = node.value if isinstance(node.value, list) else [node]
    if not (path and path[0].isascii() and path[0].isdigit()):
        if len(items) > 1:
            raise UsageError(f"there are several; give a number, as in {example}")
        if not items:
            items.append(Node({}, node.where))
        return items[0]
    number = int(path.pop(0)[:9])
    if number == len(items) and isinstance(node.value, list):
        node.value.append(Node({}, node.where))
    elif number == 1 and not isinstance(node.value, list):
        first = Node(node.value, node.where, node.missing, keys=node.keys)
        items = node.value = [first, Node({}, node.where)]
        node.keys = {}
    if number >= len(items):
        raise UsageError(f"there are {len(items)}, numbered from 0")
    return items[number]
