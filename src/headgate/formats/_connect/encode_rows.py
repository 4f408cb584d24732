"""Rows as Debezium and OMS write them: one cached layout per map of column types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Decoder

from headgate.core.cache import MOST_PLANS, BoundedCache
from headgate.core.column_flags import HANDLE, NULLABLE
from headgate.core.event import ColumnType, Event, Image, Types
from headgate.core.losses import HINTS
from headgate.core.mysql_types import parse_type
from headgate.formats._connect.column import BOOLEAN, TEXT, Column, plain
from headgate.formats._connect.encode_numbers import INT64, real
from headgate.formats._connect.encode_values import column, fraction_digits, is_measured, nested
from headgate.formats._connect.fit import Pair, missing_values, settle
from headgate.formats._connect.options import EncodedValueOptions
from headgate.formats._oms import encode_values as oms_values
from headgate.formats.encoding import (
    PerTypeMap,
    Write,
    Writers,
    boolean,
    name_list,
    written,
)

MOST_FRACTION = 30
"""The largest scale of a DECIMAL."""
LONG, DOUBLE = plain("int64"), plain("double")
NOTHING: Mapping[str, str] = {}
CONNECT_FORMATS = ("debezium", "debezium-smt")
Row = dict[str, Any]
DATES = ("date", "datetime", "timestamp")
"""Types that can have zero dates."""


class Layout:
    """How the columns of a type map are written, and the schema blocks made from them."""

    def __init__(
        self, columns: dict[str, Column], nullable: dict[str, bool], handle: tuple[str, ...] = ()
    ) -> None:
        self.columns, self.nullable = columns, nullable
        self.handle = handle
        """The columns that tell rows apart: of a table without a primary key, those of a unique
        key without NULLs, which Debezium takes for it."""
        self.names = list(columns)
        self.writers: Writers = [(n, c.write) for n, c in columns.items() if c.write]
        self.nested = any(c.head["type"] in ("struct", "array") for c in columns.values())
        """Whether a column is a struct or an array."""
        self.required = [name for name, null in nullable.items() if not null]
        self.blocks: dict[Any, Any] = {}

    def block(self, key: Any, make: Callable[[], Any]) -> Any:
        """The schema block of a key, made once.

        >>> layout = Layout({}, {})
        >>> layout.block("t", lambda: b"1"), layout.block("t", lambda: b"2")
        (b'1', b'1')
        """
        block = self.blocks.get(key)
        if block is None:
            if len(self.blocks) >= MOST_PLANS:
                self.blocks.clear()
            block = self.blocks[key] = make()
        return block


Make = Callable[[ColumnType, "int | None", bool, bool], Column]
"""From a column's type, measured digits, whether it is in the key, and whether it is a boolean."""


class Plan:
    """A map of column types: one layout, or one per number of digits if only the values show it.

    A key with a date of unknown nullability has its own layout, because it is NOT NULL. So have
    rows that say which TINYINT columns are booleans.
    """

    def __init__(
        self, types: Types | None, make: Make, measured: list[str], from_connect: bool
    ) -> None:
        parsed = {n: parse_type(t.mysql).family for n, t in (types or {}).items()}
        self.types = {n: t for n, t in (types or {}).items() if parsed[n] != "unknown"}
        self.dates = {n for n, t in self.types.items() if t.flags is None and parsed[n] in DATES}
        self.make, self.measured = make, measured
        self.tiny = {
            n
            for n, t in self.types.items()
            if from_connect and parse_type(t.mysql).base == "tinyint"
        }
        self.layouts: dict[Any, Layout] = {}
        self.only = None if measured else self.layout((), (), None)

    def layout(
        self, digits: tuple[int, ...], keyed: tuple[str, ...], booleans: str | None
    ) -> Layout:
        """The layout for these digits of measured columns, dates in the key and boolean columns."""
        layout = self.layouts.get((digits, keyed, booleans))
        if layout is None:
            boolean_columns = self.tiny.intersection(name_list(booleans))
            if len(self.layouts) >= MOST_PLANS:
                self.layouts.clear()
            measured_digits = dict(zip(self.measured, digits))
            columns = {
                n: self.make(t, measured_digits.get(n), n in keyed, n in boolean_columns)
                for n, t in self.types.items()
            }
            nullable = {
                n: bool(t.flags & NULLABLE) for n, t in self.types.items() if t.flags is not None
            }
            handle = tuple(n for n, t in self.types.items() if t.flags and t.flags & HANDLE)
            layout = self.layouts[digits, keyed, booleans] = Layout(columns, nullable, handle)
        return layout

    def of(self, event: Event) -> Layout:
        """The layout of an event."""
        keyed: tuple[str, ...] = ()
        if event.key and not self.dates.isdisjoint(event.key):
            keyed = tuple(name for name in event.key if name in self.dates)
        booleans = event.extra.get("booleans") if self.tiny and event.extra else None
        if self.only is not None:
            return self.layout((), keyed, booleans) if keyed or booleans else self.only
        per_column = []
        before, after = event.before, event.after
        for name in self.measured:
            text = after.get(name) if after is not None else None
            digits = fraction_digits(text) if text is not None else 0
            if before is not None:
                old = before.get(name)
                if old is not None and old != text:
                    digits = max(digits, fraction_digits(old))
            per_column.append(digits if digits < MOST_FRACTION else MOST_FRACTION)
        return self.layout(tuple(per_column), keyed, booleans)


def planner(
    options: EncodedValueOptions, schemas: bool, from_connect: bool
) -> Callable[[Types | None], Plan]:
    """A function from type map to plan; `from_connect` if Debezium or OMS wrote the events."""

    def make_column(
        column_type: ColumnType, digits: int | None, keyed: bool, is_boolean: bool
    ) -> Column:
        return column(column_type, options, schemas, from_connect, digits, keyed, is_boolean)

    def make(types: Types | None) -> Plan:
        parsed = {n: parse_type(t.mysql) for n, t in (types or {}).items()}
        # If any type has a length, a type without one really has none: DATETIME is DATETIME(0).
        # MySQL's DECIMAL always has one; without it, the column is from another database.
        has_lengths = any(t.length is not None for t in parsed.values())
        measured = [
            n
            for n, t in parsed.items()
            if is_measured(t, options) and (not has_lengths or t.family == "decimal")
        ]
        return Plan(types, make_column, measured, from_connect)

    return PerTypeMap(make)


def oms_planner(from_connect: bool) -> Callable[[Types | None], Plan]:
    """The same for OMS."""

    def make_column(
        column_type: ColumnType, digits: int | None, keyed: bool, is_boolean: bool
    ) -> Column:
        return BOOLEAN if is_boolean else oms_column(column_type)

    return PerTypeMap(lambda types: Plan(types, make_column, [], from_connect))


OMS_TYPES = {
    "tinyint": "int16", "smallint": "int16", "mediumint": "int32", "int": "int32",
    "bigint": "int64", "float": "float64", "double": "float64", "bit": "bytes", "binary": "bytes",
    "date": "int32", "time": "int64", "year": "int32",
}  # fmt: skip
"""The types in OMS's schema, by MySQL type or family; all others are `string`."""


def oms_column(column_type: ColumnType) -> Column:
    """How OMS writes a column, and its type in OMS's schema.

    >>> oms_column(ColumnType("varbinary(4)")).write("ag==")
    '6A'
    """
    type_ = parse_type(column_type.mysql)
    if (column_type.mysql or "").lower().startswith("bool"):
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
    """Restore Debezium's placeholder for values that a row lacks."""
    for name, placeholder in unavailable(event).items():
        for row in rows:
            if row is not None:
                row.setdefault(name, placeholder)


def unavailable(event: Event) -> Mapping[str, Any]:
    """The placeholders of unavailable values, by column, if Debezium wrote the event."""
    placeholders = (event.extra or NOTHING).get("unavailable")
    return (
        _placeholders[placeholders] if placeholders and event.format in CONNECT_FORMATS else NOTHING
    )


def _read_placeholders(text: str) -> Mapping[str, Any]:
    try:
        return _object.decode(text)
    except (MsgspecError, RecursionError):
        return NOTHING


_object = Decoder(dict[str, Any])
_placeholders = BoundedCache(_read_placeholders)


def written_images(event: Event, layout: Layout, lost: list[str]) -> tuple[Row | None, Row | None]:
    """The row before and after as JSON values, without Debezium's placeholders."""
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
    for name, write in writers:  # most columns of an update are unchanged
        text = old.get(name)
        if text is not None:
            if text == after.get(name):
                old[name] = new[name]
            else:
                rest.append((name, write))
    return written(old, rest, lost) if rest else old, new


def writers_of(event: Event, layout: Layout) -> Writers:
    """The writers of an event: by type, then by JSON type for columns without a type."""
    extra = event.extra
    if extra is None or HINTS.isdisjoint(extra):
        return layout.writers
    more = _hinted[extra.get("numbers"), extra.get("booleans"), extra.get("nested")]
    return [*layout.writers, *((n, w) for n, w in more if n not in layout.columns)]


def _make_hinted(hints: tuple[str | None, str | None, str | None]) -> Writers:
    """Writers for columns without a type, from the names of numbers, booleans and objects."""
    numbers, booleans, objects = map(name_list, hints)
    writers: list[tuple[str, Write]] = [(name, real) for name in numbers]
    writers += [(name, boolean) for name in booleans]
    return writers + [(name, nested) for name in objects]


_hinted: BoundedCache[tuple[str | None, str | None, str | None], Writers] = BoundedCache(
    _make_hinted
)


def columns_of(event: Event, layout: Layout, lost: list[str]) -> Mapping[str, Column]:
    """All columns of an event; types that are not declared are guessed from the values.

    A Connect schema keeps its order. Other types follow the order of the row, because TiCDC sends
    them in a different order each time.
    """
    images = [image for image in (event.after, event.before) if image]
    known = layout.columns
    if all(list(image) == layout.names for image in images):
        return known
    columns = {n: known.get(n, TEXT) for image in images for n in image}
    columns |= {n: known.get(n, TEXT) for n in unavailable(event)}
    if columns.keys() <= known.keys():
        return known if event.format in CONNECT_FORMATS else columns
    lost.append("types-guessed")
    extra = event.extra or NOTHING
    guessed = [(n, number_column(n, images)) for n in name_list(extra.get("numbers"))]
    guessed += [(n, BOOLEAN) for n in name_list(extra.get("booleans"))]
    return columns | {n: c for n, c in guessed if n in columns and n not in known}


Declared = tuple[Mapping[str, Column], Mapping[str, bool]]
"""The columns of a message, and whether they may be null, as far as that is declared."""


def declared(event: Event, layout: Layout, rows: tuple[Pair, ...], lost: list[str]) -> Declared:
    """The columns for a message's schema, adjusted so that all values match them."""
    columns = columns_of(event, layout, lost)
    if layout.nested or (lost and "misfit" in lost) or (event.extra and is_loose(event.extra)):
        agreed = settle(columns, rows)
        if agreed is not columns and "misfit" not in lost:
            known = layout.columns.keys() - unavailable(event).keys()
            lost += ["misfit"] * any(agreed[name] is not columns[name] for name in known)
        columns = agreed
    missing = missing_values(event.key, rows) if event.key else ()
    if layout.required:
        missing += missing_values(layout.required, rows)
    if not missing:
        return columns, layout.nullable
    return columns, {**layout.nullable, **dict.fromkeys(missing, True)}


def is_loose(extra: Mapping[str, str]) -> bool:
    """Whether a row has values that were not written by their column type."""
    return "nested" in extra or "unavailable" in extra


def declared_key(declared: Declared) -> tuple[Any, ...]:
    """The cache key of a schema block with these columns."""
    columns, nullable = declared
    named = tuple((n, c.head["type"], c.tail.get("name")) for n, c in columns.items())
    return named, tuple(nullable.items())


def number_column(name: str, images: list[Image]) -> Column:
    """The guessed column for numbers without a type: int64 or double."""
    values = [value for image in images if (value := image.get(name)) is not None]
    return LONG if all(map(is_long, values)) else DOUBLE


def is_long(text: str) -> bool:
    """Whether text is a 64-bit integer.

    >>> is_long("-5"), is_long("1.0")
    (True, False)
    """
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20 and int(text) in INT64
