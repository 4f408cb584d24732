"""The leaves of a message: its strings and numbers, with their paths and places."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headgate.fastpath import kernel
from headgate.fastpath.program import SEPARATOR

IMAGES = {"data", "old", "before", "after"}


class Leaf(NamedTuple):
    """A string or number of a message: its path, its text, where it stands."""

    path: tuple[str, ...]
    number: bool
    start: int
    end: int


def leaves_of(text: bytes, starts: Any, ends: Any) -> list[Leaf] | None:
    """The leaves of a message with their paths; None where it is not plain JSON.

    >>> cut = [np.zeros(10, np.int64) for _ in range(2)]
    >>> [leaf.path for leaf in leaves_of(b'{"a":[{"b":"x"}],"c":1}', *cut)]
    [('a', '0', 'b'), ('c',)]
    """
    data = np.frombuffer(text, np.uint8)
    count = kernel.cut(data, 0, len(text), starts, ends)
    key, separator, value = text.partition(SEPARATOR)
    paths: list[tuple[tuple[str, ...], bool]] = []
    try:
        if separator:
            walk(read(key), ("key",), paths)
            walk(read(value), (), paths)
        else:
            walk(read(text), (), paths)
    except (ValueError, RecursionError):
        return None
    if len(paths) != count:
        return None
    return [Leaf(*p, int(starts[i]), int(ends[i])) for i, p in enumerate(paths)]


class Number(str):
    """The text of a JSON number."""

    __slots__ = ()


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, no name twice."""
    by_name = dict(pairs)
    if len(by_name) != len(pairs):
        raise ValueError("a name twice")
    return by_name


def read(text: bytes) -> Any:
    """JSON with numbers as text."""
    return json.loads(
        text, object_pairs_hook=members, parse_int=Number, parse_float=Number, parse_constant=Number
    )


def walk(node: Any, path: tuple[str, ...], leaves: list[tuple[tuple[str, ...], bool]]) -> None:
    """Note the strings and numbers of a document in their order."""
    if isinstance(node, dict):
        for name, member in node.items():
            walk(member, (*path, name), leaves)
    elif isinstance(node, list):
        for i, member in enumerate(node):
            walk(member, (*path, str(i)), leaves)
    elif isinstance(node, str):
        leaves.append((path, isinstance(node, Number)))


def may_vary(path: tuple[str, ...], varying: Sequence[str]) -> bool:
    """Whether a leaf is under a member that varies.

    >>> may_vary(("payload", "source", "pos"), ["source.pos"]), may_vary(("table",), ["data"])
    (True, False)
    """
    dotted = ".".join(path[1:] if path[0] == "payload" else path) + "."
    return path[0] == "key" or any(dotted.startswith(f"{each}.") for each in varying)


def pairs_of(leaves: list[Leaf], text: bytes) -> list[tuple[int, int, int]]:
    """The values of one column in both images of a row, and whether they are the same."""
    by_place: dict[tuple[str, ...], int] = {}
    pairs = []
    for i, leaf in enumerate(leaves):
        at = next((n for n, name in enumerate(leaf.path) if name in IMAGES), None)
        if at is None:
            continue
        place = (*leaf.path[:at], *leaf.path[at + 1 :])
        other = by_place.setdefault(place, i)
        if other != i:
            same = text[leaf.start : leaf.end] == text[leaves[other].start : leaves[other].end]
            pairs.append((other, i, int(same)))
    return pairs


def filled(text: bytes, leaves: list[Leaf], given: dict[int, bytes]) -> bytes:
    """A message with other values in some of its leaves."""
    parts = []
    at = 0
    for i in sorted(given):
        parts += [text[at : leaves[i].start], given[i]]
        at = leaves[i].end
    return b"".join([*parts, text[at:]])
