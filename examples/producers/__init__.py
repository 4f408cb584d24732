"""Writers of every dialect, each after its producer's own code or document."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NamedTuple

TOPIC = "shop"


class Message(NamedTuple):
    """A Kafka record."""

    key: bytes | None
    value: bytes | None
    topic: str = TOPIC


def dump(value: Any) -> str:
    """JSON without spaces; a Decimal is a bare number with every digit."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dump(k)}:{dump(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(dump, value)) + "]"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value, ensure_ascii=False)


def html_safe(text: str) -> str:
    """JSON as Go's encoders write it: the characters of HTML are escaped."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(value: Any) -> Message:
    """A message without a key."""
    return Message(None, dump(value).encode())


def base(mysql_type: str) -> str:
    """A type without its parameters: `decimal(20,4)` is `decimal`."""
    name, _, rest = mysql_type.partition("(")
    return name + rest.partition(")")[2]
