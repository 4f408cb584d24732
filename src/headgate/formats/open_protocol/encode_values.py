"""TiCDC Open Protocol's values: canonical text to JSON, binary values with Go's escapes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from json.encoder import encode_basestring as quote

from headgate.core.losses import Lossy
from headgate.core.mysql_types import MySqlType
from headgate.formats._ticdc.values import year_number
from headgate.formats.encoding import enum_index, is_number, raw_bytes, set_mask, whole
from headgate.formats.open_protocol.decode_columns import (
    FLOATS,
    LOBS,
    STRINGS,
    TIMESTAMP,
    YEAR,
)

WHOLE = {1, 2, 3, 8, 9, 16}

ToJson = Callable[[str], str]
"""From canonical text to JSON; raises Lossy if the value cannot be represented."""


def writer(
    type_: MySqlType, code: int, binary: bool, numbered: bool, to_local: ToJson | None
) -> ToJson:
    """The function that writes a column's canonical text."""
    if code in WHOLE:
        return digits
    if code in FLOATS:
        return bare_number
    if code == YEAR:
        return year
    if code in LOBS:
        return checked_base64 if binary else text_base64
    if code in STRINGS:
        return quoted_bytes if binary else quote
    if code == TIMESTAMP and to_local is not None:
        return lambda text: quote(to_local(text))
    if type_.base in ("enum", "set"):
        numeral = (enum_index if type_.base == "enum" else set_mask)(type_.labels, numbered)
        return lambda text: digits(numeral(text))
    return quote


def digits(text: str) -> str:
    """An integer, without quotes.

    >>> digits("18446744073709551615")
    '18446744073709551615'
    """
    if len(text) > 20:
        raise Lossy("misfit", text)
    if not (text.isdecimal() and text.isascii() and text[0] != "0"):
        whole(text)
    return text


def bare_number(text: str) -> str:
    """A number, digit for digit; negative zero is -0, as in TiCDC.

    >>> bare_number("1.10"), bare_number("-0")
    ('1.10', '-0')
    """
    if not is_number(text):
        raise Lossy("misfit", text)
    return text


def year(text: str) -> str:
    """A year as a number.

    >>> year("2022"), year("0000")
    ('2022', '0')
    """
    return digits(year_number(text))


def checked_base64(text: str) -> str:
    """A BLOB, which is base64 already; raises Lossy with encoded text if it is not."""
    try:
        raw_bytes(text)
    except Lossy:
        raise Lossy("misfit", text_base64(text)[1:-1]) from None
    return f'"{text}"'


def text_base64(text: str) -> str:
    """A TEXT as base64 of its bytes.

    >>> text_base64("测试text")
    '"5rWL6K+VdGV4dA=="'
    """
    return f'"{b64encode(text.encode()).decode()}"'


def quoted_bytes(text: str) -> str:
    """A BINARY or VARBINARY with Go's escapes; raises Lossy with escaped text if not base64."""
    try:
        return quote(go_quote(raw_bytes(text)))
    except Lossy:
        raise Lossy("misfit", go_quote(text.encode())) from None


class GoEscapes(dict[int, str]):
    """Go's `strconv.Quote` per character; bytes that are not UTF-8 come as surrogates."""

    def __missing__(self, character: int) -> str:
        if chr(character).isprintable():
            return chr(character)
        return f"\\u{character:04x}" if character < 0x10000 else f"\\U{character:08x}"


_go_escapes = GoEscapes(
    {c: f"\\x{c:02x}" for c in (*range(32), 127)}
    | {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(128, 256)}
    | {ord(c): "\\" + e for c, e in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"')}
)


def go_quote(data: bytes) -> str:
    r"""Bytes as Go's `strconv.Quote` writes them, without the outer quotes.

    >>> print(go_quote(b"\x89PNG\r\n\x1a\n"))
    \x89PNG\r\n\x1a\n
    """
    text = data.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text and '"' not in text:
        return text
    return text.translate(_go_escapes)
