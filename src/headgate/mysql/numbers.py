"""Numbers and times of the binlog as text, as the server itself prints them."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

MOST_PLAIN_DIGITS = 15
"""Floating-point numbers that need more zeros or places than this have an exponent; those with a
fraction have none, however large they are."""
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""The bytes that so many digits of a DECIMAL take."""
_EPOCH_DAY = 719_468
"""Days from 0000-03-01 to 1970-01-01."""


def number_text(digits: str) -> str:
    """A number as Python prints it, as the server does: exponents without plus, from 1e15 on.

    >>> [number_text(text) for text in ("1.0", "1e+16", "1.5e-05", "-123456789012345680.0")]
    ['1', '1e16', '0.000015', '-1.2345678901234568e17']
    >>> number_text("1642252100461880.8")
    '1642252100461880.8'
    """
    if "e" not in digits and len(digits) < MOST_PLAIN_DIGITS:
        return digits.removesuffix(".0")
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    mantissa, _, exponent = digits.partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    significant = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(significant)
    significant = significant.rstrip("0")
    if not significant:
        return f"{sign}0"
    if not -MOST_PLAIN_DIGITS < point <= max(MOST_PLAIN_DIGITS, len(significant) - 1):
        rest = f".{significant[1:]}" if len(significant) > 1 else ""
        return f"{sign}{significant[0]}{rest}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{significant}"
    if point >= len(significant):
        return f"{sign}{significant}{'0' * (point - len(significant))}"
    return f"{sign}{significant[:point]}.{significant[point:]}"


def double_text(data: bytes) -> str:
    """A DOUBLE in the fewest digits that tell it apart.

    >>> double_text(struct.pack("<d", 0.1))
    '0.1'
    """
    return number_text(repr(struct.unpack("<d", data)[0]))


def float_text(data: bytes) -> str:
    """A FLOAT in the fewest digits that tell it apart.

    >>> [float_text(struct.pack("<f", number)) for number in (1.1, 16777216.0, 2.0**-96)]
    ['1.1', '16777216', '1.2621775e-29']
    """
    return number_text(str(np.frombuffer(data, "<f4")[0]))


def decimal_size(precision: int, scale: int) -> int:
    """The bytes of a DECIMAL.

    >>> decimal_size(14, 4)
    7
    """
    whole = precision - scale
    return sum(n // 9 * 4 + _DIGIT_BYTES[n % 9] for n in (whole, scale))


def decimal_reader(precision: int, scale: int) -> Callable[[bytes], str]:
    """A function from a DECIMAL's bytes to its digits.

    >>> decimal_reader(4, 2)(bytes.fromhex("8c22")), decimal_reader(4, 2)(bytes.fromhex("73dd"))
    ('12.34', '-12.34')
    """
    whole = precision - scale
    groups = []
    for count, in_front in ((whole, True), (scale, False)):
        rest = [(_DIGIT_BYTES[count % 9], count % 9)] if count % 9 else []
        full = [(4, 9)] * (count // 9)
        groups.append(rest + full if in_front else full + rest)

    def read(data: bytes) -> str:
        flip = 0 if data[0] & 0x80 else 0xFF
        plain = bytes([data[0] ^ 0x80 ^ flip, *(byte ^ flip for byte in data[1:])])
        at, parts = 0, []
        for part in groups:
            digits = ""
            for size, count in part:
                digits += f"{int.from_bytes(plain[at : at + size], 'big'):0{count}d}"
                at += size
            parts.append(digits)
        number = parts[0].lstrip("0") or "0"
        sign = "-" if flip else ""
        return f"{sign}{number}.{parts[1]}" if scale else f"{sign}{number}"

    return read


def fraction_size(digits: int) -> int:
    """The bytes that a time's fraction takes.

    >>> fraction_size(0), fraction_size(3), fraction_size(6)
    (0, 2, 3)
    """
    return (digits + 1) // 2


def _fraction(data: bytes, digits: int) -> str:
    if not digits:
        return ""
    value = int.from_bytes(data, "big")
    return f".{value // (10 if digits & 1 else 1):0{digits}d}"


def date_text(data: bytes) -> str:
    """A DATE, which need not be one.

    >>> date_text((2023 << 9 | 2 << 5 | 31).to_bytes(3, "little"))
    '2023-02-31'
    """
    number = int.from_bytes(data, "little")
    return f"{number >> 9:04d}-{number >> 5 & 15:02d}-{number & 31:02d}"


def year_text(data: bytes) -> str:
    """A YEAR.

    >>> year_text(bytes([0])), year_text(bytes([123]))
    ('0000', '2023')
    """
    return f"{data[0] + 1900}" if data[0] else "0000"


def datetime_reader(digits: int) -> Callable[[bytes], str]:
    """A function from a DATETIME's bytes."""

    def read(data: bytes) -> str:
        number = int.from_bytes(data[:5], "big") - 0x8000000000
        day, clock = number >> 17, number & 0x1FFFF
        month = day >> 5
        return (
            f"{month // 13:04d}-{month % 13:02d}-{day & 31:02d} "
            f"{clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}{_fraction(data[5:], digits)}"
        )

    return read


def time_reader(digits: int) -> Callable[[bytes], str]:
    """A function from a TIME's bytes; a negative one counts back, its fraction too.

    >>> time_reader(1)(bytes.fromhex("7fffffce"))
    '-00:00:00.5'
    """
    size = fraction_size(digits)
    middle = 0x800000 << 8 * size

    def read(data: bytes) -> str:
        number = int.from_bytes(data, "big") - middle
        sign, number = ("-", -number) if number < 0 else ("", number)
        clock = number >> 8 * size
        fraction = _fraction((number & (1 << 8 * size) - 1).to_bytes(size, "big"), digits)
        return f"{sign}{clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}{fraction}"

    return read


def timestamp_reader(digits: int) -> Callable[[bytes], str]:
    """A function from a TIMESTAMP's bytes to UTC; zero is the zero date.

    >>> timestamp_reader(0)(bytes.fromhex("5f5e1000"))
    '2020-09-13 12:26:40'
    """

    def read(data: bytes) -> str:
        seconds = int.from_bytes(data[:4], "big")
        fraction = _fraction(data[4:], digits)
        if not seconds and not fraction.strip(".0"):
            return f"0000-00-00 00:00:00{fraction}"
        return epoch_text(seconds) + fraction

    return read


def old_timestamp_text(data: bytes) -> str:
    """A TIMESTAMP of a table from before MySQL 5.6."""
    seconds = int.from_bytes(data, "little")
    return epoch_text(seconds) if seconds else "0000-00-00 00:00:00"


def epoch_text(seconds: int) -> str:
    """Seconds since 1970 as a date and time.

    >>> epoch_text(4_294_967_295)
    '2106-02-07 06:28:15'
    """
    days, clock = divmod(seconds, 86_400)
    day = days + _EPOCH_DAY
    era, day = divmod(day, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    date = day - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    year += era * 400 + (month <= 2)
    return (
        f"{year:04d}-{month:02d}-{date:02d} "
        f"{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}"
    )


def old_time_text(data: bytes) -> str:
    """A TIME of a table from before MySQL 5.6: the decimal digits of hours, minutes, seconds."""
    number = int.from_bytes(data, "little", signed=True)
    sign, number = ("-", -number) if number < 0 else ("", number)
    return f"{sign}{number // 10_000:02d}:{number // 100 % 100:02d}:{number % 100:02d}"


def old_datetime_text(data: bytes) -> str:
    """A DATETIME of a table from before MySQL 5.6: its decimal digits in one number."""
    digits = f"{int.from_bytes(data, 'little'):014d}"
    return (
        f"{digits[:-10]}-{digits[-10:-8]}-{digits[-8:-6]} "
        f"{digits[-6:-4]}:{digits[-4:-2]}:{digits[-2:]}"
    )
