"""The fields that Debezium's transform adds to a row (`add.fields`, `add.headers`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET

from headgate.core.cache import BoundedCache
from headgate.core.event import Event
from headgate.formats._connect import schema as connect_schema
from headgate.formats._connect.connectors import MYSQL_LIKE
from headgate.formats._connect.encode_rows import (
    NOTHING,
)
from headgate.formats.debezium.encode import OPS, ORDERS
from headgate.formats.debezium.encode_parts import int64_or_none, millis_or_none, nanos
from headgate.formats.debezium.encode_source import POSITION_MEMBERS, with_own_members
from headgate.formats.debezium.messages import Source
from headgate.formats.encoding import name_list

DELETED = "__deleted"
LONGS = {"ts_ms", "ts_us", "ts_ns", "pos", "server_id", "thread", "lsn"}
LONGS |= {*ORDERS}
IN_TRANSACTION = ("id", *ORDERS)


Get = Callable[[Event, Any, Mapping[str, str]], Any]
"""From an event, its source and its kept members to the value of an added field; UNSET if the
message has no such member."""

ENVELOPE: dict[str, Get] = {
    "op": lambda event, source, extra: OPS[event.op or ""],
    "ts_ms": lambda event, source, extra: millis_or_none(event.emit_time),
    "ts_us": lambda event, source, extra: event.emit_time,
    "ts_ns": lambda event, source, extra: nanos(event.emit_time),
}
CARRIED = {
    "op": ("insert", "snapshot"),
    "db": ("database",),
    "schema": ("schema-name",),
    "table": ("table",),
    "ts_ms": ("emit-time", "emit-time-millis"),
    "ts_us": ("emit-time", "emit-time-millis", "emit-time-micros"),
    "ts_ns": ("emit-time", "emit-time-millis", "emit-time-micros"),
    "source.db": ("database",),
    "source.schema": ("schema-name",),
    "source.table": ("table",),
    "source.ts_ms": ("event-time", "event-time-millis"),
    "source.ts_us": ("event-time", "event-time-millis", "event-time-micros"),
    "source.ts_ns": ("event-time", "event-time-millis", "event-time-micros"),
    **{f"source.{name}": (f"position.{name}",) for name in POSITION_MEMBERS},
}
"""The codes of what an added field can represent, by its path."""


class Added(NamedTuple):
    """One added field: its name, its type in the schema, and the function that gets its value."""

    name: str
    type: str
    get: Get


def added(name: str, path: str) -> Added:
    """An added field from `op`, `source.ts_ms`, or a member by its own name.

    The transform looks in the struct that the path names, else in the envelope.

    >>> added("__op", "op").get(Event("row", "insert"), None, {})
    'c'
    """
    family, dot, member = path.rpartition(".")
    if not dot:
        family = "transaction" if member in IN_TRANSACTION else "source"
    wire = wire_of(member)
    if family == "transaction" and member in IN_TRANSACTION:
        extra_name = f"transaction.{member}"
        return Added(name, wire, lambda event, source, extra: typed(extra.get(extra_name), wire))
    of_source = dot and family == "source" and member in Source.__struct_fields__
    if member in ENVELOPE and not of_source:
        return Added(name, wire, ENVELOPE[member])
    if family == "transaction":
        return Added(name, wire, lambda event, source, extra: UNSET)
    return Added(name, wire, from_source(member))


def wire_of(member: str) -> str:
    """A member's type in the schema.

    >>> wire_of("pos"), wire_of("table")
    ('int64', 'string')
    """
    if member == connect_schema.SNAPSHOT:
        return connect_schema.SNAPSHOT
    return "int64" if member in LONGS else "int32" if member == "row" else "string"


def from_source(member: str) -> Get:
    """A function that returns a member of the source, also of connectors for other databases."""

    def get(event: Event, source: Any, extra: Mapping[str, str]) -> Any:
        if source.connector not in MYSQL_LIKE:
            value = with_own_members(source, event, extra).get(member, UNSET)
        else:
            value = getattr(source, member) if member in Source.__struct_fields__ else UNSET
        # The transform does not write "false", which is the schema's default.
        return None if member == connect_schema.SNAPSHOT and value == "false" else value

    return get


def typed(text: str | None, wire: str) -> Any:
    """A kept value with its type from the schema."""
    number = int64_or_none(text) if wire.startswith("int") else None
    return text if number is None else number


def deleted(event: Event, source: Any, extra: Mapping[str, str]) -> str:
    """Whether the row was deleted, as text."""
    return "true" if event.op == "delete" else "false"


REWRITTEN = Added(DELETED, "string", deleted)


def path_of(name: str, prefix: str) -> str:
    """The path of an added field of a decoded row.

    >>> path_of("__source_ts_ms", "__"), path_of("__op", "__")
    ('source.ts_ms', 'op')
    """
    short = name.removeprefix(prefix)
    for family in ("source_", "transaction_"):
        if short.startswith(family):
            return f"{family[:-1]}.{short[len(family) :]}"
    return short


def own_field(name: str, prefix: str, is_boolean: bool) -> Added:
    """An added field of a row that this format decoded: from the event, or as kept in `extra`."""
    if name == DELETED:
        if is_boolean:
            return Added(name, "boolean", lambda event, source, extra: event.op == "delete")
        return REWRITTEN
    path = path_of(name, prefix)
    field = added(name, path)
    if path in CARRIED:
        return field
    return field._replace(get=lambda event, source, extra: typed(extra.get(name), field.type))


Fields = tuple[list[Added], frozenset[str]]
"""The added fields in their order, and the codes of what they can represent."""


def codes_of(paths: Iterable[str]) -> frozenset[str]:
    """The codes of what added fields can represent."""
    return frozenset(code for path in paths for code in CARRIED.get(path, ()))


def make_own_fields(prefix: str) -> Callable[[Event], Fields]:
    """A function from a row that this format decoded to its added fields."""

    def make(cache_key: tuple[str | None, str | None]) -> Fields:
        names, booleans = map(name_list, cache_key)
        fields = [own_field(name, prefix, DELETED in booleans) for name in names]
        return fields, codes_of(path_of(name, prefix) for name in names)

    known = BoundedCache(make)

    def own_fields(event: Event) -> Fields:
        extra = event.extra or NOTHING
        return known[(extra.get("fields"), extra.get("booleans"))]

    return own_fields
