"""The compiled loops of reading rows, prepared before a batch needs them."""

from __future__ import annotations

import numpy as np

from headgate.fastpath.compilation import CompiledAhead

ROW_LOOPS = CompiledAhead(
    "headgate.mysql.compilation:call_loops", "headgate.mysql.kernel", "headgate.mysql.packet_kernel"
)


def call_loops() -> None:
    """Call each loop, on nothing."""
    from headgate.mysql import kernel, packet_kernel

    octets, nothing = np.frombuffer(b"\0" * 4, np.uint8), np.empty((0, 1), np.int64)
    numbers, one = np.zeros(0, np.int64), np.zeros(1, np.int64)
    kernel.walk_rows(octets, numbers, one, 1, 1, numbers, nothing, nothing, False)
    kernel.put_rows(
        octets, nothing, nothing, np.zeros((1, 5), np.int64), one, octets,
        np.zeros((0, 1), np.int64), octets, np.zeros(0, np.uint8), np.zeros(1, np.int32),
        np.zeros(0, np.bool_),
    )  # fmt: skip
    cells = np.zeros((1, 1), np.int64)
    packet_kernel.walk_packets(octets, 1, 1, cells, cells)
