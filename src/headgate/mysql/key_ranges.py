"""Ranges of a table's key in SQL."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.core.mysql_types import MARIADB_STRINGS, parse_type
from headgate.mysql.sql import identifier, literal

KeyColumn = tuple[str, str]
"""A column of a key: its name and its type."""
Bound = list[str]
"""The key of a row, as texts of `bound_texts`."""
_NUMBERS = ("integer", "bit", "year", "enum", "set", "decimal")


def where(key: Sequence[KeyColumn], after: Bound | None, until: Bound | None) -> str:
    """The condition of the rows whose keys are behind a bound, and not behind another.

    >>> where([("a", "int")], ["1"], ["3"])
    ' WHERE `a` > 1 AND `a` <= 3'
    >>> where([("a", "int"), ("b", "int")], ["1", "2"], None)
    ' WHERE `a` >= 1 AND (`a` > 1 OR (`a` = 1 AND `b` > 2))'
    """
    conditions = []
    if after is not None:
        conditions += _beyond(key, after, ">", ">")
    if until is not None:
        conditions += _beyond(key, until, "<", "<=")
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def order_by(key: Sequence[KeyColumn]) -> str:
    """The order of rows by their keys; of a table without a key, none.

    >>> order_by([("a", "int"), ("b", "enum('x')")])
    ' ORDER BY `a`, `b` + 0'
    """
    return f" ORDER BY {', '.join(_ordered(*column) for column in key)}" if key else ""


def bound_texts(key: Sequence[KeyColumn]) -> str:
    """SQL for the texts of a bound.

    >>> bound_texts([("a", "int"), ("b", "varchar(9)")])
    'CAST(`a` + 0 AS CHAR), HEX(CONVERT(`b` USING utf8mb4))'
    """
    return ", ".join(_text(*column) for column in key)


def _beyond(key: Sequence[KeyColumn], bound: Bound, than: str, last: str) -> list[str]:
    """The conditions that a key is on one side of a bound."""
    columns = [_ordered(*column) for column in key]
    values = [_literal(text, mysql) for text, (_, mysql) in zip(bound, key)]
    condition = f"{columns[-1]} {last} {values[-1]}"
    for column, value in reversed(list(zip(columns[:-1], values[:-1]))):
        condition = f"({column} {than} {value} OR ({column} = {value} AND {condition}))"
    if len(columns) == 1:
        return [condition]
    return [f"{columns[0]} {than}= {values[0]}", condition]  # servers find the range by the first


def _ordered(name: str, mysql: str) -> str:
    """A column as rows are ordered by it; labels are ordered by their numbers."""
    is_label = parse_type(mysql).family in ("enum", "set")
    return f"{identifier(name)} + 0" if is_label else identifier(name)


def _text(name: str, mysql: str) -> str:
    column, parsed = identifier(name), parse_type(mysql)
    if parsed.family == "string" and parsed.base not in MARIADB_STRINGS:
        return f"HEX(CONVERT({column} USING utf8mb4))"
    if parsed.family == "binary":
        return f"HEX({column})"
    return f"CAST({column}{' + 0' if parsed.family in _NUMBERS else ''} AS CHAR)"


def _literal(text: str, mysql: str) -> str:
    """A text of a bound in SQL."""
    parsed = parse_type(mysql)
    if parsed.family == "string" and parsed.base not in MARIADB_STRINGS:
        return f"_utf8mb4 X'{text}'"
    if parsed.family == "binary":
        return f"X'{text}'"
    return text if parsed.family in _NUMBERS else literal(text)
