"""The loop of reading rows of a query that Numba compiles: where each value is in the packets."""

from __future__ import annotations

from headgate.fastpath.jit import compiled

MORE, ENDED, LARGE = 0, 1, 2
"""Why the loop stopped: the next packet is not complete; it is no row; its row is longer than a
packet."""


@compiled
def walk_packets(data, width, most, starts, lengths):
    """Note where the values of rows are; how many rows, where the next packet begins, and why."""
    at, rows, end = 0, 0, len(data)
    while rows < most and at + 5 <= end:
        size = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        first = data[at + 4]
        if first == 255 or (first == 254 and size < 9):
            return rows, at, 1
        if size == 0xFFFFFF:
            return rows, at, 2
        if at + 4 + size > end:
            return rows, at, 0
        place = at + 4
        for column in range(width):
            length = int(data[place])
            place += 1
            if length == 251:
                lengths[rows, column] = -1
                continue
            if length > 251:
                octets = 2 if length == 252 else 3 if length == 253 else 8
                length = 0
                for number in range(octets):
                    length |= int(data[place + number]) << (8 * number)
                place += octets
            starts[rows, column] = place
            lengths[rows, column] = length
            place += length
        at += 4 + size
        rows += 1
    return rows, at, 0
