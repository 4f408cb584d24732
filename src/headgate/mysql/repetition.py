"""Arrow arrays in which the same values come again and again, made by copying whole blocks."""

from __future__ import annotations

import pyarrow as pa

BLOCK = 1024


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
