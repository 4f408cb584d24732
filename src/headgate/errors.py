"""The errors users meet: each names what is wrong and what to try; none carries the payload."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class HeadgateError(Exception):
    """Base of all errors that Headgate raises on purpose."""


class UsageError(HeadgateError):
    """The call is wrong: an unknown name, option or path. The command line exits with 2."""


class DecodeError(HeadgateError):
    """One message cannot be decoded. `code` is stable; the text says what is wrong and what to try.

    >>> raise DecodeError("unknown-type", "type is 'FOO'", "check the dialect")
    Traceback (most recent call last):
    headgate.errors.DecodeError: type is 'FOO'; check the dialect
    """

    def __init__(self, code: str, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.code, self.what, self.remedy = code, what, remedy

    def in_column(self, name: str) -> DecodeError:
        """The same error, saying which column it was."""
        return DecodeError(self.code, f"column {shown(name)}: {self.what}", self.remedy)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Refuse a name that is not in `known`, with the nearest right one."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UsageError(f"unknown {kind} {shown(name)}; {hint}known: {', '.join(names) or 'none'}")


def shown(text: object, most: int = 120) -> str:
    """Quote text from a message for an error or a log line: one line, escaped, cut."""
    quoted = ascii(str(text))
    return quoted if len(quoted) <= most else quoted[: most - 1] + "…"
