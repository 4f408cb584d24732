"""Values of a job file: durations, shares, sizes, and environment variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import unquote_plus

from headgate.core.errors import UsageError, shown

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST = 3650 * 86_400
_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(%?)", re.ASCII)
_SIZE = re.compile(r"(\d{1,15})\s*([kmg]?)(i?b)?", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_VARIABLE = re.compile(r"\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_HIDDEN = "***"
_SHORT = 4
T = TypeVar("T")


def duration(text: str) -> float:
    """Seconds.

    >>> duration("5s"), duration("500ms"), duration("1m30s")
    (5.0, 0.5, 90.0)
    """
    if not _DURATION.fullmatch(text):
        raise UsageError(f"invalid duration {shown(text)}; use 500ms, 5s, 2m or 1h")
    seconds = round(sum(float(n) * _SECONDS[unit] for n, unit in _DURATION_PART.findall(text)), 6)
    if seconds > _LONGEST:
        raise UsageError(f"{shown(text)} is too long; the longest duration is 3650d")
    return seconds


def share(text: str) -> float:
    """A part of a whole.

    >>> share("1%"), share("0.01")
    (0.01, 0.01)
    """
    match = _SHARE.fullmatch(text)
    if match is None:
        raise UsageError(f"invalid share {shown(text)}; use 1% or 0.01")
    number = float(match[1]) / (100 if match[2] else 1)
    if not match[2] and number >= 1:
        raise UsageError(f"{shown(text)} may be meant in percent; use 1% or 0.01")
    if number > 1:
        raise UsageError(f"{shown(text)} is more than 100%")
    return number


def size(text: str) -> int:
    """Bytes; KB and KiB are both 1024 of them, as in TiCDC.

    >>> size("10MB"), size("1024")
    (10485760, 1024)
    """
    match = _SIZE.fullmatch(text)
    if match is None or (match[3] and not match[2] and match[3].lower() != "b"):
        raise UsageError(f"invalid size {shown(text)}; use 1048576, 512KB or 10MB")
    return int(match[1]) * _UNITS[match[2].lower()]


def whole_number(text: str, least: int = 1, most: int = 2**63 - 1) -> int:
    """A number in plain digits.

    >>> whole_number("500000")
    500000
    """
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise UsageError(f"{shown(text)} is not a whole number; use plain digits")
    if not least <= int(text) <= most:
        raise UsageError(f"{text} is out of range; it must be {least} to {most}")
    return int(text)


def truth(text: str) -> bool:
    """True or false.

    >>> truth("true")
    True
    """
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{shown(text)} is neither true nor false")
    return text.lower() == "true"


def named(name: str, read: Callable[[str], T], text: str) -> T:
    """The value of a parameter, whose name is in errors.

    >>> named("trigger", duration, "5s")
    5.0
    """
    try:
        return read(text.strip())
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


class Environment:
    """Gives values for `${NAME}`, and keeps them out of error texts.

    >>> env = Environment({"PASSWORD": "s3cret"})
    >>> env.fill("user:${PASSWORD}"), env.fill("$${PASSWORD}")
    ('user:s3cret', '${PASSWORD}')
    >>> env.scrubbed("'user:s3cret' is wrong")
    "'user:***' is wrong"
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self.variables = {} if variables is None else variables
        self._hidden: set[str] = set()

    def fill(self, text: str) -> str:
        """The text with variables replaced; `$${` stands for `${`."""
        for rest in _VARIABLE.split(text)[::2]:
            if "${" in rest:
                raise UsageError("${ has no name after it; write ${NAME}, or $${NAME} for the text")
        return _VARIABLE.sub(self._value, text)

    def _value(self, variable: re.Match[str]) -> str:
        if variable[0].startswith("$$"):
            return variable[0][1:]
        name = variable[1]
        value = self.variables.get(name)
        if value is None:
            raise UsageError(
                f"the environment variable {name} is not set; set it, or write the value"
            )
        self.hide(value)
        return value

    def whole(self, text: str) -> str | None:
        """The value of a text that is one variable and nothing else; None where it is not."""
        variable = _VARIABLE.fullmatch(text.strip())
        if variable is None or variable[0].startswith("$$"):
            return None
        return self._value(variable)

    def hide(self, value: str) -> None:
        """Keep a value out of error texts, also as it is quoted there or percent-encoded."""
        forms = {value, unquote_plus(value), value.strip()}
        self._hidden |= forms | {ascii(form)[1:-1] for form in forms}

    def scrubbed(self, text: str) -> str:
        """A text without the values that are hidden."""
        for value in sorted(filter(None, self._hidden), key=len, reverse=True):
            if len(value) >= _SHORT:
                text = text.replace(value, _HIDDEN)
            else:  # as a part of words it reveals nothing, and replacing it would garble them
                text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", _HIDDEN, text)
        return text
