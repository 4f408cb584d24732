"""Rows of a snapshot as they were at an earlier position of the binlog.

The changes between the position and the snapshot tell what the rows were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from headgate.core.event import Event
from headgate.mysql.images import Layout


class KeyedRows:
    """Puts back rows that were changed behind the position, by their keys."""

    def __init__(self, key: Sequence[str], changes: Iterable[Event]) -> None:
        self.key = key
        self.rows: dict[tuple[str | None, ...], dict[str, str | None] | None] = {}
        """By key: the row at the position; None where there was none."""
        self.unknown: set[tuple[str | None, ...]] = set()
        """Keys whose rows the binlog has only in part."""
        for event in changes:
            before, after = event.before, event.after
            old = self._key_of(before)
            new = self._key_of(after)
            if old is not None and old not in self.rows:
                self.rows[old] = before
                if event.extra and "unavailable" in event.extra:
                    self.unknown.add(old)
            if new is not None and new != old and new not in self.rows:
                self.rows[new] = None

    def _key_of(self, image: dict[str, str | None] | None) -> tuple[str | None, ...] | None:
        return None if image is None else tuple(image.get(name) for name in self.key)

    def apply(self, values: pa.Array, layout: Layout) -> tuple[Layout, pa.Array]:
        """Rows as they were; `values` are those of the snapshot, row by row."""
        if not self.rows:
            return layout, values
        width = len(layout.columns)
        places = [layout.names.index(name) for name in self.key]
        keys = zip(*(values.take(_column(len(values), width, at)).to_pylist() for at in places))
        touched = [n for n, key in enumerate(keys) if key in self.rows]
        if not touched:
            return layout, values
        rows = values.to_pylist()
        made: list[str | None] = []
        for start in range(0, len(rows), width):
            row = rows[start : start + width]
            key = tuple(row[at] for at in places)
            image = self.rows.get(key, row)
            if image is row or key in self.unknown:
                made += row
            elif isinstance(image, dict):
                made += [image.get(name) for name in layout.names]
        return layout, pa.array(made, pa.string())

    def rest(self, layout: Layout) -> tuple[Layout, pa.Array]:
        """Rows that are gone since are left out: the changes that removed them follow."""
        return layout, pa.array([], pa.string())


class KeylessRows:
    """Puts back rows of a table without a key: equal rows are as many as they were."""

    def __init__(self, changes: Iterable[Event]) -> None:
        self.more: Counter[tuple[tuple[str, str | None], ...]] = Counter()
        """By row: how many more there are in the snapshot than there were."""
        for event in changes:
            for image, number in ((event.before, -1), (event.after, 1)):
                if image is not None:
                    self.more[tuple(image.items())] += number

    def apply(self, values: pa.Array, layout: Layout) -> tuple[Layout, pa.Array]:
        """Rows as they were."""
        if not any(number > 0 for number in self.more.values()):
            return layout, values
        width, rows = len(layout.columns), values.to_pylist()
        made: list[str | None] = []
        for start in range(0, len(rows), width):
            row = rows[start : start + width]
            image = tuple(zip(layout.names, row))
            if self.more.get(image, 0) > 0:
                self.more[image] -= 1
            else:
                made += row
        return layout, pa.array(made, pa.string())

    def rest(self, layout: Layout) -> tuple[Layout, pa.Array]:
        """Rows that were removed since."""
        made: list[str | None] = []
        for image, number in self.more.items():
            values = dict(image)
            for _ in range(-number):
                made += [values.get(name) for name in layout.names]
        return layout, pa.array(made, pa.string())


def _column(size: int, width: int, at: int) -> pa.Array:
    return pa.array(np.arange(at, size, width))
