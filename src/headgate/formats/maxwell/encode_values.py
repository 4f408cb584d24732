"""Maxwell's row values: canonical text as the JSON that Maxwell and OMS write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from headgate.core.cache import BoundedCache
from headgate.core.event import Event, Types
from headgate.core.losses import Lossy
from headgate.core.mysql_types import TIMES, MySqlType, parse_type
from headgate.core.values import local, with_digits
from headgate.formats._oms import encode_values as oms_values
from headgate.formats.encoding import (
    PerTypeMap,
    Write,
    Writers,
    hinted,
    jackson_style,
    java_float,
    json_value,
    name_list,
    number,
    to_json,
    whole,
)
from headgate.formats.maxwell.words import ATTRIBUTE, OWN_NAMES

Message = dict[str, Any]
"""Members in the order in which they are written."""

MEMBERS = OWN_NAMES | {
    "query", "commit", "schema_id", "push_ts", "comment", "reason", "primary_key", "uuid", "mesh",
    "charset", "old", "def",
}  # fmt: skip
"""Names in `extra` that are not attributes."""
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
    value = json_value(text)
    if value is None:
        raise Lossy("misfit", text)
    return Raw(bytes(value).replace(b"\\u00", SHIELDED)) if "\\u00" in text else value


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
    """A SET whose labels are unknown: its number as text.

    >>> numbered_set("5"), numbered_set("a,b")
    ('5', ['a', 'b'])
    """
    return text if text.isascii() and text.isdigit() else oms_values.set_members(text)


def no_zero_date(text: str) -> str:
    """A date, or NULL for a zero date.

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
FOREIGN: Mapping[str, Write] = {**NATIVE, "float": java_float, "double": java_float}
"""The same for values that another producer sent."""
MOST_DIGITS = 6


class Plan(msgspec.Struct):
    """What a table's types mean for its rows."""

    writers: Writers
    snapshot_writers: Writers
    digits: bool
    """Whether true and false are written as 1 and 0."""
    named: frozenset[str] | None = None
    """Columns with a declared type; None where columns without one do not matter."""
    known: frozenset[str] = frozenset()

    def of(self, event: Event, lost: list[str]) -> Writers:
        """The writers of one event: by column type, else by how the columns were sent."""
        if self.named is not None and oms_values.has_others(event, self.named):
            lost.append("types-guessed")
        typed = self.snapshot_writers if event.op == "snapshot" else self.writers
        hints = came_bare(event.extra, self.digits) if event.extra else ()
        if not hints:
            return typed
        known = self.known
        return [*typed, *(hint for hint in hints if hint[0] not in known)] if known else hints


def came_bare(extra: Mapping[str, str], digits: bool) -> Writers:
    """Writers for the columns that were sent as numbers, true, false, objects or arrays.

    >>> [name for name, _ in came_bare({"numbers": '["id"]', "nested": '["doc"]'}, False)]
    ['id', 'doc']
    """
    writers, nested = hinted(extra, digits), extra.get("nested")
    return writers if nested is None else [*writers, *_nested[nested]]


_nested: BoundedCache[str, Writers] = BoundedCache(
    lambda names: [(name, embedded) for name in name_list(names)]
)


def planner(
    dialect: str, zone: str, null_zerodates: bool, same_dialect: bool, numbered: bool
) -> Callable[[Types | None], Plan]:
    """A function that makes the plan of a type map.

    `same_dialect` says that the dialect sent the values itself, `numbered` that ENUM and SET may
    be numbers.
    """
    native = dialect == "maxwell"
    # TIMESTAMP is UTC from the binlog, but in a bootstrap local to Maxwell's JVM.
    to_local = local(zone) if native else None
    families = NATIVE if same_dialect else FOREIGN

    def writer(type_: MySqlType, snapshot: bool = False) -> Write | None:
        if numbered and type_.base == "set" and not type_.labels:
            return numbered_set
        if not native:
            return oms_values.writer("Maxwell", type_)
        if type_.family in TIMES:
            return time_writer(type_, snapshot)
        return families.get(type_.family)

    def time_writer(type_: MySqlType, snapshot: bool) -> Write | None:
        steps: list[Write] = []
        if null_zerodates and not snapshot and type_.family != "time":
            steps.append(no_zero_date)
        if not same_dialect and type_.length is not None and type_.length <= MOST_DIGITS:
            steps.append(with_digits(type_.length))
        if snapshot and to_local and type_.family == "timestamp":
            steps.append(to_local)
        return chained(steps)

    def make(types: Types | None) -> Plan:
        digits = not (native or same_dialect)
        if types is None:
            return Plan((), (), digits)
        parsed = {name: parse_type(column.mysql) for name, column in types.items()}
        return Plan(
            [(n, write) for n, type_ in parsed.items() if (write := writer(type_))],
            [(n, write) for n, type_ in parsed.items() if (write := writer(type_, True))],
            digits,
            None if same_dialect else oms_values.named(types),
            frozenset(name for name, type_ in parsed.items() if type_.family != "unknown"),
        )

    return PerTypeMap(make)


def chained(steps: list[Write]) -> Write | None:
    """One function that applies several in order; None if there are none.

    >>> chained([str.strip, str.lower])(" A"), chained([])
    ('a', None)
    """
    if len(steps) < 2:
        return steps[0] if steps else None

    def write(text: str) -> Any:
        for step in steps:
            text = step(text)
        return text

    return write


def is_own(event: Event, dialect: str) -> bool:
    """Whether an event was read from this very dialect."""
    return event.format == "maxwell" and event.dialect in (None, dialect)


def attributes(extra: Mapping[str, str], lost: list[str]) -> Iterator[tuple[str, Any]]:
    """Members that a JavaScript filter put into the message.

    >>> [(name, bytes(raw)) for name, raw in attributes({"region": '"eu"', "commit": "true"}, [])]
    [('region', b'"eu"')]
    """
    for name, text in extra.items():
        if name not in MEMBERS and name not in WIRE:
            plain = name.removeprefix(ATTRIBUTE)
            yield plain if plain in OWN_NAMES else name, embed(text, lost)


def withdraw_loss(code: str, lost: list[str]) -> bool:
    """Withdraw a loss that this message does not have after all; False if it was not noted."""
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
    return text.replace(b"\0", b"0") if 0 in text else text
