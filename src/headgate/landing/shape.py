"""The shape of a landed table: its columns, their lake types, and its key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from headgate.landing.types import DEFAULTS, TypePreferences, lake_type, wider
from headgate.schema.changes import TableId

RESERVED = frozenset({
    "_op", "_position", "_arrival", "_absent", "_deleted", "_event_time", "_commit_ts", "_key",
    "_hash", "_at", "_newer", "_gone", "_change_type", "_commit_version", "_commit_timestamp",
})  # fmt: skip
"""Columns that a sink or Delta's change feed adds, in lower case; no source's column has one."""
EMPTY = "_empty"
"""The landed name of a column whose name is empty."""
_PLAIN = re.compile(r"[A-Za-z0-9_$#@-]+", re.ASCII)
_ESCAPE = re.compile(r"_(?=x[0-9a-f]{4,6}[^A-Za-z0-9$#@-])", re.ASCII | re.IGNORECASE)
_UNDERSCORE = "_x005f_"


class LandedColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column as it is landed."""

    name: str
    """Its name in the lake (`landed_name`)."""
    type: str
    """Its lake type."""
    mysql: str | None = None
    """Its type at the source; None where it is not known."""
    source: str | None = None
    """Its name at the source, where that is another one."""
    dropped: bool = False
    """Whether the source no longer has it."""

    @property
    def source_name(self) -> str:
        """Its name at the source.

        >>> LandedColumn("unit_x0020_price", "double", source="unit price").source_name
        'unit price'
        """
        return self.name if self.source is None else self.source

    @property
    def is_untyped(self) -> bool:
        """Whether its values are texts because its type is not known."""
        return self.mysql is None and self.type == "string"


class TableShape(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table as it is landed; `key` is landed names, empty where the table has no key."""

    table: TableId
    columns: tuple[LandedColumn, ...]
    key: tuple[str, ...] = ()
    dropped: bool = False
    """Whether the source no longer has it."""
    reappeared: bool = False
    """Whether rows came after it was dropped, and no statement that creates it again."""

    @property
    def names(self) -> list[str]:
        """The landed names of its columns, in order."""
        return [column.name for column in self.columns]


class Difference(msgspec.Struct, frozen=True):
    """What a landed table lacks to take rows of another shape."""

    new: tuple[LandedColumn, ...] = ()
    """Columns that it does not have."""
    widened: tuple[LandedColumn, ...] = ()
    """Columns that it has in a narrower type, with the type that holds both."""
    untyped: tuple[LandedColumn, ...] = ()
    """Its typed columns of which the rows bring texts without a type: `types.typed` reads them."""
    incompatible: tuple[tuple[LandedColumn, LandedColumn], ...] = ()
    """Columns whose types no type holds both: as landed, and as wanted."""


# Names


@lru_cache(maxsize=4096)
def landed_name(name: str) -> str:
    r"""The name of a source's column in the lake: every lake and reader takes it as it is.

    Letters and digits of any script and `_`, `-`, `$`, `#`, `@` stay. Any other character is
    `_xHHHH_`, its code point in hexadecimal; so is the first `_` of a reserved name, and one that
    would look like such an escape. Different names get different landed names.

    >>> landed_name("unit price"), landed_name("价格"), landed_name("_position")
    ('unit_x0020_price', '价格', '_x005f_position')
    """
    if not name:
        return EMPTY
    escaped = _ESCAPE.sub(_UNDERSCORE, name)
    if escaped.lower() in RESERVED or escaped.lower() == EMPTY:
        return _UNDERSCORE + escaped[1:]
    if _PLAIN.fullmatch(escaped):
        return escaped
    return "".join(c if _is_plain(c) else f"_x{ord(c):04x}_" for c in escaped)


def _is_plain(character: str) -> bool:
    if character.isascii():
        return _PLAIN.match(character) is not None
    return character.isprintable()


def landed_names(names: Iterable[str]) -> dict[str, str]:
    """The landed names of a table's columns, by their names at the source.

    >>> landed_names(["id", "a.b"])
    {'id': 'id', 'a.b': 'a_x002e_b'}
    """
    return {name: landed_name(name) for name in names}


# Shapes


def table_shape(
    table: TableId,
    types: Mapping[str, str | None],
    key: Sequence[str] = (),
    preferences: TypePreferences = DEFAULTS,
) -> TableShape:
    """The shape of a source's table: MySQL types by column, None where one is not known.

    >>> table_shape(TableId("shop", "orders"), {"id": "bigint", "note": None}, ["id"]).columns
    (LandedColumn(name='id', type='bigint', mysql='bigint', source=None, ...), ...)
    """
    names = landed_names(types)
    columns = tuple(
        LandedColumn(
            names[name], lake_type(mysql, preferences), mysql, None if names[name] == name else name
        )
        for name, mysql in types.items()
    )
    spelling = {name.lower(): landed for name, landed in reversed(names.items())}
    landed_key = tuple(
        names.get(name) or spelling.get(name.lower()) or landed_name(name) for name in key
    )
    return TableShape(table, columns, landed_key)


def union(shapes: Iterable[TableShape]) -> list[TableShape]:
    """One shape for each table, with all columns that its shapes have, in the order they come.

    A column has the type that holds all of its types; where a shape does not have its type,
    that of the others; where no type holds them, the first. The key is the last that is not empty.

    >>> orders = TableId("shop", "orders")
    >>> [merged] = union([table_shape(orders, {"n": "int"}), table_shape(orders, {"N": "bigint"})])
    >>> merged.columns[0].name, merged.columns[0].type
    ('n', 'bigint')
    """
    result: dict[TableId, TableShape] = {}
    for shape in shapes:
        known = result.setdefault(shape.table, shape)
        if known != shape:
            result[shape.table] = _merged(known, shape)
    return list(result.values())


def _merged(one: TableShape, other: TableShape) -> TableShape:
    columns = _by_name(one)
    for column in other.columns:
        name = column.name.lower()
        columns[name] = _wider_column(columns[name], column) if name in columns else column
    key = other.key or one.key
    spelled = (columns[n.lower()].name if n.lower() in columns else n for n in key)
    return TableShape(one.table, tuple(columns.values()), tuple(spelled))


def _wider_column(one: LandedColumn, other: LandedColumn) -> LandedColumn:
    if one.is_untyped:
        return msgspec.structs.replace(one, type=other.type, mysql=other.mysql)
    if other.is_untyped or one.type == other.type:
        return one
    type_ = wider(one.type, other.type)
    if type_ is None or type_ == one.type:
        return one
    return msgspec.structs.replace(one, type=type_, mysql=other.mysql)


def difference(landed: TableShape, wanted: TableShape) -> Difference:
    """What a landed table lacks to take rows of the wanted shape.

    >>> orders = TableId("shop", "orders")
    >>> old = table_shape(orders, {"id": "int", "day": "date"})
    >>> new = table_shape(orders, {"id": "bigint", "day": "blob", "note": "text"})
    >>> differences = difference(old, new)
    >>> [c.name for c in differences.new], [(c.name, c.type) for c in differences.widened]
    (['note'], [('id', 'bigint')])
    >>> [(a.type, b.type) for a, b in differences.incompatible]
    [('date', 'binary')]
    """
    present = _by_name(landed)
    new: list[LandedColumn] = []
    widened: list[LandedColumn] = []
    untyped: list[LandedColumn] = []
    incompatible: list[tuple[LandedColumn, LandedColumn]] = []
    for column in wanted.columns:
        known = present.get(column.name.lower())
        if known is None:
            new.append(column)
        elif known.type == column.type or known.is_untyped:
            continue
        elif column.is_untyped:
            untyped.append(known)
        else:
            type_ = wider(known.type, column.type)
            if type_ is None:
                incompatible.append((known, column))
            elif type_ != known.type:
                widened.append(msgspec.structs.replace(known, type=type_, mysql=column.mysql))
    return Difference(tuple(new), tuple(widened), tuple(untyped), tuple(incompatible))


def _by_name(shape: TableShape) -> dict[str, LandedColumn]:
    """Columns by names in lower case: neither MySQL nor a lake distinguishes `id` and `ID`."""
    return {column.name.lower(): column for column in shape.columns}
