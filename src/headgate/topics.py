"""Names of Kafka topics made from names in messages."""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]|_(?=x[0-9a-f]{2})", re.ASCII)


def safe(name: str) -> str:
    """A name in the characters of topics.

    >>> safe("order items"), safe("a_x20b")
    ('order_x20items', 'a_x5fx20b')
    """
    return _UNSAFE.sub(
        lambda m: "".join(f"_x{b:02x}" for b in m[0].encode("utf-8", "surrogatepass")), name
    )
