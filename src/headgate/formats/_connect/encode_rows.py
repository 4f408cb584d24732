"""Rows of one table as Debezium and OMS write them: a layout per type map, made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Decoder

from headgate.core.cache import MOST_PLANS, Memo
from headgate.core.column_flags import NULLABLE
from headgate.core.event import ColumnType, Event, Image, Types
from headgate.core.losses import HINTS
from headgate.core.mysql_types import parse_type
from headgate.formats._connect.column import BOOLEAN, TEXT, Column, plain
from headgate.formats._connect.encode_numbers import INT64, real
from headgate.formats._connect.encode_values import column, fraction_digits, is_measured, nested
from headgate.formats._connect.fit import Pair, lacking, settle
from headgate.formats._connect.options import ValueOptions
from headgate.formats._oms import encode_values as oms_values
from headgate.formats.encoding import (
    Plans,
    Write,
    Writers,
    boolean,
    name_list,
    written,
)

MOST_FRACTION = 30
"""As many digits as a DECIMAL can have after the point."""
LONG, DOUBLE = plain("int64"), plain("double")
NOTHING: Mapping[str, str] = {}
CONNECT_FORMATS = ("debezium", "debezium-smt")
Row = dict[str, Any]
DATES = ("date", "datetime", "timestamp")
"""Types with values that are no date."""


class Layout:
    """How the columns of a type map are written, and the schema blocks that were made of them."""

    def __init__(self, columns: dict[str, Column], nullable: dict[str, bool]) -> None:
        self.columns, self.nullable = columns, nullable
        self.names = list(columns)
        self.writers: Writers = [(n, c.write) for n, c in columns.items() if c.write]
        self.nested = any(c.head["type"] in ("struct", "array") for c in columns.values())
        """Whether a column has a value that its own text makes."""
        self.required = [name for name, null in nullable.items() if not null]
        self.blocks: dict[Any, Any] = {}

    def block(self, told: Any, make: Callable[[], Any]) -> Any:
        """What was made where the same was told, made once.

        >>> layout = Layout({}, {})
        >>> layout.block("t", lambda: b"1"), layout.block("t", lambda: b"2")
        (b'1', b'1')
        """
        found = self.blocks.get(told)
        if found is None:
            if len(self.blocks) >= MOST_PLANS:
                self.blocks.clear()
            found = self.blocks[told] = make()
        return found


Make = Callable[[ColumnType, "int | None", bool, bool], Column]
"""From a column's type, its measured digits, whether the key has it, whether it is a boolean."""


class Plan:
    """A type map: its one layout, or one per number of digits where only values tell those.

    A key with a date whose flags nobody tells has a layout of its own: it is NOT NULL. So have rows
    that tell which TINYINT columns are booleans.
    """

    def __init__(self, types: Types | None, make: Make, measured: list[str], own: bool) -> None:
        parsed = {n: parse_type(t.mysql).family for n, t in (types or {}).items()}
        self.types = {n: t for n, t in (types or {}).items() if parsed[n] != "unknown"}
        self.dates = {n for n, t in self.types.items() if t.flags is None and parsed[n] in DATES}
        self.make, self.measured = make, measured
        self.tiny = {
            n for n, t in self.types.items() if own and parse_type(t.mysql).base == "tinyint"
        }
        self.layouts: dict[Any, Layout] = {}
        self.only = None if measured else self.layout((), (), None)

    def layout(
        self, digits: tuple[int, ...], keyed: tuple[str, ...], booleans: str | None
    ) -> Layout:
        """The layout for so many digits in measured columns, such dates in the key and booleans."""
        found = self.layouts.get((digits, keyed, booleans))
        if found is None:
            true_false = self.tiny.intersection(name_list(booleans))
            if len(self.layouts) >= MOST_PLANS:
                self.layouts.clear()
            counted = dict(zip(self.measured, digits))
            columns = {
                n: self.make(t, counted.get(n), n in keyed, n in true_false)
                for n, t in self.types.items()
            }
            nullable = {
                n: bool(t.flags & NULLABLE) for n, t in self.types.items() if t.flags is not None
            }
            found = self.layouts[digits, keyed, booleans] = Layout(columns, nullable)
        return found

    def of(self, event: Event) -> Layout:
        """The layout of an event."""
        keyed: tuple[str, ...] = ()
        if event.key and not self.dates.isdisjoint(event.key):
            keyed = tuple(name for name in event.key if name in self.dates)
        booleans = event.extra.get("booleans") if self.tiny and event.extra else None
        if self.only is not None:
            return self.layout((), keyed, booleans) if keyed or booleans else self.only
        found = []
        before, after = event.before, event.after
        for name in self.measured:
            text = after.get(name) if after is not None else None
            digits = fraction_digits(text) if text is not None else 0
            if before is not None:
                old = before.get(name)
                if old is not None and old != text:
                    digits = max(digits, fraction_digits(old))
            found.append(digits if digits < MOST_FRACTION else MOST_FRACTION)
        return self.layout(tuple(found), keyed, booleans)


def planner(options: ValueOptions, schemas: bool, own: bool) -> Callable[[Types | None], Plan]:
    """What makes the plan of a type map; `own` says that Debezium or OMS wrote the events."""

    def make_column(told: ColumnType, digits: int | None, keyed: bool, true_false: bool) -> Column:
        return column(told, options, schemas, own, digits, keyed, true_false)

    def make(types: Types | None) -> Plan:
        parsed = {n: parse_type(t.mysql) for n, t in (types or {}).items()}
        # Where lengths are told at all, a type without one has none: DATETIME is DATETIME(0).
        # A DECIMAL always has one in MySQL: without it, it is another database's.
        told = any(t.length is not None for t in parsed.values())
        measured = [
            n
            for n, t in parsed.items()
            if is_measured(t, options) and (not told or t.family == "decimal")
        ]
        return Plan(types, make_column, measured, own)

    return Plans(make)


def oms_planner(own: bool) -> Callable[[Types | None], Plan]:
    """The same for OMS."""

    def make_column(told: ColumnType, digits: int | None, keyed: bool, true_false: bool) -> Column:
        return BOOLEAN if true_false else oms_column(told)

    return Plans(lambda types: Plan(types, make_column, [], own))


OMS_TYPES = {
    "tinyint": "int16", "smallint": "int16", "mediumint": "int32", "int": "int32",
    "bigint": "int64", "float": "float64", "double": "float64", "bit": "bytes", "binary": "bytes",
    "date": "int32", "time": "int64", "year": "int32",
}  # fmt: skip
"""The types of OMS's schema, by MySQL's type or its family; all others are `string`."""


def oms_column(told: ColumnType) -> Column:
    """How OMS writes a column, and what its schema calls it.

    >>> oms_column(ColumnType("varbinary(4)")).write("ag==")
    '6A'
    """
    type_ = parse_type(told.mysql)
    if (told.mysql or "").lower().startswith("bool"):
        return BOOLEAN
    wire = OMS_TYPES.get(type_.base) or OMS_TYPES.get(type_.family, "string")
    if type_.base == "bigint" and type_.unsigned:
        wire = "string"
    return plain(wire, oms_values.writer("Debezium", type_))


def images_of(event: Event, layout: Layout, lost: list[str]) -> tuple[Row | None, Row | None]:
    """The row before and after, as JSON values."""
    if event.extra is None or "unavailable" not in event.extra:
        return written_images(event, layout, lost)
    before, after = written_images(event, layout, lost)
    put_unavailable(event, before, after)
    return before, after


def put_unavailable(event: Event, *rows: Row | None) -> None:
    """Write Debezium's placeholder again where a row lacks the value."""
    for name, placeholder in unavailable(event).items():
        for row in rows:
            if row is not None:
                row.setdefault(name, placeholder)


def unavailable(event: Event) -> Mapping[str, Any]:
    """The placeholders of columns whose values are not known, where Debezium wrote the event."""
    told = (event.extra or NOTHING).get("unavailable")
    return _placeholders[told] if told and event.format in CONNECT_FORMATS else NOTHING


def _read_placeholders(text: str) -> Mapping[str, Any]:
    try:
        return _object.decode(text)
    except (MsgspecError, RecursionError):
        return NOTHING


_object = Decoder(dict[str, Any])
_placeholders = Memo(_read_placeholders)


def written_images(event: Event, layout: Layout, lost: list[str]) -> tuple[Row | None, Row | None]:
    """The same without Debezium's placeholders, for values that are there."""
    before, after = event.before, event.after
    writers = writers_of(event, layout)
    if before is None:
        return None, None if after is None else written(after, writers, lost)
    if after is None:
        return written(before, writers, lost), None
    lossless = len(lost)
    new = written(after, writers, lost)
    if len(lost) > lossless:
        return written(before, writers, lost), new
    old: Row = before.copy()
    rest: list[tuple[str, Write]] = []
    for name, write in writers:  # most of an update's columns have not changed
        text = old.get(name)
        if text is not None:
            if text == after.get(name):
                old[name] = new[name]
            else:
                rest.append((name, write))
    return written(old, rest, lost) if rest else old, new


def writers_of(event: Event, layout: Layout) -> Writers:
    """The writers of an event: those of its types, then those of columns that came bare."""
    extra = event.extra
    if extra is None or HINTS.isdisjoint(extra):
        return layout.writers
    more = _hinted[extra.get("numbers"), extra.get("booleans"), extra.get("nested")]
    return [*layout.writers, *((n, w) for n, w in more if n not in layout.columns)]


def _make_hinted(told: tuple[str | None, str | None, str | None]) -> Writers:
    """Writers for the columns that came bare, by the names of numbers, booleans and objects."""
    numbers, booleans, objects = map(name_list, told)
    found: list[tuple[str, Write]] = [(name, real) for name in numbers]
    found += [(name, boolean) for name in booleans]
    return found + [(name, nested) for name in objects]


_hinted: Memo[tuple[str | None, str | None, str | None], Writers] = Memo(_make_hinted)


def columns_of(event: Event, layout: Layout, lost: list[str]) -> Mapping[str, Column]:
    """All columns of an event; those whose types nobody tells by what their values look like.

    A Connect schema has an order of its own. Other types are put in the order of the row, because
    TiCDC tells them in another one each time.
    """
    images = [image for image in (event.after, event.before) if image]
    known = layout.columns
    if all(list(image) == layout.names for image in images):
        return known
    found = {n: known.get(n, TEXT) for image in images for n in image}
    found |= {n: known.get(n, TEXT) for n in unavailable(event)}
    if found.keys() <= known.keys():
        return known if event.format in CONNECT_FORMATS else found
    lost.append("types-guessed")
    extra = event.extra or NOTHING
    guessed = [(n, number_column(n, images)) for n in name_list(extra.get("numbers"))]
    guessed += [(n, BOOLEAN) for n in name_list(extra.get("booleans"))]
    return found | {n: c for n, c in guessed if n in found and n not in known}


Declared = tuple[Mapping[str, Column], Mapping[str, bool]]
"""The columns of a message, and whether each may be null, where that is told."""


def declared(event: Event, layout: Layout, rows: tuple[Pair, ...], lost: list[str]) -> Declared:
    """What a message's schema says of its columns, so that all of its values agree with it."""
    columns = columns_of(event, layout, lost)
    if layout.nested or (lost and "misfit" in lost) or (event.extra and is_loose(event.extra)):
        agreed = settle(columns, rows)
        if agreed is not columns and "misfit" not in lost:
            known = layout.columns.keys() - unavailable(event).keys()
            lost += ["misfit"] * any(agreed[name] is not columns[name] for name in known)
        columns = agreed
    missing = lacking(event.key, rows) if event.key else ()
    if layout.required:
        missing += lacking(layout.required, rows)
    if not missing:
        return columns, layout.nullable
    return columns, {**layout.nullable, **dict.fromkeys(missing, True)}


def is_loose(extra: Mapping[str, str]) -> bool:
    """Whether a row has values that no type has made."""
    return "nested" in extra or "unavailable" in extra


def declared_key(declared: Declared) -> tuple[Any, ...]:
    """By what a schema block is known that was made of such columns."""
    columns, nullable = declared
    named = tuple((n, c.head["type"], c.tail.get("name")) for n, c in columns.items())
    return named, tuple(nullable.items())


def number_column(name: str, images: list[Image]) -> Column:
    """What a column of bare numbers looks like: whole ones of 64 bits, or doubles."""
    values = [value for image in images if (value := image.get(name)) is not None]
    return LONG if all(map(is_long, values)) else DOUBLE


def is_long(text: str) -> bool:
    """Whether text is a whole number of 64 bits.

    >>> is_long("-5"), is_long("1.0")
    (True, False)
    """
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20 and int(text) in INT64
