"""TiCDC Open Protocol's columns: the type code, flags and writer of each column of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring as quote
from typing import Annotated, NamedTuple

from msgspec import Meta, MsgspecError
from msgspec.json import Decoder

from headgate.core.cache import BoundedCache
from headgate.core.column_flags import BINARY, HANDLE, MULTIPLE, NULLABLE, PRIMARY, UNSIGNED
from headgate.core.event import ColumnType, Event, Image, Types
from headgate.core.losses import Lossy
from headgate.core.mysql_types import MARIADB_STRINGS, SPATIAL, MySqlType, parse_type
from headgate.core.values import local
from headgate.formats.encoding import PerTypeMap, is_numbered, name_list
from headgate.formats.open_protocol.decode_columns import (
    BINARY_CODES,
    CODES,
    UNUSUAL_CODES,
)
from headgate.formats.open_protocol.encode_values import ToJson, bare_number, writer

TINYINT, DOUBLE, BIGINT, VARCHAR, JSON, DECIMAL, CHAR, GEOMETRY = 1, 5, 8, 15, 245, 246, 254, 255
CODE_OF = (
    {
        name: code
        for code, name in (*CODES.items(), *BINARY_CODES.items())
        if code not in UNUSUAL_CODES
    }
    | dict.fromkeys(SPATIAL, GEOMETRY)
    | dict.fromkeys(MARIADB_STRINGS, CHAR)
)
NOT_BINARY = {"string", "enum", "set"}
ALWAYS_UNSIGNED = {"bit", "year"}
SIGNED = {"integer", "decimal", "float", "double"}

Slot = tuple[str, str, str, ToJson]
"""A column: its name, the text for NULL, the text before a value, and the writer of values."""
LayoutKey = tuple[bool, bool, "tuple[str, ...] | None", tuple[str, ...], tuple["str | None", ...]]
"""What a layout depends on besides the types: same format, numbered, key, names, hints."""

HINTS = ("numbers", "booleans", "nested")
OWN_HINTS = ("h", "base64", "t")
ALL_HINTS = frozenset(HINTS + OWN_HINTS)
NO_OWN_HINTS = (None, None, None)
NO_HINTS = (None, None, None, *NO_OWN_HINTS)
_codes = Decoder(dict[str, Annotated[int, Meta(ge=0, le=255)]])


class Layout(NamedTuple):
    """How the images of a table are written, and the losses of each row."""

    columns: list[Slot]
    handle: list[Slot]
    lost: list[str]


def planner(dialect: str, zone: str) -> PerTypeMap[BoundedCache[LayoutKey, Layout]]:
    """Layouts by type map, then by layout key."""
    to_local = local(zone)

    def make(types: Types | None) -> BoundedCache[LayoutKey, Layout]:
        return BoundedCache(lambda key: make_layout(types or {}, key, dialect, to_local))

    return PerTypeMap(make)


def layout_key_of(event: Event, image: Image) -> LayoutKey:
    """The layout key of one image of an event."""
    same_format, extra = event.format == "open-protocol", event.extra
    hints: tuple[str | None, ...] = NO_HINTS
    if extra and not ALL_HINTS.isdisjoint(extra):
        hints = (
            *map(extra.get, HINTS),
            *(map(extra.get, OWN_HINTS) if same_format else NO_OWN_HINTS),
        )
    return same_format, is_numbered(event), event.key, tuple(image), hints


def members(image: Image, slots: list[Slot], lost: list[str]) -> str:
    """The columns of an image as a JSON object."""
    try:
        parts = [
            null if (text := image[name]) is None else head + to_json(text)
            for name, null, head, to_json in slots
        ]
    except Lossy:
        parts = [member(image[slot[0]], slot, lost) for slot in slots]
    return "{" + "},".join(parts) + "}}" if parts else "{}"


def member(text: str | None, slot: Slot, lost: list[str]) -> str:
    """One column, as text if its value does not fit the type."""
    _, null, head, to_json = slot
    if text is None:
        return null
    try:
        return head + to_json(text)
    except Lossy as lossy:
        lost.append(lossy.code)
        return head + quote(str(lossy.value))


class Hints(NamedTuple):
    """The hints about columns in `extra`."""

    numbers: frozenset[str]
    booleans: frozenset[str]
    nested: frozenset[str]
    handles: frozenset[str]
    base64: frozenset[str]
    codes: Mapping[str, int]


def parse_hints(texts: tuple[str | None, ...]) -> Hints:
    """Parse the hints of `extra`."""
    *names, codes = texts
    numbers, booleans, nested, handles, base64 = (frozenset(name_list(text)) for text in names)
    return Hints(numbers, booleans, nested, handles, base64, code_map(codes))


def code_map(text: str | None) -> dict[str, int]:
    """Type codes by column, from their JSON; empty if the text is not valid."""
    try:
        return _codes.decode(text) if text else {}
    except MsgspecError:
        return {}


def make_layout(
    types: Types, layout_key: LayoutKey, dialect: str, to_local: ToJson | None
) -> Layout:
    """Choose type code, flags and writer of each column, once for all rows with the same key."""
    same_format, numbered, key, names, hint_texts = layout_key
    hints = parse_hints(hint_texts)
    unflagged = same_format and dialect == "classic"  # the first releases wrote no flags
    columns, handle, guessed, derived = [], [], False, False
    for name in ordered(names, types, dialect):
        column = types.get(name, ColumnType())
        type_ = parse_type(column.mysql)
        code = hints.codes.get(name, CODE_OF.get(type_.base))
        in_key = key_flags(name, key)
        if code is None:
            slot, is_handle = guess(name, in_key, hints), bool(in_key & HANDLE)
            guessed = derived = True
        else:
            flags = column.flags
            if flags is None and not unflagged:
                derived = True
                flags = in_key | type_flags(type_, name in hints.base64)
            is_handle = bool(flags & HANDLE) if flags is not None else name in hints.handles
            binary = name in hints.base64 if flags is None else bool(flags & BINARY)
            head = f"{quote(name)}:{opening(code, flags, is_handle)}"
            to_json = writer(type_, code, binary, numbered, to_local)
            slot = (name, head + "null", head, to_json)
        columns.append(slot)
        if is_handle:
            handle.append(slot)
    lost = ["types-guessed"] * guessed
    if derived and key is None:
        lost.append("key-unknown")
    elif derived and not set(key or ()) <= set(names):
        lost.append("key")
    return Layout(columns, handle, lost)


def ordered(names: tuple[str, ...], types: Types, dialect: str) -> Iterable[str]:
    """Classic: sorted by bytes. New: the order of the table, which is known if there are flags."""
    if dialect == "classic":
        return sorted(names)
    if all(column.flags is None for column in types.values()):
        return names
    present = set(names)
    return [*(n for n in types if n in present), *(n for n in names if n not in types)]


def opening(code: int, flags: int | None, handle: bool) -> str:
    """A column object up to its value.

    >>> opening(3, 11, True)
    '{"t":3,"h":true,"f":11,"v":'
    """
    handle_text = ',"h":true' if handle else ""
    flags_text = "" if flags is None else f',"f":{flags}'
    return f'{{"t":{code}{handle_text}{flags_text},"v":'


def key_flags(name: str, key: tuple[str, ...] | None) -> int:
    """The flags implied by the primary key; any other column is assumed to be nullable.

    >>> key_flags("id", ("id",)), key_flags("a", ("a", "b")), key_flags("n", ("id",))
    (10, 42, 64)
    """
    if key is None or name not in key:
        return NULLABLE
    return HANDLE | PRIMARY | MULTIPLE * (len(key) > 1)


def type_flags(type_: MySqlType, binary: bool = False) -> int:
    """The flags implied by the type.

    >>> type_flags(parse_type("int unsigned")), type_flags(parse_type("text"))
    (129, 0)
    """
    unsigned = type_.base in ALWAYS_UNSIGNED or (type_.unsigned and type_.family in SIGNED)
    return BINARY * (binary or type_.family not in NOT_BINARY) | UNSIGNED * unsigned


def guess(name: str, in_key: int, hints: Hints) -> Slot:
    """A column without a type: VARCHAR, or derived from the look of a value that came bare."""
    head, handle = quote(name) + ":", bool(in_key & HANDLE)

    def column(code: int, flags: int, value: str) -> str:
        return opening(code, in_key | flags, handle) + value

    def as_text(text: str) -> str:
        return column(VARCHAR, 0, quote(text))

    def as_json(text: str) -> str:
        return column(JSON, BINARY, quote(text))

    def as_boolean(text: str) -> str:
        return column(TINYINT, BINARY, text) if text in ("0", "1") else as_text(text)

    def as_number(text: str) -> str:
        try:
            bare_number(text)
        except Lossy:
            return as_text(text)
        if "e" in text or "E" in text:
            return column(DOUBLE, BINARY, text)
        if "." not in text and text != "-0" and len(text) <= 20:
            if -(2**63) <= int(text) < 2**63:
                return column(BIGINT, BINARY, text)
            if 0 < int(text) < 2**64:
                return column(BIGINT, BINARY | UNSIGNED, text)
        return column(DECIMAL, BINARY, quote(text))

    to_json = as_text
    for names, hinted in (
        (hints.numbers, as_number),
        (hints.booleans, as_boolean),
        (hints.nested, as_json),
    ):
        if name in names:
            to_json = hinted
    return name, head + column(VARCHAR, 0, "null"), head, to_json
