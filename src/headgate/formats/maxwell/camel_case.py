"""Maxwell's option `output_naming_strategy`: members in camel case."""

from __future__ import annotations

from headgate.core.cache import BoundedCache
from headgate.formats.maxwell.encode_values import (
    Message,
)


def camel_case(name: str) -> str:
    """A name as output_naming_strategy=underscore_to_camelcase writes it.

    >>> camel_case("_primary_key_columns_"), camel_case("__"), camel_case("a__b")
    ('primaryKeyColumns', '__', 'a_b')
    """
    result, at = "", 0
    while at < len(name):
        letter = name[at]
        at += 1
        if letter != "_":
            result += letter
        elif result and at < len(name):  # the next character, even if it is an underscore
            result += name[at].upper() if name[at].islower() else name[at]
            at += 1
    return result or name


_camel: BoundedCache[str, str] = BoundedCache(camel_case)
RENAMED = ("server_id", "thread_id", "schema_id", "push_ts", "primary_key", "primary_key_columns")


def in_camel_case(message: Message) -> Message:
    """The message with members and columns renamed; attributes keep their names."""
    for name in ("data", "old"):
        if name in message:
            message[name] = {_camel[n]: value for n, value in message[name].items()}
    return {_camel[n] if n in RENAMED else n: value for n, value in message.items()}
