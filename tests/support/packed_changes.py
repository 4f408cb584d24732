"""Changes of tables as tests write them: packed for a sink, and applied by a plain model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate.codec.sequence import supersedes
from headgate.landing.changes import TableChanges
from headgate.landing.shape import TableShape, table_shape
from headgate.landing.table_rows import DELETE, TRUNCATE, UPSERT
from headgate.landing.types import arrow_type
from headgate.schema.changes import TableId

ORDERS = TableId("shop", "orders")
COLUMNS = {"id": "bigint", "name": "varchar(20)", "n": "int"}
KIND = "0badcafe"


def position(number: int, kind: str = KIND) -> str:
    return f"{kind}{number:020d}"


@dataclass(frozen=True)
class Change:
    """A change; `row` has the columns that it tells."""

    op: int
    at: int
    row: Mapping[str, Any] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    kind: str = KIND
    arrival: int | None = None
    partial: bool = False
    """Whether the row may lack further columns that the table has."""

    @property
    def position(self) -> str:
        return position(self.at, self.kind)


def upsert(at: int, id: Any, name: str | None = None, n: int | None = None, **more: Any) -> Change:
    return Change(UPSERT, at, {"id": id, "name": name, "n": n}, **more)


def partial(at: int, id: Any, **columns: Any) -> Change:
    """An update that leaves columns out."""
    absent = tuple(name for name in COLUMNS if name != "id" and name not in columns)
    return Change(UPSERT, at, {"id": id, **columns}, absent)


def delete(at: int, id: Any, **more: Any) -> Change:
    return Change(DELETE, at, {"id": id}, **more)


def truncate(at: int) -> Change:
    return Change(TRUNCATE, at)


def orders(
    columns: Mapping[str, str] = COLUMNS, key: Sequence[str] = ("id",), table: TableId = ORDERS
) -> TableShape:
    return table_shape(table, columns, key)


def packed(changes: Sequence[Change], shape: TableShape | None = None, first: int = 0) -> bytes:
    """Changes as a worker hands them over; they arrive in this order."""
    shape = shape or orders()
    columns: dict[str, pa.Array] = {
        "_op": pa.array([change.op for change in changes], pa.int8()),
        "_position": pa.array([change.position for change in changes]),
        "_arrival": pa.array(
            [
                f"{change.arrival if change.arrival is not None else first + number:030d}"
                for number, change in enumerate(changes)
            ]
        ),
    }
    if any(change.absent or change.partial for change in changes):
        absent = [list(c.absent) if c.absent or c.partial else None for c in changes]
        columns["_absent"] = pa.array(absent, pa.list_(pa.string()))
    told = {name for change in changes for name in change.row}
    for column in shape.columns:
        if column.name in told:
            values = [change.row.get(column.name) for change in changes]
            columns[column.name] = pa.array(values, arrow_type(column.type))
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return TableChanges(shape, rows, list(range(len(changes)))).pack()


class Model:
    """What a table with a key should be: changes one by one, as they arrive."""

    def __init__(self) -> None:
        self.rows: dict[Any, tuple[str, dict[str, Any]]] = {}
        self.deleted: dict[Any, str] = {}
        self.truncated: list[str] = []

    def apply(self, changes: Iterable[Change]) -> Model:
        for change in changes:
            self._apply(change)
        return self

    def _apply(self, change: Change) -> None:
        if change.op == TRUNCATE:
            for key, (at, _) in list(self.rows.items()):
                if supersedes(change.position, at):
                    del self.rows[key]
            self.truncated.append(change.position)
            return
        key = change.row["id"]
        landed = self.rows.get(key)
        if change.op == DELETE:
            if landed is not None and supersedes(change.position, landed[0]):
                del self.rows[key]
            if supersedes(change.position, self.deleted.get(key, "")):
                self.deleted[key] = change.position
            return
        later = [*self.truncated, *([self.deleted[key]] if key in self.deleted else [])]
        if landed is not None:
            later.append(landed[0])
        if all(supersedes(change.position, each) for each in later):
            before = {} if landed is None else landed[1]
            self.rows[key] = (change.position, {**before, **change.row})

    def table(self) -> list[dict[str, Any]]:
        """The rows in the order of their keys."""
        return [dict(self.rows[key][1]) for key in sorted(self.rows)]
