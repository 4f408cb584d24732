"""The compiled loop of splicing: cut a message at its values, find its template, write the answer.

Numba compiles these functions; they know bytes and numbers only. A row that does not match a known
template exactly is left to the codecs. All of them are in one file because Numba's cache does not
notice changes in another one.
"""

from __future__ import annotations

import numpy as np

from headgate.fastpath.jit import compiled, memcmp, memcpy

LITERAL, COPY, TRIM, POINT, EPOCH, DAYS, ISO, DECIMAL64 = range(8)
"""The operations that write a piece of output; see `write`."""
TEXT, SINGLE, PLAIN, INTEGER, NUMBER, FLOAT, STAMP, DATETIME, DATE = range(9)
"""The forms of a value; see `fits`."""
MOST_LEAVES = 4_096
FIXED, HOLE, ZEROS = range(3)
"""The roles of a leaf: its value is fixed, varies, or varies except for its trailing zeros."""
NEW, SLOW = -1, -2
"""A row of an unknown template, and one that only the codecs can read."""

(
    LEAVES, LEAVES_END, SAMPLE, SAMPLE_END, PAIRS, PAIRS_END, RECORDS, RECORDS_END, ROOM, COPIES,
    TIME_LEAF, TIME_FACTOR, KEYED,
) = range(13)  # fmt: skip
"""The columns of a template: where its leaves, its text, its pairs and its records are in their
arrays; the room that it needs, and how often per byte of the message; the leaf of the time, and the
microseconds of its unit; whether messages begin with their key. RECORDS is -1 of no template."""
HOLE_LEAF, HOLE_START, HOLE_END, FORM, FORM_A, FORM_B = range(6)
"""The columns of a hole: its leaf, its place in the template's text, its form."""
VALUE, VALUE_END, KEY, KEY_END = range(4)
"""The columns of a record: where the operations are that write its value and its key."""
QUOTE, BACKSLASH, COLON = 34, 92, 58
MINUS, DOT, ZERO, NINE = 45, 46, 48, 57


@compiled
def utf8_end(data, at, end):
    """Where the character of several bytes at `at` ends; -1 if it is none."""
    c = data[at]
    if 0xC2 <= c <= 0xDF:
        size = 2
    elif 0xE0 <= c <= 0xEF:
        size = 3
    elif 0xF0 <= c <= 0xF4:
        size = 4
    else:
        return -1
    if at + size > end:
        return -1
    for i in range(at + 1, at + size):
        if data[i] & 0xC0 != 0x80:
            return -1
    second = data[at + 1]
    if (
        (c == 0xE0 and second < 0xA0)
        or (c == 0xED and second > 0x9F)
        or (c == 0xF0 and second < 0x90)
        or (c == 0xF4 and second > 0x8F)
    ):
        return -1
    return at + size


@compiled
def string_end(data, i, end):
    """Where the string that begins at `i` ends; -1 where the codecs have to look at it.

    It has no escapes but those that every writer has in the same form.
    """
    while i < end:
        c = data[i]
        if c == QUOTE:
            return i
        if c == BACKSLASH:
            i += 1
            if i >= end:
                return -1
            c = data[i]
            if not (c == QUOTE or c == BACKSLASH or c == 110 or c == 114 or c == 116):
                return -1
            i += 1
        elif c < 32:
            return -1
        elif c < 128:
            i += 1
        else:
            i = utf8_end(data, i, end)
            if i < 0:
                return -1
    return -1


@compiled
def digits_end(data, i, end):
    """Where the letters end that a number may have."""
    while i < end and (
        ZERO <= data[i] <= NINE
        or data[i] == DOT
        or data[i] == MINUS
        or data[i] == 43
        or data[i] == 101
        or data[i] == 69
    ):
        i += 1
    return i


@compiled
def cut(data, at, end, starts, ends):
    """Find the strings and numbers of JSON text that are not names; their count, or -1."""
    n = 0
    i = at
    while i < end:
        c = data[i]
        if c == QUOTE:
            first = i + 1
            i = string_end(data, first, end)
            if i < 0:
                return -1
            if i + 1 >= end or data[i + 1] != COLON:
                if n >= MOST_LEAVES:
                    return -1
                starts[n] = first
                ends[n] = i
                n += 1
            i += 1
        elif c == MINUS or ZERO <= c <= NINE:
            if n >= MOST_LEAVES:
                return -1
            starts[n] = i
            i = digits_end(data, i + 1, end)
            ends[n] = i
            n += 1
        elif c >= 128:
            return -1
        else:
            i += 1
    return n


@compiled
def skeleton_hash(data, at, end, n, starts, ends):
    """A number that messages of the same names and structure share."""
    h = np.int64(n)
    previous = at
    for k in range(n):
        first = starts[k]
        size = first - previous
        h = h * 1_000_003 + size
        if size > 4:
            h = (h ^ data[first - 1]) * 31 + data[first - 4]
            h = h * 31 + data[previous + 3]
        else:
            h = h * 31 + data[first - 1]
        if ends[k] == first:  # nothing is another thing than something
            h += 1
        previous = ends[k]
    return h * 1_000_003 + (end - previous)


@compiled
def find(keys, values, h):
    """What a hash table has under a number; -1 if nothing."""
    mask = len(keys) - 1
    at = (h ^ (h >> 29)) & mask
    while values[at] >= 0:
        if keys[at] == h:
            return values[at]
        at = (at + 1) & mask
    return -1


@compiled
def all_digits(data, at, end):
    """Whether there are digits and nothing else."""
    if at >= end:
        return False
    for i in range(at, end):
        if not ZERO <= data[i] <= NINE:
            return False
    return True


@compiled
def two(data, at):
    """The number of two digits."""
    return (data[at] - ZERO) * np.int64(10) + (data[at + 1] - ZERO)


@compiled
def is_date(data, at, end):
    """Whether text is a day of the calendar, year 1 to 9999."""
    if end - at != 10 or data[at + 4] != MINUS or data[at + 7] != MINUS:
        return False
    if not (
        all_digits(data, at, at + 4)
        and all_digits(data, at + 5, at + 7)
        and all_digits(data, at + 8, at + 10)
    ):
        return False
    year = two(data, at) * 100 + two(data, at + 2)
    month, day = two(data, at + 5), two(data, at + 8)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return False
    last = 31
    if month == 4 or month == 6 or month == 9 or month == 11:
        last = 30
    elif month == 2:
        last = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return day <= last


@compiled
def is_datetime(data, at, end, digits):
    """Whether text is a time of a day with so many digits of a second's fraction."""
    size = 19 if digits == 0 else 20 + digits
    if end - at != size or data[at + 10] != 32 or not is_date(data, at, at + 10):
        return False
    if data[at + 13] != COLON or data[at + 16] != COLON:
        return False
    if not (
        all_digits(data, at + 11, at + 13)
        and all_digits(data, at + 14, at + 16)
        and all_digits(data, at + 17, at + 19)
    ):
        return False
    if two(data, at + 11) > 23 or two(data, at + 14) > 59 or two(data, at + 17) > 59:
        return False
    return digits == 0 or (data[at + 19] == DOT and all_digits(data, at + 20, end))


@compiled
def days_of(data, at):
    """Days since 1970-01-01, by the calendar that everybody has."""
    year = two(data, at) * 100 + two(data, at + 2)
    month, day = two(data, at + 5), two(data, at + 8)
    if month <= 2:
        year -= 1
        month += 12
    era_day = 365 * year + year // 4 - year // 100 + year // 400
    return era_day + (153 * (month - 3) + 2) // 5 + day - 1 - 719_468


@compiled
def number_end(data, at, end):
    """Where the whole part of a JSON number ends; -1 if there is none."""
    i = at + 1 if at < end and data[at] == MINUS else at
    first = i
    while i < end and ZERO <= data[i] <= NINE:
        i += 1
    if i == first or (data[first] == ZERO and i > first + 1):
        return -1
    return i


@compiled
def has_digit(data, at, end):
    """Whether any digit is not 0."""
    for i in range(at, end):
        if ZERO < data[i] <= NINE:
            return True
    return False


@compiled
def last_zeros(data, at, end):
    """Which of the two last groups of three digits are zeros: it decides what a time loses."""
    if end - at < 6:
        return 0
    low = high = True
    for i in range(end - 3, end):
        low = low and data[i] == ZERO
    for i in range(end - 6, end - 3):
        high = high and data[i] == ZERO
    return 10 + (10 if low else 0) + (20 if high else 0)


@compiled
def may_stand_for_none(data, at, end):
    """Whether text may be Debezium's placeholder for no value, as base64 or hexadecimal."""
    size = end - at
    if size == 40:  # X19k…
        return data[at] == 88 and data[at + 1] == 49 and data[at + 2] == 57 and data[at + 3] == 107
    return size == 56 and data[at] == 53 and data[at + 1] == 102 and data[at + 2] == 53  # 5f5f64…


@compiled
def fits(data, at, end, form, p, q):
    """Whether a value is of a form, so that the codecs do with it what its template says."""
    size = end - at
    if form == TEXT:
        return True
    if form == SINGLE:  # no two underscores in a row
        for i in range(at + 1, end):
            if data[i] == 95 and data[i - 1] == 95:
                return False
        return not may_stand_for_none(data, at, end)
    if form == PLAIN:
        for i in range(at, end):
            c = data[i]
            if c == 60 or c == 62 or c == 38 or c == 0xE2:  # what Go escapes, U+2028 among it
                return False
            if p == 0 and (c >= 127 or c == BACKSLASH):
                return False
            if p == 0 and c == 95 and i > at and data[i - 1] == 95:
                return False
        return p != 0 or not may_stand_for_none(data, at, end)
    if form == INTEGER:  # of at most p digits; q tells whether it must be positive
        i = number_end(data, at, end)
        if i != end or size > p:
            return False
        if data[at] == MINUS:
            return q == 0 and data[at + 1] != ZERO
        return q == 0 or data[at] != ZERO
    if form == NUMBER:  # of at most q digits, p of them behind the point, or any number of them
        i = number_end(data, at, end)
        if i < 0 or size > q or (data[at] == MINUS and not has_digit(data, at, end)):
            return False
        if i == end:
            return p <= 0
        behind = end - i - 1
        return data[i] == DOT and (p < 0 or behind == p) and all_digits(data, i + 1, end)
    if form == FLOAT:  # as Java writes numbers from 0.01 to 10 million; q: and as Go does too
        i = number_end(data, at, end)
        if i < 0 or i - at > 7 or size > 16 or data[at] == MINUS:
            return False  # negative ones are few
        if i >= end - 1 or data[i] != DOT or not all_digits(data, i + 1, end):
            return False
        if data[end - 1] == ZERO:
            return q == 0 and end == i + 2 and data[at] != ZERO
        if data[at] != ZERO:
            return True
        return data[i + 1] != ZERO or (i + 2 < end and data[i + 2] != ZERO)
    if form == STAMP:  # p digits; q tells the first, and which of the last six are zeros
        if size != p or data[at] != ZERO + q % 10 or not all_digits(data, at, end):
            return False
        return q < 10 or last_zeros(data, at, end) == q - q % 10
    if form == DATETIME:
        return is_datetime(data, at, end, p)
    if form == DATE:
        return is_date(data, at, end)
    return False


@compiled
def same(data, at, end, other, first, last):
    """Whether two pieces of bytes are equal."""
    size = end - at
    if size != last - first:
        return False
    return memcmp(data.ctypes.data + at, other.ctypes.data + first, size) == 0


@compiled
def copy(out, o, data, at, size):
    """Copy bytes; where they end."""
    memcpy(out.ctypes.data + o, data.ctypes.data + at, size)
    return o + size


@compiled
def put_number(out, o, number):
    """Write a whole number; where it ends."""
    if number < 0:
        out[o] = MINUS
        o += 1
        number = -number
    size = 1
    rest = number // 10
    while rest > 0:
        size += 1
        rest //= 10
    for i in range(o + size - 1, o - 1, -1):
        out[i] = ZERO + number % 10
        number //= 10
    return o + size


@compiled
def put_decimal64(out, o, data, at, end, alphabet):
    """Write base64 of a decimal's unscaled number, two's complement, as short as it can be."""
    negative = data[at] == MINUS
    number = np.int64(0)
    for i in range(at + negative, end):
        if data[i] != DOT:
            number = number * 10 + (data[i] - ZERO)
    if negative:
        number = -number
    size = 1
    while size < 8 and not -(np.int64(1) << (8 * size - 1)) <= number < np.int64(1) << (
        8 * size - 1
    ):
        size += 1
    i = size
    while i > 0:
        group = np.int64(0)
        taken = min(i, 3)
        for k in range(3):
            group <<= 8
            if k < taken:
                group |= (number >> (8 * (i - 1 - k))) & 255
        for k in range(4):
            out[o + k] = alphabet[(group >> (18 - 6 * k)) & 63] if k <= taken else 61
        o += 4
        i -= taken
    return o


@compiled
def write(out, o, data, starts, ends, ops, first, last, literals, alphabet):
    """Write the pieces of one message; where it ends."""
    for k in range(first, last):
        op, a, b = ops[k, 0], ops[k, 1], ops[k, 2]
        if op == LITERAL:
            o = copy(out, o, literals, a, b)
            continue
        at, end = starts[a], ends[a]
        if op == COPY or op == TRIM:  # without the last b bytes
            o = copy(out, o, data, at, end - at - b)
        elif op == POINT:  # before the last b digits; of a fraction, six digits and no last zeros
            o = copy(out, o, data, at, end - at - b)
            out[o] = DOT
            size = min(b, 6)
            while size > 1 and data[end - b + size - 1] == ZERO:
                size -= 1
            o = copy(out, o + 1, data, end - b, size)
        elif op == EPOCH:  # with b digits behind the second
            seconds = days_of(data, at) * 86_400 + two(data, at + 11) * 3_600
            seconds += two(data, at + 14) * 60 + two(data, at + 17)
            for i in range(b):
                seconds *= 10
                if at + 20 + i < end:
                    seconds += data[at + 20 + i] - ZERO
            o = put_number(out, o, seconds)
        elif op == DAYS:
            o = put_number(out, o, days_of(data, at))
        elif op == ISO:  # 2024-05-01T08:00:00Z
            o = copy(out, o, data, at, end - at)
            out[o - (end - at) + 10] = 84
            out[o] = 90
            o += 1
        else:
            o = put_decimal64(out, o, data, at, end, alphabet)
    return o


@compiled
def leaf_hash(data, n, starts, ends, roles, first, pairs, first_pair, last_pair, h):
    """Goes on with a skeleton's hash by the values that a template fixes, and by which are equal.

    What an update has changed is not what another one has.
    """
    for k in range(n):
        if roles[first + k] == FIXED:
            h = h * 1_000_003 + ends[k] - starts[k]
            for i in range(starts[k], ends[k]):
                h = h * 31 + data[i]
        elif roles[first + k] == ZEROS:
            h = h * 31 + last_zeros(data, starts[k], ends[k])
    for k in range(first_pair, last_pair):
        i, j = pairs[k, 0], pairs[k, 1]
        h = h * 31 + same(data, starts[i], ends[i], data, starts[j], ends[j])
    return h


@compiled
def are_paired(data, starts, ends, template, templates, pairs):
    """Whether both images have equal values where the template has them, and only there."""
    for k in range(templates[template, PAIRS], templates[template, PAIRS_END]):
        i, j = pairs[k, 0], pairs[k, 1]
        if same(data, starts[i], ends[i], data, starts[j], ends[j]) != (pairs[k, 2] == 1):
            return False
    return True


@compiled
def is_of(data, at, end, starts, ends, template, templates, leaves, samples, pairs):
    """Whether a message is of a template: the same but for the values that may vary."""
    p = at
    q = templates[template, SAMPLE]
    for k in range(templates[template, LEAVES], templates[template, LEAVES_END]):
        j = leaves[k, HOLE_LEAF]
        first = leaves[k, HOLE_START]
        if not same(data, p, starts[j], samples, q, first):
            return False
        if not fits(
            data, starts[j], ends[j], leaves[k, FORM], leaves[k, FORM_A], leaves[k, FORM_B]
        ):
            return False
        p, q = ends[j], leaves[k, HOLE_END]
    if not same(data, p, end, samples, q, templates[template, SAMPLE_END]):
        return False
    return are_paired(data, starts, ends, template, templates, pairs)


@compiled
def is_likely(data, at, end, starts, ends, template, templates, leaves, samples, pairs):
    """Whether a message that was not cut is of a template; if so, its holes are found.

    The same as `cut` and `is_of`, without looking at what is not a hole but to compare it.
    """
    p = at
    q = templates[template, SAMPLE]
    for k in range(templates[template, LEAVES], templates[template, LEAVES_END]):
        j = leaves[k, HOLE_LEAF]
        size = leaves[k, HOLE_START] - q
        first = p + size
        if first >= end or not same(data, p, first, samples, q, q + size):
            return False
        if samples[q + size - 1] == QUOTE:
            p = string_end(data, first, end)
        elif data[first] == MINUS or ZERO <= data[first] <= NINE:
            p = digits_end(data, first + 1, end)
        else:
            return False
        if p <= first or not fits(
            data, first, p, leaves[k, FORM], leaves[k, FORM_A], leaves[k, FORM_B]
        ):
            return False
        starts[j], ends[j] = first, p
        q = leaves[k, HOLE_END]
    if not same(data, p, end, samples, q, templates[template, SAMPLE_END]):
        return False
    return are_paired(data, starts, ends, template, templates, pairs)


@compiled
def splice(
    data, offsets, keyed, first_row, most, only,
    skeleton_keys, skeleton_values, skeletons, roles, skeleton_pairs,
    template_keys, template_values, templates, following, leaves, samples, pairs,
    records, ops, literals, alphabet,
    row_template, row_hash, row_time,
    out, out_ends, key_out, key_ends, record_row, record_kind, counts,
    starts, ends,
):  # fmt: skip
    """Splice rows from `first_row` on; the row at which the room for output ended, or all rows."""
    made, o, key_o = counts[0], counts[1], counts[2]
    rows = len(offsets) - 1
    last = 0
    for row in range(first_row, rows):
        at, end = offsets[row], offsets[row + 1]
        row_template[row] = SLOW
        if end - at > most:
            continue
        template = following[last]
        if (
            only
            or template < 0
            or keyed[row] != templates[template, KEYED]
            or not is_likely(
                data, at, end, starts, ends, template, templates, leaves, samples, pairs
            )
        ):
            n = cut(data, at, end, starts, ends)
            if n <= 0:
                continue
            h = skeleton_hash(data, at, end, n, starts, ends)
            row_hash[row] = h
            row_template[row] = NEW
            template = 0
            if not only:
                skeleton = find(skeleton_keys, skeleton_values, h)
                if skeleton < 0 or skeletons[skeleton, 1] - skeletons[skeleton, 0] != n:
                    continue
                h = leaf_hash(
                    data, n, starts, ends, roles, skeletons[skeleton, 0],
                    skeleton_pairs, skeletons[skeleton, 2], skeletons[skeleton, 3], h,
                )  # fmt: skip
                row_hash[row] = h
                template = find(template_keys, template_values, h)
                if template < 0:
                    continue
            row_template[row] = SLOW
            if templates[template, RECORDS] < 0:  # known to be none
                continue
            if not only and keyed[row] != templates[template, KEYED]:  # a value with a 0 in it
                continue
            if not is_of(data, at, end, starts, ends, template, templates, leaves, samples, pairs):
                continue
            following[last] = template
            last = template
        else:
            last = template
        copied = (end - at) * templates[template, COPIES]
        count = templates[template, RECORDS_END] - templates[template, RECORDS]
        if (
            o + templates[template, ROOM] + copied > len(out)
            or key_o + templates[template, ROOM] + copied > len(key_out)
            or made + count > len(record_row)
        ):
            counts[0], counts[1], counts[2] = made, o, key_o
            return row
        row_template[row] = template
        timed = templates[template, TIME_LEAF]
        if timed >= 0:
            time = np.int64(0)
            for i in range(starts[timed], ends[timed]):
                time = time * 10 + (data[i] - ZERO)
            row_time[row] = time * templates[template, TIME_FACTOR]
        for r in range(templates[template, RECORDS], templates[template, RECORDS_END]):
            o = write(
                out, o, data, starts, ends, ops,
                records[r, VALUE], records[r, VALUE_END], literals, alphabet,
            )  # fmt: skip
            out_ends[made + 1] = o
            key_o = write(
                key_out, key_o, data, starts, ends, ops,
                records[r, KEY], records[r, KEY_END], literals, alphabet,
            )  # fmt: skip
            key_ends[made + 1] = key_o
            record_row[made] = row
            record_kind[made] = r
            made += 1
    counts[0], counts[1], counts[2] = made, o, key_o
    return rows
