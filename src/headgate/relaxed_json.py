"""Messages as people and vendors' documents print them: over several lines, with comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headgate.errors import DecodeError
from headgate.strict_json import escape_control_characters, members, parse

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|//[^\n]*|[{}\[\]]', re.DOTALL)
_COMMENT = re.compile(rb'("(?:[^"\\]|\\.)*"?)|//[^\n]*', re.DOTALL)
_TRAILING_COMMA = re.compile(rb'("(?:[^"\\]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)


def messages_in(text: bytes) -> Iterator[bytes]:
    """The top-level JSON values of a pretty-printed text; what is no JSON comes as one piece.

    >>> list(messages_in(b'{"a": 1,}\\n\\n{"b": 2}'))
    [b'{"a": 1}', b'{"b": 2}']
    """
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token.group() in (b"{", b"["):
            depth += 1
        elif token.group() in (b"}", b"]"):
            depth -= 1
            if depth <= 0:
                yield as_json(text[start : token.end()].strip())
                depth, start = 0, token.end()
    if text[start:].strip():
        yield as_json(text[start:].strip())


def as_json(printed: bytes) -> bytes:
    """Strict JSON where comments, trailing commas or line breaks in strings are all that is wrong.

    >>> as_json(b'{"sql": "a\\nb", // why\\n}')
    b'{"sql": "a\\\\u000ab" \\n}'
    """
    if _is_json(printed):
        return printed
    text = _COMMENT.sub(_kept, printed)
    text = escape_control_characters(_TRAILING_COMMA.sub(_kept, text).strip())
    return text if _is_json(text) else printed


def _kept(found: re.Match[bytes]) -> bytes:
    return found.group(1) or b""


def _is_json(text: bytes) -> bool:
    try:
        parse(members, text)
    except DecodeError:
        return False
    return True
