"""`--set KEY=VALUE`: values of a job that the command line replaces."""

from __future__ import annotations

from headgate.config.yaml_lines import Node
from headgate.core.errors import UsageError, unknown_name

SECTIONS = ("source", "tables", "filter", "transform", "ddl", "route", "sink", "pipeline")
LISTS = ("sink", "filter", "transform", "route")


def put(mapping: Node, key: str, node: Node) -> None:
    """Give a mapping an entry."""
    assert isinstance(mapping.value, dict)
    mapping.value[key], mapping.keys[key] = node, node.where


def override(root: Node, key: str, value: str) -> None:
    """Put a value at a dotted key, over what is there.

    >>> root = Node({}, "job.yaml:1")
    >>> override(root, "pipeline.trigger", "1s")
    >>> root.value["pipeline"].value["trigger"].value
    '1s'
    """
    top, *rest = key.split(".")
    if top not in SECTIONS:
        raise unknown_name("section", top, SECTIONS)
    if not isinstance(root.value, dict):
        return  # which is refused when it is read
    node = _into(root, top, {})
    if top in LISTS:
        node = _item(node, rest)
    if top in ("source", "sink"):
        if isinstance(node.value, str):  # a URI alone
            node.value = {"uri": Node(node.value, node.where, node.missing)}
        rest = [".".join(rest)] if rest else []
    elif top == "pipeline" and rest[:1] == ["spark"] and len(rest) > 1:
        rest = ["spark", ".".join(rest[1:])]
    if not rest or not all(rest):
        raise UsageError(f"the key names no value; write it as in {_EXAMPLES.get(top, top)}")
    for part in rest[:-1]:
        node = _into(node, part, {})
    if not isinstance(node.value, dict):
        raise UsageError("the key leads into what is no mapping")
    for same in [k for k in node.value if k.replace("_", "-") == rest[-1].replace("_", "-")]:
        del node.value[same]
    put(node, rest[-1], Node(value, f"--set {key}", forced=True))


_EXAMPLES = {"sink": "sink.0.uri", "pipeline": "pipeline.trigger", "source": "source.starting"}


def _into(node: Node, key: str, new: dict[str, Node]) -> Node:
    """The node under a key, made if there is none."""
    if not isinstance(node.value, dict):
        raise UsageError("the key leads into what is no mapping")
    found = node.value.get(key)
    if found is None or found.missing:
        found = Node(new, node.where)
        put(node, key, found)
    return found


def _item(node: Node, rest: list[str]) -> Node:
    """The item of a list that a key's number names; without a number, the only one there is."""
    items = node.value if isinstance(node.value, list) else [node]
    if not (rest and rest[0].isascii() and rest[0].isdigit()):
        if len(items) > 1:
            raise UsageError("there is more than one; say which, as in sink.0.uri")
        if not items:
            items.append(Node({}, node.where))
        return items[0]
    number = int(rest.pop(0)[:9])
    if number == len(items) and isinstance(node.value, list):
        node.value.append(Node({}, node.where))
    elif number == 1 and not isinstance(node.value, list):
        first = Node(node.value, node.where, node.missing, keys=node.keys)
        items = node.value = [first, Node({}, node.where)]
        node.keys = {}
    if number >= len(items):
        raise UsageError(f"there are {len(items)}, counted from 0")
    return items[number]
