"""Arrow arrays in which the same values come again and again, made by copying whole blocks."""

from __future__ import annotations

import pyarrow as pa

BLOCK = 1024
KEPT_ROWS = 16_384


def repeated(values: pa.Array, times: int) -> pa.Array:
    """All values, so many times one after the other.

    >>> repeated(pa.array([1, 2]), 3).to_pylist()
    [1, 2, 1, 2, 1, 2]
    """
    if times == 0:
        return values.slice(0, 0)
    block, count = values, 1
    while count * 2 <= min(times, BLOCK):
        block, count = pa.concat_arrays([block, block]), count * 2
    blocks = [block] * (times // count)
    if times % count:
        blocks.append(block.slice(0, times % count * len(values)))
    return pa.concat_arrays(blocks)


class Repetitions:
    """Columns whose value is the same in all rows; what one batch has made, the next ones cut.

    >>> columns = Repetitions({"op": pa.array(["insert"])})
    >>> [columns.of(rows)["op"].to_pylist() for rows in (2, 1)]
    [['insert', 'insert'], ['insert']]
    """

    def __init__(self, values: dict[str, pa.Array]) -> None:
        self._values, self._longest, self._rows = values, values, 1

    def of(self, rows: int) -> dict[str, pa.Array]:
        """The columns, by name, of so many rows."""
        if rows > KEPT_ROWS:  # a few large tables would hold much memory
            return {name: repeated(value, rows) for name, value in self._values.items()}
        if rows > self._rows:
            self._longest = {name: repeated(value, rows) for name, value in self._values.items()}
            self._rows = rows
        return {
            name: column.slice(0, rows * len(self._values[name]))
            for name, column in self._longest.items()
        }
