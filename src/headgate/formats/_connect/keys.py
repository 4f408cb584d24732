"""The keys of Kafka Connect's messages."""

from __future__ import annotations

import msgspec

from headgate.core.json import Raw, members

WRAPPER = {"schema", "payload"}


def key_members(key: bytes | None) -> dict[str, Raw] | None:
    """The members of the key's struct, with or without a schema; None if it is not a struct.

    >>> [*key_members(b'{"payload":{"id":1}}')], key_members(b"7")
    (['id'], None)
    """
    if not key:
        return None
    try:
        struct: dict[str, Raw] = members.decode(key)
        if "payload" in struct and struct.keys() <= WRAPPER:
            struct = members.decode(struct["payload"])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return struct
