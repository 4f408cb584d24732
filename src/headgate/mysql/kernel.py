"""The loops of reading rows that Numba compiles: where each value is, and its text.

They know bytes and numbers only; `compiled` calls them. The printer gets bytes as bare
pointers: an array costs more to pass on than a number to print. All that Numba compiles is in this
file because its cache does not notice changes in another one.
"""

from __future__ import annotations

import numpy as np
from numba import types

from headgate.fastpath.jit import compiled, pointer_to

(
    PREPARED, SIGNED, UNSIGNED, BITS, DECIMAL, DATE, YEAR, DATETIME, TIME, TIMESTAMP, COPY, TABLE,
    BASE64, ENUM, SET,
) = range(15)  # fmt: skip
"""The codes of `values`, again: Numba's cache would not notice a change there."""
MINUS, DOT, ZERO, COLON, SPACE, COMMA, EQUALS = 45, 46, 48, 58, 32, 44, 61
DIGIT_BYTES = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
TEN, HUNDRED, DIGIT = np.uint64(10), np.uint64(100), np.uint64(48)
"""With signed numbers among them, Numba would go on in floating point."""
MOST_DIGITS = 20
POWERS = np.array([10**digits for digits in range(MOST_DIGITS)], np.uint64)

bytes_at, numbers_at = pointer_to(types.uint8), pointer_to(types.int64)


@compiled
def walk_rows(data, ends, sizes, first_width, width, counts, starts, lengths, fill):
    """Count rows, or note where their values are; the number of rows, or -1 if they do not fit.

    The first image has the first `first_width` of all `width` columns, a second one the others.
    """
    at = 0
    row = 0
    for event in range(len(ends)):
        end = ends[event]
        before = row
        while at < end:
            low = 0
            for image in range(2):
                high = first_width if image == 0 else width
                if low == high:
                    continue
                nulls = at
                at += (high - low + 7) // 8
                if at > end:
                    return -1
                for column in range(low, high):
                    bit = column - low
                    if data[nulls + (bit >> 3)] >> (bit & 7) & 1:
                        if fill:
                            lengths[row, column] = -1
                        continue
                    size = sizes[column]
                    if size < 0:
                        if at - size > end:
                            return -1
                        length = np.int64(0)
                        for i in range(-size):
                            length |= np.int64(data[at + i]) << (8 * i)
                        at -= size
                        size = length
                    if size > end - at:
                        return -1
                    if fill:
                        starts[row, column] = at
                        lengths[row, column] = size
                    at += size
                low = high
            row += 1
        if at != end:
            return -1
        counts[event] = row - before
    return row


@compiled
def put_copy(data, start, size, out, o):
    """Copy bytes."""
    for i in range(size):
        out[o + i] = data[start + i]
    return o + size


@compiled
def put_digits(value, out, o, end):
    """The last digits of a number, from `o` to `end`."""
    at = end
    while at - o >= 2:
        at -= 2
        rest = value // HUNDRED
        pair = value - rest * HUNDRED
        tens = pair // TEN
        out[at] = DIGIT + tens
        out[at + 1] = DIGIT + pair - tens * TEN
        value = rest
    if at > o:
        out[o] = DIGIT + value % TEN
    return end


@compiled
def put_unsigned(value, out, o):
    """The digits of a number without a sign."""
    digits = 1
    while digits < MOST_DIGITS and value >= POWERS[digits]:
        digits += 1
    return put_digits(value, out, o, o + digits)


@compiled
def put_padded(value, digits, out, o):
    """At least so many digits."""
    number = np.uint64(value)
    while digits < MOST_DIGITS and number >= POWERS[digits]:
        digits += 1
    return put_digits(number, out, o, o + digits)


@compiled
def put_two(value, out, o):
    """At least two digits."""
    if value >= 100:
        return put_padded(value, 2, out, o)
    return put_digits(np.uint64(value), out, o, o + 2)


@compiled
def little(data, start, size):
    """Bytes as a number, the last byte first."""
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(data[start + i]) << np.uint64(8 * i)
    return value


@compiled
def big(data, start, size):
    """Bytes as a number, the first byte first."""
    value = np.uint64(0)
    for i in range(size):
        value = value << np.uint64(8) | np.uint64(data[start + i])
    return value


@compiled
def put_signed(data, start, size, out, o):
    """An integer with a sign."""
    value = little(data, start, size)
    if data[start + size - 1] & 0x80:
        out[o] = MINUS
        o += 1
        value = ~value + np.uint64(1)
        if size < 8:
            value &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
    return put_unsigned(value, out, o)


@compiled
def put_decimal(data, start, precision, scale, out, o):
    """A DECIMAL: groups of nine digits in four bytes, all bits turned if it is negative."""
    flip = 0 if data[start] & 0x80 else 0xFF
    if flip:
        out[o] = MINUS
        o += 1
    whole = precision - scale
    at = start
    printed = False
    left = whole
    while left > 0:
        count = left % 9 if left % 9 else 9
        value = 0
        for _ in range(DIGIT_BYTES[count]):
            value = value << 8 | data[at] ^ flip ^ (0x80 if at == start else 0)
            at += 1
        if printed:
            o = put_padded(value, count, out, o)
        elif value:
            o = put_padded(value, 1, out, o)
            printed = True
        left -= count
    if not printed:
        out[o] = ZERO
        o += 1
    if scale:
        out[o] = DOT
        o += 1
    left = scale
    while left > 0:
        count = min(left, 9)
        value = 0
        for _ in range(DIGIT_BYTES[count]):
            value = value << 8 | data[at] ^ flip ^ (0x80 if at == start else 0)
            at += 1
        o = put_padded(value, count, out, o)
        left -= count
    return o


@compiled
def put_date(year, month, day, out, o):
    """A date, which need not be one."""
    if year >= 10_000:
        o = put_padded(year, 4, out, o)
    else:
        o = put_two(year // 100, out, o)
        o = put_two(year % 100, out, o)
    out[o] = MINUS
    o = put_two(month, out, o + 1)
    out[o] = MINUS
    return put_two(day, out, o + 1)


@compiled
def put_clock(hour, minute, second, out, o):
    """Hours, minutes and seconds."""
    o = put_two(hour, out, o)
    out[o] = COLON
    o = put_two(minute, out, o + 1)
    out[o] = COLON
    return put_two(second, out, o + 1)


@compiled
def put_fraction(value, digits, out, o):
    """The fraction of a second; an odd number of digits is stored with one more."""
    if digits == 0:
        return o
    out[o] = DOT
    return put_padded(value // 10 if digits & 1 else value, digits, out, o + 1)


@compiled
def put_datetime(data, start, digits, out, o):
    """A DATETIME."""
    number = np.int64(big(data, start, 5)) - 0x8000000000
    day, clock = number >> 17, number & 0x1FFFF
    month = day >> 5
    o = put_date(month // 13, month % 13, day & 31, out, o)
    out[o] = SPACE
    o = put_clock(clock >> 12, clock >> 6 & 63, clock & 63, out, o + 1)
    return put_fraction(np.int64(big(data, start + 5, (digits + 1) // 2)), digits, out, o)


@compiled
def put_time(data, start, digits, out, o):
    """A TIME; a negative one counts back, its fraction too."""
    size = (digits + 1) // 2
    number = np.int64(big(data, start, 3 + size)) - (0x800000 << (8 * size))
    if number < 0:
        out[o] = MINUS
        o += 1
        number = -number
    clock = number >> (8 * size)
    o = put_clock(clock >> 12, clock >> 6 & 63, clock & 63, out, o)
    return put_fraction(number & ((1 << (8 * size)) - 1), digits, out, o)


@compiled
def put_timestamp(data, start, digits, out, o):
    """A TIMESTAMP in UTC; zero is the zero date."""
    seconds = np.int64(big(data, start, 4))
    fraction = np.int64(big(data, start + 4, (digits + 1) // 2))
    if seconds == 0 and fraction == 0:
        o = put_date(0, 0, 0, out, o)
    else:
        day = seconds // 86_400 + 719_468
        era = day // 146_097
        day -= era * 146_097
        year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
        day -= 365 * year + year // 4 - year // 100
        month = (5 * day + 2) // 153
        date = day - (153 * month + 2) // 5 + 1
        month += 3 if month < 10 else -9
        o = put_date(year + era * 400 + (1 if month <= 2 else 0), month, date, out, o)
    clock = seconds % 86_400
    out[o] = SPACE
    o = put_clock(clock // 3600, clock // 60 % 60, clock % 60, out, o + 1)
    return put_fraction(fraction, digits, out, o)


@compiled
def put_base64(data, start, size, padded, out, o):
    """Bytes in base64, with zeros up to a length."""
    total = max(size, padded)
    at = 0
    while at < total:
        group = 0
        for i in range(at, at + 3):
            group = group << 8 | (data[start + i] if i < size else 0)
        out[o] = ALPHABET[group >> 18]
        out[o + 1] = ALPHABET[group >> 12 & 63]
        out[o + 2] = ALPHABET[group >> 6 & 63] if at + 1 < total else EQUALS
        out[o + 3] = ALPHABET[group & 63] if at + 2 < total else EQUALS
        o += 4
        at += 3
    return o


@compiled
def put_set(value, first, count, label_ends, label_data, out, o):
    """The labels of a SET, or its number where it has more bits than labels."""
    if count < 64 and value >> np.uint64(count):
        return put_unsigned(value, out, o)
    begin = o
    for i in range(count):
        if value >> np.uint64(i) & np.uint64(1):
            if o > begin:
                out[o] = COMMA
                o += 1
            low = label_ends[first + i]
            o = put_copy(label_data, low, label_ends[first + i + 1] - low, out, o)
    return o


@compiled
def put_cell(data, start, size, code, first, second, label, count, ends, labels, out, o):
    """One value, if it is not prepared."""
    if code == SIGNED:
        return put_signed(data, start, size, out, o)
    if code == UNSIGNED:
        return put_unsigned(little(data, start, size), out, o)
    if code == COPY:
        return put_copy(data, start, size, out, o)
    if code == DECIMAL:
        return put_decimal(data, start, first, second, out, o)
    if code == DATETIME:
        return put_datetime(data, start, first, out, o)
    if code == TIMESTAMP:
        return put_timestamp(data, start, first, out, o)
    if code == DATE:
        number = np.int64(little(data, start, 3))
        return put_date(number >> 9, number >> 5 & 15, number & 31, out, o)
    if code == TIME:
        return put_time(data, start, first, out, o)
    if code == YEAR:
        year = np.int64(data[start])
        return put_padded(year + 1900 if year else 0, 4, out, o)
    if code == BITS:
        return put_unsigned(big(data, start, size), out, o)
    if code == BASE64:
        return put_base64(data, start, size, first, out, o)
    if code == ENUM:
        value = little(data, start, size)
        if value >= np.uint64(count):
            return put_unsigned(value, out, o)
        low = ends[label + np.int64(value)]
        return put_copy(labels, low, ends[label + np.int64(value) + 1] - low, out, o)
    if code == SET:
        return put_set(little(data, start, size), label, count, ends, labels, out, o)
    for i in range(start, start + size):
        low = ends[label + data[i]]
        o = put_copy(labels, low, ends[label + data[i] + 1] - low, out, o)
    return o


@compiled
def put_rows(
    data, starts, lengths, columns, label_ends, labels, ready_ends, ready, out, offsets, valid
):
    """The texts of all values, row by row; how many bytes they have."""
    data_at, out_at = bytes_at(data.ctypes.data), bytes_at(out.ctypes.data)
    ready_at, labels_at = bytes_at(ready.ctypes.data), bytes_at(labels.ctypes.data)
    ends_at = numbers_at(label_ends.ctypes.data)
    o = 0
    cell = 0
    rows, width = starts.shape
    for row in range(rows):
        for column in range(width):
            size = lengths[row, column]
            if columns[column, 0] == PREPARED:
                at = columns[column, 1]
                low, high = ready_ends[at, row], ready_ends[at, row + 1]
                if size >= 0:
                    o = put_copy(ready_at, low, high - low, out_at, o)
            elif size >= 0:
                o = put_cell(
                    data_at, starts[row, column], size, columns[column, 0], columns[column, 1],
                    columns[column, 2], columns[column, 3], columns[column, 4], ends_at, labels_at,
                    out_at, o,
                )  # fmt: skip
            valid[cell] = size >= 0
            cell += 1
            offsets[cell] = o
    return o
