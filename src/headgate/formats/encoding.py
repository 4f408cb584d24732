"""Shared by all encoders: plans per type map, exact JSON values, the producers' escapes."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder, Encoder

from headgate.core.cache import BoundedCache
from headgate.core.cache import PerTypeMap as PerTypeMap
from headgate.core.event import Event, Image
from headgate.core.losses import Lossy
from headgate.formats import traits_of

Write = Callable[[str], Any]
"""From canonical text to the JSON value that stands for it; raises Lossy if it cannot."""
Writers = Sequence[tuple[str, Write]]

to_json = Encoder(enc_hook=str).encode
"""To JSON; a number that a decoder kept as text is written as text."""
_names = Decoder(list[str])
_anything = Decoder(float_hook=str)
is_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
_FLOAT = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?")
_SHORT = re.compile(rb"\\[bf\\]")
_HEX = re.compile(rb"\\(?:\\|u00[01][0-9a-f])")
_HTML = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")
LESS, MORE, AND, BACKSLASH = b"<>&\\"
"""Integers, because searching for bytes in bytes is ten times as expensive."""
_HTML_ESCAPES = {
    b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026",
    b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029",
}  # fmt: skip


def written(image: Image, writers: Writers, lost: list[str]) -> dict[str, Any]:
    """A copy of a row as JSON values, with columns converted where needed.

    >>> lost = []
    >>> written({"id": "7", "n": "x"}, [("id", whole), ("n", whole)], lost), lost
    ({'id': 7, 'n': 'x'}, ['misfit'])
    """
    row: dict[str, Any] = image.copy()
    for name, write in writers:
        text = row.get(name)
        if text is not None:
            try:
                row[name] = write(text)
            except Lossy as lossy:
                row[name] = lossy.value
                lost.append(lossy.code)
    return row


def whole(text: str) -> Any:
    """A whole number as a bare JSON number.

    >>> whole("-5"), whole("18446744073709551616")
    (-5, <msgspec.Raw object at 0x...>)
    """
    size = len(text)
    if text.isdigit() and text.isascii() and (text[0] != "0" or size == 1):
        return int(text) if size < 19 else Raw(text.encode())
    if text[:1] == "-" and text != "-0" and is_number(text) and text[1:].isdigit():
        return int(text) if size < 19 else Raw(text.encode())
    raise Lossy("misfit", text)


def number(text: str) -> Any:
    """Any number as a bare JSON number, digit for digit.

    >>> bytes(number("1.10"))
    b'1.10'
    """
    if not is_number(text):
        raise Lossy("misfit", text)
    if text == "-0":  # most JSON readers take it for 0
        raise Lossy("float-digits", Raw(b"-0.0"))
    return Raw(text.encode())


def java_float(text: str) -> Any:
    """A FLOAT or DOUBLE as Java writes it: the same digits, in Java's notation.

    >>> bytes(java_float("1.0E10"))
    b'1.0E10'
    """
    value = number(text)
    java = java_notation(text)
    if java != text:
        raise Lossy("float-digits", Raw(java.encode()))
    return value


def java_notation(text: str) -> str:
    """A number in the notation of Java's Double.toString; only outer zeros are changed.

    >>> [java_notation(text) for text in ("10000000000", "1e-7", "-5", "0.00150", "0e9")]
    ['1.0E10', '1.0E-7', '-5.0', '0.0015', '0.0']
    """
    match = _FLOAT.fullmatch(text)
    if not match:
        return text
    sign, whole, fraction, exponent = match.groups("")
    digits = (whole + fraction).lstrip("0")
    # The position of the point, counted from the first digit that is not 0.
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0.0"
    if not -3 < point <= 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def boolean(text: str) -> Any:
    """1 and 0 as true and false.

    >>> boolean("1"), boolean("0")
    (True, False)
    """
    if text not in ("1", "0"):
        raise Lossy("misfit", text)
    return text == "1"


def boolean_digit(text: str) -> Any:
    """True and false as 1 and 0, which no longer look like booleans.

    >>> boolean_digit("1")
    Traceback (most recent call last):
    headgate.core.losses.Lossy: bare-values
    """
    raise Lossy("bare-values", int(boolean(text)))


def json_value(text: str) -> Raw | None:
    """JSON text as a JSON value, on one line; None if it is not JSON.

    >>> bytes(json_value('{"a":\\n1.10}')), json_value("{")
    (b'{"a": 1.10}', None)
    """
    try:
        _anything.decode(str(text))  # a decoder's text may be a Number, which it does not accept
    except (MsgspecError, RecursionError, UnicodeError):
        return None
    # Line breaks can only be between tokens: in a string they are escaped.
    return Raw(text.replace("\n", " ").replace("\r", " ").encode())


def raw_bytes(text: str) -> bytes:
    """The bytes of canonical binary text.

    >>> raw_bytes("Bf8=")
    b'\\x05\\xff'
    """
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise Lossy("misfit", text) from None


def latin1(text: str) -> str:
    """Binary as ISO-8859-1 characters, as Canal writes it.

    >>> latin1("Bf8=")
    '\\x05ÿ'
    """
    return raw_bytes(text).decode("latin-1")


def enum_index(labels: Sequence[str], numbered: bool) -> Write:
    """A function from ENUM label to its index; `numbered` says that numbers are indexes already.

    >>> enum_index(["a", "b"], False)("b")
    '2'
    """
    known = {label: str(i) for i, label in enumerate(labels, 1)}
    known.setdefault("", "0")

    def write(text: str) -> str:
        index = known.get(text) if labels else None
        if index is not None:
            return index
        if (numbered or labels) and text.isascii() and text.isdigit():
            return text
        raise Lossy("enum-labels", text)

    return write


def set_mask(labels: Sequence[str], numbered: bool) -> Write:
    """A function from comma-joined SET labels to their bit mask.

    >>> set_mask(["a", "b", "c"], False)("a,c")
    '5'
    """
    bits = {label: 1 << i for i, label in enumerate(labels)}

    def write(text: str) -> str:
        if labels:
            if text == "":
                return "0"
            try:
                return str(sum({bits[label] for label in text.split(",")}))
            except KeyError:
                pass
        if (numbered or labels) and text.isascii() and text.isdigit():
            return text
        raise Lossy("enum-labels", text)

    return write


def is_numbered(event: Event) -> bool:
    """Whether the event's producer sends ENUM and SET as numbers.

    >>> [is_numbered(Event("row", format=name)) for name in ("open-protocol", "maxwell")]
    [True, False]
    """
    return traits_of(event.format, event.dialect).enum_as_number


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the earlier row whose value differs in the later one.

    >>> changed({"a": "1", "b": None}, {"a": "1", "b": "2"})
    {'b': None}
    """
    missing = object()
    return {n: v for n, v in before.items() if v != after.get(n, missing)}


def millis(micros: int | None) -> int | None:
    """Milliseconds since the epoch."""
    return None if micros is None else micros // 1_000


def go_style(message: bytes) -> bytes:
    """JSON with the escapes of Go: HTML characters too, and backspace in the long form.

    >>> go_style(b'"<\\\\b"')
    b'"\\\\u003c\\\\u0008"'
    """
    if LESS in message or MORE in message or AND in message or not message.isascii():
        message = _HTML.sub(lambda m: _HTML_ESCAPES[m[0]], message)
    return long_escapes(message)


def long_escapes(message: bytes) -> bytes:
    """JSON without the short escapes for backspace and form feed.

    >>> long_escapes(b'"\\\\b"')
    b'"\\\\u0008"'
    """
    if BACKSLASH not in message:
        return message
    return _SHORT.sub(lambda m: {b"\\b": b"\\u0008", b"\\f": b"\\u000c"}.get(m[0], m[0]), message)


def jackson_style(message: bytes) -> bytes:
    """JSON with the escapes of Java's Jackson: hexadecimal digits in upper case.

    >>> jackson_style(b'"\\\\u001f"')
    b'"\\\\u001F"'
    """
    if BACKSLASH not in message:
        return message
    return _HEX.sub(lambda m: m[0][:2] + m[0][2:].upper(), message)


def hinted(extra: Mapping[str, str] | None, digits: bool = False) -> Writers:
    """Writers for the columns that were sent bare, which only `extra` tells.

    `digits` says that the producer writes true and false as 1 and 0.

    >>> [name for name, _ in hinted({"numbers": '["id"]'})]
    ['id']
    """
    if not extra:
        return ()
    numbers, booleans = extra.get("numbers"), extra.get("booleans")
    return _hinted[numbers, booleans, digits] if numbers or booleans else ()


def _make_hinted(hints: tuple[str | None, str | None, bool]) -> Writers:
    numbers, booleans, digits = hints
    writers: list[tuple[str, Write]] = [(name, number) for name in name_list(numbers)]
    write = boolean_digit if digits else boolean
    return writers + [(name, write) for name in name_list(booleans)]


_hinted: BoundedCache[tuple[str | None, str | None, bool], Writers] = BoundedCache(_make_hinted)


def name_list(text: str | None) -> list[str]:
    """Column names from their JSON array; none if the text is not such an array.

    >>> name_list('["id"]'), name_list("?")
    (['id'], [])
    """
    try:
        return _names.decode(text) if text else []
    except MsgspecError:
        return []
