"""Globs: table patterns with `*` and `?`, and whether two of them can match the same name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from headgate.core.errors import UsageError, shown

TableNames = tuple["str | None", "str | None", "str | None"]
"""The database, schema and table that an event names; None where it does not name one."""
_NOT_A_GLOB = re.compile(r"[()\[\]{}|\\^+`\"'/,;\s]")


def glob_regex(pattern: str) -> str:
    """A regular expression for a text with `*` and `?`.

    >>> glob_regex("tmp_*")
    'tmp_.*'
    """
    return "".join(
        {"*": ".*", "?": "."}.get(c) or re.escape(c) for c in re.sub(r"\*+", "*", pattern)
    )


def split_glob(pattern: str) -> tuple[str, str]:
    """The database and the table of a table pattern.

    >>> split_glob("shop.tmp_*")
    ('shop', 'tmp_*')
    """
    if pattern.startswith("!"):
        raise UsageError(f"{shown(pattern)} starts with '!'; list {pattern[1:]!a} under exclude")
    if _NOT_A_GLOB.search(pattern):
        raise UsageError(
            f"invalid table pattern {shown(pattern)}; write database.table or, where the "
            "source has schemas, database.schema.table or schema.table, without quotes, "
            "with * for any text and ? for any character"
        )
    database, dot, table = pattern.partition(".")
    if not dot:
        hint = "*.*" if pattern in ("", "*") else f"{pattern}.*"
        raise UsageError(
            f"{shown(pattern)} is not database.table; did you mean {hint!r}? write database.table"
        )
    if not database or not table or table.startswith("."):
        raise UsageError(f"invalid table pattern {shown(pattern)}; write it as 'shop.*'")
    return database, table


def table_pattern(text: str) -> str:
    """A table pattern, checked."""
    split_glob(text)
    return text


def in_schema(table: str) -> tuple[str, str] | None:
    """The table of a pattern, read as schema and table; None if it has no schema.

    >>> in_schema("public.tmp_*"), in_schema("tmp_*")
    (('public', 'tmp_*'), None)
    """
    schema, _, name = table.partition(".")
    return (schema, name) if schema and name else None


class TableGlob:
    """A compiled table pattern.

    Where the source has schemas, two names are `database.table`, of any schema, or `schema.table`.

    >>> TableGlob("shop.tmp_*").matches(("shop", None, "tmp_1"))
    True
    """

    def __init__(self, pattern: str) -> None:
        database, table = split_glob(pattern)
        with_schema = in_schema(table)
        self._two_names = [_NameGlob(database), _NameGlob(table)]
        self._three_names = None
        if with_schema is not None:
            self._three_names = [_NameGlob(name) for name in (database, *with_schema)]

    def matches(self, names: TableNames) -> bool | None:
        """Whether a table matches; None where that depends on a name that is not known."""
        database, schema, table = names
        if schema is None:
            return _all_match(self._two_names, (database, table))
        if self._three_names is not None:
            return _all_match(self._three_names, names)
        return any_true(_all_match(self._two_names, (first, table)) for first in (database, schema))


class _NameGlob:
    """A compiled glob of one name."""

    def __init__(self, glob: str) -> None:
        self.matches: Callable[[str], object] = re.compile(glob_regex(glob), re.DOTALL).fullmatch
        self.matches_all = not glob.strip("*")


def _all_match(globs: list[_NameGlob], names: tuple[str | None, ...]) -> bool | None:
    certain = True
    for glob, name in zip(globs, names):
        if name is None:
            certain = certain and glob.matches_all
        elif not glob.matches(name):
            return False
    return True if certain else None


def any_true(verdicts: Iterable[bool | None]) -> bool | None:
    """True if one verdict is, else None if one is unknown.

    >>> any_true([False, None]), any_true([])
    (None, False)
    """
    known = list(verdicts)
    return True if True in known else None if None in known else False


def as_glob(template: str) -> str:
    """The template of a topic or table as a glob that matches all it can become.

    >>> as_glob("cdc.{database}.$1")
    'cdc.*.*'
    """
    return re.sub(r"\{\w+\}|\$\d+", "*", template)


def overlap(one: str, other: str) -> bool:
    """Whether some text matches both globs.

    >>> overlap("cdc-*", "*-orders"), overlap("cdc-*", "cdc.orders")
    (True, False)
    """
    ways = {0}
    for char in one:
        ways = _stars(ways, other)
        if char == "*":
            ways = set(range(min(ways), len(other) + 1)) if ways else ways
            continue
        ways = {
            w if other[w] == "*" else w + 1
            for w in ways
            if w < len(other) and (other[w] in ("*", "?") or char in ("?", other[w]))
        }
    return len(other) in _stars(ways, other)


def _stars(ways: set[int], pattern: str) -> set[int]:
    """The positions in a glob, and those reached from them if stars match nothing."""
    reached = set(ways)
    for way in ways:
        while way < len(pattern) and pattern[way] == "*":
            way += 1
            reached.add(way)
    return reached
