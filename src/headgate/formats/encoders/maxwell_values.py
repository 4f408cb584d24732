"""Maxwell's row values: canonical text as the JSON that Maxwell and OMS write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from headgate.event import Event, Types
from headgate.formats.encoders import oms_values
from headgate.formats.encoders.common import (
    Plans,
    Write,
    Writers,
    hinted,
    jackson_style,
    json_value,
    name_list,
    number,
    to_json,
    whole,
)
from headgate.formats.parts.maxwell_words import ATTRIBUTE, OWN_NAMES
from headgate.loss import Lossy
from headgate.memo import Memo
from headgate.mysql_types import MySqlType, parse_type
from headgate.values import local

Message = dict[str, Any]
"""Members in the order in which they are written."""

MEMBERS = OWN_NAMES | {
    "query", "commit", "schema_id", "push_ts", "comment", "reason", "primary_key", "uuid", "mesh",
    "charset", "old", "def",
}  # fmt: skip
"""Names in `extra` that are not those of attributes."""
WIRE = {"database", "table", "type", "ts", "data", "xid", "xoffset", "position", "gtid", "sql"}
"""Maxwell's own members, which no attribute may be."""
NOTHING: Mapping[str, str] = {}
SHIELDED = b"\\u\0\0"
"""Stands for `\\u00` in embedded JSON, whose escapes stay as they are: no JSON holds a NUL."""


def embedded(text: str) -> Raw:
    """JSON text as a value of its own, on one line.

    >>> bytes(embedded('{"a": 1.10}'))
    b'{"a": 1.10}'
    """
    if text == "null":
        raise Lossy("json-null", None)
    found = json_value(text)
    if found is None:
        raise Lossy("misfit", text)
    return Raw(bytes(found).replace(b"\\u00", SHIELDED)) if "\\u00" in text else found


def embed(text: str, lost: list[str]) -> Any:
    """JSON text of `extra` as a value; what is not JSON, as text."""
    if text == "null":
        return None
    try:
        return embedded(text)
    except Lossy as lossy:
        lost.append(lossy.code)
        return lossy.value


def numbered_set(text: str) -> Any:
    """A SET of which no labels are known: its number as it came, as text.

    >>> numbered_set("5"), numbered_set("a,b")
    ('5', ['a', 'b'])
    """
    return text if text.isascii() and text.isdigit() else oms_values.set_members(text)


def no_zero_date(text: str) -> str:
    """A date, or NULL for one that is no date.

    >>> no_zero_date("2020-01-01")
    '2020-01-01'
    """
    if text.startswith("0000-00-00"):
        raise Lossy("zero-dates", None)
    return text


NATIVE: Mapping[str, Write] = {
    "integer": whole,
    "year": oms_values.year,
    "decimal": oms_values.decimal,
    "float": number,
    "double": number,
    "bit": whole,
    "set": oms_values.set_members,
    "json": embedded,
}
"""How Maxwell writes each family of types; those that are not here are text already."""


class Plan(msgspec.Struct):
    """What a table's types mean for its rows."""

    writers: Writers
    snapshot_writers: Writers
    known: frozenset[str] = frozenset()

    def of(self, event: Event) -> Writers:
        """The writers of one event: by type, else as its columns came."""
        typed = self.snapshot_writers if event.op == "snapshot" else self.writers
        hints = came_bare(event.extra) if event.extra else ()
        if not hints:
            return typed
        known = self.known
        return [*typed, *(hint for hint in hints if hint[0] not in known)] if known else hints


NO_TYPES = Plan((), ())


def came_bare(extra: Mapping[str, str]) -> Writers:
    """Writers for the columns that came as numbers, true, false, objects or arrays.

    >>> [name for name, _ in came_bare({"numbers": '["id"]', "nested": '["doc"]'})]
    ['id', 'doc']
    """
    nested = extra.get("nested")
    return hinted(extra) if nested is None else [*hinted(extra), *_nested[nested]]


_nested: Memo[str, Writers] = Memo(lambda names: [(name, embedded) for name in name_list(names)])


def planner(
    dialect: str, zone: str, null_zerodates: bool, numbered: bool
) -> Callable[[Types | None], Plan]:
    """What makes the plan of a type map; `numbered` says that ENUM and SET may be numbers."""
    native = dialect == "maxwell"
    # TIMESTAMP is UTC from the binlog, but in a bootstrap local to Maxwell's JVM.
    to_local = local(zone) if native else None
    dates = dict.fromkeys(("date", "datetime", "timestamp"), no_zero_date)
    families = {**NATIVE, **dates} if null_zerodates else NATIVE

    def writer(type_: MySqlType) -> Write | None:
        if numbered and type_.base == "set" and not type_.labels:
            return numbered_set
        return families.get(type_.family) if native else oms_values.writer("Maxwell", type_)

    def snapshot_writer(type_: MySqlType) -> Write | None:
        if native and type_.family in dates:
            return to_local if type_.base == "timestamp" else None
        return writer(type_)

    def make(types: Types | None) -> Plan:
        if types is None:
            return NO_TYPES
        parsed = {name: parse_type(told.mysql) for name, told in types.items()}
        known = frozenset(name for name, type_ in parsed.items() if type_.family != "unknown")
        return Plan(
            [(n, write) for n, type_ in parsed.items() if (write := writer(type_))],
            [(n, write) for n, type_ in parsed.items() if (write := snapshot_writer(type_))],
            known,
        )

    return Plans(make)


def own_extra(event: Event, dialect: str) -> Mapping[str, str]:
    """What an event kept of a message of this very dialect."""
    own = event.format == "maxwell" and event.dialect in (None, dialect)
    return event.extra or NOTHING if own else NOTHING


def attributes(extra: Mapping[str, str], lost: list[str]) -> Iterator[tuple[str, Any]]:
    """Members that a JavaScript filter put into the message.

    >>> [(name, bytes(raw)) for name, raw in attributes({"region": '"eu"', "commit": "true"}, [])]
    [('region', b'"eu"')]
    """
    for name, text in extra.items():
        if name not in MEMBERS and name not in WIRE:
            plain = name.removeprefix(ATTRIBUTE)
            yield plain if plain in OWN_NAMES else name, embed(text, lost)


def said(code: str, lost: list[str]) -> bool:
    """Take back a loss, for this message does carry it; False where it was not lost."""
    if code not in lost:
        return False
    lost.remove(code)
    return True


def finish(message: Any) -> bytes:
    """The message's bytes with Jackson's escapes.

    >>> finish({"a": "\\x1f", "doc": embedded('"\\\\u001f"')})
    b'{"a":"\\\\u001F","doc":"\\\\u001f"}'
    """
    text = jackson_style(to_json(message))
    return text.replace(b"\0", b"0") if b"\0" in text else text
