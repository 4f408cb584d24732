"""Names of Kafka topics made from names in messages."""

from __future__ import annotations

import re

from headgate.core.event import qualified

MAX_TOPIC = 249
"""The longest name of a topic."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]|_(?=x[0-9a-f]{2})", re.ASCII)


def safe(name: str) -> str:
    """A name in the characters of topics.

    >>> safe("order items"), safe("a_x20b")
    ('order_x20items', 'a_x5fx20b')
    """
    return _UNSAFE.sub(
        lambda m: "".join(f"_x{b:02x}" for b in m[0].encode("utf-8", "surrogatepass")), name
    )


NAME = re.compile(r"\{(database|schema|table)\}")


def words(
    template: str, database: str | None, schema: str | None, table: str | None
) -> dict[str, str | None]:
    """What the names in a topic's template stand for.

    A source without schemas has databases in their place, as TiCDC says it. Where a template does
    not tell the schemas apart, the table's name does, so that no two tables share a topic.

    >>> words("cdc.{schema}.{table}", "shop", None, "orders")["schema"]
    'shop'
    >>> words("cdc.{database}.{table}", "shop", "public", "orders")["table"]
    'public.orders'
    """
    if "{schema}" not in template and "$" not in template:
        table = qualified(schema, table)
    return {"database": database, "schema": schema or database, "table": table}
