"""The members of a Maxwell message as they are read."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headgate.core.errors import DecodeError
from headgate.core.json import Int64, Raw, members, parse, reader

NULL = Raw(b"null")


class Wire(msgspec.Struct, gc=False):
    """All members that Maxwell and OMS have, also under their camelCase names."""

    type: str
    database: str | None = None
    table: str | None = None
    ts: Int64 | None = None
    data: dict[str, Any] | None = None
    old: dict[str, Any] | None = None
    xid: int | str | None = None
    xoffset: int | None = None
    commit: bool | None = None
    position: str | None = None
    gtid: str | None = None
    server_id: int | None = None
    thread_id: int | None = None
    schema_id: int | None = None
    push_ts: Any = None  # a float would lose digits
    primary_key: Raw = NULL
    primary_key_columns: Raw = NULL
    serverId: int | None = None
    threadId: int | None = None
    schemaId: int | None = None
    pushTs: Any = None
    primaryKey: Raw = NULL
    primaryKeyColumns: Raw = NULL
    query: str | None = None
    comment: str | None = None
    reason: str | None = None
    uuid: str | UnsetType | None = UNSET
    mesh: str | None = None
    charset: str | None = None
    sql: str | UnsetType | None = UNSET
    def_: Raw | UnsetType = msgspec.field(name="def", default=UNSET)


class KnownWire(Wire, gc=False, forbid_unknown_fields=True):
    """The same, but rejects unknown members, which would otherwise be skipped silently."""


class Definition(msgspec.Struct, gc=False):
    """The part of a table definition that an event has columns for."""

    database: str | None = None
    table: str | None = None
    columns: list[Any] | None = None
    primary_key: list[str] | None = msgspec.field(name="primary-key", default=None)


class DdlOld(msgspec.Struct, gc=False):
    """The definition before an ALTER, as its own bytes."""

    old: Raw = NULL


known_reader = reader(KnownWire)
any_reader = reader(Wire)
definition_reader = reader(Definition | None)
ddl_old_reader = reader(DdlOld)
MEMBERS = {field.encode_name for field in msgspec.structs.fields(Wire)}


def read(value: bytes) -> tuple[Any, dict[str, Raw]]:
    """Parse a message; the second part holds the members that are not Maxwell's own."""
    try:
        if not value.isascii():
            str(value, "utf-8")
        return known_reader.decode(value), {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    raw_members: dict[str, Raw] = parse(members, value)
    if "encrypted" in raw_members:
        raise DecodeError(
            "encrypted",
            "the message is encrypted: Maxwell ran with encrypt=data or encrypt=all",
            "turn Maxwell's option encrypt off, or decrypt the topic before Headgate reads it",
        )
    return parse(any_reader, value), {n: raw for n, raw in raw_members.items() if n not in MEMBERS}
