"""Names and texts in SQL."""

from __future__ import annotations


def identifier(name: str) -> str:
    """A name in SQL.

    >>> identifier("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """A text in SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def table_name(database: str, table: str) -> str:
    """The full name of a table in SQL.

    >>> table_name("shop", "orders")
    '`shop`.`orders`'
    """
    return f"{identifier(database)}.{identifier(table)}"
