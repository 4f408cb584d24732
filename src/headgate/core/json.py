"""The one JSON reader of all codecs: exact digits, strict syntax, errors that say what to try."""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import Annotated, Any

import msgspec

from headgate.core.errors import DecodeError

Raw = msgspec.Raw
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Number(str):
    """A JSON number with a fraction or an exponent, digit for digit as it was sent."""

    __slots__ = ()


def reader(type_: Any) -> msgspec.json.Decoder[Any]:
    """A decoder for one wire shape that keeps every digit of every number."""
    return msgspec.json.Decoder(type_, float_hook=Number)


members = reader(dict[str, Raw])
_string = msgspec.json.Decoder(str)
# Digits are not looked at: of a value, it only says where it ends.
_end_of_value = JSONDecoder(parse_int=len, parse_float=len).raw_decode
_LITERALS = {b"null": None, b"true": "1", b"false": "0"}

_TEXT = re.compile(rb'"(?:[^"\\]|\\[^\x00-\x1f])*"?')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(decoder: msgspec.json.Decoder[Any], value: bytes) -> Any:
    """Decode strictly, or raise the DecodeError that describes what is wrong.

    >>> parse(reader(dict), b'{"a":1.10}')
    {'a': '1.10'}
    """
    try:
        # What a wire shape leaves out is skipped unread, so the text is checked here.
        if not value.isascii():
            str(value, "utf-8")
        return decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise describe(error, value) from None


def describe(error: Exception, value: bytes) -> DecodeError:
    """Turn a parser's exception into a DecodeError that carries none of the payload."""
    if isinstance(error, UnicodeDecodeError):
        return DecodeError(
            "invalid-utf8",
            f"the message is not UTF-8 (byte 0x{error.object[error.start]:02x} is out of place)",
            "check the producer's character set, or whether the topic holds another, binary format",
        )
    if isinstance(error, RecursionError):
        return DecodeError(
            "too-deep", "the message is nested too deeply", "no CDC producer writes this; drop it"
        )
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        code = "missing-member" if "missing required field" in text else "wrong-type"
        return DecodeError(code, _plain(text), "check that the format and dialect are right")
    if value[:3] == b"\xef\xbb\xbf":
        text = "starts with a byte-order mark"
    elif not value.strip():
        return DecodeError("empty-value", "the message is empty", "check the producer")
    elif "truncated" in text and _LONE_SURROGATE.search(value):
        text = "holds half of a surrogate pair (\\ud8xx without its partner)"
    elif "truncated" in text:
        text = "ends too early"
    else:
        text = _plain(text).removeprefix("JSON is malformed: ")
    return DecodeError(
        "malformed-json", f"not valid JSON: {text}", "check the format, and how the bytes got here"
    )


def _plain(text: str) -> str:
    return text.replace("`", "'")


def exact_text(raw: Raw) -> str | None:
    """Canonical text of any JSON value as it was sent: an object or array is its own text.

    >>> exact_text(Raw(b'{"a": 1.10}')), exact_text(Raw(b'"x"')), exact_text(Raw(b"-0"))
    ('{"a": 1.10}', 'x', '-0')
    """
    sent = bytes(raw)
    if sent in _LITERALS:
        return _LITERALS[sent]
    if sent[:1] == b'"':
        text: str = parse(_string, sent)
        return text
    try:
        return sent.decode()
    except UnicodeDecodeError as error:
        raise describe(error, sent) from None


def objects(value: bytes) -> list[bytes]:
    """The JSON objects of a message that holds several, one right after the other.

    Text that is not JSON comes back as one of them; its reader reports the error.

    >>> objects(b'{"a":"}{"}{"a":2}')
    [b'{"a":"}{"}', b'{"a":2}']
    """
    if b"}{" not in value:
        return [value]
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return [value]
    documents = []
    start = 0
    while start < len(text):
        try:
            end = _end_of_value(text, start)[1]
        except (ValueError, RecursionError):
            end = len(text)
        documents.append(text[start:end].encode())
        start = end
    return documents


def escape_control_characters(value: bytes) -> bytes:
    """Escape raw line breaks and the like inside strings, as Tencent's DDL messages have them.

    >>> escape_control_characters(b'{"sql": "a\\nb"\\n}')
    b'{"sql": "a\\\\u000ab"\\n}'
    """
    if not _CONTROL.search(value):
        return value
    return _TEXT.sub(lambda string: _CONTROL.sub(_escape, string.group()), value)


def _escape(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % match.group()[0]
