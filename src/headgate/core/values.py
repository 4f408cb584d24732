"""Canonical value text: how each dialect's way to write a MySQL value becomes the one text form."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from msgspec.json import encode as encode_json

from headgate.core.cache import BoundedCache
from headgate.core.errors import DecodeError
from headgate.core.json import Number, Raw, exact_text
from headgate.core.limits import MAX_PLAIN_EXPONENT
from headgate.core.losses import Lossy

Convert = Callable[[str], str]
Converters = Sequence[tuple[str, Convert]]
TypedConverters = Sequence[tuple[str, Callable[[Any], Any]]]

EPOCH = datetime(1970, 1, 1)
YEAR_ONE, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The microseconds that a Python datetime and an Arrow timestamp both hold."""
_SCIENTIFIC = re.compile(r"([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?[eE]([+-]?\d+)", re.ASCII)
_SECONDS = re.compile(r"-?(?:\d{4}-\d\d-\d\d )?\d+:\d\d:\d\d(?:\.\d+)?", re.ASCII)
# The last quote is optional, so that a text that ends too early is not searched again and again.
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)('?)", re.DOTALL)


def base_type(mysql_type: str) -> str:
    """The bare, lower-case type name: `ENUM('a','b')` is `enum`, `bigint(20) unsigned` is `bigint`.

    >>> base_type("VARCHAR(255)")
    'varchar'
    """
    return re.split(r"[(\s]", mysql_type.strip().lower(), maxsplit=1)[0]


def to_text(image: dict[str, Any], numbers: list[str], booleans: list[str]) -> bool:
    """Turn numbers and true/false into text, in place, and note which; True where one is nested.

    >>> row, numbers, booleans = {"a": 18446744073709551615, "b": "x", "c": True, "d": None}, [], []
    >>> to_text(row, numbers, booleans), row
    (False, {'a': '18446744073709551615', 'b': 'x', 'c': '1', 'd': None})
    >>> numbers, booleans
    (['a'], ['c'])
    """
    nested = False
    for name, value in image.items():
        kind = value.__class__
        if kind is str:
            continue
        if kind is int:
            image[name] = f"{value}"
            numbers.append(name)
        elif value is None:
            continue
        elif kind is Number:
            numbers.append(name)
        elif kind is bool:
            image[name] = "1" if value else "0"
            booleans.append(name)
        else:
            nested = True
    return nested


def exact_nested(image: dict[str, Any], sent: Mapping[str, Raw]) -> None:
    """Give objects and arrays the very text that was sent, in place."""
    for name, value in image.items():
        if value.__class__ is dict or value.__class__ is list:
            image[name] = exact_text(sent[name])


def _names_json(names: tuple[str, ...]) -> str:
    """Column names as a JSON array, each once.

    >>> names_json(("id", "amount", "id"))
    '["id","amount"]'
    """
    return encode_json(list(dict.fromkeys(names))).decode()


names_json: Callable[[tuple[str, ...]], str] = BoundedCache(_names_json).__getitem__
"""The same, cached, because every message repeats them."""


def convert(image: dict[str, Any], converters: TypedConverters) -> None:
    """Apply each converter to its column, in place, where the column is there and not NULL."""
    for name, function in converters:
        value = image.get(name)
        if value is not None:
            try:
                image[name] = function(value)
            except DecodeError as error:
                raise error.in_column(name) from None


def plain(number: str) -> str:
    """A decimal in plain notation, no digit lost or added beyond what the exponent says.

    >>> plain("1.50E-7"), plain("0E-10"), plain("12e2"), plain("1.10")
    ('0.000000150', '0.0000000000', '1200', '1.10')
    """
    match = _SCIENTIFIC.fullmatch(number)
    if not match:
        return number
    sign, whole, fraction, exponent_text = match.groups("")
    if len(exponent_text) > 8 or abs(int(exponent_text)) > MAX_PLAIN_EXPONENT:
        return number
    digits = whole + fraction
    point = len(whole) + int(exponent_text)
    minus = "-" if sign == "-" else ""
    if point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return minus + ((digits + "0" * (point - len(digits))).lstrip("0") or "0")
    return f"{minus}{digits[:point].lstrip('0') or '0'}.{digits[point:]}"


def labels(mysql_type: str) -> tuple[str, ...]:
    """The labels of an ENUM or SET type text; empty where the text carries none.

    >>> labels("enum('a','it''s','x,y')")
    ('a', "it's", 'x,y')
    """
    return tuple(
        label.replace("''", "'").replace("\\'", "'").replace("\\\\", "\\")
        for label, closed in _LABEL.findall(mysql_type)
        if closed
    )


def enum_label(mysql_type: str) -> Convert | None:
    """A function from ENUM index to label, or None where the type text carries no labels.

    >>> enum_label("enum('a','b')")("2"), enum_label("enum('a','')")("0")
    ('b', '0')
    """
    known = labels(mysql_type)
    if not known:
        return None
    # Of labels that are all `?`, lost in a character set, the number tells more.
    lost = {label for label, count in Counter(known).items() if count > 1 and "?" in label}
    by_index = {str(i): label for i, label in enumerate(known, 1) if label not in lost}
    # MySQL's error value reads as '' too: where that is a label, its number tells the two apart.
    by_index["0"] = "0" if "" in known and "0" not in known else ""
    return lambda value: by_index.get(value, value)


def set_labels(mysql_type: str) -> Convert | None:
    """A function from SET bit mask to comma-joined labels, or None without labels.

    >>> set_labels("set('a','b','c')")("5")
    'a,c'
    """
    known = labels(mysql_type)
    if not known:
        return None

    ambiguous = sum(1 << i for i, label in enumerate(known) if known.count(label) > 1)

    def convert(value: str) -> str:
        if not (value.isascii() and value.isdigit()) or len(value) > 20 or int(value) >> len(known):
            return value
        mask = int(value)
        if mask & ambiguous:
            return value
        return ",".join(label for i, label in enumerate(known) if mask >> i & 1)

    return convert


def latin1_bytes(value: str) -> str:
    """Base64 of bytes that were sent as ISO-8859-1 characters.

    >>> latin1_bytes("\\u0005ÿ")
    'Bf8='
    """
    try:
        return b64encode(value.encode("latin-1")).decode()
    except UnicodeEncodeError:
        raise DecodeError(
            "invalid-binary",
            "binary text has characters above U+00FF",
            "the dialect does not send binary as ISO-8859-1; name the right dialect",
        ) from None


def base64_bytes(value: str) -> bytes:
    """The bytes of standard base64 text.

    >>> base64_bytes("Bf8=")
    b'\\x05\\xff'
    """
    try:
        return b64decode(value, validate=True)
    except (Base64Error, ValueError):
        raise DecodeError(
            "invalid-binary", "binary text is not base64", "name the right dialect"
        ) from None


def hex_bytes(value: str) -> str:
    """Base64 of bytes that were sent in hexadecimal.

    >>> hex_bytes("6A")
    'ag=='
    """
    try:
        return b64encode(bytes.fromhex(value)).decode()
    except ValueError:
        raise DecodeError(
            "invalid-binary", "binary text is not hexadecimal", "name the right dialect"
        ) from None


def big_endian_bits(value: bytes) -> str:
    """A BIT value from its bytes, most significant first.

    >>> big_endian_bits(b"\\x01\\x01")
    '257'
    """
    if len(value) > 8:
        raise DecodeError(
            "invalid-value",
            f"a BIT column has {len(value)} bytes",
            "check that the column is a BIT in the source",
        )
    return str(int.from_bytes(value, "big"))


UTC_NAMES = ("UTC", "Etc/UTC", "Z", "GMT")


def utc(zone_name: str) -> Convert | None:
    """A function from local TIMESTAMP text to UTC text, or None where the zone is UTC already.

    >>> utc("Asia/Shanghai")("2020-01-01 08:00:00.50")
    '2020-01-01 00:00:00.50'
    """
    return None if zone_name in UTC_NAMES else _moved(ZoneInfo(zone_name), UTC)


def local(zone_name: str) -> Convert | None:
    """A function from UTC TIMESTAMP text to the zone's local text; None where that is UTC.

    It raises Lossy in the hour that comes twice when summer time ends.

    >>> local("Asia/Shanghai")("2020-01-01 00:00:00.50")
    '2020-01-01 08:00:00.50'
    """
    return None if zone_name in UTC_NAMES else _moved(UTC, ZoneInfo(zone_name))


def _moved(here: tzinfo, there: tzinfo) -> Convert:
    may_repeat = there is not UTC

    def convert(value: str) -> str:
        whole, dot, fraction = value.partition(".")
        try:
            at = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=here)
            moved = at.astimezone(there)
        except (ValueError, OverflowError):  # zero dates and what only MySQL calls a date
            return value
        text = f"{moved:%Y-%m-%d %H:%M:%S}{dot}{fraction}".rjust(19 + len(dot + fraction), "0")
        if may_repeat and is_repeated(moved):
            raise Lossy("repeated-hour", text)
        return text

    return convert


def is_repeated(at: datetime) -> bool:
    """Whether a local time comes twice, because its zone sets the clock back.

    >>> is_repeated(datetime(2023, 10, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")))
    True
    """
    return at.replace(fold=0).utcoffset() != at.replace(fold=1).utcoffset()


def with_digits(digits: int) -> Convert:
    """A function that gives a time the number of fraction digits that its column declares.

    >>> with_digits(3)("08:00:00.5"), with_digits(0)("08:00:00.000"), with_digits(1)("08:00:00.25")
    ('08:00:00.500', '08:00:00', '08:00:00.25')
    """

    def convert(text: str) -> str:
        if text[-1 - digits : -digits] == "." if digits else "." not in text:
            return text
        whole, _, fraction = text.partition(".")
        if fraction[digits:].strip("0") or not _SECONDS.fullmatch(text):
            return text  # more than the column holds, or no time: as it was sent
        fraction = fraction[:digits].ljust(digits, "0")
        return f"{whole}.{fraction}" if digits else whole

    return convert


def year(text: str) -> str:
    """A YEAR in four digits. No YEAR is 1900: producers that add it to the stored byte mean 0000.

    >>> year("0"), year("2024"), year("1900"), year("x")
    ('0000', '2024', '0000', 'x')
    """
    if text == "1900":
        return "0000"
    return text.zfill(4) if text.isascii() and text.isdigit() else text


def with_scale(scale: int) -> Convert:
    """A function that gives a DECIMAL the number of digits that its column declares.

    >>> with_scale(2)("5.0"), with_scale(2)("-5"), with_scale(1)("5.25"), with_scale(0)("5")
    ('5.00', '-5.00', '5.25', '5')
    """
    plain_number = re.compile(rf"-?[0-9]+(?:\.[0-9]{{0,{scale}}})?").fullmatch
    point = slice(-1 - scale, -scale)

    def convert(text: str) -> str:
        if text[point] == ".":
            return text  # as declared
        whole, _, fraction = text.partition(".")
        if len(fraction) == scale or not plain_number(text):
            return text  # more than the column holds, or no number
        return f"{whole}.{fraction.ljust(scale, '0')}"

    return convert


def spaced(value: str) -> str:
    """DATETIME text with a space for ISO's `T`, and seconds where the producer left them out.

    >>> spaced("2020-11-25T00:01"), spaced("2020-11-25 00:01:02")
    ('2020-11-25 00:01:00', '2020-11-25 00:01:02')
    """
    if len(value) > 10 and value[10] == "T":
        value = f"{value[:10]} {value[11:]}"
        if len(value) == 16:
            value += ":00"
    return value


def micros(value: int | None) -> int | None:
    """Microseconds since the epoch from seconds, milli-, micro- or nanoseconds, by magnitude.

    None for what lies before year 1.

    >>> [micros(t) for t in (1655812326, 1655812326000, 1655812326000000, None)]
    [1655812326000000, 1655812326000000, 1655812326000000, None]
    """
    if value is None:
        return None
    if 100_000_000_000 <= value < 100_000_000_000_000:
        return value * 1_000
    size = abs(value)
    if size < 100_000_000_000:
        value *= 1_000_000
    elif size < 100_000_000_000_000:
        value *= 1_000
    elif size >= 100_000_000_000_000_000:
        value //= 1_000
    return value if value >= YEAR_ONE else None
