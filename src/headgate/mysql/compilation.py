"""The compiled loops of reading rows, prepared before a batch needs them."""

from __future__ import annotations

import numpy as np

from headgate.fastpath.compilation import CompiledAhead

ROW_LOOPS = CompiledAhead(
    "headgate.mysql.compilation:call_loops",
    "headgate.mysql.kernel",
    "headgate.mysql.float_kernel",
    "headgate.mysql.packet_kernel",
    "headgate.mysql.position_kernel",
)


def call_loops() -> None:
    """Call each loop with arguments of every type that it is given: each is compiled by itself."""
    from headgate.mysql import float_kernel, kernel, packet_kernel, position_kernel

    octets, cells = np.frombuffer(b"\0" * 4, np.uint8), np.full((2, 2), -1)
    numbers, one = np.zeros(0, np.int64), np.zeros(1, np.int64)
    kernel.walk_rows(octets, numbers, one, 1, 1, numbers, cells[:0], cells[:0], False)
    for nulls in (cells, cells[:, :1]):  # rows of one image; and of one of two, with gaps between
        kernel.put_rows(
            octets, nulls, nulls, np.zeros((2, 5), np.int64), one, octets,
            np.zeros((0, 3), np.int64), octets, np.zeros(0, np.uint8), np.zeros(5, np.int32),
            np.zeros(4, np.bool_),
        )  # fmt: skip
    float_kernel.put_floats(
        octets, cells[:, 0], cells[:, 0], 8, octets.copy(), np.zeros(3, np.int64), 0
    )
    packet_kernel.walk_packets(octets, 1, 1, cells, cells)
    position_kernel.put_positions(
        octets, cells, numbers, cells, octets.copy(), np.zeros(1, np.int32)
    )
