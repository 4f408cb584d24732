"""Flink CDC's words for routes and transforms, as Headgate's own."""

from __future__ import annotations

import re

from headgate.core.errors import UsageError, shown
from headgate.selection.regexes import groups, regex_in_schema, split_regex

_COLUMN_LIST = re.compile(r"\s*[\w$]+\s*(?:,\s*[\w$]+\s*)*")


def flink_regex(pattern: str) -> str:
    r"""Flink CDC's `source-table`: a dot is the dot between names, `\.` is any character.

    >>> flink_regex(r"shop.order_\.*")
    'shop\\.order_.*'
    """
    parts = re.split(r"(?<!\\)\.", pattern)
    if not 2 <= len(parts) <= 3:
        raise UsageError(
            f"{shown(pattern)} is not database.table or database.schema.table; as in Flink CDC, "
            "a dot separates the names, and '\\.' in an expression is any character"
        )
    return "\\.".join(part.replace("\\.", ".") for part in parts)


def flink_glob(pattern: str) -> str:
    r"""Flink CDC's `source-table` as a glob, where it can be one.

    >>> flink_glob(r"shop.order_\.*")
    'shop.order_*'
    """
    parts = flink_regex(pattern).split("\\.")
    if not all(re.fullmatch(r"[\w$-]*", part.replace(".*", "")) for part in parts):
        raise UsageError(
            f"{shown(pattern)} is more than names and '\\.*'; use filter: with * and ?"
        )
    return ".".join(part.replace(".*", "*") for part in parts)


def replace_symbol(table: str, to: str | None, symbol: str) -> tuple[str, str]:
    r"""A route's pattern and target, with Flink CDC's placeholder of the table's name as a group.

    >>> replace_symbol(r"shop\..*", "ods.ods_<>", "<>")
    ('shop\\.(.*)', 'ods.ods_$1')
    """
    if to is None or symbol not in to:
        raise UsageError(f"sink-table does not contain the replace-symbol {shown(symbol)}")
    if "$" in to.replace(symbol, ""):
        raise UsageError("sink-table has both a replace-symbol and $; use one of them")
    database, rest = split_regex(table)
    schema = regex_in_schema(rest)
    above, name = ([database], rest) if schema is None else ([database, schema[0]], schema[1])
    number = sum(map(groups, above)) + 1
    return "\\.".join([*above, f"({name})"]), to.replace(symbol, f"${number}")


def projection(text: str) -> tuple[str, ...] | None:
    r"""The columns of a projection; None where it is `*` or Flink CDC's `\*`, which are all.

    >>> projection("id, name"), projection(r"\*")
    (('id', 'name'), None)
    """
    if text.strip() in ("*", "\\*"):
        return None
    if not _COLUMN_LIST.fullmatch(text):
        raise UsageError(
            "only a list of columns or '*' is supported; Headgate does not compute columns"
        )
    return tuple(part.strip() for part in text.split(","))
