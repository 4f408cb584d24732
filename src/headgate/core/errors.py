"""The errors users meet: each names what is wrong and what to try; none carries the payload."""

from __future__ import annotations

import logging
import os
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

log = logging.getLogger("headgate")
INTERNAL_ERROR = "internal-error"
MAX_REASON = 500
"""The longest reason that is taken from another program's error."""
_PACKAGE = Path(__file__).parents[1]
_OWN_ERROR = re.compile(r"headgate(?:\.\w+)+: (.+)")
"""The last line of a traceback that another process of Headgate's has sent."""
_logged: set[tuple[str, str]] = set()
"""Defects that this process has logged."""


class HeadgateError(Exception):
    """Base of all errors that Headgate raises on purpose."""


class UsageError(HeadgateError):
    """Usage error: an unknown name, option or path. The command line exits with 2."""


class Unreachable(UsageError):
    """A server does not answer, which may pass: unlike other usage errors, exit code 1."""


EXTRAS = {
    "py4j": ("PySpark", "spark"),
    "pyspark": ("PySpark", "spark"),
    "prometheus_client": ("prometheus-client", "metrics"),
}
"""Packages and the extras of Headgate that install them. Those of sources and sinks are beside
their names (`sources/`, `sinks/`)."""


class MissingPackage(UsageError, ModuleNotFoundError):
    """A package that an extra of Headgate installs is not there."""

    @classmethod
    def of(cls, error: ModuleNotFoundError, what: str) -> ModuleNotFoundError:
        """The error with the line to type; itself, if no extra has the package.

        >>> print(MissingPackage.of(ModuleNotFoundError(name="pyspark.sql"), "headgate run"))
        headgate run needs PySpark, which is not installed; type: pip install 'headgate[spark]'
        """
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            return error
        package, extra = EXTRAS[module]
        line = f"pip install 'headgate[{extra}]'"
        return cls(f"{what} needs {package}, which is not installed; type: {line}", name=error.name)


class StorageError(HeadgateError):
    """A file cannot be read or written: a full disk, no permission, no answer. Exit code 1."""


class SpliceError(HeadgateError):
    """The fast path and the codecs disagree: its output cannot be trusted. Exit code 1."""

    code = "splice-mismatch"

    def __init__(self) -> None:
        super().__init__(
            f"{self.code}: the fast path and the codecs disagree about a message, so the output of "
            "the fast path cannot be trusted; repeat this with splice=false as an option of every "
            "target, and please report it with an example of the messages"
        )


class DecodeError(HeadgateError):
    """One message cannot be decoded. `code` is stable; the text says what is wrong and what to try.

    >>> raise DecodeError("unknown-type", "type is 'FOO'", "check the dialect")
    Traceback (most recent call last):
    headgate.core.errors.DecodeError: type is 'FOO'; check the dialect
    """

    def __init__(self, code: str, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.code, self.what, self.remedy = code, what, remedy

    def in_column(self, name: str) -> DecodeError:
        """The same error, saying which column it was."""
        return DecodeError(self.code, f"column {shown(name)}: {self.what}", self.remedy)


@contextmanager
def naming(verb: str, path: str) -> Iterator[None]:
    """Add to an error of the file system what was being done, and to which path.

    >>> with naming("write", "out.jsonl"):
    ...     raise OSError(28, "")
    Traceback (most recent call last):
    headgate.core.errors.StorageError: cannot write out.jsonl: No space left on device
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader is gone, which is not the path's fault
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StorageError(f"cannot {verb} {path}: {reason}") from None


def internal_error(error: Exception) -> tuple[str, str]:
    """Code and sentence for an exception that no codec means to raise: a defect of Headgate.

    One message must not stop a stream forever, so it becomes an invalid event. Each defect is
    logged once. The exception's own text may contain values of the message, so it is left out. A
    MemoryError is not about the message, and is raised again: another attempt may succeed.

    >>> internal_error(KeyError("secret"))
    ('internal-error', 'KeyError in Headgate itself, at an unknown place; please report it')
    """
    if isinstance(error, MemoryError):
        raise error
    kind, place = type(error).__name__, _place(error)
    reason = f"{kind} in Headgate itself, at {place}; please report it"
    if (kind, place) not in _logged:
        _logged.add((kind, place))
        log.error("%s: %s; affected messages are invalid", INTERNAL_ERROR, reason)
    return INTERNAL_ERROR, reason


def _place(error: Exception) -> str:
    """The last line of this package that an exception came through."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            return f"{path.relative_to(_PACKAGE)}:{line}"
    return "an unknown place"


def reason_of(error: BaseException) -> str:
    """What failed, in one line, without the stack.

    >>> reason_of(ValueError("it broke\\n\\tat java.lang.Thread\\nCaused by: X: no space"))
    'X: no space'
    >>> reason_of(ValueError("it broke\\n\\tat java.lang.Thread"))
    'ValueError: it broke'
    >>> reason_of(ValueError("Traceback\\nheadgate.core.errors.UsageError: no topic"))
    'no topic'
    """
    if isinstance(error, HeadgateError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines()]
    if own := [match[1] for match in map(_OWN_ERROR.match, lines) if match]:
        return own[0][:MAX_REASON]
    java = ("Caused by: ", ": java.", ": org.")  # the first exception stands behind a colon
    causes = [line.partition(": ")[2] for line in lines if line.startswith(java)]
    texts = [line for line in lines if line and not line.startswith(("at ", "File ", "Traceback"))]
    first = f"{type(error).__name__}: {texts[0] if texts else 'no details'}"
    return (causes[-1] if causes else first)[:MAX_REASON]


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
