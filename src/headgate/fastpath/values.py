"""Values to try codecs with: markers that can be found again in what is written, and probes."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from headgate.fastpath.kernel import (
    COPY,
    DATE,
    DATETIME,
    DAYS,
    DECIMAL64,
    EPOCH,
    FLOAT,
    INTEGER,
    ISO,
    NUMBER,
    PLAIN,
    POINT,
    SINGLE,
    STAMP,
    TEXT,
    TRIM,
)
from headgate.formats import load, registered

_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"-?[0-9]+\.([0-9]+)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.([0-9]+))?")
EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
LONG = 10
"""From so many digits on, a whole number may be a time: its size matters."""

NUMBERS = (
    *map(str, range(18)),
    *("-1", "-7", "24", "31", "32", "60", "63", "64", "99", "100", "127", "128", "-128", "255"),
    *("256", "511", "1000", "1023", "1901", "2024", "9999", "32767", "65535", "65536", "123456"),
    *("8388607", "16777215", "999999999", "2147483647", "2147483648", "4294967295", "4294967296"),
    *("1709294400", "9999999999", "1709294400417", "9999999999999", "9007199254740993"),
    *("1709294400417000", "1709294400417031", "-2147483648", "99999999999999999"),
    *("123456789012345678", "999999999999999999", "-99999999999999999", "0.0", "0.5", "1.0"),
    *("1.10", "-1.50", "-0.5", "2.137", "0.001", "0.0005", "0.00150", "0.000001", "1234567.5"),
    *("12345678.5", "123456789.25", "31090.43", "-99999999.99", "0.10", "10.00", "0.00"),
    *("100000000000.5", "3.1415926535897", "9999999999999.99", "1.23456789012345"),
)
"""Numbers of every size and notation that some codec treats in a way of its own."""
DECIMALS = ("0", "-0", "1", "-1", "00", "128", "-128", "32768", "-32769", "1234567", "-99999999")
"""Whole parts of decimals: to them comes a fraction of the length that the column has."""
MOMENTS = (
    *("2024-03-01 00:20:07", "2024-02-29 23:59:59", "2024-07-01 12:00:00", "2023-08-15 06:07:08"),
    *("1969-12-31 23:59:59", "1970-01-01 00:00:00", "1000-01-01 00:00:00", "9999-12-31 23:59:59"),
    *("0001-01-01 00:00:00", "1900-03-01 00:00:00", "1582-10-10 12:00:00", "2038-01-19 03:14:08"),
    *("1677-09-20 00:00:00", "2262-04-12 00:00:00", "2024-03-10 02:30:00", "2024-10-27 02:30:00"),
    *("2024-03-31 01:30:00", "2024-10-27 01:30:00", "2024-11-03 01:30:00", "1950-06-01 00:00:00"),
)
"""Times at the ends of somebody's range, or when some zone sets its clocks."""
TEXTS = (
    *("", "a", "A", "new", "null", "NULL", "true", "false", "007", "-0", "-007", "+5", "1e5"),
    *("1E400", "0x1F", " 5", "5 ", ".5", "5.", "NaN", "Infinity", "-", "a,b", "x'41'", "b'1'"),
    *("{}", "[]", "[1,2]", "AA==", "AAEC", "deadbeef", "Zürich", "北京市", "😀", "\x7f", "\x85"),
    *("<b>&</b>", "\u2028\u2029", "_", "__", "a__b", "1_000"),
    *('\\"', "\\\\", "\\n", "\\r\\t", 'c:\\\\temp \\"q\\"', "'", "`", "/", "%s", "{database}"),
    *("5f5f", "X19k", "JSON_SET(a)", "x" * 300, " ", "a ", "\\n\\n"),
    *("\xa0", "\xad", "ÿ", "Ā", "\u0301", "\u200b", "\u3000", "\ue000", "\ufeff", "\ufffe\uffff"),
    *("\U0010ffff", "٣", "²", "１２", '{\\"a\\": 1.10}', "[1, 2]", '\\"text\\"', "1 2", "-0.0"),
    *("-0.00", "00.10", "9" * 30, "-" + "9" * 30, "0." + "0" * 29 + "1", "18446744073709551615"),
    *("18446744073709551616", "9223372036854775807", "9223372036854775808", "1e-7", "1.0E10"),
    *("-9223372036854775808", "-9223372036854775809", "12345678901234.567890"),
    *("0000-00-00", "2024-02-30", "2024-3-1", "2024-00-00", "2023-02-29", "2024-W10-1"),
    *("2024-03-01 00:20:07.5", "2024-03-01 00:20:07.123", "2024-03-01 00:20:07.000"),
    *("2024-03-01 00:20:07.123456", "2024-03-01 00:20:07.000000", "2024-03-01 00:20:07.120000"),
    *("0000-00-00 00:00:00", "2023-02-29 00:00:00", "2024-03-01T00:20:07Z", "2024-03-01T00:20:07"),
    *("2024-03-01 24:00:00", "2024-03-01T00:20:07.123Z", "00:00:00", "-838:59:59", "-00:00:01"),
    *("12:34:56", "12:34:56.789", "12:34:56.000000", "120007.5", "0000", "24:00:00"),
    *MOMENTS, *(moment[:10] for moment in MOMENTS),
    *(text for name in registered() for text in load(name).probes),
)  # fmt: skip
"""Text, as it stands between quotes in JSON, that some codec might take for something else."""


def marker(text: str, number: bool, rng: Random) -> str:
    """A value of the same look as another, that is nowhere else in a message.

    >>> len(marker("1709294400417", True, Random(1))), marker("2024-03-01", False, Random(1))[4]
    (13, '-')
    """
    if _INTEGER.fullmatch(text):
        size = len(text)
        if size < LONG or text[0] == "-":
            return str(rng.randrange(10**8, 10**9))
        low = 6 if text.endswith("000000") else 3 if text.endswith("000") else 0
        free = size - 3 - low
        return text[:3] + "".join(rng.choices("123456789", k=free)) + "0" * low
    if match := _DECIMAL.fullmatch(text):
        return f"{rng.randrange(10**6, 10**7)}." + "".join(
            rng.choices("123456789", k=len(match[1]))
        )
    if number:
        return text
    if _DATE.fullmatch(text):
        return f"{day(rng):%Y-%m-%d}"
    if match := _DATETIME.fullmatch(text):
        digits = match[1] or ""
        fraction = "".join(rng.choices("123456789", k=len(digits)))
        return f"{day(rng):%Y-%m-%d %H:%M:%S}" + (f".{fraction}" if digits else "")
    return "Zq" + "".join(rng.choices("abcdefghijkmnopqrstuvwxyz", k=12))


def day(rng: Random) -> datetime:
    """A moment of the years 2001 to 2033."""
    return EPOCH_START + timedelta(seconds=rng.randrange(10**9, 2 * 10**9))


def fragments(text: str) -> Iterator[tuple[str, int, int]]:
    """What may be written for a value: the text, and by which operation it is made.

    >>> [text for text, _, _ in fragments("1709294400417031")][:3]
    ['1709294400417031', '1709294400417', '1709294400']
    """
    yield text, COPY, 0
    if _INTEGER.fullmatch(text):
        if len(text) >= LONG:
            yield text[:-3], TRIM, 3
            yield text[:-6], TRIM, 6
            for size in (3, 6, 9):
                if len(text) >= LONG + size:
                    fraction = text[-size:][:6].rstrip("0") or "0"
                    yield f"{text[:-size]}.{fraction}", POINT, size
        yield unscaled64(text), DECIMAL64, 0
    elif _DECIMAL.fullmatch(text):
        yield unscaled64(text.replace(".", "")), DECIMAL64, 0
    elif _DATE.fullmatch(text):
        yield str((datetime.fromisoformat(text).date() - EPOCH_START.date()).days), DAYS, 0
    elif match := _DATETIME.fullmatch(text):
        seconds = int(datetime.fromisoformat(text[:19] + "+00:00").timestamp())
        digits = match[1] or ""
        for size in (3, 6, 9):
            if len(digits) <= size:
                yield f"{seconds}{digits.ljust(size, '0')}", EPOCH, size
        yield f"{text[:10]}T{text[11:]}Z", ISO, 0


def unscaled64(digits: str) -> str:
    """Base64 of a whole number in two's complement.

    >>> unscaled64("790")
    'AxY='
    """
    number = int(digits)
    bits = (number if number >= 0 else ~number).bit_length()
    return b64encode(number.to_bytes(bits // 8 + 1, "big", signed=True)).decode()


def forms(text: str, number: bool) -> Iterator[tuple[int, int, int]]:
    """Forms that a value may be of, the widest first, with their parameters."""
    if not number:
        yield TEXT, 0, 0
        yield SINGLE, 0, 0
        yield PLAIN, 1, 0
        yield PLAIN, 0, 0
    yield NUMBER, -1, 18
    for digits in (18, 13, 9, 6, 4, 2):
        yield INTEGER, digits, 0
        yield INTEGER, digits, 1
    if _INTEGER.fullmatch(text):
        if len(text) >= LONG and text[0] != "-":
            low, high = text[-3:] == "000", text[-6:-3] == "000"
            yield STAMP, len(text), int(text[0])
            yield STAMP, len(text), int(text[0]) + 10 + (10 if low else 0) + (20 if high else 0)
        yield NUMBER, 0, 18
    if match := _DECIMAL.fullmatch(text):
        yield NUMBER, len(match[1]), 18
    yield FLOAT, 0, 0
    yield FLOAT, 0, 1
    if match := _DATETIME.fullmatch(text):
        yield DATETIME, len(match[1] or ""), 0
    yield DATE, 0, 0


def probes(text: str, number: bool) -> list[str]:
    """The values to try in the place of one: it comes first.

    >>> probes("1709294400417", True)[:3]
    ['1709294400417', '1000000000000', '1999999999999']
    """
    candidates = [text]
    if _INTEGER.fullmatch(text) and len(text) >= LONG and text[0] != "-":
        first, size = text[0], len(text) - 1
        for rest in ("0" * size, "9" * size, "0" * (size - 1) + "1"):
            candidates.append(first + rest)
        for zeros in (3, 6):
            candidates.append(first + "9" * (size - zeros) + "0" * zeros)
        candidates.append(f"{text[:-6]}000{text[-3:-1]}1")
        candidates.append(f"{text[:-6]}001000")
    elif decimal := _DECIMAL.fullmatch(text):
        size = len(decimal[1])
        candidates += [f"{whole}.{rest}" for whole in DECIMALS for rest in ("0" * size, "7" * size)]
    elif (time := _DATETIME.fullmatch(text)) and time[1]:
        size = len(time[1])
        for rest in ("0" * size, "9" * size, "1".zfill(size), "5".ljust(size, "0")):
            candidates += [f"{moment}.{rest}" for moment in MOMENTS]
    return [*candidates, *NUMBERS, *(() if number else TEXTS)]
