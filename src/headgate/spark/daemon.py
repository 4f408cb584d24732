"""Spark's daemon of Python workers, as Headgate's own sessions on one machine start it.

At a session's end Spark closes the Unix sockets of idle workers, and each says so on standard
error with a traceback, as if something had failed. Here they end in silence.

The modules that HEADGATE_PRELOAD names are imported before the first worker is forked, so that no
worker has to, nor looks at them when it collects garbage.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pyspark.daemon


def print_exc() -> None:
    """Print what was raised, unless it says that the session has gone."""
    if not isinstance(sys.exc_info()[1], BrokenPipeError):
        traceback.print_exc()


def preload() -> None:
    """Import what workers will need; what cannot be imported here, they import themselves."""
    for name in filter(None, os.environ.get("HEADGATE_PRELOAD", "").split(",")):
        with suppress(ImportError):
            import_module(name)


if __name__ == "__main__":
    preload()
    gc.freeze()
    daemon: Any = pyspark.daemon
    daemon.traceback = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)
    daemon.manager()
