"""Messages as people and vendors' documents print them: over several lines, with comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headgate.core.errors import DecodeError
from headgate.core.json import escape_control_characters, members, parse

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|//[^\n]*|[{}\[\]]', re.DOTALL)
_NEXT = re.compile(rb"\n(?=\{)")
_COMMENT = re.compile(rb'("(?:[^"\\]|\\.)*"?)|//[^\n]*', re.DOTALL)
_TRAILING_COMMA = re.compile(rb'("(?:[^"\\]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)


def messages_in(text: bytes) -> Iterator[bytes]:
    """The top-level JSON values of a pretty-printed text; what is not JSON comes as it is.

    A value that was cut short ends where a line begins the next one.

    >>> list(messages_in(b'{"a": 1,}\\n\\n{"b": 2}'))
    [b'{"a": 1}', b'{"b": 2}']
    >>> list(messages_in(b'{"a":\\n 1,\\n{"b":\\n 2}'))
    [b'{"a":\\n 1,', b'{"b":\\n 2}']
    """
    for value in map(as_json, _values(text)):
        if value[:1] != b"{" or is_json(value):
            yield value
        else:
            for part in _NEXT.split(value):
                yield from map(as_json, _values(part))


def _values(text: bytes) -> Iterator[bytes]:
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token.group() in (b"{", b"["):
            depth += 1
        elif token.group() in (b"}", b"]"):
            depth -= 1
            if depth <= 0:
                yield text[start : token.end()].strip()
                depth, start = 0, token.end()
    if text[start:].strip():
        yield text[start:].strip()


def as_json(printed: bytes) -> bytes:
    """Strict JSON where comments, trailing commas or line breaks in strings are all that is wrong.

    >>> as_json(b'{"sql": "a\\nb", // why\\n}')
    b'{"sql": "a\\\\u000ab" \\n}'
    """
    if is_json(printed):
        return printed
    text = _COMMENT.sub(_kept, printed)
    text = escape_control_characters(_TRAILING_COMMA.sub(_kept, text).strip())
    return text if is_json(text) else printed


def _kept(match: re.Match[bytes]) -> bytes:
    return match.group(1) or b""


def is_json(text: bytes) -> bool:
    """Whether text is one JSON object, and nothing else."""
    try:
        parse(members, text)
    except DecodeError:
        return False
    return True
