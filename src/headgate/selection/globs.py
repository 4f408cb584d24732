"""Names of tables and columns as patterns: globs to select, regular expressions to route."""

from __future__ import annotations

import re

from headgate.core.errors import UsageError, shown

_NOT_A_GLOB = re.compile(r"[()\[\]{}|\\^+`\"'/,;\s]")
_GROUP = re.compile(r"\$(\d+)")
_QUANTIFIERS = ("*", "+", "?", "{")


def glob_regex(pattern: str) -> str:
    """A regular expression for a text with `*` and `?`.

    >>> glob_regex("tmp_*")
    'tmp_.*'
    """
    return "".join(
        {"*": ".*", "?": "."}.get(c) or re.escape(c) for c in re.sub(r"\*+", "*", pattern)
    )


def split_glob(pattern: str) -> tuple[str, str]:
    """The database and the table of a pattern, refusing what is none.

    >>> split_glob("shop.tmp_*")
    ('shop', 'tmp_*')
    """
    if pattern.startswith("!"):
        raise UsageError(f"{shown(pattern)} starts with '!'; list {pattern[1:]!a} under exclude")
    if _NOT_A_GLOB.search(pattern):
        raise UsageError(
            f"{shown(pattern)} is no pattern of a table; write database.table or, where the "
            "source has schemas, database.schema.table or schema.table, without quotes, "
            "with * for any text and ? for any character"
        )
    database, dot, table = pattern.partition(".")
    if not dot:
        hint = "*.*" if pattern in ("", "*") else f"{pattern}.*"
        raise UsageError(
            f"{shown(pattern)} names no database and table; did you mean {hint!r}? "
            "write database.table"
        )
    if not database or not table or table.startswith("."):
        raise UsageError(f"{shown(pattern)} is no pattern of a table; write it as 'shop.*'")
    return database, table


def in_schema(table: str) -> tuple[str, str] | None:
    """A pattern's table, read as schema and table; None where it names no schema.

    >>> in_schema("public.tmp_*"), in_schema("tmp_*")
    (('public', 'tmp_*'), None)
    """
    schema, _, name = table.partition(".")
    return (schema, name) if schema and name else None


def split_regex(pattern: str) -> tuple[str, str]:
    r"""The expressions for database and table: what is before and after the dot between them.

    That is the first dot, escaped or not, outside brackets and without `*`, `+` or `?` after it.

    >>> split_regex("shop.(.*)"), split_regex(r"shop_\d+\.orders")
    (('shop', '(.*)'), ('shop_\\d+', 'orders'))
    """
    at = _dot(pattern)
    if at is None:
        raise UsageError(
            f"{shown(pattern)} does not say where the database's name ends; "
            "write it as 'shop.(.*)' or 'shop\\.orders_.*'"
        )
    database, table = pattern[: at[0]], pattern[at[1] :]
    for part in (database, table):
        try:
            re.compile(part)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"{shown(pattern)} is no regular expression: {error}") from None
    if not database or not table:
        raise UsageError(f"{shown(pattern)} lacks a database or a table; write database.table")
    return database, table


def regex_in_schema(table: str) -> tuple[str, str] | None:
    r"""The expression for a table, read as one for a schema and one for a table; None if it is one.

    >>> regex_in_schema(r"public\.(.*)"), regex_in_schema("(.*)")
    (('public', '(.*)'), None)
    """
    at = _dot(table)
    if at is None or not table[: at[0]] or not table[at[1] :]:
        return None
    parts = table[: at[0]], table[at[1] :]
    try:
        return parts if all(map(re.compile, parts)) else None
    except re.error:
        return None


def _dot(pattern: str) -> tuple[int, int] | None:
    """Where the first dot between two names starts and ends."""
    at, depth, in_class = 0, 0, False
    while at < len(pattern):
        char = pattern[at]
        width = 2 if char == "\\" else 1
        if in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
            # A bracket that comes first is one of the characters.
            width += len(re.match(r"\^?\]?", pattern[at + 1 :])[0])  # type: ignore[index]
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif (
            depth == 0
            and pattern[at : at + width] in (".", "\\.")
            and not pattern.startswith(_QUANTIFIERS, at + width)
        ):
            return at, at + width
        at += width
    return None


def groups(pattern: str) -> int:
    """How many groups an expression has.

    >>> groups("(a)(b)")
    2
    """
    return re.compile(pattern).groups


def check_groups(template: str, count: int) -> None:
    """Refuse a `$1` for which there is no group."""
    for number in _GROUP.findall(template):
        if not 1 <= int(number) <= count:
            raise UsageError(
                f"{shown(template)} asks for group ${number}, and the table's pattern has "
                f"{count or 'none'}; put parentheses around what is meant"
            )


def as_glob(template: str) -> str:
    """A topic's or table's template as a glob of all it can become.

    >>> as_glob("cdc.{database}.$1")
    'cdc.*.*'
    """
    return re.sub(r"\{\w+\}|\$\d+", "*", template)


def overlap(one: str, other: str) -> bool:
    """Whether some text fits both globs.

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
    """Also the places that are reached by letting a star be nothing."""
    found = set(ways)
    for way in ways:
        while way < len(pattern) and pattern[way] == "*":
            way += 1
            found.add(way)
    return found


def flink_regex(pattern: str) -> str:
    r"""Flink CDC's `source-table`: a dot is the dot between names, `\.` is any character.

    >>> flink_regex(r"shop.order_\.*")
    'shop\\.order_.*'
    """
    parts = re.split(r"(?<!\\)\.", pattern)
    if not 2 <= len(parts) <= 3:
        raise UsageError(
            f"{shown(pattern)} is no database.table or database.schema.table; as in Flink CDC "
            "a dot is the dot between the names, and '\\.' in an expression is any character"
        )
    return "\\.".join(part.replace("\\.", ".") for part in parts)


def flink_glob(pattern: str) -> str:
    r"""The same as a glob, where that says the same.

    >>> flink_glob(r"shop.order_\.*")
    'shop.order_*'
    """
    parts = flink_regex(pattern).split("\\.")
    if not all(re.fullmatch(r"[\w$-]*", part.replace(".*", "")) for part in parts):
        raise UsageError(
            f"{shown(pattern)} is more than names and '\\.*'; say it under filter: with * and ?"
        )
    return ".".join(part.replace(".*", "*") for part in parts)
