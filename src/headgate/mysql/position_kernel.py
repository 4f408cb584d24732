"""The compiled loop that prints the positions of rows, as `batches.position_texts` does."""

from __future__ import annotations

import numpy as np

from headgate.fastpath.jit import compiled, memcpy

ZERO = 48
LONGEST = 20
"""The most digits of a number."""


@compiled
def put_positions(texts, ends, counts, firsts, out, offsets):
    """The members of each row's position: the texts of its event, then numbers that count rows.

    `ends` has where the texts of each event end, from where the first of them begins.
    """
    texts_at, out_at = np.uint64(texts.ctypes.data), np.uint64(out.ctypes.data)
    o = cell = 0
    fixed = ends.shape[1] - 1
    for event in range(len(counts)):
        low, high = ends[event, 0], ends[event, fixed]
        for row in range(counts[event]):
            for at in range(fixed):
                offsets[cell + at + 1] = o + ends[event, at + 1] - low
            memcpy(out_at + np.uint64(o), texts_at + np.uint64(low), np.uint64(high - low))
            o += high - low
            cell += fixed
            for at in range(firsts.shape[1]):
                number = firsts[event, at] + row
                size = 1
                rest = number // 10
                while rest:
                    rest //= 10
                    size += 1
                o += size
                for back in range(1, size + 1):
                    out[o - back] = ZERO + number % 10
                    number //= 10
                cell += 1
                offsets[cell] = o
    return o
