"""Regular expressions of routes: `database.table` split at the dot between the two names."""

from __future__ import annotations

import re

from headgate.core.errors import UsageError, shown

_GROUP = re.compile(r"\$(\d+)")
_QUANTIFIERS = ("*", "+", "?", "{")


def split_regex(pattern: str) -> tuple[str, str]:
    r"""The expressions for database and table: what is before and after the dot between them.

    That is the first dot, escaped or not, outside brackets and without `*`, `+` or `?` after it.

    >>> split_regex("shop.(.*)"), split_regex(r"shop_\d+\.orders")
    (('shop', '(.*)'), ('shop_\\d+', 'orders'))
    """
    at = _dot(pattern)
    if at is None:
        raise UsageError(
            f"no dot separates database and table in {shown(pattern)}; "
            "write it as 'shop.(.*)' or 'shop\\.orders_.*'"
        )
    database, table = pattern[: at[0]], pattern[at[1] :]
    for part in (database, table):
        try:
            re.compile(part)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"invalid regular expression {shown(pattern)}: {error}") from None
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


def groups(pattern: str) -> int:
    """The number of groups of an expression.

    >>> groups("(a)(b)")
    2
    """
    return re.compile(pattern).groups


def check_groups(template: str, count: int) -> None:
    """Reject a `$1` for which there is no group."""
    for number in _GROUP.findall(template):
        if not 1 <= int(number) <= count:
            raise UsageError(
                f"{shown(template)} refers to group ${number}, but the table pattern has "
                f"{count or 'none'}; put parentheses around the group"
            )


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
