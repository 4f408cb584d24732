"""Floating-point numbers as text: the compiled counterpart of `numbers.double_text` and
`numbers.float_text`.

The digits are found as in Raffaello Giulietti, "The Schubfach way to render doubles" (2020): among
the decimal numbers that are read back as the same binary one, the shortest, and of these the
nearest. All that Numba compiles is in this file because its cache does not notice changes in
another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from headgate.fastpath.jit import compiled

U = np.uint64
MINUS, DOT, ZERO, LETTER_E = 45, 46, 48, 101
NAN, INFINITE = np.frombuffer(b"nan", np.uint8), np.frombuffer(b"inf", np.uint8)
MOST_PLAIN_DIGITS = 15
"""As in `numbers`: Numba's cache would not notice a change there."""
LOWEST, HIGHEST = -292, 324
"""The powers of ten that are needed."""
LONGEST = 25
"""The most characters of a number: sign, 17 digits, point, `e-308`."""


def power(exponent: int) -> int:
    """A power of ten, rounded up to 128 bits.

    >>> power(0) == power(1) * 8 // 10 == 1 << 127
    True
    """
    bits = 127 - (exponent * 1_741_647 >> 19)  # the logarithm of ten, in fixed point
    top, bottom = pow(10, max(exponent, 0)), pow(10, max(-exponent, 0))
    return int(-(-(top << max(bits, 0)) // (bottom << max(-bits, 0))))


_POWERS = [power(exponent) for exponent in range(LOWEST, HIGHEST + 1)]
HIGH = np.array([number >> 64 for number in _POWERS], U)
LOW = np.array([number & 0xFFFF_FFFF_FFFF_FFFF for number in _POWERS], U)


def _high_half(typing, one, other):
    """The upper 64 bits of a product, for compiled functions."""

    def generate(context, builder, signature, arguments):
        wide = context.get_value_type(types.uint64).as_pointer().pointee
        double = type(wide)(128)
        product = builder.mul(*(builder.zext(each, double) for each in arguments))
        return builder.trunc(builder.lshr(product, double(64)), wide)

    return types.uint64(types.uint64, types.uint64), generate


high_half: Any = intrinsic(_high_half)


@compiled
def scaled(high, low, number):
    """A number times a power of ten, without its fraction; odd where there is one."""
    middle = high_half(low, number)
    below = high * number
    above = high_half(high, number)
    total = below + middle
    if total < below:
        above += U(1)
    return above | U(total > U(1))


@compiled
def shortest(significand, exponent, is_power):
    """The digits of `significand * 2**exponent`, and their exponent of ten.

    `is_power` says that the next lower number is only half as far away as the next higher one.
    """
    odd = significand & U(1)
    number = significand << U(2)
    lower, upper = number - (U(1) if is_power else U(2)), number + U(2)
    # Logarithms of powers of two and ten, in fixed point.
    ten = (exponent * 1_262_611 - (524_031 if is_power else 0)) >> 22
    shift = U(exponent + ((-ten * 1_741_647) >> 19) + 1)
    high, low = HIGH[-ten - LOWEST], LOW[-ten - LOWEST]
    lower = scaled(high, low, lower << shift) + odd
    number = scaled(high, low, number << shift)
    upper = scaled(high, low, upper << shift) - odd
    digits = number >> U(2)
    if digits >= U(10):
        short = digits // U(10)
        down_fits = lower <= U(40) * short
        up_fits = U(40) * short + U(40) <= upper
        if down_fits != up_fits:
            return short + U(up_fits), ten + 1
    down_fits = lower <= U(4) * digits
    up_fits = U(4) * digits + U(4) <= upper
    if down_fits != up_fits:
        return digits + U(up_fits), ten
    middle = U(4) * digits + U(2)
    rounds_up = number > middle or (number == middle and digits & U(1) == U(1))
    return digits + U(rounds_up), ten


@compiled
def put_text(text, out, o):
    """A word."""
    for at in range(len(text)):
        out[o + at] = text[at]
    return o + len(text)


@compiled
def put_zeros(count, out, o):
    """So many zeros."""
    for at in range(count):
        out[o + at] = ZERO
    return o + count


@compiled
def put_digits(number, low, high, count, out, o):
    """Of a number of `count` digits those from `low` to `high`."""
    for at in range(count - 1, low - 1, -1):
        rest = number // U(10)
        if at < high:
            out[o + at - low] = U(ZERO) + (number - rest * U(10))
        number = rest
    return o + high - low


@compiled
def put_number(digits, ten, out, o):
    """Digits and their exponent of ten, as the server prints them."""
    while digits % U(10) == U(0):
        digits //= U(10)
        ten += 1
    count = 0
    rest = digits
    while rest:
        rest //= U(10)
        count += 1
    point = count + ten
    if -MOST_PLAIN_DIGITS < point <= 0:
        out[o] = ZERO
        out[o + 1] = DOT
        o = put_zeros(-point, out, o + 2)
        return put_digits(digits, 0, count, count, out, o)
    if 0 < point <= max(MOST_PLAIN_DIGITS, count - 1):
        o = put_digits(digits, 0, min(point, count), count, out, o)
        if point >= count:
            return put_zeros(point - count, out, o)
        out[o] = DOT
        return put_digits(digits, point, count, count, out, o + 1)
    o = put_digits(digits, 0, 1, count, out, o)
    if count > 1:
        out[o] = DOT
        o = put_digits(digits, 1, count, count, out, o + 1)
    out[o] = LETTER_E
    o += 1
    power = point - 1
    if power < 0:
        out[o] = MINUS
        o += 1
        power = -power
    size = 1 if power < 10 else 2 if power < 100 else 3
    return put_digits(U(power), 0, size, size, out, o)


@compiled
def put_float(bits, fraction_bits, exponent_bits, out, o):
    """A number, given by its bits: the sign, the exponent, and the fraction last."""
    fraction = bits & ((U(1) << U(fraction_bits)) - U(1))
    highest = (1 << exponent_bits) - 1
    exponent = np.int64(bits >> U(fraction_bits)) & highest
    if exponent == highest and fraction:
        return put_text(NAN, out, o)
    if bits >> U(fraction_bits + exponent_bits):
        out[o] = MINUS
        o += 1
    if exponent == highest:
        return put_text(INFINITE, out, o)
    if exponent == 0 and not fraction:
        return put_zeros(1, out, o)
    two = max(exponent, 1) - (highest >> 1) - fraction_bits
    if exponent:
        is_power = not fraction and exponent > 1
        fraction |= U(1) << U(fraction_bits)
        if -fraction_bits <= two <= 0 and not fraction & ((U(1) << U(-two)) - U(1)):
            return put_number(fraction >> U(-two), 0, out, o)  # a whole number
    else:
        is_power = False
    digits, ten = shortest(fraction, two, is_power)
    return put_number(digits, ten, out, o)


@compiled
def put_floats(data, starts, lengths, size, out, ends, first):
    """The texts of numbers of four or eight bytes, and where in all texts each ends."""
    o = 0
    ends[0] = first
    for row in range(len(starts)):
        if lengths[row] >= 0:
            bits = U(0)
            for at in range(size):
                bits |= U(data[starts[row] + at]) << U(8 * at)
            if size == 8:
                o = put_float(bits, 52, 11, out, o)
            else:
                o = put_float(bits, 23, 8, out, o)
        ends[row + 1] = first + o
    return o
