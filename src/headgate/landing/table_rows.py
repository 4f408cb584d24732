"""The rows of one table's events: what is upserted and what is deleted, with texts as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.cache import PerTypeMap
from headgate.core.errors import shown
from headgate.core.event import Event, Image, Types
from headgate.formats import extra_members, traits_of
from headgate.landing.shape import TableShape, landed_names, table_shape, union
from headgate.landing.types import TypePreferences
from headgate.schema.changes import TableId

UPSERT, DELETE, TRUNCATE = 0, 1, 2
"""What `_op` says of a row."""
MISFIT = "misfit"
MySqlTypes = dict[str, "str | None"]


def _mysql_types(types: Types | None) -> MySqlTypes:
    return {name: type_.mysql for name, type_ in (types or {}).items()}


types_of: Callable[[Types | None], MySqlTypes] = PerTypeMap(_mysql_types)
"""The types of columns; one object for all events that tell the same."""


class Rejected(Exception):
    """An event that cannot be landed."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class _Alike(NamedTuple):
    """Rows of one operation that have the same columns with the same types."""

    op: int
    names: tuple[str, ...]
    types: MySqlTypes
    values: list[str | None]
    """Of one row after the other, in the order of `names`."""
    at: list[int]
    """The number of each row among all of its table."""
    given: Sequence[pa.Array] | None = None
    """The columns, where they were columns before."""

    def columns(self) -> Sequence[pa.Array]:
        """The values column by column."""
        if self.given is not None:
            return self.given
        width = len(self.names)
        return [pa.array(self.values[first::width], pa.string()) for first in range(width)]


class RowLayout(msgspec.Struct, frozen=True):
    """What rows of one kind have in common."""

    table: TableId
    key: tuple[str, ...]
    op: int
    names: tuple[str, ...]
    """Of the columns, in the order of their values."""
    types: MySqlTypes
    partial: bool
    """Whether columns that a row lacks keep their values."""
    snapshot: bool


class RowGroup(NamedTuple):
    """Rows of one layout that are columns of text already."""

    layout: RowLayout
    columns: Sequence[pa.Array]
    numbers: Any
    """Of the rows among all that are columns."""


_Put = tuple[_Alike, "Callable[[Image], Iterable[str | None]]"]
"""Where rows go, and how their values are taken from an image."""
_all_values: Callable[[Image], Iterable[str | None]] = dict.values


class TableRows:
    """Collects the rows of a table's events."""

    def __init__(self, key: tuple[str, ...], null_misfits: bool) -> None:
        self.key, self.null_misfits = key, null_misfits
        self.ops: list[int] = []
        self.owners: list[int] = []
        """The number of the event that each row is of."""
        self.nulled: set[int] = set()
        """Events of which values that are none of their type became NULL."""
        self.partial: set[int] = set()
        """Events whose rows may lack columns that the table has."""
        self._alike: dict[tuple[int, frozenset[str], int], _Alike] = {}
        self._given: list[_Alike] = []
        """Rows that were columns before."""
        self._puts: dict[tuple[int, tuple[str, ...], int], _Put] = {}

    def add(self, number: int, event: Event, untyped: Sequence[str] | None) -> None:
        """Add the rows of an event; what has no place among them is Rejected."""
        before, after = event.before, event.after
        if event.op != "delete" or not self.key:
            check_whole(event)
        if is_partial(event):
            self.partial.add(number)
        if untyped:
            before, after = self.without_misfits(number, before, after, untyped)
        op, types = event.op, types_of(event.types)
        if op == "update":
            self.update(number, before, after, types)
        elif op == "delete":
            if not before:
                raise incomplete("the delete does not tell its row")
            self.delete(number, before, types)
        elif op == "truncate":
            self.put(TRUNCATE, number, {}, types)
        elif after:
            self.put(UPSERT, number, after, types)
        else:
            raise incomplete(f"the {op} has no row")

    def update(
        self, number: int, before: Image | None, after: Image | None, types: MySqlTypes
    ) -> None:
        """Add an update: an upsert, and a delete of the old row where that is another."""
        if not after:
            raise incomplete("the update has no row")
        if not self.key:
            if not before:
                raise incomplete("the update of a table without a key does not tell the old row")
            self.delete(number, before, types)
            after = before | after
        elif before:
            is_another = False
            for name in self.key:
                if name not in before:
                    continue
                if name not in after:  # the log has what changed only
                    after = {name: before[name]} | after
                elif before[name] != after[name]:
                    is_another = True
            if is_another:
                self.delete(number, after | before, types)
        self.put(UPSERT, number, after, types)

    def delete(self, number: int, image: Image, types: MySqlTypes) -> None:
        """Add a delete: of the row with that key, or of a row that is equal."""
        if self.key:
            image = {name: image.get(name) for name in self.key}
        self.put(DELETE, number, image, types)

    def put(self, op: int, number: int, image: Image, types: MySqlTypes) -> None:
        """Add a row."""
        names = tuple(image)
        placed = self._puts.get((op, names, id(types)))
        if placed is None:
            placed = self._puts[op, names, id(types)] = self.place(op, names, types)
        alike, values = placed
        alike.values.extend(values(image))
        alike.at.append(len(self.ops))
        self.ops.append(op)
        self.owners.append(number)

    def add_columns(self, group: RowGroup, first: int) -> None:
        """Add rows that are columns already; `first` is the number of the first one's change."""
        count, before = len(group.numbers), len(self.ops)
        at = list(range(before, before + count))
        layout = group.layout
        self._given.append(_Alike(layout.op, layout.names, layout.types, [], at, group.columns))
        self.ops += [layout.op] * count
        owners = (group.numbers + first).tolist()
        self.owners += owners
        if layout.partial:
            self.partial.update(owners)

    def all_alike(self) -> list[_Alike]:
        """All rows, those that have the same columns together."""
        return [*self._alike.values(), *self._given]

    def place(self, op: int, names: tuple[str, ...], types: MySqlTypes) -> _Put:
        """Where rows with these columns go; producers may write the columns in any order."""
        check_case(names)
        lacking = next((name for name in self.key if name not in names), None)
        if lacking is not None and op == UPSERT:
            raise without_key(lacking)
        same = (op, frozenset(names), id(types))
        alike = self._alike.get(same)
        if alike is None:
            alike = self._alike[same] = _Alike(op, names, types, [], [])
        if alike.names == names:
            return alike, _all_values
        getter: Any = itemgetter(*alike.names)
        return alike, getter

    def without_misfits(
        self, number: int, before: Image | None, after: Image | None, untyped: Sequence[str]
    ) -> tuple[Image | None, Image | None]:
        """The images of an event with NULL for values that are none of their type."""
        for name in untyped:
            if not self.null_misfits or name in self.key:
                raise Rejected(
                    MISFIT,
                    f"column {shown(name)}: the value is none of the type that the table's DDL "
                    "declares; correct the schema, or set on-misfit=null to land NULL",
                )
        self.nulled.add(number)
        nulls: Image = dict.fromkeys(untyped)
        if before is not None:
            before = before | {name: None for name in nulls if name in before}
        if after is not None:
            after = after | {name: None for name in nulls if name in after}
        return before, after

    def columns(self, table: TableId, prefer: TypePreferences) -> tuple[TableShape, list[pa.Array]]:
        """The shape of the table, as far as the rows tell, and the texts of its columns."""
        alike = sorted(self.all_alike(), key=lambda each: -len(each.names))
        shapes = [self.shape_of(table, each, prefer) for each in alike]
        values = [each.columns() for each in alike]
        if len(alike) == 1:
            more = len(shapes[0].columns) - len(values[0])
            return shapes[0], [*values[0], *[pa.nulls(len(self.ops), pa.string())] * more]
        (shape,) = union(shapes)
        order = np.empty(len(self.ops), np.int32)
        order[np.concatenate([each.at for each in alike])] = np.arange(len(order))
        ordered = pa.array(order)
        known = [dict(zip(lower_names(shape), texts)) for shape, texts in zip(shapes, values)]
        columns = []
        for name in lower_names(shape):
            parts = [
                texts[name] if name in texts else pa.nulls(len(each.at), pa.string())
                for each, texts in zip(alike, known)
            ]
            columns.append(pa.concat_arrays(parts).take(ordered))
        return shape, columns

    def shape_of(self, table: TableId, alike: _Alike, prefer: TypePreferences) -> TableShape:
        """The shape that rows which are alike tell; partial ones tell also what they lack."""
        types = {name: alike.types.get(name) for name in alike.names}
        if alike.op == UPSERT and any(self.owners[row] in self.partial for row in alike.at):
            present = {name.lower() for name in types}
            types |= {n: type_ for n, type_ in alike.types.items() if n.lower() not in present}
        return table_shape(table, types, self.key, prefer)

    def absent(self, shape: TableShape) -> pa.Array | None:
        """By row, the columns that an upsert does not tell, as far as these rows show; null where
        it tells all that the table has, as other rows may show. None where each does.

        An insert has a whole row, unless it is marked otherwise: what it lacks did not exist.
        """
        if not self.partial:
            return None
        absent: dict[int, list[str]] = {}
        for each in self.all_alike():
            present = {landed.lower() for landed in landed_names(each.names).values()}
            known = [*(c.name for c in shape.columns), *landed_names(each.types).values()]
            lacking = [name for name in dict.fromkeys(known) if name.lower() not in present]
            if each.op == UPSERT:
                partial = (row for row in each.at if self.owners[row] in self.partial)
                absent.update(dict.fromkeys(partial, lacking))
        if not absent:
            return None
        rows = range(len(self.ops))
        return pa.array([absent.get(row) for row in rows], pa.list_(pa.string()))

    def without(self, column: pa.Array | None) -> list[int]:
        """The rows that need a value in a column of the key and have none."""
        if column is None:
            return [row for row, op in enumerate(self.ops) if op != TRUNCATE]
        if column.null_count == 0:
            return []
        rows: list[int] = pc.indices_nonzero(pc.is_null(column)).to_pylist()
        return [row for row in rows if self.ops[row] != TRUNCATE]


def check_case(names: Iterable[str]) -> None:
    """Reject a row with columns that a lake would take for one: it ignores case, as MySQL does.

    >>> check_case(["id", "Name"])
    """
    seen: dict[str, str] = {}
    for name in names:
        if seen.setdefault(name.lower(), name) != name:
            raise Rejected(
                MISFIT,
                f"the columns {shown(seen[name.lower()])} and {shown(name)} differ in case only, "
                "and lakes do not tell them apart; leave one out with a filter's columns",
            )


def is_partial(event: Event) -> bool:
    """Whether the row of an event may lack columns that the table has."""
    if event.op == "update":
        return True
    return bool(event.extra and not extra_members().partial.isdisjoint(event.extra))


def check_whole(event: Event) -> None:
    """Reject a row that its producer cut: values that changed are not in it."""
    if not event.extra:
        return
    cut = traits_of(event.format, event.dialect).extra.cut
    if not cut.isdisjoint(event.extra):
        mark = next(name for name in event.extra if name in cut)
        raise Rejected(
            "incomplete-row",
            f"the producer left new values out of the row ({shown(mark)}); configure it to send "
            "whole rows, then read the row from a snapshot",
        )


def lower_names(shape: TableShape) -> list[str]:
    """The names of a table's columns in lower case: `id` and `ID` are one column."""
    return [column.name.lower() for column in shape.columns]


def without_key(name: str) -> Rejected:
    """The rejection of a row that has no value in a column of its key."""
    return incomplete(f"the row has no {shown(name)}, a column of its key")


def incomplete(what: str) -> Rejected:
    """The rejection of a row that lacks what it would be landed by."""
    return Rejected(
        "incomplete-row", f"{what}; configure the producer to send whole rows with their keys"
    )
