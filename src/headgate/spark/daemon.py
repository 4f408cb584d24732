"""Spark's daemon of Python workers, as Headgate's own sessions on one machine start it.

At a session's end Spark closes the Unix sockets of idle workers, and each says so on standard
error with a traceback, as if something had failed. Here they end in silence.
"""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace
from typing import Any

import pyspark.daemon


def print_exc() -> None:
    """Print what was raised, unless it says that the session has gone."""
    if not isinstance(sys.exc_info()[1], BrokenPipeError):
        traceback.print_exc()


if __name__ == "__main__":
    daemon: Any = pyspark.daemon
    daemon.traceback = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)
    daemon.manager()
